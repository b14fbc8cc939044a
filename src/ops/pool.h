// SPDX-License-Identifier: Apache-2.0
//
// What the pooling and resampling files share.
#ifndef TT_OPS_POOL_H
#define TT_OPS_POOL_H

#include "ops/op.h"

// Each element's flat position in the last `spatial` dimensions, i32, in x's shape.
tt_val tt_pool_positions(tt_builder* b, tt_val x, int spatial);
// Reduction of (value, position) pairs to PyTorch's winner.
void tt_pool_max_body(tt_builder* b, const tt_val* args, tt_val* results, void* ctx);
// Zeros of type `to` with `values` put (or added, if `sum`) at flat positions in each plane of `spatial` dimensions.
tt_val tt_pool_scatter(tt_builder* b, tt_val values, tt_val positions, int spatial, const tt_type* to, bool sum);
// Sets all outputs to zeros: for results without elements.
void tt_pool_empty(tt_lower* L, tt_builder* b);
// x at `indices` (1-d, in range) along dim.
tt_val tt_pool_take(tt_builder* b, tt_val x, int dim, tt_val indices);

#endif  // TT_OPS_POOL_H
