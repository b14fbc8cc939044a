// SPDX-License-Identifier: Apache-2.0
//
// arange.start_out: its numbers decide the size of `out`, yet are run-time inputs of its program. So the size is settled here, before
// the call is looked up: two calls of one key then have outputs of one size.
#include <ATen/ops/arange.h>
#include <torch/library.h>

#include <cmath>
#include <cstring>

#include "boxed.h"

namespace tt {

namespace {

// PyTorch's count of elements, or -1 where its own kernel has an error to raise.
int64_t count(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, c10::ScalarType dtype) {
  double first = start.toDouble(), last = end.toDouble(), stride = step.toDouble();
  if (!std::isfinite(first) || !std::isfinite(last) || stride == 0 || !(stride > 0 ? last >= first : last <= first)) {
    return -1;
  }
  if (dtype == at::kLong) {
    int64_t a = start.to<int64_t>(), z = end.to<int64_t>(), s = step.to<int64_t>();
    return s == 0 ? -1 : (z - a + s - (s > 0 ? 1 : -1)) / s;
  }
  double size = std::ceil((last - first) / stride);
  return size < 9e18 ? static_cast<int64_t>(size) : -1;
}

const tt_op* find_entry(const char* name) {
  for (int i = 0; i < tt_op_count(); ++i) {
    const char* schema = tt_op_schema(tt_op_at(i));
    if (std::strncmp(schema, name, std::strlen(name)) == 0) {
      return tt_op_at(i);
    }
  }
  return nullptr;
}

at::Tensor& arange_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::arange", "start_out");
  static const Overload overload = read_schema(op.schema(), find_entry("arange.start_out("));
  int64_t size =
      start.isComplex() || end.isComplex() || step.isComplex() ? -1 : count(start, end, step, out.scalar_type());
  if (size >= 0) {
    if (out.numel() != size) {
      if (out.numel() > 0) {
        TORCH_WARN("The number of elements in the out tensor of shape ", out.sizes(), " is ", out.numel(),
                   " which does not match the computed number of elements ", size,
                   ". Note that this may occur as a result of rounding error. The out tensor will be resized to a "
                   "tensor of shape (",
                   size, ",).");
      }
      out.resize_({size});
    }
    if (size == 0) {
      return out;
    }
  }
  torch::jit::Stack stack{start, end, step, out};
  run(op, overload, &stack);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("arange.start_out", arange_out);
}

}  // namespace

}  // namespace tt
