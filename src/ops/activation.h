// SPDX-License-Identifier: Apache-2.0
//
// What activations share with their derivatives.
#ifndef TT_OPS_ACTIVATION_H
#define TT_OPS_ACTIVATION_H

#include "ops/pointwise.h"

// gelu's tanh form: 0.5 x (1 + tanh(SCALE (x + CUBIC x^3))).
#define TT_GELU_SCALE 0.79788456080286535588
#define TT_GELU_CUBIC 0.044715

tt_val tt_relu(tt_builder* b, tt_val x);
tt_val tt_gelu_inner(tt_builder* b, tt_val x);  // the tanh's argument
bool tt_gelu_is_tanh(tt_lower* L, int i);
tt_val tt_normal_cdf(tt_builder* b, tt_val x);
tt_val tt_softplus(tt_builder* b, tt_val x);  // log(1 + exp(x))
tt_val tt_hard_sigmoid(tt_builder* b, tt_val x);

#endif  // TT_OPS_ACTIVATION_H
