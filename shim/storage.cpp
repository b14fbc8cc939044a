// SPDX-License-Identifier: Apache-2.0
//
// Kernels that make tensors and move storages around: factories without values, views by strides, resize_ and set_. None of
// them touches device memory.
#include <ATen/Context.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <limits>

#include "infer.h"
#include "shim.h"

namespace tt {
namespace {

void check_options(std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(at::kStrided) == at::kStrided,
                              "only strided tensors are supported on tpu, got ", *layout);
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  TORCH_INTERNAL_ASSERT(!device.has_value() || device->type() == kTpu);
}

int index_of(std::optional<at::Device> device) {
  return device.has_value() && device->has_index() ? device->index() : current_device();
}

// torch.use_deterministic_algorithms fills new memory with values that show when they are used by mistake. Not where PyTorch is
// only asked for an output's shape: the call that follows writes it.
at::Tensor fill_if_asked(at::Tensor tensor) {
  if (C10_UNLIKELY(at::globalContext().deterministicAlgorithms() &&
                   at::globalContext().deterministicFillUninitializedMemory() && !probing())) {
    if (tensor.is_floating_point() || tensor.is_complex()) {
      tensor.fill_(std::numeric_limits<double>::quiet_NaN());
    } else if (tensor.scalar_type() == at::kBool) {
      tensor.fill_(true);
    } else {
      const auto bits = tensor.element_size() * 8 - (c10::isSignedType(tensor.scalar_type()) ? 1 : 0);
      tensor.fill_(static_cast<int64_t>(bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1));
    }
  }
  return tensor;
}

c10::SmallVector<int64_t, 8> dense_strides(at::IntArrayRef sizes, at::MemoryFormat format) {
  c10::SmallVector<int64_t, 8> strides(sizes.size());
  if (format == at::MemoryFormat::ChannelsLast) {
    TORCH_CHECK(sizes.size() == 4, "required rank 4 tensor to use channels_last format");
    const auto last = c10::get_channels_last_strides_2d(sizes);
    return {last.begin(), last.end()};
  }
  if (format == at::MemoryFormat::ChannelsLast3d) {
    TORCH_CHECK(sizes.size() == 5, "required rank 5 tensor to use channels_last_3d format");
    const auto last = c10::get_channels_last_strides_3d(sizes);
    return {last.begin(), last.end()};
  }
  TORCH_CHECK(format == at::MemoryFormat::Contiguous, "unsupported memory format ", format);
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                 std::optional<at::Device> device, std::optional<bool> pin_memory,
                 std::optional<at::MemoryFormat> format) {
  check_options(layout, device, pin_memory);
  for (const int64_t size : sizes) {
    TORCH_CHECK(size >= 0, "Trying to create tensor with negative dimension ", size, ": ", sizes);
  }
  return fill_if_asked(empty_strided(sizes, dense_strides(sizes, format.value_or(at::MemoryFormat::Contiguous)),
                                     c10::dtype_or_default(dtype), index_of(device)));
}

at::Tensor empty_with_strides(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> dtype,
                              std::optional<at::Layout> layout, std::optional<at::Device> device,
                              std::optional<bool> pin_memory) {
  check_options(layout, device, pin_memory);
  TORCH_CHECK(sizes.size() == strides.size(), "dimensionality of sizes (", sizes.size(),
              ") must match dimensionality of strides (", strides.size(), ")");
  for (size_t i = 0; i < sizes.size(); ++i) {
    TORCH_CHECK(sizes[i] >= 0, "Trying to create tensor with negative dimension ", sizes[i], ": ", sizes);
    TORCH_CHECK(strides[i] >= 0, "negative strides are not supported at the moment, got strides: ", strides);
  }
  return fill_if_asked(empty_strided(sizes, strides, c10::dtype_or_default(dtype), index_of(device)));
}

// Bytes that a view of these sizes and strides reaches into its storage.
size_t bytes_needed(at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset, size_t item) {
  int64_t elements = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) {
      return 0;
    }
    elements += (sizes[i] - 1) * strides[i];
  }
  return static_cast<size_t>(elements + offset) * item;
}

void grow_to_fit(at::TensorImpl* impl, at::IntArrayRef sizes, at::IntArrayRef strides) {
  const size_t needed = bytes_needed(sizes, strides, impl->storage_offset(), impl->itemsize());
  c10::StorageImpl* const storage = impl->unsafe_storage().unsafeGetStorageImpl();
  if (needed > storage->nbytes()) {
    resize_storage(storage, needed);
  }
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  at::TensorImpl* const impl = self.unsafeGetTensorImpl();
  if (self.sizes() != sizes || format.has_value()) {
    const auto wanted = format.value_or(at::MemoryFormat::Contiguous);
    TORCH_CHECK(wanted != at::MemoryFormat::Preserve, "Unsupported memory format ", wanted);
    const auto strides = dense_strides(sizes, wanted);
    const auto before = static_cast<int64_t>(self.storage().nbytes() / self.itemsize());
    grow_to_fit(impl, sizes, strides);
    impl->set_sizes_and_strides(sizes, strides);
    const auto after = static_cast<int64_t>(self.storage().nbytes() / self.itemsize());
    if (after > before) {
      at::Tensor added = empty_strided({0}, {1}, self.scalar_type(), self.device().index());
      fill_if_asked(added.set_(self.storage(), before, {after - before}, {1}));
    }
  }
  return self;
}

at::Tensor& set_storage_(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef sizes,
                         at::IntArrayRef strides) {
  TORCH_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  TORCH_CHECK(source.device() == self.device(), "Attempted to set the storage of a tensor on device \"", self.device(),
              "\" to a storage on different device \"", source.device(), "\".");
  for (const int64_t stride : strides) {
    TORCH_CHECK(stride >= 0, "Tensor: negative strides are not supported, got ", strides);
  }
  at::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  const auto filled = strides.data() == nullptr || strides.size() != sizes.size()
                          ? dense_strides(sizes, at::MemoryFormat::Contiguous)
                          : c10::SmallVector<int64_t, 8>(strides.begin(), strides.end());
  grow_to_fit(impl, sizes, filled);
  impl->set_sizes_and_strides(sizes, filled);
  return self;
}

at::Tensor& set_source_storage_(at::Tensor& self, at::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_storage_(self, std::move(source), 0, {elements}, {1});
}

at::Tensor& set_source_tensor_(at::Tensor& self, const at::Tensor& source) {
  return at::native::set_tensor_(self, source);
}

at::Tensor& set_empty_(at::Tensor& self) {
  c10::Allocator* const allocator = c10::GetAllocator(kTpu);
  at::Storage storage(c10::Storage::use_byte_size_t(), 0, allocator->allocate(0), allocator, true);
  return set_storage_(self, std::move(storage), 0, {0}, {1});
}

// Tensors on tpu and on the CPU may stand in for each other: module.to("tpu") keeps its parameters, `p.data = t` takes either.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  const auto plain = [](const at::Tensor& tensor) {
    return tensor.layout() == at::kStrided && (tensor.device().type() == kTpu || tensor.device().type() == at::kCPU);
  };
  return plain(self) && plain(from);
}

// Every stream of a device shares one order of launches: nothing to remember.
void record_stream(at::Tensor&, at::Stream) {}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("record_stream", record_stream);
  m.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_with_strides);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("unfold", at::native::unfold);
  m.impl("resize_", resize_);
  m.impl("set_", set_empty_);
  m.impl("set_.source_Storage", set_source_storage_);
  m.impl("set_.source_Storage_storage_offset", set_storage_);
  m.impl("set_.source_Tensor", set_source_tensor_);
  m.impl("is_set_to", at::native::is_set_to);
}

}  // namespace

void resize_storage(c10::StorageImpl* storage, size_t bytes) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  tt_storage* const held = storage_behind(storage);
  check(tt_storage_resize(held, static_cast<int64_t>(bytes)));
  void* const address = reinterpret_cast<void*>(tt_storage_address(held));
  if (address != storage->data_ptr().get()) {
    tt_storage_retain(held);
    storage->set_data_ptr_noswap(own(held));
  }
  storage->set_nbytes(bytes);
}

}  // namespace tt
