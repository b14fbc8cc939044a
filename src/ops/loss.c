// SPDX-License-Identifier: Apache-2.0
//
// Losses and their gradients. Each pointwise loss is a function of the input and the target; reduction is none, mean or sum.
#include <math.h>

#include "ops/reduce.h"

enum { REDUCE_NONE = 0, REDUCE_MEAN = 1, REDUCE_SUM = 2 };

static tt_dtype dtype_of(const tt_lower* L, int i, int j) {
  int args[2] = {i, j};
  return tt_compute_dtype(L, TT_SAME, 2, args);
}

static void out_reduced(tt_lower* L, tt_builder* b, tt_val loss, int64_t reduction) {
  if (reduction == REDUCE_NONE) {
    tt_out(L, 0, loss);
    return;
  }
  tt_val flat = tt_flatten(b, loss);
  int64_t dim = 0;
  tt_val sum = tt_reduce(b, TT_REDUCE_SUM, flat, 1, &dim);
  tt_out(L, 0, reduction == REDUCE_MEAN ? tt_div_count(b, sum, (double)tt_dim_of(b, flat, 0)) : sum);
}

// The gradient at the loss of each element.
static tt_val scaled_grad(tt_lower* L, tt_builder* b, int i, tt_dtype dtype, tt_val x, int64_t reduction) {
  tt_val grad = tt_arg_as(L, i, dtype);
  return reduction == REDUCE_MEAN ? tt_div_count(b, grad, (double)tt_type_elements(tt_type_of(b, x))) : grad;
}

// x - target, in the sizes that they broadcast to.
static tt_val difference(tt_lower* L, tt_builder* b, int x, int target) {
  tt_dtype dtype = dtype_of(L, x, target);
  return tt_sub(b, tt_arg_as(L, x, dtype), tt_arg_as(L, target, dtype));
}

static tt_val positive_part(tt_builder* b, tt_val x) {
  return tt_max(b, x, tt_like_f(b, x, 0));
}

// ---- distances --------------------------------------------------------------------------------------------------------

TT_OP(mse_loss, "mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor") {
  tt_val d = difference(L, b, 0, 1);
  out_reduced(L, b, tt_mul(b, d, d), tt_arg_int(L, 2));
}
TT_OP(mse_loss_backward, "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor") {
  tt_val d = difference(L, b, 1, 2);
  tt_out(L, 0, tt_mul(b, tt_mul_f(b, d, 2), scaled_grad(L, b, 0, tt_dtype_of(b, d), d, tt_arg_int(L, 3))));
}

// Quadratic within `limit` of the target, linear outside; `slope` is the linear part's.
static void rounded_loss(tt_lower* L, tt_builder* b, double limit, double slope) {
  tt_val z = tt_unary(b, TT_ABS, difference(L, b, 0, 1));
  tt_val inner = tt_mul_f(b, tt_mul(b, z, z), 0.5 * slope / limit);
  tt_val outer = tt_mul_f(b, tt_add_f(b, z, -0.5 * limit), slope);
  out_reduced(L, b, limit == 0 ? outer : tt_where(b, tt_test_f(b, TT_LT, z, limit), inner, outer), tt_arg_int(L, 2));
}
static void rounded_loss_backward(tt_lower* L, tt_builder* b, double limit, double slope) {
  tt_val d = difference(L, b, 1, 2);
  tt_val grad = scaled_grad(L, b, 0, tt_dtype_of(b, d), d, tt_arg_int(L, 3));
  tt_val inner = limit == 0 ? d : tt_mul_f(b, d, slope / limit);
  tt_val high = tt_where(b, tt_test_f(b, TT_GE, d, limit), tt_full_like(b, d, slope), inner);
  tt_val low = tt_where(b, tt_test_f(b, TT_LE, d, -limit), tt_full_like(b, d, -slope), high);
  tt_out(L, 0, tt_mul(b, low, grad));
}
TT_OP(smooth_l1_loss, "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor") {
  rounded_loss(L, b, tt_arg_float(L, 3), 1);
}
TT_OP(smooth_l1_loss_backward,
      "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor") {
  rounded_loss_backward(L, b, tt_arg_float(L, 4), 1);
}
TT_OP(huber_loss, "huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor") {
  rounded_loss(L, b, tt_arg_float(L, 3), tt_arg_float(L, 3));
}
TT_OP(huber_loss_backward,
      "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor") {
  rounded_loss_backward(L, b, tt_arg_float(L, 4), tt_arg_float(L, 4));
}

// log(1 + exp(-target * x))
TT_OP(soft_margin_loss, "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor") {
  tt_dtype dtype = dtype_of(L, 0, 1);
  tt_val product = tt_mul(b, tt_neg(b, tt_arg_as(L, 1, dtype)), tt_arg_as(L, 0, dtype));
  out_reduced(L, b, tt_unary(b, TT_LOG1P, tt_unary(b, TT_EXP, product)), tt_arg_int(L, 2));
}
TT_OP(soft_margin_loss_backward,
      "soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor") {
  tt_dtype dtype = dtype_of(L, 1, 2);
  tt_val x = tt_arg_as(L, 1, dtype);
  tt_val negative = tt_neg(b, tt_arg_as(L, 2, dtype));
  tt_val slope = tt_mul(b, negative, tt_unary(b, TT_LOGISTIC, tt_mul(b, negative, x)));
  tt_out(L, 0, tt_mul(b, slope, scaled_grad(L, b, 0, dtype, slope, tt_arg_int(L, 3))));
}

// ---- cross entropies of probabilities -----------------------------------------------------------------------------------

static tt_val weighted(tt_lower* L, tt_builder* b, int weight_arg, tt_val loss) {
  return tt_arg_has(L, weight_arg) ? tt_mul(b, loss, tt_arg_as(L, weight_arg, tt_dtype_of(b, loss))) : loss;
}

// Logarithms are bounded by -100, so that the loss is finite.
TT_OP(binary_cross_entropy,
      "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor") {
  tt_dtype dtype = dtype_of(L, 0, 1);
  tt_val x = tt_arg_as(L, 0, dtype);
  tt_val target = tt_arg_as(L, 1, dtype);
  tt_val lowest = tt_like_f(b, x, -100);
  tt_val log_x = tt_max(b, tt_unary(b, TT_LOG, x), lowest);
  tt_val log_rest = tt_max(b, tt_unary(b, TT_LOG1P, tt_neg(b, x)), lowest);
  tt_val loss = tt_sub(b, tt_mul(b, tt_add_f(b, target, -1), log_rest), tt_mul(b, target, log_x));
  out_reduced(L, b, weighted(L, b, 2, loss), tt_arg_int(L, 3));
}
TT_OP(binary_cross_entropy_backward,
      "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, "
      "int reduction=1) -> Tensor") {
  tt_dtype dtype = dtype_of(L, 1, 2);
  tt_val x = tt_arg_as(L, 1, dtype);
  tt_val spread = tt_mul(b, tt_sub(b, tt_like_f(b, x, 1), x), x);
  tt_val bounded = tt_max(b, spread, tt_like_f(b, x, 1e-12));
  tt_val slope = tt_div(b, tt_sub(b, x, tt_arg_as(L, 2, dtype)), bounded);
  tt_val grad = scaled_grad(L, b, 0, dtype, slope, tt_arg_int(L, 4));
  tt_out(L, 0, weighted(L, b, 3, tt_mul(b, grad, slope)));
}

TT_OP(binary_cross_entropy_with_logits,
      "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
      "int reduction=1) -> Tensor") {
  tt_dtype dtype = dtype_of(L, 0, 1);
  tt_val x = tt_arg_as(L, 0, dtype);
  tt_val target = tt_arg_as(L, 1, dtype);
  tt_val decay = tt_unary(b, TT_LOG1P, tt_unary(b, TT_EXP, tt_neg(b, tt_unary(b, TT_ABS, x))));
  tt_val minus_log_sigmoid = tt_add(b, decay, positive_part(b, tt_neg(b, x)));
  if (tt_arg_has(L, 3)) {
    tt_val extra = tt_mul(b, tt_add_f(b, tt_arg_as(L, 3, dtype), -1), target);
    minus_log_sigmoid = tt_mul(b, minus_log_sigmoid, tt_add_f(b, extra, 1));
  }
  tt_val rest = tt_mul(b, tt_sub(b, tt_like_f(b, target, 1), target), x);
  out_reduced(L, b, weighted(L, b, 2, tt_add(b, rest, minus_log_sigmoid)), tt_arg_int(L, 4));
}

// ---- margins over classes -----------------------------------------------------------------------------------------------

// Input as [N, C].
static tt_val rows_of(tt_lower* L, tt_builder* b, int i, tt_dtype dtype) {
  tt_val x = tt_arg_as(L, i, dtype);
  int rank = tt_rank_of(b, x);
  if (rank >= 2) {
    return x;
  }
  int64_t dims[2] = {1, rank == 0 ? 1 : tt_dim_of(b, x, 0)};
  return tt_reshape(b, x, 2, dims);
}

// Loss of each row, or the gradient there: [N], [N, 1].
static void out_rows(tt_lower* L, tt_builder* b, tt_val loss, int64_t reduction) {
  if (reduction == REDUCE_NONE) {
    tt_out_shaped(L, 0, loss);
  } else {
    out_reduced(L, b, loss, reduction);
  }
}
static tt_val row_grad(tt_lower* L, tt_builder* b, int i, tt_val x, int64_t reduction) {
  tt_val grad = tt_arg_as(L, i, tt_dtype_of(b, x));
  int64_t rows = tt_dim_of(b, x, 0);
  int64_t dims[2] = {reduction == REDUCE_NONE ? rows : 1, 1};
  grad = tt_reshape(b, grad, 2, dims);
  return reduction == REDUCE_MEAN ? tt_div_count(b, grad, (double)rows) : grad;
}

typedef struct margins {
  tt_val x, is_target, excess, weight;
  double p;
} margins;

// excess = max(0, margin - x[target] + x[j]) for j other than the target, 0 there; weight is weight[target] / C.
static margins multi_margin(tt_lower* L, tt_builder* b, int first) {
  margins m = {0};
  m.x = rows_of(L, b, first, tt_dtype_compute(tt_arg_info(L, first)->dtype));
  tt_dtype dtype = tt_dtype_of(b, m.x);
  int64_t classes = tt_dim_of(b, m.x, 1);
  int64_t column[2] = {tt_dim_of(b, m.x, 0), 1};
  m.p = tt_arg_float(L, first + 2);
  tt_val target = tt_check_index(L, tt_reshape(b, tt_arg(L, first + 1), 2, column), classes, false);
  m.is_target = tt_test(b, TT_EQ, tt_iota_like(b, m.x, TT_I64, 1), target);
  tt_val zero = tt_full_like(b, m.x, 0);
  tt_val at_target = tt_sum_keep(b, tt_where(b, m.is_target, m.x, zero), 1);
  tt_val margin = tt_arg_scalar(L, first + 3, dtype);
  tt_val excess = positive_part(b, tt_add(b, tt_sub(b, margin, at_target), m.x));
  m.excess = tt_where(b, m.is_target, zero, excess);
  m.weight = tt_full_like(b, at_target, 1);
  if (tt_arg_has(L, first + 4)) {
    tt_val weights = tt_expand_like(b, tt_arg_as(L, first + 4, dtype), m.x);
    m.weight = tt_sum_keep(b, tt_where(b, m.is_target, weights, zero), 1);
  }
  m.weight = tt_div_count(b, m.weight, (double)classes);
  return m;
}

TT_OP(multi_margin_loss,
      "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, "
      "int reduction=1) -> Tensor") {
  margins m = multi_margin(L, b, 0);
  tt_val powers = m.p == 1 ? m.excess : tt_mul(b, m.excess, m.excess);
  out_rows(L, b, tt_mul(b, tt_sum_keep(b, powers, 1), m.weight), tt_arg_int(L, 5));
}
TT_OP(multi_margin_loss_backward,
      "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, "
      "Tensor? weight=None, int reduction=1) -> Tensor") {
  margins m = multi_margin(L, b, 1);
  tt_val zero = tt_full_like(b, m.x, 0);
  tt_val one = tt_full_like(b, m.x, 1);
  tt_val slope = m.p == 1 ? tt_where(b, tt_test_f(b, TT_GT, m.excess, 0), one, zero) : tt_mul_f(b, m.excess, 2);
  tt_val to_target = tt_neg(b, tt_sum_keep(b, slope, 1));
  tt_val both = tt_where(b, m.is_target, to_target, slope);
  tt_out_shaped(L, 0, tt_mul(b, both, tt_mul(b, m.weight, row_grad(L, b, 0, m.x, tt_arg_int(L, 6)))));
}

// Targets are listed from the left of each row and end at the first -1. [N, target place, class]: 1 - x[target] + x[class]
// for classes that are no targets.
typedef struct label_margins {
  tt_val x, excess, hits;  // hits: the place's target is this class
  tt_val is_target;        // [N, C]
} label_margins;

static label_margins multilabel_margin(tt_lower* L, tt_builder* b, int x_arg, int target_arg) {
  label_margins m;
  m.x = rows_of(L, b, x_arg, tt_dtype_compute(tt_arg_info(L, x_arg)->dtype));
  int64_t classes = tt_dim_of(b, m.x, 1);
  tt_val target = rows_of(L, b, target_arg, TT_I64);
  tt_val listed = tt_convert(b, tt_test_f(b, TT_GE, target, 0), TT_I32);
  tt_val valid = tt_test_f(b, TT_NE, tt_cumulative(b, TT_REDUCE_PROD, listed, 1), 0);
  tt_val safe = tt_where(b, valid, target, tt_full_like(b, target, 0));
  tt_val place = tt_unsqueeze(b, tt_check_index(L, safe, classes, false), 2);
  int64_t cube[3] = {tt_dim_of(b, m.x, 0), classes, classes};
  tt_type type = tt_type_make(TT_I64, 3, cube);
  tt_val same = tt_test(b, TT_EQ, tt_iota(b, &type, 2), place);
  m.hits = tt_and(b, same, tt_unsqueeze(b, valid, 2));
  int64_t places = 1;
  m.is_target = tt_reduce(b, TT_REDUCE_OR, m.hits, 1, &places);
  tt_val wide = tt_expand(b, tt_unsqueeze(b, m.x, 1), 3, cube);
  tt_val zero = tt_full_like(b, wide, 0);
  tt_val at_place = tt_sum_keep(b, tt_where(b, m.hits, wide, zero), 2);
  tt_val margin = positive_part(b, tt_add_f(b, tt_sub(b, wide, at_place), 1));
  tt_val counts = tt_and(b, tt_unsqueeze(b, valid, 2), tt_not(b, tt_unsqueeze(b, m.is_target, 1)));
  m.excess = tt_where(b, counts, margin, zero);
  return m;
}

TT_OP(
    multilabel_margin_loss,
    "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)") {
  label_margins m = multilabel_margin(L, b, 0, 1);
  int64_t inner[2] = {1, 2};
  tt_val sum = tt_reduce(b, TT_REDUCE_SUM, m.excess, 2, inner);
  out_rows(L, b, tt_div_count(b, sum, (double)tt_dim_of(b, m.x, 1)), tt_arg_int(L, 2));
  tt_out_shaped(L, 1, m.is_target);
}
TT_OP(multilabel_margin_loss_backward,
      "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor "
      "is_target) -> "
      "Tensor") {
  label_margins m = multilabel_margin(L, b, 1, 2);
  tt_val active = tt_convert(b, tt_test_f(b, TT_GT, m.excess, 0), tt_dtype_of(b, m.x));
  tt_val of_place = tt_sum_keep(b, active, 2);
  tt_val to_targets = tt_where(b, m.hits, of_place, tt_full_like(b, of_place, 0));
  int64_t places = 1;
  tt_val slope = tt_reduce(b, TT_REDUCE_SUM, tt_sub(b, active, to_targets), 1, &places);
  slope = tt_div_count(b, slope, (double)tt_dim_of(b, m.x, 1));
  tt_out_shaped(L, 0, tt_mul(b, slope, row_grad(L, b, 0, m.x, tt_arg_int(L, 3))));
}
