// SPDX-License-Identifier: Apache-2.0
//
// Normalization layers and their gradients: layer, RMS, batch and group norm, weight norm. 16-bit floats compute in f32.
#include "ops/reduce.h"

static tt_dtype compute_dtype(const tt_lower* L, int i) {
  return tt_dtype_compute(tt_arg_info(L, i)->dtype);
}

// first, first+1, ... last-1
static int dims_from_to(int first, int last, int64_t dims[TT_MAX_RANK]) {
  int n = 0;
  for (int d = first; d < last; ++d) {
    dims[n++] = d;
  }
  return n;
}

static tt_val mean_over(tt_builder* b, tt_val x, int n, const int64_t* dims) {
  tt_val sum = tt_reduce_dims(b, TT_REDUCE_SUM, x, n, dims);
  return tt_div_count(b, sum, (double)tt_dims_count(b, x, n, dims));
}

static tt_val inverse_root(tt_builder* b, tt_val variance, double eps) {
  return tt_unary(b, TT_RSQRT, tt_add_f(b, variance, eps));
}

// `statistic` (any sizes, with as many elements as x has outside dims) with x's rank and 1 in dims.
static tt_val as_kept(tt_builder* b, tt_val statistic, tt_val x, int n, const int64_t* dims) {
  tt_type kept = *tt_type_of(b, x);
  for (int d = 0; d < n; ++d) {
    kept.dims[dims[d]] = 1;
  }
  return tt_reshape(b, statistic, kept.rank, kept.dims);
}

// The gradient through (x - mean) * rstd, both taken over dims: of normalized x, given grad there.
static tt_val through_normalization(tt_builder* b, tt_val grad, tt_val normal, tt_val rstd, int n, const int64_t* dims,
                                    bool centred) {
  tt_val along = tt_mul(b, normal, mean_over(b, tt_mul(b, grad, normal), n, dims));
  tt_val rest = tt_sub(b, grad, along);
  if (centred) {
    rest = tt_sub(b, rest, mean_over(b, grad, n, dims));
  }
  return tt_mul(b, rest, rstd);
}

// ---- layer norm and RMS norm: statistics over the last dimensions, weights of their sizes -----------------------------------

static tt_val scaled(tt_lower* L, tt_builder* b, tt_val normal, int weight_arg, int bias_arg) {
  tt_dtype dtype = tt_dtype_of(b, normal);
  if (tt_arg_has(L, weight_arg)) {
    normal = tt_mul(b, normal, tt_arg_as(L, weight_arg, dtype));
  }
  return tt_arg_has(L, bias_arg) ? tt_add(b, normal, tt_arg_as(L, bias_arg, dtype)) : normal;
}

TT_OP(native_layer_norm,
      "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
      "(Tensor, Tensor, Tensor)") {
  tt_val x = tt_arg_as(L, 0, compute_dtype(L, 0));
  int rank = tt_rank_of(b, x);
  int64_t dims[TT_MAX_RANK];
  int n = dims_from_to(rank - tt_arg_count(L, 1), rank, dims);
  tt_val mean;
  tt_val squares;
  tt_moments(b, x, n, dims, &mean, &squares);
  tt_val variance = tt_div_count(b, squares, (double)tt_dims_count(b, x, n, dims));
  tt_val rstd = inverse_root(b, variance, tt_arg_float(L, 4));
  tt_out(L, 0, scaled(L, b, tt_mul(b, tt_sub(b, x, mean), rstd), 2, 3));
  tt_out_shaped(L, 1, mean);
  tt_out_shaped(L, 2, rstd);
}

// Gradients of weight and bias: sums over all but the last n dimensions.
static void weight_gradients(tt_lower* L, tt_builder* b, tt_val grad, tt_val normal, int n, int weight_out) {
  int64_t outer[TT_MAX_RANK];
  int count = dims_from_to(0, tt_rank_of(b, grad) - n, outer);
  if (tt_out_wanted(L, weight_out)) {
    tt_out_shaped(L, weight_out, tt_reduce(b, TT_REDUCE_SUM, tt_mul(b, grad, normal), count, outer));
  }
  if (tt_out_wanted(L, weight_out + 1)) {
    tt_out_shaped(L, weight_out + 1, tt_reduce(b, TT_REDUCE_SUM, grad, count, outer));
  }
}

TT_OP(native_layer_norm_backward,
      "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, "
      "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)") {
  tt_dtype dtype = compute_dtype(L, 1);
  tt_val grad = tt_arg_as(L, 0, dtype);
  tt_val x = tt_arg_as(L, 1, dtype);
  int rank = tt_rank_of(b, x);
  int64_t dims[TT_MAX_RANK];
  int n = dims_from_to(rank - tt_arg_count(L, 2), rank, dims);
  tt_val mean = as_kept(b, tt_arg_as(L, 3, dtype), x, n, dims);
  tt_val rstd = as_kept(b, tt_arg_as(L, 4, dtype), x, n, dims);
  tt_val normal = tt_mul(b, tt_sub(b, x, mean), rstd);
  tt_val inner = scaled(L, b, grad, 5, -1);
  tt_out(L, 0, through_normalization(b, inner, normal, rstd, n, dims, true));
  weight_gradients(L, b, grad, normal, n, 1);
}

static double machine_epsilon(tt_dtype dtype) {
  return dtype == TT_F64 ? 0x1p-52 : dtype == TT_F16 ? 0x1p-10 : dtype == TT_BF16 ? 0x1p-7 : 0x1p-23;
}

TT_OP(fused_rms_norm,
      "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)") {
  tt_val x = tt_arg_as(L, 0, compute_dtype(L, 0));
  int rank = tt_rank_of(b, x);
  int64_t dims[TT_MAX_RANK];
  int n = dims_from_to(rank - tt_arg_count(L, 1), rank, dims);
  double eps = tt_arg_float_or(L, 3, machine_epsilon(tt_dtype_of(b, x)));
  tt_val rstd = inverse_root(b, mean_over(b, tt_mul(b, x, x), n, dims), eps);
  tt_out(L, 0, scaled(L, b, tt_mul(b, x, rstd), 2, -1));
  tt_out_shaped(L, 1, rstd);
}

TT_OP(fused_rms_norm_backward,
      "_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight, "
      "bool[2] output_mask) -> (Tensor, Tensor)") {
  tt_dtype dtype = compute_dtype(L, 1);
  tt_val grad = tt_arg_as(L, 0, dtype);
  tt_val x = tt_arg_as(L, 1, dtype);
  int rank = tt_rank_of(b, x);
  int64_t dims[TT_MAX_RANK];
  int n = dims_from_to(rank - tt_arg_count(L, 2), rank, dims);
  tt_val rstd = as_kept(b, tt_arg_as(L, 3, dtype), x, n, dims);
  tt_val normal = tt_mul(b, x, rstd);
  tt_out(L, 0, through_normalization(b, scaled(L, b, grad, 4, -1), normal, rstd, n, dims, false));
  weight_gradients(L, b, grad, normal, n, 1);
}

// ---- batch norm: statistics over all but the channels, dimension 1 ----------------------------------------------------------

static int all_but_channels(int rank, int64_t dims[TT_MAX_RANK]) {
  int n = 0;
  for (int d = 0; d < rank; ++d) {
    if (d != 1) {
      dims[n++] = d;
    }
  }
  return n;
}

// A vector of one number a channel, along dimension 1 of x.
static tt_val channels(tt_lower* L, tt_builder* b, int i, tt_val x) {
  int64_t dims[TT_MAX_RANK];
  int n = all_but_channels(tt_rank_of(b, x), dims);
  return as_kept(b, tt_arg_as(L, i, tt_dtype_of(b, x)), x, n, dims);
}

typedef struct batch_args {
  int weight, bias, mean, variance;  // argument places; -1: has none
  bool training, update;
  double momentum, eps;
} batch_args;

static void update_running(tt_lower* L, tt_builder* b, int i, double momentum, tt_val batch_value) {
  if (!tt_arg_has(L, i)) {
    return;
  }
  const tt_tensor* t = tt_arg_info(L, i);
  tt_val flat = tt_reshape(b, batch_value, t->rank, t->sizes);
  tt_val old = tt_arg_as(L, i, tt_dtype_of(b, flat));
  tt_write(L, i, tt_add(b, tt_mul_f(b, old, 1 - momentum), tt_mul_f(b, flat, momentum)));
}

static void batch_norm(tt_lower* L, tt_builder* b, const batch_args* a) {
  tt_val x = tt_arg_as(L, 0, compute_dtype(L, 0));
  int64_t dims[TT_MAX_RANK];
  int n = all_but_channels(tt_rank_of(b, x), dims);
  double count = (double)tt_dims_count(b, x, n, dims);
  tt_val mean;
  tt_val variance;
  if (a->training) {
    tt_val squares;
    tt_moments(b, x, n, dims, &mean, &squares);
    variance = tt_div_count(b, squares, count);
    if (a->update) {
      update_running(L, b, a->mean, a->momentum, mean);
      update_running(L, b, a->variance, a->momentum, tt_div_count(b, squares, count - 1));
    }
  } else {
    mean = channels(L, b, a->mean, x);
    variance = channels(L, b, a->variance, x);
  }
  tt_val rstd = inverse_root(b, variance, a->eps);
  tt_val y = tt_mul(b, tt_sub(b, x, mean), rstd);
  if (tt_arg_has(L, a->weight)) {
    y = tt_mul(b, y, channels(L, b, a->weight, x));
  }
  if (tt_arg_has(L, a->bias)) {
    y = tt_add(b, y, channels(L, b, a->bias, x));
  }
  tt_out(L, 0, y);
  for (int k = 1; k <= 2; ++k) {
    const tt_type* type = tt_out_type(L, k);
    bool saved = tt_out_wanted(L, k) && tt_type_elements(type) == tt_dim_of(b, x, 1);
    if (saved) {
      tt_out_shaped(L, k, k == 1 ? mean : rstd);
    } else if (tt_out_wanted(L, k)) {
      tt_out(L, k, tt_zeros(b, type->dtype, type->rank, type->dims));
    }
  }
}

static batch_args batch_arguments(tt_lower* L, int training_arg) {
  return (batch_args){1,
                      2,
                      3,
                      4,
                      tt_arg_bool(L, training_arg),
                      true,
                      tt_arg_float(L, training_arg + 1),
                      tt_arg_float(L, training_arg + 2)};
}

TT_OP(native_batch_norm,
      "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
      "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)") {
  batch_args a = batch_arguments(L, 5);
  batch_norm(L, b, &a);
}
TT_OP(native_batch_norm_legit,
      "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
      "Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)") {
  batch_args a = batch_arguments(L, 5);
  batch_norm(L, b, &a);
}
TT_OP(native_batch_norm_legit_no_stats,
      "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, "
      "float eps) -> (Tensor, Tensor, Tensor)") {
  batch_norm(L, b, &(batch_args){1, 2, -1, -1, true, false, tt_arg_float(L, 4), tt_arg_float(L, 5)});
}
TT_OP(native_batch_norm_legit_no_training,
      "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
      "Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)") {
  batch_norm(L, b, &(batch_args){1, 2, 3, 4, false, false, tt_arg_float(L, 5), tt_arg_float(L, 6)});
}

TT_OP(native_batch_norm_backward,
      "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, "
      "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> "
      "(Tensor, Tensor, Tensor)") {
  tt_dtype dtype = compute_dtype(L, 1);
  tt_val grad = tt_arg_as(L, 0, dtype);
  tt_val x = tt_arg_as(L, 1, dtype);
  bool train = tt_arg_bool(L, 7);
  int64_t dims[TT_MAX_RANK];
  int n = all_but_channels(tt_rank_of(b, x), dims);
  tt_val mean = channels(L, b, train ? 5 : 3, x);
  tt_val rstd = train ? channels(L, b, 6, x) : inverse_root(b, channels(L, b, 4, x), tt_arg_float(L, 8));
  tt_val normal = tt_mul(b, tt_sub(b, x, mean), rstd);
  if (tt_out_wanted(L, 0)) {
    tt_val inner = tt_arg_has(L, 2) ? tt_mul(b, grad, channels(L, b, 2, x)) : grad;
    tt_out(L, 0, train ? through_normalization(b, inner, normal, rstd, n, dims, true) : tt_mul(b, inner, rstd));
  }
  if (tt_out_wanted(L, 1)) {
    tt_out_shaped(L, 1, tt_reduce_dims(b, TT_REDUCE_SUM, tt_mul(b, grad, normal), n, dims));
  }
  if (tt_out_wanted(L, 2)) {
    tt_out_shaped(L, 2, tt_reduce_dims(b, TT_REDUCE_SUM, grad, n, dims));
  }
}

// ---- group norm: input as [N, groups, channels of a group, rest] -------------------------------------------------------------

typedef struct grouping {
  int64_t dims[4];
  int64_t kept[4];     // of a statistic
  int64_t channel[4];  // of a weight
} grouping;

static grouping grouping_of(tt_lower* L, int n_arg) {
  int64_t n = tt_arg_int(L, n_arg);
  int64_t c = tt_arg_int(L, n_arg + 1);
  int64_t rest = tt_arg_int(L, n_arg + 2);
  int64_t groups = tt_arg_int(L, n_arg + 3);
  return (grouping){
      {n, groups, c / groups, rest},
      {n, groups, 1,          1   },
      {1, groups, c / groups, 1   }
  };
}

static const int64_t within_group[2] = {2, 3};

TT_OP(native_group_norm,
      "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, "
      "float eps) -> (Tensor, Tensor, Tensor)") {
  grouping g = grouping_of(L, 3);
  tt_dtype dtype = compute_dtype(L, 0);
  tt_val x = tt_reshape(b, tt_arg_as(L, 0, dtype), 4, g.dims);
  tt_val mean;
  tt_val squares;
  tt_moments(b, x, 2, within_group, &mean, &squares);
  tt_val variance = tt_div_count(b, squares, (double)(g.dims[2] * g.dims[3]));
  tt_val rstd = inverse_root(b, variance, tt_arg_float(L, 7));
  tt_val y = tt_mul(b, tt_sub(b, x, mean), rstd);
  if (tt_arg_has(L, 1)) {
    y = tt_mul(b, y, tt_reshape(b, tt_arg_as(L, 1, dtype), 4, g.channel));
  }
  if (tt_arg_has(L, 2)) {
    y = tt_add(b, y, tt_reshape(b, tt_arg_as(L, 2, dtype), 4, g.channel));
  }
  tt_out_shaped(L, 0, y);
  tt_out_shaped(L, 1, mean);
  tt_out_shaped(L, 2, rstd);
}

TT_OP(native_group_norm_backward,
      "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, "
      "SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)") {
  grouping g = grouping_of(L, 5);
  tt_dtype dtype = compute_dtype(L, 1);
  tt_val grad = tt_reshape(b, tt_arg_as(L, 0, dtype), 4, g.dims);
  tt_val x = tt_reshape(b, tt_arg_as(L, 1, dtype), 4, g.dims);
  tt_val mean = tt_reshape(b, tt_arg_as(L, 2, dtype), 4, g.kept);
  tt_val rstd = tt_reshape(b, tt_arg_as(L, 3, dtype), 4, g.kept);
  tt_val normal = tt_mul(b, tt_sub(b, x, mean), rstd);
  if (tt_out_wanted(L, 0)) {
    tt_val inner = tt_arg_has(L, 4) ? tt_mul(b, grad, tt_reshape(b, tt_arg_as(L, 4, dtype), 4, g.channel)) : grad;
    tt_out_shaped(L, 0, through_normalization(b, inner, normal, rstd, 2, within_group, true));
  }
  int64_t others[2] = {0, 3};
  if (tt_out_wanted(L, 1)) {
    tt_out_shaped(L, 1, tt_reduce(b, TT_REDUCE_SUM, tt_mul(b, grad, normal), 2, others));
  }
  if (tt_out_wanted(L, 2)) {
    tt_out_shaped(L, 2, tt_reduce(b, TT_REDUCE_SUM, grad, 2, others));
  }
}

// ---- weight norm: g * v / |v|, the norm over all dimensions but one ------------------------------------------------------------

static int all_but(int rank, int64_t kept, int64_t dims[TT_MAX_RANK]) {
  int n = 0;
  for (int d = 0; d < rank; ++d) {
    if (d != kept) {
      dims[n++] = d;
    }
  }
  return n;
}

TT_OP(weight_norm, "_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)") {
  tt_dtype dtype = compute_dtype(L, 0);
  tt_val v = tt_arg_as(L, 0, dtype);
  int64_t dims[TT_MAX_RANK];
  int n = all_but(tt_rank_of(b, v), tt_arg_int(L, 2), dims);
  tt_val norm = tt_unary(b, TT_SQRT, tt_reduce_dims(b, TT_REDUCE_SUM, tt_mul(b, v, v), n, dims));
  tt_val g = as_kept(b, tt_arg_as(L, 1, dtype), v, n, dims);
  tt_out(L, 0, tt_mul(b, v, tt_div(b, g, norm)));
  tt_out_shaped(L, 1, norm);
}

TT_OP(weight_norm_backward,
      "_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) -> "
      "(Tensor, Tensor)") {
  tt_dtype dtype = compute_dtype(L, 1);
  tt_val grad = tt_arg_as(L, 0, dtype);
  tt_val v = tt_arg_as(L, 1, dtype);
  int64_t dims[TT_MAX_RANK];
  int n = all_but(tt_rank_of(b, v), tt_arg_int(L, 4), dims);
  tt_val g = as_kept(b, tt_arg_as(L, 2, dtype), v, n, dims);
  tt_val norm = as_kept(b, tt_arg_as(L, 3, dtype), v, n, dims);
  tt_val unit = tt_div(b, v, norm);
  tt_val along = tt_reduce_dims(b, TT_REDUCE_SUM, tt_mul(b, grad, unit), n, dims);
  tt_out(L, 0, tt_mul(b, tt_div(b, g, norm), tt_sub(b, grad, tt_mul(b, unit, along))));
  tt_out_shaped(L, 1, along);
}
