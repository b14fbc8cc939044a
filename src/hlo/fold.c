// SPDX-License-Identifier: Apache-2.0
//
// Light folding: an operand to use instead of a new node, only where every bit of the result stays the same. XLA does
// the rest; these keep texts short and equal.
#include <math.h>
#include <string.h>

#include "hlo/graph.h"

// `operand` is the constant's side: 0 left, 1 right, 2 either. `value` must be met exactly, the sign of zero included.
// x + 0 is no row for floats: -0 + 0 is 0.
typedef struct fold_row {
  tt_prim prim;
  int operand;
  const char* classes;
  double value;
} fold_row;

static const fold_row rows[] = {
    {TT_MUL,         2, "uif", 1.0 },
    {TT_DIV,         1, "uif", 1.0 },
    {TT_ADD,         2, "bui", 0.0 },
    {TT_ADD,         2, "f",   -0.0},
    {TT_SUB,         1, "uif", 0.0 },
    {TT_AND,         2, "b",   1.0 },
    {TT_OR,          2, "bui", 0.0 },
    {TT_XOR,         2, "bui", 0.0 },
    {TT_SHL,         1, "ui",  0.0 },
    {TT_SHR,         1, "ui",  0.0 },
    {TT_SHR_LOGICAL, 1, "ui",  0.0 },
};

static bool is_value(const tt_builder* b, tt_val v, double value) {
  double found = 0;
  return tt_val_is_const(b, v, &found) && found == value && !signbit(found) == !signbit(value);
}

tt_val tt_fold_binary(tt_builder* b, tt_prim prim, tt_val x, tt_val y, const tt_type* result) {
  char cls = tt_dtype_class(tt_dtype_of(b, x));
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const fold_row* row = &rows[i];
    if (row->prim != prim || !strchr(row->classes, cls)) {
      continue;
    }
    if (row->operand != 0 && is_value(b, y, row->value) && tt_type_equal(tt_type_of(b, x), result)) {
      return x;
    }
    if (row->operand != 1 && is_value(b, x, row->value) && tt_type_equal(tt_type_of(b, y), result)) {
      return y;
    }
  }
  return TT_POISON;
}

tt_val tt_fold_unary(tt_builder* b, tt_prim prim, tt_val x) {
  const tt_node* node = tt_node_of(b, x);
  bool complex = tt_dtype_is_complex(tt_dtype_of(b, x));
  bool made_complex = strcmp(node->mnemonic, "stablehlo.complex") == 0;
  if ((prim == TT_REAL || prim == TT_CHLO_CONJ) && !complex) {
    return x;
  }
  if (prim == TT_IMAG && !complex) {
    tt_type type = *tt_type_of(b, x);
    type.bounded = 0;
    return tt_splat_i(b, &type, 0);
  }
  if (made_complex && (prim == TT_REAL || prim == TT_IMAG)) {
    tt_val part = node->operands[prim == TT_IMAG];
    return tt_type_same_dims(tt_type_of(b, part), tt_type_of(b, x)) ? part : TT_POISON;
  }
  return TT_POISON;
}

tt_val tt_fold_select(tt_builder* b, tt_val pred, tt_val on_true, tt_val on_false, const tt_type* result) {
  double value = 0;
  tt_val chosen = TT_POISON;
  if (on_true == on_false) {
    chosen = on_true;
  } else if (tt_val_is_const(b, pred, &value)) {
    chosen = value != 0 ? on_true : on_false;
  }
  return chosen && tt_type_equal(tt_type_of(b, chosen), result) ? chosen : TT_POISON;
}

tt_val tt_fold_convert(tt_builder* b, tt_val x, tt_dtype dtype) {
  double value = 0;
  if (!tt_val_is_const(b, x, &value) || tt_dtype_is_complex(dtype)) {
    return TT_POISON;
  }
  // Beyond 2^31 a float may not fit an integer dtype, and an int64 may not fit a double.
  if (tt_dtype_is_integral(tt_dtype_of(b, x)) || tt_dtype_is_integral(dtype)) {
    if (!(fabs(value) < 0x1p31)) {
      return TT_POISON;
    }
    if (tt_dtype_is_integral(dtype) && tt_dtype_class(tt_dtype_of(b, x)) == 'f') {
      value = trunc(value);
    }
  }
  tt_type type = *tt_type_of(b, x);
  type.dtype = dtype;
  if (tt_dtype_is_integral(dtype)) {
    return tt_splat_i(b, &type, (int64_t)value);
  }
  return tt_splat_f(b, &type, value, 0);
}

tt_val tt_fold_move(tt_builder* b, tt_val x, bool same, const tt_type* result) {
  if (same && tt_type_equal(tt_type_of(b, x), result)) {
    return x;
  }
  const void* elem = tt_splat_of(b, x);
  return elem && !result->bounded ? tt_splat_elem(b, result, elem) : TT_POISON;
}
