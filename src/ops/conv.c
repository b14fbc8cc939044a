// SPDX-License-Identifier: Apache-2.0
//
// Convolutions in 1 to 3 dimensions and their gradients. PyTorch comes here by convolution_overrideable, its parameters expanded and
// checked (shim/conv.cpp gives the shapes). Three kinds of StableHLO convolution serve all: over the input, its transpose,
// and the kernel's gradient.
#include "ops/op.h"

typedef struct conv_params {
  int spatial;
  int64_t stride[8], padding[8], dilation[8];
  bool transposed;
  int64_t groups;
} conv_params;

// The parameters that start at argument `first`.
static conv_params read_params(tt_lower* L, int first, int rank) {
  conv_params p = {.spatial = rank - 2};
  int64_t* into[3] = {p.stride, p.padding, p.dilation};
  for (int k = 0; k < 3; ++k) {
    int n;
    const int64_t* values = tt_arg_ints(L, first + k, &n);
    for (int d = 0; d < p.spatial && d < 8 && n > 0; ++d) {
      into[k][d] = values[n == 1 ? 0 : d];
    }
  }
  p.transposed = tt_arg_bool(L, first + 3);
  p.groups = tt_arg_int(L, first + 5);
  return p;
}

static int64_t reach(const conv_params* p, int d, int64_t kernel) {
  return p->dilation[d] * (kernel - 1);
}

// x [n, groups * i, ...] by w [o, i, ...]; as many results as `sizes` says.
static tt_val correlate(tt_builder* b, tt_val x, tt_val w, const conv_params* p, const int64_t* sizes) {
  tt_conv c = tt_conv_default(p->spatial);
  c.feature_groups = p->groups;
  for (int d = 0; d < p->spatial; ++d) {
    c.stride[d] = p->stride[d];
    c.rhs_dilation[d] = p->dilation[d];
    c.pad_low[d] = p->padding[d];
    int64_t window = reach(p, d, tt_dim_of(b, w, d + 2)) + 1;
    c.pad_high[d] = (sizes[d] - 1) * p->stride[d] + window - tt_dim_of(b, x, d + 2) - p->padding[d];
  }
  return tt_convolution(b, x, w, &c, tt_dtype_compute(tt_dtype_of(b, x)));
}

// The transpose: x [n, groups * o, ...] by w [groups * o, i, ...] gives [n, groups * i, sizes...].
static tt_val correlate_transposed(tt_builder* b, tt_val x, tt_val w, const conv_params* p, const int64_t* sizes) {
  tt_conv c = tt_conv_default(p->spatial);
  c.feature_groups = p->groups;
  c.rhs_in = 0;
  c.rhs_out = 1;
  if (p->groups > 1) {
    // [groups * o, i, ...] to [o, groups * i, ...]
    tt_type type = *tt_type_of(b, w);
    int64_t dims[TT_MAX_RANK] = {p->groups, type.dims[0] / p->groups};
    for (int d = 1; d < type.rank; ++d) {
      dims[d + 1] = type.dims[d];
    }
    w = tt_swap_dims(b, tt_reshape(b, w, type.rank + 1, dims), 0, 1);
    type.dims[0] /= p->groups;
    type.dims[1] *= p->groups;
    w = tt_reshape(b, w, type.rank, type.dims);
  }
  // Turned by an operation of its own: as a property of the window it keeps XLA's CPU from its fast convolution, and costs nothing elsewhere.
  int64_t turned[8];
  for (int d = 0; d < p->spatial; ++d) {
    turned[d] = d + 2;
  }
  w = tt_reverse(b, w, p->spatial, turned);
  for (int d = 0; d < p->spatial; ++d) {
    int64_t kernel = tt_dim_of(b, w, d + 2);
    int64_t spread = (tt_dim_of(b, x, d + 2) - 1) * p->stride[d] + 1;
    c.lhs_dilation[d] = p->stride[d];
    c.rhs_dilation[d] = p->dilation[d];
    c.pad_low[d] = reach(p, d, kernel) - p->padding[d];
    c.pad_high[d] = sizes[d] + reach(p, d, kernel) - c.pad_low[d] - spread;
  }
  return tt_convolution(b, x, w, &c, tt_dtype_compute(tt_dtype_of(b, x)));
}

// The kernel's gradient, [o, i, kernel...], from x [n, groups * i, ...] and the gradient y [n, o, ...] of the result.
static tt_val kernel_gradient(tt_builder* b, tt_val x, tt_val y, const conv_params* p, const int64_t* kernel) {
  tt_conv c = tt_conv_default(p->spatial);
  c.lhs_batch = 1;
  c.lhs_feature = 0;
  c.rhs_in = 0;
  c.rhs_out = 1;
  c.out_batch = 1;
  c.out_feature = 0;
  c.batch_groups = p->groups;
  for (int d = 0; d < p->spatial; ++d) {
    int64_t spread = (tt_dim_of(b, y, d + 2) - 1) * p->stride[d] + 1;
    c.stride[d] = p->dilation[d];
    c.rhs_dilation[d] = p->stride[d];
    c.pad_low[d] = p->padding[d];
    c.pad_high[d] = spread + reach(p, d, kernel[d]) - tt_dim_of(b, x, d + 2) - p->padding[d];
  }
  return tt_convolution(b, x, y, &c, tt_dtype_compute(tt_dtype_of(b, x)));
}

static tt_val channel_sums(tt_builder* b, tt_val x) {
  int64_t dims[TT_MAX_RANK] = {0};
  int rank = tt_rank_of(b, x);
  for (int d = 2; d < rank; ++d) {
    dims[d - 1] = d;
  }
  return tt_reduce(b, TT_REDUCE_SUM, tt_convert(b, x, tt_dtype_compute(tt_dtype_of(b, x))), rank - 1, dims);
}

TT_OP(convolution,
      "convolution_overrideable(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
      "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  tt_val w = tt_arg(L, 1);
  conv_params p = read_params(L, 3, tt_rank_of(b, x));
  const int64_t* sizes = tt_out_type(L, 0)->dims + 2;
  tt_val y = p.transposed ? correlate_transposed(b, x, w, &p, sizes) : correlate(b, x, w, &p, sizes);
  if (tt_arg_has(L, 2)) {
    int64_t dims[TT_MAX_RANK];
    for (int d = 0; d < tt_rank_of(b, y); ++d) {
      dims[d] = d == 1 ? tt_dim_of(b, y, 1) : 1;
    }
    y = tt_add(b, y, tt_reshape(b, tt_arg_as(L, 2, tt_dtype_of(b, y)), tt_rank_of(b, y), dims));
  }
  tt_out(L, 0, y);
}

TT_OP(convolution_backward,
      "convolution_backward_overrideable(Tensor grad_output, Tensor input, Tensor weight, SymInt[] stride, SymInt[] "
      "padding, "
      "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor "
      "grad_input, "
      "Tensor grad_weight, Tensor grad_bias)") {
  tt_val dy = tt_arg(L, 0);
  tt_val x = tt_arg(L, 1);
  tt_val w = tt_arg(L, 2);
  conv_params p = read_params(L, 3, tt_rank_of(b, x));
  if (tt_out_wanted(L, 0)) {
    const int64_t* sizes = tt_type_of(b, x)->dims + 2;
    tt_out(L, 0, p.transposed ? correlate(b, dy, w, &p, sizes) : correlate_transposed(b, dy, w, &p, sizes));
  }
  if (tt_out_wanted(L, 1)) {
    const int64_t* kernel = tt_type_of(b, w)->dims + 2;
    tt_out(L, 1, p.transposed ? kernel_gradient(b, dy, x, &p, kernel) : kernel_gradient(b, x, dy, &p, kernel));
  }
  if (tt_out_wanted(L, 2)) {
    tt_out(L, 2, channel_sums(b, dy));
  }
}
