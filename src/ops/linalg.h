// SPDX-License-Identifier: Apache-2.0
//
// Matrices as the linear algebra files see them: the last two dimensions, any batch dimensions before.
#ifndef TT_OPS_LINALG_H
#define TT_OPS_LINALG_H

#include "ops/op.h"

// The conjugate of the transpose.
tt_val tt_mat_adjoint(tt_builder* b, tt_val a);
// Batch dimensions as one: [batch, m, n].
tt_val tt_mat_flat(tt_builder* b, tt_val a);
// `a` with its batch dims broadcast to `rank - 2` dims `batch`.
tt_val tt_mat_expand(tt_builder* b, tt_val a, int rank, const int64_t* batch);
// 1 on the diagonal of [m, n].
tt_val tt_mat_eye(tt_builder* b, tt_dtype dtype, int64_t m, int64_t n);
// Elements with column - row <= k (lower) or >= k; zeros elsewhere.
tt_val tt_mat_triangle(tt_builder* b, tt_val a, bool lower, int64_t k);
// The diagonal, [..., min(m, n)].
tt_val tt_mat_diagonal(tt_builder* b, tt_val a);
// Writes zeros to all outputs if the first has no elements; true then.
bool tt_mat_nothing(tt_lower* L, tt_builder* b);

#endif  // TT_OPS_LINALG_H
