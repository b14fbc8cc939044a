// SPDX-License-Identifier: Apache-2.0
//
// Some of PyTorch's refusals stand in an op's kernel and in no shape function. The CPU's kernel is then asked, on stand-ins of the
// same dtypes that cost nothing, before a plan is made.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "infer.h"

namespace tt {

bool ask_cast(const c10::OperatorHandle& op, const Overload& overload, c10::ArrayRef<c10::IValue> arguments) {
  constexpr int64_t kSmall = 1 << 16;
  torch::jit::Stack stack;
  bool elementwise = op.hasTag(at::Tag::pointwise);  // needs no elements
  auto stand_in = [&](const at::Tensor& t, bool written) {
    if (!t.defined() || t.unsafeGetTensorImpl()->is_wrapped_number()) {
      return t;
    }
    auto options = at::TensorOptions().dtype(t.scalar_type());
    if (!elementwise && !written) {
      return at::zeros(t.sizes(), options);
    }
    return t.dim() == 0 && !written ? at::ones({}, options) : at::empty({0}, options);
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    bool written =
        std::find(overload.mutated.begin(), overload.mutated.end(), static_cast<int>(i)) != overload.mutated.end();
    if (overload.args[i].kind == ArgKind::TensorList || overload.args[i].kind == ArgKind::Generator ||
        (arguments[i].isTensor() && arguments[i].toTensor().defined() && arguments[i].toTensor().numel() > kSmall &&
         !elementwise)) {
      return false;
    }
    stack.push_back(arguments[i].isTensor() ? c10::IValue(stand_in(arguments[i].toTensor(), written)) : arguments[i]);
  }
  op.callBoxed(stack);
  return true;
}

void ask_integers(const c10::OperatorHandle& op, const Overload& overload, c10::ArrayRef<c10::IValue> arguments) {
  const std::string& name = op.schema().name();
  bool resizes = name.find("upsample_") != std::string::npos || name.find("adaptive_avg_pool") != std::string::npos;
  if (!resizes || !overload.mutated.empty() || !arguments[0].isTensor() ||
      !c10::isIntegralType(arguments[0].toTensor().scalar_type(), /*includeBool=*/true)) {
    return;
  }
  torch::jit::Stack stack(arguments.begin(), arguments.end());
  for (c10::IValue& value : stack) {
    if (value.isTensor()) {
      std::vector<int64_t> sizes(static_cast<size_t>(value.toTensor().dim()), 2);
      value = at::ones(sizes, at::TensorOptions().dtype(value.toTensor().scalar_type()));
    }
  }
  op.callBoxed(stack);
}

}  // namespace tt
