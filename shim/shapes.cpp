// SPDX-License-Identifier: Apache-2.0
//
// Shapes of operators of which PyTorch has no Meta kernel, or one that is wrong or words its errors otherwise than the CPU.
// The latter stand in library "tt_shapes" under the operator's own schema (shim/infer.cpp asks there first).
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/reflection_pad2d.h>
#include <ATen/ops/reflection_pad3d.h>
#include <ATen/ops/replication_pad2d.h>
#include <ATen/ops/replication_pad3d.h>
#include <torch/library.h>

#include <set>

#include "infer.h"

namespace tt {

namespace {

std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor&, const at::Tensor&, const at::Tensor& hx,
                                            const std::optional<at::Tensor>&, const std::optional<at::Tensor>&) {
  return {at::empty_like(hx, at::MemoryFormat::Contiguous), at::empty({hx.size(0), 5 * hx.size(1)}, hx.options())};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_cell_backward(const at::Tensor& grad,
                                                                                         const at::Tensor& workspace,
                                                                                         bool has_bias) {
  int64_t gates = 3 * (workspace.size(1) / 5);
  auto bias = [&] { return has_bias ? at::empty({gates}, grad.options()) : at::Tensor(); };
  return {at::empty({workspace.size(0), gates}, grad.options()), at::empty({workspace.size(0), gates}, grad.options()),
          at::empty_like(grad, at::MemoryFormat::Contiguous), bias(), bias()};
}

at::Tensor fractional_max_pool3d_backward(const at::Tensor&, const at::Tensor& self, at::IntArrayRef, at::IntArrayRef,
                                          const at::Tensor&) {
  return at::empty_like(self, at::MemoryFormat::Contiguous);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor&,
                                                         const at::Tensor& cx, const std::optional<at::Tensor>&,
                                                         const std::optional<at::Tensor>&) {
  return {at::empty_like(cx, at::MemoryFormat::Contiguous), at::empty_like(cx, at::MemoryFormat::Contiguous),
          at::empty_like(input_gates, at::MemoryFormat::Contiguous)};
}

std::tuple<at::Tensor, at::Tensor> geqrf(const at::Tensor& self) {
  TORCH_CHECK(self.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  at::Tensor columns = at::empty(self.mT().sizes(), self.options()).mT();
  at::DimVector sizes(self.sizes().slice(0, static_cast<size_t>(self.dim() - 1)));
  sizes.back() = std::min(self.size(-2), self.size(-1));
  return {columns, at::empty(sizes, self.options())};
}

at::Tensor like_first(const at::Tensor& self, std::optional<at::Generator>) {
  return at::empty(self.sizes(), self.options());
}
at::Tensor binomial(const at::Tensor& count, const at::Tensor&, std::optional<at::Generator>) {
  return at::empty(count.sizes(), count.options());
}

at::Tensor dot(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", other.dim(),
              "D tensors");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "dot : expected both vectors to have same dtype, but found ",
              self.scalar_type(), " and ", other.scalar_type());
  TORCH_CHECK(self.numel() == other.numel(), "inconsistent tensor size, expected tensor [", self.numel(), "] and src [",
              other.numel(), "] to have the same number of elements, but got ", self.numel(), " and ", other.numel(),
              " elements respectively");
  return at::empty({}, self.options());
}

at::Tensor multinomial(const at::Tensor& self, c10::SymInt count, bool replacement, std::optional<at::Generator>) {
  int64_t samples = count.expect_int();
  TORCH_CHECK(self.dim() > 0 && self.dim() <= 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  TORCH_CHECK(samples > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(replacement || samples <= self.size(-1),
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  TORCH_CHECK(self.size(-1) <= (1 << 24), "number of categories cannot exceed 2^24");
  auto options = self.options().dtype(at::kLong);
  return self.dim() == 1 ? at::empty({samples}, options) : at::empty({self.size(0), samples}, options);
}

void check_unpool(const at::Tensor& self, const at::Tensor& indices, int64_t spatial, const char* name) {
  TORCH_CHECK(indices.scalar_type() == at::kLong, "elements in indices should be type int64");
  TORCH_CHECK(self.dim() == spatial + 1 || self.dim() == spatial + 2, "Input to max_unpooling", spatial,
              "d should be a ", spatial + 1, "d or ", spatial + 2, "d Tensor, but got a tensor with ", self.dim(),
              " dimensions.");
  TORCH_CHECK(self.sizes() == indices.sizes(), "Expected shape of indices to be same as that of the input tensor (",
              self.sizes(), ") but got indices tensor with shape: ", indices.sizes());
  for (int64_t d = 1; d < self.dim(); ++d) {
    TORCH_CHECK(self.size(d) > 0, name, "(): Expected input to have non-zero size for non-batch dimensions, but got ",
                self.sizes(), " with dimension ", d, " being empty.");
  }
}
at::DimVector unpooled(const at::Tensor& self, c10::SymIntArrayRef output_size) {
  at::DimVector sizes(self.sizes());
  size_t spatial = output_size.size();
  for (size_t d = 0; d < spatial; ++d) {
    sizes[sizes.size() - spatial + d] = output_size[d].expect_int();
  }
  return sizes;
}
at::Tensor max_unpool2d(const at::Tensor& self, const at::Tensor& indices, c10::SymIntArrayRef output_size) {
  TORCH_CHECK(output_size.size() == 2, "There should be exactly two elements (height, width) in output_size, but got ",
              output_size.size(), " elements.");
  check_unpool(self, indices, 2, "max_unpooling2d_forward_out_cpu");
  return at::empty(unpooled(self, output_size), self.options(), self.suggest_memory_format());
}
at::Tensor max_unpool3d(const at::Tensor& self, const at::Tensor& indices, c10::SymIntArrayRef output_size,
                        at::IntArrayRef stride, at::IntArrayRef padding) {
  TORCH_CHECK(output_size.size() == 3,
              "There should be exactly three elements (depth, height, width) in output_size, but got ",
              output_size.size(), " elements.");
  TORCH_CHECK(stride.size() == 3,
              "There should be exactly three elements (depth, height, width) in stride, but got: ", stride.size(),
              " elements.");
  TORCH_CHECK(padding.size() == 3,
              "There should be exactly three elements (depth, height, width) in padding, but got: ", padding.size(),
              " elements.");
  check_unpool(self, indices, 3, "max_unpooling3d_forward_out_cpu");
  TORCH_CHECK(stride[0] > 0 && stride[1] > 0 && stride[2] > 0,
              "strides should be greater than zero, but got stride: ", stride);
  return at::empty(unpooled(self, output_size), self.options());
}

// PyTorch's shape functions forget the memory format.
template <typename Pad>
at::Tensor padded(const at::Tensor& self, Pad pad) {
  at::Tensor shape;
  try {
    shape = pad();
  } catch (const std::exception& e) {
    throw MetaRefused(e.what());
  }
  return at::empty(shape.sizes(), shape.options().memory_format(self.suggest_memory_format()));
}
at::Tensor reflection_pad2d(const at::Tensor& self, c10::SymIntArrayRef padding) {
  return padded(self, [&] { return at::reflection_pad2d_symint(self, padding); });
}
at::Tensor reflection_pad3d(const at::Tensor& self, c10::SymIntArrayRef padding) {
  return padded(self, [&] { return at::reflection_pad3d_symint(self, padding); });
}
at::Tensor replication_pad2d(const at::Tensor& self, c10::SymIntArrayRef padding) {
  return padded(self, [&] { return at::replication_pad2d_symint(self, padding); });
}
at::Tensor replication_pad3d(const at::Tensor& self, c10::SymIntArrayRef padding) {
  return padded(self, [&] { return at::replication_pad3d_symint(self, padding); });
}

// The CPU's shape function says [0], and its kernel resizes.
at::Tensor isin_element(const at::Scalar&, const at::Tensor& tests, bool, bool) {
  return at::empty({}, tests.options().dtype(at::kBool));
}
at::Tensor& isin_element_out(const at::Scalar&, const at::Tensor&, bool, bool, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kBool, "Expected out tensor to have dtype bool, but got ", out.dtype(),
              " instead");
  at::native::resize_output(out, {});
  return out;
}

// As many losses as rows; a single row without a batch has one number, whatever the reduction.
std::tuple<at::Tensor, at::Tensor> multilabel_margin_loss(const at::Tensor& self, const at::Tensor& target,
                                                          int64_t reduction) {
  bool batch = self.dim() == 2;
  TORCH_CHECK((batch && self.size(1) != 0) || (self.dim() == 1 && self.size(0) != 0) || self.dim() == 0,
              "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", self.sizes());
  TORCH_CHECK(self.dim() == 0 ? target.numel() == 1 && target.dim() <= 1
              : batch         ? target.dim() == 2 && target.sizes() == self.sizes()
                              : target.dim() <= 1 && target.numel() == self.size(0),
              "inconsistent target size: ", target.sizes(), " for input of size: ", self.sizes());
  at::Tensor losses =
      batch && reduction == 0 ? at::empty({self.size(0)}, self.options()) : at::empty({}, self.options());
  return {losses, at::empty(target.sizes(), self.options())};
}

TORCH_LIBRARY_FRAGMENT(tt_shapes, m) {
  m.def("reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor", reflection_pad2d);
  m.def("reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor", reflection_pad3d);
  m.def("replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor", replication_pad2d);
  m.def("replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor", replication_pad3d);
  m.def(
      "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
      "Tensor",
      isin_element);
  m.def(
      "isin.Scalar_Tensor_out(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False, "
      "Tensor(a!) out) -> Tensor(a!)",
      isin_element_out);
  m.def(
      "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)",
      multilabel_margin_loss);
  m.def(
      "_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor? input_bias=None, Tensor? "
      "hidden_bias=None)"
      " -> (Tensor, Tensor, Tensor)",
      lstm_cell);
  m.def("dot(Tensor self, Tensor tensor) -> Tensor", dot);
  m.def("vdot(Tensor self, Tensor other) -> Tensor", dot);
  m.def("multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
        multinomial);
  m.def("max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor", max_unpool2d);
  m.def("max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
        max_unpool3d);
}

at::Tensor segment_reduce(const at::Tensor& data, c10::string_view reduce, const std::optional<at::Tensor>& lengths,
                          const std::optional<at::Tensor>& indices, const std::optional<at::Tensor>& offsets,
                          int64_t axis, bool, const std::optional<at::Scalar>&) {
  axis = c10::maybe_wrap_dim(axis, data.dim());
  static const std::set<c10::string_view> known = {"sum", "prod", "mean", "max", "amax", "min", "amin"};
  TORCH_CHECK(known.count(reduce) != 0, "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
  TORCH_CHECK(!indices.has_value(), "segment_reduce(): indices based reduction is not supported yet.");
  TORCH_CHECK(lengths.has_value() || offsets.has_value(),
              "segment_reduce(): Either lengths or offsets must be defined.");
  const at::Tensor& table = lengths.has_value() ? *lengths : *offsets;
  const char* name = lengths.has_value() ? "lengths" : "offsets";
  TORCH_CHECK(at::isFloatingType(data.scalar_type()), "segment_reduce(): expected floating-point data, got ",
              data.scalar_type());
  TORCH_CHECK(at::isIntegralType(table.scalar_type(), false), "segment_reduce(): expected integral ", name, ", got ",
              table.scalar_type());
  TORCH_CHECK(axis == table.dim() - 1, "segment_reduce(): Expected axis to be the last dimension of ", name,
              " but got ", axis, ".");
  at::DimVector sizes(data.sizes());
  sizes[static_cast<size_t>(axis)] = table.size(-1) - (lengths.has_value() ? 0 : 1);
  return at::empty(sizes, data.options());
}
at::Tensor segment_reduce_backward(const at::Tensor&, const at::Tensor&, const at::Tensor& data, c10::string_view,
                                   const std::optional<at::Tensor>&, const std::optional<at::Tensor>&, int64_t,
                                   const std::optional<at::Scalar>&) {
  return at::empty(data.sizes(), data.options());
}

TORCH_LIBRARY_IMPL(aten, Meta, m) {
  m.impl("segment_reduce", segment_reduce);
  m.impl("_segment_reduce_backward", segment_reduce_backward);
  m.impl("_thnn_fused_gru_cell", gru_cell);
  m.impl("_thnn_fused_gru_cell_backward", gru_cell_backward);
  m.impl("fractional_max_pool3d_backward", fractional_max_pool3d_backward);
  m.impl("geqrf", geqrf);
  m.impl("_sample_dirichlet", like_first);
  m.impl("binomial", binomial);
}

}  // namespace

}  // namespace tt
