// SPDX-License-Identifier: Apache-2.0
//
// LU factors with row pivots, and what rests on them: solving, inverses, determinants. One loop step eliminates a column of all
// matrices of the batch, so it runs on any device.
#include "ops/linalg.h"

typedef struct lu {
  tt_val factors;  // [batch, m, n]
  tt_val pivots;   // i32 [batch, min(m, n)], counting from 1
  tt_val info;     // i32 [batch], first zero pivot, counting from 1
} lu;

static void steps_left(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  results[0] = tt_compare(b, TT_LT, args[0], tt_const_i(b, TT_I32, tt_dim_of(b, args[2], 1)));
}

// Row `at` ([batch] or 0-d) of a, [batch, n].
static tt_val row_at(tt_builder* b, tt_val a, tt_val mask) {
  int64_t rows = 1;
  return tt_reduce(b, TT_REDUCE_SUM, tt_where(b, mask, a, tt_like_i(b, a, 0)), 1, &rows);
}

// Size for choosing a pivot: LAPACK's |re| + |im|.
static tt_val magnitude(tt_builder* b, tt_val x) {
  if (!tt_dtype_is_complex(tt_dtype_of(b, x))) {
    return tt_unary(b, TT_ABS, x);
  }
  tt_val re = tt_unary(b, TT_ABS, tt_unary(b, TT_REAL, x));
  return tt_add(b, re, tt_unary(b, TT_ABS, tt_unary(b, TT_IMAG, x)));
}

static void eliminate_column(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  tt_val j = args[0], a = args[1], pivots = args[2], info = args[3];
  tt_val next = tt_add(b, j, tt_const_i(b, TT_I32, 1));
  tt_val zero = tt_like_i(b, a, 0);
  tt_val row = tt_iota_like(b, a, TT_I32, 1), column = tt_iota_like(b, a, TT_I32, 2);
  int64_t columns = 2;
  tt_val values = tt_reduce(b, TT_REDUCE_SUM, tt_where(b, tt_test(b, TT_EQ, column, j), a, zero), 1, &columns);
  tt_val candidates = magnitude(b, values);
  tt_val above = tt_test(b, TT_LT, tt_iota_like(b, candidates, TT_I32, 1), j);
  candidates = tt_where(b, above, tt_like_f(b, candidates, -1), candidates);
  tt_val best = tt_convert(b, tt_arg_reduce(b, true, candidates, 1, NULL), TT_I32);
  tt_val best_wide = tt_unsqueeze(b, tt_unsqueeze(b, best, 1), 1);
  // Swap rows j and best.
  tt_val is_j = tt_test(b, TT_EQ, row, j), is_best = tt_test(b, TT_EQ, row, best_wide);
  tt_val row_j = tt_unsqueeze(b, row_at(b, a, is_j), 1), row_best = tt_unsqueeze(b, row_at(b, a, is_best), 1);
  a = tt_where(b, is_j, row_best, tt_where(b, is_best, row_j, a));
  // Eliminate below.
  tt_val at_j = tt_test(b, TT_EQ, tt_iota_like(b, row_best, TT_I32, 2), j);
  tt_val pivot = tt_reduce_keep(b, TT_REDUCE_SUM, tt_where(b, at_j, row_best, zero), 1, &columns);
  tt_val null = tt_test(b, TT_EQ, pivot, zero);
  tt_val lead = tt_reduce_keep(b, TT_REDUCE_SUM, tt_where(b, tt_test(b, TT_EQ, column, j), a, zero), 1, &columns);
  tt_val factor = tt_div(b, lead, tt_where(b, null, tt_like_i(b, pivot, 1), pivot));
  tt_val below = tt_test(b, TT_GT, row, j);
  tt_val rest = tt_and(b, below, tt_test(b, TT_GT, column, j));
  a = tt_where(b, rest, tt_sub(b, a, tt_mul(b, factor, row_best)), a);
  a = tt_where(b, tt_and(b, below, tt_test(b, TT_EQ, column, j)), factor, a);
  results[0] = next;
  results[1] = a;
  tt_val step = tt_test(b, TT_EQ, tt_iota_like(b, pivots, TT_I32, 1), j);
  results[2] = tt_where(b, step, tt_unsqueeze(b, tt_add(b, best, tt_const_i(b, TT_I32, 1)), 1), pivots);
  int64_t batch = tt_dim_of(b, a, 0);
  tt_val first = tt_and(b, tt_reshape(b, null, 1, &batch), tt_test_f(b, TT_EQ, info, 0));
  results[3] = tt_where(b, first, next, info);
}

static lu factorize(tt_builder* b, tt_val a) {
  a = tt_mat_flat(b, a);
  int64_t m = tt_dim_of(b, a, 1), n = tt_dim_of(b, a, 2);
  int64_t dims[2] = {tt_dim_of(b, a, 0), m < n ? m : n};
  tt_val state[4] = {tt_const_i(b, TT_I32, 0), a, tt_zeros(b, TT_I32, 2, dims), tt_zeros(b, TT_I32, 1, dims)};
  tt_val done[4];
  tt_while(b, 4, state, steps_left, eliminate_column, NULL, done);
  return (lu){done[1], done[2], done[3]};
}

// ---- permutations ---------------------------------------------------------------------------------------------------------

static void exchange(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  tt_val j = args[0], order = args[1], pivots = args[2];
  int64_t one = 1;
  tt_val zero = tt_const_i(b, TT_I32, 0), place = tt_iota_like(b, order, TT_I32, 1);
  tt_val step = tt_test(b, TT_EQ, tt_iota_like(b, pivots, TT_I32, 1), j);
  tt_val other = tt_reduce_keep(b, TT_REDUCE_SUM, tt_where(b, step, pivots, zero), 1, &one);
  other = tt_sub(b, other, tt_const_i(b, TT_I32, 1));
  tt_val is_j = tt_test(b, TT_EQ, place, j), is_other = tt_test(b, TT_EQ, place, other);
  tt_val at_j = tt_reduce_keep(b, TT_REDUCE_SUM, tt_where(b, is_j, order, zero), 1, &one);
  tt_val at_other = tt_reduce_keep(b, TT_REDUCE_SUM, tt_where(b, is_other, order, zero), 1, &one);
  results[0] = tt_add(b, j, tt_const_i(b, TT_I32, 1));
  results[1] = tt_where(b, is_j, at_other, tt_where(b, is_other, at_j, order));
  results[2] = pivots;
}
// Which row of the matrix stands at each row of its factors: i32 [batch, m].
static tt_val row_order(tt_builder* b, tt_val pivots, int64_t m) {
  int64_t dims[2] = {tt_dim_of(b, pivots, 0), m};
  tt_type type = tt_type_make(TT_I32, 2, dims);
  tt_val state[3] = {tt_const_i(b, TT_I32, 0), tt_iota(b, &type, 1), pivots}, done[3];
  tt_while(b, 3, state, steps_left, exchange, NULL, done);
  return done[1];
}
// The permutation matrix with A = P L U, [batch, m, m].
static tt_val permutation(tt_builder* b, tt_val order, tt_dtype dtype) {
  int64_t m = tt_dim_of(b, order, 1), dims[3] = {tt_dim_of(b, order, 0), m, m};
  tt_type type = tt_type_make(TT_I32, 3, dims);
  return tt_convert(b, tt_test(b, TT_EQ, tt_iota(b, &type, 1), tt_unsqueeze(b, order, 1)), dtype);
}
static void by_order(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  results[0] = tt_compare(b, TT_LT, args[0], args[1]);
}
// Rows of x in the given order, or put back from it.
static tt_val order_rows(tt_builder* b, tt_val x, tt_val order, bool back) {
  int64_t batch = tt_dim_of(b, x, 0), m = tt_dim_of(b, x, 1), n = tt_dim_of(b, x, 2);
  if (back) {
    tt_val keys[2] = {order, tt_iota_like(b, order, TT_I32, 1)};
    tt_val sorted[2];
    tt_sort(b, 2, keys, 1, true, by_order, NULL, sorted);
    order = sorted[1];
  }
  int64_t flat[2] = {batch * m, n}, list[2] = {batch * m, 1}, dims[3] = {batch, m, n}, sizes[2] = {1, n};
  tt_val at = tt_add(b, order, tt_mul(b, tt_iota_like(b, order, TT_I32, 0), tt_const_i(b, TT_I32, m)));
  tt_gather_dims g = {.num_offset = 1, .offset = {1}, .num_collapsed = 1, .num_start_map = 1, .index_vector_dim = 1};
  return tt_reshape(b, tt_gather(b, tt_reshape(b, x, 2, flat), tt_reshape(b, at, 2, list), &g, sizes), 3, dims);
}
// Solves A x = rhs, or the adjoint system, from factors: all [batch, ...].
static tt_val solve_factored(tt_builder* b, tt_val factors, tt_val pivots, tt_val rhs, bool adjoint) {
  tt_val order = row_order(b, pivots, tt_dim_of(b, factors, 1));
  if (adjoint) {
    tt_val y = tt_triangular_solve(b, factors, rhs, true, false, false, 2);
    y = tt_triangular_solve(b, factors, y, true, true, true, 2);
    return order_rows(b, y, order, true);
  }
  tt_val y = tt_triangular_solve(b, factors, order_rows(b, rhs, order, false), true, true, true, 0);
  return tt_triangular_solve(b, factors, y, true, false, false, 0);
}
static tt_val solve_side(tt_builder* b, tt_val factors, tt_val pivots, tt_val rhs, bool left, bool adjoint) {
  if (left) {
    return solve_factored(b, factors, pivots, rhs, adjoint);
  }
  return tt_mat_adjoint(b, solve_factored(b, factors, pivots, tt_mat_adjoint(b, rhs), !adjoint));
}

// ---- entries ----------------------------------------------------------------------------------------------------------------

static void out_shaped(tt_lower* L, tt_builder* b, int k, tt_val value) {
  if (tt_out_wanted(L, k)) {
    tt_out(L, k, tt_reshape(b, value, tt_out_type(L, k)->rank, tt_out_type(L, k)->dims));
  }
}
static bool square_is_contiguous(const tt_tensor* t) {
  int64_t stride = 1;
  for (int d = t->rank - 1; d >= 0; --d) {
    if (t->sizes[d] != 1 && t->strides[d] != stride) {
      return false;
    }
    stride *= t->sizes[d];
  }
  return true;
}
// For determinants PyTorch factors the transpose of contiguous real matrices (and its backward formulas count on it).
static bool factors_transpose(const tt_tensor* t) {
  return square_is_contiguous(t) && !tt_dtype_is_complex(t->dtype);
}
static lu factorize_argument(tt_lower* L, tt_builder* b, int i) {
  tt_val a = tt_arg(L, i);
  return factorize(b, factors_transpose(tt_arg_info(L, i)) ? tt_swap_dims(b, a, -1, -2) : a);
}

TT_OP(linalg_lu_factor_ex,
      "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, "
      "Tensor info)") {
  if (!tt_arg_bool(L, 1)) {
    tt_unsupported(L, "LU without pivoting");
    return;
  }
  if (!tt_mat_nothing(L, b)) {
    lu f = factorize(b, tt_arg(L, 0));
    out_shaped(L, b, 0, f.factors);
    out_shaped(L, b, 1, f.pivots);
    out_shaped(L, b, 2, f.info);
  }
}

// Outputs P, L, U from k on: the unit lower and the upper part of factors.
static void unpack(tt_lower* L, tt_builder* b, tt_val factors, tt_val order, bool data, bool pivots) {
  int64_t m = tt_dim_of(b, factors, 1), n = tt_dim_of(b, factors, 2), k = m < n ? m : n;
  tt_dtype dtype = tt_dtype_of(b, factors);
  if (pivots) {
    out_shaped(L, b, 0, permutation(b, order, dtype));
  } else if (tt_out_wanted(L, 0)) {
    tt_out(L, 0, tt_const_i(b, dtype, 0));
  }
  if (data) {
    tt_val lower = tt_mat_triangle(b, tt_slice_dim(b, factors, 2, 0, k, 1), true, -1);
    out_shaped(L, b, 1, tt_add(b, lower, tt_mat_eye(b, dtype, m, k)));
    out_shaped(L, b, 2, tt_mat_triangle(b, tt_slice_dim(b, factors, 1, 0, k, 1), false, 0));
    return;
  }
  tt_out(L, 1, tt_const_i(b, dtype, 0));
  tt_out(L, 2, tt_const_i(b, dtype, 0));
}
// P, L, U of matrices without elements.
static void unpack_nothing(tt_lower* L, tt_builder* b, bool pivots) {
  for (int k = 0; k < 3; ++k) {
    const tt_type* t = tt_out_type(L, k);
    bool eye = k == 0 && pivots && tt_type_elements(t) > 0;
    if (tt_out_wanted(L, k)) {
      tt_out(L, k,
             eye ? tt_mat_eye(b, t->dtype, t->dims[t->rank - 2], t->dims[t->rank - 1]) : tt_const_i(b, t->dtype, 0));
    }
  }
}
TT_OP(linalg_lu, "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)") {
  tt_val a = tt_arg(L, 0);
  if (!tt_arg_bool(L, 1)) {
    tt_unsupported(L, "LU without pivoting");
    return;
  }
  if (tt_type_elements(tt_type_of(b, a)) == 0) {
    unpack_nothing(L, b, true);
    return;
  }
  lu f = factorize(b, a);
  unpack(L, b, f.factors, row_order(b, f.pivots, tt_dim_of(b, f.factors, 1)), true, true);
}
TT_OP(lu_unpack,
      "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, "
      "Tensor L, "
      "Tensor U)") {
  tt_val a = tt_arg(L, 0);
  if (tt_type_elements(tt_type_of(b, a)) == 0) {
    unpack_nothing(L, b, tt_arg_bool(L, 3));
    return;
  }
  a = tt_mat_flat(b, a);
  tt_val pivots = tt_arg_as(L, 1, TT_I32);
  int64_t dims[2] = {tt_dim_of(b, a, 0), tt_dim_of(b, pivots, tt_rank_of(b, pivots) - 1)};
  tt_val order = row_order(b, tt_reshape(b, pivots, 2, dims), tt_dim_of(b, a, 1));
  unpack(L, b, a, order, tt_arg_bool(L, 2), tt_arg_bool(L, 3));
}

TT_OP(linalg_lu_solve,
      "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor") {
  const tt_type* to = tt_out_type(L, 0);
  if (tt_mat_nothing(L, b)) {
    return;
  }
  tt_val factors = tt_mat_flat(b, tt_mat_expand(b, tt_arg(L, 0), to->rank, to->dims));
  tt_val rhs = tt_mat_flat(b, tt_mat_expand(b, tt_arg(L, 2), to->rank, to->dims));
  tt_val pivots = tt_unsqueeze(b, tt_arg_as(L, 1, TT_I32), -2);
  pivots = tt_squeeze(b, tt_mat_flat(b, tt_mat_expand(b, pivots, to->rank, to->dims)), 1);
  out_shaped(L, b, 0, solve_side(b, factors, pivots, rhs, tt_arg_bool(L, 3), tt_arg_bool(L, 4)));
}

TT_OP(linalg_solve_ex,
      "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, "
      "Tensor pivots, Tensor info)") {
  const tt_tensor* a = tt_arg_info(L, 0);
  const tt_tensor* rhs_info = tt_arg_info(L, 1);
  tt_val rhs = tt_arg(L, 1);
  if (tt_type_elements(tt_out_type(L, 0)) == 0 && tt_type_elements(tt_out_type(L, 1)) == 0) {
    tt_mat_nothing(L, b);
    return;
  }
  bool vector = rhs_info->rank == 1;
  if (!vector && a->rank - 1 == rhs_info->rank) {
    vector = true;
    for (int d = 0; d < rhs_info->rank; ++d) {
      vector &= a->sizes[d] == rhs_info->sizes[d];
    }
  }
  rhs = vector ? tt_unsqueeze(b, rhs, -1) : rhs;
  lu f = factorize(b, tt_arg(L, 0));
  out_shaped(L, b, 1, f.factors);
  out_shaped(L, b, 2, f.pivots);
  out_shaped(L, b, 3, f.info);
  // The batch that the result has.
  const tt_type* to = tt_out_type(L, 0);
  int rank = to->rank + (vector ? 1 : 0);
  tt_type shape = *tt_out_type(L, 1);
  tt_val factors = tt_mat_flat(b, tt_mat_expand(b, tt_reshape(b, f.factors, shape.rank, shape.dims), rank, to->dims));
  shape = *tt_out_type(L, 2);
  tt_val pivots = tt_unsqueeze(b, tt_reshape(b, f.pivots, shape.rank, shape.dims), -2);
  pivots = tt_squeeze(b, tt_mat_flat(b, tt_mat_expand(b, pivots, rank, to->dims)), 1);
  rhs = tt_mat_flat(b, tt_mat_expand(b, rhs, rank, to->dims));
  if (tt_type_elements(to) == 0) {
    tt_out(L, 0, tt_const_i(b, to->dtype, 0));
    return;
  }
  out_shaped(L, b, 0, solve_side(b, factors, pivots, rhs, vector || tt_arg_bool(L, 2), false));
}

TT_OP(linalg_inv_ex, "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)") {
  if (!tt_mat_nothing(L, b)) {
    lu f = factorize(b, tt_arg(L, 0));
    tt_val eye = tt_expand_like(
        b, tt_mat_eye(b, tt_dtype_of(b, f.factors), tt_dim_of(b, f.factors, 1), tt_dim_of(b, f.factors, 1)), f.factors);
    out_shaped(L, b, 0, solve_factored(b, f.factors, f.pivots, eye, false));
    out_shaped(L, b, 1, f.info);
  }
}

// The sign that the row exchanges give the determinant, [batch].
static tt_val exchange_sign(tt_builder* b, tt_val pivots, tt_dtype dtype) {
  int64_t one = 1;
  tt_val stay = tt_add(b, tt_iota_like(b, pivots, TT_I32, 1), tt_const_i(b, TT_I32, 1));
  tt_val moved = tt_convert(b, tt_test(b, TT_NE, pivots, stay), TT_I32);
  tt_val odd = tt_bin(b, TT_REM, tt_reduce(b, TT_REDUCE_SUM, moved, 1, &one), tt_const_i(b, TT_I32, 2));
  return tt_convert(b, tt_where(b, tt_test_f(b, TT_EQ, odd, 1), tt_const_i(b, TT_I32, -1), tt_const_i(b, TT_I32, 1)),
                    dtype);
}
TT_OP(linalg_det, "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)") {
  const tt_type* factors = tt_out_type(L, 1);
  if (tt_type_elements(factors) == 0) {
    tt_out(L, 0, tt_const_i(b, factors->dtype, 1));
    tt_out(L, 1, tt_const_i(b, factors->dtype, 0));
    tt_out(L, 2, tt_const_i(b, TT_I32, 0));
    return;
  }
  int64_t one = 1;
  lu f = factorize_argument(L, b, 0);
  tt_val product = tt_reduce(b, TT_REDUCE_PROD, tt_mat_diagonal(b, f.factors), 1, &one);
  out_shaped(L, b, 0, tt_mul(b, product, exchange_sign(b, f.pivots, factors->dtype)));
  out_shaped(L, b, 1, f.factors);
  out_shaped(L, b, 2, f.pivots);
}
TT_OP(linalg_slogdet, "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)") {
  const tt_type* factors = tt_out_type(L, 2);
  if (tt_type_elements(factors) == 0) {
    tt_out(L, 0, tt_const_i(b, factors->dtype, 1));
    tt_out(L, 1, tt_const_i(b, tt_dtype_real(factors->dtype), 0));
    tt_out(L, 2, tt_const_i(b, factors->dtype, 0));
    tt_out(L, 3, tt_const_i(b, TT_I32, 0));
    return;
  }
  int64_t one = 1;
  lu f = factorize_argument(L, b, 0);
  tt_val diagonal = tt_mat_diagonal(b, f.factors);
  tt_val sign = tt_reduce(b, TT_REDUCE_PROD, tt_unary(b, TT_SIGN, diagonal), 1, &one);
  out_shaped(L, b, 0, tt_mul(b, sign, exchange_sign(b, f.pivots, factors->dtype)));
  out_shaped(L, b, 1, tt_reduce(b, TT_REDUCE_SUM, tt_unary(b, TT_LOG, tt_unary(b, TT_ABS, diagonal)), 1, &one));
  out_shaped(L, b, 2, f.factors);
  out_shaped(L, b, 3, f.pivots);
}
