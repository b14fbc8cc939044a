// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's Python decompositions and Meta kernels, reached through torch_tpu._decomp.
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/tensor_memoryformats.h>

#include <mutex>
#include <unordered_map>

#include "infer.h"

namespace tt {

// Called with Python's lock. An import lets go of it for a while, so no lock of C++ (a static's guard is one) may be held meanwhile.
static py::handle module() {
  static PyObject* kept = nullptr;  // for the process: destroying it at exit would need the interpreter
  if (kept == nullptr) {
    kept = py::module_::import("torch_tpu._decomp").release().ptr();
  }
  return kept;
}

bool has_decomposition(const c10::OperatorHandle& op) {
  static std::mutex lock;
  static std::unordered_map<const c10::FunctionSchema*, bool> known;
  {
    std::lock_guard<std::mutex> guard(lock);
    auto found = known.find(&op.schema());
    if (found != known.end()) {
      return found->second;
    }
  }
  bool has;
  {
    py::gil_scoped_acquire gil;
    const auto& name = op.operator_name();
    has = module().attr("has")(name.name, name.overload_name).cast<bool>();
  }
  std::lock_guard<std::mutex> guard(lock);
  known[&op.schema()] = has;
  return has;
}

// An argument as Python code expects it: dtypes, layouts and memory formats are numbers on a stack.
static py::object to_python(const c10::Argument& arg, const c10::IValue& value) {
  c10::TypePtr type = arg.real_type();
  if (auto optional = type->cast<c10::OptionalType>()) {
    type = optional->getElementType();
  }
  if (value.isInt() && type->kind() == c10::TypeKind::ScalarTypeType) {
    return py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(torch::getTHPDtype(value.toScalarType())));
  }
  if (value.isInt() && type->kind() == c10::TypeKind::LayoutType) {
    return py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(torch::getTHPLayout(value.toLayout())));
  }
  if (value.isInt() && type->kind() == c10::TypeKind::MemoryFormatType) {
    return py::reinterpret_borrow<py::object>(torch::utils::getTHPMemoryFormat(value.toMemoryFormat()));
  }
  return torch::jit::toPyObject(value);
}

void run_decomposition(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  py::gil_scoped_acquire gil;
  const auto& schema = op.schema();
  py::tuple args(schema.arguments().size());
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    args[i] = to_python(schema.arguments()[i], (*stack)[i]);
  }
  const auto& name = op.operator_name();
  py::object result;
  try {
    result = module().attr("run")(name.name, name.overload_name, args);
  } catch (py::error_already_set& e) {
    // The Python exception itself travels on, so that its type survives.
    e.restore();
    python_error error;
    error.persist();
    throw error;
  }
  stack->clear();
  const auto& returns = schema.returns();
  if (returns.size() == 1) {
    stack->push_back(torch::jit::toIValue(result, returns[0].real_type()));
  } else if (!returns.empty()) {
    auto tuple = py::cast<py::sequence>(result);
    for (size_t k = 0; k < returns.size(); ++k) {
      py::object item = tuple[k];
      stack->push_back(item.is_none() ? c10::IValue(at::Tensor()) : torch::jit::toIValue(item, returns[k].real_type()));
    }
  }
}

}  // namespace tt
