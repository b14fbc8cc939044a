// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's hooks for an accelerator. Asking whether there is a device does not start the runtime.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "gil.h"
#include "shim.h"

namespace tt {
namespace {

class TpuHooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override {
    const NoGil no_gil;
    return tt_runtime_available();
  }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return tt_runtime_started(); }
  void init() const override {
    const NoGil no_gil;
    check(tt_runtime_start());
  }

  c10::DeviceIndex deviceCount() const override {
    const NoGil no_gil;
    return static_cast<c10::DeviceIndex>(tt_device_count());
  }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(current_device()); }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    const NoGil no_gil;
    guard().setDevice({kTpu, index});
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const NoGil no_gil;
    return guard().exchangeDevice({kTpu, index}).index();
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? getCurrentDevice() : exchangeDevice(index);
  }
  at::Device getDeviceFromPtr(void*) const override {
    // Addresses on the device are names of storages; nothing outside PyTorch can make one.
    TORCH_CHECK_NOT_IMPLEMENTED(false, "a tpu device cannot be found from an address");
  }

  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage(storage.unsafeGetStorageImpl(), bytes);
  }

 private:
  static c10::impl::VirtualGuardImpl guard() { return c10::impl::VirtualGuardImpl(kTpu); }
};

const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new TpuHooks);
  return true;
}();

}  // namespace
}  // namespace tt
