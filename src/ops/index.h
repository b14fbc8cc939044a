// SPDX-License-Identifier: Apache-2.0
//
// A list of index tensors (Tensor?[] indices) as one gather or scatter.
#ifndef TT_OPS_INDEX_H
#define TT_OPS_INDEX_H

#include "ops/indexing.h"

typedef struct tt_multi_index {
  int indexed;  // dimensions that have an index tensor
  int64_t dims[TT_MAX_RANK];
  int rank;  // of the index tensors, broadcast together
  int64_t sizes[TT_MAX_RANK];
  int first;       // where the index's dimensions stand in the result: at the first indexed one if those
                   // are neighbours, else in front
  tt_val vectors;  // [sizes..., indexed]
  int out_rank;    // the result of reading, or what a write's values broadcast to
  int64_t out_sizes[TT_MAX_RANK];
  tt_gather_dims gather;
} tt_multi_index;

typedef enum tt_index_use {
  TT_INDEX_UNCHECKED,
  TT_INDEX_READ,   // out of range: reported, clamped
  TT_INDEX_WRITE,  // out of range: reported, left out
} tt_index_use;

// Reads argument `arg` for a tensor of type `self`. Negative indices count from the end.
tt_multi_index tt_multi_index_of(tt_lower* L, int arg, const tt_type* self, tt_index_use use);

// "[2, 3]": dimensions as messages show them. Longer ones than `text` are cut short.
void tt_dims_text(int rank, const int64_t* dims, size_t size, char* text);

#endif  // TT_OPS_INDEX_H
