// SPDX-License-Identifier: Apache-2.0
//
// An out= overload that cannot be one program (its tensor must be resized, or only the functional overload has a form for tpu): the
// functional overload is called, and its results are copied.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/Resize.h>

#include <mutex>
#include <set>
#include <unordered_map>

#include "boxed.h"

namespace tt {

namespace {

using c10::FunctionSchema;

bool is_out(const c10::Argument& arg) {
  return arg.kwarg_only() && arg.alias_info() != nullptr && arg.alias_info()->isWrite();
}

// How many arguments are no out= ones; these stand last.
size_t inputs_of(const FunctionSchema& schema) {
  size_t n = schema.arguments().size();
  while (n > 0 && is_out(schema.arguments()[n - 1])) {
    n -= 1;
  }
  return n;
}

bool is_functional_of(const FunctionSchema& schema, const FunctionSchema& out, size_t inputs) {
  size_t outs = out.arguments().size() - inputs;
  if (schema.arguments().size() != inputs || schema.returns().size() != outs) {
    return false;
  }
  for (size_t i = 0; i < inputs; ++i) {
    const c10::Argument &a = schema.arguments()[i], &b = out.arguments()[i];
    if (is_out(a) || a.name() != b.name() || *a.real_type() != *b.real_type()) {
      return false;
    }
  }
  for (const c10::Argument& result : schema.returns()) {
    if (result.type()->kind() != c10::TypeKind::TensorType || result.alias_info() != nullptr) {
      return false;
    }
  }
  return true;
}

std::optional<c10::OperatorHandle> functional_of(const c10::OperatorHandle& op) {
  static std::mutex lock;
  static std::unordered_map<const FunctionSchema*, std::optional<c10::OperatorHandle>> known;
  std::lock_guard<std::mutex> guard(lock);
  auto found = known.find(&op.schema());
  if (found != known.end()) {
    return found->second;
  }
  std::optional<c10::OperatorHandle> functional;
  size_t inputs = inputs_of(op.schema());
  if (inputs < op.schema().arguments().size()) {
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      if (name.name != op.operator_name().name) {
        continue;
      }
      auto handle = dispatcher.findSchema(name);
      if (handle.has_value() && is_functional_of(handle->schema(), op.schema(), inputs)) {
        functional = *handle;
      }
    }
  }
  known[&op.schema()] = functional;
  return functional;
}

}  // namespace

bool run_by_functional(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  // PyTorch makes some functional overloads from the out= one; these come back here.
  thread_local std::set<const FunctionSchema*> running;
  auto functional = functional_of(op);
  if (!functional.has_value() || !running.insert(&op.schema()).second) {
    return false;
  }
  size_t base = stack->size() - op.schema().arguments().size();
  auto from = stack->begin() + static_cast<std::ptrdiff_t>(base);
  torch::jit::Stack results(from, from + static_cast<std::ptrdiff_t>(inputs_of(op.schema())));
  std::vector<at::Tensor> outs;
  for (size_t i = base + results.size(); i < stack->size(); ++i) {
    outs.push_back((*stack)[i].toTensor());
  }
  try {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    functional->callBoxed(results);
  } catch (...) {
    running.erase(&op.schema());
    throw;
  }
  running.erase(&op.schema());
  for (size_t k = 0; k < outs.size(); ++k) {
    at::Tensor result = results[k].toTensor();
    if (!result.defined() || result.scalar_type() != outs[k].scalar_type() || result.device() != outs[k].device()) {
      return false;  // the op's own rule, and words, for another dtype
    }
  }
  stack->resize(base);
  for (size_t k = 0; k < outs.size(); ++k) {
    at::native::resize_output(outs[k], results[k].toTensor().sizes());
    outs[k].copy_(results[k].toTensor());
    stack->push_back(outs[k]);
  }
  return true;
}

}  // namespace tt
