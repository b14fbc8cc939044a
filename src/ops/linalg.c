// SPDX-License-Identifier: Apache-2.0
//
// Triangular systems, Cholesky, and the exponential of a matrix.
#include "ops/linalg.h"

#include <math.h>

tt_val tt_mat_adjoint(tt_builder* b, tt_val a) {
  return tt_unary(b, TT_CHLO_CONJ, tt_swap_dims(b, a, -1, -2));
}

tt_val tt_mat_flat(tt_builder* b, tt_val a) {
  int rank = tt_rank_of(b, a);
  int64_t dims[3] = {1, tt_dim_of(b, a, rank - 2), tt_dim_of(b, a, rank - 1)};
  for (int d = 0; d < rank - 2; ++d) {
    dims[0] *= tt_dim_of(b, a, d);
  }
  return tt_reshape(b, a, 3, dims);
}

tt_val tt_mat_expand(tt_builder* b, tt_val a, int rank, const int64_t* batch) {
  int64_t dims[TT_MAX_RANK];
  int own = tt_rank_of(b, a);
  for (int d = 0; d < rank; ++d) {
    dims[d] = d < rank - 2 ? batch[d] : tt_dim_of(b, a, own - rank + d);
  }
  return tt_expand(b, a, rank, dims);
}

tt_val tt_mat_eye(tt_builder* b, tt_dtype dtype, int64_t m, int64_t n) {
  int64_t dims[2] = {m, n};
  tt_type type = tt_type_make(TT_I32, 2, dims);
  return tt_convert(b, tt_compare(b, TT_EQ, tt_iota(b, &type, 0), tt_iota(b, &type, 1)), dtype);
}

tt_val tt_mat_triangle(tt_builder* b, tt_val a, bool lower, int64_t k) {
  int rank = tt_rank_of(b, a);
  int64_t dims[2] = {tt_dim_of(b, a, rank - 2), tt_dim_of(b, a, rank - 1)};
  tt_type type = tt_type_make(TT_I32, 2, dims);
  tt_val offset = tt_sub(b, tt_iota(b, &type, 1), tt_iota(b, &type, 0));
  return tt_where(b, tt_test_f(b, lower ? TT_LE : TT_GE, offset, (double)k), a, tt_like_i(b, a, 0));
}

tt_val tt_mat_diagonal(tt_builder* b, tt_val a) {
  int rank = tt_rank_of(b, a);
  int64_t m = tt_dim_of(b, a, rank - 2), n = tt_dim_of(b, a, rank - 1);
  int64_t k = m < n ? m : n, rows = rank - 2;
  a = tt_slice_dim(b, tt_slice_dim(b, a, rank - 2, 0, k, 1), rank - 1, 0, k, 1);
  tt_val zero = tt_like_i(b, a, 0);
  return tt_reduce(b, TT_REDUCE_SUM, tt_where(b, tt_convert(b, tt_mat_eye(b, TT_F32, k, k), TT_BOOL), a, zero), 1,
                   &rows);
}

bool tt_mat_nothing(tt_lower* L, tt_builder* b) {
  bool none = tt_type_elements(tt_out_type(L, 0)) == 0;
  for (int k = 0; none && k < tt_out_count(L); ++k) {
    tt_out(L, k, tt_const_i(b, tt_out_type(L, k)->dtype, 0));
  }
  return none;
}

// ---- triangular systems -----------------------------------------------------------------------------------------------

// a and x with the batch dims of output 0.
static tt_val solve_triangle(tt_lower* L, tt_builder* b, tt_val a, tt_val x, bool left, bool upper, bool unit,
                             int transpose) {
  const tt_type* to = tt_out_type(L, 0);
  a = tt_mat_expand(b, a, to->rank, to->dims);
  x = tt_mat_expand(b, x, to->rank, to->dims);
  return tt_triangular_solve(b, a, x, left, !upper, unit, transpose);
}
TT_OP(linalg_solve_triangular,
      "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> "
      "Tensor") {
  if (!tt_mat_nothing(L, b)) {
    tt_out(
        L, 0,
        solve_triangle(L, b, tt_arg(L, 0), tt_arg(L, 1), tt_arg_bool(L, 3), tt_arg_bool(L, 2), tt_arg_bool(L, 4), 0));
  }
}
TT_OP(triangular_solve,
      "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
      "(Tensor solution, Tensor cloned_coefficient)") {
  tt_val a = tt_arg(L, 1);
  if (!tt_mat_nothing(L, b)) {
    tt_out(
        L, 0,
        solve_triangle(L, b, a, tt_arg(L, 0), true, tt_arg_bool(L, 2), tt_arg_bool(L, 4), tt_arg_bool(L, 3) ? 1 : 0));
  }
  const tt_type* clone = tt_out_type(L, 1);
  tt_out(L, 1, tt_mat_expand(b, a, clone->rank, clone->dims));
}

// ---- Cholesky -----------------------------------------------------------------------------------------------------------

typedef struct minors {
  tt_val a;
} minors;
static void more_steps(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  results[0] = tt_compare(b, TT_LT, args[0], tt_const_i(b, TT_I32, tt_dim_of(b, args[1], 1)));
}
// One step of elimination without pivots; notes the first pivot that is not positive.
static void eliminate(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  tt_val j = args[0], a = args[1], info = args[2];
  tt_val here = tt_test(b, TT_EQ, tt_iota_like(b, a, TT_I32, 2), j);
  tt_val zero = tt_like_i(b, a, 0);
  int64_t columns = 2, rows = 1;
  tt_val column = tt_reduce(b, TT_REDUCE_SUM, tt_where(b, here, a, zero), 1, &columns);
  tt_val at = tt_test(b, TT_EQ, tt_iota_like(b, column, TT_I32, 1), j);
  tt_val pivot = tt_reduce(b, TT_REDUCE_SUM, tt_where(b, at, column, zero), 1, &rows);
  tt_val good = tt_test_f(b, TT_GT, tt_unary(b, TT_REAL, pivot), 0);
  tt_val first = tt_and(b, tt_not(b, good), tt_test_f(b, TT_EQ, info, 0));
  tt_val next = tt_add(b, j, tt_const_i(b, TT_I32, 1));
  results[0] = next;
  results[2] = tt_where(b, first, next, info);
  tt_val safe = tt_where(b, good, pivot, tt_like_i(b, pivot, 1));
  tt_val scaled = tt_div(b, column, tt_unsqueeze(b, safe, 1));
  tt_val row = tt_unary(b, TT_CHLO_CONJ, column);
  results[1] = tt_sub(b, a, tt_mul(b, tt_unsqueeze(b, scaled, 2), tt_unsqueeze(b, row, 1)));
}
static void find_minor(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)args;
  tt_val a = ((minors*)ctx)->a;
  int64_t batch = tt_dim_of(b, a, 0);
  tt_val state[3] = {tt_const_i(b, TT_I32, 0), a, tt_zeros(b, TT_I32, 1, &batch)};
  tt_val done[3];
  tt_while(b, 3, state, more_steps, eliminate, NULL, done);
  results[0] = done[2];
}
static void no_minor(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)args;
  int64_t batch = tt_dim_of(b, ((minors*)ctx)->a, 0);
  results[0] = tt_zeros(b, TT_I32, 1, &batch);
}

// The lower factor of the lower triangle, or the upper factor of the upper; *info as LAPACK has it (NULL: not wanted).
static tt_val cholesky(tt_builder* b, tt_val a, bool upper, tt_val* info) {
  int rank = tt_rank_of(b, a);
  tt_val lower_part = upper ? tt_mat_adjoint(b, a) : a;
  tt_val below = tt_mat_triangle(b, lower_part, true, -1);
  tt_val whole = tt_add(b, tt_mat_triangle(b, lower_part, true, 0), tt_mat_adjoint(b, below));
  tt_val l = tt_mat_triangle(b, tt_cholesky(b, whole, true), true, 0);
  if (info != NULL) {
    minors m = {tt_mat_flat(b, whole)};
    tt_val diagonal = tt_unary(b, TT_REAL, tt_mat_diagonal(b, l));
    tt_val bad = tt_not(b, tt_test_f(b, TT_GT, diagonal, 0));
    int64_t dims[TT_MAX_RANK];
    for (int d = 0; d < rank - 1; ++d) {
      dims[d] = d;
    }
    tt_val found;
    tt_if(b, tt_reduce(b, TT_REDUCE_OR, bad, rank - 1, dims), 1, find_minor, no_minor, &m, &found);
    *info = tt_reshape(b, found, rank - 2, tt_type_of(b, a)->dims);
  }
  return upper ? tt_mat_adjoint(b, l) : l;
}

TT_OP(linalg_cholesky_ex,
      "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)") {
  if (!tt_mat_nothing(L, b)) {
    tt_val info;
    tt_out(L, 0, cholesky(b, tt_arg(L, 0), tt_arg_bool(L, 1), &info));
    tt_out(L, 1, info);
  }
}
TT_OP(cholesky_solve, "_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor") {
  if (!tt_mat_nothing(L, b)) {
    bool upper = tt_arg_bool(L, 2);
    tt_val half = solve_triangle(L, b, tt_arg(L, 1), tt_arg(L, 0), true, upper, false, upper ? 2 : 0);
    tt_out(L, 0, solve_triangle(L, b, tt_arg(L, 1), half, true, upper, false, upper ? 0 : 2));
  }
}
TT_OP(cholesky_inverse, "cholesky_inverse(Tensor self, bool upper=False) -> Tensor") {
  if (!tt_mat_nothing(L, b)) {
    bool upper = tt_arg_bool(L, 1);
    tt_val a = tt_arg(L, 0);
    tt_val eye = tt_mat_eye(b, tt_dtype_of(b, a), tt_dim_of(b, a, -1 + tt_rank_of(b, a)),
                            tt_dim_of(b, a, -1 + tt_rank_of(b, a)));
    tt_val half = solve_triangle(L, b, a, eye, true, upper, false, upper ? 2 : 0);
    tt_out(L, 0, solve_triangle(L, b, a, half, true, upper, false, upper ? 0 : 2));
  }
}

// ---- exponential --------------------------------------------------------------------------------------------------------

static void squares_left(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  int64_t zero = 0;
  results[0] = tt_test_f(b, TT_GT, tt_reduce(b, TT_REDUCE_MAX, args[1], 1, &zero), 0);
}
static void square(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  tt_val left = tt_test_f(b, TT_GT, args[1], 0);
  tt_val wide = tt_unsqueeze(b, tt_unsqueeze(b, left, 1), 1);
  results[0] = tt_where(b, wide, tt_matmul(b, args[0], args[0]), args[0]);
  results[1] = tt_sub(b, args[1], tt_const_i(b, TT_I32, 1));
}
// Halved until its 1-norm is at most 1, a Taylor polynomial (its rest is below the last bit there), squared as often.
TT_OP(linalg_matrix_exp, "linalg_matrix_exp(Tensor self) -> Tensor") {
  if (tt_mat_nothing(L, b)) {
    return;
  }
  const tt_type* to = tt_out_type(L, 0);
  tt_val a = tt_mat_flat(b, tt_arg_as(L, 0, tt_dtype_compute(to->dtype)));
  tt_dtype real = tt_dtype_real(tt_dtype_of(b, a));
  int64_t one = 1;
  tt_val norm = tt_reduce(b, TT_REDUCE_MAX, tt_reduce(b, TT_REDUCE_SUM, tt_unary(b, TT_ABS, a), 1, &one), 1, &one);
  tt_val log2 = tt_mul_f(b, tt_unary(b, TT_LOG, tt_max(b, norm, tt_const_f(b, real, 1))), 1.4426950408889634);
  tt_val times = tt_convert(b, tt_min(b, tt_unary(b, TT_CEIL, log2), tt_const_f(b, real, 64)), TT_I32);
  // 2^-times exactly: its exponent bits.
  bool wide = real == TT_F64;
  tt_dtype word = wide ? TT_I64 : TT_I32;
  tt_val exponent = tt_sub(b, tt_const_i(b, word, wide ? 1023 : 127), tt_convert(b, times, word));
  tt_val scale = tt_bitcast(b, tt_bin(b, TT_SHL, exponent, tt_const_i(b, word, wide ? 52 : 23)), real);
  scale = tt_unsqueeze(b, tt_unsqueeze(b, scale, 1), 1);
  a = tt_mul(b, a, tt_convert(b, scale, tt_dtype_of(b, a)));
  tt_val eye = tt_mat_eye(b, tt_dtype_of(b, a), tt_dim_of(b, a, 1), tt_dim_of(b, a, 1));
  int degree = real == TT_F64 ? 18 : 12;
  tt_val sum = tt_expand_like(b, eye, a);
  for (int k = degree; k >= 1; --k) {
    sum = tt_add(b, eye, tt_mul_f(b, tt_matmul(b, a, sum), 1.0 / k));
  }
  tt_val state[2] = {sum, times}, done[2];
  tt_while(b, 2, state, squares_left, square, NULL, done);
  tt_out(L, 0, tt_reshape(b, done[0], to->rank, to->dims));
}
