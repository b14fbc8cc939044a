// SPDX-License-Identifier: Apache-2.0
//
// Fused optimizers and gradient scaling: a step of all parameters is one program. The learning rate is a run-time
// input; what
// hardly ever changes (betas, weight decay, eps) is baked in, so that 1 - beta^step is exact.
//
// All of these return nothing: output k is element k of the changed lists, one list after the other. An output left
// unset keeps its
// argument as it is.
#include <math.h>

#include "ops/pointwise.h"

// Gradient scaler's two optional inputs, and the sign of the step.
typedef struct scaling {
  tt_val scale, found_inf;  // TT_POISON if absent
  bool maximize;
} scaling;

static scaling read_scaling(tt_lower* L, tt_builder* b, int scale, int found_inf, bool maximize) {
  scaling s = {.maximize = maximize};
  if (tt_arg_has(L, scale)) {
    s.scale = tt_arg_as(L, scale, TT_F32);
  }
  if (tt_arg_has(L, found_inf)) {
    tt_val flag = tt_arg_as(L, found_inf, TT_F32);
    s.found_inf = tt_test_f(b, TT_EQ, tt_reshape(b, flag, 0, NULL), 1);
  }
  return s;
}

static tt_val read_at(tt_lower* L, int i, int j, tt_dtype dtype) {
  return tt_convert(tt_lower_builder(L), tt_arg_at(L, i, j), dtype);
}
static tt_val scalar_at(tt_lower* L, int i, int j, tt_dtype dtype) {
  return tt_reshape(tt_lower_builder(L), read_at(L, i, j, dtype), 0, NULL);
}

// New value of element j of list argument i, unless infinities were found. `list` counts the changed lists.
static void put(tt_lower* L, tt_builder* b, const scaling* s, int list, int i, int j, tt_val value) {
  if (s->found_inf != TT_POISON) {
    value = tt_where(b, s->found_inf, read_at(L, i, j, tt_dtype_of(b, value)), value);
  }
  tt_out(L, list * tt_arg_count(L, 0) + j, value);
}

// Gradient j, unscaled (and then written back), in the direction of the step.
static tt_val gradient(tt_lower* L, tt_builder* b, const scaling* s, int j, tt_dtype dtype) {
  tt_val grad = read_at(L, 1, j, dtype);
  if (s->scale != TT_POISON) {
    grad = tt_div(b, grad, tt_convert(b, tt_reshape(b, s->scale, 0, NULL), dtype));
    put(L, b, s, 1, 1, j, grad);
  }
  return s->maximize ? tt_neg(b, grad) : grad;
}

static tt_val learning_rate(tt_lower* L, tt_builder* b, int i, tt_dtype dtype) {
  return tt_arg_info(L, i) != NULL ? tt_reshape(b, tt_arg_as(L, i, dtype), 0, NULL) : tt_arg_scalar(L, i, dtype);
}

// 1 - beta^step.
static tt_val bias_correction(tt_builder* b, double beta, tt_val step) {
  return tt_neg(b, tt_unary(b, TT_EXPM1, tt_mul_f(b, step, log(beta))));
}

// ---- Adam -----------------------------------------------------------------------------------------------------------

enum {
  SELF,
  GRADS,
  EXP_AVGS,
  EXP_AVG_SQS,
  MAX_EXP_AVG_SQS,
  STEPS,
  LR,
  BETA1,
  BETA2,
  DECAY,
  EPS,
  AMSGRAD,
  MAXIMIZE,
  SCALE,
  FOUND_INF
};

static void adam(tt_lower* L, tt_builder* b, bool decoupled) {
  double beta1 = tt_arg_float(L, BETA1);
  double beta2 = tt_arg_float(L, BETA2);
  double decay = tt_arg_float(L, DECAY);
  double eps = tt_arg_float(L, EPS);
  bool amsgrad = tt_arg_bool(L, AMSGRAD);
  scaling s = read_scaling(L, b, SCALE, FOUND_INF, tt_arg_bool(L, MAXIMIZE));
  for (int j = 0; j < tt_arg_count(L, SELF); ++j) {
    tt_dtype dtype = tt_dtype_compute(tt_arg_info_at(L, SELF, j)->dtype);
    tt_val lr = learning_rate(L, b, LR, dtype);
    tt_val step = scalar_at(L, STEPS, j, dtype);
    tt_val grad = gradient(L, b, &s, j, dtype);
    tt_val x = read_at(L, SELF, j, dtype);
    if (decay != 0 && decoupled) {
      x = tt_sub(b, x, tt_mul(b, x, tt_mul_f(b, lr, decay)));
    } else if (decay != 0) {
      grad = tt_add(b, grad, tt_mul_f(b, x, decay));
    }
    tt_val mean = tt_lerp(b, read_at(L, EXP_AVGS, j, dtype), grad, tt_like_f(b, grad, 1 - beta1));
    tt_val fresh = tt_mul_f(b, tt_mul(b, grad, grad), 1 - beta2);
    tt_val square = tt_add(b, tt_mul_f(b, read_at(L, EXP_AVG_SQS, j, dtype), beta2), fresh);
    put(L, b, &s, 2, EXP_AVGS, j, mean);
    put(L, b, &s, 3, EXP_AVG_SQS, j, square);
    if (amsgrad) {
      square = tt_max(b, read_at(L, MAX_EXP_AVG_SQS, j, dtype), square);
      put(L, b, &s, 4, MAX_EXP_AVG_SQS, j, square);
    }
    tt_val root = tt_unary(b, TT_SQRT, bias_correction(b, beta2, step));
    tt_val below = tt_add_f(b, tt_div(b, tt_unary(b, TT_SQRT, square), root), eps);
    tt_val size = tt_div(b, lr, bias_correction(b, beta1, step));
    put(L, b, &s, 0, SELF, j, tt_sub(b, x, tt_mul(b, size, tt_div(b, mean, below))));
  }
}
#define ADAM_LISTS                                                                                         \
  "(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] " \
  "max_exp_avg_sqs, "                                                                                      \
  "Tensor[] state_steps, *, "
#define ADAM_REST                                                                                       \
  " lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? " \
  "grad_scale=None, "                                                                                   \
  "Tensor? found_inf=None) -> ()"
TT_OP(fused_adam, "_fused_adam_" ADAM_LISTS "float" ADAM_REST) {
  adam(L, b, false);
}
TT_OP(fused_adam_lr, "_fused_adam_.tensor_lr" ADAM_LISTS "Tensor" ADAM_REST) {
  adam(L, b, false);
}
TT_OP(fused_adamw, "_fused_adamw_" ADAM_LISTS "float" ADAM_REST) {
  adam(L, b, true);
}
TT_OP(fused_adamw_lr, "_fused_adamw_.tensor_lr" ADAM_LISTS "Tensor" ADAM_REST) {
  adam(L, b, true);
}

// ---- SGD ------------------------------------------------------------------------------------------------------------

static void sgd(tt_lower* L, tt_builder* b) {
  double decay = tt_arg_float(L, 3);
  double momentum = tt_arg_float(L, 4);
  double dampening = tt_arg_float(L, 6);
  bool nesterov = tt_arg_bool(L, 7);
  bool first = tt_arg_bool(L, 9);
  scaling s = read_scaling(L, b, 10, 11, tt_arg_bool(L, 8));
  for (int j = 0; j < tt_arg_count(L, 0); ++j) {
    tt_dtype dtype = tt_dtype_compute(tt_arg_info_at(L, 0, j)->dtype);
    tt_val x = read_at(L, 0, j, dtype);
    tt_val grad = gradient(L, b, &s, j, dtype);
    if (decay != 0) {
      grad = tt_add(b, grad, tt_mul_f(b, x, decay));
    }
    if (momentum != 0 && tt_arg_has_at(L, 2, j)) {
      tt_val velocity = grad;
      if (!first) {
        velocity = tt_add(b, tt_mul_f(b, read_at(L, 2, j, dtype), momentum), tt_mul_f(b, grad, 1 - dampening));
      }
      put(L, b, &s, 2, 2, j, velocity);
      grad = nesterov ? tt_add(b, grad, tt_mul_f(b, velocity, momentum)) : velocity;
    }
    put(L, b, &s, 0, 0, j, tt_sub(b, x, tt_mul(b, grad, learning_rate(L, b, 5, dtype))));
  }
}
#define SGD_LISTS \
  "(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, "
#define SGD_REST                                                                                              \
  " lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? " \
  "found_inf=None) -> ()"
TT_OP(fused_sgd, "_fused_sgd_" SGD_LISTS "float" SGD_REST) {
  sgd(L, b);
}
TT_OP(fused_sgd_lr, "_fused_sgd_.tensor_lr" SGD_LISTS "Tensor" SGD_REST) {
  sgd(L, b);
}

// ---- Adagrad --------------------------------------------------------------------------------------------------------

static void adagrad(tt_lower* L, tt_builder* b) {
  double lr_decay = tt_arg_float(L, 5);
  double decay = tt_arg_float(L, 6);
  double eps = tt_arg_float(L, 7);
  scaling s = read_scaling(L, b, 9, 10, tt_arg_bool(L, 8));
  for (int j = 0; j < tt_arg_count(L, 0); ++j) {
    tt_dtype dtype = tt_dtype_compute(tt_arg_info_at(L, 0, j)->dtype);
    tt_val x = read_at(L, 0, j, dtype);
    tt_val grad = gradient(L, b, &s, j, dtype);
    if (decay != 0) {
      grad = tt_add(b, grad, tt_mul_f(b, x, decay));
    }
    tt_val before = tt_add_f(b, scalar_at(L, 3, j, dtype), -1);
    tt_val rate = tt_div(b, learning_rate(L, b, 4, dtype), tt_add_f(b, tt_mul_f(b, before, lr_decay), 1));
    tt_val sum = tt_add(b, read_at(L, 2, j, dtype), tt_mul(b, grad, grad));
    put(L, b, &s, 2, 2, j, sum);
    tt_val below = tt_add_f(b, tt_unary(b, TT_SQRT, sum), eps);
    put(L, b, &s, 0, 0, j, tt_sub(b, x, tt_mul(b, rate, tt_div(b, grad, below))));
  }
}
#define ADAGRAD_LISTS "(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, "
#define ADAGRAD_REST                                                                                     \
  " lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? " \
  "found_inf=None) -> ()"
TT_OP(fused_adagrad, "_fused_adagrad_" ADAGRAD_LISTS "Tensor(d!)[] state_steps, *, float" ADAGRAD_REST) {
  adagrad(L, b);
}
TT_OP(fused_adagrad_lr, "_fused_adagrad_.tensor_lr" ADAGRAD_LISTS "Tensor[] state_steps, *, Tensor" ADAGRAD_REST) {
  adagrad(L, b);
}

// ---- gradient scaling -----------------------------------------------------------------------------------------------

TT_OP(amp_unscale,
      "_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()") {
  int n = tt_arg_count(L, 0);
  tt_val bad = tt_const_i(b, TT_BOOL, 0);
  for (int j = 0; j < n; ++j) {
    tt_dtype dtype = tt_dtype_compute(tt_arg_info_at(L, 0, j)->dtype);
    tt_val grad = read_at(L, 0, j, dtype);
    tt_val wrong = tt_not(b, tt_unary(b, TT_IS_FINITE, grad));
    int64_t dims[TT_MAX_RANK];
    for (int d = 0; d < tt_rank_of(b, grad); ++d) {
      dims[d] = d;
    }
    bad = tt_or(b, bad, tt_reduce(b, TT_REDUCE_OR, wrong, tt_rank_of(b, grad), dims));
    tt_out(L, j, tt_mul(b, grad, tt_reshape(b, tt_arg_as(L, 2, dtype), 0, NULL)));
  }
  tt_val found = tt_arg(L, 1);
  tt_out(L, n, tt_where(b, bad, tt_full_like(b, found, 1), found));
}

TT_OP(amp_update_scale,
      "_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float scale_growth_factor, "
      "float scale_backoff_factor, int growth_interval) -> Tensor(a!)") {
  tt_val scale = tt_arg(L, 0);
  tt_val tracker = tt_arg(L, 1);
  tt_val found = tt_test_f(b, TT_NE, tt_arg(L, 2), 0);
  tt_val grown = tt_mul(b, scale, tt_arg_scalar(L, 3, tt_dtype_of(b, scale)));
  tt_val shrunk = tt_mul(b, scale, tt_arg_scalar(L, 4, tt_dtype_of(b, scale)));
  tt_val streak = tt_add_f(b, tracker, 1);
  tt_val due = tt_test(b, TT_EQ, streak, tt_like_i(b, streak, tt_arg_int(L, 5)));
  tt_val grow = tt_and(b, due, tt_unary(b, TT_IS_FINITE, grown));
  tt_out(L, 0, tt_where(b, found, shrunk, tt_where(b, grow, grown, scale)));
  tt_write(L, 1, tt_where(b, tt_or(b, found, due), tt_like_i(b, tracker, 0), streak));
}
