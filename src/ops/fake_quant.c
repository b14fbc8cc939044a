// SPDX-License-Identifier: Apache-2.0
//
// Fake quantisation: values rounded to the grid of an integer type and back, the gradients that train scales and zero points,
// and the observer that finds them. Computed in f32, f64 for f64.
#include "ops/op.h"

typedef struct grid {
  tt_val scale, zero, low, high;  // broadcast against x
} grid;

static tt_val at_most(tt_builder* b, tt_val x, tt_val low, tt_val high) {
  return tt_min(b, tt_max(b, x, low), high);
}
static tt_val nearest(tt_builder* b, tt_val x) {
  return tt_unary(b, TT_ROUND_EVEN, x);
}
// In f32, as PyTorch has it for every dtype.
static tt_val inverse(tt_builder* b, tt_val scale) {
  tt_val narrow = tt_convert(b, scale, TT_F32);
  return tt_convert(b, tt_div(b, tt_like_f(b, narrow, 1), narrow), tt_dtype_of(b, scale));
}
static void set_range(tt_lower* L, grid* g, int quant_min, tt_dtype dtype) {
  g->low = tt_arg_scalar(L, quant_min, dtype);
  g->high = tt_arg_scalar(L, quant_min + 1, dtype);
}

// A vector over dimension `axis` of x.
static tt_val along(tt_builder* b, tt_val v, tt_val x, int axis) {
  int64_t dims[TT_MAX_RANK];
  for (int d = 0; d < tt_rank_of(b, x); ++d) {
    dims[d] = d == axis ? tt_dim_of(b, v, 0) : 1;
  }
  return tt_reshape(b, v, tt_rank_of(b, x), dims);
}
// A tensor of one element, as 0-d.
static tt_val single(tt_lower* L, int i, tt_dtype dtype) {
  tt_val v = tt_arg_as(L, i, dtype);
  return tt_reshape(tt_lower_builder(L), v, 0, NULL);
}

// x on the grid's integers, before the limits.
static tt_val place(tt_builder* b, tt_val x, const grid* g) {
  return tt_add(b, nearest(b, tt_mul(b, x, inverse(b, g->scale))), g->zero);
}
static tt_val inside(tt_builder* b, tt_val q, const grid* g) {
  return tt_and(b, tt_test(b, TT_GE, q, g->low), tt_test(b, TT_LE, q, g->high));
}
// Back from the integers. What is no number becomes the lowest, as where floats are cast to integers.
static tt_val value_at(tt_builder* b, tt_val q, const grid* g) {
  tt_val kept = tt_where(b, tt_is_nan(b, q), g->low, at_most(b, q, g->low, g->high));
  return tt_mul(b, tt_sub(b, kept, g->zero), g->scale);
}
static void fake(tt_lower* L, tt_builder* b, tt_val x, const grid* g) {
  tt_val q = place(b, x, g);
  tt_out(L, 0, value_at(b, q, g));
  if (tt_out_count(L) > 1) {
    tt_out(L, 1, inside(b, q, g));
  }
}

TT_OP(fake_quantize_per_tensor,
      "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int "
      "quant_max) -> (Tensor output, Tensor mask)") {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 0)->dtype);
  grid g = {.scale = tt_convert(b, tt_arg_scalar(L, 1, TT_F32), dtype), .zero = tt_arg_scalar(L, 2, dtype)};
  set_range(L, &g, 3, dtype);
  fake(L, b, tt_arg_as(L, 0, dtype), &g);
}

TT_OP(fake_quantize_tensor_qparams,
      "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, "
      "Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)") {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 0)->dtype);
  tt_val x = tt_arg_as(L, 0, dtype);
  grid g = {.scale = single(L, 1, dtype), .zero = single(L, 2, dtype)};
  set_range(L, &g, 4, dtype);
  tt_val on = single(L, 3, TT_BOOL);
  tt_val q = place(b, x, &g);
  tt_out(L, 0, tt_where(b, on, value_at(b, q, &g), x));
  tt_out(L, 1, tt_or(b, inside(b, q, &g), tt_not(b, on)));
}

static grid per_channel(tt_lower* L, tt_builder* b, tt_val x, int axis_arg) {
  int axis = tt_wrap_dim(tt_arg_int(L, axis_arg), tt_rank_of(b, x));
  tt_dtype dtype = tt_dtype_of(b, x);
  grid g = {.scale = along(b, tt_arg_as(L, axis_arg - 2, dtype), x, axis),
            .zero = along(b, tt_arg_as(L, axis_arg - 1, dtype), x, axis)};
  set_range(L, &g, axis_arg + 1, dtype);
  return g;
}

TT_OP(fake_quantize_per_channel,
      "fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int "
      "quant_min, int quant_max) -> (Tensor output, Tensor mask)") {
  tt_val x = tt_arg_as(L, 0, tt_dtype_compute(tt_arg_info(L, 0)->dtype));
  grid g = per_channel(L, b, x, 3);
  if (tt_dtype_is_float(tt_arg_info(L, 2)->dtype)) {
    // A zero point that is no integer is added before rounding.
    tt_val q = nearest(b, tt_add(b, tt_mul(b, x, inverse(b, g.scale)), g.zero));
    tt_out(L, 0, value_at(b, q, &g));
    tt_out(L, 1, inside(b, q, &g));
    return;
  }
  fake(L, b, x, &g);
}

// ---- scales and zero points that are trained ------------------------------------------------------------------------------

static void round_zero(tt_builder* b, grid* g) {
  g->zero = nearest(b, at_most(b, g->zero, g->low, g->high));
}

TT_OP(fake_quantize_learnable,
      "_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int "
      "quant_max, float grad_factor=1.0) -> Tensor") {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 0)->dtype);
  grid g = {.scale = single(L, 1, dtype), .zero = single(L, 2, dtype)};
  set_range(L, &g, 3, dtype);
  round_zero(b, &g);
  fake(L, b, tt_arg_as(L, 0, dtype), &g);
}
TT_OP(fake_quantize_learnable_channel,
      "_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int "
      "quant_min, int quant_max, float grad_factor=1.0) -> Tensor") {
  tt_val x = tt_arg_as(L, 0, tt_dtype_compute(tt_arg_info(L, 0)->dtype));
  grid g = per_channel(L, b, x, 3);
  round_zero(b, &g);
  fake(L, b, x, &g);
}

// Gradients by x, the scale and the zero point; the last two are summed over all dimensions but `axis` (-1: all).
static void learnable_backward(tt_lower* L, tt_builder* b, tt_val grad, tt_val x, const grid* g, tt_val factor,
                               int axis) {
  tt_val q = place(b, x, g);
  tt_val in = inside(b, q, g);
  tt_val under = tt_test(b, TT_LT, q, g->low);
  tt_val zero = tt_like_i(b, grad, 0);
  tt_val edge = tt_sub(b, tt_where(b, under, g->low, g->high), g->zero);
  tt_val slope = tt_where(b, in, tt_div(b, tt_sub(b, value_at(b, q, g), x), g->scale), edge);
  tt_val by_scale = tt_mul(b, tt_mul(b, grad, slope), factor);
  tt_val by_zero = tt_where(b, in, zero, tt_mul(b, tt_mul(b, grad, tt_neg(b, g->scale)), factor));
  tt_out(L, 0, tt_where(b, in, grad, zero));
  int64_t dims[TT_MAX_RANK];
  int count = 0;
  for (int d = 0; d < tt_rank_of(b, x); ++d) {
    if (d != axis) {
      dims[count++] = d;
    }
  }
  const tt_type* out = tt_out_type(L, 1);
  tt_out(L, 1, tt_reshape(b, tt_reduce(b, TT_REDUCE_SUM, by_scale, count, dims), out->rank, out->dims));
  tt_out(L, 2, tt_reshape(b, tt_reduce(b, TT_REDUCE_SUM, by_zero, count, dims), out->rank, out->dims));
}

TT_OP(fake_quantize_learnable_backward,
      "_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, "
      "int quant_min, int quant_max, float grad_factor=1.0) -> (Tensor, Tensor, Tensor)") {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 1)->dtype);
  grid g = {.scale = single(L, 2, dtype), .zero = single(L, 3, dtype)};
  set_range(L, &g, 4, dtype);
  round_zero(b, &g);
  learnable_backward(L, b, tt_arg_as(L, 0, dtype), tt_arg_as(L, 1, dtype), &g, tt_arg_scalar(L, 6, dtype), -1);
}
TT_OP(fake_quantize_learnable_channel_backward,
      "_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor "
      "zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.0) -> (Tensor, Tensor, Tensor)") {
  tt_val x = tt_arg_as(L, 1, tt_dtype_compute(tt_arg_info(L, 1)->dtype));
  tt_dtype dtype = tt_dtype_of(b, x);
  grid g = per_channel(L, b, x, 4);
  round_zero(b, &g);
  learnable_backward(L, b, tt_arg_as(L, 0, dtype), x, &g, tt_arg_scalar(L, 7, dtype),
                     tt_wrap_dim(tt_arg_int(L, 4), tt_rank_of(b, x)));
}

// ---- the observer -----------------------------------------------------------------------------------------------------------

// Scale and zero point of the range [least, most], widened to hold 0 (Jacob et al. 2018: 0 is exact, the end that errs less decides).
static void choose(tt_builder* b, tt_val least, tt_val most, tt_val low, tt_val high, bool symmetric, tt_val* scale,
                   tt_val* zero_point) {
  const double small = 6.1e-5;
  tt_val none = tt_like_i(b, least, 0);
  least = tt_min(b, least, none);
  most = tt_max(b, most, none);
  tt_val both = tt_and(b, tt_test(b, TT_LT, least, none), tt_test(b, TT_GT, most, none));
  tt_val span = tt_sub(b, high, low);
  if (symmetric) {
    tt_val half = tt_unary(b, TT_FLOOR, tt_mul_f(b, span, 0.5));
    tt_val below = tt_neg(b, tt_add_f(b, half, 1));
    tt_val step = tt_max(b, tt_div(b, least, below), tt_div(b, most, half));
    least = tt_where(b, both, tt_mul(b, step, below), least);
    most = tt_where(b, both, tt_mul(b, step, half), most);
  }
  tt_val s = tt_div(b, tt_sub(b, most, least), span);
  tt_val usable = tt_and(b, tt_test(b, TT_NE, s, none), tt_unary(b, TT_IS_FINITE, inverse(b, s)));
  s = tt_where(b, usable, s, tt_like_f(b, s, 0.1));
  tt_val tiny = tt_test_f(b, TT_LT, s, small);
  tt_val grow = tt_where(b, tiny, tt_div(b, tt_like_f(b, s, small), s), tt_like_f(b, s, 1));
  tt_val reach = tt_mul_f(b, span, small);
  tt_val no_least = tt_test(b, TT_EQ, least, none), no_most = tt_test(b, TT_EQ, most, none);
  tt_val least2 = tt_where(b, tt_and(b, no_most, tiny), tt_neg(b, reach), tt_mul(b, least, grow));
  tt_val most2 = tt_where(b, tt_and(b, no_least, tiny), reach, tt_mul(b, most, grow));
  least = tt_where(b, no_least, least, least2);
  most = most2;
  s = tt_max(b, s, tt_like_f(b, s, small));
  tt_val from_least = tt_sub(b, low, tt_div(b, least, s));
  tt_val from_most = tt_sub(b, high, tt_div(b, most, s));
  tt_val error_least = tt_add(b, tt_unary(b, TT_ABS, low), tt_unary(b, TT_ABS, tt_div(b, least, s)));
  tt_val error_most = tt_add(b, tt_unary(b, TT_ABS, high), tt_unary(b, TT_ABS, tt_div(b, most, s)));
  tt_val zero = tt_where(b, tt_test(b, TT_LT, error_least, error_most), from_least, from_most);
  if (symmetric) {
    zero = tt_where(b, both, tt_mul_f(b, tt_add(b, low, high), 0.5), zero);
  }
  *scale = s;
  *zero_point = nearest(b, at_most(b, zero, low, high));
}

TT_OP(moving_average_fake_quantize,
      "_fused_moving_avg_obs_fq_helper(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) running_min, "
      "Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int quant_min, int "
      "quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> (Tensor output, Tensor "
      "mask)") {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 0)->dtype);
  tt_val x = tt_arg_as(L, 0, dtype);
  bool rows = tt_arg_bool(L, 11);
  int axis = rows ? tt_wrap_dim(tt_arg_int(L, 10), tt_rank_of(b, x)) : -1;
  tt_val observe = single(L, 1, TT_BOOL);
  grid g = {0};
  set_range(L, &g, 8, dtype);
  int64_t dims[TT_MAX_RANK];
  int count = 0;
  for (int d = 0; d < tt_rank_of(b, x); ++d) {
    if (d != axis) {
      dims[count++] = d;
    }
  }
  int64_t channels = rows ? tt_dim_of(b, x, axis) : 1;
  tt_val kept[4];
  for (int k = 0; k < 2; ++k) {
    tt_val seen = tt_reshape(b, tt_reduce(b, k == 0 ? TT_REDUCE_MIN : TT_REDUCE_MAX, x, count, dims), 1, &channels);
    tt_val old = tt_reshape(b, tt_arg_as(L, 3 + k, dtype), 1, &channels);
    tt_val moved = tt_add(b, old, tt_mul(b, tt_arg_scalar(L, 7, dtype), tt_sub(b, seen, old)));
    kept[k] = tt_where(b, observe, tt_where(b, tt_is_inf(b, old), seen, moved), old);
  }
  tt_val scale, zero;
  choose(b, kept[0], kept[1], g.low, g.high, tt_arg_bool(L, 12), &scale, &zero);
  tt_val on = single(L, 2, TT_BOOL);
  kept[2] = tt_where(b, on, scale, tt_reshape(b, tt_arg_as(L, 5, dtype), 1, &channels));
  kept[3] = tt_where(b, on, zero, tt_reshape(b, tt_arg_as(L, 6, dtype), 1, &channels));
  for (int k = 0; k < 4; ++k) {
    const tt_tensor* info = tt_arg_info(L, 3 + k);
    tt_write(L, 3 + k, tt_reshape(b, kept[k], info->rank, info->sizes));
  }
  g.scale = rows ? along(b, kept[2], x, axis) : tt_reshape(b, kept[2], 0, NULL);
  g.zero = rows ? along(b, kept[3], x, axis) : tt_reshape(b, kept[3], 0, NULL);
  tt_val q = place(b, x, &g);
  tt_out(L, 0, tt_where(b, on, value_at(b, q, &g), x));
  tt_out(L, 1, tt_or(b, inside(b, q, &g), tt_not(b, on)));
}
