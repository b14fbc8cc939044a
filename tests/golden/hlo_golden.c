// SPDX-License-Identifier: Apache-2.0
//
// Whole texts of the builder: one program for each form that the printer knows.
#include "golden/golden.h"

#define DIMS(...)                                                          \
  (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { \
    __VA_ARGS__                                                            \
  }

GOLDEN(hlo_softmax) {
  tt_val x = golden_f32(b, DIMS(2, 8));
  tt_val shifted = tt_sub(b, x, tt_max_keep(b, x, -1));
  tt_val e = tt_unary(b, TT_EXP, shifted);
  return tt_div(b, e, tt_sum_keep(b, e, -1));
}

GOLDEN(hlo_constants) {
  float data[24];
  for (int i = 0; i < 24; i++) {
    data[i] = (float)i / 3;
  }
  tt_type dense = tt_type_make(TT_F32, DIMS(4, 6)), listed = tt_type_make(TT_F32, DIMS(2, 3));
  tt_type complex = tt_type_make(TT_C64, 0, NULL);
  tt_val large = tt_convert(b, tt_const_bytes(b, &dense, data), TT_C64);
  tt_val small =
      tt_convert(b, tt_pad_dim(b, tt_pad_dim(b, tt_const_bytes(b, &listed, data), 0, 1, 1, -0.5), 1, 0, 3, 0), TT_C64);
  return tt_add(b, tt_add(b, large, small), tt_splat_f(b, &complex, 0.1, __builtin_inf()));
}

GOLDEN(hlo_attention) {
  tt_val q = golden_f32(b, DIMS(2, 4, 8)), k = golden_f32(b, DIMS(2, 5, 8)), v = golden_f32(b, DIMS(2, 5, 8));
  tt_val scores = tt_mul_f(b, tt_matmul(b, q, tt_swap_dims(b, k, 1, 2)), 0.35355339);
  return tt_matmul(b, tt_unary(b, TT_LOGISTIC, scores), v);
}

GOLDEN(hlo_convolution) {
  tt_conv conv = tt_conv_default(2);
  conv.stride[0] = conv.stride[1] = 2;
  conv.pad_low[0] = conv.pad_high[0] = 1;
  conv.feature_groups = 2;
  tt_val x = golden_f32(b, DIMS(1, 4, 8, 8)), weight = golden_f32(b, DIMS(6, 2, 3, 3));
  return tt_convolution(b, x, weight, &conv, TT_DTYPE_INVALID);
}

GOLDEN(hlo_argmax) {
  tt_val values = TT_POISON;
  return tt_arg_reduce(b, true, golden_f32(b, DIMS(3, 4)), 1, &values);
}

static void add(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  results[0] = tt_add(b, args[0], args[1]);
}

GOLDEN(hlo_index_add) {
  tt_gather_dims dims = {.num_offset = 1, .num_collapsed = 1, .num_start_map = 1, .offset = {1}, .index_vector_dim = 1};
  tt_val x = golden_f32(b, DIMS(5, 3)), updates = golden_f32(b, DIMS(2, 3));
  tt_type index = tt_type_make(TT_I64, DIMS(2, 1));
  tt_val indices = tt_param(b, &index);
  tt_val rows = tt_gather(b, x, indices, &dims, (int64_t[]){1, 3});
  return tt_scatter(b, x, indices, tt_mul(b, rows, updates), &dims, add, NULL);
}

static void below_ten(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  results[0] = tt_test_f(b, TT_LT, args[0], 10);
}

static void negate(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)args;
  results[0] = tt_neg(b, *(const tt_val*)ctx);
}

static void keep(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)b;
  (void)args;
  results[0] = *(const tt_val*)ctx;
}

static void step(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  tt_val chosen = TT_POISON;
  tt_if(b, tt_test_f(b, TT_GT, args[0], 5), 1, negate, keep, ctx, &chosen);
  results[0] = tt_add_f(b, args[0], 1);
  results[1] = tt_add(b, args[1], chosen);
}

GOLDEN(hlo_control_flow) {
  tt_val rise = tt_unary(b, TT_TANH, golden_f32(b, DIMS(2)));
  tt_val state[] = {tt_const_i(b, TT_I32, 0), tt_full_like(b, rise, 0)};
  tt_while(b, 2, state, below_ten, step, &rise, state);
  return state[1];
}

static void gelu(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  tt_val erf = tt_unary(b, TT_CHLO_ERF, tt_mul_f(b, args[0], 0.70710678118654752));
  results[0] = tt_mul(b, tt_mul_f(b, args[0], 0.5), tt_add_f(b, erf, 1));
}

GOLDEN(hlo_composite) {
  tt_val x = golden_f32(b, DIMS(4)), y = TT_POISON;
  tt_composite(b, "nn.gelu", "{approximate = \"none\"}", 1, &x, gelu, NULL, 1, &y);
  return y;
}

GOLDEN(hlo_bounded_and_aliased) {
  tt_val x = golden_f32(b, DIMS(128, 3));
  tt_type size_type = tt_type_scalar(TT_I32);
  tt_val rows = tt_set_dimension_size(b, x, tt_param(b, &size_type), 0);
  tt_val scaled = tt_mul_f(b, rows, 2);
  tt_builder_alias(b, 0, 0);
  return tt_set_dimension_size(b, scaled, tt_const_i(b, TT_I32, 128), 0);
}

GOLDEN(hlo_error) {
  tt_val x = golden_f32(b, DIMS(3)), y = golden_f32(b, DIMS(4));
  return tt_add(b, x, y);
}
