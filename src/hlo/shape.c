// SPDX-License-Identifier: Apache-2.0
//
// Operations that give elements new places: reshape, transpose, broadcast, reverse, iota; and run-time sizes.
#include <string.h>

#include "hlo/graph.h"

// ---- reshape ------------------------------------------------------------------------------------------------------

// The dimensions [first, end) of one side that hold the same elements as a run of the other side's dimensions.
typedef struct run {
  int first, end;
} run;

// Number of sizes other than a static 1, and the place of the first.
static int count_wide(const tt_type* t, run r, int* out_first) {
  int n = 0;
  for (int d = r.end - 1; d >= r.first; d--) {
    if (t->dims[d] != 1 || ((t->bounded >> d) & 1)) {
      n++;
      *out_first = d;
    }
  }
  return n;
}

// Bounded dimensions of the result. A bounded dimension may stay, merge with neighbours, or, alone in its run, be split.
static bool reshape_bounds(const tt_type* from, tt_type* to) {
  int i = 0, j = 0;
  while (i < from->rank || j < to->rank) {
    run in = {i, i}, out = {j, j};
    int64_t in_size = 1, out_size = 1;
    do {
      if (in_size <= out_size && in.end < from->rank) {
        in_size *= from->dims[in.end++];
      } else if (out.end < to->rank) {
        out_size *= to->dims[out.end++];
      } else if (in.end < from->rank) {
        in_size *= from->dims[in.end++];
      } else {
        return false;
      }
    } while (in_size != out_size);
    uint32_t bits = 0;
    for (int d = in.first; d < in.end; d++) {
      bits |= from->bounded & (UINT32_C(1) << d);
    }
    int in_first = 0, out_first = 0;
    int in_wide = count_wide(from, in, &in_first), out_wide = count_wide(to, out, &out_first);
    if (bits) {
      if ((bits & (bits - 1)) || out_wide < 1 || (in_wide > 1 && out_wide > 1)) {
        return false;
      }
      to->bounded |= UINT32_C(1) << out_first;
    }
    i = in.end;
    j = out.end;
  }
  return true;
}

tt_val tt_reshape(tt_builder* b, tt_val x, int rank, const int64_t* dims) {
  if (!tt_usable(b, "reshape", 1, &x) || !tt_check_dims(b, "reshape", rank, dims)) {
    return TT_POISON;
  }
  const tt_type* from = tt_type_of(b, x);
  tt_type to = tt_type_make(from->dtype, rank, dims);
  if (tt_type_elements(&to) != tt_type_elements(from)) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "reshape: expected as many elements as %s has, got sizes %s",
                           tt_show(b, x), tt_show_ints(b, rank, dims));
  }
  if (from->bounded && (tt_type_elements(from) == 0 || !reshape_bounds(from, &to))) {
    return tt_builder_fail(b, TT_UNIMPLEMENTED, "reshape: expected bounded sizes that stay apart, got %s to sizes %s",
                           tt_show(b, x), tt_show_ints(b, rank, dims));
  }
  tt_val folded = tt_fold_move(b, x, true, &to);
  if (folded || b->error) {
    return folded;
  }
  const tt_node* node = tt_node_of(b, x);
  if (strcmp(node->mnemonic, "stablehlo.reshape") == 0 && !to.bounded && !tt_type_of(b, node->operands[0])->bounded) {
    return tt_reshape(b, node->operands[0], rank, dims);
  }
  return tt_emit1(b, "stablehlo.reshape", NULL, 1, &x, &to);
}

// ---- transpose, broadcast, reverse, iota --------------------------------------------------------------------------

tt_val tt_transpose(tt_builder* b, tt_val x, const int64_t* perm) {
  if (!tt_usable(b, "transpose", 1, &x)) {
    return TT_POISON;
  }
  const tt_type* from = tt_type_of(b, x);
  if (!tt_check_axes(b, "transpose", "permuted", from->rank, perm, from->rank)) {
    return TT_POISON;
  }
  tt_type to = *from;
  to.bounded = 0;
  bool identity = true;
  for (int d = 0; d < from->rank; d++) {
    to.dims[d] = from->dims[perm[d]];
    to.bounded |= ((from->bounded >> perm[d]) & 1) << d;
    identity = identity && perm[d] == d;
  }
  tt_val folded = tt_fold_move(b, x, identity, &to);
  if (folded || b->error) {
    return folded;
  }
  TT_SCOPED_TEXT(attrs);
  tt_attr_ints(&attrs, "permutation", from->rank, perm);
  return tt_emit1(b, "stablehlo.transpose", attrs.text, 1, &x, &to);
}

tt_val tt_broadcast_in_dim(tt_builder* b, tt_val x, int rank, const int64_t* dims, const int64_t* map) {
  if (!tt_usable(b, "broadcast_in_dim", 1, &x) || !tt_check_dims(b, "broadcast_in_dim", rank, dims)) {
    return TT_POISON;
  }
  const tt_type* from = tt_type_of(b, x);
  if (from->rank > rank) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "broadcast_in_dim: expected at least %d result dimensions, got %d",
                           from->rank, rank);
  }
  if (!tt_check_axes(b, "broadcast_in_dim", "result", from->rank, map, rank)) {
    return TT_POISON;
  }
  tt_type to = tt_type_make(from->dtype, rank, dims);
  bool identity = from->rank == rank;
  for (int k = 0; k < from->rank; k++) {
    bool bounded = (from->bounded >> k) & 1;
    if (from->dims[k] != dims[map[k]] && (from->dims[k] != 1 || bounded)) {
      return tt_builder_fail(b, TT_INVALID_ARGUMENT, "broadcast_in_dim: expected equal sizes or 1, got %s to %s by %s",
                             tt_show(b, x), tt_show_ints(b, rank, dims), tt_show_ints(b, from->rank, map));
    }
    to.bounded |= (uint32_t)bounded << map[k];
    identity = identity && map[k] == k;
  }
  tt_val folded = tt_fold_move(b, x, identity, &to);
  if (folded || b->error) {
    return folded;
  }
  TT_SCOPED_TEXT(attrs);
  tt_attr_ints(&attrs, "broadcast_dimensions", from->rank, map);
  return tt_emit1(b, "stablehlo.broadcast_in_dim", attrs.text, 1, &x, &to);
}

tt_val tt_reverse(tt_builder* b, tt_val x, int ndims, const int64_t* dims) {
  if (!tt_usable(b, "reverse", 1, &x)) {
    return TT_POISON;
  }
  const tt_type* type = tt_type_of(b, x);
  if (!tt_check_axes(b, "reverse", "reversed", ndims, dims, type->rank)) {
    return TT_POISON;
  }
  bool same = true;
  for (int i = 0; i < ndims; i++) {
    same = same && type->dims[dims[i]] <= 1;
    if ((type->bounded >> dims[i]) & 1) {
      return tt_builder_fail(b, TT_UNIMPLEMENTED, "reverse: expected static sizes, got %s", tt_show(b, x));
    }
  }
  tt_val folded = tt_fold_move(b, x, same, type);
  if (folded || b->error) {
    return folded;
  }
  TT_SCOPED_TEXT(attrs);
  tt_attr_ints(&attrs, "dimensions", ndims, dims);
  return tt_emit1(b, "stablehlo.reverse", attrs.text, 1, &x, type);
}

tt_val tt_iota(tt_builder* b, const tt_type* type, int dim) {
  if (b->error || !tt_check_dims(b, "iota", type->rank, type->dims)) {
    return TT_POISON;
  }
  int64_t axis = dim;
  if (!tt_check_axes(b, "iota", "counting", 1, &axis, type->rank)) {
    return TT_POISON;
  }
  if (tt_dtype_size(type->dtype) == 0 || type->dtype == TT_BOOL || type->bounded) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "iota: expected a number type of static sizes, got %s",
                           tt_show_type(b, type));
  }
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs, "iota_dimension = %d : i64", dim);
  return tt_emit1(b, "stablehlo.iota", attrs.text, 0, NULL, type);
}

// ---- run-time sizes -----------------------------------------------------------------------------------------------

tt_val tt_set_dimension_size(tt_builder* b, tt_val x, tt_val size, int d) {
  tt_val operands[] = {x, size};
  if (!tt_usable(b, "set_dimension_size", 2, operands)) {
    return TT_POISON;
  }
  tt_type type = *tt_type_of(b, x);
  int64_t axis = d;
  if (!tt_check_axes(b, "set_dimension_size", "sized", 1, &axis, type.rank)) {
    return TT_POISON;
  }
  if (tt_rank_of(b, size) != 0 || tt_dtype_of(b, size) != TT_I32) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "set_dimension_size: expected a size of type i32[], got %s",
                           tt_show(b, size));
  }
  double value = 0;
  uint32_t bit = UINT32_C(1) << d;
  if (tt_val_is_const(b, size, &value)) {
    if ((int64_t)value != type.dims[d]) {
      return tt_builder_fail(b, TT_INVALID_ARGUMENT,
                             "set_dimension_size: expected a run-time size or %lld, got the constant %lld",
                             (long long)type.dims[d], (long long)value);
    }
    if (!(type.bounded & bit)) {
      return x;
    }
    type.bounded &= ~bit;
  } else {
    type.bounded |= bit;
  }
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs, "dimension = %d : i64", d);
  return tt_emit1(b, "stablehlo.set_dimension_size", attrs.text, 2, operands, &type);
}

tt_val tt_get_dimension_size(tt_builder* b, tt_val x, int d) {
  if (!tt_usable(b, "get_dimension_size", 1, &x)) {
    return TT_POISON;
  }
  const tt_type* type = tt_type_of(b, x);
  int64_t axis = d;
  if (!tt_check_axes(b, "get_dimension_size", "measured", 1, &axis, type->rank)) {
    return TT_POISON;
  }
  if (!((type->bounded >> d) & 1)) {
    return tt_const_i(b, TT_I32, type->dims[d]);
  }
  tt_type result = tt_type_scalar(TT_I32);
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs, "dimension = %d : i64", d);
  return tt_emit1(b, "stablehlo.get_dimension_size", attrs.text, 1, &x, &result);
}
