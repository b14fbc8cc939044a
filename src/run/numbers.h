// SPDX-License-Identifier: Apache-2.0
//
// Host numbers in device formats.
#ifndef TT_RUN_NUMBERS_H
#define TT_RUN_NUMBERS_H

#include "tt/storage.h"

// The dtype a number is sent in for a program that computes in `dtype`: `dtype` itself where the host can make it, F32 for
// the narrow floats (the program converts), so that a number is rounded once.
tt_dtype tt_number_carrier(tt_dtype dtype);
// Stores `value` as `dtype` (a carrier) in out[0..1].
void tt_number_store(const tt_scalar* value, tt_dtype dtype, uint64_t out[2]);

#endif  // TT_RUN_NUMBERS_H
