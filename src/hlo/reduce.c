// SPDX-License-Identifier: Apache-2.0
//
// Reductions over whole dimensions, the bodies that reductions of a kind share, sort and top_k.
#include <inttypes.h>
#include <stdio.h>

#include "hlo/graph.h"
#include "hlo/reduce.h"

// ---- kinds --------------------------------------------------------------------------------------------------------

typedef struct kind_row {
  const char* name;
  tt_prim prim;
} kind_row;

static const kind_row kinds[] = {
    [TT_REDUCE_SUM] = {"sum",  TT_ADD},
      [TT_REDUCE_PROD] = {"prod", TT_MUL},
      [TT_REDUCE_MAX] = {"max",  TT_MAX},
    [TT_REDUCE_MIN] = {"min",  TT_MIN},
      [TT_REDUCE_AND] = {"and",  TT_AND},
      [TT_REDUCE_OR] = {"or",   TT_OR },
};

tt_prim tt_reduce_prim(tt_reduce_kind kind) {
  return kinds[kind].prim;
}

const char* tt_reduce_name(tt_reduce_kind kind) {
  return kinds[kind].name;
}

void tt_reduce_body(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  results[0] = tt_binary(b, kinds[*(const tt_reduce_kind*)ctx].prim, args[0], args[1]);
}

tt_val tt_reduce_init(tt_builder* b, tt_reduce_kind kind, tt_dtype dtype) {
  switch (kind) {
    case TT_REDUCE_PROD:
      return tt_const_i(b, dtype, 1);
    case TT_REDUCE_MAX:
      return tt_const_min(b, dtype);
    case TT_REDUCE_MIN:
      return tt_const_max(b, dtype);
    case TT_REDUCE_AND:
      return tt_const_i(b, dtype, -1);
    default:
      return tt_const_i(b, dtype, 0);
  }
}

// ---- reduce -------------------------------------------------------------------------------------------------------

bool tt_check_reduced(tt_builder* b, const char* who, int n, const tt_val* xs, const tt_val* inits) {
  if (!b->error && (n < 1 || n > TT_MAX_REDUCED)) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected 1 to %d operands, got %d", who, TT_MAX_REDUCED, n);
  }
  if (b->error || !tt_usable(b, who, n, xs) || !tt_usable(b, who, n, inits)) {
    return false;
  }
  for (int i = 0; i < n; i++) {
    tt_type joined;
    if (!tt_type_join(tt_type_of(b, xs[0]), tt_type_of(b, xs[i]), TT_F32, &joined)) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected operands of equal sizes, got %s and %s", who,
                      tt_show(b, xs[0]), tt_show(b, xs[i]));
      return false;
    }
    if (tt_rank_of(b, inits[i]) != 0 || tt_dtype_of(b, inits[i]) != tt_dtype_of(b, xs[i])) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected an initial value of type %s[], got %s", who,
                      tt_dtype_text(tt_dtype_of(b, xs[i])), tt_show(b, inits[i]));
      return false;
    }
  }
  return true;
}

tt_region* tt_reducer(tt_builder* b, const char* who, int n, const tt_val* xs, tt_body body, void* ctx) {
  tt_type types[2 * TT_MAX_REDUCED] = {{.dtype = TT_DTYPE_INVALID}};
  for (int i = 0; i < n; i++) {
    types[i] = types[n + i] = tt_type_scalar(tt_dtype_of(b, xs[i]));
  }
  tt_region* region = tt_region_build(b, who, true, 2 * n, types, n, body, ctx);
  for (int i = 0; region && i < n; i++) {
    if (!tt_type_equal(tt_type_of(b, region->results[i]), &types[i])) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected the region to give %s, got %s", who,
                      tt_show_type(b, &types[i]), tt_show(b, region->results[i]));
      return NULL;
    }
  }
  return region;
}

static tt_val reduce(tt_builder* b, int n, const tt_val* xs, const tt_val* inits, int ndims, const int64_t* dims,
                     tt_body body, void* ctx, const char* key) {
  if (!tt_check_reduced(b, "reduce", n, xs, inits)) {
    return TT_POISON;
  }
  const tt_type* from = tt_type_of(b, xs[0]);
  if (!tt_check_axes(b, "reduce", "reduced", ndims, dims, from->rank)) {
    return TT_POISON;
  }
  uint32_t reduced = 0;
  for (int i = 0; i < ndims; i++) {
    reduced |= UINT32_C(1) << dims[i];
  }
  tt_type types[TT_MAX_REDUCED] = {{.dtype = TT_DTYPE_INVALID}};
  int64_t sorted[TT_MAX_RANK];
  for (int i = 0; i < n; i++) {
    const tt_type* type = tt_type_of(b, xs[i]);
    types[i] = tt_type_scalar(type->dtype);
    for (int d = 0, k = 0; d < from->rank; d++) {
      if ((reduced >> d) & 1) {
        sorted[k++] = d;
      } else {
        types[i].bounded |= ((type->bounded >> d) & 1) << types[i].rank;
        types[i].dims[types[i].rank++] = type->dims[d];
      }
    }
  }
  tt_region* region = tt_reducer(b, "reduce", n, xs, body, ctx);
  if (!region) {
    return TT_POISON;
  }
  tt_val operands[2 * TT_MAX_REDUCED];
  for (int i = 0; i < n; i++) {
    operands[i] = xs[i];
    operands[n + i] = inits[i];
  }
  TT_SCOPED_TEXT(attrs);
  tt_attr_ints(&attrs, "dimensions", ndims, sorted);
  tt_spec spec = {.mnemonic = "stablehlo.reduce",
                  .attrs = attrs.text,
                  .region_key = key,
                  .num_operands = 2 * n,
                  .operands = operands,
                  .num_results = n,
                  .results = types,
                  .num_regions = 1,
                  .regions = &region};
  return tt_emit(b, &spec);
}

tt_val tt_reduce(tt_builder* b, tt_reduce_kind kind, tt_val x, int ndims, const int64_t* dims) {
  if (!tt_usable(b, "reduce", 1, &x)) {
    return TT_POISON;
  }
  if (ndims == 0) {
    return x;
  }
  tt_val init = tt_reduce_init(b, kind, tt_dtype_of(b, x));
  return b->error ? TT_POISON : reduce(b, 1, &x, &init, ndims, dims, tt_reduce_body, &kind, kinds[kind].name);
}

void tt_reduce_many(tt_builder* b, int n, const tt_val* xs, const tt_val* inits, int ndims, const int64_t* dims,
                    tt_body body, void* ctx, tt_val* out_results) {
  tt_spread(reduce(b, n, xs, inits, ndims, dims, body, ctx, NULL), n, out_results);
}

// ---- sort, top_k --------------------------------------------------------------------------------------------------

static tt_val sort(tt_builder* b, int n, const tt_val* xs, int dim, bool stable, tt_body less, void* ctx) {
  if (!b->error && (n < 1 || n > TT_MAX_REDUCED)) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "sort: expected 1 to %d operands, got %d", TT_MAX_REDUCED, n);
    return TT_POISON;
  }
  if (!tt_usable(b, "sort", n, xs)) {
    return TT_POISON;
  }
  int64_t axis = dim;
  if (!tt_check_axes(b, "sort", "sorted", 1, &axis, tt_rank_of(b, xs[0]))) {
    return TT_POISON;
  }
  tt_type types[TT_MAX_REDUCED], args[2 * TT_MAX_REDUCED];
  for (int i = 0; i < n; i++) {
    types[i] = *tt_type_of(b, xs[i]);
    args[2 * i] = args[2 * i + 1] = tt_type_scalar(types[i].dtype);
    if (types[i].rank != types[0].rank || !tt_type_same_dims(&types[0], &types[i])) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "sort: expected operands of equal sizes, got %s and %s",
                      tt_show(b, xs[0]), tt_show(b, xs[i]));
      return TT_POISON;
    }
  }
  tt_region* region = tt_region_build(b, "sort", true, 2 * n, args, 1, less, ctx);
  if (!region) {
    return TT_POISON;
  }
  tt_type flag = tt_type_scalar(TT_BOOL);
  if (!tt_type_equal(tt_type_of(b, region->results[0]), &flag)) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "sort: expected the region to give %s, got %s", tt_show_type(b, &flag),
                    tt_show(b, region->results[0]));
    return TT_POISON;
  }
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs, "dimension = %d : i64, is_stable = %s", dim, stable ? "true" : "false");
  tt_spec spec = {.mnemonic = "stablehlo.sort",
                  .attrs = attrs.text,
                  .num_operands = n,
                  .operands = xs,
                  .num_results = n,
                  .results = types,
                  .num_regions = 1,
                  .regions = &region};
  return tt_emit(b, &spec);
}

void tt_sort(tt_builder* b, int n, const tt_val* xs, int dim, bool stable, tt_body less, void* ctx,
             tt_val* out_results) {
  tt_spread(sort(b, n, xs, dim, stable, less, ctx), n, out_results);
}

void tt_top_k(tt_builder* b, tt_val x, int64_t k, tt_val* out_values, tt_val* out_indices) {
  *out_values = *out_indices = TT_POISON;
  if (!tt_usable(b, "top_k", 1, &x)) {
    return;
  }
  tt_type types[2] = {*tt_type_of(b, x), *tt_type_of(b, x)};
  int last = types[0].rank - 1;
  if (last < 0 || k < 0 || k > types[0].dims[last]) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "top_k: expected k within the last size of %s, got %" PRId64, tt_show(b, x),
                    k);
    return;
  }
  if (types[0].bounded) {
    tt_builder_fail(b, TT_UNIMPLEMENTED, "top_k: expected static sizes, got %s", tt_show(b, x));
    return;
  }
  types[0].dims[last] = types[1].dims[last] = k;
  types[1].dtype = TT_I32;
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs, "k = %" PRId64 " : i64", k);
  tt_spec spec = {.mnemonic = "chlo.top_k",
                  .attrs = attrs.text,
                  .num_operands = 1,
                  .operands = &x,
                  .num_results = 2,
                  .results = types};
  tt_val first = tt_emit(b, &spec);
  *out_values = first;
  *out_indices = first ? first + 1 : TT_POISON;
}
