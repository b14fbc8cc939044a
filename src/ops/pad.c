// SPDX-License-Identifier: Apache-2.0
//
// Padding: by a constant, by reflection, by the edge; and the gradients of the latter two.
#include "ops/op.h"

TT_OP(constant_pad_nd, "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  int rank = tt_rank_of(b, x);
  int n;
  const int64_t* pad = tt_arg_ints(L, 1, &n);
  int64_t low[TT_MAX_RANK] = {0};
  int64_t high[TT_MAX_RANK] = {0};
  int64_t none[TT_MAX_RANK] = {0};
  for (int k = 0; k + 1 < n; k += 2) {
    low[rank - 1 - k / 2] = pad[k];
    high[rank - 1 - k / 2] = pad[k + 1];
  }
  tt_out(L, 0, tt_pad(b, x, tt_arg_scalar(L, 2, tt_dtype_of(b, x)), low, high, none));
}

// One dimension at a time; a negative padding cuts off.
static tt_val pad_one(tt_builder* b, tt_val x, int dim, int64_t low, int64_t high, bool reflect) {
  int64_t n = tt_dim_of(b, x, dim);
  int64_t axis = dim;
  tt_val parts[3];
  int count = 0;
  for (int side = 0; side < 2; ++side) {
    int64_t width = side == 0 ? low : high;
    if (side == 1) {
      int64_t from = low < 0 ? -low : 0;
      parts[count++] = tt_slice_dim(b, x, dim, from, high < 0 ? n + high : n, 1);
    }
    if (width <= 0) {
      continue;
    }
    if (reflect) {
      int64_t from = side == 0 ? 1 : n - 1 - width;
      tt_val strip = tt_slice_dim(b, x, dim, from, from + width, 1);
      parts[count++] = tt_reverse(b, strip, 1, &axis);
    } else {
      int64_t edge = side == 0 ? 0 : n - 1;
      tt_val strip = tt_slice_dim(b, x, dim, edge, edge + 1, 1);
      tt_type wide = *tt_type_of(b, strip);
      wide.dims[dim] = width;
      parts[count++] = tt_expand(b, strip, wide.rank, wide.dims);
    }
  }
  return count == 1 ? parts[0] : tt_concat(b, count, parts, dim);
}

static tt_val unpad_one(tt_builder* b, tt_val grad, int dim, int64_t n, int64_t low, int64_t high, bool reflect) {
  int64_t size = tt_dim_of(b, grad, dim);
  int64_t axis = dim;
  int64_t first = low > 0 ? low : 0;
  int64_t last = high > 0 ? size - high : size;
  tt_val sum = tt_slice_dim(b, grad, dim, first, last, 1);
  sum = tt_pad_dim(b, sum, dim, low < 0 ? -low : 0, high < 0 ? -high : 0, 0);
  for (int side = 0; side < 2; ++side) {
    int64_t width = side == 0 ? low : high;
    if (width <= 0) {
      continue;
    }
    int64_t from = side == 0 ? 0 : size - width;
    tt_val strip = tt_slice_dim(b, grad, dim, from, from + width, 1);
    int64_t at;
    if (reflect) {
      strip = tt_reverse(b, strip, 1, &axis);
      at = side == 0 ? 1 : n - 1 - width;
    } else {
      strip = tt_sum_keep(b, strip, dim);
      at = side == 0 ? 0 : n - 1;
      width = 1;
    }
    sum = tt_add(b, sum, tt_pad_dim(b, strip, dim, at, n - at - width, 0));
  }
  return sum;
}

static void pad_edges(tt_lower* L, tt_builder* b, bool reflect) {
  tt_val x = tt_arg(L, 0);
  int n;
  const int64_t* pad = tt_arg_ints(L, 1, &n);
  const tt_type* out = tt_out_type(L, 0);
  if (tt_type_elements(out) == 0) {
    tt_out(L, 0, tt_zeros(b, out->dtype, out->rank, out->dims));
    return;
  }
  for (int k = 0; k + 1 < n; k += 2) {
    x = pad_one(b, x, out->rank - 1 - k / 2, pad[k], pad[k + 1], reflect);
  }
  tt_out(L, 0, x);
}

static void unpad_edges(tt_lower* L, tt_builder* b, bool reflect) {
  const tt_type* out = tt_out_type(L, 0);
  tt_val grad = tt_convert(b, tt_arg(L, 0), tt_dtype_compute(out->dtype));
  int n;
  const int64_t* pad = tt_arg_ints(L, 2, &n);
  if (tt_type_elements(out) == 0 || tt_type_elements(tt_type_of(b, grad)) == 0) {
    tt_out(L, 0, tt_zeros(b, out->dtype, out->rank, out->dims));
    return;
  }
  for (int k = n - 2; k >= 0; k -= 2) {
    int dim = out->rank - 1 - k / 2;
    grad = unpad_one(b, grad, dim, out->dims[dim], pad[k], pad[k + 1], reflect);
  }
  tt_out(L, 0, grad);
}

#define PADS(nd, ints)                                                                                             \
  TT_OP(reflection_pad##nd, "reflection_pad" #nd "(Tensor self, SymInt[" #ints "] padding) -> Tensor") {           \
    pad_edges(L, b, true);                                                                                         \
  }                                                                                                                \
  TT_OP(replication_pad##nd, "replication_pad" #nd "(Tensor self, SymInt[" #ints "] padding) -> Tensor") {         \
    pad_edges(L, b, false);                                                                                        \
  }                                                                                                                \
  TT_OP(reflection_pad##nd##_backward,                                                                             \
        "reflection_pad" #nd "_backward(Tensor grad_output, Tensor self, SymInt[" #ints "] padding) -> Tensor") {  \
    unpad_edges(L, b, true);                                                                                       \
  }                                                                                                                \
  TT_OP(replication_pad##nd##_backward,                                                                            \
        "replication_pad" #nd "_backward(Tensor grad_output, Tensor self, SymInt[" #ints "] padding) -> Tensor") { \
    unpad_edges(L, b, false);                                                                                      \
  }
PADS(1d, 2)
PADS(2d, 4)
PADS(3d, 6)
