// SPDX-License-Identifier: Apache-2.0
//
// Tensors: dtypes, wrapping storages, and describing tensors to the C side.
#include <ATen/EmptyTensor.h>
#include <ATen/TensorUtils.h>
#include <c10/core/DynamicCast.h>
#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>

#include "shim.h"

namespace tt {

c10::ScalarType to_torch(tt_dtype dtype) {
  switch (dtype) {
    case TT_BOOL:
      return c10::kBool;
    case TT_U8:
      return c10::kByte;
    case TT_I8:
      return c10::kChar;
    case TT_U16:
      return c10::kUInt16;
    case TT_I16:
      return c10::kShort;
    case TT_U32:
      return c10::kUInt32;
    case TT_I32:
      return c10::kInt;
    case TT_U64:
      return c10::kUInt64;
    case TT_I64:
      return c10::kLong;
    case TT_F16:
      return c10::kHalf;
    case TT_BF16:
      return c10::kBFloat16;
    case TT_F32:
      return c10::kFloat;
    case TT_F64:
      return c10::kDouble;
    case TT_C64:
      return c10::kComplexFloat;
    case TT_C128:
      return c10::kComplexDouble;
    case TT_F8E4M3FN:
      return c10::kFloat8_e4m3fn;
    case TT_F8E4M3FNUZ:
      return c10::kFloat8_e4m3fnuz;
    case TT_F8E5M2:
      return c10::kFloat8_e5m2;
    case TT_F8E5M2FNUZ:
      return c10::kFloat8_e5m2fnuz;
    case TT_F8E8M0FNU:
      return c10::kFloat8_e8m0fnu;
    default:
      TORCH_INTERNAL_ASSERT(false, "dtype ", static_cast<int>(dtype));
  }
}

static tt_dtype from_torch_or_invalid(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::kBool:
      return TT_BOOL;
    case c10::kByte:
      return TT_U8;
    case c10::kChar:
      return TT_I8;
    case c10::kUInt16:
      return TT_U16;
    case c10::kShort:
      return TT_I16;
    case c10::kUInt32:
      return TT_U32;
    case c10::kInt:
      return TT_I32;
    case c10::kUInt64:
      return TT_U64;
    case c10::kLong:
      return TT_I64;
    case c10::kHalf:
      return TT_F16;
    case c10::kBFloat16:
      return TT_BF16;
    case c10::kFloat:
      return TT_F32;
    case c10::kDouble:
      return TT_F64;
    case c10::kComplexFloat:
      return TT_C64;
    case c10::kComplexDouble:
      return TT_C128;
    case c10::kFloat8_e4m3fn:
      return TT_F8E4M3FN;
    case c10::kFloat8_e4m3fnuz:
      return TT_F8E4M3FNUZ;
    case c10::kFloat8_e5m2:
      return TT_F8E5M2;
    case c10::kFloat8_e5m2fnuz:
      return TT_F8E5M2FNUZ;
    case c10::kFloat8_e8m0fnu:
      return TT_F8E8M0FNU;
    default:
      return TT_DTYPE_INVALID;
  }
}

tt_dtype from_torch(c10::ScalarType dtype) {
  tt_dtype found = from_torch_or_invalid(dtype);
  TORCH_CHECK_NOT_IMPLEMENTED(found != TT_DTYPE_INVALID, "dtype ", c10::toString(dtype), " is not supported on tpu");
  return found;
}

static at::Tensor make(tt_storage* storage, c10::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  int64_t bytes = tt_storage_bytes(storage);
  auto impl = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), static_cast<size_t>(bytes),
                                                    own(storage), c10::GetAllocator(kTpu), /*resizable=*/true);
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(std::move(impl)),
                                                         c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                                         c10::scalarTypeToTypeMeta(dtype));
  // A fresh TensorImpl is 1-d of size 0 already.
  if (sizes.size() != 1 || sizes[0] != 0) {
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  }
  return tensor;
}

at::Tensor wrap(tt_storage* storage, const tt_meta& meta) {
  auto rank = static_cast<size_t>(meta.rank);
  return make(storage, to_torch(meta.dtype), c10::IntArrayRef(meta.sizes, rank), c10::IntArrayRef(meta.strides, rank));
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype, int device) {
  TORCH_CHECK(sizes.size() == strides.size(), "mismatch in length of strides and shape");
  at::detail::check_size_nonnegative(sizes);
  tt_dtype type = from_torch(dtype);
  size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  tt_storage* storage = nullptr;
  check(tt_storage_create(device, type, static_cast<int>(sizes.size()), sizes.data(), strides.data(),
                          static_cast<int64_t>(bytes), &storage));
  return make(storage, dtype, sizes, strides);
}

tt_storage* storage_of(const at::TensorImpl* impl) {
  return storage_behind(impl->unsafe_storage().unsafeGetStorageImpl());
}

// The value of a 0-d CPU tensor.
static tt_scalar host_value(const at::Tensor& tensor) {
  const void* data = tensor.const_data_ptr();
  c10::ScalarType dtype = tensor.scalar_type();
  if (c10::isComplexType(dtype)) {
    auto z = c10::fetch_and_cast<c10::complex<double>>(dtype, data);
    return {'c', 0, z.real(), z.imag()};
  }
  if (c10::isFloatingType(dtype)) {
    return {'f', 0, c10::fetch_and_cast<double>(dtype, data), 0};
  }
  int64_t i = c10::fetch_and_cast<int64_t>(dtype, data);
  return {'i', i, static_cast<double>(i), 0};
}

void check_rank(int64_t rank) {
  if (C10_UNLIKELY(rank > TT_MAX_RANK)) {
    throw TooManyDims(c10::str("expected a tensor of at most ", TT_MAX_RANK, " dimensions on tpu, got ", rank));
  }
}

void describe(const at::Tensor& tensor, tt_tensor* out) {
  *out = tt_tensor{};
  if (!tensor.defined()) {
    return;
  }
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  out->dtype = from_torch(tensor.scalar_type());
  auto sizes = impl->sizes();
  out->sizes = sizes.data();
  out->strides = impl->strides().data();
  out->rank = static_cast<int32_t>(sizes.size());
  check_rank(out->rank);
  if (impl->device_type() == kTpu) {
    out->storage = storage_of(impl);
    out->offset = impl->storage_offset();
    out->conj = impl->is_conj();
    out->neg = impl->is_neg();
    // A storage made from an address may start inside of ours.
    auto start = reinterpret_cast<uint64_t>(impl->unsafe_storage().unsafeGetStorageImpl()->data_ptr().get());
    uint64_t skipped = start - tt_storage_address(out->storage);
    if (C10_UNLIKELY(skipped != 0)) {
      TORCH_CHECK(skipped % impl->itemsize() == 0, "expected memory on tpu aligned to ", impl->itemsize(), " bytes");
      out->offset += static_cast<int64_t>(skipped / impl->itemsize());
    }
    return;
  }
  TORCH_CHECK(impl->device_type() == c10::kCPU && sizes.empty(),
              "Expected all tensors to be on the same device, but found at least two devices, ",
              c10::Device(kTpu, static_cast<c10::DeviceIndex>(current_device())), " and ", tensor.device(), "!");
  out->wrapped = impl->is_wrapped_number();
  out->host = host_value(tensor.resolve_conj().resolve_neg());
}

}  // namespace tt
