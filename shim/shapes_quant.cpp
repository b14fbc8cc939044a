// SPDX-License-Identifier: Apache-2.0
//
// Shapes of quantised, grouped and jagged operators of which PyTorch has no Meta kernel, or one for CUDA's limits only.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "shim.h"

namespace tt {

namespace {

using at::Tensor;

void check_grid(int64_t quant_min, int64_t quant_max) {
  TORCH_CHECK(quant_min <= quant_max,
              "`quant_min` should be less than or \
        equal to `quant_max`.");
}
std::tuple<Tensor, Tensor> with_mask(const Tensor& self) {
  return {at::empty_like(self), at::empty_like(self, self.options().dtype(at::kBool))};
}

std::tuple<Tensor, Tensor> per_tensor(const Tensor& self, double, int64_t zero_point, int64_t low, int64_t high) {
  check_grid(low, high);
  TORCH_CHECK(zero_point >= low && zero_point <= high, "`zero_point` must be between `quant_min` and `quant_max`.");
  return with_mask(self);
}
std::tuple<Tensor, Tensor> tensor_qparams(const Tensor& self, const Tensor&, const Tensor&, const Tensor&, int64_t low,
                                          int64_t high) {
  check_grid(low, high);
  return with_mask(self);
}
void check_channels(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis) {
  TORCH_CHECK(axis >= 0 && axis < self.dim(), "`axis` must be between 0 and number of dimensions of input");
  TORCH_CHECK(scale.dim() == 1, "scale should be a 1-D tensor");
  TORCH_CHECK(zero_point.dim() == 1, "zero point should be a 1-D tensor");
  TORCH_CHECK(scale.numel() == zero_point.numel(), "scale and zero-point need to have the same dimensions");
  TORCH_CHECK(scale.numel() == self.size(axis),
              "dimensions of scale and zero-point are not consistent with input tensor");
}
std::tuple<Tensor, Tensor> per_channel(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                                       int64_t low, int64_t high) {
  TORCH_CHECK(scale.scalar_type() == at::kFloat, "Scale must be Float, found ", scale.scalar_type());
  check_grid(low, high);
  check_channels(self, scale, zero_point, axis);
  return with_mask(self);
}
Tensor learnable(const Tensor& self, const Tensor&, const Tensor&, int64_t low, int64_t high, double) {
  check_grid(low, high);
  return at::empty_like(self);
}
Tensor learnable_channel(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis, int64_t low,
                         int64_t high, double) {
  check_grid(low, high);
  check_channels(self, scale, zero_point, axis);
  return at::empty_like(self);
}
std::tuple<Tensor, Tensor, Tensor> learnable_backward(const Tensor&, const Tensor& self, const Tensor& scale,
                                                      const Tensor& zero_point, int64_t, int64_t, double) {
  return {at::empty_like(self), at::empty({1}, scale.options()), at::empty({1}, zero_point.options())};
}
std::tuple<Tensor, Tensor, Tensor> learnable_channel_backward(const Tensor&, const Tensor& self, const Tensor& scale,
                                                              const Tensor& zero_point, int64_t axis, int64_t, int64_t,
                                                              double) {
  check_channels(self, scale, zero_point, axis);
  return {at::empty_like(self), at::empty_like(scale), at::empty_like(zero_point)};
}

Tensor grouped_mm(const Tensor& self, const Tensor& mat2, const std::optional<Tensor>& offs,
                  const std::optional<Tensor>& bias, std::optional<at::ScalarType> out_dtype) {
  TORCH_CHECK(self.dim() == 2 || self.dim() == 3, "mat_a has to be 2 or 3d");
  TORCH_CHECK(mat2.dim() == 2 || mat2.dim() == 3, "mat_b has to be 2 or 3d");
  TORCH_CHECK(self.size(-1) == mat2.size(-2), "contraction dimension of mat_a and mat_b must match");
  TORCH_CHECK(self.scalar_type() == mat2.scalar_type(), "expected mat_a and mat_b of one dtype, got ",
              self.scalar_type(), " and ", mat2.scalar_type());
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "expected mat_a of a floating dtype, got ", self.scalar_type());
  TORCH_CHECK(!bias.has_value(), "Bias not supported yet");
  bool ragged = self.dim() == 2 || mat2.dim() == 2;
  TORCH_CHECK(offs.has_value() == ragged,
              "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d");
  if (ragged) {
    TORCH_CHECK(offs->dim() == 1, "offs has to be 1D");
    TORCH_CHECK(offs->scalar_type() == at::kInt, "Offsets have to be int32");
  }
  auto options = self.options().dtype(out_dtype.value_or(self.scalar_type()));
  if (self.dim() == 2 && mat2.dim() == 2) {
    return at::empty({offs->size(0), self.size(0), mat2.size(1)}, options);
  }
  int64_t groups = self.dim() == 3 ? self.size(0) : mat2.size(0);
  TORCH_CHECK(!ragged || offs->size(0) == groups, "matrix batch sizes have to match");
  if (self.dim() == 2) {
    return at::empty({self.size(0), mat2.size(2)}, options);
  }
  if (mat2.dim() == 2) {
    return at::empty({self.size(1), mat2.size(1)}, options);
  }
  TORCH_CHECK(self.size(0) == mat2.size(0), "batched dimension has to match");
  return at::empty({groups, self.size(1), mat2.size(2)}, options);
}

Tensor convert_weight_to_int4pack(const Tensor& self, int64_t tiles) {
  TORCH_CHECK(self.dim() == 2 && self.scalar_type() == at::kByte,
              "_convert_weight_to_int4pack: expected a uint8 matrix, got ", self.scalar_type(), " of ", self.dim(),
              " dimensions");
  TORCH_CHECK(tiles == 2 || tiles == 4 || tiles == 8,
              "_convert_weight_to_int4pack: expected innerKTiles 2, 4 or 8, got ", tiles);
  TORCH_CHECK(self.size(0) % 8 == 0 && self.size(1) * 2 % (tiles * 16) == 0,
              "_convert_weight_to_int4pack: expected rows in eights and columns in multiples of ", tiles * 16, ", got ",
              self.size(0), " and ", self.size(1) * 2);
  return at::empty({self.size(0) / 8, self.size(1) * 2 / (tiles * 16), 32, tiles / 2}, self.options().dtype(at::kInt));
}
Tensor weight_int4pack_mm(const Tensor& self, const Tensor& mat2, int64_t group, const Tensor& scales) {
  TORCH_CHECK(self.dim() == 2 && at::isFloatingType(self.scalar_type()),
              "_weight_int4pack_mm: expected self to be a floating matrix, got ", self.scalar_type(), " of ",
              self.dim(), " dimensions");
  TORCH_CHECK(mat2.dim() == 4 && mat2.scalar_type() == at::kInt && mat2.size(2) == 32,
              "_weight_int4pack_mm: expected mat2 as _convert_weight_to_int4pack makes it, got ", mat2.scalar_type(),
              " ", mat2.sizes());
  TORCH_CHECK(mat2.size(1) * mat2.size(3) * 32 == self.size(1), "_weight_int4pack_mm: expected ",
              mat2.size(1) * mat2.size(3) * 32, " columns, got ", self.size(1));
  TORCH_CHECK(group == 32 || group == 64 || group == 128 || group == 256,
              "_weight_int4pack_mm: expected qGroupSize 32, 64, 128 or 256, got ", group);
  TORCH_CHECK(self.size(1) % group == 0 && scales.dim() == 3 && scales.size(0) == self.size(1) / group &&
                  scales.size(1) == mat2.size(0) * 8 && scales.size(2) == 2,
              "_weight_int4pack_mm: expected qScaleAndZeros of sizes [", self.size(1) / group, ", ", mat2.size(0) * 8,
              ", 2], got ", scales.sizes());
  return at::empty({self.size(0), mat2.size(0) * 8}, self.options());
}

std::tuple<Tensor, Tensor, Tensor> transform_qkv(const Tensor& qkv, const Tensor&, int64_t heads) {
  TORCH_CHECK(qkv.dim() == 3 && qkv.size(2) % (3 * heads) == 0,
              "_transform_bias_rescale_qkv: expected qkv [batch, rows, 3 * heads * features], got ", qkv.sizes());
  auto part = [&] { return at::empty({qkv.size(0), heads, qkv.size(1), qkv.size(2) / (3 * heads)}, qkv.options()); };
  return {part(), part(), part()};
}

Tensor quantize_per_channel_group(const Tensor& input, const Tensor& scales, const Tensor& zero_points, int64_t low,
                                  int64_t high, at::ScalarType dtype, int64_t size) {
  check_grid(low, high);
  TORCH_CHECK(input.dim() >= 1 && size > 1, "quantize_per_channel_group: expected group_size above 1, got ", size);
  int64_t width = std::min(size, input.size(-1));
  TORCH_CHECK(width > 0 && input.size(-1) % width == 0, "quantize_per_channel_group: expected columns in groups of ",
              width, ", got ", input.size(-1));
  TORCH_CHECK(scales.numel() == input.numel() / width && zero_points.numel() == scales.numel(),
              "quantize_per_channel_group: expected ", input.numel() / width, " scales and zero points, got ",
              scales.numel(), " and ", zero_points.numel());
  return at::empty(input.sizes(), input.options().dtype(dtype));
}

Tensor padded_to_jagged(const Tensor& dense, at::TensorList offsets, std::optional<c10::SymInt> total) {
  TORCH_CHECK(offsets.size() == 1, "_padded_dense_to_jagged_forward: expected one list of offsets, got ",
              offsets.size());
  TORCH_CHECK(total.has_value(), "_padded_dense_to_jagged_forward: expected total_L");
  at::DimVector sizes(dense.sizes().slice(1));
  sizes[0] = total->expect_int();
  return at::empty(sizes, dense.options());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, Meta, m) {
  m.impl("fake_quantize_per_tensor_affine_cachemask", per_tensor);
  m.impl("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", tensor_qparams);
  m.impl("fake_quantize_per_channel_affine_cachemask", per_channel);
  m.impl("_fake_quantize_learnable_per_tensor_affine", learnable);
  m.impl("_fake_quantize_learnable_per_channel_affine", learnable_channel);
  m.impl("_fake_quantize_learnable_per_tensor_affine_backward", learnable_backward);
  m.impl("_fake_quantize_learnable_per_channel_affine_backward", learnable_channel_backward);
  m.impl("_convert_weight_to_int4pack", convert_weight_to_int4pack);
  m.impl("_padded_dense_to_jagged_forward", padded_to_jagged);
  m.impl("_transform_bias_rescale_qkv", transform_qkv);
}

TORCH_LIBRARY_FRAGMENT(tt_shapes, m) {
  m.def(
      "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> "
      "Tensor",
      grouped_mm);
  m.def(
      "quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, "
      "ScalarType dtype, int group_size) -> Tensor",
      quantize_per_channel_group);
  m.def("_weight_int4pack_mm(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor",
        weight_int4pack_mm);
}

}  // namespace tt
