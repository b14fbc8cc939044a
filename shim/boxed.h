// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stack.h"

namespace tt {

// A check of a call's arguments that its plan does not cover; nullptr for most operators (shim/checks.cpp).
using Check = void (*)(c10::ArrayRef<c10::IValue> arguments);
Check find_check(const c10::OperatorName& name);

// Raises what PyTorch raises for a factorization's `info`, its last result, that is not zero.
void check_info(const Overload& overload, const at::Tensor& matrices, const at::Tensor& info);

// THE kernel: one object an overload, or one for all ops that have no entry (then it looks the overload up).
class Kernel final : public c10::OperatorKernel {
 public:
  explicit Kernel(const tt_op* op) : op_(op) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

 private:
  const tt_op* op_;
  std::optional<Overload> overload_;
  Check check_ = nullptr;
};

// Serves one call of an overload: by its plan, its entry, a captured kernel or decomposition, or the CPU.
void run(const c10::OperatorHandle& op, const Overload& overload, torch::jit::Stack* stack);

// Serves a call of an out= overload by its functional overload and a copy (shim/outs.cpp). False, with the stack as it was, if
// there is none or its results do not fit.
bool run_by_functional(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// The kernel for every op without an entry.
void run_unlisted(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace tt
