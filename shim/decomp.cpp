// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's Python decompositions, reached through torch_tpu._decomp, and our Python kernels for tensors that are not strided (torch_tpu._layouts).
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/tensor_memoryformats.h>

#include <mutex>
#include <unordered_map>

#include "infer.h"

namespace tt {

// Called with Python's lock. An import lets go of it for a while, so no lock of C++ (a static's guard is one) may be held meanwhile.
static py::handle import_once(PyObject** kept, const char* name) {
  if (*kept == nullptr) {  // for the process: destroying it at exit would need the interpreter
    *kept = py::module_::import(name).release().ptr();
  }
  return *kept;
}
static py::handle module() {
  static PyObject* kept = nullptr;
  return import_once(&kept, "torch_tpu._decomp");
}
static py::handle layouts() {
  static PyObject* kept = nullptr;
  return import_once(&kept, "torch_tpu._layouts");
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

// Calls function([layout,] op's name, overload, arguments) and puts what it returns on the stack.
static void call_on_stack(py::object (*function)(), const char* layout, const c10::OperatorHandle& op,
                          torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  size_t count = schema.arguments().size();
  size_t base = stack->size() - count;
  py::tuple args(count);
  for (size_t i = 0; i < count; ++i) {
    args[i] = to_python(schema.arguments()[i], (*stack)[base + i]);
  }
  const auto& name = op.operator_name();
  py::object result;
  try {
    result = layout == nullptr ? function()(name.name, name.overload_name, args)
                               : function()(layout, name.name, name.overload_name, args);
  } catch (py::error_already_set& e) {
    // The Python exception itself travels on, so that its type survives.
    e.restore();
    python_error error;
    error.persist();
    throw error;
  }
  stack->resize(base);
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

void run_decomposition(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  py::gil_scoped_acquire gil;
  call_on_stack([]() -> py::object { return module().attr("run"); }, nullptr, op, stack);
}

std::string layout_way(const char* layout, const c10::OperatorHandle& op, bool has_cpu_kernel) {
  py::gil_scoped_acquire gil;
  const auto& name = op.operator_name();
  return layouts().attr("way")(layout, name.name, name.overload_name, has_cpu_kernel).cast<std::string>();
}
void layout_run(const char* layout, const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  py::gil_scoped_acquire gil;
  call_on_stack([]() -> py::object { return layouts().attr("run"); }, layout, op, stack);
}

}  // namespace tt
