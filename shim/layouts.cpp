// SPDX-License-Identifier: Apache-2.0
//
// Sparse (COO, CSR and its kin) and nested tensors on tpu. They are made of dense ones: indices and values, a buffer and sizes. Many of
// PyTorch's CPU kernels for them only make calls on those parts, whatever their device; python/torch_tpu/_layouts.py says which, has
// kernels of its own where PyTorch's read memory, and words the error for the rest. It is imported at the first such call.
#include <torch/library.h>

#include <mutex>
#include <unordered_map>

#include "infer.h"
#include "shim.h"

namespace tt {

namespace {

using c10::DispatchKey;

enum class Way { Cpu, Python };

struct Layout {
  DispatchKey ours, cpu;
  const char* name;
};
constexpr Layout kLayouts[] = {
    {DispatchKey::SparsePrivateUse1,       DispatchKey::SparseCPU,       "sparse"    },
    {DispatchKey::SparseCsrPrivateUse1,    DispatchKey::SparseCsrCPU,    "sparse_csr"},
    {DispatchKey::NestedTensorPrivateUse1, DispatchKey::NestedTensorCPU, "nested"    },
};

// Asks Python, once an operator and layout; raises where there is no way.
Way way_of(const Layout& layout, const c10::OperatorHandle& op) {
  static std::mutex lock;
  static std::unordered_map<std::string, Way> known;
  std::string key = std::string(layout.name) + " " + c10::toString(op.operator_name());
  {
    std::lock_guard<std::mutex> guard(lock);
    auto found = known.find(key);
    if (found != known.end()) {
      return found->second;
    }
  }
  std::string answer = layout_way(layout.name, op, op.hasKernelForDispatchKey(layout.cpu));
  TORCH_CHECK_NOT_IMPLEMENTED(answer == "cpu kernel" || answer == "python", answer);
  Way way = answer == "python" ? Way::Python : Way::Cpu;
  std::lock_guard<std::mutex> guard(lock);
  known[key] = way;
  return way;
}

template <int index>
void run_layout(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const Layout& layout = kLayouts[index];
  if (way_of(layout, op) == Way::Cpu) {
    op.callBoxedForDispatchKey(layout.cpu, *stack);
  } else {
    layout_run(layout.name, op, stack);
  }
}

bool has_composite(const c10::OperatorHandle& op) {
  for (auto key : {DispatchKey::CompositeExplicitAutograd, DispatchKey::CompositeExplicitAutogradNonFunctional,
                   DispatchKey::CompositeImplicitAutograd}) {
    if (op.hasKernelForDispatchKey(key)) {
      return true;
    }
  }
  return false;
}

// A fallback for everything; and, since a composite kernel would come before that, kernels where the CPU has one besides.
template <int index>
void add_layout() {
  const Layout& layout = kLayouts[index];
  static auto* all = new torch::Library(torch::Library::IMPL, "_", layout.ours, __FILE__, __LINE__);
  all->fallback(torch::CppFunction::makeFromBoxedFunction<&run_layout<index>>());
  static auto* named = new torch::Library(torch::Library::IMPL, "aten", layout.ours, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getRegistrationsForDispatchKey(layout.cpu)) {
    auto op = dispatcher.findSchema(name);
    if (op.has_value() && name.name.compare(0, 6, "aten::") == 0 && has_composite(*op)) {
      named->impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&run_layout<index>>());
    }
  }
}

// Dense in, sparse out (or, for the bags, whichever is asked for): PyTorch's CPU kernels make calls only.
void make_calls(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  op.callBoxedForDispatchKey(DispatchKey::CPU, *stack);
}

}  // namespace

void register_layouts() {
  add_layout<0>();
  add_layout<1>();
  add_layout<2>();
  static auto* dense = new torch::Library(torch::Library::IMPL, "aten", DispatchKey::PrivateUse1, __FILE__, __LINE__);
  for (const char* name : {"_to_sparse", "_to_sparse.sparse_dim", "_to_sparse_csr", "_to_sparse_csc", "_to_sparse_bsr",
                           "_to_sparse_bsc", "_embedding_bag_backward"}) {
    dense->impl(name, torch::CppFunction::makeFromBoxedFunction<&make_calls>());
  }
}

}  // namespace tt
