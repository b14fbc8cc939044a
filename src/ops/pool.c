// SPDX-License-Identifier: Apache-2.0
//
// Pooling with regular windows: max (with positions), average, and their gradients. One code for 1 to 3 spatial dimensions.
// Positions are flat in the input's spatial dimensions, as PyTorch counts them.
#include "ops/pool.h"

// ---- windows ------------------------------------------------------------------------------------------------------------

static void read_list(tt_lower* L, int i, int spatial, int64_t* out, int64_t missing) {
  int n;
  const int64_t* values = tt_arg_ints(L, i, &n);
  for (int d = 0; d < spatial; ++d) {
    out[d] = n == 0 ? missing : values[n == 1 ? 0 : d];
  }
}

typedef struct pool {
  int rank, spatial, lead;  // lead: dims before the spatial ones
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
} pool;

static pool read_pool(tt_lower* L, const int64_t* in, const int64_t* out, int rank, int spatial, int first,
                      bool dilated) {
  pool p = {.rank = rank, .spatial = spatial, .lead = rank - spatial};
  read_list(L, first, spatial, p.kernel, 1);
  read_list(L, first + 1, spatial, p.stride, 0);
  read_list(L, first + 2, spatial, p.padding, 0);
  if (dilated) {
    read_list(L, first + 3, spatial, p.dilation, 1);
  }
  for (int d = 0; d < spatial; ++d) {
    p.in[d] = in[p.lead + d];
    p.out[d] = out[p.lead + d];
    p.stride[d] = p.stride[d] == 0 ? p.kernel[d] : p.stride[d];
    p.dilation[d] = dilated ? p.dilation[d] : 1;
  }
  return p;
}

// The window over the input that gives exactly the result's sizes (ceil_mode may need more padding behind, or less).
static tt_window window_of(const pool* p) {
  tt_window w = tt_window_default();
  for (int d = 0; d < p->spatial; ++d) {
    int k = p->lead + d;
    w.size[k] = p->kernel[d];
    w.stride[k] = p->stride[d];
    w.window_dilation[k] = p->dilation[d];
    w.pad_low[k] = p->padding[d];
    w.pad_high[k] = (p->out[d] - 1) * p->stride[d] + (p->kernel[d] - 1) * p->dilation[d] + 1 - p->in[d] - p->padding[d];
  }
  return w;
}

// ---- max ----------------------------------------------------------------------------------------------------------------

tt_val tt_pool_positions(tt_builder* b, tt_val x, int spatial) {
  int rank = tt_rank_of(b, x);
  tt_val at = TT_POISON;
  for (int d = rank - spatial; d < rank; ++d) {
    tt_val here = tt_iota_like(b, x, TT_I32, d);
    at = d == rank - spatial ? here : tt_add(b, tt_mul(b, at, tt_const_i(b, TT_I32, tt_dim_of(b, x, d))), here);
  }
  return at;
}

// Two of (value, position): the larger; NaN is largest, the last of them; of equals the first.
void tt_pool_max_body(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  tt_val v = args[0], at = args[1], w = args[2], other = args[3];
  tt_val earlier = tt_compare(b, TT_LT, at, other);
  tt_val keep = tt_or(b, tt_compare(b, TT_GT, v, w), tt_and(b, tt_compare(b, TT_EQ, v, w), earlier));
  if (tt_dtype_is_float(tt_dtype_of(b, v))) {
    tt_val nan = tt_is_nan(b, v);
    tt_val later_or_alone = tt_or(b, tt_not(b, tt_is_nan(b, w)), tt_not(b, earlier));
    keep = tt_or(b, keep, tt_and(b, nan, later_or_alone));
  }
  results[0] = tt_select(b, keep, v, w);
  results[1] = tt_select(b, keep, at, other);
}

static void max_pool(tt_lower* L, tt_builder* b, int spatial) {
  tt_val x = tt_arg(L, 0);
  int rank = tt_rank_of(b, x);
  pool p = read_pool(L, tt_type_of(b, x)->dims, tt_out_type(L, 0)->dims, rank, spatial, 1, true);
  if (tt_type_elements(tt_out_type(L, 0)) == 0) {
    tt_pool_empty(L, b);
    return;
  }
  tt_window w = window_of(&p);
  tt_val xs[2] = {x, tt_pool_positions(b, x, spatial)};
  tt_val inits[2] = {tt_const_min(b, tt_dtype_of(b, x)), tt_const_i(b, TT_I32, INT32_MAX)};
  tt_val results[2];
  tt_reduce_window_many(b, 2, xs, inits, &w, tt_pool_max_body, NULL, results);
  tt_out(L, 0, results[0]);
  tt_out(L, 1, results[1]);
}
TT_OP(max_pool2d,
      "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
      "bool ceil_mode=False) -> (Tensor, Tensor)") {
  max_pool(L, b, 2);
}
TT_OP(max_pool3d,
      "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, "
      "bool ceil_mode=False) -> (Tensor, Tensor)") {
  max_pool(L, b, 3);
}

static void add_body(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  results[0] = tt_add(b, args[0], args[1]);
}
static void replace_body(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)b;
  (void)ctx;
  results[0] = args[1];
}

tt_val tt_pool_scatter(tt_builder* b, tt_val values, tt_val positions, int spatial, const tt_type* to, bool sum) {
  int lead = tt_rank_of(b, values) - spatial;
  int64_t planes = 1, plane = 1, each = 1;
  for (int d = 0; d < lead; ++d) {
    planes *= to->dims[d];
  }
  for (int d = lead; d < lead + spatial; ++d) {
    plane *= to->dims[d];
    each *= tt_dim_of(b, values, d);
  }
  int64_t all = planes * plane, count = planes * each;
  tt_dtype dtype = tt_dtype_of(b, values);
  tt_val empty = tt_zeros(b, dtype, 1, &all);
  if (all == 0 || count == 0) {
    return tt_reshape(b, empty, to->rank, to->dims);
  }
  int64_t rows[2] = {planes, each};
  tt_val at = tt_reshape(b, tt_convert(b, positions, all > INT32_MAX ? TT_I64 : TT_I32), 2, rows);
  at = tt_add(b, at, tt_mul(b, tt_iota_like(b, at, tt_dtype_of(b, at), 0), tt_like_i(b, at, plane)));
  tt_gather_dims g = {.num_collapsed = 1, .num_start_map = 1, .index_vector_dim = 1};
  int64_t list[2] = {count, 1};
  tt_val sums =
      tt_scatter(b, empty, tt_reshape(b, at, 2, list), tt_flatten(b, values), &g, sum ? add_body : replace_body, NULL);
  return tt_reshape(b, sums, to->rank, to->dims);
}

// Windows of up to this many elements are walked one by one: no scatter.
enum { UNROLLED = 36 };

// For each place in the window: the gradients whose winner stood there, moved to the input.
static tt_val max_pool_gradient(tt_builder* b, tt_val grad, tt_val positions, const pool* p) {
  int64_t places = 1;
  for (int d = 0; d < p->spatial; ++d) {
    places *= p->kernel[d];
  }
  positions = tt_convert(b, positions, TT_I32);
  tt_val total = TT_POISON;
  for (int64_t place = 0; place < places; ++place) {
    int64_t rest = place, low[TT_MAX_RANK] = {0}, high[TT_MAX_RANK] = {0}, interior[TT_MAX_RANK] = {0};
    tt_val at = TT_POISON;
    for (int d = p->spatial - 1; d >= 0; --d) {
      int64_t start = rest % p->kernel[d] * p->dilation[d] - p->padding[d];
      rest /= p->kernel[d];
      int k = p->lead + d;
      low[k] = start;
      interior[k] = p->stride[d] - 1;
      high[k] = p->in[d] - start - ((p->out[d] - 1) * p->stride[d] + 1);
      tt_val here = tt_mul(b, tt_iota_like(b, grad, TT_I32, k), tt_const_i(b, TT_I32, p->stride[d]));
      here = tt_add(b, here, tt_const_i(b, TT_I32, start));
      int64_t weight = 1;
      for (int e = d + 1; e < p->spatial; ++e) {
        weight *= p->in[e];
      }
      here = tt_mul(b, here, tt_const_i(b, TT_I32, weight));
      at = d == p->spatial - 1 ? here : tt_add(b, at, here);
    }
    // A place outside the input may have a winner's number; the padding below drops it.
    tt_val won = tt_where(b, tt_compare(b, TT_EQ, positions, at), grad, tt_like_i(b, grad, 0));
    tt_val moved = tt_pad(b, won, tt_like_i(b, grad, 0), low, high, interior);
    total = place == 0 ? moved : tt_add(b, total, moved);
  }
  return total;
}

static void max_pool_backward(tt_lower* L, tt_builder* b, int spatial) {
  const tt_type* to = tt_out_type(L, 0);
  const tt_tensor* x = tt_arg_info(L, 1);
  const tt_tensor* grad = tt_arg_info(L, 0);
  pool p = read_pool(L, x->sizes, grad->sizes, x->rank, spatial, 2, true);
  tt_val g = tt_arg_as(L, 0, tt_dtype_compute(grad->dtype));
  int64_t places = 1;
  bool some = tt_type_elements(tt_type_of(b, g)) > 0;
  for (int d = 0; d < spatial; ++d) {
    places *= p.kernel[d];
  }
  tt_val positions = tt_arg(L, 7);
  tt_out(L, 0,
         places <= UNROLLED && some ? max_pool_gradient(b, g, positions, &p)
                                    : tt_pool_scatter(b, g, positions, spatial, to, true));
}
TT_OP(max_pool2d_backward,
      "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, "
      "int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor") {
  max_pool_backward(L, b, 2);
}
TT_OP(max_pool3d_backward,
      "max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, "
      "int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor") {
  max_pool_backward(L, b, 3);
}

// ---- average --------------------------------------------------------------------------------------------------------------

// How many elements each window of one dimension counts, [out]: with `padded`, those of the padding too.
static tt_val counts(tt_builder* b, const pool* p, int d, bool padded, tt_dtype dtype) {
  tt_type type = tt_type_make(TT_I32, 1, &p->out[d]);
  tt_val start = tt_add(b, tt_mul(b, tt_iota(b, &type, 0), tt_const_i(b, TT_I32, p->stride[d])),
                        tt_const_i(b, TT_I32, -p->padding[d]));
  tt_val end = tt_add(b, start, tt_const_i(b, TT_I32, p->kernel[d]));
  end = tt_min(b, end, tt_const_i(b, TT_I32, p->in[d] + (padded ? p->padding[d] : 0)));
  if (!padded) {
    start = tt_max(b, start, tt_const_i(b, TT_I32, 0));
  }
  tt_val n = tt_convert(b, tt_sub(b, end, start), dtype);
  for (int e = d + 1; e < p->spatial; ++e) {
    n = tt_unsqueeze(b, n, -1);
  }
  return n;
}
// What each window's sum is divided by.
static tt_val divisors(tt_lower* L, tt_builder* b, const pool* p, int include, tt_dtype dtype) {
  if (tt_arg_has(L, include + 1)) {
    return tt_const_f(b, dtype, (double)tt_arg_int(L, include + 1));
  }
  tt_val n = TT_POISON;
  for (int d = 0; d < p->spatial; ++d) {
    tt_val here = counts(b, p, d, tt_arg_bool(L, include), dtype);
    n = d == 0 ? here : tt_mul(b, n, here);
  }
  return n;
}

static void avg_pool(tt_lower* L, tt_builder* b, int spatial) {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 0)->dtype);
  tt_val x = tt_arg_as(L, 0, dtype);
  int rank = tt_rank_of(b, x);
  pool p = read_pool(L, tt_type_of(b, x)->dims, tt_out_type(L, 0)->dims, rank, spatial, 1, false);
  if (tt_type_elements(tt_out_type(L, 0)) == 0) {
    tt_pool_empty(L, b);
    return;
  }
  tt_window w = window_of(&p);
  tt_out(L, 0, tt_bin(b, TT_DIV, tt_reduce_window(b, TT_REDUCE_SUM, x, &w), divisors(L, b, &p, 5, dtype)));
}
TT_OP(avg_pool2d,
      "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, "
      "bool count_include_pad=True, int? divisor_override=None) -> Tensor") {
  avg_pool(L, b, 2);
}
TT_OP(avg_pool3d,
      "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, "
      "bool count_include_pad=True, int? divisor_override=None) -> Tensor") {
  avg_pool(L, b, 3);
}

// Each input element adds up the gradients of the windows over it: a window of the same size over the spread gradient.
static void avg_pool_backward(tt_lower* L, tt_builder* b, int spatial) {
  const tt_tensor* x = tt_arg_info(L, 1);
  const tt_tensor* grad = tt_arg_info(L, 0);
  tt_dtype dtype = tt_dtype_compute(grad->dtype);
  pool p = read_pool(L, x->sizes, grad->sizes, x->rank, spatial, 2, false);
  tt_val g = tt_bin(b, TT_DIV, tt_arg_as(L, 0, dtype), divisors(L, b, &p, 6, dtype));
  if (tt_type_elements(tt_type_of(b, g)) == 0) {
    tt_out(L, 0, tt_const_f(b, dtype, 0));
    return;
  }
  tt_window w = tt_window_default();
  for (int d = 0; d < spatial; ++d) {
    int k = p.lead + d;
    w.size[k] = p.kernel[d];
    w.base_dilation[k] = p.stride[d];
    w.pad_low[k] = p.kernel[d] - 1 - p.padding[d];
    w.pad_high[k] = p.in[d] + p.kernel[d] - 1 - w.pad_low[k] - ((p.out[d] - 1) * p.stride[d] + 1);
  }
  tt_out(L, 0, tt_reduce_window(b, TT_REDUCE_SUM, g, &w));
}
TT_OP(avg_pool2d_backward,
      "avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, "
      "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor") {
  avg_pool_backward(L, b, 2);
}
TT_OP(avg_pool3d_backward,
      "avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, "
      "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor") {
  avg_pool_backward(L, b, 3);
}
