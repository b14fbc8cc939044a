// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's backward threads at the end of the process. A device's thread goes on freeing the graph when backward() has returned;
// if Python has ended by then, taking its lock for a tensor ends the thread in the midst of a destructor, and the process aborts.
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "shim.h"

namespace tt {

namespace {
std::atomic<bool> other_threads{false};
}  // namespace

void note_thread() {
  if (syscall(SYS_gettid) != getpid()) {
    other_threads.store(true, std::memory_order_relaxed);
  }
}

// A thread takes its next piece of work when all of the last is freed: waits for one that computes nothing.
void await_backward_threads() noexcept {
  if (!other_threads.load(std::memory_order_relaxed) || !tt_runtime_started() || tt_runtime_in_bad_fork()) {
    return;
  }
  for (int device = 0; device < tt_device_count(); ++device) {
    try {
      const at::AutoGradMode with_grad(true);
      auto options = at::TensorOptions(c10::Device(kTpu, static_cast<c10::DeviceIndex>(device)));
      at::Tensor x = at::empty({1}, options).set_requires_grad(true);
      torch::autograd::grad({x.view({1, 1})}, {x}, {at::empty({1, 1}, options)});
    } catch (const std::exception& e) {
      (void)e;  // no thread that could be in the way answers
    }
  }
}

}  // namespace tt
