// SPDX-License-Identifier: Apache-2.0
//
// Elementwise operations: one type rule for each column of the tables in tt/hlo.h.
#include <string.h>

#include <math.h>

#include "hlo/graph.h"

typedef struct prim_row {
  const char* mnemonic;
  const char* classes;
  char result;
  int arity;
} prim_row;

static const prim_row rows[TT_PRIM_COUNT] = {
#define UNARY_ROW(id, text, classes, result) [id] = {text, classes, result, 1},
#define BINARY_ROW(id, text, classes, result) [id] = {text, classes, result, 2},
    TT_UNARY_PRIMS(UNARY_ROW) TT_BINARY_PRIMS(BINARY_ROW)};

static const char* class_name(char cls) {
  switch (cls) {
    case 'b':
      return "bool";
    case 'u':
      return "unsigned integer";
    case 'i':
      return "signed integer";
    case 'f':
      return "float";
    default:
      return "complex";
  }
}

static bool check_class(tt_builder* b, const char* who, const char* classes, tt_val x) {
  if (strchr(classes, tt_dtype_class(tt_dtype_of(b, x)))) {
    return true;
  }
  TT_SCOPED_TEXT(list);
  for (const char* c = classes; *c; c++) {
    tt_strbuf_addf(&list, "%s%s", c == classes ? "" : " or ", class_name(*c));
  }
  tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected a %s operand, got %s", who, list.text, tt_show(b, x));
  return false;
}

static tt_dtype result_dtype(char result, tt_dtype dtype) {
  switch (result) {
    case 'b':
      return TT_BOOL;
    case 'r':
      return tt_dtype_real(dtype);
    case 'c':
      return tt_dtype_complex(dtype);
    default:
      return dtype;
  }
}

static const prim_row* find_row(tt_builder* b, tt_prim prim, int arity) {
  if (b->error) {
    return NULL;
  }
  if ((int)prim <= TT_PRIM_NONE || (int)prim >= TT_PRIM_COUNT || rows[prim].arity != arity) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "expected an elementwise operation of %d operands, got number %d", arity,
                    (int)prim);
    return NULL;
  }
  return &rows[prim];
}

tt_val tt_unary(tt_builder* b, tt_prim prim, tt_val x) {
  const prim_row* row = find_row(b, prim, 1);
  const char* who = row ? tt_short_name(row->mnemonic) : "";
  if (!row || !tt_usable(b, who, 1, &x) || !check_class(b, who, row->classes, x)) {
    return TT_POISON;
  }
  tt_val folded = tt_fold_unary(b, prim, x);
  if (folded || b->error) {
    return folded;
  }
  tt_type type = *tt_type_of(b, x);
  type.dtype = result_dtype(row->result, type.dtype);
  return tt_emit1(b, row->mnemonic, NULL, 1, &x, &type);
}

// The common checks of two operands of one type.
static bool join_operands(tt_builder* b, const char* who, const char* classes, tt_val x, tt_val y, tt_type* out) {
  const tt_type *tx = tt_type_of(b, x), *ty = tt_type_of(b, y);
  if (tx->dtype != ty->dtype || !tt_type_join(tx, ty, tx->dtype, out)) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected operands of one type, got %s and %s", who, tt_show(b, x),
                    tt_show(b, y));
    return false;
  }
  return check_class(b, who, classes, x);
}

tt_val tt_binary(tt_builder* b, tt_prim prim, tt_val x, tt_val y) {
  const prim_row* row = find_row(b, prim, 2);
  const char* who = row ? tt_short_name(row->mnemonic) : "";
  tt_val operands[] = {x, y};
  tt_type type;
  if (!row || !tt_usable(b, who, 2, operands) || !join_operands(b, who, row->classes, x, y, &type)) {
    return TT_POISON;
  }
  if (prim == TT_COMPLEX && type.dtype != TT_F32 && type.dtype != TT_F64) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "complex: expected f32 or f64 operands, got %s", tt_show(b, x));
  }
  type.dtype = result_dtype(row->result, type.dtype);
  tt_val folded = tt_fold_binary(b, prim, x, y, &type);
  return folded ? folded : tt_emit1(b, row->mnemonic, NULL, 2, operands, &type);
}

tt_val tt_compare(tt_builder* b, tt_cmp cmp, tt_val x, tt_val y) {
  static const char* const names[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  tt_val operands[] = {x, y};
  tt_type type;
  if (!tt_usable(b, "compare", 2, operands)) {
    return TT_POISON;
  }
  bool ordered = cmp != TT_EQ && cmp != TT_NE;
  if (!join_operands(b, "compare", ordered ? "buif" : "buifc", x, y, &type)) {
    return TT_POISON;
  }
  // Without a type, constant integers are compared as unsigned.
  char cls = tt_dtype_class(type.dtype);
  const char* kind = cls == 'i' ? "SIGNED" : cls == 'f' || cls == 'c' ? "FLOAT" : "UNSIGNED";
  type.dtype = TT_BOOL;
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs,
          "comparison_direction = #stablehlo<comparison_direction %s>, compare_type = #stablehlo<comparison_type %s>",
          names[cmp], kind);
  return tt_emit1(b, "stablehlo.compare", attrs.text, 2, operands, &type);
}

tt_val tt_select(tt_builder* b, tt_val pred, tt_val on_true, tt_val on_false) {
  tt_val operands[] = {pred, on_true, on_false};
  tt_type type;
  if (!tt_usable(b, "select", 3, operands) || !join_operands(b, "select", "buifc", on_true, on_false, &type)) {
    return TT_POISON;
  }
  const tt_type* tp = tt_type_of(b, pred);
  tt_type joined = type;
  if (tp->dtype != TT_BOOL || (tp->rank > 0 && !tt_type_join(tp, &type, type.dtype, &joined))) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT,
                           "select: expected a bool predicate of the branches' sizes, got %s and %s", tt_show(b, pred),
                           tt_show(b, on_true));
  }
  tt_val folded = tt_fold_select(b, pred, on_true, on_false, &joined);
  return folded ? folded : tt_emit1(b, "stablehlo.select", NULL, 3, operands, &joined);
}

tt_val tt_reduce_precision(tt_builder* b, tt_val x, int exponent_bits, int mantissa_bits) {
  if (!tt_usable(b, "reduce_precision", 1, &x) || !check_class(b, "reduce_precision", "f", x)) {
    return TT_POISON;
  }
  if (exponent_bits < 1 || mantissa_bits < 0) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT,
                           "reduce_precision: expected 1 exponent bit or more, got %d and %d mantissa bits",
                           exponent_bits, mantissa_bits);
  }
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs, "exponent_bits = %d : i32, mantissa_bits = %d : i32", exponent_bits, mantissa_bits);
  return tt_emit1(b, "stablehlo.reduce_precision", attrs.text, 1, &x, tt_type_of(b, x));
}

// ---- conversion ---------------------------------------------------------------------------------------------------

static tt_val convert_op(tt_builder* b, tt_val x, tt_dtype dtype) {
  tt_type type = *tt_type_of(b, x);
  if (type.dtype == dtype) {
    return x;
  }
  type.dtype = dtype;
  tt_val folded = tt_fold_convert(b, x, dtype);
  return folded ? folded : tt_emit1(b, "stablehlo.convert", NULL, 1, &x, &type);
}

static tt_val zeros_like(tt_builder* b, tt_val x) {
  tt_type type = *tt_type_of(b, x);
  type.bounded = 0;
  return tt_splat_i(b, &type, 0);
}

// x in f32, rounded to the grid of an 8-bit float: plugins go by a 16-bit type, and round twice. What is beyond the largest becomes what
// PyTorch makes of it; formats without -0 have it as NaN.
static tt_val round_to_8_bits(tt_builder* b, tt_val x, tt_dtype dtype) {
  bool fine = dtype == TT_F8E4M3FN || dtype == TT_F8E4M3FNUZ;
  bool unsigned_zero = dtype == TT_F8E4M3FNUZ || dtype == TT_F8E5M2FNUZ;
  double smallest = fine ? (unsigned_zero ? 0x1p-7 : 0x1p-6) : (unsigned_zero ? 0x1p-15 : 0x1p-14);
  double largest = dtype == TT_F8E4M3FN ? 448 : fine ? 240 : 57344;
  x = convert_op(b, x, TT_F32);
  tt_type type = *tt_type_of(b, x), bits = type;
  bits.dtype = TT_U32;
  bits.bounded = type.bounded = 0;
  tt_val exponent = tt_binary(b, TT_AND, tt_bitcast(b, x, TT_U32), tt_splat_i(b, &bits, 0x7F800000));
  tt_val power = tt_binary(b, TT_MAX, tt_bitcast(b, exponent, TT_F32), tt_splat_f(b, &type, smallest, 0));
  tt_val step = tt_binary(b, TT_MUL, power, tt_splat_f(b, &type, fine ? 0x1p-3 : 0x1p-2, 0));
  tt_val near = tt_binary(b, TT_MUL, tt_unary(b, TT_ROUND_EVEN, tt_binary(b, TT_DIV, x, step)), step);
  near = tt_select(b, tt_unary(b, TT_IS_FINITE, x), near, x);
  if (dtype == TT_F8E4M3FN) {
    near = tt_binary(b, TT_MAX, near, tt_splat_f(b, &type, -largest, 0));
    return tt_binary(b, TT_MIN, near, tt_splat_f(b, &type, largest, 0));
  }
  if (unsigned_zero) {
    tt_val over = tt_compare(b, TT_GT, tt_unary(b, TT_ABS, near), tt_splat_f(b, &type, largest, 0));
    tt_val zero = tt_splat_f(b, &type, 0, 0);
    near = tt_select(b, tt_compare(b, TT_EQ, near, zero), zero, near);
    near = tt_select(b, over, tt_splat_f(b, &type, NAN, 0), near);
  }
  return near;
}

tt_val tt_convert(tt_builder* b, tt_val x, tt_dtype dtype) {
  if (!tt_usable(b, "convert", 1, &x)) {
    return TT_POISON;
  }
  if (dtype <= TT_DTYPE_INVALID || dtype >= TT_DTYPE_COUNT) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "convert: expected a dtype, got %d", (int)dtype);
  }
  tt_dtype from = tt_dtype_of(b, x);
  char source = tt_dtype_class(from), target = tt_dtype_class(dtype);
  if (from == dtype) {
    return x;
  }
  if (target == 'b') {
    tt_val folded = tt_fold_convert(b, x, dtype);
    return folded ? folded : tt_compare(b, TT_NE, x, zeros_like(b, x));
  }
  if (source == 'c' && target != 'c') {
    return tt_convert(b, tt_unary(b, TT_REAL, x), dtype);
  }
  if (source != 'c' && target == 'c') {
    tt_val real = convert_op(b, x, tt_dtype_real(dtype));
    return b->error ? TT_POISON : tt_binary(b, TT_COMPLEX, real, zeros_like(b, real));
  }
  if (source == 'f' && (target == 'i' || target == 'u')) {
    // Out of range is undefined; by way of a wider type small negative numbers wrap, as PyTorch's do on a CPU.
    if (tt_dtype_size(dtype) < 4) {
      x = convert_op(b, x, TT_I32);
    } else if (dtype == TT_U32) {
      x = convert_op(b, x, TT_I64);
    }
  }
  double constant;
  bool eight_bits = tt_dtype_size(dtype) == 1 && target == 'f' && dtype != TT_F8E8M0FNU;
  if (source == 'f' && eight_bits && tt_dtype_size(from) > 1 && !b->error && !tt_val_is_const(b, x, &constant)) {
    x = round_to_8_bits(b, x, dtype);
  }
  return b->error ? TT_POISON : convert_op(b, x, dtype);
}

// StableHLO does not cast between complex and real numbers: real and imaginary parts are taken apart, and put together, along a
// last dimension of size 2.
static tt_val split_parts(tt_builder* b, tt_val x, tt_dtype dtype) {
  tt_val parts[2] = {tt_unsqueeze(b, tt_unary(b, TT_REAL, x), -1), tt_unsqueeze(b, tt_unary(b, TT_IMAG, x), -1)};
  tt_val pair = tt_concat(b, 2, parts, tt_rank_of(b, x));
  tt_val cast = b->error ? TT_POISON : tt_bitcast(b, pair, dtype);
  if (!cast || tt_rank_of(b, cast) != tt_rank_of(b, x) + 2) {
    return cast;
  }
  tt_type type = *tt_type_of(b, cast);  // narrower than a part: its pieces and the parts are one dimension
  type.dims[type.rank - 2] *= type.dims[type.rank - 1];
  return tt_reshape(b, cast, type.rank - 1, type.dims);
}

static tt_val join_parts(tt_builder* b, tt_val x, tt_dtype dtype) {
  tt_dtype part = tt_dtype_real(dtype);
  tt_type type = *tt_type_of(b, x);
  int64_t pieces = (int64_t)(tt_dtype_size(part) / tt_dtype_size(type.dtype));
  if (type.rank == 0 || pieces < 1 || type.rank == TT_MAX_RANK || type.dims[type.rank - 1] != 2 * pieces) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "bitcast: expected a last dimension of the parts of a %s, got %s",
                           tt_dtype_text(dtype), tt_show(b, x));
  }
  if (pieces > 1) {
    type.dims[type.rank - 1] = 2;
    type.dims[type.rank] = pieces;
    x = tt_reshape(b, x, type.rank + 1, type.dims);
  }
  tt_val pair = tt_bitcast(b, x, part);
  tt_val re = tt_index_dim(b, pair, -1, 0), im = tt_index_dim(b, pair, -1, 1);
  return b->error ? TT_POISON : tt_binary(b, TT_COMPLEX, re, im);
}

tt_val tt_bitcast(tt_builder* b, tt_val x, tt_dtype dtype) {
  if (!tt_usable(b, "bitcast", 1, &x)) {
    return TT_POISON;
  }
  tt_type type = *tt_type_of(b, x);
  size_t from = tt_dtype_size(type.dtype), to = tt_dtype_size(dtype);
  if (type.dtype == dtype) {
    return x;
  }
  if (to == 0) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "bitcast: expected a dtype, got %d", (int)dtype);
  }
  if (type.dtype == TT_BOOL || dtype == TT_BOOL) {
    // A bool is one byte in memory, 0 or 1, but one bit in StableHLO.
    tt_val bytes = type.dtype == TT_BOOL ? tt_convert(b, x, TT_U8) : tt_bitcast(b, x, TT_U8);
    return dtype == TT_BOOL ? tt_convert(b, bytes, TT_BOOL) : tt_bitcast(b, bytes, dtype);
  }
  if (tt_dtype_is_complex(type.dtype) != tt_dtype_is_complex(dtype)) {
    return tt_dtype_is_complex(dtype) ? join_parts(b, x, dtype) : split_parts(b, x, dtype);
  }
  type.dtype = dtype;
  if (from > to) {
    if (type.rank == TT_MAX_RANK) {
      return tt_builder_fail(b, TT_INVALID_ARGUMENT, "bitcast: expected fewer than %d dimensions", TT_MAX_RANK);
    }
    type.dims[type.rank++] = (int64_t)(from / to);
  } else if (from < to) {
    int64_t ratio = (int64_t)(to / from);
    int last = type.rank - 1;
    if (last < 0 || type.dims[last] != ratio || ((type.bounded >> last) & 1)) {
      return tt_builder_fail(b, TT_INVALID_ARGUMENT, "bitcast: expected a last dimension of size %d, got %s",
                             (int)ratio, tt_show(b, x));
    }
    type.rank--;
    type.dims[last] = 0;
  }
  return tt_emit1(b, "stablehlo.bitcast_convert", NULL, 1, &x, &type);
}
