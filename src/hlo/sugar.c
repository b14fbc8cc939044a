// SPDX-License-Identifier: Apache-2.0
//
// What lowerings mostly use: operations that broadcast, constants of the right type, shapes by PyTorch's habits.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "hlo/graph.h"

// ---- broadcasting -------------------------------------------------------------------------------------------------

tt_val tt_expand(tt_builder* b, tt_val x, int rank, const int64_t* dims) {
  if (!tt_usable(b, "expand", 1, &x) || !tt_check_dims(b, "expand", rank, dims)) {
    return TT_POISON;
  }
  const tt_type* from = tt_type_of(b, x);
  int shift = rank - from->rank;
  int64_t map[TT_MAX_RANK];
  bool fits = shift >= 0;
  for (int k = 0; fits && k < from->rank; k++) {
    map[k] = k + shift;
    fits = from->dims[k] == dims[map[k]] || from->dims[k] == 1;
  }
  if (!fits) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "expand: expected sizes that %s broadcasts to, got %s",
                           tt_show(b, x), tt_show_ints(b, rank, dims));
  }
  return tt_broadcast_in_dim(b, x, rank, dims, map);
}

tt_val tt_expand_like(tt_builder* b, tt_val x, tt_val like) {
  if (!tt_usable(b, "expand", 1, &x) || !tt_usable(b, "expand", 1, &like)) {
    return TT_POISON;
  }
  const tt_type* type = tt_type_of(b, like);
  tt_val wide = tt_expand(b, x, type->rank, type->dims);
  for (int d = 0; wide && d < type->rank; d++) {
    if (((type->bounded & ~tt_type_of(b, wide)->bounded) >> d) & 1) {
      wide = tt_set_dimension_size(b, wide, tt_get_dimension_size(b, like, d), d);
    }
  }
  return wide;
}

// Grows `dims` to what it and `type` broadcast to.
static bool broadcast_dims(const tt_type* type, int* rank, int64_t* dims) {
  int wider = type->rank > *rank ? type->rank : *rank;
  int64_t joined[TT_MAX_RANK];
  for (int d = 1; d <= wider; d++) {
    int64_t mine = d <= *rank ? dims[*rank - d] : 1, theirs = d <= type->rank ? type->dims[type->rank - d] : 1;
    if (mine != theirs && mine != 1 && theirs != 1) {
      return false;
    }
    joined[wider - d] = mine == 1 ? theirs : mine;
  }
  memcpy(dims, joined, sizeof *dims * (size_t)wider);
  *rank = wider;
  return true;
}

// Expands each of `values` to the sizes that all of them broadcast to.
static bool broadcast(tt_builder* b, const char* who, int n, tt_val* values) {
  if (!tt_usable(b, who, n, values)) {
    return false;
  }
  int rank = 0;
  int64_t dims[TT_MAX_RANK];
  for (int i = 0; i < n; i++) {
    if (!broadcast_dims(tt_type_of(b, values[i]), &rank, dims)) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected sizes that broadcast, got %s and %s", who,
                      tt_show(b, values[0]), tt_show(b, values[i]));
      return false;
    }
  }
  for (int i = 0; i < n; i++) {
    values[i] = tt_expand(b, values[i], rank, dims);
  }
  return !b->error;
}

tt_val tt_bin(tt_builder* b, tt_prim prim, tt_val x, tt_val y) {
  tt_val v[] = {x, y};
  return broadcast(b, "broadcast", 2, v) ? tt_binary(b, prim, v[0], v[1]) : TT_POISON;
}

tt_val tt_add(tt_builder* b, tt_val x, tt_val y) {
  return tt_bin(b, TT_ADD, x, y);
}
tt_val tt_sub(tt_builder* b, tt_val x, tt_val y) {
  return tt_bin(b, TT_SUB, x, y);
}
tt_val tt_mul(tt_builder* b, tt_val x, tt_val y) {
  return tt_bin(b, TT_MUL, x, y);
}
tt_val tt_div(tt_builder* b, tt_val x, tt_val y) {
  return tt_bin(b, TT_DIV, x, y);
}
tt_val tt_max(tt_builder* b, tt_val x, tt_val y) {
  return tt_bin(b, TT_MAX, x, y);
}
tt_val tt_min(tt_builder* b, tt_val x, tt_val y) {
  return tt_bin(b, TT_MIN, x, y);
}
tt_val tt_and(tt_builder* b, tt_val x, tt_val y) {
  return tt_bin(b, TT_AND, x, y);
}
tt_val tt_or(tt_builder* b, tt_val x, tt_val y) {
  return tt_bin(b, TT_OR, x, y);
}

tt_val tt_test(tt_builder* b, tt_cmp cmp, tt_val x, tt_val y) {
  tt_val v[] = {x, y};
  return broadcast(b, "compare", 2, v) ? tt_compare(b, cmp, v[0], v[1]) : TT_POISON;
}

tt_val tt_where(tt_builder* b, tt_val pred, tt_val on_true, tt_val on_false) {
  tt_val v[] = {pred, on_true, on_false};
  if (!tt_usable(b, "where", 3, v)) {
    return TT_POISON;
  }
  bool one = tt_rank_of(b, pred) == 0;  // select takes a 0-d predicate
  return broadcast(b, "where", one ? 2 : 3, one ? v + 1 : v) ? tt_select(b, v[0], v[1], v[2]) : TT_POISON;
}

tt_val tt_neg(tt_builder* b, tt_val x) {
  return tt_unary(b, TT_NEG, x);
}
tt_val tt_not(tt_builder* b, tt_val x) {
  return tt_unary(b, TT_NOT, x);
}

// ---- constants of an operand's type -------------------------------------------------------------------------------

tt_val tt_like_f(tt_builder* b, tt_val x, double value) {
  return tt_usable(b, "constant", 1, &x) ? tt_const_f(b, tt_dtype_of(b, x), value) : TT_POISON;
}

tt_val tt_like_i(tt_builder* b, tt_val x, int64_t value) {
  return tt_usable(b, "constant", 1, &x) ? tt_const_i(b, tt_dtype_of(b, x), value) : TT_POISON;
}

tt_val tt_add_f(tt_builder* b, tt_val x, double value) {
  return tt_add(b, x, tt_like_f(b, x, value));
}
tt_val tt_mul_f(tt_builder* b, tt_val x, double value) {
  return tt_mul(b, x, tt_like_f(b, x, value));
}
tt_val tt_test_f(tt_builder* b, tt_cmp cmp, tt_val x, double value) {
  return tt_test(b, cmp, x, tt_like_f(b, x, value));
}

tt_val tt_full_like(tt_builder* b, tt_val x, double value) {
  return tt_expand_like(b, tt_like_f(b, x, value), x);
}

tt_val tt_zeros(tt_builder* b, tt_dtype dtype, int rank, const int64_t* dims) {
  if (b->error || !tt_check_dims(b, "zeros", rank, dims)) {
    return TT_POISON;
  }
  tt_type type = tt_type_make(dtype, rank, dims);
  return tt_splat_i(b, &type, 0);
}

tt_val tt_iota_like(tt_builder* b, tt_val x, tt_dtype dtype, int dim) {
  if (!tt_usable(b, "iota", 1, &x)) {
    return TT_POISON;
  }
  tt_type type = *tt_type_of(b, x);
  type.dtype = dtype;
  type.bounded = 0;
  return tt_expand_like(b, tt_iota(b, &type, dim < 0 ? dim + type.rank : dim), x);
}

// ---- shapes -------------------------------------------------------------------------------------------------------

// `dim` counted from the end if negative; -1, with the sticky error set, if there is no such dimension.
static int wrap_dim(tt_builder* b, const char* who, int dim, int rank) {
  int wrapped = dim < 0 ? dim + rank : dim;
  if (wrapped < 0 || wrapped >= rank) {
    tt_builder_fail(b, TT_OUT_OF_RANGE, "%s: expected a dimension in [%d, %d), got %d", who, -rank, rank, dim);
    return -1;
  }
  return wrapped;
}

tt_val tt_unsqueeze(tt_builder* b, tt_val x, int dim) {
  if (!tt_usable(b, "unsqueeze", 1, &x)) {
    return TT_POISON;
  }
  const tt_type* type = tt_type_of(b, x);
  dim = wrap_dim(b, "unsqueeze", dim, type->rank + 1);
  if (dim < 0 || type->rank == TT_MAX_RANK) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "unsqueeze: expected fewer than %d dimensions", TT_MAX_RANK);
  }
  int64_t dims[TT_MAX_RANK];
  for (int d = 0; d <= type->rank; d++) {
    dims[d] = d < dim ? type->dims[d] : d == dim ? 1 : type->dims[d - 1];
  }
  return tt_reshape(b, x, type->rank + 1, dims);
}

tt_val tt_squeeze(tt_builder* b, tt_val x, int dim) {
  if (!tt_usable(b, "squeeze", 1, &x)) {
    return TT_POISON;
  }
  const tt_type* type = tt_type_of(b, x);
  dim = wrap_dim(b, "squeeze", dim, type->rank);
  if (dim < 0) {
    return TT_POISON;
  }
  if (type->dims[dim] != 1 || ((type->bounded >> dim) & 1)) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "squeeze: expected size 1 in dimension %d, got %s", dim,
                           tt_show(b, x));
  }
  int64_t dims[TT_MAX_RANK];
  for (int d = 0; d < type->rank - 1; d++) {
    dims[d] = type->dims[d < dim ? d : d + 1];
  }
  return tt_reshape(b, x, type->rank - 1, dims);
}

tt_val tt_flatten(tt_builder* b, tt_val x) {
  if (!tt_usable(b, "flatten", 1, &x)) {
    return TT_POISON;
  }
  int64_t elements = tt_type_elements(tt_type_of(b, x));
  return tt_reshape(b, x, 1, &elements);
}

tt_val tt_permute(tt_builder* b, tt_val x, const int* perm) {
  if (!tt_usable(b, "permute", 1, &x)) {
    return TT_POISON;
  }
  int64_t wide[TT_MAX_RANK];
  int rank = tt_rank_of(b, x);
  for (int d = 0; d < rank; d++) {
    wide[d] = perm[d] < 0 ? perm[d] + rank : perm[d];
  }
  return tt_transpose(b, x, wide);
}

tt_val tt_swap_dims(tt_builder* b, tt_val x, int a, int c) {
  if (!tt_usable(b, "swap_dims", 1, &x)) {
    return TT_POISON;
  }
  int rank = tt_rank_of(b, x);
  int first = wrap_dim(b, "swap_dims", a, rank), second = wrap_dim(b, "swap_dims", c, rank);
  if (first < 0 || second < 0) {
    return TT_POISON;
  }
  int64_t perm[TT_MAX_RANK];
  for (int d = 0; d < rank; d++) {
    perm[d] = d == first ? second : d == second ? first : d;
  }
  return tt_transpose(b, x, perm);
}

tt_val tt_slice_dim(tt_builder* b, tt_val x, int dim, int64_t start, int64_t limit, int64_t stride) {
  if (!tt_usable(b, "slice", 1, &x)) {
    return TT_POISON;
  }
  const tt_type* type = tt_type_of(b, x);
  dim = wrap_dim(b, "slice", dim, type->rank);
  if (dim < 0) {
    return TT_POISON;
  }
  int64_t starts[TT_MAX_RANK], limits[TT_MAX_RANK], strides[TT_MAX_RANK];
  for (int d = 0; d < type->rank; d++) {
    starts[d] = d == dim ? start : 0;
    limits[d] = d == dim ? limit : type->dims[d];
    strides[d] = d == dim ? stride : 1;
  }
  return tt_slice(b, x, starts, limits, strides);
}

tt_val tt_index_dim(tt_builder* b, tt_val x, int dim, int64_t index) {
  tt_val row = tt_slice_dim(b, x, dim, index, index + 1, 1);
  return row ? tt_squeeze(b, row, dim) : TT_POISON;
}

tt_val tt_pad_dim(tt_builder* b, tt_val x, int dim, int64_t low, int64_t high, double fill) {
  if (!tt_usable(b, "pad", 1, &x)) {
    return TT_POISON;
  }
  dim = wrap_dim(b, "pad", dim, tt_rank_of(b, x));
  if (dim < 0) {
    return TT_POISON;
  }
  int64_t lows[TT_MAX_RANK] = {0}, highs[TT_MAX_RANK] = {0}, none[TT_MAX_RANK] = {0};
  lows[dim] = low;
  highs[dim] = high;
  return tt_pad(b, x, tt_like_f(b, x, fill), lows, highs, none);
}

// ---- arithmetic ---------------------------------------------------------------------------------------------------

tt_val tt_matmul(tt_builder* b, tt_val x, tt_val y) {
  tt_val operands[] = {x, y};
  if (!tt_usable(b, "matmul", 2, operands)) {
    return TT_POISON;
  }
  int rank = tt_rank_of(b, x);
  if (rank < 2 || tt_rank_of(b, y) != rank) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "matmul: expected matrices of equal rank, got %s and %s",
                           tt_show(b, x), tt_show(b, y));
  }
  int64_t batch[TT_MAX_RANK], last = rank - 1, before = rank - 2;
  for (int d = 0; d < rank - 2; d++) {
    batch[d] = d;
  }
  return tt_dot_general(b, x, y, rank - 2, batch, batch, 1, &last, &before, TT_DTYPE_INVALID);
}

tt_val tt_is_nan(tt_builder* b, tt_val x) {
  if (!tt_usable(b, "is_nan", 1, &x)) {
    return TT_POISON;
  }
  char cls = tt_dtype_class(tt_dtype_of(b, x));
  if (cls != 'f' && cls != 'c') {
    return tt_expand_like(b, tt_const_i(b, TT_BOOL, 0), x);
  }
  return tt_compare(b, TT_NE, x, x);
}

tt_val tt_is_inf(tt_builder* b, tt_val x) {
  if (!tt_usable(b, "is_inf", 1, &x)) {
    return TT_POISON;
  }
  tt_dtype dtype = tt_dtype_of(b, x);
  if (tt_dtype_is_complex(dtype)) {
    tt_val re = tt_is_inf(b, tt_unary(b, TT_REAL, x)), im = tt_is_inf(b, tt_unary(b, TT_IMAG, x));
    return tt_or(b, re, im);
  }
  if (!tt_dtype_is_float(dtype) || !isinf(tt_float_decode(dtype, tt_float_encode(dtype, (double)INFINITY)))) {
    return tt_expand_like(b, tt_const_i(b, TT_BOOL, 0), x);
  }
  return tt_test_f(b, TT_EQ, tt_unary(b, TT_ABS, x), (double)INFINITY);
}
