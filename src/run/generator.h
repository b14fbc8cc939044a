// SPDX-License-Identifier: Apache-2.0
#ifndef TT_RUN_GENERATOR_H
#define TT_RUN_GENERATOR_H

#include "tt/device.h"

// Takes `steps` counter blocks of 128 bits: hands out seed and offset as they were before.
void tt_generator_advance(tt_generator* generator, uint64_t steps, uint64_t* out_seed, uint64_t* out_offset);

#endif  // TT_RUN_GENERATOR_H
