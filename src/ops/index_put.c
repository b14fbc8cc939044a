// SPDX-License-Identifier: Apache-2.0
//
// Writing by index: x[i, j] = v, index_add, index_copy, index_fill, index_reduce, put, masked_fill, masked_scatter.
#include <string.h>

#include "ops/index.h"

// ---- x[i, j] = v --------------------------------------------------------------------------------------------------------

// The one mask among the indices if there is no other index; -1 otherwise. The shim leaves it in only if one value fills it.
static int lone_mask(const tt_lower* L, int arg) {
  int found = -1;
  for (int d = 0; d < tt_arg_count(L, arg); ++d) {
    const tt_tensor* t = tt_arg_info_at(L, arg, d);
    if (t == NULL) {
      continue;
    }
    if (found >= 0 || t->dtype != TT_BOOL) {
      return -1;
    }
    found = d;
  }
  return found;
}

static tt_val fill_mask(tt_lower* L, tt_builder* b, tt_val x, tt_val mask, int dim, tt_val value, bool accumulate) {
  tt_type type = *tt_type_of(b, x);
  tt_type tm = *tt_type_of(b, mask);
  int64_t map[TT_MAX_RANK];
  for (int d = 0; d < tm.rank; ++d) {
    map[d] = dim + d;
  }
  value = tt_convert(b, tt_reshape(b, value, 0, NULL), type.dtype);
  if (accumulate) {
    value = tt_bin(b, type.dtype == TT_BOOL ? TT_OR : TT_ADD, x, value);
  }
  (void)L;
  return tt_where(b, tt_broadcast_in_dim(b, mask, type.rank, type.dims, map), value, x);
}

static tt_val expand_values(tt_builder* b, tt_val values, int rank, const int64_t* dims) {
  tt_type type = *tt_type_of(b, values);
  bool fits = type.rank <= rank;
  for (int d = 1; fits && d <= type.rank; ++d) {
    fits = type.dims[type.rank - d] == 1 || type.dims[type.rank - d] == dims[rank - d];
  }
  if (!fits) {
    char have[160], want[160];
    tt_dims_text(type.rank, type.dims, sizeof have, have);
    tt_dims_text(rank, dims, sizeof want, want);
    return tt_builder_fail(
        b, TT_INVALID_ARGUMENT,
        "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of shape %s", have, want);
  }
  return tt_expand(b, values, rank, dims);
}

static tt_val write_index(tt_lower* L, tt_builder* b, int arg, tt_val values, bool accumulate, bool check) {
  tt_val x = tt_arg(L, 0);
  tt_type type = *tt_type_of(b, x);
  int mask = lone_mask(L, arg);
  if (mask >= 0 && tt_type_elements(tt_type_of(b, values)) == 1) {
    return fill_mask(L, b, x, tt_arg_at(L, arg, mask), mask, values, accumulate);
  }
  tt_multi_index m = tt_multi_index_of(L, arg, &type, check ? TT_INDEX_WRITE : TT_INDEX_UNCHECKED);
  if (m.indexed == 0) {
    values = expand_values(b, values, type.rank, type.dims);
    return accumulate ? tt_add(b, x, values) : values;
  }
  if (tt_builder_failed(b)) {
    return TT_POISON;
  }
  tt_val updates = expand_values(b, values, m.out_rank, m.out_sizes);
  return tt_scatter_combine(b, x, m.vectors, updates, &m.gather, accumulate ? TT_COMBINE_ADD : TT_COMBINE_SET);
}

TT_OP(index_put, "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor") {
  tt_out(L, 0, write_index(L, b, 1, tt_arg(L, 2), tt_arg_bool(L, 3), true));
}
TT_OP(index_put_impl,
      "_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> "
      "Tensor") {
  tt_out(L, 0, write_index(L, b, 1, tt_arg(L, 2), tt_arg_bool(L, 3), !tt_arg_bool(L, 4)));
}
TT_OP(unsafe_index_put,
      "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor") {
  tt_out(L, 0, write_index(L, b, 1, tt_arg(L, 2), tt_arg_bool(L, 3), false));
}

TT_OP(put, "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor") {
  tt_type type = *tt_type_of(b, tt_arg(L, 0));
  tt_val flat = tt_flatten(b, tt_arg(L, 0));
  tt_val at = tt_safe_place(L, tt_flatten(b, tt_arg(L, 1)), tt_dim_of(b, flat, 0), true);
  flat = tt_put_flat(b, flat, at, tt_flatten(b, tt_arg(L, 2)), tt_arg_bool(L, 3) ? TT_COMBINE_ADD : TT_COMBINE_SET);
  tt_out(L, 0, tt_reshape(b, flat, type.rank, type.dims));
}

// ---- rows ---------------------------------------------------------------------------------------------------------------

typedef struct rows {
  tt_val x, at, source;  // x at least 1-d; source has x's rank
  int dim;
} rows;

// Arguments 0 self, 1 dim, 2 index, and `source` (or -1).
static rows rows_of(tt_lower* L, tt_builder* b, int source) {
  rows r = {.x = tt_at_least_1d(b, tt_arg(L, 0))};
  r.dim = tt_wrap_dim(tt_arg_int(L, 1), tt_rank_of(b, r.x));
  r.at = tt_safe_place(L, tt_at_least_1d(b, tt_arg(L, 2)), tt_dim_of(b, r.x, r.dim), false);
  if (source >= 0) {
    tt_type type = *tt_type_of(b, r.x);
    type.dims[r.dim] = tt_dim_of(b, r.at, 0);
    r.source = tt_reshape(b, tt_arg_as(L, source, type.dtype), type.rank, type.dims);
  }
  return r;
}

static void out_like_self(tt_lower* L, tt_builder* b, tt_val value) {
  const tt_type* out = tt_out_type(L, 0);
  tt_out(L, 0, tt_reshape(b, value, out->rank, out->dims));
}

TT_OP(index_add, "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor") {
  rows r = rows_of(L, b, 3);
  tt_dtype dtype = tt_dtype_of(b, r.x);
  tt_val alpha = tt_arg_scalar(L, 4, tt_dtype_compute(dtype));
  double one;
  if (!tt_val_is_const(b, alpha, &one) || one != 1) {
    r.source = tt_bin(b, dtype == TT_BOOL ? TT_AND : TT_MUL, tt_convert(b, r.source, tt_dtype_compute(dtype)), alpha);
    r.source = tt_convert(b, r.source, dtype);
  }
  out_like_self(L, b, tt_put_rows(b, r.x, r.at, r.source, r.dim, TT_COMBINE_ADD));
}

TT_OP(index_copy, "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor") {
  rows r = rows_of(L, b, 3);
  out_like_self(L, b, tt_put_rows(b, r.x, r.at, r.source, r.dim, TT_COMBINE_SET));
}

static void index_fill(tt_lower* L, tt_builder* b, bool negative, tt_val value) {
  tt_val x = tt_at_least_1d(b, tt_arg(L, 0));
  int dim = tt_wrap_dim(tt_arg_int(L, 1), tt_rank_of(b, x));
  tt_val at = tt_safe_place(L, tt_at_least_1d(b, tt_arg(L, 2)), tt_dim_of(b, x, dim), negative);
  // Which rows are filled, then one select: cheaper than a scatter of rows.
  int64_t n = tt_dim_of(b, x, dim);
  int64_t count = tt_dim_of(b, at, 0);
  tt_val yes = tt_expand(b, tt_const_i(b, TT_BOOL, 1), 1, &count);
  tt_val hit = tt_put_flat(b, tt_zeros(b, TT_BOOL, 1, &n), at, yes, TT_COMBINE_SET);
  tt_type type = *tt_type_of(b, x);
  int64_t map = dim;
  hit = tt_broadcast_in_dim(b, hit, type.rank, type.dims, &map);
  out_like_self(L, b, tt_where(b, hit, value, x));
}
TT_OP(index_fill_scalar, "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor") {
  index_fill(L, b, true, tt_arg_scalar(L, 3, tt_arg_info(L, 0)->dtype));
}
TT_OP(index_fill_tensor, "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor") {
  index_fill(L, b, true, tt_arg_as(L, 3, tt_arg_info(L, 0)->dtype));
}

// ---- reductions into rows and elements ----------------------------------------------------------------------------------

static tt_val floor_divide(tt_builder* b, tt_val x, tt_val y) {
  tt_val q = tt_div(b, x, y);
  if (tt_dtype_is_signed(tt_dtype_of(b, x)) && tt_dtype_class(tt_dtype_of(b, x)) == 'i') {
    tt_val rest = tt_sub(b, x, tt_mul(b, q, y));
    q = tt_where(b, tt_test_f(b, TT_LT, rest, 0), tt_add_f(b, q, -1), q);
  }
  return q;
}

typedef tt_val (*put_fn)(tt_builder* b, tt_val x, tt_val at, tt_val src, int dim, tt_combine how);

// scatter_reduce and index_reduce differ only in how they address.
static tt_val reduce_into(tt_lower* L, tt_builder* b, tt_val x, tt_val at, tt_val src, int dim, const char* reduce,
                          bool include_self, put_fn put) {
  tt_dtype dtype = tt_dtype_of(b, x);
  bool mean = strcmp(reduce, "mean") == 0;
  tt_combine how = mean || strcmp(reduce, "sum") == 0 || strcmp(reduce, "add") == 0 ? TT_COMBINE_ADD
                   : strcmp(reduce, "prod") == 0 || strcmp(reduce, "multiply") == 0 ? TT_COMBINE_MUL
                   : strcmp(reduce, "amax") == 0                                    ? TT_COMBINE_MAX
                                                                                    : TT_COMBINE_MIN;
  if (how == TT_COMBINE_ADD || how == TT_COMBINE_MUL) {
    x = tt_convert(b, x, tt_dtype_compute(dtype));
    src = tt_convert(b, src, tt_dtype_compute(dtype));
  }
  (void)L;
  tt_type type = *tt_type_of(b, x);
  tt_val before = x;
  tt_val hit = TT_POISON;
  tt_val ones = tt_expand_like(b, tt_const_i(b, TT_BOOL, 1), src);
  if (!include_self) {
    tt_val identity = how == TT_COMBINE_ADD   ? tt_like_i(b, x, 0)
                      : how == TT_COMBINE_MUL ? tt_like_i(b, x, 1)
                      : how == TT_COMBINE_MAX ? tt_const_min(b, type.dtype)
                                              : tt_const_max(b, type.dtype);
    hit = put(b, tt_zeros(b, TT_BOOL, type.rank, type.dims), at, ones, dim, TT_COMBINE_SET);
    x = tt_where(b, hit, identity, x);
  }
  x = put(b, x, at, src, dim, how);
  if (mean) {
    tt_dtype counter = tt_dtype_class(type.dtype) == 'f' || tt_dtype_class(type.dtype) == 'c' ? type.dtype : TT_I64;
    tt_val count = tt_zeros(b, counter, type.rank, type.dims);
    count = put(b, count, at, tt_convert(b, ones, counter), dim, TT_COMBINE_ADD);
    if (include_self) {
      count = tt_add_f(b, count, 1);
    } else {
      count = tt_where(b, hit, count, tt_like_i(b, count, 1));
    }
    count = tt_convert(b, count, type.dtype);
    x = counter == TT_I64 ? floor_divide(b, x, count) : tt_div(b, x, count);
  }
  if (hit != TT_POISON) {
    x = tt_where(b, hit, x, before);
  }
  return tt_convert(b, x, dtype);
}

TT_OP(index_reduce,
      "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> "
      "Tensor") {
  rows r = rows_of(L, b, 3);
  out_like_self(L, b,
                reduce_into(L, b, r.x, r.at, r.source, r.dim, tt_arg_string(L, 4), tt_arg_bool(L, 5), tt_put_rows));
}

// ---- scatter --------------------------------------------------------------------------------------------------------------

// Arguments 0 self, 1 dim, 2 index; `src` a tensor of self's dtype, or a number to expand.
static void scatter(tt_lower* L, tt_builder* b, tt_val src, const char* reduce, bool include_self) {
  tt_val x = tt_at_least_1d(b, tt_arg(L, 0));
  int dim = tt_wrap_dim(tt_arg_int(L, 1), tt_rank_of(b, x));
  tt_val index = tt_arg(L, 2);
  if (tt_type_elements(tt_type_of(b, index)) == 0) {
    tt_out(L, 0, tt_arg(L, 0));
    return;
  }
  index = tt_at_least_1d(b, index);
  tt_val at = tt_safe_place(L, index, tt_dim_of(b, x, dim), false);
  tt_type ta = *tt_type_of(b, at);
  src = tt_rank_of(b, src) == 0 ? tt_expand(b, src, ta.rank, ta.dims) : src;
  tt_val out = reduce[0] == '\0' ? tt_scatter_along(b, x, at, src, dim, TT_COMBINE_SET)
                                 : reduce_into(L, b, x, at, src, dim, reduce, include_self, tt_scatter_along);
  out_like_self(L, b, out);
}
static tt_val source(tt_lower* L, int i) {
  return tt_arg_as(L, i, tt_arg_info(L, 0)->dtype);
}
static tt_val number(tt_lower* L, int i) {
  return tt_arg_scalar(L, i, tt_arg_info(L, 0)->dtype);
}

TT_OP(scatter_src, "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor") {
  scatter(L, b, source(L, 3), "", true);
}
TT_OP(scatter_value, "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor") {
  scatter(L, b, number(L, 3), "", true);
}
TT_OP(scatter_src_reduce, "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor") {
  scatter(L, b, source(L, 3), tt_arg_string(L, 4), true);
}
TT_OP(scatter_value_reduce,
      "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor") {
  scatter(L, b, number(L, 3), tt_arg_string(L, 4), true);
}
TT_OP(scatter_add, "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor") {
  scatter(L, b, source(L, 3), "sum", true);
}
TT_OP(scatter_reduce,
      "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> "
      "Tensor") {
  scatter(L, b, source(L, 3), tt_arg_string(L, 4), tt_arg_bool(L, 5));
}
