// SPDX-License-Identifier: Apache-2.0
//
// Histograms with a number of bins known beforehand.
#include <math.h>

#include "ops/indexing.h"
#include "ops/reduce.h"

TT_OP(histc, "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor") {
  tt_dtype dtype = tt_arg_info(L, 0)->dtype;
  if (dtype == TT_BOOL || tt_dtype_is_complex(dtype)) {
    tt_unsupported(L, "a histogram of truth values or complex numbers");
    return;
  }
  // Integers, which PyTorch counts on accelerators only, by exact positions rounded down.
  tt_val x = tt_flatten(b, tt_arg_as(L, 0, tt_dtype_is_float(dtype) ? tt_dtype_compute(dtype) : TT_I64));
  int64_t bins = tt_arg_int(L, 1);
  double from = tt_dtype_is_float(dtype) ? tt_arg_float(L, 2) : trunc(tt_arg_float(L, 2));
  double to = tt_dtype_is_float(dtype) ? tt_arg_float(L, 3) : trunc(tt_arg_float(L, 3));
  tt_val low = tt_like_f(b, x, from);
  tt_val high = tt_like_f(b, x, to);
  if (from == to && tt_dim_of(b, x, 0) > 0) {
    int64_t dim = 0;
    low = tt_reduce(b, TT_REDUCE_MIN, x, 1, &dim);
    high = tt_reduce(b, TT_REDUCE_MAX, x, 1, &dim);
  }
  // Equal ends: one to each side.
  tt_val flat = tt_test(b, TT_EQ, low, high);
  tt_val left = tt_where(b, flat, tt_add_f(b, low, -1), low);
  tt_val right = tt_where(b, flat, tt_add_f(b, high, 1), high);
  tt_val position = tt_div(b, tt_mul_f(b, tt_sub(b, x, left), (double)bins), tt_sub(b, right, left));
  tt_val bin = tt_convert(b, position, TT_I32);
  bin = tt_min(b, bin, tt_like_i(b, bin, bins - 1));
  tt_val counts = tt_and(b, tt_test(b, TT_GE, x, left), tt_test(b, TT_LE, x, right));
  bin = tt_where(b, counts, bin, tt_full_like(b, bin, (double)bins));  // outside: skipped
  tt_val zeros = tt_zeros(b, tt_dtype_of(b, x), 1, &bins);
  tt_out(L, 0, tt_put_flat(b, zeros, bin, tt_full_like(b, x, 1), TT_COMBINE_ADD));
}
