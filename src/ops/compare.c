// SPDX-License-Identifier: Apache-2.0
//
// Comparisons, logic, classification of numbers, choice and clamping.
#include <math.h>

#include "ops/pointwise.h"

#define COMPARISON(id, cmp)                                                         \
  TT_ROW_CMP(id##_tensor, #id ".Tensor(Tensor self, Tensor other) -> Tensor", cmp); \
  TT_ROW_CMP(id##_scalar, #id ".Scalar(Tensor self, Scalar other) -> Tensor", cmp)
COMPARISON(eq, TT_EQ);
COMPARISON(ne, TT_NE);
COMPARISON(lt, TT_LT);
COMPARISON(le, TT_LE);
COMPARISON(gt, TT_GT);
COMPARISON(ge, TT_GE);

static void logical(tt_lower* L, tt_builder* b, tt_prim prim) {
  tt_val x = tt_convert(b, tt_arg(L, 0), TT_BOOL);
  tt_out(L, 0, tt_bin(b, prim, x, tt_convert(b, tt_arg(L, 1), TT_BOOL)));
}
TT_OP(logical_and, "logical_and(Tensor self, Tensor other) -> Tensor") {
  logical(L, b, TT_AND);
}
TT_OP(logical_or, "logical_or(Tensor self, Tensor other) -> Tensor") {
  logical(L, b, TT_OR);
}
TT_OP(logical_xor, "logical_xor(Tensor self, Tensor other) -> Tensor") {
  logical(L, b, TT_XOR);
}
TT_OP(logical_not, "logical_not(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_not(b, tt_convert(b, tt_arg(L, 0), TT_BOOL)));
}

// ---- kinds of numbers -----------------------------------------------------------------------------------------------

TT_OP(isnan, "isnan(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_is_nan(b, tt_arg(L, 0)));
}
TT_OP(isinf, "isinf(Tensor self) -> Tensor") {
  tt_out(L, 0, tt_is_inf(b, tt_arg(L, 0)));
}
static void infinite(tt_lower* L, tt_builder* b, double which) {
  tt_val x = tt_arg(L, 0);
  bool real = tt_dtype_is_float(tt_dtype_of(b, x));
  tt_out(L, 0, real ? tt_test_f(b, TT_EQ, x, which) : tt_expand_like(b, tt_const_i(b, TT_BOOL, 0), x));
}
TT_OP(isposinf, "isposinf(Tensor self) -> Tensor") {
  infinite(L, b, (double)INFINITY);
}
TT_OP(isneginf, "isneginf(Tensor self) -> Tensor") {
  infinite(L, b, -(double)INFINITY);
}
TT_OP(isfinite, "isfinite(Tensor self) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  tt_out(L, 0, tt_not(b, tt_or(b, tt_is_nan(b, x), tt_is_inf(b, x))));
}

// ---- choice ---------------------------------------------------------------------------------------------------------

TT_OP(where, "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor") {
  tt_dtype dtype = tt_common_dtype2(L, 1, 2);
  tt_val x = tt_arg_as(L, 1, dtype);
  tt_val y = tt_arg_as(L, 2, dtype);
  tt_out(L, 0, tt_where(b, tt_convert(b, tt_arg(L, 0), TT_BOOL), x, y));
}

// Limits low and high: argument numbers, -1 for none.
static void clamp(tt_lower* L, tt_builder* b, int low, int high) {
  int args[3] = {0, low, high};
  int n = 1;
  for (int k = 1; k < 3; ++k) {
    if (args[k] >= 0 && tt_arg_has(L, args[k])) {
      args[n++] = args[k];
    }
  }
  tt_dtype dtype = tt_common_dtype(L, n, args);
  tt_val x = tt_arg_as(L, 0, dtype);
  if (low >= 0 && tt_arg_has(L, low)) {
    x = tt_max(b, x, tt_arg_either(L, low, dtype));
  }
  if (high >= 0 && tt_arg_has(L, high)) {
    x = tt_min(b, x, tt_arg_either(L, high, dtype));
  }
  tt_out(L, 0, x);
}
TT_OP(clamp, "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor") {
  clamp(L, b, 1, 2);
}
TT_OP(clamp_tensor, "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor") {
  clamp(L, b, 1, 2);
}
TT_OP(clamp_min, "clamp_min(Tensor self, Scalar min) -> Tensor") {
  clamp(L, b, 1, -1);
}
TT_OP(clamp_min_tensor, "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor") {
  clamp(L, b, 1, -1);
}
TT_OP(clamp_max, "clamp_max(Tensor self, Scalar max) -> Tensor") {
  clamp(L, b, -1, 1);
}
TT_OP(clamp_max_tensor, "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor") {
  clamp(L, b, -1, 1);
}

// ---- membership -----------------------------------------------------------------------------------------------------

// Each element against each test element; XLA fuses the comparison into the reduction.
static void is_in(tt_lower* L, tt_builder* b) {
  tt_dtype dtype = tt_common_dtype2(L, 0, 1);
  tt_val x = tt_arg_either(L, 0, dtype);
  tt_val tests = tt_flatten(b, tt_arg_either(L, 1, dtype));
  int rank = tt_rank_of(b, x);
  int64_t last = rank;
  tt_val equal = tt_test(b, TT_EQ, tt_unsqueeze(b, x, rank), tests);
  tt_val found = tt_reduce(b, TT_REDUCE_OR, equal, 1, &last);
  tt_out(L, 0, tt_arg_bool(L, 3) ? tt_not(b, found) : found);
}
#define IS_IN(id, overload, first, second)                                                                          \
  TT_OP(id, "isin." overload "(" first ", " second ", *, bool assume_unique=False, bool invert=False) -> Tensor") { \
    is_in(L, b);                                                                                                    \
  }
IS_IN(isin, "Tensor_Tensor", "Tensor elements", "Tensor test_elements")
IS_IN(isin_scalar, "Tensor_Scalar", "Tensor elements", "Scalar test_element")
IS_IN(isin_element, "Scalar_Tensor", "Scalar element", "Tensor test_elements")
