// SPDX-License-Identifier: Apache-2.0
//
// Each emitter's type rule: a row for each way of breaking it, with the text that a user sees; and result types.
#include <stdlib.h>

#include "base/mem.h"
#include "tt/hlo.h"
#include "tt_test.h"

#define DIMS(...)                                                          \
  (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { \
    __VA_ARGS__                                                            \
  }
#define LIST(...)     \
  (const int64_t[]) { \
    __VA_ARGS__       \
  }

// What the rows below work on.
typedef struct values {
  tt_val f3, f2x3, f3x2, f4, i3, b3, c3, scalar, i0, f2x2, bound;
} values;

static tt_val param(tt_builder* b, tt_dtype dtype, int rank, const int64_t* dims) {
  tt_type type = tt_type_make(dtype, rank, dims);
  return tt_param(b, &type);
}

static values make_values(tt_builder* b) {
  values v = {0};
  v.f3 = param(b, TT_F32, DIMS(3));
  v.f2x3 = param(b, TT_F32, DIMS(2, 3));
  v.f3x2 = param(b, TT_F32, DIMS(3, 2));
  v.f4 = param(b, TT_F32, DIMS(4));
  v.i3 = param(b, TT_I32, DIMS(3));
  v.b3 = param(b, TT_BOOL, DIMS(3));
  v.c3 = param(b, TT_C64, DIMS(3));
  v.scalar = param(b, TT_F32, 0, NULL);
  v.i0 = param(b, TT_I32, 0, NULL);
  v.f2x2 = param(b, TT_F32, DIMS(2, 2));
  v.bound = tt_set_dimension_size(b, v.f2x3, v.i0, 0);
  return v;
}

static void float_result(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)args;
  (void)ctx;
  results[0] = tt_const_f(b, TT_F32, 0);
}

static void int_result(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)args;
  (void)ctx;
  results[0] = tt_const_i(b, TT_I32, 0);
}

static const tt_gather_dims rows_of = {
    .num_offset = 1, .num_collapsed = 1, .num_start_map = 1, .offset = {1}, .index_vector_dim = 1};

static void bad_window(tt_builder* b, const values* v, int64_t size, int64_t dilation) {
  tt_window w = tt_window_default();
  w.size[0] = size;
  w.base_dilation[0] = dilation;
  tt_select_and_scatter(b, v->f4, v->f3, v->scalar, &w, TT_GE);
}

static void bad_conv(tt_builder* b, tt_val lhs, tt_val rhs, int64_t groups, int64_t stride) {
  tt_conv conv = tt_conv_default(1);
  conv.feature_groups = groups;
  conv.stride[0] = stride;
  tt_convolution(b, lhs, rhs, &conv, TT_DTYPE_INVALID);
}

// X(statement that must fail, code, text)
#define BROKEN_RULES(X)                                                                                                \
  X(tt_unary(b, TT_NOT, v.f3), TT_INVALID_ARGUMENT,                                                                    \
    "not: expected a bool or unsigned integer or signed integer operand, got f32[3]")                                  \
  X(tt_unary(b, TT_ADD, v.f3), TT_INVALID_ARGUMENT, "expected an elementwise operation of 1 operands")                 \
  X(tt_binary(b, TT_ADD, v.f3, v.i3), TT_INVALID_ARGUMENT,                                                             \
    "add: expected operands of one type, got f32[3] and i32[3]")                                                       \
  X(tt_binary(b, TT_COMPLEX, v.i3, v.i3), TT_INVALID_ARGUMENT, "complex: expected a float operand, got i32[3]")        \
  X(tt_compare(b, TT_LT, v.c3, v.c3), TT_INVALID_ARGUMENT, "got complex<f32>[3]")                                      \
  X(tt_select(b, v.f3, v.f3, v.f3), TT_INVALID_ARGUMENT, "select: expected a bool predicate")                          \
  X(tt_select(b, v.b3, v.f4, v.f4), TT_INVALID_ARGUMENT, "select: expected a bool predicate")                          \
  X(tt_bitcast(b, v.f3, TT_F64), TT_INVALID_ARGUMENT, "bitcast: expected a last dimension of size 2, got f32[3]")      \
  X(tt_reduce_precision(b, v.f3, 0, 3), TT_INVALID_ARGUMENT, "reduce_precision: expected 1 exponent bit or more")      \
  X(tt_reshape(b, v.f2x3, DIMS(7)), TT_INVALID_ARGUMENT,                                                               \
    "reshape: expected as many elements as f32[2,3] has, got sizes [7]")                                               \
  X(tt_reshape(b, v.f2x3, DIMS(-2, -3)), TT_INVALID_ARGUMENT, "reshape: expected sizes of 0 or more, got [-2, -3]")    \
  X(tt_reshape(b, v.f2x3, 33, LIST(1)), TT_INVALID_ARGUMENT, "reshape: expected at most 32 dimensions, got 33")        \
  X(tt_transpose(b, v.f2x3, LIST(0, 0)), TT_INVALID_ARGUMENT,                                                          \
    "transpose: expected distinct permuted dimensions, got [0, 0]")                                                    \
  X(tt_transpose(b, v.f2x3, LIST(0, 2)), TT_INVALID_ARGUMENT,                                                          \
    "transpose: expected permuted dimensions in [0, 2), got [0, 2]")                                                   \
  X(tt_broadcast_in_dim(b, v.f3, DIMS(4), LIST(0)), TT_INVALID_ARGUMENT,                                               \
    "broadcast_in_dim: expected equal sizes or 1")                                                                     \
  X(tt_broadcast_in_dim(b, v.f2x3, DIMS(3), LIST(0, 1)), TT_INVALID_ARGUMENT, "at least 2 result dimensions, got 1")   \
  X(tt_slice(b, v.f4, LIST(2), LIST(5), LIST(1)), TT_INVALID_ARGUMENT,                                                 \
    "limit <= 4 and a stride of 1 or more in dimension 0, got 2:5:1")                                                  \
  X(tt_slice(b, v.f4, LIST(0), LIST(4), LIST(0)), TT_INVALID_ARGUMENT, "got 0:4:0")                                    \
  X(tt_slice_dim(b, v.bound, 0, 0, 1, 1), TT_UNIMPLEMENTED,                                                            \
    "slice: expected all of bounded dimension 0 of f32[<=2,3]")                                                        \
  X(tt_pad(b, v.f4, v.i0, LIST(0), LIST(0), LIST(0)), TT_INVALID_ARGUMENT,                                             \
    "pad: expected a padding value of type f32[], got i32[]")                                                          \
  X(tt_pad(b, v.f4, v.scalar, LIST(-9), LIST(0), LIST(0)), TT_INVALID_ARGUMENT,                                        \
    "pad: expected a size of 0 or more in dimension 0")                                                                \
  X(tt_pad(b, v.f4, v.scalar, LIST(INT64_MAX), LIST(1), LIST(0)), TT_INVALID_ARGUMENT,                                 \
    "pad: expected a size of 0 or more")                                                                               \
  X(tt_concat(b, 2, (const tt_val[]){v.f2x3, v.f3x2}, 0), TT_INVALID_ARGUMENT,                                         \
    "concatenate: expected equal types but for dimension 0, got f32[2,3] and f32[3,2]")                                \
  X(tt_concat(b, 0, NULL, 0), TT_INVALID_ARGUMENT, "concatenate: expected one operand or more, got 0")                 \
  X(tt_reverse(b, v.f4, DIMS(1)), TT_INVALID_ARGUMENT, "reverse: expected reversed dimensions in [0, 1), got [1]")     \
  X(tt_iota(b, &(tt_type){.dtype = TT_BOOL, .rank = 1, .dims = {3}}, 0), TT_INVALID_ARGUMENT,                          \
    "iota: expected a number type of static sizes, got i1[3]")                                                         \
  X(tt_dynamic_slice(b, v.f4, &v.scalar, LIST(1)), TT_INVALID_ARGUMENT,                                                \
    "dynamic_slice: expected 0-d starts of one integer dtype")                                                         \
  X(tt_dynamic_slice(b, v.f4, &v.i0, LIST(5)), TT_INVALID_ARGUMENT,                                                    \
    "dynamic_slice: expected sizes within f32[4], got [5]")                                                            \
  X(tt_dynamic_update_slice(b, v.f3, v.f4, &v.i0), TT_INVALID_ARGUMENT,                                                \
    "dynamic_update_slice: expected an update that fits into f32[3], got f32[4]")                                      \
  X(tt_set_dimension_size(b, v.f4, v.scalar, 0), TT_INVALID_ARGUMENT,                                                  \
    "set_dimension_size: expected a size of type i32[], got f32[]")                                                    \
  X(tt_set_dimension_size(b, v.f4, tt_const_i(b, TT_I32, 3), 0), TT_INVALID_ARGUMENT,                                  \
    "expected a run-time size or 4, got the constant 3")                                                               \
  X(tt_dot_general(b, v.f3, v.f4, 0, NULL, NULL, 1, LIST(0), LIST(0), TT_DTYPE_INVALID), TT_INVALID_ARGUMENT,          \
    "dot_general: expected equal contracting sizes, got 3 and 4")                                                      \
  X(tt_dot_general(b, v.f2x3, v.f3x2, 1, LIST(0), LIST(0), 0, NULL, NULL, TT_DTYPE_INVALID), TT_INVALID_ARGUMENT,      \
    "dot_general: expected equal batch sizes, got 2 and 3")                                                            \
  X(tt_dot_general(b, v.f2x3, v.f2x3, 1, LIST(0), LIST(0), 1, LIST(0), LIST(1), TT_DTYPE_INVALID),                     \
    TT_INVALID_ARGUMENT, "dot_general: expected distinct lhs dimensions, got [0, 0]")                                  \
  X(tt_dot_general(b, v.f3, v.i3, 0, NULL, NULL, 1, LIST(0), LIST(0), TT_DTYPE_INVALID), TT_INVALID_ARGUMENT,          \
    "dot_general: expected operands of one dtype")                                                                     \
  X(tt_dot_general(b, v.f3, v.f3, 0, NULL, NULL, 1, LIST(0), LIST(0), TT_I32), TT_INVALID_ARGUMENT,                    \
    "dot_general: expected a result dtype of the operands' kind")                                                      \
  X(tt_matmul(b, v.f3, v.f3), TT_INVALID_ARGUMENT, "matmul: expected matrices of equal rank, got f32[3] and f32[3]")   \
  X(bad_conv(b, v.f3, v.f3, 1, 1), TT_INVALID_ARGUMENT, "convolution: expected operands with 3 dimensions")            \
  X(bad_conv(b, tt_unsqueeze(b, v.f2x3, 0), tt_unsqueeze(b, v.f2x3, 1), 1, 1), TT_INVALID_ARGUMENT,                    \
    "expected 2 input features in 1 groups to match the kernel's 1")                                                   \
  X(bad_conv(b, tt_unsqueeze(b, v.f2x3, 0), tt_unsqueeze(b, v.f2x3, 0), 1, 0), TT_INVALID_ARGUMENT,                    \
    "convolution: expected strides and dilations of 1 or more, got 0")                                                 \
  X(tt_reduce(b, TT_REDUCE_SUM, v.f4, DIMS(1)), TT_INVALID_ARGUMENT,                                                   \
    "reduce: expected reduced dimensions in [0, 1), got [1]")                                                          \
  X(tt_reduce(b, TT_REDUCE_MAX, v.c3, DIMS(0)), TT_INVALID_ARGUMENT, "limit: expected a real dtype")                   \
  X(tt_reduce_many(b, 1, &v.f4, &v.i0, DIMS(0), float_result, NULL, &out), TT_INVALID_ARGUMENT,                        \
    "reduce: expected an initial value of type f32[], got i32[]")                                                      \
  X(tt_reduce_many(b, 1, &v.f4, &v.scalar, DIMS(0), int_result, NULL, &out), TT_INVALID_ARGUMENT,                      \
    "reduce: expected the region to give f32[], got i32[]")                                                            \
  X(bad_window(b, &v, 0, 1), TT_INVALID_ARGUMENT,                                                                      \
    "select_and_scatter: expected window sizes, strides and dilations of 1 or more in dimension 0, got 0")             \
  X(bad_window(b, &v, 1, 2), TT_INVALID_ARGUMENT, "select_and_scatter: expected no dilation")                          \
  X(bad_window(b, &v, 1, 1), TT_INVALID_ARGUMENT, "select_and_scatter: expected a source of type f32[4], got f32[3]")  \
  X(tt_sort(b, 1, &v.f4, 1, true, float_result, NULL, &out), TT_INVALID_ARGUMENT,                                      \
    "sort: expected sorted dimensions in [0, 1)")                                                                      \
  X(tt_sort(b, 1, &v.f4, 0, true, float_result, NULL, &out), TT_INVALID_ARGUMENT,                                      \
    "sort: expected the region to give i1[], got f32[]")                                                               \
  X(tt_top_k(b, v.f4, 5, &out, &out), TT_INVALID_ARGUMENT, "top_k: expected k within the last size of f32[4], got 5")  \
  X(tt_gather(b, v.f2x3, v.f3, &rows_of, LIST(1, 3)), TT_INVALID_ARGUMENT,                                             \
    "gather: expected integer indices, got f32[3]")                                                                    \
  X(tt_gather(b, v.f2x3, v.i3, &rows_of, LIST(2, 3)), TT_INVALID_ARGUMENT,                                             \
    "gather: expected slice sizes within f32[2,3] and of 1 where collapsed, got [2, 3]")                               \
  X(tt_gather(b, v.f4, v.i3, &rows_of, LIST(1)), TT_INVALID_ARGUMENT, "gather: expected 0 offset dimensions, got 1")   \
  X(tt_scatter(b, v.f2x3, v.i3, v.f3, &rows_of, float_result, NULL), TT_INVALID_ARGUMENT,                              \
    "scatter: expected updates that match f32[2,3] by indices i32[3], got f32[3]")                                     \
  X(tt_while(b, 1, &v.i0, float_result, int_result, NULL, &out), TT_INVALID_ARGUMENT,                                  \
    "while: expected the condition to give i1[] as result 0, got f32[]")                                               \
  X(tt_if(b, v.b3, 1, float_result, float_result, NULL, &out), TT_INVALID_ARGUMENT,                                    \
    "if: expected a 0-d bool predicate, got i1[3]")                                                                    \
  X(tt_composite(b, "bare", NULL, 1, &v.f4, float_result, NULL, 1, &out), TT_INVALID_ARGUMENT,                         \
    "composite: expected a name with a namespace, got 'bare'")                                                         \
  X(tt_rng_bits(b, v.f3, tt_type_of(b, v.f3), &out, &out), TT_INVALID_ARGUMENT,                                        \
    "rng_bit_generator: expected a state of type ui64[3], got f32[3]")                                                 \
  X(tt_fft(b, TT_FFT, v.f3, 1, LIST(3)), TT_INVALID_ARGUMENT, "fft: expected a complex operand, got f32[3]")           \
  X(tt_fft(b, TT_RFFT, v.f3, 1, LIST(4)), TT_INVALID_ARGUMENT, "fft: expected size 4 for length 4, got 3")             \
  X(tt_cholesky(b, v.f2x3, true), TT_INVALID_ARGUMENT,                                                                 \
    "cholesky: expected square matrices of a float or complex dtype, got f32[2,3]")                                    \
  X(tt_triangular_solve(b, v.f2x2, v.f3x2, true, true, false, 0), TT_INVALID_ARGUMENT,                                 \
    "triangular_solve: expected a right-hand side that fits f32[2,2], got f32[3,2]")                                   \
  X(tt_triangular_solve(b, v.f2x2, v.f2x2, true, true, false, 3), TT_INVALID_ARGUMENT,                                 \
    "expected transpose 0, 1 or 2, got 3")                                                                             \
  X(tt_add(b, v.f2x3, v.f4), TT_INVALID_ARGUMENT, "broadcast: expected sizes that broadcast, got f32[2,3] and f32[4]") \
  X(tt_expand(b, v.f3, DIMS(3, 4)), TT_INVALID_ARGUMENT,                                                               \
    "expand: expected sizes that f32[3] broadcasts to, got [3, 4]")                                                    \
  X(tt_unsqueeze(b, v.f3, 2), TT_OUT_OF_RANGE, "unsqueeze: expected a dimension in [-2, 2), got 2")                    \
  X(tt_squeeze(b, v.f3, 0), TT_INVALID_ARGUMENT, "squeeze: expected size 1 in dimension 0, got f32[3]")                \
  X(tt_cumulative(b, TT_REDUCE_SUM, v.bound, 0), TT_UNIMPLEMENTED, "cumulative: expected static sizes")

TEST(hlo, broken_rules_are_told_in_words) {
  tt_builder* b = tt_builder_create();
  values v = make_values(b);
  tt_val out = TT_POISON;
#define CHECK_RULE(statement, code, text)                  \
  (void)(statement);                                       \
  EXPECT_STATUS(tt_builder_take_error(b), (code), (text)); \
  EXPECT_TRUE(!tt_builder_failed(b));
  BROKEN_RULES(CHECK_RULE)
  (void)out;
  tt_builder_destroy(b);
}

static const char* type_text(tt_builder* b, tt_val v) {
  static char text[200];
  return tt_type_describe(tt_type_of(b, v), text, sizeof text);
}

TEST(hlo, result_types_follow_the_rules) {
  tt_builder* b = tt_builder_create();
  values v = make_values(b);
  EXPECT_STR(type_text(b, tt_unary(b, TT_ABS, v.c3)), "f32[3]");
  EXPECT_STR(type_text(b, tt_unary(b, TT_IS_FINITE, v.f3)), "i1[3]");
  EXPECT_STR(type_text(b, tt_binary(b, TT_COMPLEX, v.f3, v.f3)), "complex<f32>[3]");
  EXPECT_STR(type_text(b, tt_compare(b, TT_EQ, v.c3, v.c3)), "i1[3]");
  EXPECT_STR(type_text(b, tt_bitcast(b, v.f3, TT_U8)), "ui8[3,4]");
  EXPECT_STR(type_text(b, tt_pad(b, v.f3, v.scalar, LIST(1), LIST(-1), LIST(2))), "f32[7]");
  EXPECT_STR(type_text(b, tt_slice(b, v.f4, LIST(0), LIST(4), LIST(3))), "f32[2]");
  EXPECT_STR(type_text(b, tt_add(b, v.f3, tt_unsqueeze(b, v.f4, 1))), "f32[4,3]");
  EXPECT_STR(type_text(b, tt_reduce_keep(b, TT_REDUCE_SUM, v.f2x3, 0, NULL)), "f32[1,1]");
  EXPECT_STR(type_text(b, tt_gather(b, v.f2x3, v.i3, &rows_of, LIST(1, 2))), "f32[3,2]");
  EXPECT_STR(type_text(b, tt_fft(b, TT_RFFT, v.f4, 1, LIST(4))), "complex<f32>[3]");
  EXPECT_STR(type_text(b, tt_dot_general(b, v.f2x3, v.f2x3, 1, LIST(1), LIST(1), 0, NULL, NULL, TT_F64)), "f64[3,2,2]");
  EXPECT_OK(tt_builder_take_error(b));
  tt_builder_destroy(b);
}

TEST(hlo, bounds_travel_with_the_types) {
  tt_builder* b = tt_builder_create();
  values v = make_values(b);
  EXPECT_STR(type_text(b, v.bound), "f32[<=2,3]");
  EXPECT_STR(type_text(b, tt_unary(b, TT_EXP, v.bound)), "f32[<=2,3]");
  EXPECT_STR(type_text(b, tt_add(b, v.bound, v.f3)), "f32[<=2,3]");
  EXPECT_STR(type_text(b, tt_transpose(b, v.bound, LIST(1, 0))), "f32[3,<=2]");
  EXPECT_STR(type_text(b, tt_reshape(b, v.bound, DIMS(6))), "f32[<=6]");
  EXPECT_STR(type_text(b, tt_reshape(b, v.bound, DIMS(1, 2, 1, 3))), "f32[1,<=2,1,3]");
  EXPECT_STR(type_text(b, tt_reduce(b, TT_REDUCE_SUM, v.bound, DIMS(1))), "f32[<=2]");
  EXPECT_STR(type_text(b, tt_reduce(b, TT_REDUCE_SUM, v.bound, DIMS(0))), "f32[3]");
  EXPECT_STR(type_text(b, tt_matmul(b, v.bound, v.f3x2)), "f32[<=2,2]");
  EXPECT_STR(type_text(b, tt_concat(b, 2, (const tt_val[]){v.bound, v.bound}, 0)), "f32[<=4,3]");
  EXPECT_STR(type_text(b, tt_full_like(b, v.bound, 1)), "f32[<=2,3]");
  EXPECT_STR(type_text(b, tt_set_dimension_size(b, v.bound, tt_const_i(b, TT_I32, 2), 0)), "f32[2,3]");
  EXPECT_OK(tt_builder_take_error(b));
  tt_builder_destroy(b);
}
