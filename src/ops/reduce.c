// SPDX-License-Identifier: Apache-2.0
//
// Reductions: sums, products, extremes and their positions, truth, counts.
#include "ops/reduce.h"

#include <math.h>

// ---- shared -----------------------------------------------------------------------------------------------------------

tt_val tt_arg_1d(tt_lower* L, int i, tt_dtype dtype) {
  tt_builder* b = tt_lower_builder(L);
  tt_val x = tt_arg_as(L, i, dtype);
  return tt_rank_of(b, x) == 0 ? tt_flatten(b, x) : x;
}

void tt_out_shaped(tt_lower* L, int k, tt_val value) {
  const tt_type* type = tt_out_type(L, k);
  if (type->dtype != TT_DTYPE_INVALID) {
    tt_out(L, k, tt_reshape(tt_lower_builder(L), value, type->rank, type->dims));
  }
}

tt_dtype tt_accumulate_dtype(const tt_lower* L, int k, tt_dtype input) {
  tt_dtype dtype = tt_dtype_compute(tt_out_type(L, k)->dtype);
  return tt_dtype_is_complex(input) ? tt_dtype_complex(dtype) : dtype;
}

int64_t tt_dims_count(tt_builder* b, tt_val x, int ndims, const int64_t* dims) {
  int64_t count = 1;
  for (int d = 0; d < ndims; ++d) {
    count *= tt_dim_of(b, x, (int)dims[d]);
  }
  return count;
}

tt_val tt_div_count(tt_builder* b, tt_val x, double count) {
  return tt_div(b, x, tt_like_f(b, x, count));
}

tt_val tt_reduce_dims(tt_builder* b, tt_reduce_kind kind, tt_val x, int ndims, const int64_t* dims) {
  return ndims == 0 ? x : tt_reduce_keep(b, kind, x, ndims, dims);
}

tt_val tt_abs_squared(tt_builder* b, tt_val x) {
  if (!tt_dtype_is_complex(tt_dtype_of(b, x))) {
    return tt_mul(b, x, x);
  }
  tt_val re = tt_unary(b, TT_REAL, x);
  tt_val im = tt_unary(b, TT_IMAG, x);
  return tt_add(b, tt_mul(b, re, re), tt_mul(b, im, im));
}

void tt_moments(tt_builder* b, tt_val x, int ndims, const int64_t* dims, tt_val* out_mean, tt_val* out_squares) {
  double count = (double)tt_dims_count(b, x, ndims, dims);
  *out_mean = tt_div_count(b, tt_reduce_dims(b, TT_REDUCE_SUM, x, ndims, dims), count);
  tt_val distance = tt_sub(b, x, *out_mean);
  *out_squares = tt_reduce_dims(b, TT_REDUCE_SUM, tt_abs_squared(b, distance), ndims, dims);
}

// ---- sums and products --------------------------------------------------------------------------------------------------

// PyTorch converts to the result's dtype first; 16-bit floats are then added up in f32.
static tt_val result_typed(tt_lower* L, tt_builder* b, int i) {
  tt_dtype dtype = tt_out_type(L, 0)->dtype;
  tt_val x = tt_arg(L, i);
  bool narrows = tt_dtype_size(dtype) < tt_dtype_size(tt_dtype_of(b, x)) && tt_dtype_is_float(dtype);
  return tt_convert(b, narrows ? tt_convert(b, x, dtype) : x, tt_dtype_compute(dtype));
}

static void reduce_dims_of_arg(tt_lower* L, tt_builder* b, tt_reduce_kind kind, tt_val x, int dims_arg) {
  int64_t dims[TT_MAX_RANK];
  int n = tt_arg_dims(L, dims_arg, tt_rank_of(b, x), dims);
  tt_out_shaped(L, 0, tt_reduce_dims(b, kind, x, n, dims));
}

enum { NO_ARG = 63 };  // an argument that no schema has: None, so all dimensions

TT_OP(sum_all, "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor") {
  reduce_dims_of_arg(L, b, TT_REDUCE_SUM, result_typed(L, b, 0), NO_ARG);
}
TT_OP(sum, "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor") {
  reduce_dims_of_arg(L, b, TT_REDUCE_SUM, result_typed(L, b, 0), 1);
}
TT_OP(prod_all, "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor") {
  reduce_dims_of_arg(L, b, TT_REDUCE_PROD, result_typed(L, b, 0), NO_ARG);
}
TT_OP(prod, "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor") {
  reduce_dims_of_arg(L, b, TT_REDUCE_PROD, result_typed(L, b, 0), 1);
}
TT_OP(nansum, "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor") {
  tt_val x = result_typed(L, b, 0);
  reduce_dims_of_arg(L, b, TT_REDUCE_SUM, tt_where(b, tt_is_nan(b, x), tt_full_like(b, x, 0), x), 1);
}

static void mean(tt_lower* L, tt_builder* b, int dims_arg) {
  tt_val x = result_typed(L, b, 0);
  int64_t dims[TT_MAX_RANK];
  int n = tt_arg_dims(L, dims_arg, tt_rank_of(b, x), dims);
  tt_val sum = tt_reduce_dims(b, TT_REDUCE_SUM, x, n, dims);
  tt_out_shaped(L, 0, tt_div_count(b, sum, (double)tt_dims_count(b, x, n, dims)));
}
TT_OP(mean_all, "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor") {
  mean(L, b, NO_ARG);
}
TT_OP(mean, "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor") {
  mean(L, b, 1);
}

TT_OP(trace, "trace(Tensor self) -> Tensor") {
  tt_val x = tt_convert(b, tt_arg(L, 0), tt_accumulate_dtype(L, 0, TT_BOOL));
  tt_val row = tt_iota_like(b, x, TT_I32, 0);
  tt_val column = tt_iota_like(b, x, TT_I32, 1);
  tt_val diagonal = tt_where(b, tt_test(b, TT_EQ, row, column), x, tt_full_like(b, x, 0));
  int64_t dims[2] = {0, 1};
  tt_out(L, 0, tt_reduce(b, TT_REDUCE_SUM, diagonal, 2, dims));
}

// ---- truth and counts -----------------------------------------------------------------------------------------------------

#define TT_TRUTH(name, kind)                                                                      \
  TT_OP(name##_all_dims, #name "(Tensor self) -> Tensor") {                                       \
    reduce_dims_of_arg(L, b, kind, tt_arg_as(L, 0, TT_BOOL), NO_ARG);                             \
  }                                                                                               \
  TT_OP(name##_dim, #name ".dim(Tensor self, int dim, bool keepdim=False) -> Tensor") {           \
    reduce_dims_of_arg(L, b, kind, tt_arg_as(L, 0, TT_BOOL), 1);                                  \
  }                                                                                               \
  TT_OP(name##_dims, #name ".dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor") { \
    truth_dims(L, b, kind);                                                                       \
  }
// Unlike other reductions, an empty list of dims is none here, and only None is all.
static void truth_dims(tt_lower* L, tt_builder* b, tt_reduce_kind kind) {
  tt_val x = tt_arg_as(L, 0, TT_BOOL);
  if (tt_arg_has(L, 1) && tt_arg_count(L, 1) == 0) {
    tt_out_shaped(L, 0, x);
  } else {
    reduce_dims_of_arg(L, b, kind, x, 1);
  }
}
TT_TRUTH(any, TT_REDUCE_OR)
TT_TRUTH(all, TT_REDUCE_AND)

static void count_nonzero(tt_lower* L, tt_builder* b) {
  tt_val x = tt_arg_as(L, 0, TT_BOOL);
  bool small = tt_type_elements(tt_type_of(b, x)) <= INT32_MAX;
  reduce_dims_of_arg(L, b, TT_REDUCE_SUM, tt_convert(b, x, small ? TT_I32 : TT_I64), 1);
}
TT_OP(count_nonzero, "count_nonzero(Tensor self, int? dim=None) -> Tensor") {
  count_nonzero(L, b);
}
TT_OP(count_nonzero_dims, "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor") {
  count_nonzero(L, b);
}

// ---- extremes ---------------------------------------------------------------------------------------------------------------

// The result alone, and result with position.
static void extreme(tt_lower* L, tt_builder* b, tt_reduce_kind kind, int dims_arg) {
  reduce_dims_of_arg(L, b, kind, tt_arg(L, 0), dims_arg);
}
static void extreme_along(tt_lower* L, tt_builder* b, bool largest) {
  tt_val x = tt_arg_1d(L, 0, TT_DTYPE_INVALID);
  tt_val values;
  tt_val positions = tt_arg_reduce(b, largest, x, tt_wrap_dim(tt_arg_int(L, 1), tt_rank_of(b, x)), &values);
  tt_out_shaped(L, 0, values);
  tt_out_shaped(L, 1, positions);
}
TT_OP(amax, "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor") {
  extreme(L, b, TT_REDUCE_MAX, 1);
}
TT_OP(amin, "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor") {
  extreme(L, b, TT_REDUCE_MIN, 1);
}
// Meta kernels do not mind that an empty tensor has no extreme; PyTorch's others do.
static void extreme_of_all(tt_lower* L, tt_builder* b, tt_reduce_kind kind) {
  tt_val x = tt_arg(L, 0);
  if (tt_type_elements(tt_type_of(b, x)) == 0) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT,
                    "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                    "with the 'dim' argument.",
                    kind == TT_REDUCE_MAX ? "max" : "min");
    return;
  }
  extreme(L, b, kind, NO_ARG);
}
TT_OP(max, "max(Tensor self) -> Tensor") {
  extreme_of_all(L, b, TT_REDUCE_MAX);
}
TT_OP(min, "min(Tensor self) -> Tensor") {
  extreme_of_all(L, b, TT_REDUCE_MIN);
}
TT_OP(max_dim, "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)") {
  extreme_along(L, b, true);
}
TT_OP(min_dim, "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)") {
  extreme_along(L, b, false);
}
TT_OP(aminmax, "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)") {
  tt_val x = tt_arg(L, 0);
  int64_t dims[TT_MAX_RANK];
  int n = tt_arg_dims(L, 1, tt_rank_of(b, x), dims);
  tt_out_shaped(L, 0, tt_reduce_dims(b, TT_REDUCE_MIN, x, n, dims));
  tt_out_shaped(L, 1, tt_reduce_dims(b, TT_REDUCE_MAX, x, n, dims));
}

static void position(tt_lower* L, tt_builder* b, bool largest) {
  tt_val x = tt_arg_1d(L, 0, TT_DTYPE_INVALID);
  bool along = tt_arg_has(L, 1);
  if (!along) {
    x = tt_flatten(b, x);
  }
  int dim = along ? tt_wrap_dim(tt_arg_int(L, 1), tt_rank_of(b, x)) : 0;
  tt_out_shaped(L, 0, tt_arg_reduce(b, largest, x, dim, NULL));
}
TT_OP(argmax, "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor") {
  position(L, b, true);
}
TT_OP(argmin, "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor") {
  position(L, b, false);
}
