// SPDX-License-Identifier: Apache-2.0
//
// Generators: at::Generator over tt_generator. The state is 16 bytes, seed and offset (what DTensor's random-number tracker
// reads and writes).
#include <ATen/EmptyTensor.h>
#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <cstring>
#include <deque>
#include <mutex>

#include "shim.h"

namespace tt {
namespace {

constexpr int64_t kStateBytes = 16;

class TpuGenerator final : public c10::GeneratorImpl {
 public:
  TpuGenerator(int device, tt_generator* generator)  // takes the reference
      : GeneratorImpl({kTpu, static_cast<c10::DeviceIndex>(device)},
                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        generator_(generator) {}
  ~TpuGenerator() override { tt_generator_release(generator_); }
  static c10::DeviceType device_type() { return kTpu; }

  void set_current_seed(uint64_t seed) override { tt_generator_set(generator_, seed, 0); }
  void set_offset(uint64_t offset) override { tt_generator_set(generator_, current_seed(), offset); }
  uint64_t get_offset() const override { return get().offset; }
  uint64_t current_seed() const override { return get().seed; }
  uint64_t seed() override {
    const uint64_t seed = c10::detail::getNonDeterministicRandom();
    set_current_seed(seed);
    return seed;
  }
  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    TORCH_CHECK(state.numel() == kStateBytes, "expected a RNG state of ", kStateBytes, " bytes, got ", state.numel());
    State value;
    std::memcpy(&value, state.data(), sizeof value);
    tt_generator_set(generator_, value.seed, value.offset);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor state = at::detail::empty_cpu({kStateBytes}, at::TensorOptions().dtype(at::kByte));
    const State value = get();
    std::memcpy(state.unsafeGetTensorImpl()->mutable_data(), &value, sizeof value);
    return state.getIntrusivePtr();
  }
  tt_generator* generator() const { return generator_; }

 private:
  struct State {
    uint64_t seed, offset;
  };
  static_assert(sizeof(State) == kStateBytes);

  State get() const {
    State state;
    tt_generator_get(generator_, &state.seed, &state.offset);
    return state;
  }
  TpuGenerator* clone_impl() const override {
    const State state = get();
    tt_generator* const copy = tt_generator_create(state.seed);
    tt_generator_set(copy, state.seed, state.offset);
    return new TpuGenerator(device().index(), copy);
  }

  tt_generator* const generator_;
};

}  // namespace

tt_generator* generator_of(const std::optional<at::Generator>& generator) {
  if (!generator.has_value() || !generator->defined()) {
    return nullptr;
  }
  return at::check_generator<TpuGenerator>(generator)->generator();
}

const at::Generator& default_generator(int device) {
  static std::mutex mutex;
  static auto* const generators = new std::deque<at::Generator>;  // a deque: references stay valid
  const int index = device < 0 ? current_device() : device;
  if (index > 0) {
    tt_device* found = nullptr;
    check(tt_device_get(index, &found));
  }
  const std::lock_guard<std::mutex> lock(mutex);
  while (generators->size() <= static_cast<size_t>(index)) {
    const int next = static_cast<int>(generators->size());
    tt_generator* const generator = tt_device_generator(next);
    tt_generator_retain(generator);
    generators->push_back(at::make_generator<TpuGenerator>(next, generator));
  }
  return (*generators)[static_cast<size_t>(index)];
}

at::Generator new_generator(int device) {
  return at::make_generator<TpuGenerator>(device < 0 ? current_device() : device,
                                          tt_generator_create(c10::default_rng_seed_val));
}

}  // namespace tt
