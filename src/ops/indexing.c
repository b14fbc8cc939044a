// SPDX-License-Identifier: Apache-2.0
//
// Rows and elements by computed places, on StableHLO's gather and scatter.
#include "ops/indexing.h"

tt_val tt_at_least_1d(tt_builder* b, tt_val x) {
  return tt_rank_of(b, x) == 0 ? tt_unsqueeze(b, x, 0) : x;
}

tt_val tt_narrow_index(tt_builder* b, tt_val index, int64_t size) {
  return tt_convert(b, index, size <= INT32_MAX ? TT_I32 : TT_I64);
}

tt_val tt_safe_index(tt_lower* L, tt_val index, int64_t size, bool wrap) {
  return tt_narrow_index(tt_lower_builder(L), tt_check_index(L, index, size, wrap), size);
}

tt_val tt_safe_place(tt_lower* L, tt_val index, int64_t size, bool wrap) {
  return tt_narrow_index(tt_lower_builder(L), tt_check_place(L, index, size, wrap), size);
}

static bool is_empty(tt_builder* b, tt_val x) {
  return tt_type_elements(tt_type_of(b, x)) == 0;
}

tt_val tt_take_rows(tt_builder* b, tt_val x, tt_val at, int dim) {
  tt_type tx = *tt_type_of(b, x);
  tt_type ta = *tt_type_of(b, at);
  tt_gather_dims g = {.num_collapsed = 1, .num_start_map = 1, .index_vector_dim = ta.rank};
  g.collapsed[0] = g.start_map[0] = dim;
  int64_t out[TT_MAX_RANK];
  int64_t slice[TT_MAX_RANK];
  int rank = 0;
  for (int d = 0; d < tx.rank; ++d) {
    slice[d] = d == dim ? 1 : tx.dims[d];
    if (d != dim) {
      g.offset[g.num_offset++] = rank;
      out[rank++] = tx.dims[d];
      continue;
    }
    for (int k = 0; k < ta.rank; ++k) {
      out[rank++] = ta.dims[k];
    }
  }
  if (is_empty(b, x) || is_empty(b, at)) {
    return tt_zeros(b, tx.dtype, rank, out);
  }
  return tt_gather(b, x, at, &g, slice);
}

// ---- combining --------------------------------------------------------------------------------------------------------

static void combine(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  const tt_combine* how = ctx;
  static const tt_prim prims[] = {TT_PRIM_NONE, TT_ADD, TT_MUL, TT_MAX, TT_MIN};
  bool logical = tt_dtype_of(b, args[0]) == TT_BOOL;
  tt_prim prim = logical && *how == TT_COMBINE_ADD ? TT_OR : logical && *how == TT_COMBINE_MUL ? TT_AND : prims[*how];
  results[0] = *how == TT_COMBINE_SET ? args[1] : tt_binary(b, prim, args[0], args[1]);
}

tt_val tt_scatter_combine(tt_builder* b, tt_val x, tt_val at, tt_val updates, const tt_gather_dims* dims,
                          tt_combine how) {
  tt_dtype dtype = tt_dtype_of(b, x);
  if (is_empty(b, x) || is_empty(b, updates)) {
    return x;
  }
  tt_dtype compute = how == TT_COMBINE_ADD || how == TT_COMBINE_MUL ? tt_dtype_compute(dtype) : dtype;
  x = tt_convert(b, x, compute);
  updates = tt_convert(b, updates, compute);
  return tt_convert(b, tt_scatter(b, x, at, updates, dims, combine, &how), dtype);
}

tt_val tt_put_rows(tt_builder* b, tt_val x, tt_val at, tt_val rows, int dim, tt_combine how) {
  int rank = tt_rank_of(b, x);
  tt_gather_dims g = {.num_collapsed = 1, .num_start_map = 1, .index_vector_dim = 1};
  g.collapsed[0] = g.start_map[0] = dim;
  for (int d = 0; d < rank; ++d) {
    if (d != dim) {
      g.offset[g.num_offset++] = d;
    }
  }
  return tt_scatter_combine(b, x, at, rows, &g, how);
}

tt_val tt_put_flat(tt_builder* b, tt_val x, tt_val at, tt_val values, tt_combine how) {
  tt_gather_dims g = {.num_collapsed = 1, .num_start_map = 1, .index_vector_dim = 1};
  return tt_scatter_combine(b, x, at, values, &g, how);
}

// ---- along one dimension ----------------------------------------------------------------------------------------------

// The first `dims[d]` of each dimension but `keep` (-1: of all).
static tt_val head(tt_builder* b, tt_val x, const tt_type* like, int keep) {
  tt_type tx = *tt_type_of(b, x);
  int64_t zero[TT_MAX_RANK] = {0};
  int64_t one[TT_MAX_RANK];
  int64_t limit[TT_MAX_RANK];
  for (int d = 0; d < tx.rank; ++d) {
    one[d] = 1;
    limit[d] = d == keep ? tx.dims[d] : like->dims[d];
  }
  return tt_slice(b, x, zero, limit, one);
}

// Every dimension but `dim` runs along with the index's own.
static tt_gather_dims along(int rank, int dim) {
  tt_gather_dims g = {.num_collapsed = 1, .num_start_map = 1, .index_vector_dim = rank};
  g.collapsed[0] = g.start_map[0] = dim;
  for (int d = 0; d < rank; ++d) {
    if (d != dim) {
      g.operand_batch[g.num_operand_batch] = g.indices_batch[g.num_operand_batch] = d;
      g.num_operand_batch += 1;
    }
  }
  return g;
}

tt_val tt_gather_along(tt_builder* b, tt_val x, tt_val at, int dim) {
  tt_type ta = *tt_type_of(b, at);
  if (is_empty(b, x) || is_empty(b, at)) {
    return tt_zeros(b, tt_dtype_of(b, x), ta.rank, ta.dims);
  }
  x = head(b, x, &ta, dim);
  tt_gather_dims g = along(ta.rank, dim);
  int64_t one[TT_MAX_RANK];
  for (int d = 0; d < ta.rank; ++d) {
    one[d] = 1;
  }
  return tt_gather(b, x, at, &g, one);
}

tt_val tt_scatter_along(tt_builder* b, tt_val x, tt_val at, tt_val src, int dim, tt_combine how) {
  tt_type ta = *tt_type_of(b, at);
  tt_type tx = *tt_type_of(b, x);
  if (is_empty(b, x) || is_empty(b, at)) {
    return x;
  }
  src = head(b, src, &ta, -1);
  bool whole = true;
  for (int d = 0; d < tx.rank; ++d) {
    whole &= d == dim || tx.dims[d] == ta.dims[d];
  }
  if (whole) {
    tt_gather_dims g = along(ta.rank, dim);
    return tt_scatter_combine(b, x, at, src, &g, how);
  }
  // Only the part of x that the index covers can change.
  tt_val part = head(b, x, &ta, dim);
  tt_gather_dims g = along(ta.rank, dim);
  part = tt_scatter_combine(b, part, at, src, &g, how);
  tt_val starts[TT_MAX_RANK];
  for (int d = 0; d < tx.rank; ++d) {
    starts[d] = tt_const_i(b, TT_I32, 0);
  }
  return tt_dynamic_update_slice(b, x, part, starts);
}

tt_val tt_rank_in_mask(tt_builder* b, tt_val mask) {
  tt_dtype dtype = tt_type_elements(tt_type_of(b, mask)) <= INT32_MAX ? TT_I32 : TT_I64;
  tt_val ones = tt_convert(b, mask, dtype);
  return tt_sub(b, tt_cumulative(b, TT_REDUCE_SUM, ones, 0), ones);
}
