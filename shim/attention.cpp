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

int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& mask, double, bool is_causal, std::optional<double>, bool enable_gqa) {
  bool ours = at::globalContext().userEnabledOverrideableSDP();
  ours = ours && query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && at::isFloatingType(query.scalar_type());
  ours = ours && query.scalar_type() == key.scalar_type() && key.scalar_type() == value.scalar_type();
  if (ours) {
    bool heads = query.size(1) == key.size(1) || (enable_gqa && key.size(1) > 0 && query.size(1) % key.size(1) == 0);
    ours = heads && key.size(1) == value.size(1) && query.size(0) == key.size(0) && key.size(0) == value.size(0) &&
           query.size(3) == key.size(3) && key.size(2) == value.size(2) && query.numel() > 0 && key.numel() > 0 &&
           value.numel() > 0 && !(mask.has_value() && (is_causal || mask->dim() > 4));
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
