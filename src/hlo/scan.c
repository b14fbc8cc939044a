// SPDX-License-Identifier: Apache-2.0
//
// Reductions as lowerings want them: dimensions kept, running results, positions of extremes.
#include "hlo/graph.h"
#include "hlo/reduce.h"

tt_val tt_reduce_keep(tt_builder* b, tt_reduce_kind kind, tt_val x, int ndims, const int64_t* dims) {
  if (!tt_usable(b, "reduce", 1, &x)) {
    return TT_POISON;
  }
  tt_type kept = *tt_type_of(b, x);
  int64_t all[TT_MAX_RANK];
  if (ndims == 0) {
    ndims = kept.rank;
    for (int d = 0; d < ndims; d++) {
      all[d] = d;
    }
    dims = all;
  }
  tt_val reduced = tt_reduce(b, kind, x, ndims, dims);
  for (int i = 0; reduced && i < ndims; i++) {
    kept.dims[dims[i]] = 1;
  }
  return reduced ? tt_reshape(b, reduced, kept.rank, kept.dims) : TT_POISON;
}

static tt_val keep_dim(tt_builder* b, tt_reduce_kind kind, tt_val x, int dim) {
  int64_t axis = dim < 0 ? dim + tt_rank_of(b, x) : dim;
  return tt_reduce_keep(b, kind, x, 1, &axis);
}

tt_val tt_sum_keep(tt_builder* b, tt_val x, int dim) {
  return keep_dim(b, TT_REDUCE_SUM, x, dim);
}

tt_val tt_max_keep(tt_builder* b, tt_val x, int dim) {
  return keep_dim(b, TT_REDUCE_MAX, x, dim);
}

tt_val tt_cumulative(tt_builder* b, tt_reduce_kind kind, tt_val x, int dim) {
  if (!tt_usable(b, "cumulative", 1, &x)) {
    return TT_POISON;
  }
  int rank = tt_rank_of(b, x);
  int64_t axis = dim < 0 ? dim + rank : dim;
  if (!tt_check_axes(b, "cumulative", "scanned", 1, &axis, rank)) {
    return TT_POISON;
  }
  if (tt_type_of(b, x)->bounded) {
    return tt_builder_fail(b, TT_UNIMPLEMENTED, "cumulative: expected static sizes, got %s", tt_show(b, x));
  }
  tt_val identity = tt_reduce_init(b, kind, tt_dtype_of(b, x));
  int64_t size = tt_type_of(b, x)->dims[axis];
  // After the step by s each element holds the result over the 2s elements that end at it.
  for (int64_t step = 1; step < size && !b->error; step *= 2) {
    int64_t low[TT_MAX_RANK] = {0}, high[TT_MAX_RANK] = {0}, none[TT_MAX_RANK] = {0};
    low[axis] = step;
    high[axis] = -step;
    tt_val shifted = tt_pad(b, x, identity, low, high, none);
    x = tt_binary(b, tt_reduce_prim(kind), shifted, x);
  }
  return b->error ? TT_POISON : x;
}

// args: best value, its position, next value, its position. Equal values (or NaN both): the lower position.
static void arg_body(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  bool largest = *(const bool*)ctx;
  tt_val value = args[0], position = args[1], next = args[2], next_position = args[3];
  tt_val better = tt_compare(b, largest ? TT_GT : TT_LT, value, next);
  tt_val equal = tt_compare(b, TT_EQ, value, next);
  if (tt_dtype_is_float(tt_dtype_of(b, value))) {
    tt_val is_nan = tt_is_nan(b, value), next_is_nan = tt_is_nan(b, next);
    tt_val only_first = tt_and(b, is_nan, tt_not(b, next_is_nan));
    tt_val both = tt_and(b, is_nan, next_is_nan);
    better = tt_or(b, better, only_first);
    equal = tt_or(b, equal, both);
  }
  tt_val earlier = tt_compare(b, TT_LT, position, next_position);
  tt_val keep = tt_or(b, better, tt_and(b, equal, earlier));
  results[0] = tt_select(b, keep, value, next);
  results[1] = tt_select(b, keep, position, next_position);
}

tt_val tt_arg_reduce(tt_builder* b, bool largest, tt_val x, int dim, tt_val* out_values_or_null) {
  tt_val results[2] = {TT_POISON, TT_POISON};
  if (tt_usable(b, "arg_reduce", 1, &x)) {
    int64_t axis = dim < 0 ? dim + tt_rank_of(b, x) : dim;
    bool narrow = tt_dim_of(b, x, (int)axis) <= INT32_MAX;  // TPUs compute 64-bit integers in pieces
    tt_dtype index = narrow ? TT_I32 : TT_I64;
    tt_val positions = tt_iota_like(b, x, index, (int)axis);
    tt_dtype dtype = tt_dtype_of(b, x);
    // Any element ties with or beats the initial value, and any position is below the initial one.
    tt_val worst = largest ? tt_const_min(b, dtype) : tt_const_max(b, dtype);
    tt_val inits[2] = {worst, tt_const_i(b, index, narrow ? INT32_MAX : INT64_MAX)};
    tt_val xs[2] = {x, positions};
    if (!b->error) {
      tt_reduce_many(b, 2, xs, inits, 1, &axis, arg_body, &largest, results);
    }
  }
  if (out_values_or_null) {
    *out_values_or_null = results[0];
  }
  return results[1];
}
