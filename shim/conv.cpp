// SPDX-License-Identifier: Apache-2.0
//
// Shapes and strides of convolution_overrideable, for which PyTorch has no Meta kernel. Results are channels-last where the CPU's are.
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "shim.h"

namespace tt {

namespace {

c10::MemoryFormat format_for(const at::Tensor& input, const at::Tensor& weight) {
  if (input.scalar_type() == at::kDouble || weight.scalar_type() == at::kDouble) {
    return c10::MemoryFormat::Contiguous;
  }
  for (c10::MemoryFormat format : {c10::MemoryFormat::ChannelsLast, c10::MemoryFormat::ChannelsLast3d}) {
    if (input.suggest_memory_format() == format || weight.suggest_memory_format() == format) {
      return input.dim() == (format == c10::MemoryFormat::ChannelsLast ? 4 : 5) ? format
                                                                                : c10::MemoryFormat::Contiguous;
    }
  }
  return c10::MemoryFormat::Contiguous;
}

at::Tensor shape(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>&,
                 at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                 at::IntArrayRef output_padding, int64_t groups) {
  auto sizes = transposed ? at::native::conv_input_size(input.sizes(), weight.sizes(), padding, output_padding, stride,
                                                        dilation, groups)
                          : at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  return at::empty(sizes, input.options(), format_for(input, weight));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> backward_shapes(const at::Tensor& grad_output, const at::Tensor& input,
                                                               const at::Tensor& weight, at::IntArrayRef,
                                                               at::IntArrayRef, at::IntArrayRef, bool, at::IntArrayRef,
                                                               int64_t, std::array<bool, 3> output_mask) {
  c10::MemoryFormat format = format_for(input, weight);
  std::tuple<at::Tensor, at::Tensor, at::Tensor> result;
  if (output_mask[0]) {
    std::get<0>(result) = at::empty(input.sizes(), input.options(), format);
  }
  if (output_mask[1]) {
    std::get<1>(result) = at::empty(weight.sizes(), weight.options(), format);
  }
  if (output_mask[2]) {
    std::get<2>(result) = at::empty({grad_output.size(1)}, weight.options());
  }
  return result;
}

TORCH_LIBRARY_IMPL(aten, Meta, m) {
  m.impl("convolution_overrideable", shape);
  m.impl("convolution_backward_overrideable", backward_shapes);
}

}  // namespace

}  // namespace tt
