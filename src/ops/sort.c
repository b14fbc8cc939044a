// SPDX-License-Identifier: Apache-2.0
//
// Sorting by PyTorch's order (NaN above all numbers), and what rests on it: top k, medians, modes.
#include <math.h>

#include "ops/indexing.h"
#include "ops/reduce.h"

// Is args[0] strictly before args[1]?
static void before(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  bool descending = *(const bool*)ctx;
  tt_val first = descending ? args[1] : args[0];
  tt_val second = descending ? args[0] : args[1];
  results[0] = tt_compare(b, TT_LT, first, second);
  if (tt_dtype_is_float(tt_dtype_of(b, first))) {
    tt_val only_second = tt_and(b, tt_is_nan(b, second), tt_not(b, tt_is_nan(b, first)));
    results[0] = tt_or(b, results[0], only_second);
  }
}

// x sorted along dim, equal elements in their order, and where each came from (i32).
static tt_val sorted(tt_builder* b, tt_val x, int dim, bool descending, tt_val* out_places) {
  tt_val operands[2] = {x, tt_iota_like(b, x, TT_I32, dim)};
  tt_val results[2] = {TT_POISON, TT_POISON};
  tt_sort(b, 2, operands, dim, true, before, &descending, results);
  *out_places = results[1];
  return results[0];
}

TT_OP(
    sort,
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)") {
  tt_val x = tt_arg_1d(L, 0, TT_DTYPE_INVALID);
  tt_val places;
  tt_val values = sorted(b, x, tt_wrap_dim(tt_arg_int(L, 2), tt_rank_of(b, x)), tt_arg_bool(L, 3), &places);
  tt_out_shaped(L, 0, values);
  tt_out_shaped(L, 1, places);
}

enum { MAX_TOP_K = 1024 };  // beyond, sorting everything is no slower

TT_OP(
    topk,
    "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)") {
  tt_val x = tt_arg_1d(L, 0, TT_DTYPE_INVALID);
  int64_t k = tt_arg_int(L, 1);
  int dim = tt_wrap_dim(tt_arg_int(L, 2), tt_rank_of(b, x));
  bool largest = tt_arg_bool(L, 3);
  tt_dtype dtype = tt_dtype_compute(tt_dtype_of(b, x));
  tt_val places;
  tt_val values;
  if (largest && dtype == TT_F32 && k > 0 && k <= MAX_TOP_K) {
    int last = tt_rank_of(b, x) - 1;
    tt_val rows = tt_swap_dims(b, tt_convert(b, x, dtype), dim, last);
    tt_val nan = tt_full_like(b, rows, (double)NAN);
    tt_top_k(b, tt_where(b, tt_is_nan(b, rows), nan, rows), k, &values, &places);  // NaN of either sign is the largest
    tt_out_shaped(L, 0, tt_swap_dims(b, values, dim, last));
    tt_out_shaped(L, 1, tt_swap_dims(b, places, dim, last));
    return;
  }
  values = sorted(b, x, dim, largest, &places);
  tt_out_shaped(L, 0, tt_slice_dim(b, values, dim, 0, k, 1));
  tt_out_shaped(L, 1, tt_slice_dim(b, places, dim, 0, k, 1));
}

TT_OP(kthvalue, "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)") {
  tt_val x = tt_arg_1d(L, 0, TT_DTYPE_INVALID);
  int64_t k = tt_arg_int(L, 1);
  int dim = tt_wrap_dim(tt_arg_int(L, 2), tt_rank_of(b, x));
  tt_val places;
  tt_val values = sorted(b, x, dim, false, &places);
  tt_out_shaped(L, 0, tt_slice_dim(b, values, dim, k - 1, k, 1));
  tt_out_shaped(L, 1, tt_slice_dim(b, places, dim, k - 1, k, 1));
}

// ---- medians ----------------------------------------------------------------------------------------------------------------

// x's element at `place` (sizes of x, 1 along dim) along dim, which is removed from neither.
static tt_val pick(tt_builder* b, tt_val x, tt_val place, int dim) {
  tt_val here = tt_test(b, TT_EQ, tt_iota_like(b, x, TT_I32, dim), place);
  if (tt_dtype_of(b, x) == TT_BOOL) {
    int64_t axis = dim;
    return tt_reduce_keep(b, TT_REDUCE_OR, tt_and(b, here, x), 1, &axis);
  }
  return tt_sum_keep(b, tt_where(b, here, x, tt_full_like(b, x, 0)), dim);
}

// The lower of two middle elements. NaN in a row: NaN, or with `skip` the median of the others.
static void median(tt_lower* L, tt_builder* b, tt_val x, int dim, bool skip) {
  int64_t size = tt_dim_of(b, x, dim);
  tt_val places;
  tt_val values = sorted(b, x, dim, false, &places);
  tt_val is_nan = tt_is_nan(b, values);
  tt_val nans = tt_sum_keep(b, tt_convert(b, is_nan, TT_I32), dim);
  tt_val numbers = tt_sub(b, tt_full_like(b, nans, (double)size), nans);
  tt_val middle = tt_div(b, tt_add_f(b, numbers, -1), tt_full_like(b, nans, 2));
  if (!skip) {
    tt_val whole = tt_full_like(b, nans, (double)((size - 1) / 2));
    middle = tt_where(b, tt_test_f(b, TT_GT, nans, 0), numbers, whole);  // NaNs stand last, the first one first
  }
  middle = tt_max(b, middle, tt_full_like(b, middle, 0));
  tt_out_shaped(L, 0, pick(b, values, middle, dim));
  if (tt_out_count(L) > 1) {
    tt_out_shaped(L, 1, pick(b, places, middle, dim));
  }
}

static void median_all(tt_lower* L, tt_builder* b, bool skip) {
  tt_val x = tt_flatten(b, tt_arg(L, 0));
  if (tt_dim_of(b, x, 0) == 0) {
    tt_out(L, 0, tt_const_f(b, tt_dtype_of(b, x), tt_dtype_is_float(tt_dtype_of(b, x)) ? (double)NAN : 0));
    return;
  }
  median(L, b, x, 0, skip);
}
static void median_along(tt_lower* L, tt_builder* b, bool skip) {
  tt_val x = tt_arg_1d(L, 0, TT_DTYPE_INVALID);
  median(L, b, x, tt_wrap_dim(tt_arg_int(L, 1), tt_rank_of(b, x)), skip);
}
TT_OP(median, "median(Tensor self) -> Tensor") {
  median_all(L, b, false);
}
TT_OP(nanmedian, "nanmedian(Tensor self) -> Tensor") {
  median_all(L, b, true);
}
TT_OP(median_dim, "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)") {
  median_along(L, b, false);
}
TT_OP(nanmedian_dim, "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)") {
  median_along(L, b, true);
}

// ---- mode: the most frequent value, the smallest of those, and its last place ---------------------------------------------------

TT_OP(mode, "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)") {
  tt_val x = tt_arg_1d(L, 0, TT_DTYPE_INVALID);
  int dim = tt_wrap_dim(tt_arg_int(L, 1), tt_rank_of(b, x));
  int64_t size = tt_dim_of(b, x, dim);
  tt_val places;
  tt_val values = sorted(b, x, dim, false, &places);
  // Length of the run of equal values that ends at each element: distance to the run's first.
  tt_val index = tt_iota_like(b, values, TT_I32, dim);
  tt_val starts = tt_full_like(b, index, 0);
  if (size > 1) {
    tt_val left = tt_slice_dim(b, values, dim, 0, size - 1, 1);
    tt_val right = tt_slice_dim(b, values, dim, 1, size, 1);
    tt_val differs = tt_pad_dim(b, tt_convert(b, tt_test(b, TT_NE, left, right), TT_I32), dim, 1, 0, 1);
    starts = tt_cumulative(b, TT_REDUCE_MAX, tt_mul(b, differs, index), dim);
  }
  tt_val last = tt_unsqueeze(b, tt_arg_reduce(b, true, tt_sub(b, index, starts), dim, NULL), dim);
  last = tt_convert(b, last, TT_I32);
  tt_out_shaped(L, 0, pick(b, values, last, dim));
  tt_out_shaped(L, 1, pick(b, places, last, dim));
}

// ---- search in sorted sequences ---------------------------------------------------------------------------------------------------

// The same by halves, for one long sequence and many values: a gather for each bit of its length.
static tt_val bisect(tt_builder* b, tt_val sequence, tt_val values, bool right) {
  int64_t size = tt_dim_of(b, sequence, 0);
  tt_val place = tt_full_like(b, tt_convert(b, values, TT_I32), 0);
  int64_t step = 1;
  while (step * 2 <= size) {
    step *= 2;
  }
  for (; step > 0; step /= 2) {
    tt_val next = tt_add(b, place, tt_const_i(b, TT_I32, step));
    tt_val within = tt_test(b, TT_LE, next, tt_const_i(b, TT_I32, size));
    tt_val at = tt_sub(b, tt_min(b, next, tt_const_i(b, TT_I32, size)), tt_const_i(b, TT_I32, 1));
    tt_val past = tt_test(b, right ? TT_GT : TT_GE, tt_take_rows(b, sequence, at, 0), values);
    place = tt_where(b, tt_and(b, within, tt_not(b, past)), next, place);
  }
  return place;
}

// Number of elements of `sequence` (last dimension, leading dims as `values` or none) before `values`. Compares with all of
// them: fused, and of no depth, where a binary search gathers log n times; unless they are so many that this would be dear.
static tt_val search(tt_builder* b, tt_val sequence, tt_val values, bool right) {
  const int64_t many = 1 << 24;
  int64_t count = tt_type_elements(tt_type_of(b, values));
  if (tt_rank_of(b, sequence) == 1 && count > 0 && tt_dim_of(b, sequence, 0) > many / count &&
      tt_dim_of(b, sequence, 0) < INT32_MAX / 2) {
    return bisect(b, sequence, values, right);
  }
  tt_val edges = sequence;
  if (tt_rank_of(b, sequence) > 1) {
    edges = tt_unsqueeze(b, sequence, tt_rank_of(b, sequence) - 1);
  }
  tt_val wide = tt_unsqueeze(b, values, tt_rank_of(b, values));
  int last = tt_rank_of(b, values);
  tt_val past = tt_test(b, right ? TT_GT : TT_GE, edges, wide);
  int64_t size = tt_dim_of(b, sequence, tt_rank_of(b, sequence) - 1);
  tt_val place = tt_iota_like(b, past, TT_I32, last);
  tt_val first = tt_where(b, past, place, tt_full_like(b, place, (double)size));
  int64_t axis = last;
  if (size == 0) {
    return tt_full_like(b, tt_convert(b, values, TT_I32), 0);
  }
  return tt_reduce(b, TT_REDUCE_MIN, first, 1, &axis);
}

typedef struct search_args {
  int sequence, values, right, side, sorter;
} search_args;

static void search_sorted(tt_lower* L, tt_builder* b, const search_args* a) {
  int args[2] = {a->sequence, a->values};
  tt_dtype dtype = tt_promote_dtypes(tt_arg_info(L, a->sequence)->dtype, tt_common_dtype(L, 2, args));
  tt_val sequence = tt_arg_as(L, a->sequence, dtype);
  tt_val values =
      tt_arg_info(L, a->values) != NULL ? tt_arg_as(L, a->values, dtype) : tt_arg_scalar(L, a->values, dtype);
  if (a->sorter >= 0 && tt_arg_has(L, a->sorter)) {
    tt_val order = tt_arg_as(L, a->sorter, TT_I64);
    int last = tt_rank_of(b, sequence) - 1;
    sequence = tt_gather_along(b, sequence, tt_check_index(L, order, tt_dim_of(b, sequence, last), false), last);
  }
  int rank = tt_rank_of(b, sequence);
  if (rank != 1 && (a->sequence == 1 || rank != tt_rank_of(b, values))) {
    tt_unsupported(L, "boundaries of %d dimensions", rank);  // the CPU says what is wrong
    return;
  }
  const char* side = a->side >= 0 ? tt_arg_string(L, a->side) : "";
  tt_out_shaped(L, 0, search(b, sequence, values, tt_arg_bool(L, a->right) || side[0] == 'r'));
}
TT_OP(searchsorted,
      "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
      "str? side=None, Tensor? sorter=None) -> Tensor") {
  search_sorted(L, b, &(search_args){0, 1, 3, 4, 5});
}
TT_OP(searchsorted_scalar,
      "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, "
      "str? side=None, Tensor? sorter=None) -> Tensor") {
  search_sorted(L, b, &(search_args){0, 1, 3, 4, 5});
}
TT_OP(bucketize,
      "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor") {
  search_sorted(L, b, &(search_args){1, 0, 3, -1, -1});
}
TT_OP(bucketize_scalar,
      "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor") {
  search_sorted(L, b, &(search_args){1, 0, 3, -1, -1});
}
