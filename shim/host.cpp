// SPDX-License-Identifier: Apache-2.0
//
// Pinned host memory: page-aligned blocks that asynchronous copies may write to. Blocks are kept in an ordered map, so that
// asking whether an address is pinned is exact.
#include <ATen/core/CachingHostAllocator.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "shim.h"

namespace tt {
namespace {

constexpr size_t kPage = 4096;

class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) {
      return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    }
    const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
    void* const data = std::aligned_alloc(kPage, rounded);
    TORCH_CHECK_WITH(OutOfMemoryError, data != nullptr, "cannot allocate ", bytes, " bytes of pinned host memory");
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_[reinterpret_cast<uintptr_t>(data)] = rounded;
    requests_.increase(1);
    bytes_.increase(rounded);
    return {data, data, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* dest, const void* src, std::size_t count) const override { default_copy_data(dest, src, count); }

  bool contains(const void* data) {
    const auto address = reinterpret_cast<uintptr_t>(data);
    const std::lock_guard<std::mutex> lock(mutex_);
    auto next = blocks_.upper_bound(address);
    if (next == blocks_.begin()) {
      return false;
    }
    --next;
    return address - next->first < next->second;
  }
  // Copies from the host are done when the call returns, copies to the host keep their tensor: nothing to remember.
  bool record_event(void* data, void*, c10::Stream) override { return contains(data); }
  void empty_cache() override {}

  at::HostStats get_stats() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    at::HostStats stats;
    stats.active_requests = stats.allocations = requests_;
    stats.active_bytes = stats.allocated_bytes = bytes_;
    stats.num_host_alloc = requests_.allocated;
    stats.num_host_free = requests_.freed;
    return stats;
  }
  void reset_accumulated_stats() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    requests_.reset_accumulated();
    bytes_.reset_accumulated();
  }
  void reset_peak_stats() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    requests_.reset_peak();
    bytes_.reset_peak();
  }

 private:
  static void release(void* data);

  std::mutex mutex_;
  std::map<uintptr_t, size_t> blocks_;
  c10::CachingAllocator::Stat requests_, bytes_;
};

// Never destroyed: tensors may outlive static destructors.
PinnedAllocator& instance() {
  static auto* const allocator = new PinnedAllocator;
  return *allocator;
}

void PinnedAllocator::release(void* data) {
  if (data == nullptr) {
    return;
  }
  PinnedAllocator& self = instance();
  {
    const std::lock_guard<std::mutex> lock(self.mutex_);
    const auto block = self.blocks_.find(reinterpret_cast<uintptr_t>(data));
    self.requests_.decrease(1);
    self.bytes_.decrease(block->second);
    self.blocks_.erase(block);
  }
  std::free(data);
}

REGISTER_HOST_ALLOCATOR(kTpu, &instance())

}  // namespace

c10::Allocator* pinned_allocator() {
  return &instance();
}
bool is_pinned(const void* data) {
  return instance().contains(data);
}

}  // namespace tt
