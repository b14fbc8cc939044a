// SPDX-License-Identifier: Apache-2.0
//
// What reductions, norms, scans and sorts share.
#ifndef TT_OPS_REDUCE_H
#define TT_OPS_REDUCE_H

#include "ops/op.h"

// Tensor argument i in `dtype` with at least one dimension: PyTorch lets dim 0 and -1 name a 0-d tensor's only element.
tt_val tt_arg_1d(tt_lower* L, int i, tt_dtype dtype);
// Output k = value, in the output's sizes (elements as many): dimensions of size 1 come and go, as keepdim says.
void tt_out_shaped(tt_lower* L, int k, tt_val value);
// The dtype in which output k is accumulated, complex if the input of dtype `input` is.
tt_dtype tt_accumulate_dtype(const tt_lower* L, int k, tt_dtype input);
// Product of the sizes of `dims`.
int64_t tt_dims_count(tt_builder* b, tt_val x, int ndims, const int64_t* dims);
// x / count, count possibly 0 (gives NaN or inf).
tt_val tt_div_count(tt_builder* b, tt_val x, double count);
// Mean over `dims`, and the sum of squared distances from it (real). Both keep the dimensions as 1.
void tt_moments(tt_builder* b, tt_val x, int ndims, const int64_t* dims, tt_val* out_mean, tt_val* out_squares);
// |x|^2, real.
tt_val tt_abs_squared(tt_builder* b, tt_val x);
// As tt_reduce_keep, but no dims means none, not all.
tt_val tt_reduce_dims(tt_builder* b, tt_reduce_kind kind, tt_val x, int ndims, const int64_t* dims);
// (sum |x|^p)^(1/p) over dims, its limits at infinity, and at 0 the number of elements that are not 0. Takes |x|.
tt_val tt_p_norm(tt_builder* b, tt_val magnitude, double p, int ndims, const int64_t* dims);
// log(sum(exp(x))) over dims, dimensions kept.
tt_val tt_log_sum_exp(tt_builder* b, tt_val x, int ndims, const int64_t* dims);

#endif  // TT_OPS_REDUCE_H
