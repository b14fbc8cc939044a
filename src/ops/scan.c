// SPDX-License-Identifier: Apache-2.0
//
// Running sums, products, extremes and log-sum-exps along a dimension.
#include <math.h>

#include "ops/reduce.h"

static void running(tt_lower* L, tt_builder* b, tt_reduce_kind kind) {
  tt_dtype dtype = tt_dtype_compute(tt_out_type(L, 0)->dtype);
  tt_val x = tt_arg_1d(L, 0, dtype);
  tt_out_shaped(L, 0, tt_cumulative(b, kind, x, tt_wrap_dim(tt_arg_int(L, 1), tt_rank_of(b, x))));
}
TT_OP(cumsum, "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor") {
  running(L, b, TT_REDUCE_SUM);
}
TT_OP(cumprod, "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor") {
  running(L, b, TT_REDUCE_PROD);
}

// Positions: where an element becomes the extreme (ties and NaN count) it gives its own, and the highest so far stays.
static void running_extreme(tt_lower* L, tt_builder* b, tt_reduce_kind kind) {
  tt_val x = tt_arg_1d(L, 0, TT_DTYPE_INVALID);
  int dim = tt_wrap_dim(tt_arg_int(L, 1), tt_rank_of(b, x));
  tt_val extreme = tt_cumulative(b, kind, x, dim);
  tt_val taken = tt_or(b, tt_test(b, TT_EQ, x, extreme), tt_is_nan(b, x));
  tt_val place = tt_iota_like(b, x, TT_I32, dim);
  tt_val candidates = tt_where(b, taken, place, tt_full_like(b, place, 0));
  tt_out_shaped(L, 0, extreme);
  tt_out_shaped(L, 1, tt_cumulative(b, TT_REDUCE_MAX, candidates, dim));
}
TT_OP(cummax, "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)") {
  running_extreme(L, b, TT_REDUCE_MAX);
}
TT_OP(cummin, "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)") {
  running_extreme(L, b, TT_REDUCE_MIN);
}

// log(exp(x) + exp(y)) without overflow.
static tt_val log_add_exp(tt_builder* b, tt_val x, tt_val y) {
  if (tt_dtype_is_complex(tt_dtype_of(b, x))) {
    tt_val x_real = tt_unary(b, TT_REAL, x);
    tt_val y_real = tt_unary(b, TT_REAL, y);
    tt_val x_higher = tt_test(b, TT_GE, x_real, y_real);
    tt_val high = tt_where(b, x_higher, x, y);
    tt_val low = tt_where(b, x_higher, y, x);
    tt_val ratio = tt_unary(b, TT_EXP, tt_sub(b, low, high));
    tt_val sum = tt_add(b, high, tt_unary(b, TT_LOG1P, ratio));
    tt_val nothing = tt_test_f(b, TT_EQ, tt_unary(b, TT_REAL, low), -(double)INFINITY);
    return tt_where(b, nothing, high, sum);
  }
  tt_val high = tt_max(b, x, y);
  tt_val low = tt_min(b, x, y);
  tt_val sum = tt_add(b, high, tt_unary(b, TT_LOG1P, tt_unary(b, TT_EXP, tt_sub(b, low, high))));
  // inf - inf is NaN; equal infinities are their own sum.
  return tt_where(b, tt_and(b, tt_is_inf(b, high), tt_test(b, TT_EQ, x, y)), high, sum);
}

// As tt_cumulative, by shifted steps.
TT_OP(logcumsumexp, "logcumsumexp(Tensor self, int dim) -> Tensor") {
  tt_val x = tt_arg_1d(L, 0, tt_dtype_compute(tt_arg_info(L, 0)->dtype));
  int dim = tt_wrap_dim(tt_arg_int(L, 1), tt_rank_of(b, x));
  for (int64_t step = 1; step < tt_dim_of(b, x, dim); step *= 2) {
    tt_val shifted = tt_pad_dim(b, x, dim, step, -step, -(double)INFINITY);
    x = log_add_exp(b, x, shifted);
  }
  tt_out_shaped(L, 0, x);
}
