// SPDX-License-Identifier: Apache-2.0
//
// Copies between host and device, and reading one element. Dtypes are converted on the side the data comes from if that is the
// host, else on the host as well; copies on one device go through the op table (boxed.cpp).
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_conj_physical.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/neg.h>
#include <torch/library.h>

#include <deque>
#include <mutex>

#include "shim.h"

namespace tt {
namespace {

// Copies to the host that are under way; each keeps its pinned tensor. Never destroyed: the device may still be writing when
// the process ends.
struct Pending {
  tt_marker* marker;
  at::Tensor host;
};
std::mutex pending_mutex;
std::deque<Pending>& pending() {
  static auto* const list = new std::deque<Pending>;
  return *list;
}

// Takes the finished copies out of the list; all of them after waiting, if `wait`.
void drain(bool wait) {
  std::deque<Pending> finished;
  {
    const std::lock_guard<std::mutex> lock(pending_mutex);
    auto& list = pending();
    while (!list.empty() && (wait || tt_marker_done(list.front().marker))) {
      finished.push_back(std::move(list.front()));
      list.pop_front();
    }
  }
  tt_status failure = nullptr;
  for (const Pending& copy : finished) {
    tt_status status = tt_marker_await(copy.marker);
    tt_marker_destroy(copy.marker);
    if (failure == nullptr) {
      failure = status;
    } else {
      tt_status_free(status);
    }
  }
  check(failure);
}

void from_host(const at::Tensor& dst, const at::Tensor& src) {
  if (src.numel() < dst.numel()) {  // send what there is, repeat it over there
    at::Tensor small = empty_strided(src.sizes(), src.contiguous().strides(), dst.scalar_type(), dst.device().index());
    from_host(small, src);
    copy_on_device(dst, small);
    return;
  }
  const at::Tensor dense = src.to(dst.scalar_type()).expand(dst.sizes()).contiguous();
  tt_tensor target;
  describe(dst, &target);
  check(tt_copy_from_host(&target, dense.const_data_ptr()));
}

void to_host(const at::Tensor& dst, const at::Tensor& src, bool non_blocking) {
  tt_tensor source;
  describe(src, &source);
  if (dst.scalar_type() == src.scalar_type() && dst.sizes() == src.sizes() && dst.is_contiguous() && !dst.is_neg()) {
    if (non_blocking && is_pinned(dst.const_data_ptr())) {
      drain(false);
      tt_marker* marker = nullptr;
      check(tt_copy_to_host_async(&source, dst.mutable_data_ptr(), &marker));
      const std::lock_guard<std::mutex> lock(pending_mutex);
      pending().push_back({marker, dst});
    } else {
      check(tt_copy_to_host(&source, dst.mutable_data_ptr()));
    }
    return;
  }
  const at::Tensor dense =
      at::empty(src.sizes(), src.options().device(at::kCPU).memory_format(at::MemoryFormat::Contiguous));
  check(tt_copy_to_host(&source, dense.mutable_data_ptr()));
  dst.copy_(dense);
}

void across(const at::Tensor& dst, const at::Tensor& src) {
  const at::Tensor ready = src.to(dst.scalar_type()).expand(dst.sizes());
  tt_tensor target, source;
  describe(dst, &target);
  describe(ready, &source);
  check(tt_copy_across(&target, &source));
}

// The bits of a conjugate or negative view as they are stored.
at::Tensor stored(const at::Tensor& tensor) {
  at::Tensor raw = tensor.is_neg() ? tensor._neg_view() : tensor;
  return raw.is_conj() ? at::_conj(raw) : raw;
}

// Those views computed. On the device this needs ops; PyTorch's own way there is a copy, that is, us.
at::Tensor computed(const at::Tensor& tensor) {
  if (tensor.device().type() == at::kCPU) {
    return tensor.resolve_conj().resolve_neg();
  }
  at::Tensor value = stored(tensor);
  if (tensor.is_conj()) {
    value = at::_conj_physical(value);
  }
  return tensor.is_neg() ? at::neg(value) : value;
}

// `host` holds what `stored(like)` gave.
at::Tensor marked(const at::Tensor& host, const at::Tensor& like) {
  const at::Tensor value = like.is_conj() ? host.conj() : host;
  return like.is_neg() ? value._neg_view() : value;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  TORCH_CHECK(at::is_expandable_to(self.sizes(), dst.sizes()), "The size of tensor a ", self.sizes(),
              " cannot be broadcast to the destination's size ", dst.sizes());
  if (dst.numel() == 0) {
    return dst;
  }
  at::assert_no_internal_overlap(dst);
  if (dst.device() == self.device()) {
    at::assert_no_partial_overlap(dst, self);
  }
  if (self.is_complex() && !dst.is_complex() && dst.scalar_type() != at::kBool) {
    TORCH_WARN_ONCE("Casting complex values to real discards the imaginary part");
  }
  if (dst.is_conj()) {
    copy_from(self.conj(), at::_conj(dst), non_blocking);
    return dst;
  }
  if (dst.is_neg()) {
    copy_from(self._neg_view(), dst._neg_view(), non_blocking);
    return dst;
  }
  if (dst.dim() > TT_MAX_RANK || self.dim() > TT_MAX_RANK) {
    // With more dimensions than programs have, most are of size 1.
    copy_from(self.expand(dst.sizes()).squeeze(), dst.squeeze(), non_blocking);
    return dst;
  }
  const at::Device from = self.device();
  const at::Device to = dst.device();
  if (to.type() == at::kCPU && (self.is_conj() || self.is_neg())) {
    const at::Tensor raw = stored(self);
    const at::Tensor host = at::empty(raw.sizes(), raw.options().device(at::kCPU));
    to_host(host, raw, false);
    dst.copy_(marked(host, self));
    return dst;
  }
  const at::Tensor src = computed(self);
  if (from.type() == at::kCPU) {
    from_host(dst, src);
  } else if (to.type() == at::kCPU) {
    to_host(dst, src, non_blocking);
  } else if (from == to) {
    copy_on_device(dst, src);
  } else if (from.type() == kTpu && to.type() == kTpu) {
    across(dst, src);
  } else {  // some other accelerator: by way of the host
    dst.copy_(src.to(at::kCPU));
  }
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

at::Scalar local_scalar(const at::Tensor& self) {
  const at::Tensor host = at::detail::empty_cpu({}, at::TensorOptions().dtype(self.scalar_type()));
  const at::Tensor raw = stored(self);
  tt_tensor source;
  describe(raw, &source);
  check(tt_copy_to_host(&source, host.mutable_data_ptr()));
  return at::_local_scalar_dense(marked(host, self).resolve_conj().resolve_neg());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", local_scalar);
}

// copy_from looks at these bits itself; PyTorch's fallbacks would hand it a copy of the destination.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace

void finish_copies() {
  drain(true);
}

}  // namespace tt
