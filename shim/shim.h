// SPDX-License-Identifier: Apache-2.0
//
// What the files of shim/ share. The shim converts between libtorch's classes and the C API in include/tt, and holds no
// logic: one file a PyTorch hook. It is the only place that includes libtorch.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/ScalarType.h>

#include <string>
#include <utility>
#include <vector>

#include "tt/call.h"
#include "tt/device.h"
#include "tt/storage.h"

namespace tt {

constexpr c10::DeviceType kTpu = c10::DeviceType::PrivateUse1;

// errors.cpp: throws the exception that stands for a status (and frees it); does nothing for NULL. OUT_OF_RANGE IndexError,
// UNIMPLEMENTED NotImplementedError, RESOURCE_EXHAUSTED torch.OutOfMemoryError, everything else RuntimeError.
void check(tt_status status);

// tensor.cpp: dtypes and tensors.
c10::ScalarType to_torch(tt_dtype dtype);
tt_dtype from_torch(
    c10::ScalarType
        dtype);  // throws NotImplementedError for types that no device buffer holds (quantized, complex32, ...)
// A new tensor over `storage` (whose reference it takes).
at::Tensor wrap(tt_storage* storage, const tt_meta& meta);
tt_storage* storage_of(const at::TensorImpl* impl);  // borrowed
// The tensor as a call sees it; sizes and strides are borrowed from `tensor`. Tensors on the CPU must be 0-d (their value is read).
// Others raise "Expected all tensors to be on the same device".
void describe(const at::Tensor& tensor, tt_tensor* out);
// What describe throws for a tensor of more than TT_MAX_RANK dimensions; calls with such tensors are computed on the CPU.
struct TooManyDims : std::runtime_error {
  using std::runtime_error::runtime_error;
};
void check_rank(int64_t rank);
at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype, int device);

// allocator.cpp: the data pointer that owns `storage` (takes the reference); every storage on the device has one.
c10::DataPtr own(tt_storage* storage);
// The storage behind a data pointer. One that PyTorch made from an address alone (DLPack, pickle) is found, and owned from then on.
tt_storage* storage_behind(c10::StorageImpl* storage);

// guard.cpp: this thread's current device.
int current_device();

// boxed.cpp: dst = src, both on one device, of any dtypes, src broadcastable to dst.
void copy_on_device(const at::Tensor& dst, const at::Tensor& src);

// boxed.cpp: hands torch.get_float32_matmul_precision() to the C side.
void set_precision();

// host.cpp: pinned host memory.
c10::Allocator* pinned_allocator();
bool is_pinned(const void* data);

// storage.cpp: grows or shrinks a storage, contents kept; waits for copies to the host that are still under way.
void resize_storage(c10::StorageImpl* storage, size_t bytes);
void finish_copies();

// autograd.cpp: a thread used the device for the first time; waits until backward threads have freed the graphs they ran.
void note_thread();
void await_backward_threads() noexcept;

// generator.cpp: the C generator behind an at::Generator; NULL for none.
tt_generator* generator_of(const std::optional<at::Generator>& generator);
const at::Generator& default_generator(int device);
at::Generator new_generator(int device);

// register.cpp: registers every op with PyTorch (called once, by the module's init). boxed.cpp: the one kernel.
void register_ops();

// layouts.cpp: sparse and nested tensors (called once, by the module's init).
void register_layouts();

// fallback.cpp: counts by op name; the Python side lists them.
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack, const char* reason);
std::vector<std::pair<std::string, int64_t>> fallback_counts();
void fallback_counts_clear();

}  // namespace tt
