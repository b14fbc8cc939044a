// SPDX-License-Identifier: Apache-2.0
//
// Storages: what PyTorch's storages on "tpu" hold. A storage owns one value, a dense device buffer whose row-major order is
// the storage order, or none yet. A tensor is a view of it: sizes, strides and offset in elements.
//
// Addresses are numbers from a range that is never mapped: unique, ordered by creation, good for identity and for data_ptr()
// arithmetic, and a fault when somebody dereferences them.
//
// Thread rule: retain/release from any thread; the rest takes the device's lock.
#ifndef TT_STORAGE_H
#define TT_STORAGE_H

#include "tt/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_storage tt_storage;

typedef struct tt_scalar {
  char kind;  // 'i' (also bool), 'f', 'c'
  int64_t i;
  double re, im;
} tt_scalar;

// A tensor as a call sees it: borrowed for the time of the call.
typedef struct tt_tensor {
  tt_storage* storage;  // NULL: a 0-d tensor on the host (`host` has its value), or absent if dtype is invalid
  const int64_t* sizes;
  const int64_t* strides;  // elements
  int64_t offset;          // elements of `dtype`
  int32_t rank;
  tt_dtype dtype;
  bool wrapped;    // a Python number, for type promotion
  bool conj, neg;  // lazily conjugated or negated: reads and writes go through it
  tt_scalar host;
} tt_tensor;

// A storage of `bytes` bytes for a tensor of these sizes and strides; takes no device memory until it is first written.
TT_EXPORT TT_NODISCARD tt_status tt_storage_create(int device, tt_dtype dtype, int rank, const int64_t* sizes,
                                                   const int64_t* strides, int64_t bytes, tt_storage** out_storage);
TT_EXPORT void tt_storage_retain(tt_storage* storage);
TT_EXPORT void tt_storage_release(tt_storage* storage);
TT_EXPORT uint64_t tt_storage_address(const tt_storage* storage);
TT_EXPORT int64_t tt_storage_bytes(const tt_storage* storage);
TT_EXPORT int tt_storage_device(const tt_storage* storage);
// The live storage that an address lies in, with a reference for the caller; NULL if there is none. Looks at all storages.
TT_EXPORT tt_storage* tt_storage_find(uint64_t address);
// Grows or shrinks; contents up to the smaller size are kept. Growing gives it a new address.
TT_EXPORT TT_NODISCARD tt_status tt_storage_resize(tt_storage* storage, int64_t bytes);
TT_EXPORT bool tt_storage_is_written(const tt_storage* storage);

// Host to device: `bytes` are dst's elements, dense and row-major in dst's dtype. They are copied before the call returns.
TT_EXPORT TT_NODISCARD tt_status tt_copy_from_host(const tt_tensor* dst, const void* bytes);
// Device to host, dense and row-major in src's dtype; waits. Reports failures and indexes out of range found before.
TT_EXPORT TT_NODISCARD tt_status tt_copy_to_host(const tt_tensor* src, void* bytes);
// Starts the copy; the bytes are there once *out_marker is done.
TT_EXPORT TT_NODISCARD tt_status tt_copy_to_host_async(const tt_tensor* src, void* bytes, tt_marker** out_marker);
// dst = src on one device, converted and broadcast as PyTorch's copy_. Shares the value where it can.
TT_EXPORT TT_NODISCARD tt_status tt_copy_on_device(const tt_tensor* dst, const tt_tensor* src);
// dst = src of the same dims and dtype on another device.
TT_EXPORT TT_NODISCARD tt_status tt_copy_across(const tt_tensor* dst, const tt_tensor* src);

#ifdef __cplusplus
}
#endif
#endif  // TT_STORAGE_H
