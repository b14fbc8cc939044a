// SPDX-License-Identifier: Apache-2.0
//
// torch.autocast("tpu"): the same op lists as on CUDA, everything else falls through.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at::autocast {  // the lists name its types
namespace {

at::Tensor refuse_bce(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast: use "
              "binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss");
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define TT_LOW(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(TT_LOW)
#undef TT_LOW
#define TT_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(TT_FP32)
#undef TT_FP32
#define TT_SET_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(TT_SET_DTYPE)
#undef TT_SET_DTYPE
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
#define TT_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(TT_PROMOTE)
#undef TT_PROMOTE
  m.impl("binary_cross_entropy", TORCH_FN(refuse_bce));
}

}  // namespace
}  // namespace at::autocast
