// SPDX-License-Identifier: Apache-2.0
//
// Reductions of consecutive rows: segments given by their lengths or offsets, along the first dimension. Rows behind the last segment count
// nowhere.
#include <math.h>
#include <string.h>

#include "ops/indexing.h"
#include "ops/jagged.h"

typedef struct segments {
  tt_val offsets, group, lengths;  // i64
  int64_t count, total;
  tt_combine how;
  bool mean;
  double start;  // of an empty segment
} segments;

static bool read_segments(tt_lower* L, tt_builder* b, int data, int reduce, int lengths, int offsets, int axis,
                          segments* s) {
  int given = tt_arg_has(L, lengths) ? lengths : offsets;
  if (!tt_arg_has(L, given) || tt_arg_info(L, given)->rank != 1 || tt_arg_int(L, axis) != 0) {
    tt_unsupported(L, "segments along another dimension than the first");
    return false;
  }
  const char* kind = tt_arg_string(L, reduce);
  *s = (segments){.how = TT_COMBINE_ADD, .mean = strcmp(kind, "mean") == 0};
  if (strcmp(kind, "max") == 0) {
    s->how = TT_COMBINE_MAX;
    s->start = -INFINITY;
  } else if (strcmp(kind, "min") == 0) {
    s->how = TT_COMBINE_MIN;
    s->start = INFINITY;
  } else if (strcmp(kind, "prod") == 0) {
    s->how = TT_COMBINE_MUL;
    s->start = 1;
  }
  tt_val v = tt_arg_as(L, given, TT_I64);
  if (given == lengths) {
    v = tt_pad_dim(b, tt_cumulative(b, TT_REDUCE_SUM, v, 0), 0, 1, 0, 0);
  }
  s->offsets = v;
  s->count = tt_dim_of(b, v, 0) - 1;
  s->total = tt_arg_info(L, data)->sizes[0];
  s->group = tt_jagged_groups(b, v, s->total);
  s->lengths = tt_sub(b, tt_slice_dim(b, v, 0, 1, s->count + 1, 1), tt_slice_dim(b, v, 0, 0, s->count, 1));
  return true;
}

// A value for each segment against data of `rank` dimensions.
static tt_val over(tt_builder* b, tt_val each, int rank) {
  while (tt_rank_of(b, each) < rank) {
    each = tt_unsqueeze(b, each, -1);
  }
  return each;
}

TT_OP(segment_reduce,
      "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, "
      "int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor") {
  segments s;
  if (!read_segments(L, b, 0, 1, 2, 4, 5, &s)) {
    return;
  }
  const tt_type* out = tt_out_type(L, 0);
  tt_dtype dtype = tt_dtype_compute(out->dtype);
  tt_val start = tt_arg_has(L, 7) ? tt_arg_scalar(L, 7, dtype) : tt_const_f(b, dtype, s.start);
  tt_val result = tt_expand(b, start, out->rank, out->dims);
  if (s.total > 0 && s.count > 0) {
    result = tt_put_rows(b, result, s.group, tt_arg_as(L, 0, dtype), 0, s.how);
  }
  if (s.mean) {
    tt_val n = over(b, tt_convert(b, s.lengths, dtype), out->rank);
    tt_val empty = tt_arg_has(L, 7) ? result : tt_const_f(b, dtype, NAN);
    result = tt_where(b, tt_test_f(b, TT_EQ, n, 0), empty, tt_div(b, result, n));
  }
  tt_out(L, 0, result);
}

TT_OP(segment_reduce_backward,
      "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, Tensor? "
      "offsets=None, int axis=0, Scalar? initial=None) -> Tensor") {
  segments s;
  if (!read_segments(L, b, 2, 3, 4, 5, 6, &s)) {
    return;
  }
  const tt_type* type = tt_out_type(L, 0);
  tt_dtype dtype = tt_dtype_compute(type->dtype);
  if (s.total == 0 || s.count == 0) {
    tt_out(L, 0, tt_zeros(b, dtype, type->rank, type->dims));
    return;
  }
  tt_val data = tt_arg_as(L, 2, dtype), output = tt_arg_as(L, 1, dtype);
  tt_val known = tt_min(b, s.group, tt_like_i(b, s.group, s.count - 1));
  known = tt_narrow_index(b, known, s.count);
  tt_val grad = tt_take_rows(b, tt_arg_as(L, 0, dtype), known, 0);
  tt_val none = tt_full_like(b, output, 0);
  tt_val whole = tt_take_rows(b, output, known, 0);
  if (s.mean) {
    tt_val n = tt_convert(b, tt_take_rows(b, s.lengths, known, 0), dtype);
    grad = tt_div(b, grad, over(b, n, type->rank));
  } else if (s.how == TT_COMBINE_MAX || s.how == TT_COMBINE_MIN) {
    tt_val same = tt_or(b, tt_test(b, TT_EQ, data, whole), tt_is_nan(b, data));
    tt_val hit = tt_convert(b, same, dtype);
    tt_val times = tt_take_rows(b, tt_put_rows(b, none, s.group, hit, 0, TT_COMBINE_ADD), known, 0);
    grad = tt_where(b, same, tt_div(b, grad, tt_max(b, times, tt_like_f(b, times, 1))), tt_like_f(b, grad, 0));
  } else if (s.how == TT_COMBINE_MUL) {
    // Where an element is 0, the product of the others.
    tt_val zero = tt_test_f(b, TT_EQ, data, 0);
    tt_val rest = tt_where(b, zero, tt_like_f(b, data, 1), data);
    tt_val first = tt_arg_has(L, 7) ? tt_arg_scalar(L, 7, dtype) : tt_const_f(b, dtype, 1);
    tt_val product = tt_put_rows(b, tt_expand_like(b, first, none), s.group, rest, 0, TT_COMBINE_MUL);
    tt_val zeros = tt_put_rows(b, none, s.group, tt_convert(b, zero, dtype), 0, TT_COMBINE_ADD);
    tt_val alone = tt_where(b, tt_test_f(b, TT_EQ, zeros, 1), product, tt_like_f(b, product, 0));
    tt_val others = tt_where(b, zero, tt_take_rows(b, alone, known, 0), tt_div(b, whole, rest));
    grad = tt_mul(b, grad, others);
  }
  tt_val inside = tt_test(b, TT_LT, s.group, tt_like_i(b, s.group, s.count));
  tt_out(L, 0, tt_where(b, over(b, inside, type->rank), grad, tt_like_f(b, grad, 0)));
}
