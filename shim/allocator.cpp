// SPDX-License-Identifier: Apache-2.0
//
// The device allocator: storages for PyTorch, and the figures behind torch.accelerator's memory functions.
//
// A DataPtr's data is the storage's address (a number that is never mapped), its context the tt_storage. Device memory is
// taken when a storage is first written, and given back by the plugin when the last holder lets go: nothing is cached here, so
// reserved bytes equal allocated bytes.
#include <c10/core/CachingDeviceAllocator.h>

#include <mutex>
#include <unordered_map>

#include "shim.h"

namespace tt {
namespace {

void release(void* context) {
  tt_storage_release(static_cast<tt_storage*>(context));
}

class TpuAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const int64_t size = static_cast<int64_t>(bytes);
    const int64_t stride = 1;
    tt_storage* storage = nullptr;
    check(tt_storage_create(current_device(), TT_U8, 1, &size, &stride, size, &storage));
    return own(storage);
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, std::size_t) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "copying tpu memory by address is not supported; copy tensors instead");
  }

  bool initialized() override { return tt_runtime_started(); }
  void emptyCache(c10::MempoolId_t) override {}
  // Every stream of a device shares one order of launches: memory cannot be used again before its last reader ran.
  void recordStream(const c10::DataPtr&, c10::Stream) override {}

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    tt_memory memory;
    tt_memory_get(index, &memory);
    const std::lock_guard<std::mutex> lock(mutex_);
    const tt_memory base = base_[index];
    c10::CachingDeviceAllocator::DeviceStats stats;
    c10::CachingAllocator::Stat bytes, count;
    bytes.current = memory.bytes;
    bytes.peak = memory.peak_bytes;
    bytes.allocated = memory.allocated_bytes - base.allocated_bytes;
    bytes.freed = memory.freed_bytes - base.freed_bytes;
    count.current = memory.count;
    count.peak = memory.peak_count;
    count.allocated = memory.allocations - base.allocations;
    count.freed = memory.frees - base.frees;
    constexpr auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    stats.allocation[all] = stats.segment[all] = stats.active[all] = count;
    stats.allocated_bytes[all] = stats.reserved_bytes[all] = stats.active_bytes[all] = stats.requested_bytes[all] =
        bytes;
    stats.num_device_alloc = count.allocated;
    stats.num_device_free = count.freed;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    tt_memory_get(index, &base_[index]);
  }
  void resetPeakStats(c10::DeviceIndex index) override { tt_memory_reset_peak(index); }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    tt_device* device = nullptr;
    check(tt_device_get(index, &device));
    int64_t free = 0, total = 0;
    check(tt_device_memory(device, &free, &total));
    return {static_cast<size_t>(free), static_cast<size_t>(total)};
  }

 private:
  std::mutex mutex_;
  std::unordered_map<c10::DeviceIndex, tt_memory> base_;  // what the accumulated counters were when last reset
};

TpuAllocator allocator;
REGISTER_ALLOCATOR(kTpu, &allocator)

}  // namespace

c10::DataPtr own(tt_storage* storage) {
  return {reinterpret_cast<void*>(tt_storage_address(storage)), storage, &release,
          c10::Device(kTpu, static_cast<c10::DeviceIndex>(tt_storage_device(storage)))};
}

tt_storage* storage_behind(c10::StorageImpl* storage) {
  const c10::DataPtr& held = storage->data_ptr();
  if (C10_LIKELY(held.get_deleter() == &release)) {
    return static_cast<tt_storage*>(held.get_context());
  }
  void* const data = held.get();
  tt_storage* const found = tt_storage_find(reinterpret_cast<uint64_t>(data));
  TORCH_CHECK(found != nullptr, "expected memory on tpu, got the address ", data);
  storage->set_data_ptr_noswap(c10::DataPtr(data, found, &release, held.device()));
  return found;
}

}  // namespace tt
