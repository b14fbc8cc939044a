// SPDX-License-Identifier: Apache-2.0
//
// Softmax, its logarithm, their gradients, and the forms with masks.
#include <math.h>

#include "ops/reduce.h"

// The input in the dtype to compute in, at least 1-d, and the dimension.
static tt_val operand(tt_lower* L, tt_builder* b, int i, int dim_arg, int* out_dim) {
  tt_val x = tt_arg_1d(L, i, tt_dtype_compute(tt_arg_info(L, i)->dtype));
  *out_dim = tt_wrap_dim(tt_arg_int_or(L, dim_arg, -1), tt_rank_of(b, x));
  return x;
}

static tt_val softmax(tt_builder* b, tt_val x, int dim) {
  tt_val powers = tt_unary(b, TT_EXP, tt_sub(b, x, tt_max_keep(b, x, dim)));
  return tt_div(b, powers, tt_sum_keep(b, powers, dim));
}

TT_OP(softmax, "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor") {
  int dim;
  tt_val x = operand(L, b, 0, 1, &dim);
  tt_out_shaped(L, 0, softmax(b, x, dim));
}

TT_OP(log_softmax, "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor") {
  int dim;
  tt_val x = operand(L, b, 0, 1, &dim);
  tt_val shifted = tt_sub(b, x, tt_max_keep(b, x, dim));
  tt_val sum = tt_sum_keep(b, tt_unary(b, TT_EXP, shifted), dim);
  tt_out_shaped(L, 0, tt_sub(b, shifted, tt_unary(b, TT_LOG, sum)));
}

static tt_val softmax_backward(tt_builder* b, tt_val grad, tt_val y, int dim) {
  tt_val weighted = tt_mul(b, grad, y);
  return tt_sub(b, weighted, tt_mul(b, y, tt_sum_keep(b, weighted, dim)));
}

TT_OP(softmax_backward,
      "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor") {
  int dim;
  tt_val grad = operand(L, b, 0, 2, &dim);
  tt_val y = tt_arg_1d(L, 1, tt_dtype_of(b, grad));
  tt_out_shaped(L, 0, softmax_backward(b, grad, y, dim));
}

TT_OP(log_softmax_backward,
      "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor") {
  int dim;
  tt_val grad = operand(L, b, 0, 2, &dim);
  tt_val y = tt_arg_1d(L, 1, tt_dtype_of(b, grad));
  tt_out_shaped(L, 0, tt_sub(b, grad, tt_mul(b, tt_unary(b, TT_EXP, y), tt_sum_keep(b, grad, dim))));
}

// ---- masks ----------------------------------------------------------------------------------------------------------------

// Softmax; a row of -inf alone gives zeros instead of NaN.
TT_OP(safe_softmax, "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor") {
  tt_dtype dtype = tt_dtype_compute(tt_out_type(L, 0)->dtype);
  tt_val x = tt_arg_1d(L, 0, dtype);
  int dim = tt_wrap_dim(tt_arg_int(L, 1), tt_rank_of(b, x));
  tt_val dead = tt_test_f(b, TT_EQ, tt_max_keep(b, x, dim), -(double)INFINITY);
  tt_val y = softmax(b, x, dim);
  tt_out_shaped(L, 0, tt_where(b, tt_expand_like(b, dead, y), tt_full_like(b, y, 0), y));
}

// The mask (true: left out) in the sizes of x. Type 0 is [L, L], type 1 [batch, L], type 2 as x.
static tt_val full_mask(tt_lower* L, tt_builder* b, int mask_arg, int64_t type, tt_val x) {
  tt_val mask = tt_arg_as(L, mask_arg, TT_BOOL);
  const tt_type* to = tt_type_of(b, x);
  if (type == 1 && to->rank > 2 && tt_rank_of(b, mask) == 2) {
    int64_t ends[2] = {0, to->rank - 1};
    return tt_broadcast_in_dim(b, mask, to->rank, to->dims, ends);
  }
  if (tt_rank_of(b, mask) == 0) {
    mask = tt_flatten(b, mask);
  }
  return tt_expand_like(b, mask, x);
}

TT_OP(masked_softmax, "_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor") {
  int dim;
  tt_val x = operand(L, b, 0, 2, &dim);
  tt_val mask = full_mask(L, b, 1, tt_arg_int_or(L, 3, 2), x);
  tt_out_shaped(L, 0, softmax(b, tt_where(b, mask, tt_full_like(b, x, -(double)INFINITY), x), dim));
}

TT_OP(masked_softmax_backward,
      "_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor") {
  int dim;
  tt_val grad = operand(L, b, 0, 3, &dim);
  tt_val y = tt_arg_1d(L, 1, tt_dtype_of(b, grad));
  tt_val zero = tt_full_like(b, y, 0);
  tt_val mask = full_mask(L, b, 2, 2, y);
  y = tt_where(b, mask, zero, y);
  tt_out_shaped(L, 0, tt_where(b, mask, zero, softmax_backward(b, grad, y, dim)));
}
