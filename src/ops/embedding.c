// SPDX-License-Identifier: Apache-2.0
//
// Embedding tables: lookup and its gradient, renormalisation. src/ops/embedding_bag.c has sums over bags.
#include "ops/indexing.h"

TT_OP(embedding,
      "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
      "sparse=False) -> Tensor") {
  tt_val weight = tt_arg(L, 0);
  tt_val at = tt_safe_index(L, tt_arg(L, 1), tt_dim_of(b, weight, 0), false);
  tt_out(L, 0, tt_take_rows(b, weight, at, 0));
}

TT_OP(embedding_dense_backward,
      "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, "
      "bool scale_grad_by_freq) -> Tensor") {
  const tt_type* out = tt_out_type(L, 0);
  int64_t rows = out->dims[0];
  int64_t width = out->dims[1];
  int64_t padding = tt_arg_int(L, 3);
  tt_val indices = tt_flatten(b, tt_arg(L, 1));
  int64_t count = tt_dim_of(b, indices, 0);
  if (count == 0 || rows == 0 || width == 0) {
    tt_out(L, 0, tt_zeros(b, out->dtype, out->rank, out->dims));
    return;
  }
  int64_t flat_dims[2] = {count, width};
  tt_val grad = tt_convert(b, tt_reshape(b, tt_arg(L, 0), 2, flat_dims), tt_dtype_compute(out->dtype));
  tt_val at = tt_safe_index(L, indices, rows, false);
  tt_dtype dtype = tt_dtype_of(b, grad);
  if (tt_arg_bool(L, 4)) {
    tt_val ones = tt_expand(b, tt_const_i(b, TT_I32, 1), 1, &count);
    tt_val times = tt_put_flat(b, tt_zeros(b, TT_I32, 1, &rows), at, ones, TT_COMBINE_ADD);
    tt_val each = tt_convert(b, tt_take_rows(b, times, at, 0), dtype);
    grad = tt_div(b, grad, tt_unsqueeze(b, each, 1));
  }
  if (padding >= 0) {
    at = tt_where(b, tt_test(b, TT_EQ, at, tt_like_i(b, at, padding)), tt_like_i(b, at, rows),
                  at);  // place `rows` is outside: skipped
  }
  tt_val zero = tt_zeros(b, dtype, out->rank, out->dims);
  tt_out(L, 0, tt_put_rows(b, zero, at, grad, 0, TT_COMBINE_ADD));
}

// Rows that are named and longer than max_norm are brought to it.
TT_OP(embedding_renorm, "embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  int64_t rows = tt_dim_of(b, x, 0);
  tt_dtype dtype = tt_dtype_compute(tt_dtype_of(b, x));
  tt_val wide = tt_convert(b, x, dtype);
  tt_val indices = tt_flatten(b, tt_arg(L, 1));
  int64_t count = tt_dim_of(b, indices, 0);
  tt_val yes = tt_expand(b, tt_const_i(b, TT_BOOL, 1), 1, &count);
  tt_val at = tt_safe_place(L, indices, rows, false);
  tt_val named = tt_unsqueeze(b, tt_put_flat(b, tt_zeros(b, TT_BOOL, 1, &rows), at, yes, TT_COMBINE_SET), 1);
  double p = tt_arg_float(L, 3);
  tt_val size = tt_unary(b, TT_ABS, wide);
  tt_val norm;
  if (p == 2) {
    norm = tt_unary(b, TT_SQRT, tt_sum_keep(b, tt_mul(b, wide, wide), 1));
  } else if (p == 1) {
    norm = tt_sum_keep(b, size, 1);
  } else if (p > 1e300) {
    norm = tt_max_keep(b, size, 1);
  } else {
    norm = tt_sum_keep(b, tt_bin(b, TT_POW, size, tt_const_f(b, dtype, p)), 1);
    norm = tt_bin(b, TT_POW, norm, tt_const_f(b, dtype, 1 / p));
  }
  tt_val limit = tt_arg_scalar(L, 2, dtype);
  tt_val scale = tt_div(b, limit, tt_add_f(b, norm, 1e-7));
  tt_val shorten = tt_and(b, named, tt_test(b, TT_GT, norm, limit));
  tt_out(L, 0, tt_where(b, shorten, tt_mul(b, wide, scale), wide));
}
