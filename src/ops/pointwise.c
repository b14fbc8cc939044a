// SPDX-License-Identifier: Apache-2.0
//
// Elementwise functions of one operand.
#include "ops/pointwise.h"

#include <math.h>

// ---- exact ----------------------------------------------------------------------------------------------------------

TT_ROW(neg, "neg(Tensor self) -> Tensor", TT_NO_COMPUTE, TT_NEG);
TT_ROW(bitwise_not, "bitwise_not(Tensor self) -> Tensor", TT_NO_COMPUTE, TT_NOT);

TT_OP(abs, "abs(Tensor self) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  bool signed_type = tt_dtype_is_signed(tt_dtype_of(b, x));
  tt_out(L, 0, signed_type ? tt_unary(b, TT_ABS, x) : x);
}

// Integers are their own roundings.
static void rounding(tt_lower* L, tt_builder* b, tt_prim prim) {
  tt_val x = tt_arg(L, 0);
  tt_out(L, 0, tt_dtype_is_float(tt_dtype_of(b, x)) ? tt_unary(b, prim, x) : x);
}
TT_OP(ceil, "ceil(Tensor self) -> Tensor") {
  rounding(L, b, TT_CEIL);
}
TT_OP(floor, "floor(Tensor self) -> Tensor") {
  rounding(L, b, TT_FLOOR);
}
TT_OP(round, "round(Tensor self) -> Tensor") {
  rounding(L, b, TT_ROUND_EVEN);
}

TT_OP(round_decimals, "round.decimals(Tensor self, *, int decimals) -> Tensor") {
  tt_val x = tt_arg_as(L, 0, tt_compute_dtype(L, TT_SAME, 1, (int[]){0}));
  int64_t decimals = tt_arg_int(L, 1);
  if (!tt_dtype_is_float(tt_dtype_of(b, x))) {
    tt_out(L, 0, x);
    return;
  }
  double ten = pow(10, (double)(decimals < 0 ? -decimals : decimals));
  tt_val power = tt_like_f(b, x, ten);
  tt_val scaled = decimals < 0 ? tt_div(b, x, power) : tt_mul(b, x, power);
  tt_val rounded = tt_unary(b, TT_ROUND_EVEN, scaled);
  tt_out(L, 0, decimals < 0 ? tt_mul(b, rounded, power) : tt_div(b, rounded, power));
}

tt_val tt_trunc(tt_builder* b, tt_val x) {
  if (!tt_dtype_is_float(tt_dtype_of(b, x))) {
    return x;
  }
  tt_val up = tt_unary(b, TT_CEIL, x);
  return tt_where(b, tt_test_f(b, TT_LT, x, 0), up, tt_unary(b, TT_FLOOR, x));
}
TT_OP(trunc, "trunc(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_trunc(b, tt_arg(L, 0)));
}
TT_OP(frac, "frac(Tensor self) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  tt_out(L, 0, tt_sub(b, x, tt_trunc(b, x)));
}

tt_val tt_sign(tt_builder* b, tt_val x) {
  switch (tt_dtype_class(tt_dtype_of(b, x))) {
    case 'b':
      return x;
    case 'u':
      return tt_min(b, x, tt_like_i(b, x, 1));
    case 'f':
      // PyTorch's sign of NaN is 0.
      return tt_where(b, tt_is_nan(b, x), tt_like_f(b, x, 0), tt_unary(b, TT_SIGN, x));
    default:
      return tt_unary(b, TT_SIGN, x);
  }
}
TT_OP(sign, "sign(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_sign(b, tt_arg(L, 0)));
}
TT_OP(sgn, "sgn(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_sign(b, tt_arg(L, 0)));
}

tt_val tt_sign_bit(tt_builder* b, tt_val x) {
  tt_dtype dtype = tt_dtype_of(b, x);
  if (!tt_dtype_is_float(dtype)) {
    return tt_dtype_is_signed(dtype) ? tt_test_f(b, TT_LT, x, 0) : tt_expand_like(b, tt_const_i(b, TT_BOOL, 0), x);
  }
  size_t size = tt_dtype_size(dtype);
  tt_dtype bits = size == 1 ? TT_I8 : size == 2 ? TT_I16 : size == 4 ? TT_I32 : TT_I64;
  return tt_test_f(b, TT_LT, tt_bitcast(b, x, bits), 0);
}
TT_OP(signbit, "signbit(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_sign_bit(b, tt_arg(L, 0)));
}

TT_OP(nan_to_num, "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  tt_dtype dtype = tt_dtype_of(b, x);
  if (!tt_dtype_is_float(dtype) && !tt_dtype_is_complex(dtype)) {
    tt_out(L, 0, x);
    return;
  }
  tt_dtype real = tt_dtype_real(dtype);
  double largest = real == TT_F64    ? 0x1.fffffffffffffp1023
                   : real == TT_F32  ? 0x1.fffffep127
                   : real == TT_BF16 ? 0x1.fep127
                                     : 65504;
  tt_val nan = tt_arg_has(L, 1) ? tt_arg_scalar(L, 1, real) : tt_const_f(b, real, 0);
  tt_val high = tt_arg_has(L, 2) ? tt_arg_scalar(L, 2, real) : tt_const_f(b, real, largest);
  tt_val low = tt_arg_has(L, 3) ? tt_arg_scalar(L, 3, real) : tt_const_f(b, real, -largest);
  tt_val parts[2] = {tt_dtype_is_complex(dtype) ? tt_unary(b, TT_REAL, x) : x, TT_POISON};
  if (tt_dtype_is_complex(dtype)) {
    parts[1] = tt_unary(b, TT_IMAG, x);
  }
  for (int k = 0; k < (tt_dtype_is_complex(dtype) ? 2 : 1); ++k) {
    tt_val p = parts[k];
    tt_val out = tt_where(b, tt_is_nan(b, p), nan, p);
    out = tt_where(b, tt_test_f(b, TT_EQ, p, (double)INFINITY), high, out);
    parts[k] = tt_where(b, tt_test_f(b, TT_EQ, p, -(double)INFINITY), low, out);
  }
  tt_out(L, 0, tt_dtype_is_complex(dtype) ? tt_binary(b, TT_COMPLEX, parts[0], parts[1]) : parts[0]);
}

TT_OP(frexp, "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)") {
  // The exponent by halving or doubling in powers of two, exact for subnormal numbers too.
  tt_dtype dtype = tt_compute_dtype(L, TT_SAME, 1, (int[]){0});
  tt_val x = tt_arg_as(L, 0, dtype);
  tt_val size = tt_unary(b, TT_ABS, x);
  tt_val ordinary = tt_and(b, tt_unary(b, TT_IS_FINITE, x), tt_test_f(b, TT_NE, x, 0));
  tt_val m = tt_where(b, ordinary, size, tt_like_f(b, x, 0.5));
  tt_val e = tt_convert(b, tt_zeros(b, TT_I32, tt_rank_of(b, x), tt_type_of(b, x)->dims), TT_I32);
  for (int step = dtype == TT_F64 ? 512 : 64; step >= 1; step /= 2) {
    for (int twice = 0; twice < (step >= 64 && step == (dtype == TT_F64 ? 512 : 64) ? 3 : 1); ++twice) {
      tt_val big = tt_test_f(b, TT_GE, m, ldexp(1, step - 1));
      m = tt_where(b, big, tt_mul_f(b, m, ldexp(1, -step)), m);
      e = tt_where(b, big, tt_add_f(b, e, step), e);
      tt_val small = tt_test_f(b, TT_LT, m, ldexp(1, -step));
      m = tt_where(b, small, tt_mul_f(b, m, ldexp(1, step)), m);
      e = tt_where(b, small, tt_add_f(b, e, -step), e);
    }
  }
  tt_val high = tt_test_f(b, TT_GE, m, 1);
  m = tt_where(b, high, tt_mul_f(b, m, 0.5), m);
  e = tt_where(b, high, tt_add_f(b, e, 1), e);
  tt_val low = tt_test_f(b, TT_LT, m, 0.5);
  m = tt_where(b, low, tt_mul_f(b, m, 2), m);
  e = tt_where(b, low, tt_add_f(b, e, -1), e);
  tt_out(L, 0, tt_where(b, ordinary, tt_copy_sign(b, m, x), x));
  tt_out(L, 1, tt_where(b, ordinary, e, tt_like_i(b, e, 0)));
}

// ---- analytic -------------------------------------------------------------------------------------------------------

TT_ROW(exp, "exp(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_EXP);
TT_ROW(expm1, "expm1(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_EXPM1);
TT_ROW(log, "log(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_LOG);
TT_ROW(log1p, "log1p(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_LOG1P);
TT_ROW(sqrt, "sqrt(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_SQRT);
TT_ROW(rsqrt, "rsqrt(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_RSQRT);
TT_ROW(sin, "sin(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_SINE);
TT_ROW(cos, "cos(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_COSINE);
TT_ROW(tan, "tan(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_TAN);
TT_ROW(asin, "asin(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_CHLO_ASIN);
TT_ROW(acos, "acos(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_CHLO_ACOS);
TT_ROW(atan, "atan(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_CHLO_ATAN);
TT_ROW(sinh, "sinh(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_CHLO_SINH);
TT_ROW(cosh, "cosh(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_CHLO_COSH);
TT_ROW(tanh, "tanh(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_TANH);
TT_ROW(asinh, "asinh(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_CHLO_ASINH);
TT_ROW(acosh, "acosh(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_CHLO_ACOSH);
TT_ROW(atanh, "atanh(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_CHLO_ATANH);
TT_ROW(sigmoid, "sigmoid(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_LOGISTIC);
TT_ROW(erf, "erf(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_CHLO_ERF);
TT_ROW(erfc, "erfc(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_CHLO_ERFC);
TT_ROW(lgamma, "lgamma(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_CHLO_LGAMMA);

tt_val tt_arg_real(tt_lower* L, int i) {
  return tt_arg_as(L, i, tt_compute_dtype(L, TT_INT_TO_FLOAT, 1, &i));
}

tt_val tt_scale(tt_builder* b, tt_val x, double factor) {
  if (!tt_dtype_is_complex(tt_dtype_of(b, x))) {
    return tt_mul_f(b, x, factor);
  }
  tt_val re = tt_mul_f(b, tt_unary(b, TT_REAL, x), factor);
  return tt_binary(b, TT_COMPLEX, re, tt_mul_f(b, tt_unary(b, TT_IMAG, x), factor));
}

TT_OP(erfinv, "erfinv(Tensor self) -> Tensor") {
  // chlo's polynomial, and one step of Newton's to the last bits; near 1 by the complement, which is exact there.
  tt_val x = tt_arg_real(L, 0);
  tt_val size = tt_unary(b, TT_ABS, x);
  tt_val y = tt_unary(b, TT_ABS, tt_unary(b, TT_CHLO_ERF_INV, x));
  tt_val rest = tt_sub(b, tt_like_f(b, x, 1), size);
  tt_val low = tt_sub(b, tt_unary(b, TT_CHLO_ERF, y), size);
  tt_val high = tt_sub(b, rest, tt_unary(b, TT_CHLO_ERFC, y));
  tt_val miss = tt_where(b, tt_test_f(b, TT_LT, size, 0.5), low, high);
  tt_val slope = tt_mul_f(b, tt_unary(b, TT_EXP, tt_neg(b, tt_mul(b, y, y))), M_2_SQRTPI);
  tt_val better = tt_sub(b, y, tt_div(b, miss, slope));
  better = tt_where(b, tt_unary(b, TT_IS_FINITE, y), better, y);
  tt_out(L, 0, tt_where(b, tt_test_f(b, TT_LT, x, 0), tt_neg(b, better), better));
}

TT_OP(exp2, "exp2(Tensor self) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  bool complex = tt_dtype_is_complex(tt_dtype_of(b, x));
  tt_out(L, 0, complex ? tt_unary(b, TT_EXP, tt_scale(b, x, M_LN2)) : tt_bin(b, TT_POW, tt_like_f(b, x, 2), x));
}
TT_OP(log2, "log2(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_scale(b, tt_unary(b, TT_LOG, tt_arg_real(L, 0)), M_LOG2E));
}
TT_OP(log10, "log10(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_scale(b, tt_unary(b, TT_LOG, tt_arg_real(L, 0)), M_LOG10E));
}
TT_OP(deg2rad, "deg2rad(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_mul_f(b, tt_arg_real(L, 0), M_PI / 180));
}
TT_OP(rad2deg, "rad2deg(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_mul_f(b, tt_arg_real(L, 0), 180 / M_PI));
}
TT_OP(reciprocal, "reciprocal(Tensor self) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  tt_out(L, 0, tt_div(b, tt_like_f(b, x, 1), x));
}

TT_OP(sinc, "sinc(Tensor self) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  tt_val angle = tt_scale(b, x, M_PI);
  tt_val zero = tt_test_f(b, TT_EQ, x, 0);
  tt_val quotient = tt_div(b, tt_unary(b, TT_SINE, angle), angle);
  tt_out(L, 0, tt_where(b, zero, tt_like_f(b, x, 1), quotient));
}

tt_val tt_digamma(tt_builder* b, tt_val x) {
  // At zero PyTorch says infinity of the opposite sign, chlo says NaN.
  tt_val pole = tt_where(b, tt_sign_bit(b, x), tt_like_f(b, x, (double)INFINITY), tt_like_f(b, x, -(double)INFINITY));
  return tt_where(b, tt_test_f(b, TT_EQ, x, 0), pole, tt_unary(b, TT_CHLO_DIGAMMA, x));
}
TT_OP(digamma, "digamma(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_digamma(b, tt_arg_real(L, 0)));
}

TT_OP(logit, "logit(Tensor self, float? eps=None) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  if (!tt_dtype_is_float(tt_out_type(L, 0)->dtype)) {
    tt_unsupported(L, "expected a floating-point result");
    return;
  }
  if (tt_arg_has(L, 1)) {
    double eps = tt_arg_float(L, 1);
    x = tt_min(b, tt_max(b, x, tt_like_f(b, x, eps)), tt_like_f(b, x, 1 - eps));
  }
  tt_out(L, 0, tt_unary(b, TT_LOG, tt_div(b, x, tt_sub(b, tt_like_f(b, x, 1), x))));
}
TT_OP(logit_backward, "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor") {
  tt_val grad = tt_arg_real(L, 0);
  tt_val x = tt_arg_real(L, 1);
  tt_val one_minus = tt_sub(b, tt_like_f(b, x, 1), x);
  tt_val inside = tt_div(b, grad, tt_mul(b, x, one_minus));
  double low = tt_arg_has(L, 2) ? tt_arg_float(L, 2) : 0;
  tt_val out_of_range = tt_or(b, tt_test_f(b, TT_LT, x, low), tt_test_f(b, TT_GT, x, 1 - low));
  tt_val outside = tt_like_f(b, x, tt_arg_has(L, 2) ? 0 : (double)NAN);
  tt_out(L, 0, tt_where(b, out_of_range, outside, inside));
}
