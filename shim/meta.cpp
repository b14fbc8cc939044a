// SPDX-License-Identifier: Apache-2.0
//
// Meta kernels for ops that PyTorch gives none: they say what the results look like.
#include <ATen/ATen.h>
#include <torch/library.h>

namespace tt {

namespace {

at::Tensor masked_softmax(const at::Tensor& self, const at::Tensor&, std::optional<int64_t>, std::optional<int64_t>) {
  return at::empty_like(self, at::MemoryFormat::Contiguous);
}
at::Tensor masked_softmax_backward(const at::Tensor& grad, const at::Tensor&, const at::Tensor&,
                                   std::optional<int64_t>) {
  return at::empty_like(grad, at::MemoryFormat::Contiguous);
}

at::Tensor multi_margin_backward(const at::Tensor&, const at::Tensor& self, const at::Tensor&, const at::Scalar&,
                                 const at::Scalar&, const std::optional<at::Tensor>&, int64_t) {
  return at::empty_like(self, at::MemoryFormat::Contiguous);
}
at::Tensor multilabel_margin_backward(const at::Tensor&, const at::Tensor& self, const at::Tensor&, int64_t,
                                      const at::Tensor&) {
  return at::empty_like(self, at::MemoryFormat::Contiguous);
}

// cummax and cummin size their results before they call these.
void cumulative_extreme(const at::Tensor&, at::Tensor&, at::Tensor&, int64_t) {}

}  // namespace

TORCH_LIBRARY_IMPL(aten, Meta, m) {
  m.impl("_masked_softmax", masked_softmax);
  m.impl("_masked_softmax_backward", masked_softmax_backward);
  m.impl("multi_margin_loss_backward", multi_margin_backward);
  m.impl("multilabel_margin_loss_backward", multilabel_margin_backward);
  m.impl("_cummax_helper", cumulative_extreme);
  m.impl("_cummin_helper", cumulative_extreme);
}

}  // namespace tt
