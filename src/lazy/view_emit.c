// SPDX-License-Identifier: Apache-2.0
//
// View plans as StableHLO: reading a view from its base, writing one into it.
#include <string.h>

#include "lazy/view.h"

// ---- reinterpreting bytes ---------------------------------------------------------------------------------------------

// Complex numbers have no bitcast: they pass through pairs of their real parts.
static tt_val complex_to_pairs(tt_builder* b, tt_val x) {
  tt_val parts[2] = {tt_unsqueeze(b, tt_unary(b, TT_REAL, x), -1), tt_unsqueeze(b, tt_unary(b, TT_IMAG, x), -1)};
  return tt_concat(b, 2, parts, tt_rank_of(b, parts[0]) - 1);
}

static tt_val pairs_to_complex(tt_builder* b, tt_val flat, int64_t elements) {
  int64_t dims[2] = {elements, 2};
  tt_val pairs = tt_reshape(b, flat, 2, dims);
  return tt_binary(b, TT_COMPLEX, tt_index_dim(b, pairs, 1, 0), tt_index_dim(b, pairs, 1, 1));
}

// The bytes of flat `x` as `elements` values of `dtype`; bytes missing at the end are dropped or zero.
static tt_val reinterpret_flat(tt_builder* b, tt_val x, tt_dtype dtype, int64_t elements) {
  tt_dtype from = tt_dtype_of(b, x);
  if (from == TT_BOOL) {
    return reinterpret_flat(b, tt_convert(b, x, TT_U8), dtype, elements);
  }
  if (tt_dtype_is_complex(from)) {
    tt_val pairs = complex_to_pairs(b, x);
    return reinterpret_flat(b, tt_flatten(b, pairs), dtype, elements);
  }
  if (dtype == TT_BOOL) {
    tt_val bytes = reinterpret_flat(b, x, TT_U8, elements);
    return tt_test_f(b, TT_NE, bytes, 0);
  }
  if (tt_dtype_is_complex(dtype)) {
    return pairs_to_complex(b, reinterpret_flat(b, x, tt_dtype_real(dtype), elements * 2), elements);
  }
  int64_t have = tt_type_elements(tt_type_of(b, x));
  int64_t from_size = (int64_t)tt_dtype_size(from);
  int64_t to_size = (int64_t)tt_dtype_size(dtype);
  if (from == dtype || from_size == to_size) {
    x = tt_bitcast(b, x, dtype);
  } else if (from_size > to_size) {
    x = tt_flatten(b, tt_bitcast(b, x, dtype));
    have *= from_size / to_size;
  } else {
    int64_t ratio = to_size / from_size;
    int64_t whole = elements * ratio;
    if (have < whole) {
      x = tt_pad_dim(b, x, 0, 0, whole - have, 0);
    } else if (have > whole) {
      x = tt_slice_dim(b, x, 0, 0, whole, 1);
    }
    int64_t dims[2] = {elements, ratio};
    x = tt_bitcast(b, tt_reshape(b, x, 2, dims), dtype);
    have = elements;
  }
  if (have < elements) {
    return tt_pad_dim(b, x, 0, 0, elements - have, 0);
  }
  return have > elements ? tt_slice_dim(b, x, 0, 0, elements, 1) : x;
}

static tt_val reinterpret(tt_builder* b, tt_val base, tt_dtype dtype) {
  const tt_type* type = tt_type_of(b, base);
  if (type->dtype == dtype) {
    return base;
  }
  int64_t elements = tt_view_base_elements(type, dtype);
  return reinterpret_flat(b, tt_flatten(b, base), dtype, elements);
}

// ---- shapes between base and view -------------------------------------------------------------------------------------

static void walk_dims(const tt_tensor* t, const tt_view_plan* p, int64_t* dims) {
  for (int w = 0; w < p->walks; ++w) {
    dims[w] = t->sizes[p->walk_dim[w]];
  }
}

// From the walked dimensions, by falling stride, to the view's dimensions.
static tt_val arrange(tt_builder* b, tt_val x, const tt_tensor* t, const tt_view_plan* p) {
  int64_t perm[TT_MAX_RANK];
  int64_t map[TT_MAX_RANK];
  int n = 0;
  for (int d = 0; d < t->rank; ++d) {
    for (int w = 0; w < p->walks; ++w) {
      if (p->walk_dim[w] == d) {
        perm[n] = w;
        map[n++] = d;
      }
    }
  }
  x = tt_transpose(b, x, perm);
  return tt_broadcast_in_dim(b, x, t->rank, t->sizes, map);
}

// The other way: a value of the view's sizes to the walked dimensions by falling stride.
static tt_val unarrange(tt_builder* b, tt_val value, const tt_tensor* t, const tt_view_plan* p) {
  int64_t zero[TT_MAX_RANK] = {0};
  int64_t limit[TT_MAX_RANK];
  int64_t one[TT_MAX_RANK];
  int64_t kept[TT_MAX_RANK];
  int position[TT_MAX_RANK];
  int n = 0;
  for (int d = 0; d < t->rank; ++d) {
    bool walked = t->sizes[d] > 1 && t->strides[d] != 0;
    limit[d] = walked ? t->sizes[d] : 1;
    one[d] = 1;
    position[d] = n;
    if (walked) {
      kept[n++] = t->sizes[d];
    }
  }
  value = tt_slice(b, value, zero, limit, one);
  value = tt_reshape(b, value, n, kept);
  int64_t perm[TT_MAX_RANK];
  for (int w = 0; w < p->walks; ++w) {
    perm[w] = position[p->walk_dim[w]];
  }
  return tt_transpose(b, value, perm);
}

// ---- boxes ------------------------------------------------------------------------------------------------------------

typedef struct box {
  int64_t size[TT_MAX_RANK * 2];  // of the window, factor by factor
  int64_t step[TT_MAX_RANK * 2];
  int64_t extent[TT_MAX_RANK * 2];  // elements taken from the window
  tt_val start[TT_MAX_RANK * 2];
  bool strided, at_zero;
} box;

static box box_of(tt_builder* b, const tt_tensor* t, const tt_view_plan* p, tt_val offset) {
  box x = {.strided = false, .at_zero = true};
  for (int f = 0; f < p->factors; ++f) {
    x.size[f] = x.step[f] = x.extent[f] = 1;
  }
  for (int w = 0; w < p->walks; ++w) {
    int f = p->walk_factor[w];
    x.extent[f] = t->sizes[p->walk_dim[w]];
    x.step[f] = p->walk_step[w];
    x.size[f] = (x.extent[f] - 1) * x.step[f] + 1;
    x.strided |= x.step[f] > 1;
  }
  for (int f = 0; f < p->factors; ++f) {
    if (x.size[f] == p->factor[f]) {
      x.start[f] = tt_const_i(b, TT_I64, 0);
      continue;
    }
    x.at_zero = false;
    tt_val digit = tt_div(b, offset, tt_const_i(b, TT_I64, p->unit[f]));
    x.start[f] = tt_bin(b, TT_REM, digit, tt_const_i(b, TT_I64, p->factor[f]));
  }
  return x;
}

static tt_val base_as_factors(tt_builder* b, tt_val base, const tt_view_plan* p) {
  int64_t elements = tt_type_elements(tt_type_of(b, base));
  if (p->padded != elements) {
    base = tt_pad_dim(b, tt_flatten(b, base), 0, 0, p->padded - elements, 0);
  }
  return tt_reshape(b, base, p->factors, p->factor);
}

static tt_val box_read(tt_builder* b, tt_val base, const tt_tensor* t, const tt_view_plan* p, tt_val offset) {
  box x = box_of(b, t, p, offset);
  tt_val window = base_as_factors(b, base, p);
  if (!x.at_zero) {
    window = tt_dynamic_slice(b, window, x.start, x.size);
  }
  if (x.strided) {
    int64_t zero[TT_MAX_RANK * 2] = {0};
    window = tt_slice(b, window, zero, x.size, x.step);
  }
  int64_t dims[TT_MAX_RANK];
  walk_dims(t, p, dims);
  // Factors in order are walks by falling unit, but two walks may sit on factors in the other order.
  int64_t by_factor[TT_MAX_RANK];
  int64_t perm[TT_MAX_RANK];
  int n = 0;
  for (int f = 0; f < p->factors; ++f) {
    for (int w = 0; w < p->walks; ++w) {
      if (p->walk_factor[w] == f) {
        by_factor[n] = dims[w];
        perm[w] = n++;
      }
    }
  }
  window = tt_transpose(b, tt_reshape(b, window, n, by_factor), perm);
  return arrange(b, window, t, p);
}

static tt_val box_write(tt_builder* b, tt_val base, const tt_tensor* t, const tt_view_plan* p, tt_val offset,
                        tt_val value) {
  int64_t elements = tt_type_elements(tt_type_of(b, base));
  box x = box_of(b, t, p, offset);
  tt_val whole = base_as_factors(b, base, p);
  value = unarrange(b, value, t, p);
  int64_t perm[TT_MAX_RANK];
  int n = 0;
  for (int f = 0; f < p->factors; ++f) {
    for (int w = 0; w < p->walks; ++w) {
      if (p->walk_factor[w] == f) {
        perm[n++] = w;
      }
    }
  }
  value = tt_reshape(b, tt_transpose(b, value, perm), p->factors, x.extent);
  if (x.strided) {
    int64_t zero[TT_MAX_RANK * 2] = {0};
    int64_t gaps[TT_MAX_RANK * 2];
    tt_val window = x.at_zero ? whole : tt_dynamic_slice(b, whole, x.start, x.size);
    tt_val mask = TT_POISON;
    for (int f = 0; f < p->factors; ++f) {
      gaps[f] = x.step[f] - 1;
      if (x.step[f] > 1) {
        tt_val at = tt_iota_like(b, window, TT_I64, f);
        tt_val hit = tt_test_f(b, TT_EQ, tt_bin(b, TT_REM, at, tt_const_i(b, TT_I64, x.step[f])), 0);
        mask = mask == TT_POISON ? hit : tt_and(b, mask, hit);
      }
    }
    tt_val spread = tt_pad(b, value, tt_like_i(b, value, 0), zero, zero, gaps);
    value = tt_where(b, mask, spread, window);
  }
  whole = x.at_zero ? value : tt_dynamic_update_slice(b, whole, value, x.start);
  if (p->padded != elements) {
    whole = tt_slice_dim(b, tt_flatten(b, whole), 0, 0, elements, 1);
  }
  return whole;
}

// ---- gather -----------------------------------------------------------------------------------------------------------

// Flat positions of the walked elements, [n, 1].
static tt_val positions(tt_builder* b, const tt_tensor* t, const tt_view_plan* p, tt_val offset, int64_t* out_count) {
  int64_t dims[TT_MAX_RANK];
  walk_dims(t, p, dims);
  tt_type type = tt_type_make(TT_I64, p->walks, dims);
  tt_val at = tt_expand(b, offset, p->walks, dims);
  for (int w = 0; w < p->walks; ++w) {
    tt_val step = tt_mul(b, tt_iota(b, &type, w), tt_const_i(b, TT_I64, t->strides[p->walk_dim[w]]));
    at = tt_add(b, at, step);
  }
  *out_count = tt_type_elements(&type);
  int64_t column[2] = {*out_count, 1};
  return tt_reshape(b, at, 2, column);
}

static void replace_body(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)b;
  (void)ctx;
  results[0] = args[1];
}

static tt_val gather_read(tt_builder* b, tt_val base, const tt_tensor* t, const tt_view_plan* p, tt_val offset) {
  int64_t count;
  tt_val at = positions(b, t, p, offset, &count);
  tt_gather_dims dims = {.num_collapsed = 1, .num_start_map = 1, .index_vector_dim = 1};
  int64_t one[1] = {1};
  tt_val flat = tt_gather(b, tt_flatten(b, base), at, &dims, one);
  int64_t out[TT_MAX_RANK];
  walk_dims(t, p, out);
  return arrange(b, tt_reshape(b, flat, p->walks, out), t, p);
}

static tt_val gather_write(tt_builder* b, tt_val base, const tt_tensor* t, const tt_view_plan* p, tt_val offset,
                           tt_val value) {
  int64_t count;
  tt_val at = positions(b, t, p, offset, &count);
  tt_val updates = tt_reshape(b, unarrange(b, value, t, p), 1, &count);
  tt_gather_dims dims = {.num_collapsed = 1, .num_start_map = 1, .index_vector_dim = 1};
  return tt_scatter(b, tt_flatten(b, base), at, updates, &dims, replace_body, NULL);
}

tt_val tt_view_bits(tt_builder* b, const tt_tensor* t, tt_val value) {
  if (t->conj) {
    value = tt_unary(b, TT_CHLO_CONJ, value);
  }
  return t->neg ? tt_neg(b, value) : value;
}

// ---- read and write ---------------------------------------------------------------------------------------------------

tt_val tt_view_read(tt_builder* b, tt_val base, const tt_tensor* t, const tt_view_plan* p, tt_val offset) {
  base = reinterpret(b, base, t->dtype);
  int64_t dims[TT_MAX_RANK];
  walk_dims(t, p, dims);
  switch (p->kind) {
    case TT_VIEW_EMPTY:
      return tt_zeros(b, t->dtype, t->rank, t->sizes);
    case TT_VIEW_WHOLE:
      return arrange(b, tt_reshape(b, base, p->walks, dims), t, p);
    case TT_VIEW_BOX:
      return box_read(b, base, t, p, offset);
    case TT_VIEW_RUN: {
      int64_t run = 1;
      for (int w = 0; w < p->walks; ++w) {
        run *= dims[w];
      }
      tt_val flat = tt_dynamic_slice(b, tt_flatten(b, base), &offset, &run);
      return arrange(b, tt_reshape(b, flat, p->walks, dims), t, p);
    }
    case TT_VIEW_GATHER:
    default:
      return gather_read(b, base, t, p, offset);
  }
}

tt_val tt_view_write(tt_builder* b, tt_val base, const tt_tensor* t, const tt_view_plan* p, tt_val offset,
                     tt_val value) {
  tt_type type = *tt_type_of(b, base);
  tt_val whole = reinterpret(b, base, t->dtype);
  switch (p->kind) {
    case TT_VIEW_EMPTY:
      return base;
    case TT_VIEW_WHOLE:
      whole = unarrange(b, value, t, p);
      break;
    case TT_VIEW_BOX:
      whole = box_write(b, whole, t, p, offset, value);
      break;
    case TT_VIEW_RUN: {
      tt_val flat = tt_flatten(b, unarrange(b, value, t, p));
      whole = tt_dynamic_update_slice(b, tt_flatten(b, whole), flat, &offset);
      break;
    }
    case TT_VIEW_GATHER:
    default:
      whole = gather_write(b, whole, t, p, offset, value);
      break;
  }
  if (t->dtype != type.dtype) {
    int64_t elements = tt_type_elements(&type);
    tt_val back = reinterpret_flat(b, tt_flatten(b, whole), type.dtype, elements);
    int64_t covered =
        tt_view_base_elements(&type, t->dtype) * (int64_t)tt_dtype_size(t->dtype) / (int64_t)tt_dtype_size(type.dtype);
    if (covered < elements) {
      // A tail too short for one element of the view's dtype keeps its old bytes.
      tt_val tail = tt_slice_dim(b, tt_flatten(b, base), 0, covered, elements, 1);
      tt_val parts[2] = {tt_slice_dim(b, back, 0, 0, covered, 1), tail};
      back = tt_concat(b, 2, parts, 0);
    }
    whole = back;
  }
  return tt_reshape(b, whole, type.rank, type.dims);
}

tt_val tt_view_to_dense(tt_builder* b, tt_val value, int rank, const int64_t* sizes, const int64_t* strides) {
  int64_t order[TT_MAX_RANK];
  if (!tt_view_dense_order(rank, sizes, strides, order)) {
    return value;
  }
  return tt_transpose(b, value, order);
}
