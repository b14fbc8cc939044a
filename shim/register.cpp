// SPDX-License-Identifier: Apache-2.0
//
// Registration: for each entry of the op table its functional overload and, found in PyTorch's registry by their arguments, the
// in-place and out= overloads; one fallback for every op without an entry. Entries of other namespaces name one overload.
#include <torch/library.h>

#include <unordered_map>

#include "boxed.h"

namespace tt {

namespace {

using c10::FunctionSchema;

bool writes(const c10::Argument& arg) {
  return arg.alias_info() != nullptr && arg.alias_info()->isWrite();
}

// The same arguments by name and type; `other` may write to them, and may have out= arguments after them.
bool same_arguments(const FunctionSchema& functional, const FunctionSchema& other, bool allow_out) {
  size_t n = functional.arguments().size();
  if (other.arguments().size() < n) {
    return false;
  }
  for (size_t i = 0; i < other.arguments().size(); ++i) {
    const c10::Argument& arg = other.arguments()[i];
    if (i >= n) {
      if (!allow_out || !arg.kwarg_only() || !writes(arg)) {
        return false;
      }
    } else {
      const c10::Argument& want = functional.arguments()[i];
      if (want.name() != arg.name() || *want.real_type() != *arg.real_type() ||
          (allow_out && writes(arg) && !writes(want))) {
        return false;
      }
    }
  }
  return true;
}

std::string base_name(const std::string& name) {
  return name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_' ? name.substr(0, name.size() - 1) : name;
}

class Registrar {
 public:
  Registrar() : library_(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__) {
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      if (name.name.compare(0, 6, "aten::") == 0) {
        if (auto handle = dispatcher.findSchema(name)) {
          by_base_[base_name(name.name)].push_back(*handle);
        }
      }
    }
  }

  void add(const tt_op* op) {
    std::string text = tt_op_schema(op);
    std::string name = text.substr(0, text.find('('));
    if (name.find("::") != std::string::npos) {
      others_.push_back(std::make_unique<torch::Library>(torch::Library::IMPL, name.substr(0, name.find("::")),
                                                         c10::DispatchKey::PrivateUse1, __FILE__, __LINE__));
      others_.back()->impl(name.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(op)));
      return;  // of a library that may not be there yet
    }
    auto dot = name.find('.');
    std::string base = "aten::" + name.substr(0, dot);
    std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
    auto functional = c10::Dispatcher::singleton().findSchema({base, overload});
    if (!functional.has_value()) {
      return;  // an op of this torch's future or past, or private to us
    }
    add_overload(*functional, op);
    if (functional->schema().is_mutable()) {
      return;
    }
    for (const c10::OperatorHandle& other : by_base_[base_name(base)]) {
      const FunctionSchema& schema = other.schema();
      if (&schema == &functional->schema() || !schema.is_mutable()) {
        continue;
      }
      bool in_place = schema.name() == base + "_" && same_arguments(functional->schema(), schema, false);
      bool out = schema.name() == base && same_arguments(functional->schema(), schema, true);
      if (in_place || out) {
        add_overload(other, op);
      }
    }
  }

  torch::Library& library() { return library_; }

 private:
  void add_overload(const c10::OperatorHandle& handle, const tt_op* op) {
    std::string name = c10::toString(handle.operator_name());
    if (handle.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) {
      return;
    }
    library_.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(op)));
  }

  torch::Library library_;
  std::vector<std::unique_ptr<torch::Library>> others_;
  std::unordered_map<std::string, std::vector<c10::OperatorHandle>> by_base_;
};

}  // namespace

void register_ops() {
  // Kept for the process: PyTorch drops the kernels with their library object.
  static auto* registrar = new Registrar();
  for (int i = 0; i < tt_op_count(); ++i) {
    registrar->add(tt_op_at(i));
  }
  static auto* all = new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  all->fallback(torch::CppFunction::makeFromBoxedFunction<&run_unlisted>());
}

}  // namespace tt
