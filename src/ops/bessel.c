// SPDX-License-Identifier: Apache-2.0
//
// Bessel and Airy functions, by the approximations of the Cephes library, without branches: each is evaluated on
// arguments moved into
// its own range, and the right one is chosen.
#include <math.h>

#include "ops/special.h"
#include "ops/special_tables.h"

#define LENGTH(table) ((int)(sizeof(table) / sizeof *(table)))
#define HORNER(x, table) tt_horner(b, x, LENGTH(table), table)
#define CHEBYSHEV(x, table) chebyshev(b, x, LENGTH(table), table)
#define RATIO(x, over, under) tt_div(b, HORNER(x, over), HORNER(x, under))

static const double two_over_pi = 0.636619772367581343075535053490057448;

tt_val tt_horner(tt_builder* b, tt_val x, int n, const double* c) {
  tt_val out = tt_full_like(b, x, c[0]);
  for (int k = 1; k < n; ++k) {
    out = tt_add_f(b, tt_mul(b, out, x), c[k]);
  }
  return out;
}
// Half the difference of Clenshaw's recurrence.
static tt_val chebyshev(tt_builder* b, tt_val x, int n, const double* c) {
  tt_val p = tt_full_like(b, x, 0);
  tt_val q = p;
  tt_val a = tt_full_like(b, x, c[0]);
  for (int k = 1; k < n; ++k) {
    p = q;
    q = a;
    a = tt_add_f(b, tt_sub(b, tt_mul(b, x, q), p), c[k]);
  }
  return tt_mul_f(b, tt_sub(b, a, p), 0.5);
}

static tt_val at_least(tt_builder* b, tt_val x, double low) {
  return tt_max(b, x, tt_like_f(b, x, low));
}
static tt_val at_most(tt_builder* b, tt_val x, double high) {
  return tt_min(b, x, tt_like_f(b, x, high));
}
static tt_val square(tt_builder* b, tt_val x) {
  return tt_mul(b, x, x);
}
static tt_val over(tt_builder* b, double number, tt_val x) {
  return tt_div(b, tt_like_f(b, x, number), x);
}

// ---- modified, first kind -------------------------------------------------------------------------------------------

tt_val tt_bessel_i(tt_builder* b, tt_val x, int order, bool scaled) {
  tt_val size = tt_unary(b, TT_ABS, x);
  tt_val near = tt_add_f(b, tt_mul_f(b, at_most(b, size, 8), 0.5), -2);
  tt_val large = at_least(b, size, 8);
  tt_val far = tt_add_f(b, over(b, 32, large), -2);
  tt_val inner = order == 0 ? CHEBYSHEV(near, i0_a) : tt_mul(b, CHEBYSHEV(near, i1_a), size);
  tt_val outer = tt_div(b, order == 0 ? CHEBYSHEV(far, i0_b) : CHEBYSHEV(far, i1_b), tt_unary(b, TT_SQRT, large));
  tt_val out = tt_where(b, tt_test_f(b, TT_LE, size, 8), inner, outer);
  if (!scaled) {
    out = tt_mul(b, out, tt_unary(b, TT_EXP, size));
  }
  return order == 1 ? tt_where(b, tt_test_f(b, TT_LT, x, 0), tt_neg(b, out), out) : out;
}
#define BESSEL_I(id, name, order, scaled)                           \
  TT_OP(id, name "(Tensor self) -> Tensor") {                       \
    tt_out(L, 0, tt_bessel_i(b, tt_arg_real(L, 0), order, scaled)); \
  }
BESSEL_I(i0, "i0", 0, false)
BESSEL_I(i0e, "special_i0e", 0, true)
BESSEL_I(i1, "special_i1", 1, false)
BESSEL_I(i1e, "special_i1e", 1, true)
BESSEL_I(modified_i0, "special_modified_bessel_i0", 0, false)
BESSEL_I(modified_i1, "special_modified_bessel_i1", 1, false)

// ---- modified, second kind ------------------------------------------------------------------------------------------

static tt_val bessel_k(tt_builder* b, tt_val x, int order, bool scaled) {
  tt_val small = at_most(b, x, 2);
  tt_val near = tt_add_f(b, square(b, small), -2);
  tt_val log_half = tt_unary(b, TT_LOG, tt_mul_f(b, small, 0.5));
  tt_val regular = tt_mul(b, log_half, tt_bessel_i(b, small, order, false));
  tt_val inner = order == 0 ? tt_sub(b, CHEBYSHEV(near, k0_a), regular)
                            : tt_add(b, regular, tt_div(b, CHEBYSHEV(near, k1_a), small));
  tt_val large = at_least(b, x, 2);
  tt_val far = tt_add_f(b, over(b, 8, large), -2);
  tt_val outer = tt_div(b, order == 0 ? CHEBYSHEV(far, k0_b) : CHEBYSHEV(far, k1_b), tt_unary(b, TT_SQRT, large));
  if (scaled) {
    inner = tt_mul(b, inner, tt_unary(b, TT_EXP, small));
  } else {
    outer = tt_mul(b, outer, tt_unary(b, TT_EXP, tt_neg(b, large)));
  }
  tt_val out = tt_where(b, tt_test_f(b, TT_LE, x, 2), inner, outer);
  out = tt_where(b, tt_test_f(b, TT_EQ, x, 0), tt_like_f(b, x, (double)INFINITY), out);
  return tt_where(b, tt_test_f(b, TT_LT, x, 0), tt_like_f(b, x, (double)NAN), out);
}
#define BESSEL_K(id, name, argument, order, scaled)              \
  TT_OP(id, name "(Tensor " argument ") -> Tensor") {            \
    tt_out(L, 0, bessel_k(b, tt_arg_real(L, 0), order, scaled)); \
  }
BESSEL_K(modified_k0, "special_modified_bessel_k0", "self", 0, false)
BESSEL_K(modified_k1, "special_modified_bessel_k1", "self", 1, false)
BESSEL_K(scaled_k0, "special_scaled_modified_bessel_k0", "x", 0, true)
BESSEL_K(scaled_k1, "special_scaled_modified_bessel_k1", "x", 1, true)

// ---- first and second kind ------------------------------------------------------------------------------------------

// Hankel's expansion for x > 5: J if `cosine`, else Y.
static tt_val hankel(tt_builder* b, tt_val x, int order, bool cosine) {
  tt_val large = at_least(b, x, 5);
  tt_val five = over(b, 5, large);
  tt_val w = square(b, five);
  tt_val p = order == 0 ? RATIO(w, j0_pp, j0_pq) : RATIO(w, j1_pp, j1_pq);
  tt_val q = tt_mul(b, five, order == 0 ? RATIO(w, j0_qp, j0_qq) : RATIO(w, j1_qp, j1_qq));
  tt_val angle = tt_add_f(b, large, order == 0 ? -M_PI / 4 : -3 * M_PI / 4);
  tt_val c = tt_unary(b, TT_COSINE, angle);
  tt_val s = tt_unary(b, TT_SINE, angle);
  tt_val wave = cosine ? tt_sub(b, tt_mul(b, p, c), tt_mul(b, q, s)) : tt_add(b, tt_mul(b, p, s), tt_mul(b, q, c));
  return tt_div(b, tt_mul_f(b, wave, sqrt(two_over_pi)), tt_unary(b, TT_SQRT, large));
}

static tt_val bessel_j(tt_builder* b, tt_val x, int order) {
  tt_val size = tt_unary(b, TT_ABS, x);
  tt_val small = at_most(b, size, 5);
  tt_val z = square(b, small);
  tt_val inner;
  if (order == 0) {
    inner = tt_mul(b, tt_mul(b, tt_add_f(b, z, -5.78318596294678452118), tt_add_f(b, z, -30.4712623436620863991)),
                   RATIO(z, j0_rp, j0_rq));
    tt_val tiny = tt_add_f(b, tt_mul_f(b, z, -0.25), 1);
    inner = tt_where(b, tt_test_f(b, TT_LT, small, 0.00001), tiny, inner);
  } else {
    tt_val roots = tt_mul(b, tt_add_f(b, z, -14.6819706421238932572), tt_add_f(b, z, -49.2184563216946036703));
    inner = tt_mul(b, tt_mul(b, RATIO(z, j1_rp, j1_rq), small), roots);
  }
  tt_val out = tt_where(b, tt_test_f(b, TT_LE, size, 5), inner, hankel(b, size, order, true));
  return order == 1 ? tt_where(b, tt_test_f(b, TT_LT, x, 0), tt_neg(b, out), out) : out;
}

static tt_val bessel_y(tt_builder* b, tt_val x, int order) {
  tt_val small = at_most(b, x, 5);
  tt_val z = square(b, small);
  tt_val mixed = tt_mul(b, tt_unary(b, TT_LOG, small), bessel_j(b, small, order));
  tt_val inner;
  if (order == 0) {
    inner = tt_add(b, RATIO(z, y0_yp, y0_yq), tt_mul_f(b, mixed, two_over_pi));
  } else {
    inner = tt_add(b, tt_mul(b, small, RATIO(z, y1_yp, y1_yq)),
                   tt_mul_f(b, tt_sub(b, mixed, over(b, 1, small)), two_over_pi));
  }
  tt_val out = tt_where(b, tt_test_f(b, TT_LE, x, 5), inner, hankel(b, x, order, false));
  out = tt_where(b, tt_test_f(b, TT_EQ, x, 0), tt_like_f(b, x, -(double)INFINITY), out);
  return tt_where(b, tt_test_f(b, TT_LT, x, 0), tt_like_f(b, x, (double)NAN), out);
}
TT_OP(bessel_j0, "special_bessel_j0(Tensor self) -> Tensor") {
  tt_out(L, 0, bessel_j(b, tt_arg_real(L, 0), 0));
}
TT_OP(bessel_j1, "special_bessel_j1(Tensor self) -> Tensor") {
  tt_out(L, 0, bessel_j(b, tt_arg_real(L, 0), 1));
}
TT_OP(bessel_y0, "special_bessel_y0(Tensor self) -> Tensor") {
  tt_out(L, 0, bessel_y(b, tt_arg_real(L, 0), 0));
}
TT_OP(bessel_y1, "special_bessel_y1(Tensor self) -> Tensor") {
  tt_out(L, 0, bessel_y(b, tt_arg_real(L, 0), 1));
}

TT_OP(spherical_bessel_j0, "special_spherical_bessel_j0(Tensor x) -> Tensor") {
  static const double series[] = {1 / 6227020800.0, -1 / 39916800.0, 1 / 362880.0, -1 / 5040.0, 1 / 120.0, -1 / 6.0, 1};
  tt_val x = tt_arg_real(L, 0);
  tt_val size = tt_unary(b, TT_ABS, x);
  tt_val near = HORNER(square(b, at_most(b, size, 0.5)), series);
  tt_val out = tt_where(b, tt_test_f(b, TT_LT, size, 0.5), near, tt_div(b, tt_unary(b, TT_SINE, x), x));
  tt_out(L, 0, tt_where(b, tt_is_inf(b, x), tt_like_f(b, x, 0), out));
}

// ---- Airy -----------------------------------------------------------------------------------------------------------

TT_OP(airy_ai, "special_airy_ai(Tensor x) -> Tensor") {
  const double root = 0.564189583547756286948;  // 1 / sqrt(pi)
  tt_val x = tt_arg_real(L, 0);
  // Left: two modulated waves.
  tt_val left = at_least(b, tt_neg(b, x), 2.09);
  tt_val left_zeta = tt_mul_f(b, tt_mul(b, left, tt_unary(b, TT_SQRT, left)), 2.0 / 3);
  tt_val z = over(b, 1, left_zeta);
  tt_val zz = square(b, z);
  tt_val angle = tt_add_f(b, left_zeta, M_PI / 4);
  tt_val even = tt_add_f(b, tt_mul(b, zz, RATIO(zz, airy_afn, airy_afd)), 1);
  tt_val odd = tt_mul(b, z, RATIO(zz, airy_agn, airy_agd));
  tt_val wave = tt_sub(b, tt_mul(b, tt_unary(b, TT_SINE, angle), even), tt_mul(b, tt_unary(b, TT_COSINE, angle), odd));
  tt_val below = tt_div(b, tt_mul_f(b, wave, root), tt_unary(b, TT_SQRT, tt_unary(b, TT_SQRT, left)));
  // Right: exponential decay.
  tt_val right = at_least(b, x, 2.09);
  tt_val zeta = tt_mul_f(b, tt_mul(b, right, tt_unary(b, TT_SQRT, right)), 2.0 / 3);
  tt_val decay = tt_mul_f(b, RATIO(over(b, 1, zeta), airy_an, airy_ad), root / 2);
  tt_val above = tt_div(b, tt_mul(b, decay, tt_unary(b, TT_EXP, tt_neg(b, zeta))),
                        tt_unary(b, TT_SQRT, tt_unary(b, TT_SQRT, right)));
  // Middle: Maclaurin series; 14 terms are enough for f64 on |x| <= 2.09.
  tt_val middle = at_most(b, at_least(b, x, -2.09), 2.09);
  tt_val cube = tt_mul(b, square(b, middle), middle);
  tt_val f = tt_full_like(b, x, 1);
  tt_val g = tt_full_like(b, x, 1);
  for (int k = 14; k >= 1; --k) {
    f = tt_add_f(b, tt_mul_f(b, tt_mul(b, f, cube), 1 / ((3.0 * k - 1) * (3.0 * k))), 1);
    g = tt_add_f(b, tt_mul_f(b, tt_mul(b, g, cube), 1 / ((3.0 * k) * (3.0 * k + 1))), 1);
  }
  tt_val between =
      tt_sub(b, tt_mul_f(b, f, 0.355028053887817239260), tt_mul_f(b, tt_mul(b, middle, g), 0.258819403792806798405));
  tt_val out =
      tt_where(b, tt_test_f(b, TT_LT, x, -2.09), below, tt_where(b, tt_test_f(b, TT_GE, x, 2.09), above, between));
  out = tt_where(b, tt_test_f(b, TT_GT, x, 103.892), tt_like_f(b, x, 0), out);
  tt_out(L, 0, tt_where(b, tt_or(b, tt_is_inf(b, x), tt_is_nan(b, x)), tt_like_f(b, x, (double)NAN), out));
}
