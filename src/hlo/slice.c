// SPDX-License-Identifier: Apache-2.0
//
// Operations that take parts of tensors or put parts together: slices, pad, concatenate.
#include <inttypes.h>
#include <string.h>

#include "hlo/graph.h"

tt_val tt_slice(tt_builder* b, tt_val x, const int64_t* start, const int64_t* limit, const int64_t* stride) {
  if (!tt_usable(b, "slice", 1, &x)) {
    return TT_POISON;
  }
  const tt_type* from = tt_type_of(b, x);
  tt_type to = *from;
  for (int d = 0; d < from->rank; d++) {
    if (start[d] < 0 || start[d] > limit[d] || limit[d] > from->dims[d] || stride[d] < 1) {
      return tt_builder_fail(b, TT_INVALID_ARGUMENT,
                             "slice: expected 0 <= start <= limit <= %" PRId64
                             " and a stride of 1 or more in dimension %d, got %" PRId64 ":%" PRId64 ":%" PRId64,
                             from->dims[d], d, start[d], limit[d], stride[d]);
    }
    bool whole = start[d] == 0 && limit[d] == from->dims[d] && stride[d] == 1;
    if (((from->bounded >> d) & 1) && !whole) {
      return tt_builder_fail(b, TT_UNIMPLEMENTED, "slice: expected all of bounded dimension %d of %s", d,
                             tt_show(b, x));
    }
    to.dims[d] = limit[d] == start[d] ? 0 : (limit[d] - start[d] - 1) / stride[d] + 1;
  }
  // Equal sizes mean that nothing was left out.
  tt_val folded = tt_fold_move(b, x, true, &to);
  if (folded || b->error) {
    return folded;
  }
  TT_SCOPED_TEXT(attrs);
  tt_attr_ints(&attrs, "start_indices", from->rank, start);
  tt_attr_ints(&attrs, "limit_indices", from->rank, limit);
  tt_attr_ints(&attrs, "strides", from->rank, stride);
  return tt_emit1(b, "stablehlo.slice", attrs.text, 1, &x, &to);
}

tt_val tt_pad(tt_builder* b, tt_val x, tt_val value, const int64_t* low, const int64_t* high, const int64_t* interior) {
  tt_val operands[] = {x, value};
  if (!tt_usable(b, "pad", 2, operands)) {
    return TT_POISON;
  }
  const tt_type* from = tt_type_of(b, x);
  if (tt_rank_of(b, value) != 0 || tt_dtype_of(b, value) != from->dtype) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "pad: expected a padding value of type %s[], got %s",
                           tt_dtype_text(from->dtype), tt_show(b, value));
  }
  tt_type to = *from;
  bool none = true;
  for (int d = 0; d < from->rank; d++) {
    int64_t gaps = from->dims[d] > 0 ? from->dims[d] - 1 : 0, inside = 0, size = 0;
    bool overflow = __builtin_mul_overflow(gaps, interior[d], &inside) ||
                    __builtin_add_overflow(from->dims[d], inside, &size) ||
                    __builtin_add_overflow(size, low[d], &size) || __builtin_add_overflow(size, high[d], &size);
    if (interior[d] < 0 || overflow || size < 0) {
      return tt_builder_fail(b, TT_INVALID_ARGUMENT,
                             "pad: expected a size of 0 or more in dimension %d of %s, got padding %" PRId64
                             ", %" PRId64 " and interior %" PRId64,
                             d, tt_show(b, x), low[d], high[d], interior[d]);
    }
    to.dims[d] = size;
    bool here = low[d] == 0 && high[d] == 0 && interior[d] == 0;
    if (((from->bounded >> d) & 1) && !here) {
      return tt_builder_fail(b, TT_UNIMPLEMENTED, "pad: expected no padding in bounded dimension %d of %s", d,
                             tt_show(b, x));
    }
    none = none && here;
  }
  if (none) {
    return x;
  }
  const void* elem = tt_splat_of(b, x);
  const void* filler = tt_splat_of(b, value);
  if (elem && filler && memcmp(elem, filler, TT_ELEM_MAX) == 0 && !to.bounded &&
      tt_check_dims(b, "pad", to.rank, to.dims)) {
    return tt_splat_elem(b, &to, elem);
  }
  TT_SCOPED_TEXT(attrs);
  tt_attr_ints(&attrs, "edge_padding_low", from->rank, low);
  tt_attr_ints(&attrs, "edge_padding_high", from->rank, high);
  tt_attr_ints(&attrs, "interior_padding", from->rank, interior);
  return tt_emit1(b, "stablehlo.pad", attrs.text, 2, operands, &to);
}

tt_val tt_concat(tt_builder* b, int n, const tt_val* xs, int dim) {
  if (!b->error && n < 1) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "concatenate: expected one operand or more, got %d", n);
  }
  if (!tt_usable(b, "concatenate", n, xs)) {
    return TT_POISON;
  }
  tt_type type = *tt_type_of(b, xs[0]);
  int64_t axis = dim;
  if (!tt_check_axes(b, "concatenate", "joined", 1, &axis, type.rank)) {
    return TT_POISON;
  }
  for (int i = 1; i < n; i++) {
    const tt_type* next = tt_type_of(b, xs[i]);
    bool fits = next->dtype == type.dtype && next->rank == type.rank;
    for (int d = 0; fits && d < type.rank; d++) {
      fits = d == dim || next->dims[d] == type.dims[d];
    }
    if (!fits) {
      return tt_builder_fail(b, TT_INVALID_ARGUMENT,
                             "concatenate: expected equal types but for dimension %d, got %s and %s", dim,
                             tt_show(b, xs[0]), tt_show(b, xs[i]));
    }
    if (__builtin_add_overflow(type.dims[dim], next->dims[dim], &type.dims[dim])) {
      return tt_builder_fail(b, TT_INVALID_ARGUMENT, "concatenate: expected a total size below 2^63");
    }
    type.bounded |= next->bounded;
  }
  if (n == 1) {
    return xs[0];
  }
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs, "dimension = %d : i64", dim);
  return tt_emit1(b, "stablehlo.concatenate", attrs.text, n, xs, &type);
}

// ---- run-time starts ----------------------------------------------------------------------------------------------

static bool check_starts(tt_builder* b, const char* who, tt_val x, const tt_val* starts) {
  int rank = tt_rank_of(b, x);
  if (!tt_usable(b, who, rank, starts)) {
    return false;
  }
  for (int d = 0; d < rank; d++) {
    if (tt_rank_of(b, starts[d]) != 0 || !tt_dtype_is_integral(tt_dtype_of(b, starts[d])) ||
        tt_dtype_of(b, starts[d]) != tt_dtype_of(b, starts[0])) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected 0-d starts of one integer dtype, got %s and %s", who,
                      tt_show(b, starts[0]), tt_show(b, starts[d]));
      return false;
    }
  }
  if (tt_type_of(b, x)->bounded) {
    tt_builder_fail(b, TT_UNIMPLEMENTED, "%s: expected static sizes, got %s", who, tt_show(b, x));
    return false;
  }
  return true;
}

tt_val tt_dynamic_slice(tt_builder* b, tt_val x, const tt_val* starts, const int64_t* sizes) {
  if (!tt_usable(b, "dynamic_slice", 1, &x) || !check_starts(b, "dynamic_slice", x, starts)) {
    return TT_POISON;
  }
  const tt_type* from = tt_type_of(b, x);
  tt_type to = *from;
  for (int d = 0; d < from->rank; d++) {
    if (sizes[d] < 0 || sizes[d] > from->dims[d]) {
      return tt_builder_fail(b, TT_INVALID_ARGUMENT, "dynamic_slice: expected sizes within %s, got %s", tt_show(b, x),
                             tt_show_ints(b, from->rank, sizes));
    }
    to.dims[d] = sizes[d];
  }
  // Starts are clamped, so a slice of everything is the operand.
  tt_val folded = tt_fold_move(b, x, true, &to);
  if (folded || b->error) {
    return folded;
  }
  tt_val operands[TT_MAX_RANK + 1] = {x};
  memcpy(operands + 1, starts, sizeof *starts * (size_t)from->rank);
  TT_SCOPED_TEXT(attrs);
  tt_attr_ints(&attrs, "slice_sizes", from->rank, sizes);
  return tt_emit1(b, "stablehlo.dynamic_slice", attrs.text, from->rank + 1, operands, &to);
}

tt_val tt_dynamic_update_slice(tt_builder* b, tt_val x, tt_val update, const tt_val* starts) {
  tt_val operands[TT_MAX_RANK + 2] = {x, update};
  if (!tt_usable(b, "dynamic_update_slice", 2, operands) || !check_starts(b, "dynamic_update_slice", x, starts)) {
    return TT_POISON;
  }
  const tt_type *type = tt_type_of(b, x), *part = tt_type_of(b, update);
  bool fits = type->dtype == part->dtype && type->rank == part->rank && !part->bounded;
  for (int d = 0; fits && d < type->rank; d++) {
    fits = part->dims[d] <= type->dims[d];
  }
  if (!fits) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "dynamic_update_slice: expected an update that fits into %s, got %s",
                           tt_show(b, x), tt_show(b, update));
  }
  if (tt_type_equal(type, part)) {
    return update;
  }
  memcpy(operands + 2, starts, sizeof *starts * (size_t)type->rank);
  return tt_emit1(b, "stablehlo.dynamic_update_slice", NULL, type->rank + 2, operands, type);
}
