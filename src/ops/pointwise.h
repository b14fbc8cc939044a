// SPDX-License-Identifier: Apache-2.0
//
// Elementwise helpers that several topic files share.
#ifndef TT_OPS_POINTWISE_H
#define TT_OPS_POINTWISE_H

#include "ops/op.h"

// Argument i as a number to compute with: integers as floats, 16-bit floats as f32.
tt_val tt_arg_real(tt_lower* L, int i);
// x times a real constant; complex numbers by parts (infinity times 0 makes no NaN).
tt_val tt_scale(tt_builder* b, tt_val x, double factor);
tt_val tt_trunc(tt_builder* b, tt_val x);
tt_val tt_sign(tt_builder* b, tt_val x);      // PyTorch's: of NaN it is 0
tt_val tt_sign_bit(tt_builder* b, tt_val x);  // bool
tt_val tt_copy_sign(tt_builder* b, tt_val size, tt_val sign);
tt_val tt_digamma(tt_builder* b, tt_val x);

// The arithmetic of two operands of one dtype, by PyTorch's rules for integers, bool, and signs.
tt_val tt_true_div(tt_builder* b, tt_val x, tt_val y);
tt_val tt_floor_div(tt_builder* b, tt_val x, tt_val y);
tt_val tt_remainder(tt_builder* b, tt_val x, tt_val y);
tt_val tt_power(tt_builder* b, tt_val x, tt_val y);
// x to a constant; the usual ones by multiplications.
tt_val tt_power_f(tt_builder* b, tt_val x, double y);
tt_val tt_lerp(tt_builder* b, tt_val x, tt_val end, tt_val weight);
// x + scale * y, where a scale known to be 1 costs nothing.
tt_val tt_add_scaled(tt_builder* b, tt_prim add_or_sub, tt_val x, tt_val y, tt_val scale);

// Two operands in their common dtype, to compute with.
typedef struct tt_pair {
  tt_val x, y;
  tt_dtype dtype;
} tt_pair;
tt_pair tt_arg_pair(tt_lower* L, int i, int j, tt_promotion promotion);
// Argument i, a tensor or a number, in `dtype`.
tt_val tt_arg_either(tt_lower* L, int i, tt_dtype dtype);

#endif  // TT_OPS_POINTWISE_H
