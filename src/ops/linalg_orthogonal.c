// SPDX-License-Identifier: Apache-2.0
//
// QR, products of Householder reflections, singular values and Hermitian eigenvalues.
//
// The last two are one algorithm, one-sided Jacobi: pairs of columns are rotated until all are orthogonal, half of the columns
// against the other half in each step, by the order of a round-robin tournament. It is accurate, works for complex matrices, and
// is plain array code, so it runs on any device. A Hermitian matrix is made positive by a shift first.
#include "ops/linalg.h"

static void out_shaped(tt_lower* L, tt_builder* b, int k, tt_val value) {
  if (tt_out_wanted(L, k)) {
    tt_out(L, k, tt_reshape(b, value, tt_out_type(L, k)->rank, tt_out_type(L, k)->dims));
  }
}

// ---- Householder ----------------------------------------------------------------------------------------------------------

static void columns_left(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  results[0] = tt_compare(b, TT_LT, args[0], tt_const_i(b, TT_I32, *(const int64_t*)ctx));
}
static tt_val pick(tt_builder* b, tt_val mask, tt_val x, int64_t dim) {
  return tt_reduce_keep(b, TT_REDUCE_SUM, tt_where(b, mask, x, tt_like_i(b, x, 0)), 1, &dim);
}
static tt_val squares(tt_builder* b, tt_val x) {
  return tt_unary(b, TT_REAL, tt_mul(b, x, tt_unary(b, TT_CHLO_CONJ, x)));
}
// LAPACK's geqrf, a column a step: args are j, a [batch, m, n], tau [batch, 1, k].
static void reflect_column(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  tt_val j = args[0], a = args[1], tau = args[2];
  tt_dtype dtype = tt_dtype_of(b, a), real = tt_dtype_real(dtype);
  tt_val zero = tt_like_i(b, a, 0), none = tt_const_f(b, real, 0);
  tt_val row = tt_iota_like(b, a, TT_I32, 1), column = tt_iota_like(b, a, TT_I32, 2);
  tt_val x = pick(b, tt_test(b, TT_EQ, column, j), a, 2);
  tt_val place = tt_iota_like(b, x, TT_I32, 1);
  tt_val below = tt_test(b, TT_GT, place, j), at = tt_test(b, TT_EQ, place, j);
  tt_val alpha = pick(b, at, x, 1);
  int64_t rows = 1;
  tt_val rest = tt_reduce_keep(b, TT_REDUCE_SUM, squares(b, tt_where(b, below, x, zero)), 1, &rows);
  tt_val alpha_re = tt_unary(b, TT_REAL, alpha), alpha_im = tt_unary(b, TT_IMAG, alpha);
  tt_val norm = tt_unary(b, TT_SQRT, tt_add(b, rest, squares(b, alpha)));
  tt_val skip = tt_and(b, tt_test(b, TT_EQ, rest, none), tt_test(b, TT_EQ, alpha_im, none));
  tt_val beta = tt_where(b, tt_test(b, TT_GE, alpha_re, none), tt_neg(b, norm), norm);
  beta = tt_where(b, skip, alpha_re, beta);
  tt_val safe = tt_where(b, skip, tt_const_f(b, real, 1), beta);
  tt_val t = tt_div(b, tt_sub(b, tt_convert(b, beta, dtype), alpha), tt_convert(b, safe, dtype));
  t = tt_where(b, skip, zero, t);
  tt_val gap = tt_where(b, skip, tt_like_i(b, a, 1), tt_sub(b, alpha, tt_convert(b, beta, dtype)));
  tt_val v = tt_where(b, below, tt_div(b, x, gap), tt_where(b, at, tt_like_i(b, a, 1), zero));
  // a -= conj(tau) v (v' a), for the columns after j; column j holds beta and v.
  tt_val product = tt_matmul(b, tt_mat_adjoint(b, v), a);
  tt_val changed = tt_sub(b, a, tt_mul(b, tt_unary(b, TT_CHLO_CONJ, t), tt_mul(b, v, product)));
  tt_val after = tt_test(b, TT_GT, column, j);
  tt_val own = tt_where(b, below, v, tt_where(b, at, tt_convert(b, beta, dtype), x));
  tt_val lower_rows = tt_test(b, TT_GE, row, j);
  results[0] = tt_add(b, j, tt_const_i(b, TT_I32, 1));
  results[1] = tt_where(b, tt_and(b, after, lower_rows), changed, tt_where(b, tt_test(b, TT_EQ, column, j), own, a));
  results[2] = tt_where(b, tt_test(b, TT_EQ, tt_iota_like(b, tau, TT_I32, 2), j), t, tau);
}
// Packed factors and tau [batch, k].
static void factorize(tt_builder* b, tt_val a, tt_val* packed, tt_val* tau) {
  int64_t m = tt_dim_of(b, a, 1), n = tt_dim_of(b, a, 2), k = m < n ? m : n, dims[3] = {tt_dim_of(b, a, 0), 1, k};
  tt_val state[3] = {tt_const_i(b, TT_I32, 0), a, tt_zeros(b, tt_dtype_of(b, a), 3, dims)}, done[3];
  tt_while(b, 3, state, columns_left, reflect_column, &k, done);
  *packed = done[1];
  *tau = tt_squeeze(b, done[2], 1);
}

// args: steps taken, q, packed, tau [batch, 1, k]; q becomes (1 - tau v v') q, from the last reflection to the first.
static void apply_reflection(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  tt_val q = args[1], packed = args[2], tau = args[3];
  tt_val j = tt_sub(b, tt_const_i(b, TT_I32, *(const int64_t*)ctx - 1), args[0]);
  tt_val x = pick(b, tt_test(b, TT_EQ, tt_iota_like(b, packed, TT_I32, 2), j), packed, 2);
  tt_val place = tt_iota_like(b, x, TT_I32, 1);
  tt_val one = tt_like_i(b, x, 1), zero = tt_like_i(b, x, 0);
  tt_val v = tt_where(b, tt_test(b, TT_GT, place, j), x, tt_where(b, tt_test(b, TT_EQ, place, j), one, zero));
  tt_val t = pick(b, tt_test(b, TT_EQ, tt_iota_like(b, tau, TT_I32, 2), j), tau, 2);
  tt_val product = tt_matmul(b, tt_mat_adjoint(b, v), q);
  results[0] = tt_add(b, args[0], tt_const_i(b, TT_I32, 1));
  results[1] = tt_sub(b, q, tt_mul(b, t, tt_mul(b, v, product)));
  results[2] = packed;
  results[3] = tau;
}
// The reflections' product times q [batch, m, n].
static tt_val multiply_reflections(tt_builder* b, tt_val packed, tt_val tau, tt_val q) {
  int64_t k = tt_dim_of(b, tau, 1);
  tt_val state[4] = {tt_const_i(b, TT_I32, 0), q, packed, tt_unsqueeze(b, tau, 1)}, done[4];
  tt_while(b, 4, state, columns_left, apply_reflection, &k, done);
  return done[1];
}
static tt_val eye_batch(tt_builder* b, tt_dtype dtype, int64_t batch, int64_t m, int64_t n) {
  int64_t dims[3] = {batch, m, n};
  return tt_expand(b, tt_mat_eye(b, dtype, m, n), 3, dims);
}
static tt_val orthogonal(tt_builder* b, tt_val packed, tt_val tau, int64_t columns) {
  int64_t m = tt_dim_of(b, packed, 1);
  return multiply_reflections(b, packed, tau,
                              eye_batch(b, tt_dtype_of(b, packed), tt_dim_of(b, packed, 0), m, columns));
}

TT_OP(geqrf, "geqrf(Tensor self) -> (Tensor a, Tensor tau)") {
  if (!tt_mat_nothing(L, b)) {
    tt_val packed, tau;
    factorize(b, tt_mat_flat(b, tt_arg(L, 0)), &packed, &tau);
    out_shaped(L, b, 0, packed);
    out_shaped(L, b, 1, tau);
  }
}
static tt_val flat_tau(tt_builder* b, tt_val tau, int64_t batch) {
  int64_t dims[2] = {batch, tt_dim_of(b, tau, tt_rank_of(b, tau) - 1)};
  return tt_reshape(b, tau, 2, dims);
}
TT_OP(householder_product, "linalg_householder_product(Tensor input, Tensor tau) -> Tensor") {
  if (!tt_mat_nothing(L, b)) {
    tt_val packed = tt_mat_flat(b, tt_arg(L, 0));
    tt_val tau = flat_tau(b, tt_arg(L, 1), tt_dim_of(b, packed, 0));
    if (tt_dim_of(b, tau, 1) == 0) {
      out_shaped(L, b, 0,
                 eye_batch(b, tt_dtype_of(b, packed), tt_dim_of(b, packed, 0), tt_dim_of(b, packed, 1),
                           tt_dim_of(b, packed, 2)));
      return;
    }
    out_shaped(L, b, 0, orthogonal(b, packed, tau, tt_dim_of(b, packed, 2)));
  }
}
TT_OP(ormqr, "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor") {
  if (!tt_mat_nothing(L, b)) {
    tt_val packed = tt_mat_flat(b, tt_arg(L, 0)), other = tt_mat_flat(b, tt_arg(L, 2));
    tt_val tau = flat_tau(b, tt_arg(L, 1), tt_dim_of(b, packed, 0));
    bool left = tt_arg_bool(L, 3), transposed = tt_arg_bool(L, 4);
    tt_val q = orthogonal(b, packed, tau, tt_dim_of(b, packed, 1));
    q = transposed ? tt_mat_adjoint(b, q) : q;
    out_shaped(L, b, 0, left ? tt_matmul(b, q, other) : tt_matmul(b, other, q));
  }
}
TT_OP(linalg_qr, "linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)") {
  const char* mode = tt_arg_string(L, 1);
  tt_val a = tt_mat_flat(b, tt_arg(L, 0));
  tt_dtype dtype = tt_dtype_of(b, a);
  int64_t m = tt_dim_of(b, a, 1), n = tt_dim_of(b, a, 2), k = m < n ? m : n, batch = tt_dim_of(b, a, 0);
  int64_t columns = mode[0] == 'c' ? m : k;
  if (batch * k == 0) {
    bool eye = mode[0] == 'c' && batch * m > 0;
    out_shaped(
        L, b, 0,
        eye ? eye_batch(b, dtype, batch, m, m) : tt_zeros(b, dtype, tt_out_type(L, 0)->rank, tt_out_type(L, 0)->dims));
    tt_out(L, 1, tt_const_i(b, dtype, 0));
    return;
  }
  tt_val packed, tau;
  factorize(b, a, &packed, &tau);
  if (mode[0] == 'r' && mode[1] == '\0') {
    tt_out(L, 0, tt_const_i(b, dtype, 0));
  } else {
    out_shaped(L, b, 0, orthogonal(b, packed, tau, columns));
  }
  out_shaped(L, b, 1, tt_mat_triangle(b, tt_slice_dim(b, packed, 1, 0, columns, 1), false, 0));
}

// ---- Jacobi ---------------------------------------------------------------------------------------------------------------

enum { SWEEPS = 30 };
typedef struct jacobi {
  int64_t rounds;
  double tolerance;
} jacobi;

// args: round, x and y (the two halves of the columns, [batch, rows, half]), same for v, worst angle of this sweep and of the last.
enum { ROUND, X, Y, VX, VY, WORST, LAST, STATES };

static void not_orthogonal(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  const jacobi* jc = ctx;
  tt_val more = tt_compare(b, TT_LT, args[ROUND], tt_const_i(b, TT_I32, SWEEPS * jc->rounds));
  results[0] = tt_and(b, more, tt_test_f(b, TT_GT, args[LAST], jc->tolerance));
}
static void rotate(tt_builder* b, tt_val* x, tt_val* y, tt_val c, tt_val s, tt_val phase) {
  tt_val turned = tt_mul(b, *y, phase);
  tt_val first = tt_sub(b, tt_mul(b, c, *x), tt_mul(b, s, turned));
  *y = tt_add(b, tt_mul(b, s, *x), tt_mul(b, c, turned));
  *x = first;
}
// Who plays whom next: the first column stays.
static void next_round(tt_builder* b, tt_val* x, tt_val* y) {
  int64_t half = tt_dim_of(b, *x, 2);
  if (half < 2) {
    return;
  }
  tt_val fixed = tt_slice_dim(b, *x, 2, 0, 1, 1);
  tt_val left[3] = {fixed, tt_slice_dim(b, *y, 2, 0, 1, 1), tt_slice_dim(b, *x, 2, 1, half - 1, 1)};
  tt_val right[2] = {tt_slice_dim(b, *y, 2, 1, half, 1), tt_slice_dim(b, *x, 2, half - 1, half, 1)};
  *x = tt_concat(b, half > 2 ? 3 : 2, left, 2);
  *y = tt_concat(b, 2, right, 2);
}
static void rotate_pairs(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  const jacobi* jc = ctx;
  tt_val x = args[X], y = args[Y], vx = args[VX], vy = args[VY];
  tt_dtype dtype = tt_dtype_of(b, x), real = tt_dtype_real(dtype);
  int64_t rows = 1;
  tt_val one = tt_const_f(b, real, 1), zero = tt_const_f(b, real, 0);
  tt_val alpha = tt_reduce_keep(b, TT_REDUCE_SUM, squares(b, x), 1, &rows);
  tt_val beta = tt_reduce_keep(b, TT_REDUCE_SUM, squares(b, y), 1, &rows);
  tt_val gamma = tt_reduce_keep(b, TT_REDUCE_SUM, tt_mul(b, tt_unary(b, TT_CHLO_CONJ, x), y), 1, &rows);
  tt_val size = tt_unary(b, TT_ABS, gamma);
  tt_val norms = tt_unary(b, TT_SQRT, tt_mul(b, alpha, beta));
  tt_val angle = tt_where(b, tt_test(b, TT_GT, norms, zero),
                          tt_div(b, size, tt_where(b, tt_test(b, TT_GT, norms, zero), norms, one)), zero);
  tt_val turn = tt_test_f(b, TT_GT, angle, jc->tolerance * 0.125);
  tt_val safe = tt_where(b, turn, size, one);
  tt_val phase =
      tt_where(b, turn, tt_div(b, tt_unary(b, TT_CHLO_CONJ, gamma), tt_convert(b, safe, dtype)), tt_like_i(b, x, 1));
  tt_val zeta = tt_div(b, tt_sub(b, beta, alpha), tt_mul_f(b, safe, 2));
  tt_val root = tt_unary(b, TT_SQRT, tt_add(b, tt_mul(b, zeta, zeta), one));
  tt_val t = tt_div(b, one, tt_add(b, tt_unary(b, TT_ABS, zeta), root));
  t = tt_where(b, tt_test(b, TT_LT, zeta, zero), tt_neg(b, t), t);
  t = tt_where(b, turn, t, zero);
  tt_val c = tt_div(b, one, tt_unary(b, TT_SQRT, tt_add(b, one, tt_mul(b, t, t))));
  tt_val s = tt_convert(b, tt_mul(b, c, t), dtype);
  c = tt_convert(b, c, dtype);
  rotate(b, &x, &y, c, s, phase);
  rotate(b, &vx, &vy, c, s, phase);
  next_round(b, &x, &y);
  next_round(b, &vx, &vy);
  int64_t all[3] = {0, 1, 2};
  tt_val worst = tt_max(b, args[WORST], tt_reduce(b, TT_REDUCE_MAX, angle, 3, all));
  tt_val round = tt_add(b, args[ROUND], tt_const_i(b, TT_I32, 1));
  tt_val over = tt_test_f(b, TT_EQ, tt_bin(b, TT_REM, round, tt_const_i(b, TT_I32, jc->rounds)), 0);
  results[ROUND] = round;
  results[X] = x;
  results[Y] = y;
  results[VX] = vx;
  results[VY] = vy;
  results[WORST] = tt_where(b, over, zero, worst);
  results[LAST] = tt_where(b, over, worst, args[LAST]);
}

static void larger(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  results[0] = tt_compare(b, TT_GT, args[0], args[1]);
}
// Columns of x [batch, m, n] in the order `at` [batch, n].
static tt_val order_columns(tt_builder* b, tt_val x, tt_val at) {
  int64_t batch = tt_dim_of(b, x, 0), m = tt_dim_of(b, x, 1), n = tt_dim_of(b, x, 2), k = tt_dim_of(b, at, 1);
  int64_t flat[2] = {batch * n, m}, list[2] = {batch * k, 1}, dims[3] = {batch, k, m}, sizes[2] = {1, m};
  tt_val rows = tt_add(b, at, tt_mul(b, tt_iota_like(b, at, TT_I32, 0), tt_const_i(b, TT_I32, n)));
  tt_gather_dims g = {.num_offset = 1, .offset = {1}, .num_collapsed = 1, .num_start_map = 1, .index_vector_dim = 1};
  tt_val taken =
      tt_gather(b, tt_reshape(b, tt_swap_dims(b, x, 1, 2), 2, flat), tt_reshape(b, rows, 2, list), &g, sizes);
  return tt_swap_dims(b, tt_reshape(b, taken, 3, dims), 1, 2);
}

// a v = w, the columns of w orthogonal and falling in length; v unitary. a is [batch, m, n].
static void orthogonalize(tt_builder* b, tt_val a, tt_val* out_w, tt_val* out_v, tt_val* out_lengths) {
  int64_t batch = tt_dim_of(b, a, 0), n = tt_dim_of(b, a, 2), even = n + n % 2, half = even / 2;
  tt_dtype dtype = tt_dtype_of(b, a), real = tt_dtype_real(dtype);
  tt_val wide = tt_pad_dim(b, a, 2, 0, even - n, 0);
  tt_val v = eye_batch(b, dtype, batch, even, even);
  jacobi jc = {.rounds = even - 1, .tolerance = real == TT_F64 ? 1e-15 : 2e-7};
  tt_val state[STATES] = {tt_const_i(b, TT_I32, 0),
                          tt_slice_dim(b, wide, 2, 0, half, 1),
                          tt_slice_dim(b, wide, 2, half, even, 1),
                          tt_slice_dim(b, v, 2, 0, half, 1),
                          tt_slice_dim(b, v, 2, half, even, 1),
                          tt_const_f(b, real, 0),
                          tt_const_f(b, real, 1)};
  tt_val done[STATES];
  tt_while(b, STATES, state, not_orthogonal, rotate_pairs, &jc, done);
  tt_val w = tt_concat(b, 2, &done[X], 2);
  v = tt_concat(b, 2, &done[VX], 2);
  int64_t rows = 1;
  tt_val lengths = tt_unary(b, TT_SQRT, tt_reduce(b, TT_REDUCE_SUM, squares(b, w), 1, &rows));
  // The column that was added to make the number even goes last: it belongs to the last row of v.
  tt_val key = lengths;
  if (even != n) {
    tt_val extra = tt_unary(b, TT_ABS, tt_index_dim(b, v, 1, even - 1));
    key = tt_where(b, tt_test_f(b, TT_GT, extra, 0.5), tt_const_f(b, real, -1), lengths);
  }
  tt_val keys[2] = {key, tt_iota_like(b, key, TT_I32, 1)}, sorted[2];
  tt_sort(b, 2, keys, 1, true, larger, NULL, sorted);
  tt_val at = tt_slice_dim(b, sorted[1], 1, 0, n, 1);
  *out_w = order_columns(b, w, at);
  *out_v = tt_slice_dim(b, order_columns(b, v, at), 1, 0, n, 1);
  *out_lengths = tt_slice_dim(b, sorted[0], 1, 0, n, 1);
}

// Unit columns from w; columns of length 0 are completed to an orthonormal set, and `total` columns in all.
static tt_val unit_columns(tt_builder* b, tt_val w, tt_val lengths, int64_t total) {
  tt_dtype dtype = tt_dtype_of(b, w), real = tt_dtype_real(dtype);
  int64_t m = tt_dim_of(b, w, 1), n = tt_dim_of(b, w, 2);
  tt_val top = tt_slice_dim(b, lengths, 1, 0, 1, 1);
  tt_val least = tt_mul_f(b, top, (double)(m > n ? m : n) * (real == TT_F64 ? 2.3e-16 : 1.2e-7));
  tt_val some = tt_and(b, tt_test(b, TT_GT, lengths, least), tt_test_f(b, TT_GT, lengths, 0));
  tt_val length = tt_where(b, some, lengths, tt_const_f(b, real, 1));
  tt_val u = tt_div(b, w, tt_convert(b, tt_unsqueeze(b, length, 1), dtype));
  u = tt_where(b, tt_unsqueeze(b, some, 1), u, tt_like_i(b, u, 0));
  tt_val packed, tau;
  factorize(b, u, &packed, &tau);
  tt_val q = orthogonal(b, packed, tau, total);
  // The reflections give the columns up to a sign (a phase), R's diagonal.
  tt_val sign = tt_mat_diagonal(b, packed);
  sign = tt_where(b, some, sign, tt_like_i(b, sign, 1));
  tt_val size = tt_unary(b, TT_ABS, sign);
  sign = tt_div(b, sign, tt_convert(b, tt_where(b, tt_test_f(b, TT_GT, size, 0), size, tt_const_f(b, real, 1)), dtype));
  if (total > n) {
    tt_val rest = tt_zeros(b, dtype, 2, (int64_t[2]){tt_dim_of(b, w, 0), total - n});
    tt_val both[2] = {sign, tt_add(b, rest, tt_like_i(b, rest, 1))};
    sign = tt_concat(b, 2, both, 1);
  }
  return tt_mul(b, q, tt_unsqueeze(b, sign, 1));
}

TT_OP(linalg_svd,
      "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor "
      "S, "
      "Tensor Vh)") {
  tt_val a = tt_mat_flat(b, tt_arg(L, 0));
  int64_t m = tt_dim_of(b, a, 1), n = tt_dim_of(b, a, 2), batch = tt_dim_of(b, a, 0);
  bool full = tt_arg_bool(L, 1), vectors = tt_arg_bool(L, 2);
  tt_dtype dtype = tt_dtype_of(b, a);
  if (batch * m * n == 0) {
    for (int k = 0; k < 3; k += 2) {
      const tt_type* t = tt_out_type(L, k);
      bool some = tt_out_wanted(L, k) && tt_type_elements(t) > 0;
      if (tt_out_wanted(L, k)) {
        tt_out(L, k, some ? tt_mat_eye(b, dtype, t->dims[t->rank - 2], t->dims[t->rank - 1]) : tt_const_i(b, dtype, 0));
      }
    }
    tt_out(L, 1, tt_const_i(b, tt_dtype_real(dtype), 0));
    return;
  }
  bool wide = n > m;
  a = wide ? tt_mat_adjoint(b, a) : a;
  int64_t rows = wide ? n : m, columns = wide ? m : n;
  tt_val w, v, s;
  orthogonalize(b, a, &w, &v, &s);
  out_shaped(L, b, 1, s);
  if (!vectors) {
    tt_out(L, 0, tt_const_i(b, dtype, 0));
    tt_out(L, 2, tt_const_i(b, dtype, 0));
    return;
  }
  tt_val u = unit_columns(b, w, s, full ? rows : columns);
  // A = U S V', or for the adjoint A' = U S V', A = V S U'.
  out_shaped(L, b, 0, wide ? v : u);
  out_shaped(L, b, 2, tt_mat_adjoint(b, wide ? u : v));
}

TT_OP(linalg_eigh,
      "_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)") {
  if (tt_mat_nothing(L, b)) {
    return;
  }
  tt_val a = tt_mat_flat(b, tt_arg(L, 0));
  const char* part = tt_arg_string(L, 1);
  a = part[0] == 'U' || part[0] == 'u' ? tt_mat_adjoint(b, a) : a;
  tt_dtype dtype = tt_dtype_of(b, a);
  int64_t n = tt_dim_of(b, a, 1);
  tt_val below = tt_mat_triangle(b, a, true, -1);
  tt_val eye = tt_mat_eye(b, dtype, n, n);
  // The diagonal of a Hermitian matrix is real.
  tt_val diagonal = tt_mul(b, eye, tt_convert(b, tt_unary(b, TT_REAL, a), dtype));
  a = tt_add(b, tt_add(b, below, tt_mat_adjoint(b, below)), diagonal);
  int64_t both[2] = {1, 2}, rows = 1;
  tt_val norm = tt_unary(b, TT_SQRT, tt_reduce_keep(b, TT_REDUCE_SUM, squares(b, a), 2, both));
  tt_val shift = tt_convert(b, tt_mul_f(b, norm, 2), dtype);
  tt_val w, v, lengths;
  // Negated, so that falling lengths are rising eigenvalues.
  orthogonalize(b, tt_sub(b, tt_mul(b, eye, shift), a), &w, &v, &lengths);
  // Rayleigh quotients: the shift costs no digits.
  tt_val values = tt_reduce(
      b, TT_REDUCE_SUM, tt_unary(b, TT_REAL, tt_mul(b, tt_unary(b, TT_CHLO_CONJ, v), tt_matmul(b, a, v))), 1, &rows);
  tt_val keys[2] = {tt_neg(b, values), tt_iota_like(b, values, TT_I32, 1)}, sorted[2];
  tt_sort(b, 2, keys, 1, true, larger, NULL, sorted);
  out_shaped(L, b, 0, tt_neg(b, sorted[0]));
  if (tt_arg_bool(L, 2)) {
    out_shaped(L, b, 1, order_columns(b, v, sorted[1]));
  } else {
    tt_out(L, 1, tt_const_i(b, dtype, 0));
  }
}
