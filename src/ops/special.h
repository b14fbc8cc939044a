// SPDX-License-Identifier: Apache-2.0
//
// Special functions that several topic files use.
#ifndef TT_OPS_SPECIAL_H
#define TT_OPS_SPECIAL_H

#include "ops/pointwise.h"

// c[0] x^(n-1) + ... + c[n-1].
tt_val tt_horner(tt_builder* b, tt_val x, int n, const double* c);
// Modified Bessel function of the first kind, order 0 or 1; scaled by exp(-|x|) or not.
tt_val tt_bessel_i(tt_builder* b, tt_val x, int order, bool scaled);

#endif  // TT_OPS_SPECIAL_H
