// SPDX-License-Identifier: Apache-2.0
//
// Tensors from numbers: filling, ranges, triangles.
#include "ops/pointwise.h"

// ---- filling --------------------------------------------------------------------------------------------------------

TT_OP(fill, "fill.Scalar(Tensor self, Scalar value) -> Tensor") {
  tt_out(L, 0, tt_arg_scalar(L, 1, tt_out_type(L, 0)->dtype));
}
TT_OP(fill_tensor, "fill.Tensor(Tensor self, Tensor value) -> Tensor") {
  tt_out(L, 0, tt_arg_as(L, 1, tt_out_type(L, 0)->dtype));
}
TT_OP(zero, "zero(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_const_i(b, tt_out_type(L, 0)->dtype, 0));
}
TT_OP(efficient_zeros,
      "_efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
      "bool? pin_memory=None) -> Tensor") {
  tt_out(L, 0, tt_const_i(b, tt_out_type(L, 0)->dtype, 0));
}

// 0, 1, ... along the last dimension but `from_end`, in the output's sizes.
static tt_val counting(tt_lower* L, tt_builder* b, tt_dtype dtype, int from_end) {
  tt_type type = *tt_out_type(L, 0);
  type.dtype = dtype;
  return tt_iota(b, &type, type.rank - 1 - from_end);
}

static void eye(tt_lower* L, tt_builder* b) {
  tt_out(L, 0, tt_test(b, TT_EQ, counting(L, b, TT_I32, 1), counting(L, b, TT_I32, 0)));
}
TT_OP(eye, "eye.out(SymInt n, *, Tensor(a!) out) -> Tensor(a!)") {
  eye(L, b);
}
TT_OP(eye_m, "eye.m_out(SymInt n, SymInt m, *, Tensor(a!) out) -> Tensor(a!)") {
  eye(L, b);
}

// ---- ranges ---------------------------------------------------------------------------------------------------------

// The output's elements counted in row-major order, whatever its rank.
static tt_val positions(tt_lower* L, tt_builder* b, tt_dtype dtype) {
  tt_type type = *tt_out_type(L, 0);
  int64_t n = tt_type_elements(&type);
  tt_type flat = tt_type_make(n > INT32_MAX ? TT_I64 : TT_I32, 1, &n);
  return tt_convert(b, tt_iota(b, &flat, 0), dtype);
}
static void out_in_order(tt_lower* L, tt_builder* b, tt_val flat) {
  const tt_type* type = tt_out_type(L, 0);
  tt_out(L, 0, tt_reshape(b, tt_expand(b, flat, 1, (int64_t[]){tt_type_elements(type)}), type->rank, type->dims));
}

// Integers counted in integers, others in the type PyTorch computes in.
static tt_dtype range_dtype(tt_lower* L) {
  tt_dtype dtype = tt_dtype_compute(tt_out_type(L, 0)->dtype);
  return tt_dtype_is_integral(dtype) || dtype == TT_BOOL ? TT_I64 : dtype;
}
static void range(tt_lower* L, tt_builder* b) {
  tt_dtype dtype = range_dtype(L);
  tt_val start = tt_arg_scalar(L, 0, dtype);
  tt_val offset = tt_mul(b, positions(L, b, dtype), tt_arg_scalar(L, 2, dtype));
  out_in_order(L, b, tt_add(b, offset, start));
}
TT_OP(arange, "arange.start_out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)") {
  range(L, b);
}
TT_OP(range, "range.out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)") {
  range(L, b);
}

// `steps` values from start to end; each half counts from its own end. Integers step in f64 between whole ends, as on the CPU.
static tt_val line(tt_lower* L, tt_builder* b, tt_dtype dtype) {
  bool whole = tt_dtype_is_integral(tt_out_type(L, 0)->dtype);
  tt_val start = tt_arg_scalar(L, 0, dtype);
  tt_val end = tt_arg_scalar(L, 1, dtype);
  start = whole ? tt_trunc(b, start) : start;
  end = whole ? tt_trunc(b, end) : end;
  int64_t steps = tt_arg_int(L, 2);
  if (steps <= 1) {
    return start;
  }
  tt_val at = positions(L, b, dtype);
  tt_val gaps = tt_like_f(b, start, (double)(steps - 1));
  if (whole) {
    // XLA turns division by a constant into multiplication, which is not exact; results are cut to integers afterwards.
    gaps = tt_add(b, gaps, tt_mul_f(b, start, 0));
  }
  tt_val step = tt_div(b, tt_sub(b, end, start), gaps);
  tt_val left = tt_add(b, tt_mul(b, at, step), start);
  tt_val to_go = tt_sub(b, tt_like_f(b, at, (double)(steps - 1)), at);
  tt_val right = tt_sub(b, end, tt_mul(b, to_go, step));
  tt_val count = positions(L, b, TT_I64);
  return tt_where(b, tt_test_f(b, TT_LT, count, (double)(steps / 2)), left, right);
}
static tt_dtype line_dtype(tt_lower* L) {
  tt_dtype dtype = tt_dtype_compute(tt_out_type(L, 0)->dtype);
  return tt_dtype_is_float(dtype) || tt_dtype_is_complex(dtype) ? dtype : TT_F64;
}
TT_OP(linspace, "linspace.out(Scalar start, Scalar end, int steps, *, Tensor(a!) out) -> Tensor(a!)") {
  out_in_order(L, b, line(L, b, line_dtype(L)));
}
TT_OP(logspace, "logspace.out(Scalar start, Scalar end, int steps, float base=10., *, Tensor(a!) out) -> Tensor(a!)") {
  tt_dtype dtype = line_dtype(L);
  tt_val exponent = line(L, b, dtype);
  tt_val base = tt_arg_scalar(L, 3, dtype);
  out_in_order(L, b, tt_power(b, tt_expand_like(b, base, exponent), exponent));
}

// ---- triangles ------------------------------------------------------------------------------------------------------

// Keeps elements (row, column) with column - row <= diagonal, or >=.
static void triangle(tt_lower* L, tt_builder* b, tt_cmp cmp) {
  tt_val x = tt_arg(L, 0);
  tt_val gap = tt_sub(b, counting(L, b, TT_I32, 0), counting(L, b, TT_I32, 1));
  int64_t diagonal = tt_arg_int(L, 1);
  diagonal = diagonal > INT32_MAX ? INT32_MAX : diagonal < INT32_MIN ? INT32_MIN : diagonal;
  tt_out(L, 0, tt_where(b, tt_test(b, cmp, gap, tt_const_i(b, TT_I32, diagonal)), x, tt_like_f(b, x, 0)));
}
TT_OP(tril, "tril(Tensor self, SymInt diagonal=0) -> Tensor") {
  triangle(L, b, TT_LE);
}
TT_OP(triu, "triu(Tensor self, SymInt diagonal=0) -> Tensor") {
  triangle(L, b, TT_GE);
}

// Row and column of the k-th element of a triangle whose rows hold `first`, first + 1, ... elements, then `full` a row.
static void triangle_position(tt_builder* b, tt_val k, int64_t first, int64_t full, tt_val* row, tt_val* column) {
  int64_t growing = full > first ? full - first : 0;       // rows before the full ones
  int64_t before_full = growing * (first + full - 1) / 2;  // elements in them
  // The largest r with r * first + r (r - 1) / 2 <= k, by the root of the quadratic, then by trial against rounding.
  tt_val two_k = tt_mul_f(b, tt_convert(b, k, TT_F64), 2);
  double p = (double)first - 0.5;
  tt_val root = tt_add_f(b, tt_unary(b, TT_SQRT, tt_add_f(b, two_k, p * p)), -p);
  tt_val r = tt_max(b, tt_convert(b, root, TT_I64), tt_const_i(b, TT_I64, 0));
  tt_val start = TT_POISON;
  for (int trial = 0; trial < 2; ++trial) {
    tt_val candidate = trial == 0 ? tt_add_f(b, r, 1) : r;
    tt_val base = tt_add(b, tt_mul(b, candidate, tt_const_i(b, TT_I64, first)),
                         tt_div(b, tt_mul(b, candidate, tt_add_f(b, candidate, -1)), tt_const_i(b, TT_I64, 2)));
    tt_val fits = tt_test(b, TT_LE, base, k);
    r = trial == 0 ? tt_where(b, fits, candidate, r) : tt_where(b, fits, r, tt_add_f(b, r, -1));
  }
  start = tt_add(b, tt_mul(b, r, tt_const_i(b, TT_I64, first)),
                 tt_div(b, tt_mul(b, r, tt_add_f(b, r, -1)), tt_const_i(b, TT_I64, 2)));
  tt_val past = tt_sub(b, k, tt_const_i(b, TT_I64, before_full));
  tt_val width = tt_const_i(b, TT_I64, full > 0 ? full : 1);
  tt_val in_full = tt_test_f(b, TT_GE, past, 0);
  *row = tt_where(b, in_full, tt_add_f(b, tt_div(b, past, width), (double)growing), r);
  *column = tt_where(b, in_full, tt_bin(b, TT_REM, past, width), tt_sub(b, k, start));
}

#define TRIANGLE_ARGS                                                                                         \
  "(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? " \
  "pin_memory=None)"                                                                                          \
  " -> Tensor"
TT_OP(tril_indices, "tril_indices" TRIANGLE_ARGS) {
  int64_t columns = tt_arg_int(L, 1);
  int64_t offset = tt_arg_int(L, 2);
  int64_t n = tt_out_type(L, 0)->dims[1];
  tt_type flat = tt_type_make(TT_I64, 1, &n);
  int64_t skipped = offset < 0 ? -offset : 0;  // empty rows on top
  int64_t first = offset < 0 ? 1 : offset + 1 < columns ? offset + 1 : columns;
  tt_val at[2];
  triangle_position(b, tt_iota(b, &flat, 0), first, columns, &at[0], &at[1]);
  at[0] = tt_unsqueeze(b, tt_add_f(b, at[0], (double)skipped), 0);
  at[1] = tt_unsqueeze(b, at[1], 0);
  tt_out(L, 0, tt_concat(b, 2, at, 0));
}
TT_OP(triu_indices, "triu_indices" TRIANGLE_ARGS) {
  // The lower triangle of the rest, walked backwards from the last row and column.
  int64_t rows = tt_arg_int(L, 0);
  int64_t columns = tt_arg_int(L, 1);
  int64_t offset = tt_arg_int(L, 2);
  int64_t n = tt_out_type(L, 0)->dims[1];
  tt_type flat = tt_type_make(TT_I64, 1, &n);
  tt_val k = tt_sub(b, tt_const_i(b, TT_I64, n - 1), tt_iota(b, &flat, 0));
  // The last row holds columns - offset - (rows - 1) elements, or rows are missing at the bottom.
  int64_t last = columns - offset - (rows - 1);
  int64_t skipped = last < 1 ? 1 - last : 0;
  int64_t first = last < 1 ? 1 : last < columns ? last : columns;
  tt_val at[2];
  triangle_position(b, k, first, columns, &at[0], &at[1]);
  at[0] = tt_unsqueeze(b, tt_sub(b, tt_const_i(b, TT_I64, rows - 1 - skipped), at[0]), 0);
  at[1] = tt_unsqueeze(b, tt_sub(b, tt_const_i(b, TT_I64, columns - 1), at[1]), 0);
  tt_out(L, 0, tt_concat(b, 2, at, 0));
}
