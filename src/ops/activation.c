// SPDX-License-Identifier: Apache-2.0
//
// Activation functions. Their derivatives are in activation_grad.c.
#include <math.h>
#include <string.h>

#include "ops/activation.h"

tt_val tt_relu(tt_builder* b, tt_val x) {
  return tt_max(b, x, tt_like_f(b, x, 0));
}
TT_OP(relu, "relu(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_relu(b, tt_arg(L, 0)));
}

tt_val tt_gelu_inner(tt_builder* b, tt_val x) {
  tt_val cube = tt_mul(b, tt_mul(b, x, x), x);
  return tt_mul_f(b, tt_add(b, x, tt_mul_f(b, cube, TT_GELU_CUBIC)), TT_GELU_SCALE);
}
bool tt_gelu_is_tanh(tt_lower* L, int i) {
  const char* name = tt_arg_string(L, i);
  if (strcmp(name, "tanh") != 0 && strcmp(name, "none") != 0) {
    tt_builder_fail(tt_lower_builder(L), TT_INVALID_ARGUMENT, "approximate argument must be either none or tanh.");
  }
  return name[0] == 't';
}
tt_val tt_normal_cdf(tt_builder* b, tt_val x) {
  return tt_mul_f(b, tt_add_f(b, tt_unary(b, TT_CHLO_ERF, tt_mul_f(b, x, M_SQRT1_2)), 1), 0.5);
}
TT_OP(gelu, "gelu(Tensor self, *, str approximate=\"none\") -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  if (tt_gelu_is_tanh(L, 1)) {
    tt_val t = tt_unary(b, TT_TANH, tt_gelu_inner(b, x));
    tt_out(L, 0, tt_mul(b, tt_mul_f(b, x, 0.5), tt_add_f(b, t, 1)));
  } else {
    tt_out(L, 0, tt_mul(b, x, tt_normal_cdf(b, x)));
  }
}

TT_OP(silu, "silu(Tensor self) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  tt_out(L, 0, tt_mul(b, x, tt_unary(b, TT_LOGISTIC, x)));
}

tt_val tt_softplus(tt_builder* b, tt_val x) {
  tt_val tail = tt_unary(b, TT_LOG1P, tt_unary(b, TT_EXP, tt_neg(b, tt_unary(b, TT_ABS, x))));
  return tt_add(b, tt_relu(b, x), tail);
}
TT_OP(softplus, "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  tt_val beta = tt_arg_scalar(L, 1, tt_dtype_of(b, x));
  tt_val scaled = tt_mul(b, x, beta);
  tt_val linear = tt_test(b, TT_GT, scaled, tt_arg_scalar(L, 2, tt_dtype_of(b, x)));
  tt_out(L, 0, tt_where(b, linear, x, tt_div(b, tt_softplus(b, scaled), beta)));
}
TT_OP(mish, "mish(Tensor self) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  tt_out(L, 0, tt_mul(b, x, tt_unary(b, TT_TANH, tt_softplus(b, x))));
}
TT_OP(log_sigmoid, "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)") {
  tt_val x = tt_arg_real(L, 0);
  tt_val power = tt_unary(b, TT_EXP, tt_neg(b, tt_unary(b, TT_ABS, x)));
  tt_out(L, 0, tt_sub(b, tt_min(b, x, tt_like_f(b, x, 0)), tt_unary(b, TT_LOG1P, power)));
  tt_out(L, 1, power);
}

// x + 3 cut to [0, 6], over 6.
tt_val tt_hard_sigmoid(tt_builder* b, tt_val x) {
  tt_val cut = tt_min(b, tt_max(b, tt_add_f(b, x, 3), tt_like_f(b, x, 0)), tt_like_f(b, x, 6));
  return tt_div(b, cut, tt_like_f(b, x, 6));
}
TT_OP(hardsigmoid, "hardsigmoid(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_hard_sigmoid(b, tt_arg_real(L, 0)));
}
TT_OP(hardswish, "hardswish(Tensor self) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  tt_val cut = tt_min(b, tt_max(b, tt_add_f(b, x, 3), tt_like_f(b, x, 0)), tt_like_f(b, x, 6));
  tt_out(L, 0, tt_div(b, tt_mul(b, x, cut), tt_like_f(b, x, 6)));
}
TT_OP(hardtanh, "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  tt_val low = tt_arg_scalar(L, 1, tt_dtype_of(b, x));
  tt_out(L, 0, tt_min(b, tt_max(b, x, low), tt_arg_scalar(L, 2, tt_dtype_of(b, x))));
}
TT_OP(hardshrink, "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  tt_val lambda = tt_arg_scalar(L, 1, tt_dtype_of(b, x));
  tt_val inside = tt_and(b, tt_test(b, TT_GE, x, tt_neg(b, lambda)), tt_test(b, TT_LE, x, lambda));
  tt_out(L, 0, tt_where(b, inside, tt_like_f(b, x, 0), x));
}
TT_OP(softshrink, "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  tt_val lambda = tt_arg_scalar(L, 1, tt_dtype_of(b, x));
  tt_val above = tt_test(b, TT_GT, x, lambda);
  tt_val below = tt_test(b, TT_LT, x, tt_neg(b, lambda));
  tt_val middle = tt_mul_f(b, x, 0);  // NaN stays
  tt_out(L, 0, tt_where(b, above, tt_sub(b, x, lambda), tt_where(b, below, tt_add(b, x, lambda), middle)));
}

TT_OP(elu, "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  tt_dtype dtype = tt_dtype_of(b, x);
  tt_val scale = tt_arg_scalar(L, 2, dtype);
  tt_val low_scale = tt_mul(b, tt_arg_scalar(L, 1, dtype), scale);
  tt_val power = tt_unary(b, TT_EXPM1, tt_mul(b, x, tt_arg_scalar(L, 3, dtype)));
  tt_val negative = tt_test_f(b, TT_LT, x, 0);
  tt_out(L, 0, tt_where(b, negative, tt_mul(b, power, low_scale), tt_mul(b, x, scale)));
}
TT_OP(leaky_relu, "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  tt_val slope = tt_arg_scalar(L, 1, tt_dtype_of(b, x));
  tt_out(L, 0, tt_where(b, tt_test_f(b, TT_GT, x, 0), x, tt_mul(b, x, slope)));
}
TT_OP(prelu, "_prelu_kernel(Tensor self, Tensor weight) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  tt_val weight = tt_arg_as(L, 1, tt_dtype_of(b, x));
  tt_out(L, 0, tt_where(b, tt_test_f(b, TT_GT, x, 0), x, tt_mul(b, x, weight)));
}
TT_OP(threshold, "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  tt_dtype dtype = tt_dtype_of(b, x);
  tt_val low = tt_test(b, TT_LE, x, tt_arg_scalar(L, 1, dtype));
  tt_out(L, 0, tt_where(b, low, tt_arg_scalar(L, 2, dtype), x));
}
TT_OP(glu, "glu(Tensor self, int dim=-1) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  int dim = tt_wrap_dim(tt_arg_int(L, 1), tt_rank_of(b, x));
  int64_t half = tt_dim_of(b, x, dim) / 2;
  tt_val gate = tt_slice_dim(b, x, dim, half, 2 * half, 1);
  tt_out(L, 0, tt_mul(b, tt_slice_dim(b, x, dim, 0, half, 1), tt_unary(b, TT_LOGISTIC, gate)));
}

// Training draws the slope of each negative element anew, and notes it in `noise` (argument 1).
static void rrelu(tt_lower* L, tt_builder* b) {
  tt_val x = tt_arg_real(L, 0);
  tt_dtype dtype = tt_dtype_of(b, x);
  tt_val low = tt_arg_scalar(L, 2, dtype);
  tt_val high = tt_arg_scalar(L, 3, dtype);
  tt_val negative = tt_test_f(b, TT_LE, x, 0);
  if (!tt_arg_bool(L, 4)) {
    tt_val slope = tt_mul_f(b, tt_add(b, low, high), 0.5);
    tt_out(L, 0, tt_where(b, negative, tt_mul(b, x, slope), x));
    return;
  }
  tt_val uniform = tt_random_uniform(L, dtype, tt_rank_of(b, x), tt_type_of(b, x)->dims);
  tt_val drawn = tt_add(b, low, tt_mul(b, uniform, tt_sub(b, high, low)));
  tt_val slope = tt_where(b, negative, drawn, tt_like_f(b, x, 1));
  tt_out(L, 0, tt_mul(b, x, slope));
  tt_write(L, 1, slope);
}
#define RRELU_ARGS                                                                                           \
  "Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? " \
  "generator=None"
TT_OP(rrelu, "rrelu_with_noise(Tensor self, " RRELU_ARGS ") -> Tensor") {
  rrelu(L, b);
}
TT_OP(rrelu_in_place, "rrelu_with_noise_(Tensor(a!) self, " RRELU_ARGS ") -> Tensor(a!)") {
  rrelu(L, b);
}
