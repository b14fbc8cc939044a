// SPDX-License-Identifier: Apache-2.0
//
// Jagged values [total, ...]: group g is the rows from offsets[g] up to offsets[g + 1].
#ifndef TT_OPS_JAGGED_H
#define TT_OPS_JAGGED_H

#include "ops/op.h"

// [groups, length, ...]; what a group does not fill is `fill` (0-d), what is longer is cut.
tt_val tt_jagged_pad(tt_builder* b, tt_val values, tt_val offsets, int64_t length, tt_val fill);
// Back: [total, ...]; rows behind the last group, and behind the padded length, are 0.
tt_val tt_jagged_unpad(tt_builder* b, tt_val padded, tt_val offsets, int64_t total);
// The group of each of `total` rows; the number of groups behind the last one.
tt_val tt_jagged_groups(tt_builder* b, tt_val offsets, int64_t total);

#endif  // TT_OPS_JAGGED_H
