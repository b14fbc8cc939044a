// SPDX-License-Identifier: Apache-2.0
//
// The device guard: current device, streams and events. A device runs what it is given in one order, so all its streams share
// that order: a stream is only an identity, and waiting for an event of the same device needs no work.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <vector>

#include "event.h"
#include "shim.h"

namespace tt {
namespace {

thread_local int this_device = 0;
thread_local bool this_thread_noted = false;
thread_local std::vector<c10::StreamId> this_stream;  // by device; 0 is the default stream
std::atomic<c10::StreamId> last_stream{0};

c10::Stream stream_at(c10::Device device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, device, id);
}

class TpuGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kTpu; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device old = getDevice();
    setDevice(device);
    return old;
  }
  c10::Device getDevice() const override { return {kTpu, static_cast<c10::DeviceIndex>(this_device)}; }
  void setDevice(c10::Device device) const override {
    TORCH_INTERNAL_ASSERT(device.type() == kTpu);
    if (C10_UNLIKELY(!this_thread_noted)) {
      this_thread_noted = true;
      note_thread();
    }
    if (device.index() < 0 || device.index() == this_device) {
      return;
    }
    if (device.index() != 0) {  // device 0 needs no runtime to be named
      tt_device* found = nullptr;
      check(tt_device_get(device.index(), &found));
    }
    this_device = device.index();
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0) {
      this_device = device.index();
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(tt_device_count()); }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    for (int dtype = TT_DTYPE_INVALID + 1; dtype < TT_DTYPE_COUNT; ++dtype) {
      capability.capability_data.capability_bits |= uint64_t{1}
                                                    << static_cast<int>(to_torch(static_cast<tt_dtype>(dtype)));
    }
    return capability;
  }

  c10::Stream getStream(c10::Device device) const override {
    const auto index = static_cast<size_t>(index_of(device));
    return stream_at(at(device), index < this_stream.size() ? this_stream[index] : 0);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream_at(at(device), 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }
  c10::Stream getNewStream(c10::Device device, int) const override { return stream_at(at(device), ++last_stream); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream old = getStream(stream.device());
    const auto index = static_cast<size_t>(index_of(stream.device()));
    if (index >= this_stream.size()) {
      this_stream.resize(index + 1, 0);
    }
    this_stream[index] = stream.id();
    return old;
  }
  void* getStreamNativeHandle(const c10::Stream) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "a tpu stream has no native handle: PJRT orders launches itself");
  }
  bool queryStream(const c10::Stream& stream) const override { return device_idle(stream.device_index()); }
  void synchronizeStream(const c10::Stream& stream) const override { synchronizeDevice(stream.device_index()); }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    tt_device* device = nullptr;
    check(tt_device_get(index < 0 ? this_device : index, &device));
    finish_copies();
    check(tt_device_synchronize(device));
  }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    event_record(event, stream.device_index());
  }
  void block(void* event, const c10::Stream& stream) const override { event_block(event, stream.device_index()); }
  bool queryEvent(void* event) const override { return event_query(event); }
  void synchronizeEvent(void* event) const override { event_synchronize(event); }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    return event_elapsed_ms(start, end);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { event_destroy(event); }

 private:
  static int index_of(c10::Device device) { return device.index() < 0 ? this_device : device.index(); }
  static c10::Device at(c10::Device device) { return {kTpu, static_cast<c10::DeviceIndex>(index_of(device))}; }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, TpuGuard)

}  // namespace

int current_device() {
  return this_device;
}

}  // namespace tt
