// SPDX-License-Identifier: Apache-2.0
//
// Elementwise arithmetic of two and three operands.
#include <math.h>

#include "ops/pointwise.h"

tt_val tt_arg_either(tt_lower* L, int i, tt_dtype dtype) {
  return tt_arg_info(L, i) != NULL ? tt_arg_as(L, i, dtype) : tt_arg_scalar(L, i, dtype);
}

tt_pair tt_arg_pair(tt_lower* L, int i, int j, tt_promotion promotion) {
  tt_pair p;
  p.dtype = tt_compute_dtype(L, promotion, 2, (int[]){i, j});
  p.x = tt_arg_either(L, i, p.dtype);
  p.y = tt_arg_either(L, j, p.dtype);
  return p;
}

// ---- sums and products ----------------------------------------------------------------------------------------------

tt_val tt_add_scaled(tt_builder* b, tt_prim prim, tt_val x, tt_val y, tt_val scale) {
  bool boolean = tt_dtype_of(b, y) == TT_BOOL;
  double one;
  if (!tt_val_is_const(b, scale, &one) || one != 1) {
    y = tt_bin(b, boolean ? TT_AND : TT_MUL, y, scale);
  }
  return tt_bin(b, boolean ? TT_OR : prim, x, y);
}

static void add_scaled(tt_lower* L, tt_builder* b, tt_prim prim) {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_SAME);
  tt_out(L, 0, tt_add_scaled(b, prim, p.x, p.y, tt_arg_scalar(L, 2, p.dtype)));
}
TT_OP(add, "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor") {
  add_scaled(L, b, TT_ADD);
}
TT_OP(sub, "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor") {
  add_scaled(L, b, TT_SUB);
}
TT_OP(rsub, "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor") {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_SAME);
  tt_out(L, 0, tt_add_scaled(b, TT_SUB, p.y, p.x, tt_arg_scalar(L, 2, p.dtype)));
}
TT_ROW2(mul, "mul.Tensor(Tensor self, Tensor other) -> Tensor", TT_SAME, TT_MUL);

TT_OP(add_relu, "_add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor") {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_SAME);
  tt_val sum = tt_add_scaled(b, TT_ADD, p.x, p.y, tt_arg_scalar(L, 2, p.dtype));
  tt_out(L, 0, tt_max(b, sum, tt_like_f(b, sum, 0)));
}

TT_OP(addcmul, "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor") {
  tt_dtype dtype = tt_compute_dtype(L, TT_SAME, 3, (int[]){0, 1, 2});
  tt_val product = tt_mul(b, tt_arg_as(L, 1, dtype), tt_arg_as(L, 2, dtype));
  tt_out(L, 0, tt_add_scaled(b, TT_ADD, tt_arg_as(L, 0, dtype), product, tt_arg_scalar(L, 3, dtype)));
}
TT_OP(addcdiv, "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor") {
  tt_dtype dtype = tt_compute_dtype(L, TT_SAME, 3, (int[]){0, 1, 2});
  tt_val quotient = tt_div(b, tt_arg_as(L, 1, dtype), tt_arg_as(L, 2, dtype));
  tt_out(L, 0, tt_add_scaled(b, TT_ADD, tt_arg_as(L, 0, dtype), quotient, tt_arg_scalar(L, 3, dtype)));
}

tt_val tt_lerp(tt_builder* b, tt_val x, tt_val end, tt_val weight) {
  // From the nearer end, as PyTorch, so that weight 1 gives `end` exactly.
  tt_val gap = tt_sub(b, end, x);
  tt_val from_start = tt_add(b, x, tt_mul(b, weight, gap));
  tt_val rest = tt_sub(b, tt_like_f(b, weight, 1), weight);
  tt_val from_end = tt_sub(b, end, tt_mul(b, gap, rest));
  tt_val size = tt_unary(b, TT_ABS, weight);
  tt_val near = tt_test_f(b, TT_LT, size, 0.5);
  return tt_where(b, near, from_start, from_end);
}
static void lerp(tt_lower* L, tt_builder* b) {
  tt_dtype dtype = tt_compute_dtype(L, TT_SAME, 2, (int[]){0, 1});
  tt_val x = tt_arg_as(L, 0, dtype);
  tt_val end = tt_arg_as(L, 1, dtype);
  tt_out(L, 0, tt_lerp(b, x, end, tt_arg_either(L, 2, dtype)));
}
TT_OP(lerp_scalar, "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor") {
  lerp(L, b);
}
TT_OP(lerp_tensor, "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor") {
  lerp(L, b);
}

// ---- quotients and remainders ---------------------------------------------------------------------------------------

tt_val tt_true_div(tt_builder* b, tt_val x, tt_val y) {
  return tt_div(b, x, y);
}

static tt_val signs_differ(tt_builder* b, tt_val x, tt_val y) {
  return tt_bin(b, TT_XOR, tt_test_f(b, TT_LT, x, 0), tt_test_f(b, TT_LT, y, 0));
}

tt_val tt_remainder(tt_builder* b, tt_val x, tt_val y) {
  tt_val mod = tt_bin(b, TT_REM, x, y);
  if (!tt_dtype_is_signed(tt_dtype_of(b, mod))) {
    return mod;
  }
  tt_val fix = tt_and(b, tt_test_f(b, TT_NE, mod, 0), signs_differ(b, mod, y));
  return tt_where(b, fix, tt_add(b, mod, y), mod);
}

tt_val tt_floor_div(tt_builder* b, tt_val x, tt_val y) {
  tt_dtype dtype = tt_dtype_of(b, x);
  tt_val quotient = tt_div(b, x, y);
  if (!tt_dtype_is_signed(dtype)) {
    return quotient;
  }
  tt_val mod = tt_bin(b, TT_REM, x, y);
  tt_val below = tt_and(b, tt_test_f(b, TT_NE, mod, 0), signs_differ(b, mod, y));
  if (!tt_dtype_is_float(dtype)) {
    return tt_where(b, below, tt_add_f(b, quotient, -1), quotient);
  }
  // As Python: (x - mod) / y is within rounding of a whole number; the quotient itself may round up to the next.
  tt_val whole = tt_div(b, tt_sub(b, x, mod), y);
  whole = tt_where(b, below, tt_add_f(b, whole, -1), whole);
  tt_val floor = tt_unary(b, TT_FLOOR, whole);
  tt_val high = tt_test_f(b, TT_GT, tt_sub(b, whole, floor), 0.5);
  floor = tt_where(b, high, tt_add_f(b, floor, 1), floor);
  tt_val zero = tt_test_f(b, TT_EQ, whole, 0);
  floor = tt_where(b, zero, tt_copy_sign(b, tt_like_f(b, whole, 0), quotient), floor);
  return tt_where(b, tt_test_f(b, TT_EQ, y, 0), quotient, floor);
}

static void divide(tt_lower* L, tt_builder* b, const char* mode) {
  tt_pair p = tt_arg_pair(L, 0, 1, *mode ? TT_SAME : TT_INT_TO_FLOAT);
  if (p.dtype == TT_BOOL) {
    p.x = tt_convert(b, p.x, TT_U8);
    p.y = tt_convert(b, p.y, TT_U8);
  }
  if (*mode == 't') {
    // PyTorch rounds the quotient to the result's type before it cuts.
    tt_val quotient = tt_div(b, p.x, p.y);
    tt_dtype dtype = tt_common_dtype2(L, 0, 1);
    if (dtype == TT_BF16 || dtype == TT_F16) {
      quotient = tt_reduce_precision(b, quotient, dtype == TT_BF16 ? 8 : 5, dtype == TT_BF16 ? 7 : 10);
    }
    tt_out(L, 0, tt_trunc(b, quotient));
    return;
  }
  tt_out(L, 0, *mode == 'f' ? tt_floor_div(b, p.x, p.y) : tt_true_div(b, p.x, p.y));
}
TT_OP(div, "div.Tensor(Tensor self, Tensor other) -> Tensor") {
  divide(L, b, "");
}
TT_OP(div_mode, "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor") {
  divide(L, b, tt_arg_string(L, 2));
}
TT_OP(floor_divide, "floor_divide(Tensor self, Tensor other) -> Tensor") {
  divide(L, b, "floor");
}
TT_ROW2(fmod, "fmod.Tensor(Tensor self, Tensor other) -> Tensor", TT_SAME, TT_REM);
TT_OP(remainder, "remainder.Tensor(Tensor self, Tensor other) -> Tensor") {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_SAME);
  tt_out(L, 0, tt_remainder(b, p.x, p.y));
}
TT_OP(remainder_number, "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor") {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_SAME);
  tt_out(L, 0, tt_remainder(b, p.x, p.y));
}

// ---- powers ---------------------------------------------------------------------------------------------------------

tt_val tt_power(tt_builder* b, tt_val x, tt_val y) {
  tt_dtype dtype = tt_dtype_of(b, x);
  if (dtype == TT_BOOL) {
    return tt_or(b, x, tt_not(b, y));
  }
  double known = -1;
  if (tt_dtype_class(dtype) == 'i' && !(tt_val_is_const(b, y, &known) && known >= 0)) {
    // Negative powers of integers are 0 but for 1 and -1.
    tt_val negative = tt_test_f(b, TT_LT, y, 0);
    tt_val odd = tt_test_f(b, TT_NE, tt_and(b, y, tt_like_i(b, y, 1)), 0);
    tt_val of_minus_one = tt_where(b, odd, tt_like_i(b, y, -1), tt_like_i(b, y, 1));
    tt_val one = tt_convert(b, tt_test_f(b, TT_EQ, x, 1), dtype);
    tt_val unit = tt_where(b, tt_test_f(b, TT_EQ, x, -1), of_minus_one, one);
    return tt_where(b, negative, unit, tt_bin(b, TT_POW, x, tt_max(b, y, tt_like_i(b, y, 0))));
  }
  tt_val out = tt_bin(b, TT_POW, x, y);
  if (tt_dtype_is_complex(dtype)) {
    // By logarithms 0 to a power is NaN.
    tt_val zero = tt_test_f(b, TT_EQ, x, 0);
    tt_val vanishes = tt_and(b, zero, tt_test_f(b, TT_GT, tt_unary(b, TT_REAL, y), 0));
    out = tt_where(b, vanishes, tt_like_f(b, x, 0), out);
    out = tt_where(b, tt_test_f(b, TT_EQ, y, 0), tt_like_f(b, x, 1), out);
  }
  return out;
}

tt_val tt_power_f(tt_builder* b, tt_val x, double y) {
  bool integer = !tt_dtype_is_float(tt_dtype_of(b, x)) && !tt_dtype_is_complex(tt_dtype_of(b, x));
  tt_val one = tt_like_f(b, x, 1);
  if (tt_dtype_of(b, x) == TT_BOOL) {
    return y == 0 ? tt_full_like(b, x, 1) : x;
  }
  if (y == 1) {
    return x;
  }
  if (y == 2) {
    return tt_mul(b, x, x);
  }
  if (y == 3) {
    return tt_mul(b, tt_mul(b, x, x), x);
  }
  if (!integer && y == 0.5) {
    return tt_unary(b, TT_SQRT, x);
  }
  if (!integer && y == -0.5) {
    return tt_unary(b, TT_RSQRT, x);
  }
  if (!integer && y == -1) {
    return tt_div(b, one, x);
  }
  if (!integer && y == -2) {
    return tt_div(b, one, tt_mul(b, x, x));
  }
  return tt_power(b, x, tt_like_f(b, x, y));
}

TT_OP(pow, "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor") {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_SAME);
  tt_out(L, 0, tt_power(b, p.x, p.y));
}
TT_OP(pow_scalar, "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor") {
  tt_dtype dtype = tt_compute_dtype(L, TT_SAME, 2, (int[]){0, 1});
  tt_val x = tt_arg_as(L, 0, dtype);
  if (tt_arg_number_class(L, 1) == 'c') {
    tt_out(L, 0, tt_power(b, x, tt_arg_scalar(L, 1, dtype)));
    return;
  }
  // Baked in: exponents hardly ever change, and x * x is much faster than a power.
  tt_out(L, 0, tt_power_f(b, x, tt_arg_float(L, 1)));
}
TT_OP(pow_base, "pow.Scalar(Scalar self, Tensor exponent) -> Tensor") {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_SAME);
  tt_out(L, 0, tt_power(b, p.x, p.y));
}

TT_OP(ldexp, "ldexp.Tensor(Tensor self, Tensor other) -> Tensor") {
  tt_dtype dtype = tt_compute_dtype(L, TT_INT_TO_FLOAT, 2, (int[]){0, 1});
  if (tt_dtype_is_integral(tt_out_type(L, 0)->dtype) || tt_out_type(L, 0)->dtype == TT_BOOL) {
    tt_unsupported(L, "expected a floating-point result");
    return;
  }
  tt_val y = tt_arg_as(L, 1, dtype);
  tt_out(L, 0, tt_mul(b, tt_arg_as(L, 0, dtype), tt_bin(b, TT_POW, tt_like_f(b, y, 2), y)));
}

// ---- largest and smallest -------------------------------------------------------------------------------------------

TT_ROW2(maximum, "maximum(Tensor self, Tensor other) -> Tensor", TT_NO_COMPUTE, TT_MAX);
TT_ROW2(minimum, "minimum(Tensor self, Tensor other) -> Tensor", TT_NO_COMPUTE, TT_MIN);
// NaN only if both are.
static void other_than_nan(tt_lower* L, tt_builder* b, tt_prim prim) {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_NO_COMPUTE);
  tt_val both = tt_bin(b, prim, p.x, p.y);
  both = tt_where(b, tt_is_nan(b, p.y), p.x, both);
  tt_out(L, 0, tt_where(b, tt_is_nan(b, p.x), p.y, both));
}
TT_OP(fmax, "fmax(Tensor self, Tensor other) -> Tensor") {
  other_than_nan(L, b, TT_MAX);
}
TT_OP(fmin, "fmin(Tensor self, Tensor other) -> Tensor") {
  other_than_nan(L, b, TT_MIN);
}

// ---- bits and signs -------------------------------------------------------------------------------------------------

tt_val tt_copy_sign(tt_builder* b, tt_val size, tt_val sign) {
  tt_val positive = tt_unary(b, TT_ABS, size);
  tt_val out = tt_where(b, tt_sign_bit(b, sign), tt_neg(b, positive), positive);
  return out;
}
TT_OP(copysign, "copysign.Tensor(Tensor self, Tensor other) -> Tensor") {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_INT_TO_FLOAT);
  tt_out(L, 0, tt_copy_sign(b, p.x, p.y));
}
TT_OP(nextafter, "nextafter(Tensor self, Tensor other) -> Tensor") {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_NO_COMPUTE);
  tt_out(L, 0, tt_bin(b, TT_CHLO_NEXT_AFTER, p.x, p.y));
}

TT_OP(hypot, "hypot(Tensor self, Tensor other) -> Tensor") {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_SAME);
  tt_val x = tt_unary(b, TT_ABS, p.x);
  tt_val y = tt_unary(b, TT_ABS, p.y);
  tt_val large = tt_max(b, x, y);
  tt_val ratio = tt_div(b, tt_min(b, x, y), large);
  tt_val root = tt_unary(b, TT_SQRT, tt_add_f(b, tt_mul(b, ratio, ratio), 1));
  tt_val out = tt_where(b, tt_test_f(b, TT_EQ, large, 0), tt_like_f(b, large, 0), tt_mul(b, large, root));
  tt_val infinite = tt_or(b, tt_is_inf(b, p.x), tt_is_inf(b, p.y));
  tt_out(L, 0, tt_where(b, infinite, tt_like_f(b, out, (double)INFINITY), out));
}
TT_ROW2(atan2, "atan2(Tensor self, Tensor other) -> Tensor", TT_INT_TO_FLOAT, TT_ATAN2);

TT_OP(heaviside, "heaviside(Tensor self, Tensor values) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  tt_val at_zero = tt_arg_as(L, 1, tt_dtype_of(b, x));
  tt_val step = tt_convert(b, tt_test_f(b, TT_GT, x, 0), tt_dtype_of(b, x));
  tt_val zero = tt_test_f(b, TT_EQ, x, 0);
  tt_val out = tt_bin(b, tt_dtype_of(b, x) == TT_BOOL ? TT_AND : TT_MUL, step, tt_full_like(b, at_zero, 1));
  tt_out(L, 0, tt_where(b, zero, at_zero, out));
}

TT_ROW2(bitwise_and, "bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", TT_NO_COMPUTE, TT_AND);
TT_ROW2(bitwise_or, "bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", TT_NO_COMPUTE, TT_OR);
TT_ROW2(bitwise_xor, "bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", TT_NO_COMPUTE, TT_XOR);

// Shifts by less than 0 or by the width and more empty the number (to its sign, for right shifts).
static void shift(tt_lower* L, tt_builder* b, bool left) {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_NO_COMPUTE);
  bool is_signed = tt_dtype_is_signed(p.dtype);
  int64_t width = 8 * (int64_t)tt_dtype_size(p.dtype);
  int64_t most = left || !is_signed ? width : width - 1;
  tt_val wrong = tt_test(b, TT_GE, p.y, tt_like_i(b, p.y, most));
  if (is_signed) {
    wrong = tt_or(b, wrong, tt_test_f(b, TT_LT, p.y, 0));
  }
  tt_val by = tt_where(b, wrong, tt_like_i(b, p.y, 0), p.y);
  tt_val out = tt_bin(b, left ? TT_SHL : is_signed ? TT_SHR : TT_SHR_LOGICAL, p.x, by);
  tt_val empty = tt_like_i(b, p.x, 0);
  if (!left && is_signed) {
    empty = tt_bin(b, TT_SHR, p.x, tt_like_i(b, p.x, width - 1));
  }
  tt_out(L, 0, tt_where(b, wrong, empty, out));
}
TT_OP(left_shift, "bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor") {
  shift(L, b, true);
}
TT_OP(right_shift, "bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor") {
  shift(L, b, false);
}
TT_OP(lshift, "__lshift__.Tensor(Tensor self, Tensor other) -> Tensor") {
  shift(L, b, true);
}
TT_OP(rshift, "__rshift__.Tensor(Tensor self, Tensor other) -> Tensor") {
  shift(L, b, false);
}
TT_OP(lshift_scalar, "__lshift__.Scalar(Tensor self, Scalar other) -> Tensor") {
  shift(L, b, true);
}
TT_OP(rshift_scalar, "__rshift__.Scalar(Tensor self, Scalar other) -> Tensor") {
  shift(L, b, false);
}

// ---- number theory --------------------------------------------------------------------------------------------------

static void not_yet_zero(tt_builder* b, const tt_val* args, tt_val* results, __attribute__((unused)) void* ctx) {
  int64_t dims[TT_MAX_RANK];
  int rank = tt_rank_of(b, args[1]);
  for (int d = 0; d < rank; ++d) {
    dims[d] = d;
  }
  results[0] = tt_reduce(b, TT_REDUCE_OR, tt_test_f(b, TT_NE, args[1], 0), rank, dims);
}
static void euclid_step(tt_builder* b, const tt_val* args, tt_val* results, __attribute__((unused)) void* ctx) {
  tt_val done = tt_test_f(b, TT_EQ, args[1], 0);
  tt_val divisor = tt_where(b, done, tt_like_i(b, args[1], 1), args[1]);
  results[0] = tt_where(b, done, args[0], args[1]);
  results[1] = tt_where(b, done, args[1], tt_bin(b, TT_REM, args[0], divisor));
}
static tt_val magnitude(tt_builder* b, tt_val x) {
  return tt_dtype_is_signed(tt_dtype_of(b, x)) ? tt_unary(b, TT_ABS, x) : x;
}
static tt_val gcd(tt_builder* b, tt_val x, tt_val y) {
  tt_val state[2] = {magnitude(b, x), magnitude(b, y)};
  tt_val zero = tt_mul_f(b, tt_add(b, state[0], state[1]), 0);  // in the sizes both broadcast to
  state[0] = tt_add(b, state[0], zero);
  state[1] = tt_add(b, state[1], zero);
  tt_val out[2];
  tt_while(b, 2, state, not_yet_zero, euclid_step, NULL, out);
  return out[0];
}
TT_OP(gcd, "gcd(Tensor self, Tensor other) -> Tensor") {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_NO_COMPUTE);
  tt_out(L, 0, gcd(b, p.x, p.y));
}
TT_OP(lcm, "lcm(Tensor self, Tensor other) -> Tensor") {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_NO_COMPUTE);
  tt_val divisor = gcd(b, p.x, p.y);
  tt_val none = tt_test_f(b, TT_EQ, divisor, 0);
  tt_val quotient = tt_div(b, p.x, tt_where(b, none, tt_like_i(b, divisor, 1), divisor));
  tt_val out = magnitude(b, tt_mul(b, quotient, p.y));
  tt_out(L, 0, tt_where(b, none, tt_like_i(b, out, 0), out));
}

// ---- logarithms -----------------------------------------------------------------------------------------------------

static void log_add_exp(tt_lower* L, tt_builder* b, double ln_base) {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_INT_TO_FLOAT);
  if (tt_dtype_is_complex(p.dtype)) {
    // By the operand of the larger real part.
    tt_val first = tt_test(b, TT_GE, tt_unary(b, TT_REAL, p.x), tt_unary(b, TT_REAL, p.y));
    tt_val gap = tt_sub(b, p.x, p.y);
    tt_val large = tt_where(b, first, tt_add(b, p.y, gap), p.y);
    tt_val away = tt_where(b, first, tt_neg(b, gap), gap);
    tt_out(L, 0, tt_add(b, large, tt_unary(b, TT_LOG1P, tt_unary(b, TT_EXP, away))));
    return;
  }
  tt_val large = tt_max(b, p.x, p.y);
  tt_val away = tt_neg(b, tt_unary(b, TT_ABS, tt_sub(b, p.x, p.y)));
  tt_val power = ln_base == 1 ? tt_unary(b, TT_EXP, away) : tt_bin(b, TT_POW, tt_like_f(b, away, 2), away);
  tt_val out = tt_add(b, large, tt_mul_f(b, tt_unary(b, TT_LOG1P, power), 1 / ln_base));
  tt_val same_infinity = tt_and(b, tt_test(b, TT_EQ, p.x, p.y), tt_is_inf(b, p.x));
  tt_out(L, 0, tt_where(b, same_infinity, large, out));
}
TT_OP(logaddexp, "logaddexp(Tensor self, Tensor other) -> Tensor") {
  log_add_exp(L, b, 1);
}
TT_OP(logaddexp2, "logaddexp2(Tensor self, Tensor other) -> Tensor") {
  log_add_exp(L, b, M_LN2);
}

static void x_log_y(tt_lower* L, tt_builder* b, tt_prim log) {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_INT_TO_FLOAT);
  tt_val out = tt_mul(b, p.x, tt_unary(b, log, p.y));
  out = tt_where(b, tt_test_f(b, TT_EQ, p.x, 0), tt_like_f(b, out, 0), out);
  tt_out(L, 0, tt_where(b, tt_is_nan(b, p.y), tt_like_f(b, out, (double)NAN), out));
}
TT_OP(xlogy, "xlogy.Tensor(Tensor self, Tensor other) -> Tensor") {
  x_log_y(L, b, TT_LOG);
}
TT_OP(xlog1py, "special_xlog1py(Tensor self, Tensor other) -> Tensor") {
  x_log_y(L, b, TT_LOG1P);
}
