// SPDX-License-Identifier: Apache-2.0
//
// Distances between all pairs of rows: of two matrices (cdist), or of one (pdist, the pairs i < j in order).
#include <math.h>

#include "ops/indexing.h"
#include "ops/reduce.h"

// x[..., i, :] - y[..., j, :], leading dimensions broadcast.
static tt_val pair_differences(tt_builder* b, tt_val x, tt_val y) {
  return tt_sub(b, tt_unsqueeze(b, x, -2), tt_unsqueeze(b, y, -3));
}

static tt_val pair_distances(tt_builder* b, tt_val x, tt_val y, double p) {
  tt_val difference = tt_unary(b, TT_ABS, pair_differences(b, x, y));
  int64_t last = tt_rank_of(b, difference) - 1;
  return tt_squeeze(b, tt_p_norm(b, difference, p, 1, &last), -1);
}

// The gradient at x, given those of the distances.
static tt_val pair_gradients(tt_builder* b, tt_val grad, tt_val x, tt_val y, double p, tt_val distance) {
  tt_val difference = pair_differences(b, x, y);
  tt_val zero = tt_full_like(b, difference, 0);
  tt_val sign = tt_unary(b, TT_SIGN, difference);
  tt_val size = tt_unary(b, TT_ABS, difference);
  tt_val slope;
  distance = tt_unsqueeze(b, distance, -1);
  if (p == 0) {
    slope = zero;
  } else if (p == 1) {
    slope = sign;
  } else if (isinf(p)) {
    slope = tt_where(b, tt_test(b, TT_EQ, size, distance), sign, zero);
  } else {
    // sign * (|difference| / distance)^(p - 1)
    tt_val ratio = tt_div(b, size, distance);
    tt_val power = p == 2 ? ratio : tt_bin(b, TT_POW, ratio, tt_like_f(b, ratio, p - 1));
    tt_val flat = tt_test_f(b, TT_EQ, distance, 0);
    if (p < 1) {
      flat = tt_or(b, flat, tt_test_f(b, TT_EQ, size, 0));
    }
    slope = tt_where(b, tt_expand_like(b, flat, power), zero, tt_mul(b, sign, power));
  }
  int64_t over = tt_rank_of(b, difference) - 2;
  return tt_reduce(b, TT_REDUCE_SUM, tt_mul(b, slope, tt_unsqueeze(b, grad, -1)), 1, &over);
}

TT_OP(cdist_forward, "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor") {
  tt_dtype dtype = tt_dtype_compute(tt_out_type(L, 0)->dtype);
  tt_out(L, 0, pair_distances(b, tt_arg_as(L, 0, dtype), tt_arg_as(L, 1, dtype), tt_arg_float(L, 2)));
}
TT_OP(cdist_backward, "_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor") {
  const tt_type* out = tt_out_type(L, 0);
  tt_dtype dtype = tt_dtype_compute(out->dtype);
  if (tt_type_elements(tt_type_of(b, tt_arg(L, 0))) == 0) {  // no pairs
    tt_out(L, 0, tt_zeros(b, dtype, out->rank, out->dims));
    return;
  }
  tt_val grad = pair_gradients(b, tt_arg_as(L, 0, dtype), tt_arg_as(L, 1, dtype), tt_arg_as(L, 2, dtype),
                               tt_arg_float(L, 3), tt_arg_as(L, 4, dtype));
  if (tt_type_elements(tt_type_of(b, grad)) == 0) {
    tt_out(L, 0, tt_const_i(b, dtype, 0));  // no pairs, in a batch or at all
    return;
  }
  tt_out_shaped(L, 0, grad);
}

// ---- pairs within one matrix --------------------------------------------------------------------------------------------

// Where the pairs (i, i+1), (i, i+2), ... of n rows start: i (2n - i - 1) / 2.
static tt_val pair_start(tt_builder* b, tt_val i, int64_t n) {
  tt_val twice = tt_mul(b, i, tt_sub(b, tt_like_i(b, i, 2 * n - 1), i));
  return tt_div(b, twice, tt_full_like(b, twice, 2));
}

TT_OP(pdist_forward, "_pdist_forward(Tensor self, float p=2.) -> Tensor") {
  tt_val x = tt_arg_as(L, 0, tt_dtype_compute(tt_arg_info(L, 0)->dtype));
  int64_t n = tt_dim_of(b, x, 0);
  int64_t pairs = n * (n - 1) / 2;
  tt_type type = tt_type_make(TT_I64, 1, &pairs);
  tt_val pair = tt_iota(b, &type, 0);
  // The row of each pair is the last one that starts at or before it: bit by bit.
  tt_val row = tt_full_like(b, pair, 0);
  int64_t bit = 1;
  while (bit * 2 < n) {
    bit *= 2;
  }
  for (; bit > 0; bit /= 2) {
    tt_val next = tt_add(b, row, tt_like_i(b, row, bit));
    tt_val fits =
        tt_and(b, tt_test(b, TT_LT, next, tt_like_i(b, row, n)), tt_test(b, TT_LE, pair_start(b, next, n), pair));
    row = tt_where(b, fits, next, row);
  }
  tt_val column = tt_add(b, tt_sub(b, pair, pair_start(b, row, n)), tt_add_f(b, row, 1));
  column = tt_min(b, column, tt_like_i(b, column, n > 0 ? n - 1 : 0));
  tt_val difference = tt_sub(b, tt_take_rows(b, x, row, 0), tt_take_rows(b, x, column, 0));
  int64_t last = 1;
  tt_out_shaped(L, 0, tt_p_norm(b, tt_unary(b, TT_ABS, difference), tt_arg_float(L, 1), 1, &last));
}

TT_OP(pdist_backward, "_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor") {
  tt_val x = tt_arg_as(L, 1, tt_dtype_compute(tt_arg_info(L, 1)->dtype));
  tt_dtype dtype = tt_dtype_of(b, x);
  int64_t n = tt_dim_of(b, x, 0);
  if (n < 2) {
    tt_out(L, 0, tt_full_like(b, x, 0));
    return;
  }
  int64_t square[2] = {n, n};
  tt_type type = tt_type_make(TT_I64, 2, square);
  tt_val i = tt_iota(b, &type, 0);
  tt_val j = tt_iota(b, &type, 1);
  tt_val low = tt_min(b, i, j);
  tt_val pair = tt_add(b, pair_start(b, low, n), tt_add_f(b, tt_sub(b, tt_max(b, i, j), low), -1));
  tt_val same = tt_test(b, TT_EQ, i, j);
  pair = tt_where(b, same, tt_full_like(b, pair, 0), pair);
  tt_val grad = tt_take_rows(b, tt_arg_as(L, 0, dtype), pair, 0);
  tt_val distance = tt_take_rows(b, tt_arg_as(L, 3, dtype), pair, 0);
  grad = tt_where(b, same, tt_full_like(b, grad, 0), grad);
  distance = tt_where(b, same, tt_full_like(b, distance, 0), distance);
  tt_out(L, 0, pair_gradients(b, grad, x, x, tt_arg_float(L, 2), distance));
}
