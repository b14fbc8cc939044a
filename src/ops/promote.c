// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's type promotion, and the lowerings of one-row ops.
#include "ops/lower.h"

// Order of categories: bool < integer < float < complex.
static int category(tt_dtype dtype) {
  switch (tt_dtype_class(dtype)) {
    case 'b':
      return 0;
    case 'u':
    case 'i':
      return 1;
    case 'f':
      return 2;
    default:
      return 3;
  }
}

static tt_dtype promote_integers(tt_dtype a, tt_dtype c) {
  bool sa = tt_dtype_is_signed(a);
  bool sc = tt_dtype_is_signed(c);
  size_t na = tt_dtype_size(a);
  size_t nc = tt_dtype_size(c);
  if (sa == sc) {
    return na >= nc ? a : c;
  }
  tt_dtype sig = sa ? a : c;
  tt_dtype uns = sa ? c : a;
  if (tt_dtype_size(sig) > tt_dtype_size(uns)) {
    return sig;
  }
  // u8 with i8 gives i16; with wider unsigned types PyTorch refuses before it comes here.
  return tt_dtype_size(uns) == 1 ? TT_I16 : tt_dtype_size(uns) == 2 ? TT_I32 : TT_I64;
}

static tt_dtype promote_floats(tt_dtype a, tt_dtype c) {
  if (a == c) {
    return a;
  }
  size_t na = tt_dtype_size(a);
  size_t nc = tt_dtype_size(c);
  if (na == nc) {
    return na == 2 ? TT_F32 : a;  // f16 with bf16
  }
  return na > nc ? a : c;
}

tt_dtype tt_promote_dtypes(tt_dtype a, tt_dtype c) {
  if (a == c || c == TT_DTYPE_INVALID) {
    return a;
  }
  if (a == TT_DTYPE_INVALID) {
    return c;
  }
  int ka = category(a);
  int kc = category(c);
  if (ka < kc) {
    tt_dtype swap = a;
    a = c;
    c = swap;
    int k = ka;
    ka = kc;
    kc = k;
  }
  if (ka == 3) {
    if (kc < 2) {
      return a;
    }
    return tt_dtype_complex(promote_floats(tt_dtype_real(a), tt_dtype_real(c)));
  }
  if (ka != kc) {
    return a;
  }
  return ka == 2 ? promote_floats(a, c) : promote_integers(a, c);
}

tt_dtype tt_default_float(const tt_lower* L, tt_dtype dtype) {
  tt_dtype real = L->call->default_float == TT_DTYPE_INVALID ? TT_F32 : L->call->default_float;
  return category(dtype) < 2 ? real : dtype;
}

// The dtype a lone number of this class has, next to nothing stronger.
static tt_dtype number_dtype(const tt_lower* L, char cls) {
  tt_dtype real = tt_default_float(L, TT_BOOL);
  return cls == 'b' ? TT_BOOL : cls == 'i' ? TT_I64 : cls == 'f' ? real : tt_dtype_complex(real);
}

tt_dtype tt_common_dtype(const tt_lower* L, int n, const int* args) {
  // As in c10's ResultTypeState: a weaker kind of operand counts only if its category is higher.
  tt_dtype dimensioned = TT_DTYPE_INVALID;
  tt_dtype zero_dim = TT_DTYPE_INVALID;
  tt_dtype numbers = TT_DTYPE_INVALID;
  for (int k = 0; k < n; ++k) {
    const tt_tensor* t = tt_arg_info(L, args[k]);
    if (t == NULL) {
      if (tt_arg_has(L, args[k])) {
        numbers = tt_promote_dtypes(numbers, number_dtype(L, tt_arg_number_class(L, args[k])));
      }
    } else if (t->wrapped) {
      bool inexact = tt_dtype_is_complex(t->dtype) || tt_dtype_is_float(t->dtype);
      char cls = tt_dtype_is_complex(t->dtype) ? 'c' : 'f';
      numbers = tt_promote_dtypes(numbers, inexact ? number_dtype(L, cls) : t->dtype);
    } else if (t->rank == 0) {
      zero_dim = tt_promote_dtypes(zero_dim, t->dtype);
    } else {
      dimensioned = tt_promote_dtypes(dimensioned, t->dtype);
    }
  }
  tt_dtype result = dimensioned;
  tt_dtype weaker[2] = {zero_dim, numbers};
  for (int k = 0; k < 2; ++k) {
    tt_dtype w = weaker[k];
    if (w == TT_DTYPE_INVALID) {
      continue;
    }
    if (result == TT_DTYPE_INVALID) {
      result = w;
    } else if (category(w) > category(result)) {
      // A complex number keeps the precision of the float it meets.
      result =
          category(w) == 3 && category(result) == 2 && k == 1 ? tt_dtype_complex(result) : tt_promote_dtypes(result, w);
    }
  }
  return result;
}

tt_dtype tt_common_dtype2(const tt_lower* L, int i, int j) {
  int args[2] = {i, j};
  return tt_common_dtype(L, 2, args);
}

tt_dtype tt_compute_dtype(const tt_lower* L, tt_promotion promotion, int n, const int* args) {
  tt_dtype common = tt_common_dtype(L, n, args);
  if (promotion == TT_INT_TO_FLOAT) {
    common = tt_default_float(L, common);
  }
  return promotion == TT_NO_COMPUTE ? common : tt_dtype_compute(common);
}

void tt_row_unary(tt_lower* L, tt_builder* b, tt_promotion promotion, tt_prim prim) {
  int args[1] = {0};
  tt_dtype dtype = tt_compute_dtype(L, promotion, 1, args);
  tt_out(L, 0, tt_unary(b, prim, tt_arg_as(L, 0, dtype)));
}

void tt_row_binary(tt_lower* L, tt_builder* b, tt_promotion promotion, tt_prim prim) {
  int args[2] = {0, 1};
  tt_dtype dtype = tt_compute_dtype(L, promotion, 2, args);
  tt_val x = tt_arg_as(L, 0, dtype);
  // The second operand may be a Scalar.
  tt_val y = tt_arg_info(L, 1) != NULL ? tt_arg_as(L, 1, dtype) : tt_arg_scalar(L, 1, dtype);
  tt_out(L, 0, tt_bin(b, prim, x, y));
}

void tt_row_compare(tt_lower* L, tt_builder* b, tt_cmp cmp) {
  tt_dtype dtype = tt_common_dtype2(L, 0, 1);
  tt_val x = tt_arg_as(L, 0, dtype);
  tt_val y = tt_arg_info(L, 1) != NULL ? tt_arg_as(L, 1, dtype) : tt_arg_scalar(L, 1, dtype);
  tt_out(L, 0, tt_test(b, cmp, x, y));
}
