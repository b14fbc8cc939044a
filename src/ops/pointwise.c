// SPDX-License-Identifier: Apache-2.0
//
// Elementwise arithmetic: one and two operands.
#include "ops/op.h"

// Exact in every type.
TT_ROW(neg, "neg(Tensor self) -> Tensor", TT_NO_COMPUTE, TT_NEG);

TT_ROW(exp, "exp(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_EXP);
TT_ROW(log1p, "log1p(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_LOG1P);

// self + alpha * other; alpha is 1 nearly always, and then no input.
static void add_scaled(tt_lower* L, tt_builder* b, tt_prim prim) {
  int args[2] = {0, 1};
  tt_dtype dtype = tt_compute_dtype(L, TT_SAME, 2, args);
  tt_val x = tt_arg_as(L, 0, dtype);
  tt_val y = tt_arg_as(L, 1, dtype);
  tt_val alpha = tt_arg_scalar(L, 2, dtype);
  double one;
  if (!tt_val_is_const(b, alpha, &one) || one != 1) {
    y = tt_bin(b, dtype == TT_BOOL ? TT_AND : TT_MUL, y, alpha);
  }
  tt_out(L, 0, tt_bin(b, dtype == TT_BOOL ? TT_OR : prim, x, y));
}
TT_OP(add, "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor") { add_scaled(L, b, TT_ADD); }
TT_OP(sub, "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor") { add_scaled(L, b, TT_SUB); }
TT_ROW2(mul, "mul.Tensor(Tensor self, Tensor other) -> Tensor", TT_SAME, TT_MUL);
