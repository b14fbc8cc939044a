// SPDX-License-Identifier: Apache-2.0
//
// What the indexing ops share: rows and elements of a tensor taken from, or combined into, computed places.
#ifndef TT_OPS_INDEXING_H
#define TT_OPS_INDEXING_H

#include "ops/op.h"

// How an update meets what is there. ADD is `or` for bool.
typedef enum tt_combine { TT_COMBINE_SET, TT_COMBINE_ADD, TT_COMBINE_MUL, TT_COMBINE_MAX, TT_COMBINE_MIN } tt_combine;

// 0-d as one element, as PyTorch indexes it.
tt_val tt_at_least_1d(tt_builder* b, tt_val x);
// tt_check_index, in 32 bits where they do.
tt_val tt_safe_index(tt_lower* L, tt_val index, int64_t size, bool wrap);
// tt_check_place, likewise.
tt_val tt_safe_place(tt_lower* L, tt_val index, int64_t size, bool wrap);
// The same range without the check: for indices known to be good.
tt_val tt_narrow_index(tt_builder* b, tt_val index, int64_t size);

// x[..., at, ...] in place of dimension `dim`; `at` of any rank, within range.
tt_val tt_take_rows(tt_builder* b, tt_val x, tt_val at, int dim);
// x with rows[..., i, ...] combined into x[..., at[i], ...]; `at` is 1-d.
tt_val tt_put_rows(tt_builder* b, tt_val x, tt_val at, tt_val rows, int dim, tt_combine how);
// torch.gather: `at` has x's rank, and no dimension but `dim` is longer than x's.
tt_val tt_gather_along(tt_builder* b, tt_val x, tt_val at, int dim);
// torch.scatter: `src` has at least the sizes of `at`.
tt_val tt_scatter_along(tt_builder* b, tt_val x, tt_val at, tt_val src, int dim, tt_combine how);
// 1-d x with values[i] combined into x[at[i]]; places outside x are skipped.
tt_val tt_put_flat(tt_builder* b, tt_val x, tt_val at, tt_val values, tt_combine how);
// A scatter whose updates are combined so; 16-bit floats are added up in f32.
tt_val tt_scatter_combine(tt_builder* b, tt_val x, tt_val at, tt_val updates, const tt_gather_dims* dims,
                          tt_combine how);
// How many true elements come before each one of a flat mask, as i32 (i64 for large masks).
tt_val tt_rank_in_mask(tt_builder* b, tt_val mask);

#endif  // TT_OPS_INDEXING_H
