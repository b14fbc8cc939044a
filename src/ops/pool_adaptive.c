// SPDX-License-Identifier: Apache-2.0
//
// Pooling to a given size, whose windows differ by one element; fractional pooling; and unpooling.
#include "ops/pool.h"

void tt_pool_empty(tt_lower* L, tt_builder* b) {
  for (int k = 0; k < tt_out_count(L); ++k) {
    tt_out(L, k, tt_const_i(b, tt_out_type(L, k)->dtype, 0));
  }
}

tt_val tt_pool_take(tt_builder* b, tt_val x, int dim, tt_val indices) {
  tt_gather_dims g = {.num_collapsed = 1, .num_start_map = 1, .index_vector_dim = 1};
  int64_t sizes[TT_MAX_RANK];
  int rank = tt_rank_of(b, x);
  for (int d = 0; d < rank; ++d) {
    sizes[d] = d == dim ? 1 : tt_dim_of(b, x, d);
    if (d != dim) {
      g.offset[g.num_offset++] = d;
    }
  }
  g.collapsed[0] = dim;
  g.start_map[0] = dim;
  return tt_gather(b, x, indices, &g, sizes);
}

// ---- windows ------------------------------------------------------------------------------------------------------------

// Window o of n over `size` elements: from floor(o * size / n) to ceil((o + 1) * size / n).
static int64_t window_start(int64_t o, int64_t size, int64_t n) {
  return o * size / n;
}
static int64_t window_end(int64_t o, int64_t size, int64_t n) {
  return ((o + 1) * size + n - 1) / n;
}

// x with dimension `dim` replaced by [n, window]; elements beyond a window's end are `fill`.
static tt_val spread_windows(tt_builder* b, tt_val x, int dim, int64_t n, tt_val fill) {
  int64_t size = tt_dim_of(b, x, dim);
  int64_t dims[TT_MAX_RANK];
  int rank = tt_rank_of(b, x);
  int64_t widest = 0;
  for (int64_t o = 0; o < n; ++o) {
    int64_t w = window_end(o, size, n) - window_start(o, size, n);
    widest = w > widest ? w : widest;
  }
  for (int d = 0; d < rank; ++d) {
    dims[d < dim ? d : d + 1] = tt_dim_of(b, x, d);
  }
  dims[dim] = n;
  dims[dim + 1] = widest;
  if (size % n == 0) {
    return tt_reshape(b, x, rank + 1, dims);
  }
  int64_t table[2] = {n, widest};
  tt_type type = tt_type_make(TT_I32, 2, table);
  tt_val o = tt_iota(b, &type, 0);
  tt_val count = tt_const_i(b, TT_I32, n);
  tt_val length = tt_const_i(b, TT_I32, size);
  tt_val at = tt_add(b, tt_bin(b, TT_DIV, tt_mul(b, o, length), count), tt_iota(b, &type, 1));
  tt_val end = tt_mul(b, tt_add(b, o, tt_const_i(b, TT_I32, 1)), length);
  end = tt_bin(b, TT_DIV, tt_add(b, end, tt_const_i(b, TT_I32, n - 1)), count);
  tt_val inside = tt_compare(b, TT_LT, at, end);
  tt_val clamped = tt_min(b, at, tt_const_i(b, TT_I32, size - 1));
  tt_val taken = tt_reshape(b, tt_pool_take(b, x, dim, tt_flatten(b, clamped)), rank + 1, dims);
  int64_t map[2] = {dim, dim + 1};
  return tt_where(b, tt_broadcast_in_dim(b, inside, rank + 1, dims, map), taken, fill);
}

static tt_val window_sums(tt_builder* b, tt_val x, int dim, int64_t n) {
  int64_t reduced = dim + 1;
  return tt_reduce(b, TT_REDUCE_SUM, spread_windows(b, x, dim, n, tt_like_f(b, x, 0)), 1, &reduced);
}

// Sizes of n windows over `size` elements, to broadcast over dimension `from_end` from the end.
static tt_val window_sizes(tt_builder* b, tt_dtype dtype, int64_t size, int64_t n, int from_end) {
  tt_type type = tt_type_make(TT_I32, 1, &n);
  tt_val o = tt_iota(b, &type, 0);
  tt_val count = tt_const_i(b, TT_I32, n);
  tt_val length = tt_const_i(b, TT_I32, size);
  tt_val start = tt_bin(b, TT_DIV, tt_mul(b, o, length), count);
  tt_val end = tt_add(b, tt_mul(b, tt_add(b, o, tt_const_i(b, TT_I32, 1)), length), tt_const_i(b, TT_I32, n - 1));
  tt_val width = tt_convert(b, tt_sub(b, tt_bin(b, TT_DIV, end, count), start), dtype);
  for (int e = 1; e < from_end; ++e) {
    width = tt_unsqueeze(b, width, -1);
  }
  return width;
}

// ---- average --------------------------------------------------------------------------------------------------------------

static void adaptive_avg(tt_lower* L, tt_builder* b, int spatial) {
  const tt_type* to = tt_out_type(L, 0);
  tt_val x = tt_arg_as(L, 0, tt_dtype_compute(tt_arg_info(L, 0)->dtype));
  if (tt_type_elements(to) == 0) {
    tt_pool_empty(L, b);
    return;
  }
  for (int e = 1; e <= spatial; ++e) {
    int d = to->rank - e;
    int64_t size = tt_dim_of(b, x, d);
    x = tt_div(b, window_sums(b, x, d, to->dims[d]), window_sizes(b, tt_dtype_of(b, x), size, to->dims[d], e));
  }
  tt_out(L, 0, x);
}
TT_OP(adaptive_avg_pool2d, "_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor") {
  adaptive_avg(L, b, 2);
}
TT_OP(adaptive_avg_pool3d, "_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor") {
  adaptive_avg(L, b, 3);
}

// The windows over an element are an adaptive window the other way round.
static void adaptive_avg_backward(tt_lower* L, tt_builder* b, int spatial) {
  const tt_type* to = tt_out_type(L, 0);
  tt_val g = tt_arg_as(L, 0, tt_dtype_compute(tt_arg_info(L, 0)->dtype));
  if (tt_type_elements(tt_type_of(b, g)) == 0) {
    tt_out(L, 0, tt_like_f(b, g, 0));
    return;
  }
  for (int e = 1; e <= spatial; ++e) {
    int d = to->rank - e;
    g = tt_div(b, g, window_sizes(b, tt_dtype_of(b, g), to->dims[d], tt_dim_of(b, g, d), e));
    g = window_sums(b, g, d, to->dims[d]);
  }
  tt_out(L, 0, g);
}
TT_OP(adaptive_avg_pool2d_backward, "_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor") {
  adaptive_avg_backward(L, b, 2);
}
TT_OP(adaptive_avg_pool3d_backward, "_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor") {
  adaptive_avg_backward(L, b, 3);
}

// ---- max ------------------------------------------------------------------------------------------------------------------

static void reduce_pairs(tt_builder* b, tt_val* pair, int64_t dim) {
  tt_val inits[2] = {tt_const_min(b, tt_dtype_of(b, pair[0])), tt_const_i(b, TT_I32, INT32_MAX)};
  tt_reduce_many(b, 2, pair, inits, 1, &dim, tt_pool_max_body, NULL, pair);
}
static void adaptive_max(tt_lower* L, tt_builder* b, int spatial) {
  const tt_type* to = tt_out_type(L, 0);
  tt_val x = tt_arg(L, 0);
  if (tt_type_elements(to) == 0) {
    tt_pool_empty(L, b);
    return;
  }
  tt_val pair[2] = {x, tt_pool_positions(b, x, spatial)};
  for (int e = 1; e <= spatial; ++e) {
    int d = to->rank - e;
    tt_val fills[2] = {tt_const_min(b, tt_dtype_of(b, x)), tt_const_i(b, TT_I32, INT32_MAX)};
    for (int k = 0; k < 2; ++k) {
      pair[k] = spread_windows(b, pair[k], d, to->dims[d], fills[k]);
    }
    reduce_pairs(b, pair, d + 1);
  }
  tt_out(L, 0, pair[0]);
  tt_out(L, 1, pair[1]);
}
TT_OP(adaptive_max_pool2d, "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)") {
  adaptive_max(L, b, 2);
}
TT_OP(adaptive_max_pool3d, "adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)") {
  adaptive_max(L, b, 3);
}

static void scatter_gradient(tt_lower* L, tt_builder* b, int spatial, int indices) {
  tt_val g = tt_arg_as(L, 0, tt_dtype_compute(tt_arg_info(L, 0)->dtype));
  tt_out(L, 0, tt_pool_scatter(b, g, tt_arg(L, indices), spatial, tt_out_type(L, 0), true));
}
TT_OP(adaptive_max_pool2d_backward,
      "adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor") {
  scatter_gradient(L, b, 2, 2);
}
TT_OP(adaptive_max_pool3d_backward,
      "adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor") {
  scatter_gradient(L, b, 3, 2);
}

// ---- fractional -----------------------------------------------------------------------------------------------------------

// Where windows start in one dimension, by plane: [planes, out]. The last ends at the end.
static tt_val fractional_starts(tt_builder* b, tt_val sample, int64_t size, int64_t out, int64_t kernel) {
  int64_t planes = tt_dim_of(b, sample, 0), dims[2] = {planes, out};
  tt_dtype dtype = tt_dtype_of(b, sample);
  tt_type type = tt_type_make(dtype, 2, dims);
  tt_val last = tt_const_i(b, TT_I32, size - kernel);
  if (out == 1) {
    return tt_expand(b, last, 2, dims);
  }
  tt_val alpha = tt_div(b, tt_const_f(b, dtype, (double)(size - kernel)), tt_const_f(b, dtype, (double)(out - 1)));
  tt_val u = tt_unsqueeze(b, sample, 1), i = tt_iota(b, &type, 1);
  tt_val start = tt_convert(b, tt_mul(b, tt_add(b, i, u), alpha), TT_I32);
  start = tt_sub(b, start, tt_convert(b, tt_mul(b, u, alpha), TT_I32));
  return tt_where(b, tt_test_f(b, TT_EQ, i, (double)(out - 1)), last, start);
}

// The samples of this batch, [planes, spatial]; there may be more of them.
static tt_val fractional_samples(tt_lower* L, tt_builder* b, int64_t batch, int64_t channels, int64_t spatial) {
  tt_val samples = tt_arg_as(L, 3, tt_dtype_compute(tt_arg_info(L, 3)->dtype));
  const char* wrong = tt_rank_of(b, samples) != 3            ? "to have 3 dimensions"
                      : tt_dim_of(b, samples, 0) < batch     ? ".size(0) no less then input batch size."
                      : tt_dim_of(b, samples, 1) != channels ? ".size(1) equals to input channel size."
                                                             : NULL;
  if (wrong != NULL) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "Expect _random_samples%s", wrong);
  }
  if (tt_dim_of(b, samples, 2) != spatial) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "Expect _random_samples.size(2) equals to %d; got %d.", (int)spatial,
                           (int)tt_dim_of(b, samples, 2));
  }
  return tt_reshape(b, tt_slice_dim(b, samples, 0, 0, batch, 1), 2, (int64_t[]){batch * channels, spatial});
}

static void fractional(tt_lower* L, tt_builder* b, int spatial) {
  tt_val x = tt_arg(L, 0);
  const tt_type* to = tt_out_type(L, 0);
  int n, rank = tt_rank_of(b, x);
  const int64_t* kernel = tt_arg_ints(L, 1, &n);
  if (tt_type_elements(to) == 0) {
    tt_pool_empty(L, b);
    return;
  }
  int64_t planes = 1, plane = 1;
  for (int d = 0; d < rank - spatial; ++d) {
    planes *= to->dims[d];
  }
  int64_t channels = to->dims[rank - spatial - 1];
  tt_val samples = fractional_samples(L, b, planes / channels, channels, spatial);
  // Flat positions of all windows' elements: [planes, out, ..., kernel, ...].
  int64_t dims[TT_MAX_RANK] = {planes};
  for (int d = 0; d < spatial; ++d) {
    dims[1 + d] = to->dims[rank - spatial + d];
    dims[1 + spatial + d] = kernel[n == 1 ? 0 : d];
    plane *= tt_dim_of(b, x, rank - spatial + d);
  }
  tt_type type = tt_type_make(TT_I32, 1 + 2 * spatial, dims);
  tt_val at = tt_expand(b, tt_const_i(b, TT_I32, 0), type.rank, type.dims);
  for (int d = 0; d < spatial; ++d) {
    int64_t size = tt_dim_of(b, x, rank - spatial + d);
    // In two dimensions the first sample is for the width.
    tt_val sample = tt_index_dim(b, samples, 1, spatial == 2 ? 1 - d : d);
    tt_val start = fractional_starts(b, sample, size, dims[1 + d], dims[1 + spatial + d]);
    int64_t map[2] = {0, 1 + d};
    start = tt_broadcast_in_dim(b, start, type.rank, type.dims, map);
    at = tt_add(b, tt_mul(b, at, tt_const_i(b, TT_I32, size)), tt_add(b, start, tt_iota(b, &type, 1 + spatial + d)));
  }
  tt_val flat = tt_add(b, at, tt_mul(b, tt_iota(b, &type, 0), tt_const_i(b, TT_I32, plane)));
  tt_val taken = tt_reshape(b, tt_pool_take(b, tt_flatten(b, x), 0, tt_flatten(b, flat)), type.rank, type.dims);
  tt_val pair[2] = {taken, at};
  for (int d = 0; d < spatial; ++d) {
    reduce_pairs(b, pair, 1 + spatial);
  }
  tt_out(L, 0, tt_reshape(b, pair[0], to->rank, to->dims));
  tt_out(L, 1, tt_reshape(b, pair[1], to->rank, to->dims));
}
TT_OP(fractional_max_pool2d,
      "fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, "
      "Tensor)") {
  fractional(L, b, 2);
}
TT_OP(fractional_max_pool3d,
      "fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, "
      "Tensor)") {
  fractional(L, b, 3);
}
TT_OP(fractional_max_pool2d_backward,
      "fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, "
      "int[2] output_size, Tensor indices) -> Tensor") {
  scatter_gradient(L, b, 2, 4);
}
TT_OP(fractional_max_pool3d_backward,
      "fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, "
      "int[3] output_size, Tensor indices) -> Tensor") {
  scatter_gradient(L, b, 3, 4);
}

// ---- unpooling --------------------------------------------------------------------------------------------------------------

static void unpool(tt_lower* L, tt_builder* b, int spatial) {
  const tt_type* to = tt_out_type(L, 0);
  int64_t plane = 1;
  for (int d = to->rank - spatial; d < to->rank; ++d) {
    plane *= to->dims[d];
  }
  tt_val at = tt_check_index(L, tt_arg(L, 1), plane, false);
  tt_out(L, 0, tt_pool_scatter(b, tt_arg(L, 0), at, spatial, to, false));
}
TT_OP(max_unpool2d, "max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor") {
  unpool(L, b, 2);
}
TT_OP(max_unpool3d,
      "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor") {
  unpool(L, b, 3);
}
