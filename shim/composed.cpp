// SPDX-License-Identifier: Apache-2.0
//
// Ops that PyTorch has as kernels of single devices only and that are others in a row. Those that read on the host (the check of
// a factorisation) can be no single program.
#include <ATen/native/Resize.h>
#include <ATen/ops/_linalg_check_errors.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/narrow.h>
#include <torch/library.h>

#include "shim.h"

namespace tt {

namespace {

using at::Tensor;

Tensor factor(const Tensor& self, bool upper) {
  if (self.numel() == 0) {
    return at::empty(self.sizes(), self.options());
  }
  TORCH_CHECK(self.dim() >= 2, "cholesky: The input tensor A must have at least 2 dimensions.");
  TORCH_CHECK(self.size(-1) == self.size(-2), "cholesky: A must be batches of square matrices, but they are ",
              self.size(-2), " by ", self.size(-1), " matrices");
  auto [result, info] = at::linalg_cholesky_ex(self, upper);
  at::_linalg_check_errors(info, "cholesky", self.dim() == 2);
  return result;
}

Tensor& factor_out(const Tensor& self, bool upper, Tensor& out) {
  TORCH_CHECK(self.device() == out.device(),
              "cholesky: Expected result and input tensors to be on the same device, "
              "but got result on ",
              out.device(), " and input on ", self.device());
  TORCH_CHECK(c10::canCast(self.scalar_type(), out.scalar_type()),
              "cholesky: Expected result to be safely castable from ", self.scalar_type(),
              " dtype, but got result with dtype ", out.scalar_type());
  Tensor result = factor(self, upper);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

Tensor narrowed(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  auto self_sizes = self.sizes();
  TORCH_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  TORCH_CHECK(dim < static_cast<int64_t>(self_sizes.size()));
  int64_t size = self.size(dim);
  TORCH_CHECK(length >= 0 && c10::maybe_wrap_dim(start, size + 1) <= size - length, "start (", start, ") + length (",
              length, ") exceeds dimension size (", size, ").");
  return at::narrow(self, dim, start, length).clone(at::MemoryFormat::Contiguous);
}

Tensor& narrowed_out(const Tensor& self, int64_t dim, int64_t start, int64_t length, Tensor& output) {
  TORCH_CHECK(self.dtype() == output.dtype());
  Tensor result = narrowed(self, dim, start, length);
  at::native::resize_output(output, result.sizes());
  return output.copy_(result);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("cholesky", factor);
  m.impl("cholesky.out", factor_out);
  m.impl("narrow_copy", narrowed);
  m.impl("narrow_copy.out", narrowed_out);
}

}  // namespace

}  // namespace tt
