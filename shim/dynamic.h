// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stack.h"

namespace tt {

// Turns the masks among an overload's index tensors (argument overload.indices) into indices, and brings indices on the CPU over.
// A mask that one value fills stays: the entry selects by it.
void expand_masks(const Overload& overload, torch::jit::Stack* stack);

// The in-place operators that PyTorch still lets write to a tensor whose elements share memory (x.expand(...)), with a warning: the
// example that warning gives; "" for others. write_spread makes such a call; false if the tensor is an ordinary one.
std::string spreading(const c10::FunctionSchema& schema);
bool write_spread(const c10::OperatorHandle& op, const Overload& overload, torch::jit::Stack* stack);

}  // namespace tt
