// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stack.h"

namespace tt {

// Turns the masks among an overload's index tensors (argument overload.indices) into indices, and brings indices on the CPU over.
// A mask that one value fills stays: the entry selects by it.
void expand_masks(const Overload& overload, torch::jit::Stack* stack);

}  // namespace tt
