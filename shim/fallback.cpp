// SPDX-License-Identifier: Apache-2.0
//
// The CPU fallback: PyTorch's own, counted by op, announced once an op, refused when asked to.
#include <ATen/native/CPUFallback.h>

#include <map>
#include <mutex>

#include "shim.h"
#include "tt/explain.h"

namespace tt {

namespace {

std::mutex lock;
std::map<std::string, int64_t> counts;

std::string policy() {
  const char *name, *type, *help;
  char value[64];
  for (int i = 0; tt_knob(i, &name, &type, &help, value, sizeof value); ++i) {
    if (std::string(name) == "TORCH_TPU_FALLBACK") {
      return value;
    }
  }
  return "warn";
}

}  // namespace

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack, const char* reason) {
  std::string name = c10::toString(op.operator_name());
  static const std::string how = policy();
  TORCH_CHECK_NOT_IMPLEMENTED(how != "error", "The operator '", name, "' has no form for tpu (", reason,
                              ") and TORCH_TPU_FALLBACK=error forbids running it on the CPU");
  TORCH_CHECK_NOT_IMPLEMENTED(tt_capture_current() == nullptr, "The operator '", name, "' has no form for tpu (",
                              reason, ")");
  // Bad arguments raise here, before the call counts as a fallback.
  at::native::cpu_fallback(op, stack, /*error_on_views=*/false, c10::DispatchKey::CPU);
  if (tt_explain_is_on()) {
    tt_explain_note_here(TT_EXPLAIN_CPU, (name + ": " + reason).c_str());
  }
  bool first;
  {
    std::lock_guard<std::mutex> guard(lock);
    first = counts[name]++ == 0;
  }
  if (first && how == "warn") {
    TORCH_WARN("The operator '", name, "' runs on the CPU: ", reason, ". torch.tpu.fallbacks() lists such operators.");
  }
}

std::vector<std::pair<std::string, int64_t>> fallback_counts() {
  std::lock_guard<std::mutex> guard(lock);
  return {counts.begin(), counts.end()};
}

void fallback_counts_clear() {
  std::lock_guard<std::mutex> guard(lock);
  counts.clear();
}

}  // namespace tt
