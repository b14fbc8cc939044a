// SPDX-License-Identifier: Apache-2.0
//
// Copies, conversions and fills.
#include "ops/op.h"

// What `copy_`, `clone`, `contiguous` and `.to` come down to on one device: private to us (src/run/copy.c).
TT_OP(device_copy, "device_copy(Tensor self, Tensor src) -> Tensor") {
  tt_out(L, 0, tt_arg_as(L, 1, tt_out_type(L, 0)->dtype));
}

TT_OP(fill_scalar, "fill.Scalar(Tensor self, Scalar value) -> Tensor") {
  tt_out(L, 0, tt_arg_scalar(L, 1, tt_out_type(L, 0)->dtype));
}
TT_OP(fill_tensor, "fill.Tensor(Tensor self, Tensor value) -> Tensor") {
  tt_out(L, 0, tt_arg_as(L, 1, tt_out_type(L, 0)->dtype));
}
TT_OP(zero, "zero(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_const_i(b, tt_out_type(L, 0)->dtype, 0));
}
