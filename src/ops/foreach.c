// SPDX-License-Identifier: Apache-2.0
//
// The _foreach_ ops: the same function on each tensor of a list, the whole list as one program.
#include <math.h>

#include "ops/activation.h"

// What element j is computed in: PyTorch's result type, 16-bit floats in f32.
static tt_dtype dtype_at(tt_lower* L, int j) {
  return tt_dtype_compute(tt_out_type(L, j)->dtype);
}
static tt_val read_at(tt_lower* L, int i, int j, tt_dtype dtype) {
  return tt_convert(tt_lower_builder(L), tt_arg_at(L, i, j), dtype);
}

// ---- one operand ----------------------------------------------------------------------------------------------------

typedef tt_val (*unary_fn)(tt_builder* b, tt_val x);

// How strong a number class is in promotion.
static int strength(char cls) {
  return cls == 'b' ? 0 : cls == 'c' ? 3 : cls == 'f' ? 2 : 1;
}

static void each_unary(tt_lower* L, tt_builder* b, unary_fn fn) {
  for (int j = 0; j < tt_arg_count(L, 0); ++j) {
    tt_out(L, j, fn(b, read_at(L, 0, j, dtype_at(L, j))));
  }
}
#define EACH(name, fn)                                                     \
  TT_OP(foreach_##name, "_foreach_" #name "(Tensor[] self) -> Tensor[]") { \
    each_unary(L, b, fn);                                                  \
  }
#define EACH_PRIM(name, prim)                          \
  static tt_val prim_##name(tt_builder* b, tt_val x) { \
    return tt_unary(b, prim, x);                       \
  }                                                    \
  EACH(name, prim_##name)

EACH_PRIM(acos, TT_CHLO_ACOS)
EACH_PRIM(asin, TT_CHLO_ASIN)
EACH_PRIM(atan, TT_CHLO_ATAN)
EACH_PRIM(cos, TT_COSINE)
EACH_PRIM(cosh, TT_CHLO_COSH)
EACH_PRIM(erf, TT_CHLO_ERF)
EACH_PRIM(erfc, TT_CHLO_ERFC)
EACH_PRIM(exp, TT_EXP)
EACH_PRIM(expm1, TT_EXPM1)
EACH_PRIM(lgamma, TT_CHLO_LGAMMA)
EACH_PRIM(log, TT_LOG)
EACH_PRIM(log1p, TT_LOG1P)
EACH_PRIM(neg, TT_NEG)
EACH_PRIM(rsqrt, TT_RSQRT)
EACH_PRIM(sigmoid, TT_LOGISTIC)
EACH_PRIM(sin, TT_SINE)
EACH_PRIM(sinh, TT_CHLO_SINH)
EACH_PRIM(sqrt, TT_SQRT)
EACH_PRIM(tan, TT_TAN)
EACH_PRIM(tanh, TT_TANH)
static tt_val sign_of(tt_builder* b, tt_val x) {
  return tt_dtype_is_complex(tt_dtype_of(b, x)) ? tt_builder_fail(b, TT_UNIMPLEMENTED, "sign of a complex number")
                                                : tt_sign(b, x);
}
EACH(sign, sign_of)
EACH(trunc, tt_trunc)

static tt_val log2_of(tt_builder* b, tt_val x) {
  return tt_scale(b, tt_unary(b, TT_LOG, x), M_LOG2E);
}
static tt_val log10_of(tt_builder* b, tt_val x) {
  return tt_scale(b, tt_unary(b, TT_LOG, x), M_LOG10E);
}
static tt_val frac_of(tt_builder* b, tt_val x) {
  return tt_sub(b, x, tt_trunc(b, x));
}
static tt_val reciprocal_of(tt_builder* b, tt_val x) {
  return tt_div(b, tt_like_f(b, x, 1), x);
}
EACH(log2, log2_of)
EACH(log10, log10_of)
EACH(frac, frac_of)
EACH(reciprocal, reciprocal_of)

static tt_val rounded(tt_builder* b, tt_val x, tt_prim prim) {
  return tt_dtype_is_float(tt_dtype_of(b, x)) ? tt_unary(b, prim, x) : x;
}
static tt_val ceil_of(tt_builder* b, tt_val x) {
  return rounded(b, x, TT_CEIL);
}
static tt_val floor_of(tt_builder* b, tt_val x) {
  return rounded(b, x, TT_FLOOR);
}
static tt_val round_of(tt_builder* b, tt_val x) {
  return rounded(b, x, TT_ROUND_EVEN);
}
EACH(ceil, ceil_of)
EACH(floor, floor_of)
EACH(round, round_of)

TT_OP(foreach_abs, "_foreach_abs(Tensor[] self) -> Tensor[]") {
  for (int j = 0; j < tt_arg_count(L, 0); ++j) {
    tt_val x = tt_arg_at(L, 0, j);
    tt_out(L, j, tt_dtype_is_signed(tt_dtype_of(b, x)) ? tt_unary(b, TT_ABS, x) : x);
  }
}
TT_OP(foreach_zero, "_foreach_zero(Tensor[] self) -> Tensor[] self_out") {
  for (int j = 0; j < tt_arg_count(L, 0); ++j) {
    tt_out(L, j, tt_const_i(b, tt_out_type(L, j)->dtype, 0));
  }
}
TT_OP(foreach_clone, "_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]") {
  for (int j = 0; j < tt_arg_count(L, 0); ++j) {
    tt_out(L, j, tt_arg_at(L, 0, j));
  }
}

// ---- two operands ---------------------------------------------------------------------------------------------------

typedef tt_val (*binary_fn)(tt_builder* b, tt_val x, tt_val y);
typedef enum form { NUMBER, NUMBERS, LIST, TENSOR } form;

static tt_val other_at(tt_lower* L, int i, int j, form kind, tt_dtype dtype) {
  switch (kind) {
    case NUMBER:
      return tt_arg_scalar(L, i, dtype);
    case NUMBERS:
      return tt_arg_scalar_at(L, i, j, dtype);
    case LIST:
      return read_at(L, i, j, dtype);
    default:
      return tt_arg_as(L, i, dtype);
  }
}
static bool is_bool(tt_lower* L, int i, int j, form kind) {
  const tt_tensor* t = kind == LIST ? tt_arg_info_at(L, i, j) : kind == TENSOR ? tt_arg_info(L, i) : NULL;
  return t != NULL ? t->dtype == TT_BOOL : tt_arg_number_class_at(L, i, j) == 'b';
}
// PyTorch refuses to write a float into an integer, and the like; its CPU kernel says so in its own words.
static void check_cast(tt_lower* L, int i, int j, form kind) {
  const tt_tensor* t = kind == LIST ? tt_arg_info_at(L, i, j) : kind == TENSOR ? tt_arg_info(L, i) : NULL;
  char cls = t != NULL ? tt_dtype_class(t->dtype) : tt_arg_number_class_at(L, i, j);
  if (strength(cls) > strength(tt_dtype_class(tt_out_type(L, j)->dtype))) {
    tt_unsupported(L, "expected operands that can be cast to the result's dtype");
  }
}
static tt_val difference_of(tt_builder* b, tt_val x, tt_val y) {
  return tt_sub(b, x, y);
}
// alpha: the argument that scales the second operand, or -1.
static void each_binary(tt_lower* L, tt_builder* b, form kind, binary_fn fn, int alpha) {
  for (int j = 0; j < tt_arg_count(L, 0); ++j) {
    tt_dtype dtype = dtype_at(L, j);
    tt_val x = read_at(L, 0, j, dtype);
    check_cast(L, 1, j, kind);
    if (fn == difference_of && (is_bool(L, 0, j, LIST) || is_bool(L, 1, j, kind))) {
      tt_unsupported(L, "expected no bool to subtract");
    }
    tt_val y = other_at(L, 1, j, kind, dtype);
    double one;
    tt_val scale = alpha >= 0 ? tt_arg_scalar(L, alpha, dtype) : TT_POISON;
    if (alpha >= 0 && (!tt_val_is_const(b, scale, &one) || one != 1)) {
      y = tt_bin(b, dtype == TT_BOOL ? TT_AND : TT_MUL, y, scale);
    }
    tt_out(L, j, fn(b, x, y));
  }
}
#define EACH2(name, form_name, type, argument, fn)                                               \
  TT_OP(foreach_##name##_##form_name,                                                            \
        "_foreach_" #name "." #form_name "(Tensor[] self, " type " " argument ") -> Tensor[]") { \
    each_binary(L, b, form_name##_FORM, fn, -1);                                                 \
  }
#define EACH2_ALPHA(name, form_name, type, fn)                                                               \
  TT_OP(foreach_##name##_##form_name,                                                                        \
        "_foreach_" #name "." #form_name "(Tensor[] self, " type " other, *, Scalar alpha=1) -> Tensor[]") { \
    each_binary(L, b, form_name##_FORM, fn, 2);                                                              \
  }
#define Scalar_FORM NUMBER
#define ScalarList_FORM NUMBERS
#define List_FORM LIST
#define Tensor_FORM TENSOR

static tt_val sum_of(tt_builder* b, tt_val x, tt_val y) {
  return tt_bin(b, tt_dtype_of(b, x) == TT_BOOL ? TT_OR : TT_ADD, x, y);
}
#define EACH2_SCALARS(name, fn)               \
  EACH2(name, Scalar, "Scalar", "scalar", fn) \
  EACH2(name, ScalarList, "Scalar[]", "scalars", fn)
#define EACH2_ALL(name, fn) \
  EACH2_SCALARS(name, fn)   \
  EACH2(name, List, "Tensor[]", "other", fn)

EACH2_SCALARS(add, sum_of)
EACH2_ALPHA(add, List, "Tensor[]", sum_of)
EACH2_ALPHA(add, Tensor, "Tensor", sum_of)
EACH2_SCALARS(sub, difference_of)
EACH2_ALPHA(sub, List, "Tensor[]", difference_of)
EACH2_ALL(mul, tt_mul)
EACH2(mul, Tensor, "Tensor", "other", tt_mul)
EACH2_ALL(div, tt_div)
EACH2(div, Tensor, "Tensor", "other", tt_div)
EACH2_ALL(maximum, tt_max)
EACH2_ALL(minimum, tt_min)
EACH2_ALL(clamp_min, tt_max)
EACH2_ALL(clamp_max, tt_min)
EACH2(pow, List, "Tensor[]", "exponent", tt_power)
EACH2(pow, ScalarList, "Scalar[]", "exponent", tt_power)
TT_OP(foreach_pow_scalar, "_foreach_pow.Scalar(Tensor[] self, Scalar exponent) -> Tensor[]") {
  for (int j = 0; j < tt_arg_count(L, 0); ++j) {
    tt_dtype dtype = dtype_at(L, j);
    tt_val x = read_at(L, 0, j, dtype);
    bool complex = tt_arg_number_class(L, 1) == 'c';
    tt_out(L, j, complex ? tt_power(b, x, tt_arg_scalar(L, 1, dtype)) : tt_power_f(b, x, tt_arg_float(L, 1)));
  }
}
TT_OP(foreach_pow_base, "_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]") {
  for (int j = 0; j < tt_arg_count(L, 1); ++j) {
    tt_dtype dtype = dtype_at(L, j);
    tt_out(L, j, tt_power(b, tt_arg_scalar(L, 0, dtype), read_at(L, 1, j, dtype)));
  }
}

// ---- three operands -------------------------------------------------------------------------------------------------

static void each_addc(tt_lower* L, tt_builder* b, form kind, binary_fn fn) {
  for (int j = 0; j < tt_arg_count(L, 0); ++j) {
    tt_dtype dtype = dtype_at(L, j);
    tt_val inner = fn(b, read_at(L, 1, j, dtype), read_at(L, 2, j, dtype));
    tt_out(L, j, tt_add_scaled(b, TT_ADD, read_at(L, 0, j, dtype), inner, other_at(L, 3, j, kind, dtype)));
  }
}
#define ADDC_ARGS "(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, "
TT_OP(foreach_addcmul, "_foreach_addcmul.Scalar" ADDC_ARGS "Scalar value=1) -> Tensor[]") {
  each_addc(L, b, NUMBER, tt_mul);
}
TT_OP(foreach_addcmul_list, "_foreach_addcmul.ScalarList" ADDC_ARGS "Scalar[] scalars) -> Tensor[]") {
  each_addc(L, b, NUMBERS, tt_mul);
}
TT_OP(foreach_addcdiv, "_foreach_addcdiv.Scalar" ADDC_ARGS "Scalar value=1) -> Tensor[]") {
  each_addc(L, b, NUMBER, tt_div);
}
TT_OP(foreach_addcdiv_list, "_foreach_addcdiv.ScalarList" ADDC_ARGS "Scalar[] scalars) -> Tensor[]") {
  each_addc(L, b, NUMBERS, tt_div);
}

static void each_lerp(tt_lower* L, tt_builder* b, form kind) {
  for (int j = 0; j < tt_arg_count(L, 0); ++j) {
    tt_dtype dtype = dtype_at(L, j);
    tt_val x = read_at(L, 0, j, dtype);
    tt_out(L, j, tt_lerp(b, x, read_at(L, 1, j, dtype), other_at(L, 2, j, kind, dtype)));
  }
}
TT_OP(foreach_lerp, "_foreach_lerp.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight) -> Tensor[]") {
  each_lerp(L, b, NUMBER);
}
TT_OP(foreach_lerp_numbers, "_foreach_lerp.ScalarList(Tensor[] self, Tensor[] tensors1, Scalar[] weight) -> Tensor[]") {
  each_lerp(L, b, NUMBERS);
}
TT_OP(foreach_lerp_list, "_foreach_lerp.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights) -> Tensor[]") {
  each_lerp(L, b, LIST);
}

// ---- reductions -----------------------------------------------------------------------------------------------------

static tt_val reduce_all(tt_builder* b, tt_reduce_kind kind, tt_val x) {
  int64_t dims[TT_MAX_RANK];
  int rank = tt_rank_of(b, x);
  for (int d = 0; d < rank; ++d) {
    dims[d] = d;
  }
  return tt_reduce(b, kind, x, rank, dims);
}
// Sum of |x|^p, or its p-th root.
static tt_val norm_of(tt_builder* b, tt_val x, double p, bool root) {
  tt_val size = tt_unary(b, TT_ABS, x);
  if (isinf(p) && root) {
    bool empty = tt_type_elements(tt_type_of(b, size)) == 0;
    return empty ? tt_like_f(b, size, 0) : reduce_all(b, p > 0 ? TT_REDUCE_MAX : TT_REDUCE_MIN, size);
  }
  if (p == 0) {
    size = tt_convert(b, tt_test_f(b, TT_NE, size, 0), tt_dtype_of(b, size));
    return reduce_all(b, TT_REDUCE_SUM, size);
  }
  tt_val sum = reduce_all(b, TT_REDUCE_SUM, tt_power_f(b, size, p));
  return root ? tt_power_f(b, sum, 1 / p) : sum;
}
static void each_norm(tt_lower* L, tt_builder* b, bool root) {
  double p = tt_arg_float(L, 1);
  for (int j = 0; j < tt_arg_count(L, 0); ++j) {
    tt_val x = tt_arg_at(L, 0, j);
    tt_dtype dtype = dtype_at(L, j);
    if (strength(tt_dtype_class(tt_dtype_of(b, x))) < 2) {
      tt_unsupported(L, "expected floats");
      return;
    }
    tt_out(L, j,
           norm_of(b, tt_convert(b, x, tt_dtype_is_complex(tt_dtype_of(b, x)) ? tt_dtype_complex(dtype) : dtype), p,
                   root));
  }
}
TT_OP(foreach_norm, "_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]") {
  each_norm(L, b, true);
}
TT_OP(foreach_powsum, "_foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]") {
  each_norm(L, b, false);
}
TT_OP(foreach_max, "_foreach_max(Tensor[] self) -> Tensor[]") {
  for (int j = 0; j < tt_arg_count(L, 0); ++j) {
    tt_out(L, j, reduce_all(b, TT_REDUCE_MAX, tt_arg_at(L, 0, j)));
  }
}
