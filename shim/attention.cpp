// SPDX-License-Identifier: Apache-2.0
//
// Which kernel scaled_dot_product_attention takes: ours for ordinary calls, PyTorch's composition for the rest.
#include <ATen/Context.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <torch/library.h>

#include "shim.h"

namespace tt {

namespace {

// Sizes may be symbols (torch.compile, dynamic=True); where one decides nothing, the call counts as ordinary or not as is safe.
bool same(const c10::SymInt& a, const c10::SymInt& b) {
  return TORCH_GUARD_OR_FALSE(a.sym_eq(b));
}
bool has_elements(const at::Tensor& t) {
  return TORCH_GUARD_OR_TRUE(t.sym_numel().sym_gt(0));
}

bool heads_fit(const c10::SymInt& query, const c10::SymInt& key, bool enable_gqa) {
  return same(query, key) || (enable_gqa && TORCH_GUARD_OR_FALSE(key.sym_gt(0)) && same(query % key, 0));
}

int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& mask, double, bool is_causal, std::optional<double>, bool enable_gqa) {
  bool ours = at::globalContext().userEnabledOverrideableSDP();
  ours = ours && query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && at::isFloatingType(query.scalar_type());
  ours = ours && query.scalar_type() == key.scalar_type() && key.scalar_type() == value.scalar_type();
  if (ours) {
    auto q = query.sym_sizes();
    auto k = key.sym_sizes();
    auto v = value.sym_sizes();
    ours = heads_fit(q[1], k[1], enable_gqa) && same(k[1], v[1]) && same(q[0], k[0]) && same(k[0], v[0]) &&
           same(q[3], k[3]) && same(k[2], v[2]) && has_elements(query) && has_elements(key) && has_elements(value) &&
           !(mask.has_value() && (is_causal || mask->dim() > 4));
  }
  return static_cast<int64_t>(ours ? sdp::SDPBackend::overrideable : sdp::SDPBackend::math);
}

int64_t choice(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& mask, double dropout_p, bool is_causal, std::optional<double> scale,
               bool enable_gqa) {
  return choose(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_sdp_choice", choice);
}

}  // namespace

}  // namespace tt

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &tt::choose)
}  // namespace at::native
