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
    {DispatchKey::SparsePrivateUse1, DispatchKey::SparseCPU, "sparse"},
    {DispatchKey::SparseCsrPrivateUse1, DispatchKey::SparseCsrCPU, "sparse_csr"},
    {DispatchKey::NestedTensorPrivateUse1, DispatchKey::NestedTensorCPU, "nested"},
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

template <int index>
void add_fallback() {
  static auto* library = new torch::Library(torch::Library::IMPL, "_", kLayouts[index].ours, __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFromBoxedFunction<&run_layout<index>>());
}

}  // namespace

void register_layouts() {
  add_fallback<0>();
  add_fallback<1>();
  add_fallback<2>();
}

}  // namespace tt
