// SPDX-License-Identifier: Apache-2.0
//
// Constants, float formats and folding.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/graph.h"
#include "tt_test.h"

static void destroy(tt_builder** b) {
  tt_builder_destroy(*b);
}
#define SCOPED_BUILDER(name) TT_CLEANUP(destroy) tt_builder* name = tt_builder_create()

static tt_val param(tt_builder* b, tt_dtype dtype, int64_t size) {
  tt_type type = tt_type_make(dtype, 1, &size);
  return tt_param(b, &type);
}

// What a 0-d constant prints between dense< and >.
static const char* printed_f(tt_dtype dtype, double value) {
  static char out[200];
  unsigned char elem[TT_ELEM_MAX];
  TT_SCOPED_TEXT(text);
  tt_elem_from_double(dtype, value, -value, elem);
  tt_elem_print(&text, dtype, elem);
  snprintf(out, sizeof out, "%s", text.text);
  return out;
}

TEST(hlo, float_constants_print_exactly) {
  EXPECT_STR(printed_f(TT_F32, 1), "1.0e+00");
  EXPECT_STR(printed_f(TT_F32, 0.1), "1.0e-01");
  EXPECT_STR(printed_f(TT_F32, 1.0 / 3), "3.3333334e-01");
  EXPECT_STR(printed_f(TT_F64, 1.0 / 3), "3.333333333333333e-01");
  EXPECT_STR(printed_f(TT_F32, -0.0), "-0.0e+00");
  EXPECT_STR(printed_f(TT_F32, (double)NAN), "0x7FC00000");
  EXPECT_STR(printed_f(TT_F32, -(double)INFINITY), "0xFF800000");
  EXPECT_STR(printed_f(TT_BF16, (double)INFINITY), "0x7F80");
  EXPECT_STR(printed_f(TT_F64, (double)INFINITY), "0x7FF0000000000000");
  EXPECT_STR(printed_f(TT_C64, 2), "(2.0e+00, -2.0e+00)");
}

TEST(hlo, integer_constants_print_by_sign_of_their_type) {
  unsigned char elem[TT_ELEM_MAX];
  TT_SCOPED_TEXT(text);
  tt_elem_from_int(TT_U8, -1, elem);
  tt_elem_print(&text, TT_U8, elem);
  tt_strbuf_add(&text, " ");
  tt_elem_from_int(TT_I8, 255, elem);
  tt_elem_print(&text, TT_I8, elem);
  tt_strbuf_add(&text, " ");
  tt_elem_from_int(TT_U64, -1, elem);
  tt_elem_print(&text, TT_U64, elem);
  EXPECT_STR(text.text, "255 -1 18446744073709551615");
}

TEST(hlo, small_floats_survive_a_round_trip_in_all_bits) {
  static const tt_dtype formats[] = {TT_F16,    TT_BF16,       TT_F8E4M3FN, TT_F8E4M3FNUZ,
                                     TT_F8E5M2, TT_F8E5M2FNUZ, TT_F8E8M0FNU};
  for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
    uint64_t count = UINT64_C(1) << (8 * tt_dtype_size(formats[f]));
    int wrong = 0;
    for (uint64_t bits = 0; bits < count; bits++) {
      double value = tt_float_decode(formats[f], bits);
      wrong += !isnan(value) && tt_float_encode(formats[f], value) != bits;
    }
    EXPECT_EQ_INT(wrong, 0);
  }
}

TEST(hlo, doubles_round_to_nearest_even) {
  EXPECT_EQ_INT(tt_float_encode(TT_F16, 2049), tt_float_encode(TT_F16, 2048));
  EXPECT_EQ_INT(tt_float_encode(TT_F16, 2051), tt_float_encode(TT_F16, 2052));
  EXPECT_EQ_INT(tt_float_encode(TT_F16, 65519), 0x7BFF);
  EXPECT_EQ_INT(tt_float_encode(TT_F16, 65520), 0x7C00);
  EXPECT_EQ_INT(tt_float_encode(TT_F16, 0x1p-25), 0);
  EXPECT_EQ_INT(tt_float_encode(TT_F16, 0x1.8p-25), 1);
  EXPECT_EQ_INT(tt_float_encode(TT_BF16, 1.00390625), 0x3F80);
  EXPECT_EQ_INT(tt_float_encode(TT_F8E4M3FN, 448), 0x7E);
  EXPECT_EQ_INT(tt_float_encode(TT_F8E4M3FN, 1000), 0x7F);
  EXPECT_EQ_INT(tt_float_encode(TT_F8E4M3FNUZ, -0.0), 0);
  EXPECT_EQ_INT(tt_float_encode(TT_F8E5M2, 1e9), 0x7C);
}

TEST(hlo, splats_are_known_constants) {
  SCOPED_BUILDER(b);
  double value = 0;
  int64_t dims[] = {2, 3};
  EXPECT_TRUE(tt_val_is_const(b, tt_zeros(b, TT_I32, 2, dims), &value) && value == 0);
  EXPECT_TRUE(tt_val_is_const(b, tt_const_f(b, TT_BF16, 0.1), &value) && value == 0.10009765625);
  EXPECT_TRUE(tt_val_is_const(b, tt_const_max(b, TT_U8), &value) && value == 255);
  EXPECT_TRUE(tt_val_is_const(b, tt_const_min(b, TT_I16), &value) && value == -32768);
  EXPECT_TRUE(tt_val_is_const(b, tt_const_min(b, TT_F32), &value) && value == -(double)INFINITY);
  EXPECT_TRUE(tt_val_is_const(b, tt_const_max(b, TT_F8E4M3FN), &value) && value == 448);
  EXPECT_TRUE(!tt_val_is_const(b, param(b, TT_F32, 2), &value));
  EXPECT_TRUE(!tt_val_is_const(b, TT_POISON, &value));
  int64_t equal[] = {7, 7, 7}, different[] = {7, 8, 7};
  EXPECT_TRUE(tt_val_is_const(b, tt_const_ints(b, TT_I64, 3, equal), &value) && value == 7);
  EXPECT_TRUE(!tt_val_is_const(b, tt_const_ints(b, TT_I64, 3, different), &value));
}

TEST(hlo, large_data_prints_as_hexadecimal_and_bool_as_a_list) {
  SCOPED_BUILDER(b);
  int64_t values[17] = {1};
  tt_val numbers = tt_const_ints(b, TT_I16, 17, values), flags = tt_const_ints(b, TT_BOOL, 17, values);
  EXPECT_TRUE(strstr(tt_node_of(b, numbers)->attrs, "value = dense<\"0x01000000") != NULL);
  EXPECT_TRUE(strstr(tt_node_of(b, flags)->attrs, "value = dense<[true, false, false") != NULL);
  int64_t few[] = {1, -2};
  EXPECT_STR(tt_node_of(b, tt_const_ints(b, TT_I16, 2, few))->attrs, "value = dense<[1, -2]> : tensor<2xi16>");
}

TEST(hlo, constants_have_static_sizes_and_integer_lists_integer_dtypes) {
  SCOPED_BUILDER(b);
  int64_t size = 4;
  tt_type type = tt_type_make(TT_F32, 1, &size);
  type.bounded = 1;
  tt_splat_f(b, &type, 1, 0);
  EXPECT_STATUS(tt_builder_take_error(b), TT_INVALID_ARGUMENT,
                "constant: expected a type of static sizes, got f32[<=4]");
  tt_const_ints(b, TT_F32, 1, &size);
  EXPECT_STATUS(tt_builder_take_error(b), TT_INVALID_ARGUMENT, "constant: expected an integer dtype or bool, got f32");
  tt_const_max(b, TT_C64);
  EXPECT_STATUS(tt_builder_take_error(b), TT_INVALID_ARGUMENT, "limit: expected a real dtype, got complex<f32>");
}

TEST(hlo, operations_without_effect_give_their_operand) {
  SCOPED_BUILDER(b);
  int64_t size = 4, zero = 0, one = 1;
  tt_val x = param(b, TT_F32, size), i = param(b, TT_I32, size);
  EXPECT_EQ_INT(tt_convert(b, x, TT_F32), x);
  EXPECT_EQ_INT(tt_reshape(b, x, 1, &size), x);
  EXPECT_EQ_INT(tt_transpose(b, x, &zero), x);
  EXPECT_EQ_INT(tt_broadcast_in_dim(b, x, 1, &size, &zero), x);
  EXPECT_EQ_INT(tt_slice(b, x, &zero, &size, &one), x);
  EXPECT_EQ_INT(tt_pad(b, x, tt_const_f(b, TT_F32, 0), &zero, &zero, &zero), x);
  EXPECT_EQ_INT(tt_concat(b, 1, &x, 0), x);
  EXPECT_EQ_INT(tt_mul_f(b, x, 1), x);
  EXPECT_EQ_INT(tt_add_f(b, i, 0), i);
  EXPECT_EQ_INT(tt_sub(b, x, tt_const_f(b, TT_F32, 0)), x);
  EXPECT_EQ_INT(tt_reduce(b, TT_REDUCE_SUM, x, 0, NULL), x);
  EXPECT_TRUE(!tt_builder_failed(b));
}

TEST(hlo, folding_keeps_the_sign_of_zero) {
  SCOPED_BUILDER(b);
  tt_val x = param(b, TT_F32, 4);
  EXPECT_TRUE(tt_add_f(b, x, 0.0) != x);  // -0 + 0 is 0
  EXPECT_EQ_INT(tt_add_f(b, x, -0.0), x);
  EXPECT_TRUE(tt_sub(b, x, tt_const_f(b, TT_F32, -0.0)) != x);
  EXPECT_TRUE(tt_mul_f(b, x, 0.0) != tt_full_like(b, x, 0));  // NaN * 0 is NaN
}

TEST(hlo, moves_of_a_splat_are_splats) {
  SCOPED_BUILDER(b);
  int64_t wide[] = {2, 3}, perm[] = {1, 0}, flat = 6;
  double value = 0;
  tt_val x = tt_expand(b, tt_const_f(b, TT_F32, 5), 2, wide);
  EXPECT_TRUE(tt_val_is_const(b, x, &value) && value == 5);
  EXPECT_TRUE(tt_val_is_const(b, tt_transpose(b, x, perm), &value));
  EXPECT_TRUE(tt_val_is_const(b, tt_reshape(b, x, 1, &flat), &value));
  EXPECT_TRUE(tt_val_is_const(b, tt_slice_dim(b, x, 0, 1, 2, 1), &value));
  EXPECT_TRUE(tt_val_is_const(b, tt_convert(b, x, TT_I64), &value) && value == 5);
}
