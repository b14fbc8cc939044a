// SPDX-License-Identifier: Apache-2.0
//
// Reductions over segments of a dimension, given by their lengths or their offsets, and the gradient.
#include <math.h>
#include <string.h>

#include "ops/indexing.h"
#include "ops/reduce.h"

typedef struct segments {
  int64_t batch, size, count, inner;  // data is [batch, size, inner], results are [batch, count, inner]
  tt_val at;                          // [batch * size] the segment of each row, -1 for none
  tt_val lengths;                     // [batch * count, 1]
} segments;

static tt_val shaped2(tt_builder* b, tt_val x, int64_t rows, int64_t columns) {
  int64_t dims[2] = {rows, columns};
  return tt_reshape(b, x, 2, dims);
}

// Places from `data`, and the table of argument `lengths` or else `offsets`.
static segments segments_of(tt_lower* L, tt_builder* b, tt_val data, int lengths, int offsets, int axis_arg,
                            tt_dtype dtype) {
  segments s = {.batch = 1, .inner = 1};
  int rank = tt_rank_of(b, data);
  int axis = tt_wrap_dim(tt_arg_int(L, axis_arg), rank);
  for (int d = 0; d < rank; ++d) {
    int64_t n = tt_dim_of(b, data, d);
    *(d < axis ? &s.batch : d == axis ? &s.size : &s.inner) *= d == axis ? 1 : n;
    s.size = d == axis ? n : s.size;
  }
  bool by_length = tt_arg_has(L, lengths);
  tt_val table = tt_convert(b, tt_arg(L, by_length ? lengths : offsets), TT_I64);
  int64_t columns = tt_dim_of(b, table, tt_rank_of(b, table) - 1);
  s.count = by_length ? columns : columns - 1;
  table = shaped2(b, table, s.batch, columns);
  tt_val starts, ends;
  if (by_length) {
    ends = tt_cumulative(b, TT_REDUCE_SUM, table, 1);
    starts = tt_sub(b, ends, table);
  } else {
    starts = tt_slice_dim(b, table, 1, 0, s.count, 1);
    ends = tt_slice_dim(b, table, 1, 1, columns, 1);
  }
  s.lengths = tt_convert(b, shaped2(b, tt_sub(b, ends, starts), s.batch * s.count, 1), dtype);
  int64_t rows = s.batch * s.size;
  if (rows == 0 || s.count == 0) {
    s.at = tt_expand(b, tt_const_i(b, TT_I64, -1), 1, &rows);
    return s;
  }
  // Compared with all segments: fused, and of no depth.
  int64_t cube[3] = {s.batch, s.size, s.count};
  tt_type type = tt_type_make(TT_I64, 3, cube);
  tt_val row = tt_iota(b, &type, 1);
  tt_val member =
      tt_and(b, tt_test(b, TT_GE, row, tt_unsqueeze(b, starts, 1)), tt_test(b, TT_LT, row, tt_unsqueeze(b, ends, 1)));
  tt_val place = tt_add(b, tt_iota(b, &type, 2), tt_mul(b, tt_iota(b, &type, 0), tt_const_i(b, TT_I64, s.count)));
  int64_t dim = 2;
  s.at = tt_reduce(b, TT_REDUCE_MAX, tt_where(b, member, place, tt_like_i(b, place, -1)), 1, &dim);
  s.at = tt_flatten(b, s.at);
  return s;
}

static bool is(const char* reduce, const char* name) {
  return strcmp(reduce, name) == 0 || (reduce[0] == 'a' && strcmp(reduce + 1, name) == 0);
}

static tt_val no_number(tt_builder* b, tt_val like) {
  return tt_full_like(b, like, (double)NAN);
}

TT_OP(segment_reduce,
      "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, "
      "int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor") {
  const tt_type* out = tt_out_type(L, 0);
  if (tt_type_elements(out) == 0) {
    tt_out(L, 0, tt_zeros(b, out->dtype, out->rank, out->dims));
    return;
  }
  const char* reduce = tt_arg_string(L, 1);
  tt_dtype dtype = tt_dtype_compute(out->dtype);
  tt_val data = tt_arg_as(L, 0, dtype);
  segments s = segments_of(L, b, data, 2, 4, 5, dtype);
  bool mean = is(reduce, "mean"), has_initial = tt_arg_has(L, 7);
  tt_combine how = mean || is(reduce, "sum") ? TT_COMBINE_ADD
                   : is(reduce, "prod")      ? TT_COMBINE_MUL
                   : is(reduce, "max")       ? TT_COMBINE_MAX
                                             : TT_COMBINE_MIN;
  tt_val initial = has_initial             ? tt_arg_scalar(L, 7, dtype)
                   : how == TT_COMBINE_ADD ? tt_const_f(b, dtype, 0)
                   : how == TT_COMBINE_MUL ? tt_const_f(b, dtype, 1)
                   : how == TT_COMBINE_MAX ? tt_const_min(b, dtype)
                                           : tt_const_max(b, dtype);
  int64_t dims[2] = {s.batch * s.count, s.inner};
  tt_val result =
      tt_put_rows(b, tt_expand(b, initial, 2, dims), s.at, shaped2(b, data, s.batch * s.size, s.inner), 0, how);
  if (mean) {
    tt_val filled = tt_expand(b, tt_test_f(b, TT_GT, s.lengths, 0), 2, dims);
    tt_val empty = has_initial ? result : no_number(b, result);
    result = tt_where(b, filled, tt_div(b, result, s.lengths), empty);
  }
  tt_out_shaped(L, 0, result);
}

// Of each row: x[its segment], or anything for rows without one.
static tt_val of_segment(tt_builder* b, const segments* s, tt_val x) {
  tt_val at = tt_max(b, s->at, tt_like_i(b, s->at, 0));
  return tt_take_rows(b, x, at, 0);
}
static tt_val per_segment(tt_builder* b, const segments* s, tt_val rows, tt_combine how) {
  int64_t dims[2] = {s->batch * s->count, s->inner};
  tt_val start = tt_expand(b, tt_const_f(b, tt_dtype_of(b, rows), how == TT_COMBINE_MUL ? 1 : 0), 2, dims);
  return tt_put_rows(b, start, s->at, rows, 0, how);
}

// The product of a segment's other elements. Dividing the whole product serves all but zeros and NaN.
static tt_val product_of_others(tt_builder* b, const segments* s, tt_val x, tt_val product, tt_val initial) {
  tt_val zero = tt_test_f(b, TT_EQ, x, 0), nan = tt_is_nan(b, x), one = tt_like_f(b, x, 1), none = tt_like_f(b, x, 0);
  tt_val plain = tt_where(b, tt_or(b, zero, nan), one, x);
  tt_val rest = tt_mul(b, of_segment(b, s, per_segment(b, s, plain, TT_COMBINE_MUL)), initial);
  tt_val zeros = of_segment(b, s, per_segment(b, s, tt_where(b, zero, one, none), TT_COMBINE_ADD));
  tt_val nans = of_segment(b, s, per_segment(b, s, tt_where(b, nan, one, none), TT_COMBINE_ADD));
  tt_val other_zeros = tt_sub(b, zeros, tt_where(b, zero, one, none));
  tt_val other_nans = tt_sub(b, nans, tt_where(b, nan, one, none));
  tt_val special = tt_where(b, tt_test_f(b, TT_GT, other_zeros, 0), none, rest);
  special = tt_where(b, tt_test_f(b, TT_GT, other_nans, 0), no_number(b, x), special);
  return tt_where(b, tt_or(b, zero, nan), special, tt_div(b, product, plain));
}

TT_OP(segment_reduce_backward,
      "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, "
      "Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor") {
  const tt_type* out = tt_out_type(L, 0);
  const char* reduce = tt_arg_string(L, 3);
  tt_dtype dtype = tt_dtype_compute(out->dtype);
  tt_val data = tt_arg_as(L, 2, dtype);
  if (tt_type_elements(out) == 0 || tt_type_elements(tt_type_of(b, tt_arg(L, 0))) == 0) {
    tt_out(L, 0, tt_zeros(b, out->dtype, out->rank, out->dims));
    return;
  }
  segments s = segments_of(L, b, data, 4, 5, 6, dtype);
  tt_val x = shaped2(b, data, s.batch * s.size, s.inner);
  tt_val grad = of_segment(b, &s, shaped2(b, tt_arg_as(L, 0, dtype), s.batch * s.count, s.inner));
  tt_val zero = tt_like_f(b, x, 0);
  if (is(reduce, "mean")) {
    grad = tt_div(b, grad, of_segment(b, &s, s.lengths));
  } else if (is(reduce, "prod")) {
    tt_val product = of_segment(b, &s, shaped2(b, tt_arg_as(L, 1, dtype), s.batch * s.count, s.inner));
    tt_val initial = tt_arg_has(L, 7) ? tt_arg_scalar(L, 7, dtype) : tt_const_f(b, dtype, 1);
    grad = tt_mul(b, grad, product_of_others(b, &s, x, product, initial));
  } else if (!is(reduce, "sum")) {
    tt_val best = of_segment(b, &s, shaped2(b, tt_arg_as(L, 1, dtype), s.batch * s.count, s.inner));
    tt_val hit = tt_or(b, tt_is_nan(b, x), tt_test(b, TT_EQ, x, best));
    tt_val hits = per_segment(b, &s, tt_where(b, hit, tt_like_f(b, x, 1), zero), TT_COMBINE_ADD);
    grad = tt_where(b, hit, tt_div(b, grad, of_segment(b, &s, hits)), zero);
  }
  int64_t dims[2] = {s.batch * s.size, s.inner};
  tt_val inside = tt_expand(b, tt_unsqueeze(b, tt_test_f(b, TT_GE, s.at, 0), 1), 2, dims);
  tt_out_shaped(L, 0, tt_where(b, inside, grad, zero));
}
