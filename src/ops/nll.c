// SPDX-License-Identifier: Apache-2.0
//
// Negative log likelihood, the second half of cross entropy: picks the target class's log probability of each place.
#include "ops/reduce.h"

typedef struct nll {
  tt_val x;          // [N, C, ...]
  tt_val is_target;  // [N, C, ...]: the target's class, unless ignored
  tt_val weight;     // [N, 1, ...]: the class's weight, 0 where ignored
} nll;

// Compares classes with the target rather than gathering: the sum over classes then fuses with what made the log probabilities.
static nll nll_operands(tt_lower* L, tt_builder* b, int x_arg, int target_arg, int weight_arg, int ignore_arg) {
  nll n;
  n.x = tt_arg_as(L, x_arg, tt_dtype_compute(tt_arg_info(L, x_arg)->dtype));
  if (tt_rank_of(b, n.x) == 1) {
    n.x = tt_unsqueeze(b, n.x, 0);
  }
  tt_type column = *tt_type_of(b, n.x);
  int64_t classes = column.dims[1];
  column.dims[1] = 1;
  tt_val target = tt_reshape(b, tt_arg_as(L, target_arg, TT_I64), column.rank, column.dims);
  tt_val ignored = tt_test(b, TT_EQ, target, tt_const_i(b, TT_I64, tt_arg_int(L, ignore_arg)));
  tt_val safe = tt_check_index(L, tt_where(b, ignored, tt_full_like(b, target, 0), target), classes, false);
  tt_val class = tt_iota_like(b, n.x, TT_I32, 1);
  tt_val same = tt_test(b, TT_EQ, class, tt_convert(b, safe, TT_I32));
  n.is_target = tt_and(b, same, tt_not(b, ignored));
  tt_dtype dtype = tt_dtype_of(b, n.x);
  if (!tt_arg_has(L, weight_arg)) {
    n.weight = tt_convert(b, tt_not(b, ignored), dtype);
    return n;
  }
  int64_t along = 1;
  tt_val weights = tt_arg_as(L, weight_arg, dtype);
  weights = tt_broadcast_in_dim(b, weights, tt_rank_of(b, n.x), tt_type_of(b, n.x)->dims, &along);
  n.weight = tt_sum_keep(b, tt_where(b, n.is_target, weights, tt_full_like(b, n.x, 0)), 1);
  return n;
}

static tt_val total(tt_builder* b, tt_val x) {
  int64_t dim = 0;
  return tt_reduce(b, TT_REDUCE_SUM, tt_flatten(b, x), 1, &dim);
}

static void nll_forward(tt_lower* L, tt_builder* b) {
  nll n = nll_operands(L, b, 0, 1, 2, 4);
  int64_t reduction = tt_arg_int(L, 3);
  tt_val picked = tt_sum_keep(b, tt_where(b, n.is_target, n.x, tt_full_like(b, n.x, 0)), 1);
  tt_val loss = tt_neg(b, tt_mul(b, picked, n.weight));
  tt_val weight = total(b, n.weight);
  if (reduction == 0) {
    tt_out_shaped(L, 0, loss);
    tt_out(L, 1, tt_full_like(b, weight, 0));
    return;
  }
  tt_val sum = total(b, loss);
  tt_out(L, 0, reduction == 1 ? tt_div(b, sum, weight) : sum);
  tt_out(L, 1, weight);
}

static void nll_backward(tt_lower* L, tt_builder* b) {
  nll n = nll_operands(L, b, 1, 2, 3, 5);
  int64_t reduction = tt_arg_int(L, 4);
  tt_dtype dtype = tt_dtype_of(b, n.x);
  tt_val grad = tt_arg_as(L, 0, dtype);
  if (reduction == 0) {
    grad = tt_reshape(b, grad, tt_rank_of(b, n.weight), tt_type_of(b, n.weight)->dims);
  } else if (reduction == 1) {
    grad = tt_div(b, grad, tt_arg_as(L, 6, dtype));
  }
  tt_val slope = tt_expand_like(b, tt_neg(b, tt_mul(b, n.weight, grad)), n.x);
  tt_out_shaped(L, 0, tt_where(b, n.is_target, slope, tt_full_like(b, n.x, 0)));
}

TT_OP(nll_loss_forward,
      "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> "
      "(Tensor output, Tensor total_weight)") {
  nll_forward(L, b);
}
TT_OP(nll_loss_backward,
      "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, "
      "SymInt ignore_index, Tensor total_weight) -> Tensor") {
  nll_backward(L, b);
}
TT_OP(nll_loss2d_forward,
      "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> "
      "(Tensor output, Tensor total_weight)") {
  nll_forward(L, b);
}
TT_OP(nll_loss2d_backward,
      "nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, "
      "SymInt ignore_index, Tensor total_weight) -> Tensor") {
  nll_backward(L, b);
}
