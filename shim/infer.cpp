// SPDX-License-Identifier: Apache-2.0
//
// Output shapes, dtypes, strides and argument errors from PyTorch itself.
//
// A structured op's shape function is C++ that only its kernels reach, and `import torch` covers most Meta kernels by Python
// references with other error texts. So for structured ops PyTorch's default kernel (CompositeExplicitAutogradNonFunctional) is
// run on the real arguments: it works out the output, makes it, and calls the op's out= overload, where we note the output and stop.
// Other ops are asked by their Meta kernel.
#include "infer.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <set>

namespace tt {

namespace {

// Meta tensors for the call's tensors; the same tensor twice stays one.
class Metas {
 public:
  at::Tensor of(const at::Tensor& tensor) {
    if (!tensor.defined()) {
      return tensor;
    }
    for (const auto& [from, to] : made_) {
      if (from == tensor.unsafeGetTensorImpl()) {
        return to;
      }
    }
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      return tensor;  // Meta kernels in Python take it for the number it is
    }
    at::Tensor meta = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(c10::kMeta));
    made_.emplace_back(tensor.unsafeGetTensorImpl(), meta);
    return meta;
  }

  c10::IValue of(const c10::IValue& value, ArgKind kind) {
    if (kind == ArgKind::Tensor) {
      return value.isTensor() ? c10::IValue(of(value.toTensor())) : value;
    }
    if (kind == ArgKind::TensorList && value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& t : value.toTensorVector()) {
        list.push_back(of(t));
      }
      return list;
    }
    if (kind == ArgKind::TensorList && value.isList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue& item : value.toListRef()) {
        list.push_back(item.isTensor() ? std::make_optional(of(item.toTensor())) : std::nullopt);
      }
      return list;
    }
    if (kind == ArgKind::Device && value.isDevice() && value.toDevice().type() == kTpu) {
      return c10::IValue(c10::Device(c10::kMeta));
    }
    return kind == ArgKind::Generator ? c10::IValue() : value;
  }

 private:
  std::vector<std::pair<c10::TensorImpl*, at::Tensor>> made_;
};

tt_meta meta_of(const at::Tensor& t) {
  tt_meta m{};
  if (!t.defined()) {
    return m;
  }
  m.dtype = from_torch(t.scalar_type());
  check_rank(t.dim());
  m.rank = static_cast<int32_t>(t.dim());
  for (int64_t d = 0; d < t.dim(); ++d) {
    m.sizes[d] = t.size(d);
    m.strides[d] = t.stride(d);
  }
  return m;
}

void add_tensors(const c10::IValue& value, std::vector<tt_meta>* metas) {
  if (value.isTensor()) {
    metas->push_back(meta_of(value.toTensor()));
  } else if (value.isTensorList()) {
    for (const at::Tensor& t : value.toTensorVector()) {
      metas->push_back(meta_of(t));
    }
  } else if (value.isNone()) {
    metas->push_back(tt_meta{});
  } else {
    for (const c10::IValue& item : value.toListRef()) {
      metas->push_back(meta_of(item.isTensor() ? item.toTensor() : at::Tensor()));
    }
  }
}

// Resizes `tensor` to what its meta became.
bool follow_resize(const c10::IValue& value, const c10::IValue& meta) {
  if (!value.isTensor() || !value.toTensor().defined() || value.toTensor().sizes() == meta.toTensor().sizes()) {
    return false;
  }
  const at::Tensor& t = value.toTensor();
  const at::Tensor& m = meta.toTensor();
  t.resize_(m.sizes());
  if (t.strides() != m.strides()) {
    t.unsafeGetTensorImpl()->set_sizes_and_strides(m.sizes(), m.strides());
  }
  return true;
}

}  // namespace

namespace {

constexpr auto kStructured = c10::DispatchKey::CompositeExplicitAutogradNonFunctional;

struct Probe {
  std::vector<tt_meta> metas;
  int notes = 0;
};
thread_local Probe* probe = nullptr;

class ProbeGuard {
 public:
  explicit ProbeGuard(Probe* p) : before_(probe) { probe = p; }
  ~ProbeGuard() { probe = before_; }

 private:
  Probe* before_;
};

// Runs a structured op's default kernel up to its out= call. False if it made none.
bool ask_structured(const c10::OperatorHandle& op, torch::jit::Stack* stack, std::vector<tt_meta>* metas) {
  Probe found;
  {
    ProbeGuard guard(&found);
    op.callBoxedForDispatchKey(kStructured, *stack);
  }
  *metas = std::move(found.metas);
  return found.notes == 1;  // more: a kernel composed of several ops
}

// The functional overload behind an out= overload, if that is structured.
std::optional<c10::OperatorHandle> structured_functional(const c10::OperatorHandle& op, const Overload& overload) {
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto& schema = op.schema();
  size_t inputs = schema.arguments().size() - overload.mutated.size();
  for (const c10::OperatorName& name : dispatcher.getRegistrationsForDispatchKey(kStructured)) {
    if (name.name != schema.name()) {
      continue;
    }
    auto handle = dispatcher.findSchema(name);
    if (!handle.has_value() || handle->schema().is_mutable() || handle->schema().arguments().size() != inputs) {
      continue;
    }
    bool same = true;
    for (size_t i = 0; i < inputs && same; ++i) {
      same = handle->schema().arguments()[i].name() == schema.arguments()[i].name() &&
             *handle->schema().arguments()[i].real_type() == *schema.arguments()[i].real_type();
    }
    if (same) {
      return handle;
    }
  }
  return std::nullopt;
}

// Holds an out= tensor against the result: dtype as PyTorch's iterator or resize checks would, then the resize.
bool fit_out(const c10::OperatorHandle& op, const Overload& overload, c10::ArrayRef<c10::IValue> arguments,
             const at::Tensor& out, const tt_meta& m) {
  c10::ScalarType result = to_torch(m.dtype);
  if (op.hasTag(at::Tag::pointwise)) {
    if (result != out.scalar_type()) {
      ask_cast(op, overload, arguments);
    }
    TORCH_CHECK(c10::canCast(result, out.scalar_type()), "result type ", result,
                " can't be cast to the desired output type ", out.scalar_type());
  } else {
    TORCH_CHECK(result == out.scalar_type() || ask_cast(op, overload, arguments), "Expected out tensor to have dtype ",
                c10::scalarTypeToTypeMeta(result), ", but got ", out.dtype(), " instead");
  }
  return at::native::resize_output(out, c10::IntArrayRef(m.sizes, static_cast<size_t>(m.rank)));
}

}  // namespace

bool probing() {
  return probe != nullptr;
}

void note_probe(const Overload& overload, torch::jit::Stack* stack) {
  size_t base = stack->size() - overload.args.size();
  torch::jit::Stack results;
  for (int i : overload.mutated) {
    const c10::IValue& value = (*stack)[base + static_cast<size_t>(i)];
    add_tensors(value, &probe->metas);
    results.push_back(value);
  }
  probe->notes += 1;
  stack->resize(base);
  if (!overload.outputs_are_mutated) {
    for (c10::IValue& value : results) {
      stack->push_back(std::move(value));
    }
  }
}

// Our own shape function (shim/shapes.cpp), where PyTorch's is missing, wrong, or words its errors otherwise than the CPU does.
static std::optional<c10::OperatorHandle> own_shapes(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  return c10::Dispatcher::singleton().findSchema(
      {"tt_shapes::" + name.name.substr(name.name.find("::") + 2), name.overload_name});
}

// Ops without a Meta kernel of their own answer by the operations that PyTorch composes them from.
static void ask_meta(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (auto own = own_shapes(op)) {
    own->callBoxed(*stack);
    return;
  }
  auto key = c10::DispatchKey::Meta;
  for (auto composite : {c10::DispatchKey::CompositeImplicitAutograd, c10::DispatchKey::CompositeExplicitAutograd}) {
    if (!op.hasKernelForDispatchKey(c10::DispatchKey::Meta) && op.hasKernelForDispatchKey(composite)) {
      key = composite;
    }
  }
  try {
    op.callBoxedForDispatchKey(key, *stack);
  } catch (const std::exception& e) {
    throw MetaRefused(e.what());
  }
}

// What is written may not lie over itself, nor partly over what is read; in ops that read elements out of order, not over it at all.
static void check_overlap(const c10::OperatorHandle& op, const Overload& overload,
                          c10::ArrayRef<c10::IValue> arguments) {
  static const std::set<std::string> out_of_order = {
      "aten::cat",        "aten::gather",           "aten::index_select", "aten::take", "aten::kthvalue",
      "aten::index_put_", "aten::_index_put_impl_", "aten::index_fill_",  "aten::put_"};
  static const std::set<std::string> same_everywhere = {"aten::fill_", "aten::zero_"};
  if (same_everywhere.count(op.schema().name()) != 0) {
    return;
  }
  bool strict = out_of_order.count(op.schema().name()) != 0;
  for (int i : overload.mutated) {
    const c10::IValue& value = arguments[static_cast<size_t>(i)];
    if (!value.isTensor() || !value.toTensor().defined()) {
      continue;
    }
    const at::Tensor& written = value.toTensor();
    at::assert_no_internal_overlap(written);
    auto check = [&](const at::Tensor& read) {
      if (!read.defined() || read.is_same(written) || read.device() != written.device()) {
        TORCH_CHECK(!strict || !read.defined() || !read.is_same(written) || read.numel() == 0,
                    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
                    "single memory "
                    "location. Please clone() the tensor before performing the operation.");
      } else if (strict) {
        at::assert_no_overlap(written, read);
      } else {
        at::assert_no_partial_overlap(written, read);
      }
    };
    for (size_t j = 0; j < arguments.size(); ++j) {
      if (static_cast<int>(j) == i) {
        continue;
      }
      if (arguments[j].isTensor()) {
        check(arguments[j].toTensor());
      } else if (arguments[j].isList()) {
        for (const c10::IValue& item : arguments[j].toListRef()) {
          if (item.isTensor()) {
            check(item.toTensor());
          }
        }
      }
    }
  }
}

Inferred infer(const c10::OperatorHandle& op, const Overload& overload, c10::ArrayRef<c10::IValue> arguments,
               bool* out_resized) {
  *out_resized = false;
  check_overlap(op, overload, arguments);
  ask_integers(op, overload, arguments);
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  Inferred result;
  torch::jit::Stack stack;
  if (own_shapes(op)) {
    // below, by the Meta route
  } else if (op.hasKernelForDispatchKey(kStructured)) {
    stack.assign(arguments.begin(), arguments.end());
    if (ask_structured(op, &stack, &result.metas)) {
      return result;
    }
    result = Inferred{};
    stack.clear();
  } else if (!overload.mutated.empty() && !overload.outputs_are_mutated) {
    if (auto functional = structured_functional(op, overload)) {
      stack.assign(arguments.begin(),
                   arguments.begin() + static_cast<std::ptrdiff_t>(functional->schema().arguments().size()));
      if (ask_structured(*functional, &stack, &result.metas)) {
        for (size_t k = 0; k < result.metas.size() && k < overload.mutated.size(); ++k) {
          const at::Tensor& out = arguments[static_cast<size_t>(overload.mutated[k])].toTensor();
          *out_resized |= fit_out(op, overload, arguments, out, result.metas[k]);
          result.metas[k] = meta_of(out);
        }
        return result;
      }
      result = Inferred{};
      stack.clear();
    }
  }
  Metas metas;
  for (size_t i = 0; i < arguments.size(); ++i) {
    stack.push_back(metas.of(arguments[i], overload.args[i].kind));
  }
  if (overload.outputs_are_mutated && !op.hasKernelForDispatchKey(c10::DispatchKey::Meta) &&
      !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd)) {
    // No shape function to ask (_fused_sgd_): what such an op changes keeps its sizes.
    for (int i : overload.mutated) {
      add_tensors(arguments[static_cast<size_t>(i)], &result.metas);
    }
    return result;
  }
  torch::jit::Stack given = stack;
  ask_meta(op, &stack);
  for (int i : overload.mutated) {
    const c10::IValue& target = arguments[static_cast<size_t>(i)];
    const c10::IValue& found = given[static_cast<size_t>(i)];
    bool changed =
        target.isTensor() && target.toTensor().defined() && target.toTensor().sizes() != found.toTensor().sizes();
    // Meta kernels in Python grow in-place operands that PyTorch's own kernels refuse to.
    TORCH_CHECK(!changed || op.schema().arguments()[static_cast<size_t>(i)].kwarg_only() ||
                    op.schema().name().compare(0, 12, "aten::resize") == 0,
                "output with shape ", target.toTensor().sizes(), " doesn't match the broadcast shape ",
                found.toTensor().sizes());
    *out_resized |= follow_resize(target, found);
  }
  if (overload.outputs_are_mutated) {
    for (int i : overload.mutated) {
      add_tensors(given[static_cast<size_t>(i)], &result.metas);
    }
    return result;
  }
  for (size_t k = 0; k < overload.returns.size(); ++k) {
    if (overload.returns[k] == ReturnKind::Other) {
      result.others.push_back(stack[k]);
    } else if (overload.return_alias[k] >= 0) {
      add_tensors(given[static_cast<size_t>(overload.return_alias[k])], &result.metas);
    } else {
      add_tensors(stack[k], &result.metas);
    }
  }
  return result;
}

}  // namespace tt
