// SPDX-License-Identifier: Apache-2.0
//
// Assertions on tensors' values. They read the value where they stand, as on the CPU.
#include <ATen/ops/_assert_async.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/is_nonzero.h>
#include <torch/library.h>

#include "shim.h"

namespace tt {

namespace {

void assert_async(const at::Tensor& self) {
  TORCH_CHECK(at::is_nonzero(self), "Expected Tensor with single nonzero value, but got zero");
}
void assert_async_msg(const at::Tensor& self, c10::string_view text) {
  TORCH_CHECK(at::is_nonzero(self), text.empty() ? "Assertion is failed" : text);
}
at::Tensor functional_assert(const at::Tensor& self, c10::string_view text, const at::Tensor& token) {
  assert_async_msg(self, text);
  return token.clone();
}
at::Tensor make_dep_token(std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                          std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat>) {
  return at::empty({}, at::TensorOptions().dtype(dtype).device(device));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_assert_async", assert_async);
  m.impl("_assert_async.msg", assert_async_msg);
  m.impl("_functional_assert_async.msg", functional_assert);
  m.impl("_make_dep_token", make_dep_token);
}

}  // namespace tt
