// SPDX-License-Identifier: Apache-2.0
//
// embedding_bag: rows of a table summed, averaged or maximised over bags of indices, and the gradients.
#include "ops/indexing.h"

enum { BAG_SUM, BAG_MEAN, BAG_MAX };

static tt_val ones(tt_builder* b, tt_dtype dtype, int64_t n) {
  return tt_expand(b, tt_const_i(b, dtype, 1), 1, &n);
}

// The bag of each of `n` indices: how many bags begin at or before it, less one.
static tt_val bag_of_index(tt_builder* b, tt_val offsets, int64_t n) {
  int64_t places = n + 1;  // a bag may begin behind the last index
  tt_val starts = tt_put_flat(b, tt_zeros(b, TT_I32, 1, &places), tt_convert(b, offsets, TT_I32),
                              ones(b, TT_I32, tt_dim_of(b, offsets, 0)), TT_COMBINE_ADD);
  tt_val begun = tt_cumulative(b, TT_REDUCE_SUM, starts, 0);
  return tt_add_f(b, tt_slice_dim(b, begun, 0, 0, n, 1), -1);
}

// `value` where `keep`, else a place outside, whose updates are skipped.
static tt_val keep_or_skip(tt_builder* b, tt_val keep, tt_val at, int64_t outside) {
  return tt_where(b, keep, at, tt_like_i(b, at, outside));
}

static void bags_forward(tt_lower* L, tt_builder* b) {
  const tt_type* out = tt_out_type(L, 0);
  tt_val weight = tt_convert(b, tt_arg(L, 0), tt_dtype_compute(out->dtype));
  tt_dtype dtype = tt_dtype_of(b, weight);
  tt_val indices = tt_arg(L, 1);
  int64_t n = tt_dim_of(b, indices, 0);
  int64_t bags = out->dims[0];
  int64_t width = out->dims[1];
  int64_t mode = tt_arg_int(L, 4);
  int64_t padding = tt_arg_int_or(L, 8, -1);
  const tt_type* sizes_out = tt_out_type(L, 2);
  const tt_type* max_out = tt_out_type(L, 3);
  if (n == 0 || bags == 0) {
    for (int k = 0; k < 4; ++k) {
      const tt_type* t = tt_out_type(L, k);
      tt_out(L, k, tt_zeros(b, t->dtype, t->rank, t->dims));
    }
    return;
  }
  tt_val offsets = tt_slice_dim(b, tt_arg(L, 2), 0, 0, bags, 1);
  tt_val at = tt_safe_index(L, indices, tt_dim_of(b, weight, 0), false);
  tt_val bag = bag_of_index(b, offsets, n);
  tt_val real = tt_test(b, TT_NE, at, tt_like_i(b, at, padding));
  tt_val target = keep_or_skip(b, real, bag, bags);
  tt_val rows = tt_take_rows(b, weight, at, 0);
  if (tt_arg_has(L, 6)) {
    rows = tt_mul(b, rows, tt_unsqueeze(b, tt_arg_as(L, 6, dtype), 1));
  }
  tt_val sizes = tt_put_flat(b, tt_zeros(b, TT_I32, 1, &bags), target, ones(b, TT_I32, n), TT_COMBINE_ADD);
  tt_val full = tt_unsqueeze(b, tt_test_f(b, TT_GT, sizes, 0), 1);
  int64_t dims[2] = {bags, width};
  tt_val result;
  tt_val best = tt_zeros(b, max_out->dtype, max_out->rank, max_out->dims);
  if (mode == BAG_MAX) {
    result = tt_put_rows(b, tt_expand(b, tt_const_min(b, dtype), 2, dims), target, rows, 0, TT_COMBINE_MAX);
    // The first of the bag's rows that reach the maximum.
    tt_val reach = tt_test(b, TT_EQ, rows, tt_take_rows(b, result, tt_max(b, bag, tt_like_i(b, bag, 0)), 0));
    tt_val order = tt_iota_like(b, rows, TT_I32, 0);
    order = tt_where(b, reach, order, tt_like_i(b, order, n));
    tt_val first = tt_put_rows(b, tt_expand(b, tt_const_i(b, TT_I32, n), 2, dims), target, order, 0, TT_COMBINE_MIN);
    tt_val which = tt_take_rows(b, at, tt_min(b, first, tt_like_i(b, first, n - 1)), 0);
    best = tt_where(b, full, which, tt_like_i(b, which, -1));
    result = tt_where(b, full, result, tt_like_i(b, result, 0));
  } else {
    result = tt_put_rows(b, tt_zeros(b, dtype, 2, dims), target, rows, 0, TT_COMBINE_ADD);
    if (mode == BAG_MEAN) {
      tt_val count = tt_convert(b, tt_max(b, sizes, tt_like_i(b, sizes, 1)), dtype);
      result = tt_div(b, result, tt_unsqueeze(b, count, 1));
    }
  }
  tt_out(L, 0, result);
  tt_out(L, 1, bag);
  tt_out(L, 2, sizes_out->dims[0] > bags ? tt_pad_dim(b, sizes, 0, 0, sizes_out->dims[0] - bags, 0) : sizes);
  tt_out(L, 3, best);
}
#define BAG_ARGS                                                                                                      \
  "(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "    \
  "Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, " \
  "Tensor)"
TT_OP(embedding_bag, "_embedding_bag" BAG_ARGS) {
  bags_forward(L, b);
}
TT_OP(embedding_bag_forward_only, "_embedding_bag_forward_only" BAG_ARGS) {
  bags_forward(L, b);
}

typedef struct bag_args {
  int offset2bag, bag_size, maximum, scale, mode, per_sample, padding;
} bag_args;

static void bags_backward(tt_lower* L, tt_builder* b, bag_args a) {
  const tt_type* out = tt_out_type(L, 0);
  int64_t rows = out->dims[0];
  int64_t mode = tt_arg_int(L, a.mode);
  tt_val grad = tt_convert(b, tt_arg(L, 0), tt_dtype_compute(out->dtype));
  tt_dtype dtype = tt_dtype_of(b, grad);
  tt_val zero = tt_zeros(b, dtype, out->rank, out->dims);
  int64_t n = tt_dim_of(b, tt_arg(L, 1), 0);
  if (n == 0 || tt_dim_of(b, grad, 0) == 0) {
    tt_out(L, 0, zero);
    return;
  }
  if (mode == BAG_MAX) {
    tt_out(L, 0, tt_scatter_along(b, zero, tt_narrow_index(b, tt_arg(L, a.maximum), rows), grad, 0, TT_COMBINE_ADD));
    return;
  }
  tt_val at = tt_narrow_index(b, tt_arg(L, 1), rows);
  tt_val bag = tt_convert(b, tt_arg(L, a.offset2bag), TT_I32);
  if (mode == BAG_MEAN) {
    tt_val sizes = tt_arg(L, a.bag_size);
    sizes = tt_slice_dim(b, sizes, 0, 0, tt_dim_of(b, grad, 0), 1);
    sizes = tt_convert(b, tt_max(b, sizes, tt_like_i(b, sizes, 1)), dtype);
    grad = tt_div(b, grad, tt_unsqueeze(b, sizes, 1));
  }
  tt_val each = tt_take_rows(b, grad, bag, 0);
  if (tt_arg_has(L, a.per_sample)) {
    each = tt_mul(b, each, tt_unsqueeze(b, tt_arg_as(L, a.per_sample, dtype), 1));
  }
  if (tt_arg_bool(L, a.scale)) {
    tt_val times = tt_put_flat(b, tt_zeros(b, TT_I32, 1, &rows), at, ones(b, TT_I32, n), TT_COMBINE_ADD);
    each = tt_div(b, each, tt_unsqueeze(b, tt_convert(b, tt_take_rows(b, times, at, 0), dtype), 1));
  }
  int64_t padding = tt_arg_int_or(L, a.padding, -1);
  at = keep_or_skip(b, tt_test(b, TT_NE, at, tt_like_i(b, at, padding)), at, rows);
  tt_out(L, 0, tt_put_rows(b, zero, at, each, 0, TT_COMBINE_ADD));
}
TT_OP(embedding_bag_dense_backward,
      "_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor "
      "maximum_indices, "
      "SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> "
      "Tensor") {
  bags_backward(L, b, (bag_args){2, 3, 4, 6, 7, 8, 9});
}

TT_OP(embedding_bag_per_sample_weights_backward,
      "_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor "
      "offset2bag, "
      "int mode, int padding_idx=-1) -> Tensor") {
  const tt_type* out = tt_out_type(L, 0);
  tt_dtype dtype = tt_dtype_compute(out->dtype);
  tt_val weight = tt_arg_as(L, 1, dtype);
  tt_val at = tt_narrow_index(b, tt_arg(L, 2), tt_dim_of(b, weight, 0));
  tt_val grad = tt_take_rows(b, tt_arg_as(L, 0, dtype), tt_convert(b, tt_arg(L, 4), TT_I32), 0);
  int64_t last = 1;
  tt_val sum = tt_reduce(b, TT_REDUCE_SUM, tt_mul(b, grad, tt_take_rows(b, weight, at, 0)), 1, &last);
  tt_val padded = tt_test(b, TT_EQ, at, tt_like_i(b, at, tt_arg_int(L, 6)));
  tt_out(L, 0, tt_where(b, padded, tt_like_i(b, sum, 0), sum));
}
