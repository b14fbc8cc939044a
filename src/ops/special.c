// SPDX-License-Identifier: Apache-2.0
//
// torch.special: gamma functions, the normal distribution, orthogonal polynomials, windows.
#include "ops/special.h"

#include <math.h>

#include "ops/special_tables.h"

#define LENGTH(table) ((int)(sizeof(table) / sizeof *(table)))
#define RATIO(x, over, under) tt_div(b, tt_horner(b, x, LENGTH(over), over), tt_horner(b, x, LENGTH(under), under))

static tt_val at_least(tt_builder* b, tt_val x, double low) {
  return tt_max(b, x, tt_like_f(b, x, low));
}
static tt_val at_most(tt_builder* b, tt_val x, double high) {
  return tt_min(b, x, tt_like_f(b, x, high));
}
static tt_val log_of(tt_builder* b, tt_val x) {
  return tt_unary(b, TT_LOG, x);
}

// ---- polygamma and zeta ---------------------------------------------------------------------------------------------

// Sums up (q + i)^-s while q + i <= 0; chlo's expansion is exact only right of there. State: a counter, s, q, and
// the sum.
static void left_of_zero(tt_builder* b, const tt_val* args, tt_val* results, __attribute__((unused)) void* ctx) {
  int64_t dims[TT_MAX_RANK];
  int rank = tt_rank_of(b, args[2]);
  for (int d = 0; d < rank; ++d) {
    dims[d] = d;
  }
  tt_val left = tt_reduce(b, TT_REDUCE_OR, tt_test_f(b, TT_LT, args[2], 0), rank, dims);
  results[0] = tt_and(b, left, tt_test_f(b, TT_LT, args[0], 100000));
}
static void zeta_step(tt_builder* b, const tt_val* args, tt_val* results, __attribute__((unused)) void* ctx) {
  tt_val s = args[1], q = args[2];
  tt_val negative = tt_test_f(b, TT_LT, q, 0);
  tt_val term = tt_bin(b, TT_POW, q, tt_neg(b, s));
  results[0] = tt_add_f(b, args[0], 1);
  results[1] = s;
  results[2] = tt_where(b, negative, tt_add_f(b, q, 1), q);
  results[3] = tt_where(b, negative, tt_add(b, args[3], term), args[3]);
}
static tt_val zeta(tt_builder* b, tt_val s, tt_val q) {
  tt_val zero = tt_mul_f(b, tt_add(b, tt_full_like(b, s, 0), tt_full_like(b, q, 0)), 0);
  tt_val state[4] = {tt_const_f(b, tt_dtype_of(b, s), 0), tt_expand_like(b, s, zero), tt_expand_like(b, q, zero), zero};
  tt_val moved[4];
  tt_while(b, 4, state, left_of_zero, zeta_step, NULL, moved);
  return tt_add(b, moved[3], tt_binary(b, TT_CHLO_ZETA, moved[1], moved[2]));
}

TT_OP(zeta, "special_zeta(Tensor self, Tensor other) -> Tensor") {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_INT_TO_FLOAT);
  tt_val infinity = tt_const_f(b, p.dtype, (double)INFINITY);
  tt_val nan = tt_const_f(b, p.dtype, (double)NAN);
  tt_val out = zeta(b, p.x, p.y);
  // Poles at q = 0, -1, ...; left of them only whole x; nothing for x < 1.
  tt_val left = tt_test_f(b, TT_LE, p.y, 0);
  tt_val whole = tt_test(b, TT_EQ, p.y, tt_unary(b, TT_FLOOR, p.y));
  tt_val fraction = tt_test(b, TT_NE, p.x, tt_unary(b, TT_FLOOR, p.x));
  out = tt_where(b, left, tt_where(b, whole, infinity, tt_where(b, fraction, nan, out)), out);
  out = tt_where(b, tt_test_f(b, TT_LT, p.x, 1), nan, out);
  tt_out(L, 0, tt_where(b, tt_test_f(b, TT_EQ, p.x, 1), infinity, out));
}
// By reflection, recurrence to x >= 6, and the asymptotic series.
static tt_val trigamma(tt_builder* b, tt_val x) {
  static const double series[] = {1.0 / 42, -1.0 / 30, 1.0 / 6};
  tt_val one = tt_like_f(b, x, 1);
  tt_val reflected = tt_test_f(b, TT_LT, x, 0.5);
  tt_val sine = tt_unary(b, TT_SINE, tt_mul_f(b, x, M_PI));
  tt_val pole = tt_div(b, tt_like_f(b, x, M_PI * M_PI), tt_mul(b, sine, sine));
  tt_val y = tt_where(b, reflected, tt_sub(b, one, x), x);
  tt_val sum = tt_full_like(b, x, 0);
  for (int k = 0; k < 6; ++k) {
    sum = tt_add(b, sum, tt_div(b, one, tt_mul(b, y, y)));
    y = tt_add_f(b, y, 1);
  }
  tt_val square = tt_div(b, one, tt_mul(b, y, y));
  tt_val tail =
      tt_add(b, tt_add_f(b, tt_div(b, tt_like_f(b, y, 0.5), y), 1), tt_mul(b, square, tt_horner(b, square, 3, series)));
  sum = tt_add(b, sum, tt_div(b, tail, y));
  return tt_where(b, reflected, tt_sub(b, pole, sum), sum);
}
TT_OP(polygamma, "polygamma(int n, Tensor self) -> Tensor") {
  tt_val x = tt_arg_real(L, 1);
  int64_t n = tt_arg_int(L, 0);
  if (n <= 1) {
    tt_out(L, 0, n == 0 ? tt_digamma(b, x) : trigamma(b, x));
    return;
  }
  tt_val out =
      tt_mul_f(b, zeta(b, tt_full_like(b, x, (double)n + 1), x), (n % 2 != 0 ? 1 : -1) * tgamma((double)n + 1));
  tt_val pole = tt_and(b, tt_test_f(b, TT_LE, x, 0), tt_test(b, TT_EQ, x, tt_unary(b, TT_FLOOR, x)));
  tt_out(L, 0, tt_where(b, pole, tt_like_f(b, x, (n % 2 != 0 ? 1 : -1) * (double)INFINITY), out));
}
TT_OP(mvlgamma, "mvlgamma(Tensor self, int p) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  int64_t p = tt_arg_int(L, 1);
  tt_val sum = tt_full_like(b, x, (double)(p * (p - 1)) / 4 * log(M_PI));
  for (int64_t k = 0; k < p; ++k) {
    sum = tt_add(b, sum, tt_unary(b, TT_CHLO_LGAMMA, tt_add_f(b, x, -0.5 * (double)k)));
  }
  tt_out(L, 0, sum);
}

// ---- incomplete gamma -----------------------------------------------------------------------------------------------

// x^a exp(-x) / gamma(a + 1).
static tt_val gamma_factor(tt_builder* b, tt_val a, tt_val x) {
  static const double stirling[] = {-1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12};
  tt_val plain = tt_sub(b, tt_sub(b, tt_mul(b, a, log_of(b, x)), x), tt_unary(b, TT_CHLO_LGAMMA, tt_add_f(b, a, 1)));
  // Large a: about the peak, where the terms above cancel.
  tt_val big = at_least(b, a, 10);
  tt_val gap = tt_div(b, tt_sub(b, x, big), big);
  tt_val slope = tt_mul(b, big, tt_sub(b, tt_unary(b, TT_LOG1P, gap), gap));
  tt_val inverse = tt_div(b, tt_like_f(b, big, 1), big);
  tt_val rest = tt_mul(b, inverse, tt_horner(b, tt_mul(b, inverse, inverse), LENGTH(stirling), stirling));
  tt_val peak = tt_sub(b, tt_sub(b, slope, rest), tt_mul_f(b, log_of(b, tt_mul_f(b, big, 2 * M_PI)), 0.5));
  return tt_unary(b, TT_EXP, tt_where(b, tt_test_f(b, TT_LT, a, 10), plain, peak));
}

// Loop state of both expansions: a counter, a, x, then the sum and its last term, or the continued fraction.
static void any_left(tt_builder* b, const tt_val* args, tt_val* results, __attribute__((unused)) void* ctx) {
  int64_t dims[TT_MAX_RANK];
  int rank = tt_rank_of(b, args[1]);
  for (int d = 0; d < rank; ++d) {
    dims[d] = d;
  }
  tt_val left = tt_reduce(b, TT_REDUCE_OR, args[1], rank, dims);
  results[0] = tt_and(b, left, tt_test_f(b, TT_LT, args[0], 2000));
}
// sum of x^k / ((a + 1) ... (a + k)).
static void series_step(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  tt_val a = args[2], x = args[3], sum = args[4], term = args[5];
  tt_val k = tt_add_f(b, args[0], 1);
  term = tt_mul(b, term, tt_div(b, x, tt_add(b, a, k)));
  sum = tt_add(b, sum, term);
  results[0] = k;
  results[1] = tt_test(b, TT_GT, term, tt_mul_f(b, sum, *(double*)ctx));
  results[2] = a;
  results[3] = x;
  results[4] = sum;
  results[5] = term;
}
// Lentz's evaluation of 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)).
static void fraction_step(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  tt_val a = args[2], x = args[3], h = args[4], c = args[5], d = args[6];
  tt_val k = tt_add_f(b, args[0], 1);
  tt_val numerator = tt_mul(b, tt_neg(b, k), tt_sub(b, k, a));
  tt_val step = tt_add_f(b, tt_sub(b, tt_add(b, x, tt_mul_f(b, k, 2)), a), 1);
  d = tt_div(b, tt_like_f(b, d, 1), tt_add(b, tt_mul(b, numerator, d), step));
  c = tt_add(b, step, tt_div(b, numerator, c));
  tt_val change = tt_mul(b, c, d);
  results[0] = k;
  results[1] = tt_test_f(b, TT_GT, tt_unary(b, TT_ABS, tt_add_f(b, change, -1)), *(double*)ctx);
  results[2] = a;
  results[3] = x;
  results[4] = tt_mul(b, h, change);
  results[5] = c;
  results[6] = d;
}

// Regularized: lower (P) or upper (Q).
static tt_val incomplete_gamma(tt_builder* b, tt_val a, tt_val x, bool upper) {
  tt_val zero = tt_mul_f(b, tt_add(b, tt_full_like(b, a, 0), tt_full_like(b, x, 0)), 0);
  a = tt_expand_like(b, a, zero);
  x = tt_expand_like(b, x, zero);
  double epsilon = tt_dtype_of(b, a) == TT_F64 ? 0x1p-54 : 0x1p-26;
  double tolerance = tt_dtype_of(b, a) == TT_F64 ? 0x1p-52 : 0x1p-23;
  // The series near the peak too: there the fraction takes hundreds of roundings.
  tt_val reach = tt_add(b, a, tt_unary(b, TT_SQRT, at_least(b, a, 0)));
  tt_val by_series = tt_or(b, tt_test_f(b, TT_LE, x, 1.1), tt_test(b, TT_LE, x, reach));
  tt_val ordinary = tt_and(b, tt_and(b, tt_test_f(b, TT_GT, a, 0), tt_test_f(b, TT_GT, x, 0)),
                           tt_and(b, tt_unary(b, TT_IS_FINITE, a), tt_unary(b, TT_IS_FINITE, x)));
  tt_val one = tt_full_like(b, a, 1);
  // What another formula serves is moved to where this one ends at once.
  tt_val to_sum = tt_and(b, ordinary, by_series);
  tt_val sa = tt_where(b, to_sum, a, one);
  tt_val sx = tt_where(b, to_sum, x, zero);
  tt_val series[6] = {tt_const_f(b, tt_dtype_of(b, a), 0), to_sum, sa, sx, one, one};
  tt_val summed[6];
  tt_while(b, 6, series, any_left, series_step, &epsilon, summed);
  tt_val to_fraction = tt_and(b, ordinary, tt_not(b, by_series));
  tt_val fa = tt_where(b, to_fraction, a, one);
  tt_val fx = tt_where(b, to_fraction, x, tt_full_like(b, a, 2));
  tt_val first = tt_add_f(b, tt_sub(b, fx, fa), 1);
  tt_val d = tt_div(b, one, first);
  tt_val fraction[7] = {tt_const_f(b, tt_dtype_of(b, a), 0), to_fraction, fa, fx, d, tt_full_like(b, a, 1e30), d};
  tt_val turned[7];
  tt_while(b, 7, fraction, any_left, fraction_step, &tolerance, turned);
  tt_val lower = tt_mul(b, gamma_factor(b, sa, tt_where(b, to_sum, x, one)), summed[4]);
  tt_val higher = tt_mul(b, tt_mul(b, gamma_factor(b, fa, fx), fa), turned[4]);
  tt_val out = upper ? tt_where(b, by_series, tt_sub(b, one, lower), higher)
                     : tt_where(b, by_series, lower, tt_sub(b, one, higher));
  // The edges.
  tt_val all = tt_full_like(b, a, upper ? 0 : 1);
  tt_val none = tt_full_like(b, a, upper ? 1 : 0);
  tt_val nan = tt_full_like(b, a, (double)NAN);
  out = tt_where(b, tt_is_inf(b, x), all, out);
  out = tt_where(b, tt_is_inf(b, a), tt_where(b, tt_is_inf(b, x), nan, none), out);
  out = tt_where(b, tt_test_f(b, TT_EQ, x, 0), none, out);
  out = tt_where(b, tt_test_f(b, TT_EQ, a, 0), tt_where(b, tt_test_f(b, TT_GT, x, 0), all, nan), out);
  tt_val wrong = tt_or(b, tt_or(b, tt_test_f(b, TT_LT, a, 0), tt_test_f(b, TT_LT, x, 0)),
                       tt_or(b, tt_is_nan(b, a), tt_is_nan(b, x)));
  return tt_where(b, wrong, nan, out);
}
TT_OP(igamma, "igamma(Tensor self, Tensor other) -> Tensor") {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_INT_TO_FLOAT);
  tt_out(L, 0, incomplete_gamma(b, p.x, p.y, false));
}
TT_OP(igammac, "igammac(Tensor self, Tensor other) -> Tensor") {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_INT_TO_FLOAT);
  tt_out(L, 0, incomplete_gamma(b, p.x, p.y, true));
}

// ---- normal distribution --------------------------------------------------------------------------------------------

// exp(x^2) erfc(x).
static tt_val erfcx(tt_builder* b, tt_val x) {
  tt_val small = at_most(b, x, 1);
  tt_val inner = tt_mul(b, tt_unary(b, TT_EXP, tt_mul(b, small, small)), tt_unary(b, TT_CHLO_ERFC, small));
  tt_val medium = at_most(b, at_least(b, x, 1), 8);
  // Beyond 8 in 1 / x, so that high powers do not overflow.
  tt_val inverse = tt_div(b, tt_like_f(b, x, 1), at_least(b, x, 8));
  double r[LENGTH(erfcx_r)], s[LENGTH(erfcx_s)];
  for (int k = 0; k < LENGTH(erfcx_r); ++k) {
    r[k] = erfcx_r[LENGTH(erfcx_r) - 1 - k];
  }
  for (int k = 0; k < LENGTH(erfcx_s); ++k) {
    s[k] = erfcx_s[LENGTH(erfcx_s) - 1 - k];
  }
  tt_val outer =
      tt_mul(b, inverse, tt_div(b, tt_horner(b, inverse, LENGTH(r), r), tt_horner(b, inverse, LENGTH(s), s)));
  tt_val out = tt_where(b, tt_test_f(b, TT_LT, x, 8), RATIO(medium, erfcx_p, erfcx_q), outer);
  return tt_where(b, tt_test_f(b, TT_GE, x, 1), out, inner);
}
TT_OP(erfcx, "special_erfcx(Tensor self) -> Tensor") {
  tt_out(L, 0, erfcx(b, tt_arg_real(L, 0)));
}
TT_OP(log_ndtr, "special_log_ndtr(Tensor self) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  tt_val t = tt_mul_f(b, x, M_SQRT1_2);
  tt_val far = tt_sub(b, log_of(b, tt_mul_f(b, erfcx(b, tt_neg(b, at_most(b, t, 0))), 0.5)), tt_mul(b, t, t));
  tt_val near = tt_unary(b, TT_LOG1P, tt_mul_f(b, tt_unary(b, TT_CHLO_ERFC, t), -0.5));
  tt_out(L, 0, tt_where(b, tt_test_f(b, TT_LT, x, -1), far, near));
}

TT_OP(ndtri, "special_ndtri(Tensor self) -> Tensor") {
  const double edge = 0.13533528323661269189;  // exp(-2)
  tt_val y0 = tt_arg_real(L, 0);
  tt_val upper = tt_test_f(b, TT_GT, y0, 1 - edge);
  tt_val y = tt_where(b, upper, tt_sub(b, tt_like_f(b, y0, 1), y0), y0);
  tt_val centre = tt_add_f(b, y, -0.5);
  tt_val square = tt_mul(b, centre, centre);
  tt_val bend = tt_mul(b, square, RATIO(square, ndtri_p0, ndtri_q0));
  tt_val middle = tt_mul_f(b, tt_add(b, centre, tt_mul(b, centre, bend)), 2.50662827463100050242);
  tt_val tail = tt_unary(b, TT_SQRT, tt_mul_f(b, log_of(b, at_most(b, y, edge)), -2));
  tt_val first = tt_sub(b, tail, tt_div(b, log_of(b, tail), tail));
  tt_val z = tt_div(b, tt_like_f(b, tail, 1), tail);
  tt_val correction = tt_mul(
      b, z, tt_where(b, tt_test_f(b, TT_LT, tail, 8), RATIO(z, ndtri_p1, ndtri_q1), RATIO(z, ndtri_p2, ndtri_q2)));
  tt_val outer = tt_sub(b, first, correction);
  outer = tt_where(b, upper, outer, tt_neg(b, outer));
  tt_val out = tt_where(b, tt_test_f(b, TT_GT, y, edge), middle, outer);
  out = tt_where(b, tt_test_f(b, TT_EQ, y0, 0), tt_like_f(b, y0, -(double)INFINITY), out);
  out = tt_where(b, tt_test_f(b, TT_EQ, y0, 1), tt_like_f(b, y0, (double)INFINITY), out);
  tt_val inside = tt_and(b, tt_test_f(b, TT_GE, y0, 0), tt_test_f(b, TT_LE, y0, 1));
  tt_out(L, 0, tt_where(b, inside, out, tt_like_f(b, y0, (double)NAN)));
}
TT_OP(entr, "special_entr(Tensor self) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  tt_val inside = tt_neg(b, tt_mul(b, x, log_of(b, x)));
  tt_val out = tt_where(b, tt_test_f(b, TT_EQ, x, 0), tt_like_f(b, x, 0), inside);
  out = tt_where(b, tt_test_f(b, TT_LT, x, 0), tt_like_f(b, x, -(double)INFINITY), out);
  tt_out(L, 0, tt_where(b, tt_is_nan(b, x), x, out));
}

// ---- orthogonal polynomials -----------------------------------------------------------------------------------------

typedef enum family { CHEBYSHEV, HERMITE_H, HERMITE_HE, LAGUERRE, LEGENDRE } family;

// State: k, x, n, the polynomials of degree k - 1 and k, and what was found.
static void degree_left(tt_builder* b, const tt_val* args, tt_val* results, __attribute__((unused)) void* ctx) {
  int64_t dims[TT_MAX_RANK];
  int rank = tt_rank_of(b, args[2]);
  for (int d = 0; d < rank; ++d) {
    dims[d] = d;
  }
  results[0] = tt_reduce(b, TT_REDUCE_OR, tt_test(b, TT_GT, args[2], args[0]), rank, dims);
}
static void next_degree(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  tt_val k = args[0], x = args[1], n = args[2], p = args[3], q = args[4];
  tt_val next = tt_add_f(b, k, 1);
  tt_val r;
  switch (*(family*)ctx) {
    case CHEBYSHEV:
      r = tt_sub(b, tt_mul(b, tt_add(b, x, x), q), p);
      break;
    case HERMITE_H:
      r = tt_sub(b, tt_mul(b, tt_add(b, x, x), q), tt_mul(b, tt_mul_f(b, k, 2), p));
      break;
    case HERMITE_HE:
      r = tt_sub(b, tt_mul(b, x, q), tt_mul(b, k, p));
      break;
    case LAGUERRE:
      r = tt_sub(b, tt_mul(b, tt_sub(b, tt_add_f(b, tt_mul_f(b, k, 2), 1), x), q), tt_mul(b, k, p));
      r = tt_div(b, r, next);
      break;
    default:
      r = tt_sub(b, tt_mul(b, tt_mul(b, tt_add_f(b, tt_mul_f(b, k, 2), 1), x), q), tt_mul(b, k, p));
      r = tt_div(b, r, next);
      break;
  }
  results[0] = next;
  results[1] = x;
  results[2] = n;
  results[3] = q;
  results[4] = r;
  results[5] = tt_where(b, tt_test(b, TT_EQ, n, next), r, args[5]);
}

// Degree 1 is slope * x + offset; `shifted` takes 2x - 1 for x.
static void polynomial(tt_lower* L, tt_builder* b, family kind, double slope, double offset, bool shifted) {
  tt_pair p = tt_arg_pair(L, 0, 1, TT_INT_TO_FLOAT);
  tt_val x = shifted ? tt_add_f(b, tt_mul_f(b, p.x, 2), -1) : p.x;
  tt_val zero = tt_mul_f(b, tt_add(b, tt_full_like(b, p.x, 0), tt_full_like(b, p.y, 0)), 0);
  x = tt_expand_like(b, x, zero);
  tt_val n = tt_trunc(b, tt_expand_like(b, p.y, zero));
  tt_val one = tt_full_like(b, zero, 1);
  tt_val line = tt_add_f(b, tt_mul_f(b, x, slope), offset);
  tt_val found = tt_where(b, tt_test_f(b, TT_EQ, n, 0), one, tt_where(b, tt_test_f(b, TT_EQ, n, 1), line, zero));
  tt_val state[6] = {tt_const_f(b, p.dtype, 1), x, n, one, line, found};
  tt_val out[6];
  tt_while(b, 6, state, degree_left, next_degree, &kind, out);
  tt_out(L, 0, out[5]);
}
#define POLYNOMIAL(id, kind, slope, offset, shifted)           \
  TT_OP(id, "special_" #id "(Tensor x, Tensor n) -> Tensor") { \
    polynomial(L, b, kind, slope, offset, shifted);            \
  }
POLYNOMIAL(chebyshev_polynomial_t, CHEBYSHEV, 1, 0, false)
POLYNOMIAL(chebyshev_polynomial_u, CHEBYSHEV, 2, 0, false)
POLYNOMIAL(chebyshev_polynomial_v, CHEBYSHEV, 2, -1, false)
POLYNOMIAL(chebyshev_polynomial_w, CHEBYSHEV, 2, 1, false)
POLYNOMIAL(shifted_chebyshev_polynomial_t, CHEBYSHEV, 1, 0, true)
POLYNOMIAL(shifted_chebyshev_polynomial_u, CHEBYSHEV, 2, 0, true)
POLYNOMIAL(shifted_chebyshev_polynomial_v, CHEBYSHEV, 2, -1, true)
POLYNOMIAL(shifted_chebyshev_polynomial_w, CHEBYSHEV, 2, 1, true)
POLYNOMIAL(hermite_polynomial_h, HERMITE_H, 2, 0, false)
POLYNOMIAL(hermite_polynomial_he, HERMITE_HE, 1, 0, false)
POLYNOMIAL(laguerre_polynomial_l, LAGUERRE, -1, 1, false)
POLYNOMIAL(legendre_polynomial_p, LEGENDRE, 1, 0, false)

// ---- windows --------------------------------------------------------------------------------------------------------

static tt_val window_positions(tt_lower* L, tt_builder* b, tt_dtype dtype) {
  tt_type type = *tt_out_type(L, 0);
  type.dtype = dtype;
  return tt_iota(b, &type, 0);
}
static void kaiser(tt_lower* L, tt_builder* b, bool periodic, double beta) {
  tt_dtype dtype = tt_dtype_compute(tt_out_type(L, 0)->dtype);
  int64_t n = tt_arg_int(L, 0) + (periodic ? 1 : 0);
  if (n <= 1 || (periodic && n == 2)) {
    tt_out(L, 0, tt_const_f(b, dtype, 1));
    return;
  }
  tt_val at = tt_add_f(b, tt_mul_f(b, window_positions(L, b, dtype), 2.0 / (double)(n - 1)), -1);
  tt_val inside = tt_max(b, tt_sub(b, tt_like_f(b, at, 1), tt_mul(b, at, at)), tt_like_f(b, at, 0));
  tt_val top = tt_bessel_i(b, tt_mul_f(b, tt_unary(b, TT_SQRT, inside), beta), 0, false);
  tt_out(L, 0, tt_div(b, top, tt_bessel_i(b, tt_like_f(b, at, beta), 0, false)));
}
#define KAISER_END \
  "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"
TT_OP(kaiser, "kaiser_window(int window_length, " KAISER_END) {
  kaiser(L, b, true, 12);
}
TT_OP(kaiser_periodic, "kaiser_window.periodic(int window_length, bool periodic, " KAISER_END) {
  kaiser(L, b, tt_arg_bool(L, 1), 12);
}
TT_OP(kaiser_beta, "kaiser_window.beta(int window_length, bool periodic, float beta, " KAISER_END) {
  kaiser(L, b, tt_arg_bool(L, 1), tt_arg_float(L, 2));
}
