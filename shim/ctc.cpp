// SPDX-License-Identifier: Apache-2.0
//
// CTC loss with lengths given on the host: they become tensors, and joined targets rows of a matrix, so that the program depends
// on sizes only.
#include <ATen/Functions.h>
#include <torch/library.h>

#include <algorithm>
#include <numeric>

#include "shim.h"

namespace tt {

namespace {

using at::Tensor;

struct Lengths {
  Tensor input, target, rows;
};

Tensor to_device(at::IntArrayRef values, const Tensor& like) {
  return at::tensor(values, at::TensorOptions(at::kLong)).to(like.device());
}

Lengths lengths_of(const Tensor& log_probs, const Tensor& targets, at::IntArrayRef input, at::IntArrayRef target) {
  int64_t batch = log_probs.size(1);
  TORCH_CHECK(log_probs.dim() == 3 && static_cast<int64_t>(input.size()) == batch,
              "input_lengths must be of size batch_size");
  TORCH_CHECK(static_cast<int64_t>(target.size()) == batch, "target_lengths must be of size batch_size");
  for (int64_t n : input) {
    TORCH_CHECK(n >= 0 && n <= log_probs.size(0), "Expected input_lengths to have value at most ", log_probs.size(0),
                ", but got value ", n);
  }
  int64_t longest = target.empty() ? 0 : *std::max_element(target.begin(), target.end());
  Lengths result{to_device(input, log_probs), to_device(target, log_probs), targets};
  if (targets.dim() == 1) {
    std::vector<int64_t> starts(target.size(), 0);
    std::partial_sum(target.begin(), target.end() - (target.empty() ? 0 : 1),
                     starts.begin() + (target.empty() ? 0 : 1));
    TORCH_CHECK(target.empty() || starts.back() + target.back() <= targets.numel(),
                "Expected tensor to have size at least ", starts.back() + target.back(),
                " at dimension 0, but got size ", targets.numel());
    Tensor places = at::add(to_device(starts, log_probs).unsqueeze(1), at::arange(longest, result.input.options()));
    places = at::clamp_max(places, std::max<int64_t>(targets.numel() - 1, 0));
    result.rows = longest == 0 ? at::zeros({batch, 0}, targets.options()) : at::take(targets, places);
  } else {
    TORCH_CHECK(targets.size(1) >= longest, "Expected tensor to have size at least ", longest,
                " at dimension 1, but got size ", targets.size(1));
  }
  return result;
}

std::tuple<Tensor, Tensor> ctc_loss(const Tensor& log_probs, const Tensor& targets, at::IntArrayRef input,
                                    at::IntArrayRef target, int64_t blank, bool zero_infinity) {
  TORCH_CHECK(0 <= blank && blank < log_probs.size(2), "blank must be in label range");
  Lengths at = lengths_of(log_probs, targets, input, target);
  return at::_ctc_loss(log_probs, at.rows, at.input, at.target, blank, zero_infinity);
}

Tensor ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, at::IntArrayRef input,
                         at::IntArrayRef target, const Tensor& loss, const Tensor& alpha, int64_t blank,
                         bool zero_infinity) {
  Lengths at = lengths_of(log_probs, targets, input, target);
  return at::_ctc_loss_backward(grad, log_probs, at.rows, at.input, at.target, loss, alpha, blank, zero_infinity);
}

// What the tensor forms look like.
std::tuple<Tensor, Tensor> ctc_loss_meta(const Tensor& log_probs, const Tensor& targets, const Tensor&, const Tensor&,
                                         int64_t, bool) {
  int64_t batch = log_probs.size(1);
  return {at::empty({batch}, log_probs.options()),
          at::empty({batch, log_probs.size(0), 2 * targets.size(1) + 1}, log_probs.options())};
}
Tensor ctc_loss_backward_meta(const Tensor&, const Tensor& log_probs, const Tensor&, const Tensor&, const Tensor&,
                              const Tensor&, const Tensor&, int64_t, bool) {
  return at::empty_like(log_probs, at::MemoryFormat::Contiguous);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_ctc_loss", ctc_loss);
  m.impl("_ctc_loss_backward", ctc_loss_backward);
}

TORCH_LIBRARY_IMPL(aten, Meta, m) {
  m.impl("_ctc_loss.Tensor", ctc_loss_meta);
  m.impl("_ctc_loss_backward.Tensor", ctc_loss_backward_meta);
}

}  // namespace tt
