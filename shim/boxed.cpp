// SPDX-License-Identifier: Apache-2.0
//
// The boxed kernel: stack to call, call to outputs, outputs to stack. On an unknown call it asks PyTorch for the outputs' shapes
// and has the C side make the plan, from the op's entry or from captured PyTorch code.
#include "boxed.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <mutex>
#include <unordered_map>

#include "dynamic.h"
#include "infer.h"

namespace tt {

namespace {

using torch::jit::Stack;

c10::ArrayRef<c10::IValue> arguments_of(const Overload& overload, const Stack& stack) {
  return c10::ArrayRef<c10::IValue>(stack).slice(stack.size() - overload.args.size(), overload.args.size());
}

// Outputs that are no tensors are known once the plan is made, which keeps them.
using Others = std::vector<c10::IValue>;

void keep_others(tt_call* call, Others others) {
  if (!others.empty()) {
    call->extra = new Others(std::move(others));
    call->free_extra = [](void* extra) { delete static_cast<Others*>(extra); };
  }
}
// What no plan took over.
void drop_others(tt_call* call) {
  delete static_cast<Others*>(call->extra);
  call->extra = nullptr;
}

void push_outputs(const Overload& overload, Stack* stack, tt_outputs* outputs, const Others& others) {
  size_t base = stack->size() - overload.args.size();
  c10::SmallVector<c10::IValue, 4> values;
  int next = 0;
  size_t other = 0;
  for (size_t k = 0; k < overload.returns.size(); ++k) {
    int alias = overload.return_alias[k];
    if (overload.returns[k] == ReturnKind::Other) {
      values.push_back(other < others.size() ? others[other] : c10::IValue());
      other += 1;
    } else if (alias >= 0) {
      values.push_back((*stack)[base + static_cast<size_t>(alias)]);
      next += 1;
    } else if (overload.returns[k] == ReturnKind::TensorList) {
      c10::List<at::Tensor> list;
      for (; next < outputs->count; ++next) {
        list.push_back(wrap(outputs->items[next].storage, *outputs->items[next].meta));
      }
      values.push_back(list);
    } else {
      const tt_output& o = outputs->items[next++];
      values.push_back(o.storage != nullptr ? wrap(o.storage, *o.meta) : at::Tensor());
    }
  }
  tt_outputs_deinit(outputs);
  stack->resize(base);
  for (c10::IValue& value : values) {
    stack->push_back(std::move(value));
  }
}

}  // namespace

void set_precision() {
  // "highest" is full f32; "high" allows three bf16 passes, "medium" one.
  auto precision = at::globalContext().float32MatmulPrecision();
  tt_precision_set(precision == at::Float32MatmulPrecision::HIGHEST ? 2
                   : precision == at::Float32MatmulPrecision::HIGH  ? 1
                                                                    : 0);
}

namespace {

// ---- captured PyTorch code ----------------------------------------------------------------------------------------------

// Replaces the tensors among `arguments` by their stand-ins.
class StandIns {
 public:
  StandIns(tt_capture* capture, const Overload& overload) : capture_(capture), overload_(overload) {}

  Stack make(c10::ArrayRef<c10::IValue> arguments) {
    Stack stack;
    for (size_t i = 0; i < arguments.size(); ++i) {
      stack.push_back(one(arguments[i], overload_.args[i].kind));
    }
    return stack;
  }

 private:
  at::Tensor tensor(const at::Tensor& t) {
    int slot = slot_++;
    if (!t.defined() || t.device().type() != kTpu) {
      return t;
    }
    for (const auto& [from, to] : made_) {
      if (from == t.unsafeGetTensorImpl()) {
        return to;
      }
    }
    tt_storage* storage = nullptr;
    tt_meta meta;
    check(tt_capture_input(capture_, slot, &storage, &meta));
    made_.emplace_back(t.unsafeGetTensorImpl(), wrap(storage, meta));
    return made_.back().second;
  }

  c10::IValue one(const c10::IValue& value, ArgKind kind) {
    if (kind == ArgKind::Tensor) {
      at::Tensor stand_in = tensor(value.isTensor() ? value.toTensor() : at::Tensor());
      return value.isNone() ? value : c10::IValue(stand_in);
    }
    if (kind == ArgKind::TensorList && value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& t : value.toTensorVector()) {
        list.push_back(tensor(t));
      }
      return list;
    }
    if (kind == ArgKind::TensorList && value.isList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue& item : value.toListRef()) {
        at::Tensor t = tensor(item.isTensor() ? item.toTensor() : at::Tensor());
        list.push_back(t.defined() ? std::make_optional(t) : std::nullopt);
      }
      return list;
    }
    return value;
  }

  tt_capture* capture_;
  const Overload& overload_;
  int slot_ = 0;
  std::vector<std::pair<c10::TensorImpl*, at::Tensor>> made_;
};

// The CPU's kernel comes last: an entry names it where it only makes calls on its arguments.
void call_composite(const c10::OperatorHandle& op, Stack* stack) {
  for (auto key :
       {c10::DispatchKey::CompositeExplicitAutograd, c10::DispatchKey::CompositeExplicitAutogradNonFunctional,
        c10::DispatchKey::CompositeImplicitAutograd, c10::DispatchKey::CPU}) {
    if (op.hasKernelForDispatchKey(key)) {
      op.callBoxedForDispatchKey(key, *stack);
      return;
    }
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.operator_name(), " has no composite kernel");
}

void call_captured(const c10::OperatorHandle& op, const Overload& overload, Stack* stack) {
  const tt_op* entry = tt_overload_op(overload.c);
  if (entry != nullptr && tt_op_route(entry) == TT_ROUTE_COMPOSITE) {
    call_composite(op, stack);
  } else {
    run_decomposition(op, stack);
  }
}

// Describes what captured code returned.
void collect(const Stack& stack, std::vector<at::Tensor>* tensors, Others* others, const Overload& overload,
             const Stack& given) {
  if (overload.outputs_are_mutated) {
    for (int i : overload.mutated) {
      const c10::IValue& value = given[static_cast<size_t>(i)];
      if (value.isTensorList()) {
        for (const at::Tensor& t : value.toTensorVector()) {
          tensors->push_back(t);
        }
      } else {
        tensors->push_back(value.toTensor());
      }
    }
    return;
  }
  TORCH_CHECK(stack.size() == overload.returns.size(), overload.name, ": captured code returned ", stack.size(),
              " values");
  for (size_t k = 0; k < stack.size(); ++k) {
    if (overload.returns[k] == ReturnKind::Other) {
      others->push_back(stack[k]);
    } else if (overload.returns[k] == ReturnKind::TensorList) {
      for (const at::Tensor& t : stack[k].toTensorVector()) {
        tensors->push_back(t);
      }
    } else {
      tensors->push_back(stack[k].isTensor() ? stack[k].toTensor() : at::Tensor());
    }
  }
}

// Makes the call's plan by capturing. Throws what the captured code throws.
void capture_plan(const c10::OperatorHandle& op, const Overload& overload, c10::ArrayRef<c10::IValue> arguments,
                  tt_call* call) {
  tt_capture* capture = nullptr;
  check(tt_capture_begin(call, &capture));
  std::vector<at::Tensor> returned;
  std::vector<tt_tensor> described;
  Others others;
  try {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    Stack stack = StandIns(capture, overload).make(arguments);
    Stack given = stack;
    call_captured(op, overload, &stack);
    collect(stack, &returned, &others, overload, given);
    described.resize(returned.size());
    for (size_t k = 0; k < returned.size(); ++k) {
      describe(returned[k], &described[k]);
    }
  } catch (...) {
    tt_capture_abandon(capture);
    throw;
  }
  keep_others(call, std::move(others));
  tt_status status = tt_capture_end(capture, static_cast<int>(described.size()), described.data());
  drop_others(call);
  check(status);
}

// ---- routes -------------------------------------------------------------------------------------------------------------

bool is_lowered(const Overload& overload) {
  const tt_op* entry = tt_overload_op(overload.c);
  return entry != nullptr && tt_op_route(entry) == TT_ROUTE_LOWERING;
}

// Inside a capture: every call becomes part of the program.
void run_in_capture(const c10::OperatorHandle& op, const Overload& overload, Stack* stack) {
  if (!is_lowered(overload)) {
    size_t base = stack->size() - overload.args.size();
    Stack inner(stack->begin() + static_cast<std::ptrdiff_t>(base), stack->end());
    call_captured(op, overload, &inner);
    stack->resize(base);
    for (c10::IValue& value : inner) {
      stack->push_back(std::move(value));
    }
    return;
  }
  bool resized = false;
  Inferred inferred = infer(op, overload, arguments_of(overload, *stack), &resized);
  CallArgs args(overload, arguments_of(overload, *stack));
  tt_outputs outputs;
  check(tt_capture_call(&args.call, static_cast<int>(inferred.metas.size()), inferred.metas.data(), &outputs));
  push_outputs(overload, stack, &outputs, inferred.others);
}

// What no program can serve: an out= overload by its functional one, all else on the CPU. Always true.
bool serve_otherwise(const c10::OperatorHandle& op, Stack* stack, const char* reason) {
  if (!run_by_functional(op, stack)) {
    run_on_cpu(op, stack, reason);
  }
  return true;
}

// Makes a plan, or serves the call without one (true).
bool make_plan(const c10::OperatorHandle& op, const Overload& overload, Stack* stack) {
  const tt_op* entry = tt_overload_op(overload.c);
  if (is_lowered(overload)) {
    bool resized = false;
    Inferred inferred;
    try {
      inferred = infer(op, overload, arguments_of(overload, *stack), &resized);
    } catch (const MetaRefused& e) {
      return serve_otherwise(op, stack, e.what());
    }
    CallArgs args(overload, arguments_of(overload, *stack));
    keep_others(&args.call, std::move(inferred.others));
    tt_status status = tt_call_lower(&args.call, static_cast<int>(inferred.metas.size()), inferred.metas.data());
    drop_others(&args.call);
    if (tt_status_code(status) == TT_UNIMPLEMENTED) {
      std::string reason = tt_status_text(status);
      tt_status_free(status);
      return serve_otherwise(op, stack, reason.c_str());
    }
    check(status);
    return false;
  }
  if (entry != nullptr && tt_op_route(entry) == TT_ROUTE_FALLBACK) {
    run_on_cpu(op, stack, tt_op_note(entry));
    return true;
  }
  if (entry == nullptr && !has_decomposition(op)) {
    return serve_otherwise(op, stack, "it has no entry in the op table and no decomposition in PyTorch");
  }
  CallArgs args(overload, arguments_of(overload, *stack));
  try {
    capture_plan(op, overload, arguments_of(overload, *stack), &args.call);
  } catch (const std::exception& e) {
    // Bad arguments raise on the CPU too, in PyTorch's own words; what cannot be captured is computed there.
    return serve_otherwise(op, stack, e.what());
  }
  return false;
}

}  // namespace

static void run_plan(const c10::OperatorHandle& op, const Overload& overload, Stack* stack) {
  for (int attempt = 0;; ++attempt) {
    if (attempt > 0 || tt_overload_uses_precision(overload.c)) {
      set_precision();
    }
    tt_outputs outputs;
    bool hit = false;
    {
      CallArgs args(overload, arguments_of(overload, *stack));
      check(tt_call_run(&args.call, &outputs, &hit));
    }
    if (hit) {
      static const Others none;
      const void* kept = tt_outputs_extra(&outputs);
      push_outputs(overload, stack, &outputs, kept != nullptr ? *static_cast<const Others*>(kept) : none);
      return;
    }
    TORCH_INTERNAL_ASSERT(attempt < 8, overload.name, ": the plan just made is not found");
    if (make_plan(op, overload, stack)) {
      return;
    }
  }
}

void run(const c10::OperatorHandle& op, const Overload& overload, Stack* stack) {
  if (C10_UNLIKELY(probing()) && !overload.mutated.empty()) {
    note_probe(overload, stack);
    return;
  }
  if (C10_UNLIKELY(!overload.spreading.empty()) && write_spread(op, overload, stack)) {
    return;
  }
  if (C10_UNLIKELY(overload.indices >= 0)) {
    expand_masks(overload, stack);
  }
  if (tt_capture_current() != nullptr) {
    run_in_capture(op, overload, stack);
    return;
  }
  at::Tensor matrices;  // to be checked
  if (C10_UNLIKELY(overload.check_errors >= 0)) {
    auto arguments = arguments_of(overload, *stack);
    if (arguments[static_cast<size_t>(overload.check_errors)].toBool()) {
      matrices = arguments[0].toTensor();
    }
  }
  try {
    run_plan(op, overload, stack);
  } catch (const TooManyDims& e) {
    run_on_cpu(op, stack, e.what());
  }
  if (C10_UNLIKELY(matrices.defined())) {
    check_info(overload, matrices, stack->back().toTensor());
  }
}

void Kernel::operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  if (C10_UNLIKELY(!overload_.has_value())) {
    static std::mutex lock;
    std::lock_guard<std::mutex> guard(lock);
    if (!overload_.has_value()) {
      check_ = find_check(op.operator_name());
      overload_ = read_schema(op.schema(), op_);
    }
  }
  if (C10_UNLIKELY(check_ != nullptr)) {
    check_(arguments_of(*overload_, *stack));
  }
  run(op, *overload_, stack);
}

void run_unlisted(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  static std::mutex lock;
  static std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<Overload>> known;
  const Overload* overload = nullptr;
  {
    std::lock_guard<std::mutex> guard(lock);
    auto& entry = known[&op.schema()];
    if (entry == nullptr) {
      entry = std::make_unique<Overload>(read_schema(op.schema(), nullptr));
    }
    overload = entry.get();
  }
  run(op, *overload, stack);
}

void copy_on_device(const at::Tensor& dst, const at::Tensor& src) {
  tt_tensor to, from;
  describe(dst, &to);
  describe(src, &from);
  check(tt_copy_on_device(&to, &from));
}

}  // namespace tt
