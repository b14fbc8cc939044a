// SPDX-License-Identifier: Apache-2.0
//
// Matrix products. 16-bit floats are multiplied as they are and added up in f32; integers are exact.
#include "ops/op.h"

// x [..., m, k] times y [..., k, n], leading dims equal, in the dtype that the operands' sums are kept in.
static tt_val product(tt_builder* b, tt_val x, tt_val y) {
  int rank = tt_rank_of(b, x);
  tt_dtype dtype = tt_dtype_of(b, x);
  tt_dtype sums = tt_dtype_is_integral(dtype) && tt_dtype_size(dtype) < 4 ? TT_I32 : tt_dtype_compute(dtype);
  if (tt_dim_of(b, x, rank - 1) == 0) {
    int64_t dims[TT_MAX_RANK];
    for (int d = 0; d < rank; ++d) {
      dims[d] = d == rank - 1 ? tt_dim_of(b, y, d) : tt_dim_of(b, x, d);
    }
    return tt_zeros(b, sums, rank, dims);
  }
  if (tt_dtype_is_integral(dtype) && tt_dtype_size(dtype) == 8) {
    // TPUs have no 64-bit product of matrices.
    tt_val terms = tt_mul(b, tt_unsqueeze(b, x, -1), tt_unsqueeze(b, y, rank - 2));
    int64_t k = rank - 1;
    return tt_reduce(b, TT_REDUCE_SUM, terms, 1, &k);
  }
  if (tt_dtype_is_integral(dtype)) {
    x = tt_convert(b, x, sums);
    y = tt_convert(b, y, sums);
  }
  // Batches of one are left out: XLA's CPU backend has no product of a transposed bf16 operand with them.
  int64_t batch[TT_MAX_RANK], dx[TT_MAX_RANK], dy[TT_MAX_RANK], full[TT_MAX_RANK];
  int n = 0;
  for (int d = 0; d < rank; ++d) {
    full[d] = d == rank - 1 ? tt_dim_of(b, y, d) : tt_dim_of(b, x, d);
    if (d >= rank - 2 || full[d] != 1) {
      batch[n] = n;
      dx[n] = tt_dim_of(b, x, d);
      dy[n++] = tt_dim_of(b, y, d);
    }
  }
  int64_t last = n - 1;
  int64_t before = n - 2;
  tt_val dot =
      tt_dot_general(b, tt_reshape(b, x, n, dx), tt_reshape(b, y, n, dy), n - 2, batch, batch, 1, &last, &before, sums);
  return tt_reshape(b, dot, rank, full);
}

// beta * self + alpha * value; self does not count if beta is 0, whatever it holds.
static tt_val accumulate(tt_lower* L, tt_builder* b, tt_val value, int self, int beta, int alpha) {
  tt_dtype dtype = tt_dtype_of(b, value);
  tt_val a = tt_arg_scalar(L, alpha, dtype);
  tt_val c = tt_arg_scalar(L, beta, dtype);
  double one = 0;
  if (!tt_val_is_const(b, a, &one) || one != 1) {
    value = tt_mul(b, a, value);
  }
  tt_val start = tt_arg_as(L, self, dtype);
  if (!tt_val_is_const(b, c, &one) || one != 1) {
    tt_val zero = tt_like_i(b, c, 0);
    start = tt_where(b, tt_test(b, TT_EQ, c, zero), zero, tt_mul(b, c, start));
  }
  return tt_add(b, start, value);
}

static tt_val columns(tt_builder* b, tt_val v) {
  return tt_unsqueeze(b, v, -1);
}

TT_OP(mm, "mm(Tensor self, Tensor mat2) -> Tensor") {
  tt_out(L, 0, product(b, tt_arg(L, 0), tt_arg(L, 1)));
}
TT_OP(mm_dtype, "mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor") {
  tt_out(L, 0, product(b, tt_arg(L, 0), tt_arg(L, 1)));
}
TT_OP(bmm, "bmm(Tensor self, Tensor mat2) -> Tensor") {
  tt_out(L, 0, product(b, tt_arg(L, 0), tt_arg(L, 1)));
}
TT_OP(bmm_dtype, "bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor") {
  tt_out(L, 0, product(b, tt_arg(L, 0), tt_arg(L, 1)));
}
TT_OP(int_mm, "_int_mm(Tensor self, Tensor mat2) -> Tensor") {
  tt_out(L, 0, product(b, tt_arg(L, 0), tt_arg(L, 1)));
}

TT_OP(addmm, "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor") {
  tt_out(L, 0, accumulate(L, b, product(b, tt_arg(L, 1), tt_arg(L, 2)), 0, 3, 4));
}
TT_OP(addmm_dtype,
      "addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> "
      "Tensor") {
  tt_out(L, 0, accumulate(L, b, product(b, tt_arg(L, 1), tt_arg(L, 2)), 0, 4, 5));
}
TT_OP(baddbmm, "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor") {
  tt_out(L, 0, accumulate(L, b, product(b, tt_arg(L, 1), tt_arg(L, 2)), 0, 3, 4));
}
TT_OP(baddbmm_dtype,
      "baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, Scalar "
      "alpha=1) -> Tensor") {
  tt_out(L, 0, accumulate(L, b, product(b, tt_arg(L, 1), tt_arg(L, 2)), 0, 4, 5));
}

// [batch, m, k] as [m, batch * k].
static tt_val side_by_side(tt_builder* b, tt_val x) {
  int64_t dims[2] = {tt_dim_of(b, x, 1), tt_dim_of(b, x, 0) * tt_dim_of(b, x, 2)};
  return tt_reshape(b, tt_swap_dims(b, x, 0, 1), 2, dims);
}
TT_OP(addbmm, "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor") {
  tt_val y = tt_arg(L, 2);
  int64_t stacked[2] = {tt_dim_of(b, y, 0) * tt_dim_of(b, y, 1), tt_dim_of(b, y, 2)};
  tt_val sum = product(b, side_by_side(b, tt_arg(L, 1)), tt_reshape(b, y, 2, stacked));
  tt_out(L, 0, accumulate(L, b, sum, 0, 3, 4));
}

TT_OP(addmv, "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor") {
  tt_val v = tt_squeeze(b, product(b, tt_arg(L, 1), columns(b, tt_arg(L, 2))), -1);
  tt_out(L, 0, accumulate(L, b, v, 0, 3, 4));
}
TT_OP(mv, "mv(Tensor self, Tensor vec) -> Tensor") {
  tt_out(L, 0, tt_squeeze(b, product(b, tt_arg(L, 0), columns(b, tt_arg(L, 1))), -1));
}

static tt_val inner(tt_builder* b, tt_val x, tt_val y) {
  int64_t one_dims[1] = {1};
  tt_val v = product(b, tt_unsqueeze(b, x, 0), columns(b, y));
  return tt_reshape(b, tt_reshape(b, v, 1, one_dims), 0, NULL);
}
TT_OP(dot, "dot(Tensor self, Tensor tensor) -> Tensor") {
  tt_out(L, 0, inner(b, tt_arg(L, 0), tt_arg(L, 1)));
}
TT_OP(vdot, "vdot(Tensor self, Tensor other) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  tt_out(L, 0, inner(b, tt_dtype_is_complex(tt_dtype_of(b, x)) ? tt_unary(b, TT_CHLO_CONJ, x) : x, tt_arg(L, 1)));
}

TT_OP(addr, "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor") {
  int args[3] = {0, 1, 2};
  tt_dtype dtype = tt_compute_dtype(L, TT_SAME, 3, args);
  tt_val x = columns(b, tt_arg_as(L, 1, dtype));
  tt_val y = tt_arg_as(L, 2, dtype);
  if (dtype == TT_BOOL) {
    tt_val outer = tt_and(b, tt_and(b, x, y), tt_arg_scalar(L, 4, TT_BOOL));
    tt_out(L, 0, tt_or(b, tt_and(b, tt_arg_as(L, 0, TT_BOOL), tt_arg_scalar(L, 3, TT_BOOL)), outer));
    return;
  }
  tt_out(L, 0, accumulate(L, b, tt_mul(b, x, y), 0, 3, 4));
}

TT_OP(addmm_activation,
      "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, "
      "bool use_gelu=False) -> Tensor") {
  tt_val x = accumulate(L, b, product(b, tt_arg(L, 1), tt_arg(L, 2)), 0, 3, 4);
  if (!tt_arg_bool(L, 5)) {
    tt_out(L, 0, tt_max(b, x, tt_like_i(b, x, 0)));
    return;
  }
  tt_val phi = tt_add_f(b, tt_unary(b, TT_CHLO_ERF, tt_mul_f(b, x, 0.7071067811865476)), 1);
  tt_out(L, 0, tt_mul(b, tt_mul_f(b, x, 0.5), phi));
}
