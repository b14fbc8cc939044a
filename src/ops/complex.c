// SPDX-License-Identifier: Apache-2.0
//
// Complex numbers: made of parts, their angle, their conjugate. (real, imag and view_as_real are views.)
#include <math.h>

#include "ops/pointwise.h"

// Parts of two dtypes, or neither f32 nor f64: the CPU's kernel refuses them in its own words.
static void check_parts(tt_lower* L) {
  tt_dtype first = tt_arg_info(L, 0)->dtype;
  if (first != tt_arg_info(L, 1)->dtype || tt_out_type(L, 0)->dtype != tt_dtype_complex(first) ||
      (first != TT_F32 && first != TT_F64)) {
    tt_unsupported(L, "expected two parts of one dtype, f32 or f64");
  }
}
TT_OP(complex, "complex(Tensor real, Tensor imag) -> Tensor") {
  tt_dtype part = tt_dtype_real(tt_out_type(L, 0)->dtype);
  check_parts(L);
  tt_out(L, 0, tt_bin(b, TT_COMPLEX, tt_arg_as(L, 0, part), tt_arg_as(L, 1, part)));
}
TT_OP(polar, "polar(Tensor abs, Tensor angle) -> Tensor") {
  tt_dtype part = tt_dtype_real(tt_out_type(L, 0)->dtype);
  check_parts(L);
  tt_val size = tt_arg_as(L, 0, part);
  tt_val angle = tt_arg_as(L, 1, part);
  tt_val re = tt_mul(b, size, tt_unary(b, TT_COSINE, angle));
  tt_out(L, 0, tt_binary(b, TT_COMPLEX, re, tt_mul(b, size, tt_unary(b, TT_SINE, angle))));
}
TT_OP(conj_physical, "_conj_physical(Tensor self) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  tt_out(L, 0, tt_dtype_is_complex(tt_dtype_of(b, x)) ? tt_unary(b, TT_CHLO_CONJ, x) : x);
}
TT_OP(conj_physical_in_place, "conj_physical_(Tensor(a!) self) -> Tensor(a!)") {
  tt_val x = tt_arg(L, 0);
  tt_out(L, 0, tt_dtype_is_complex(tt_dtype_of(b, x)) ? tt_unary(b, TT_CHLO_CONJ, x) : x);
}
TT_OP(conj_physical_out, "conj_physical.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)") {
  tt_val x = tt_arg(L, 0);
  tt_out(L, 0, tt_dtype_is_complex(tt_dtype_of(b, x)) ? tt_unary(b, TT_CHLO_CONJ, x) : x);
}

TT_OP(angle, "angle(Tensor self) -> Tensor") {
  tt_val x = tt_arg_real(L, 0);
  if (tt_dtype_is_complex(tt_dtype_of(b, x))) {
    tt_out(L, 0, tt_binary(b, TT_ATAN2, tt_unary(b, TT_IMAG, x), tt_unary(b, TT_REAL, x)));
    return;
  }
  tt_val half_turn = tt_where(b, tt_test_f(b, TT_LT, x, 0), tt_full_like(b, x, M_PI), tt_full_like(b, x, 0));
  tt_out(L, 0, tt_where(b, tt_is_nan(b, x), x, half_turn));
}
