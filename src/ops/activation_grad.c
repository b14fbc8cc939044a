// SPDX-License-Identifier: Apache-2.0
//
// Derivatives of the activation functions.
#include <math.h>

#include "ops/activation.h"

// The gradient that comes in, and where the derivative is taken, both to compute with.
typedef struct site {
  tt_val grad, x, zero;
  tt_dtype dtype;
} site;

static site open_site(tt_lower* L, tt_builder* b, int grad, int x) {
  site s;
  s.dtype = tt_compute_dtype(L, TT_INT_TO_FLOAT, 2, (int[]){grad, x});
  s.grad = tt_arg_as(L, grad, s.dtype);
  s.x = tt_arg_as(L, x, s.dtype);
  s.zero = tt_like_f(b, s.x, 0);
  return s;
}

TT_OP(sigmoid_backward, "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor") {
  tt_dtype dtype = tt_compute_dtype(L, TT_INT_TO_FLOAT, 2, (int[]){0, 1});
  tt_val y = tt_arg_as(L, 1, dtype);
  tt_val slope = tt_mul(b, tt_sub(b, tt_like_f(b, y, 1), y), y);
  slope = tt_dtype_is_complex(dtype) ? tt_unary(b, TT_CHLO_CONJ, slope) : slope;
  tt_out(L, 0, tt_mul(b, tt_arg_as(L, 0, dtype), slope));
}
TT_OP(tanh_backward, "tanh_backward(Tensor grad_output, Tensor output) -> Tensor") {
  tt_dtype dtype = tt_compute_dtype(L, TT_INT_TO_FLOAT, 2, (int[]){0, 1});
  tt_val y = tt_arg_as(L, 1, dtype);
  tt_val slope = tt_sub(b, tt_like_f(b, y, 1), tt_mul(b, y, y));
  slope = tt_dtype_is_complex(dtype) ? tt_unary(b, TT_CHLO_CONJ, slope) : slope;
  tt_out(L, 0, tt_mul(b, tt_arg_as(L, 0, dtype), slope));
}

TT_OP(threshold_backward, "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor") {
  tt_dtype dtype = tt_common_dtype2(L, 0, 1);
  tt_val x = tt_arg_as(L, 1, dtype);
  tt_val grad = tt_arg_as(L, 0, dtype);
  tt_out(L, 0, tt_where(b, tt_test(b, TT_LE, x, tt_arg_scalar(L, 2, dtype)), tt_like_f(b, x, 0), grad));
}

TT_OP(gelu_backward, "gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor") {
  site s = open_site(L, b, 0, 1);
  tt_val x = s.x;
  if (tt_gelu_is_tanh(L, 2)) {
    tt_val t = tt_unary(b, TT_TANH, tt_gelu_inner(b, x));
    tt_val square = tt_mul(b, x, x);
    tt_val inner_slope = tt_mul_f(b, tt_add_f(b, tt_mul_f(b, square, 3 * TT_GELU_CUBIC), 1), TT_GELU_SCALE);
    tt_val tanh_slope = tt_sub(b, tt_like_f(b, t, 1), tt_mul(b, t, t));
    tt_val left = tt_mul_f(b, tt_add_f(b, t, 1), 0.5);
    tt_val right = tt_mul(b, tt_mul(b, tt_mul_f(b, x, 0.5), tanh_slope), inner_slope);
    tt_out(L, 0, tt_mul(b, s.grad, tt_add(b, left, right)));
    return;
  }
  tt_val density = tt_mul_f(b, tt_unary(b, TT_EXP, tt_mul_f(b, tt_mul(b, x, x), -0.5)), M_2_SQRTPI * M_SQRT1_2 * 0.5);
  tt_out(L, 0, tt_mul(b, s.grad, tt_add(b, tt_normal_cdf(b, x), tt_mul(b, x, density))));
}

TT_OP(silu_backward, "silu_backward(Tensor grad_output, Tensor self) -> Tensor") {
  site s = open_site(L, b, 0, 1);
  tt_val gate = tt_unary(b, TT_LOGISTIC, s.x);
  tt_val rest = tt_sub(b, tt_like_f(b, gate, 1), gate);
  tt_val slope = tt_mul(b, gate, tt_add(b, tt_like_f(b, gate, 1), tt_mul(b, s.x, rest)));
  tt_out(L, 0, tt_mul(b, s.grad, tt_dtype_is_complex(s.dtype) ? tt_unary(b, TT_CHLO_CONJ, slope) : slope));
}

TT_COMPOSITE(mish_backward, "mish_backward(Tensor grad_output, Tensor self) -> Tensor",
             "PyTorch has no Meta kernel of it");

TT_OP(softplus_backward,
      "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor") {
  site s = open_site(L, b, 0, 1);
  tt_val scaled = tt_mul(b, s.x, tt_arg_scalar(L, 2, s.dtype));
  tt_val linear = tt_test(b, TT_GT, scaled, tt_arg_scalar(L, 3, s.dtype));
  tt_out(L, 0, tt_where(b, linear, s.grad, tt_mul(b, s.grad, tt_unary(b, TT_LOGISTIC, scaled))));
}

TT_OP(log_sigmoid_backward, "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor") {
  site s = open_site(L, b, 0, 1);
  tt_out(L, 0, tt_mul(b, s.grad, tt_unary(b, TT_LOGISTIC, tt_neg(b, s.x))));
}

// grad where low < x < high (or the ends too), 0 elsewhere.
static tt_val inside(tt_builder* b, site s, tt_val low, tt_val high, bool ends, tt_val grad) {
  tt_val in = tt_and(b, tt_test(b, ends ? TT_GE : TT_GT, s.x, low), tt_test(b, ends ? TT_LE : TT_LT, s.x, high));
  return tt_where(b, in, grad, s.zero);
}
TT_OP(hardtanh_backward,
      "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor") {
  site s = open_site(L, b, 0, 1);
  tt_val low = tt_arg_scalar(L, 2, s.dtype);
  tt_out(L, 0, inside(b, s, low, tt_arg_scalar(L, 3, s.dtype), false, s.grad));
}
TT_OP(hardsigmoid_backward, "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor") {
  site s = open_site(L, b, 0, 1);
  tt_out(L, 0, inside(b, s, tt_like_f(b, s.x, -3), tt_like_f(b, s.x, 3), false, tt_mul_f(b, s.grad, 1.0 / 6)));
}
TT_OP(hardswish_backward, "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor") {
  site s = open_site(L, b, 0, 1);
  tt_val bend = tt_mul(b, s.grad, tt_add_f(b, tt_div(b, s.x, tt_like_f(b, s.x, 3)), 0.5));
  tt_val low = tt_test_f(b, TT_LE, s.x, -3);
  tt_out(L, 0, tt_where(b, low, s.zero, tt_where(b, tt_test_f(b, TT_LT, s.x, 3), bend, s.grad)));
}
static void shrink_backward(tt_lower* L, tt_builder* b) {
  site s = open_site(L, b, 0, 1);
  tt_val lambda = tt_arg_scalar(L, 2, s.dtype);
  tt_val in = tt_and(b, tt_test(b, TT_GE, s.x, tt_neg(b, lambda)), tt_test(b, TT_LE, s.x, lambda));
  tt_out(L, 0, tt_where(b, in, s.zero, s.grad));
}
TT_OP(hardshrink_backward, "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor") {
  shrink_backward(L, b);
}
TT_OP(softshrink_backward, "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor") {
  shrink_backward(L, b);
}

TT_OP(elu_backward,
      "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor "
      "self_or_result) -> Tensor") {
  site s = open_site(L, b, 0, 5);
  tt_val scale = tt_arg_scalar(L, 2, s.dtype);
  tt_val low_scale = tt_mul(b, tt_arg_scalar(L, 1, s.dtype), scale);
  tt_val input_scale = tt_arg_scalar(L, 3, s.dtype);
  tt_val bend = tt_arg_bool(L, 4) ? tt_add(b, s.x, low_scale)
                                  : tt_mul(b, low_scale, tt_unary(b, TT_EXP, tt_mul(b, s.x, input_scale)));
  tt_val negative = tt_mul(b, tt_mul(b, s.grad, input_scale), bend);
  tt_out(L, 0, tt_where(b, tt_test_f(b, TT_LE, s.x, 0), negative, tt_mul(b, s.grad, scale)));
}
TT_OP(leaky_relu_backward,
      "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor") {
  site s = open_site(L, b, 0, 1);
  tt_val slope = tt_arg_scalar(L, 2, s.dtype);
  tt_out(L, 0, tt_where(b, tt_test_f(b, TT_GT, s.x, 0), s.grad, tt_mul(b, s.grad, slope)));
}
TT_OP(prelu_backward, "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)") {
  site s = open_site(L, b, 0, 1);
  tt_val positive = tt_test_f(b, TT_GT, s.x, 0);
  tt_out(L, 0, tt_where(b, positive, s.grad, tt_mul(b, s.grad, tt_arg_as(L, 2, s.dtype))));
  tt_out(L, 1, tt_where(b, positive, s.zero, tt_mul(b, s.x, s.grad)));
}
TT_OP(rrelu_backward,
      "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool "
      "training, "
      "bool self_is_result) -> Tensor") {
  site s = open_site(L, b, 0, 1);
  double low = tt_arg_float(L, 3);
  double high = tt_arg_float(L, 4);
  if (tt_arg_bool(L, 5) && high - low > 1e-6) {
    tt_out(L, 0, tt_mul(b, s.grad, tt_arg_as(L, 2, s.dtype)));
    return;
  }
  tt_val slope = tt_like_f(b, s.x, (low + high) / 2);
  tt_out(L, 0, tt_where(b, tt_test_f(b, TT_GT, s.x, 0), s.grad, tt_mul(b, s.grad, slope)));
}
TT_OP(glu_backward, "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor") {
  tt_dtype dtype = tt_compute_dtype(L, TT_INT_TO_FLOAT, 1, (int[]){1});
  tt_val x = tt_arg_as(L, 1, dtype);
  tt_val grad = tt_arg_as(L, 0, dtype);
  int dim = tt_wrap_dim(tt_arg_int(L, 2), tt_rank_of(b, x));
  int64_t half = tt_dim_of(b, x, dim) / 2;
  tt_val value = tt_slice_dim(b, x, dim, 0, half, 1);
  tt_val gate = tt_unary(b, TT_LOGISTIC, tt_slice_dim(b, x, dim, half, 2 * half, 1));
  tt_val to_value = tt_mul(b, grad, gate);
  tt_val to_gate = tt_mul(b, tt_mul(b, to_value, value), tt_sub(b, tt_like_f(b, gate, 1), gate));
  tt_out(L, 0, tt_concat(b, 2, (tt_val[]){to_value, to_gate}, dim));
}
