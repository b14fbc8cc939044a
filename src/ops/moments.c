// SPDX-License-Identifier: Apache-2.0
//
// Reductions that take more than one pass: variance, vector norms, log-sum-exp.
#include <math.h>

#include "ops/reduce.h"

// ---- variance and standard deviation ------------------------------------------------------------------------------------

static void spread_of(tt_lower* L, tt_builder* b, bool root, bool with_mean) {
  tt_dtype input = tt_arg_info(L, 0)->dtype;
  tt_val x = tt_arg_as(L, 0, tt_dtype_compute(tt_default_float(L, input)));
  int64_t dims[TT_MAX_RANK];
  int n = tt_arg_dims(L, 1, tt_rank_of(b, x), dims);
  double correction = tt_arg_float_or(L, 2, 1);
  tt_val mean;
  tt_val squares;
  tt_moments(b, x, n, dims, &mean, &squares);
  tt_val variance = tt_div_count(b, squares, fmax(0, (double)tt_dims_count(b, x, n, dims) - correction));
  tt_out_shaped(L, 0, root ? tt_unary(b, TT_SQRT, variance) : variance);
  if (with_mean) {
    tt_out_shaped(L, 1, mean);
  }
}

#define TT_SPREAD(id, returns, root, with_mean)                                                                     \
  TT_OP(id, #id                                                                                                     \
        ".correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> " returns) { \
    spread_of(L, b, root, with_mean);                                                                               \
  }
TT_SPREAD(var, "Tensor", false, false)
TT_SPREAD(std, "Tensor", true, false)
TT_SPREAD(var_mean, "(Tensor, Tensor)", false, true)
TT_SPREAD(std_mean, "(Tensor, Tensor)", true, true)

// ---- norms --------------------------------------------------------------------------------------------------------------

tt_val tt_p_norm(tt_builder* b, tt_val magnitude, double p, int n, const int64_t* dims) {
  if (isinf(p)) {
    return tt_reduce_dims(b, p > 0 ? TT_REDUCE_MAX : TT_REDUCE_MIN, magnitude, n, dims);
  }
  if (p == 0) {
    tt_val counted = tt_convert(b, tt_test_f(b, TT_NE, magnitude, 0), tt_dtype_of(b, magnitude));
    return tt_reduce_dims(b, TT_REDUCE_SUM, counted, n, dims);
  }
  if (p == 1) {
    return tt_reduce_dims(b, TT_REDUCE_SUM, magnitude, n, dims);
  }
  if (p == 2) {
    return tt_unary(b, TT_SQRT, tt_reduce_dims(b, TT_REDUCE_SUM, tt_mul(b, magnitude, magnitude), n, dims));
  }
  tt_val powers = tt_bin(b, TT_POW, magnitude, tt_like_f(b, magnitude, p));
  tt_val sum = tt_reduce_dims(b, TT_REDUCE_SUM, powers, n, dims);
  return tt_bin(b, TT_POW, sum, tt_like_f(b, sum, 1 / p));
}

static void vector_norm(tt_lower* L, tt_builder* b, int p_arg, int dims_arg) {
  tt_dtype input = tt_arg_info(L, 0)->dtype;
  tt_val x = tt_arg_as(L, 0, tt_accumulate_dtype(L, 0, input));
  int64_t dims[TT_MAX_RANK];
  int n = tt_arg_dims(L, dims_arg, tt_rank_of(b, x), dims);
  double p = tt_arg_float_or(L, p_arg, 2);
  tt_val norm;
  if (p == 2) {
    norm = tt_unary(b, TT_SQRT, tt_reduce_dims(b, TT_REDUCE_SUM, tt_abs_squared(b, x), n, dims));
  } else {
    norm = tt_p_norm(b, tt_unary(b, TT_ABS, x), p, n, dims);
  }
  tt_out_shaped(L, 0, norm);
}
TT_OP(
    linalg_vector_norm,
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor") {
  vector_norm(L, b, 1, 2);
}
TT_OP(norm, "norm.Scalar(Tensor self, Scalar p=2) -> Tensor") {
  vector_norm(L, b, 1, -1);
}
TT_OP(norm_dtype, "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor") {
  vector_norm(L, b, 1, -1);
}
TT_OP(norm_dim, "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor") {
  vector_norm(L, b, 1, 2);
}
TT_OP(norm_dim_dtype,
      "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor") {
  vector_norm(L, b, 1, 2);
}

// Scales the slices along a dimension whose norm exceeds maxnorm down to it.
TT_OP(renorm, "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor") {
  tt_val x = tt_arg_as(L, 0, tt_accumulate_dtype(L, 0, tt_arg_info(L, 0)->dtype));
  int rank = tt_rank_of(b, x);
  int kept = tt_wrap_dim(tt_arg_int(L, 2), rank);
  int64_t dims[TT_MAX_RANK];
  int n = 0;
  for (int d = 0; d < rank; ++d) {
    if (d != kept) {
      dims[n++] = d;
    }
  }
  tt_val norm = tt_p_norm(b, tt_unary(b, TT_ABS, x), tt_arg_float(L, 1), n, dims);
  tt_val limit = tt_arg_scalar(L, 3, tt_dtype_of(b, norm));
  tt_val shrunk = tt_div(b, limit, tt_add_f(b, norm, 1e-7));
  tt_val factor = tt_where(b, tt_test(b, TT_GT, norm, limit), shrunk, tt_like_f(b, norm, 1));
  tt_out(L, 0, tt_mul(b, x, tt_convert(b, factor, tt_dtype_of(b, x))));
}

// ---- log-sum-exp ----------------------------------------------------------------------------------------------------------

tt_val tt_log_sum_exp(tt_builder* b, tt_val x, int ndims, const int64_t* dims) {
  bool complex = tt_dtype_is_complex(tt_dtype_of(b, x));
  tt_val highest = tt_reduce_dims(b, TT_REDUCE_MAX, complex ? tt_unary(b, TT_REAL, x) : x, ndims, dims);
  // An infinite maximum is left out: inf - inf is NaN.
  tt_val shift = tt_where(b, tt_is_inf(b, highest), tt_full_like(b, highest, 0), highest);
  shift = tt_convert(b, shift, tt_dtype_of(b, x));
  tt_val sum = tt_reduce_dims(b, TT_REDUCE_SUM, tt_unary(b, TT_EXP, tt_sub(b, x, shift)), ndims, dims);
  return tt_add(b, tt_unary(b, TT_LOG, sum), shift);
}

TT_OP(logsumexp, "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor") {
  tt_val x = tt_arg_as(L, 0, tt_dtype_compute(tt_default_float(L, tt_arg_info(L, 0)->dtype)));
  int64_t dims[TT_MAX_RANK];
  int n = tt_arg_dims(L, 1, tt_rank_of(b, x), dims);
  tt_out_shaped(L, 0, tt_log_sum_exp(b, x, n, dims));
}
