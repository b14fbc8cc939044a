// SPDX-License-Identifier: Apache-2.0
//
// Contractions: dot_general and convolution.
#include <inttypes.h>

#include "hlo/graph.h"

static bool check_result_dtype(tt_builder* b, const char* who, tt_val lhs, tt_val rhs, tt_dtype result) {
  tt_dtype l = tt_dtype_of(b, lhs), r = tt_dtype_of(b, rhs);
  // The fp8 formats mix; all else is one dtype.
  bool small = tt_dtype_is_float(l) && tt_dtype_is_float(r) && tt_dtype_size(l) == 1 && tt_dtype_size(r) == 1;
  if (l != r && !small) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected operands of one dtype, got %s and %s", who, tt_show(b, lhs),
                    tt_show(b, rhs));
    return false;
  }
  if (tt_dtype_class(l) != tt_dtype_class(result) && !(tt_dtype_is_integral(l) && tt_dtype_is_integral(result))) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected a result dtype of the operands' kind, got %s for %s", who,
                    tt_dtype_text(result), tt_dtype_text(l));
    return false;
  }
  return true;
}

// ---- dot_general --------------------------------------------------------------------------------------------------

// Batch and contracting dimensions of one operand must be distinct as a whole.
static bool check_side(tt_builder* b, const char* side, int rank, int num_batch, const int64_t* batch, int num_contract,
                       const int64_t* contract, uint32_t* out_used) {
  int64_t all[2 * TT_MAX_RANK];
  int n = 0;
  if (num_batch < 0 || num_contract < 0 || num_batch + num_contract > rank) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "dot_general: expected at most %d %s dimensions named, got %d", rank, side,
                    num_batch + num_contract);
    return false;
  }
  for (int i = 0; i < num_batch; i++) {
    all[n++] = batch[i];
  }
  for (int i = 0; i < num_contract; i++) {
    all[n++] = contract[i];
  }
  if (!tt_check_axes(b, "dot_general", side, n, all, rank)) {
    return false;
  }
  *out_used = 0;
  for (int i = 0; i < n; i++) {
    *out_used |= UINT32_C(1) << all[i];
  }
  return true;
}

static bool check_pairs(tt_builder* b, const char* what, tt_val lhs, tt_val rhs, int n, const int64_t* l,
                        const int64_t* r) {
  const tt_type *tl = tt_type_of(b, lhs), *tr = tt_type_of(b, rhs);
  for (int i = 0; i < n; i++) {
    if (tl->dims[l[i]] != tr->dims[r[i]]) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT,
                      "dot_general: expected equal %s sizes, got %" PRId64 " and %" PRId64 " in %s and %s", what,
                      tl->dims[l[i]], tr->dims[r[i]], tt_show(b, lhs), tt_show(b, rhs));
      return false;
    }
  }
  return true;
}

static bool add_dim(tt_builder* b, tt_type* type, int64_t size, bool bounded) {
  if (type->rank == TT_MAX_RANK) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "dot_general: expected at most %d result dimensions", TT_MAX_RANK);
    return false;
  }
  type->bounded |= (uint32_t)bounded << type->rank;
  type->dims[type->rank++] = size;
  return true;
}

static bool add_free(tt_builder* b, tt_type* type, const tt_type* operand, uint32_t used) {
  for (int d = 0; d < operand->rank; d++) {
    if (!((used >> d) & 1) && !add_dim(b, type, operand->dims[d], (operand->bounded >> d) & 1)) {
      return false;
    }
  }
  return true;
}

tt_val tt_dot_general(tt_builder* b, tt_val lhs, tt_val rhs, int num_batch, const int64_t* lhs_batch,
                      const int64_t* rhs_batch, int num_contract, const int64_t* lhs_contract,
                      const int64_t* rhs_contract, tt_dtype result) {
  tt_val operands[] = {lhs, rhs};
  if (!tt_usable(b, "dot_general", 2, operands)) {
    return TT_POISON;
  }
  const tt_type *tl = tt_type_of(b, lhs), *tr = tt_type_of(b, rhs);
  result = result == TT_DTYPE_INVALID ? tl->dtype : result;
  uint32_t lhs_used = 0, rhs_used = 0;
  if (!check_result_dtype(b, "dot_general", lhs, rhs, result) ||
      !check_side(b, "lhs", tl->rank, num_batch, lhs_batch, num_contract, lhs_contract, &lhs_used) ||
      !check_side(b, "rhs", tr->rank, num_batch, rhs_batch, num_contract, rhs_contract, &rhs_used) ||
      !check_pairs(b, "batch", lhs, rhs, num_batch, lhs_batch, rhs_batch) ||
      !check_pairs(b, "contracting", lhs, rhs, num_contract, lhs_contract, rhs_contract)) {
    return TT_POISON;
  }
  tt_type type = tt_type_scalar(result);
  for (int i = 0; i < num_batch; i++) {
    bool bounded = ((tl->bounded >> lhs_batch[i]) & 1) || ((tr->bounded >> rhs_batch[i]) & 1);
    if (!add_dim(b, &type, tl->dims[lhs_batch[i]], bounded)) {
      return TT_POISON;
    }
  }
  if (!add_free(b, &type, tl, lhs_used) || !add_free(b, &type, tr, rhs_used)) {
    return TT_POISON;
  }
  TT_SCOPED_TEXT(numbers);
  tt_attr_list(&numbers, "lhs_batching_dimensions", num_batch, lhs_batch);
  tt_attr_list(&numbers, "rhs_batching_dimensions", num_batch, rhs_batch);
  tt_attr_list(&numbers, "lhs_contracting_dimensions", num_contract, lhs_contract);
  tt_attr_list(&numbers, "rhs_contracting_dimensions", num_contract, rhs_contract);
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs, "dot_dimension_numbers = #stablehlo.dot<%s>", numbers.text ? numbers.text : "");
  tt_attr_precision(b, &attrs);
  return tt_emit1(b, "stablehlo.dot_general", attrs.text, 2, operands, &type);
}

// ---- convolution --------------------------------------------------------------------------------------------------

tt_conv tt_conv_default(int spatial) {
  tt_conv conv = {
      .spatial = spatial, .feature_groups = 1, .batch_groups = 1, .lhs_feature = 1, .rhs_in = 1, .out_feature = 1};
  for (int i = 0; i < 8; i++) {
    conv.stride[i] = conv.lhs_dilation[i] = conv.rhs_dilation[i] = 1;
    conv.lhs_spatial[i] = conv.rhs_spatial[i] = conv.out_spatial[i] = i + 2;
  }
  return conv;
}

// Fills `letters` with what stands at each dimension (-1 first, -2 second, or the spatial index).
static bool place_dims(tt_builder* b, const char* side, int spatial, int64_t first, int64_t second,
                       const int64_t* where, int* letters) {
  int64_t all[10] = {first, second};
  for (int i = 0; i < spatial; i++) {
    all[i + 2] = where[i];
  }
  if (!tt_check_axes(b, "convolution", side, spatial + 2, all, spatial + 2)) {
    return false;
  }
  for (int i = 0; i < spatial + 2; i++) {
    letters[all[i]] = i - 2;
  }
  return true;
}

static void add_letters(tt_strbuf* s, int rank, const int* letters, char first, char second) {
  tt_strbuf_add(s, "[");
  for (int i = 0; i < rank; i++) {
    tt_strbuf_add(s, i ? ", " : "");
    if (letters[i] >= 0) {
      tt_strbuf_addf(s, "%d", letters[i]);
    } else {
      tt_strbuf_addf(s, "%c", letters[i] == -2 ? first : second);
    }
  }
  tt_strbuf_add(s, "]");
}

static bool check_groups(tt_builder* b, tt_val lhs, tt_val rhs, const tt_conv* c) {
  const tt_type *tl = tt_type_of(b, lhs), *tr = tt_type_of(b, rhs);
  int64_t groups = c->feature_groups, batch_groups = c->batch_groups;
  if (groups < 1 || batch_groups < 1 || (groups > 1 && batch_groups > 1)) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT,
                    "convolution: expected group counts of 1 or more, one of them 1, got %" PRId64 " and %" PRId64,
                    groups, batch_groups);
    return false;
  }
  int64_t in = tl->dims[c->lhs_feature], kernel_in = tr->dims[c->rhs_in], out = tr->dims[c->rhs_out];
  if (in % groups != 0 || in / groups != kernel_in) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT,
                    "convolution: expected %" PRId64 " input features in %" PRId64
                    " groups to match the kernel's %" PRId64,
                    in, groups, kernel_in);
    return false;
  }
  if (out % groups != 0 || out % batch_groups != 0 || tl->dims[c->lhs_batch] % batch_groups != 0) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT,
                    "convolution: expected sizes divisible by the groups, got %" PRId64
                    " output features and batch %" PRId64 " for %" PRId64 " and %" PRId64 " groups",
                    out, tl->dims[c->lhs_batch], groups, batch_groups);
    return false;
  }
  return true;
}

static int64_t dilated(int64_t size, int64_t dilation) {
  return size == 0 ? 0 : (size - 1) * dilation + 1;
}

static bool spatial_size(tt_builder* b, const tt_conv* c, int i, int64_t size, int64_t kernel, int64_t* out) {
  if (c->stride[i] < 1 || c->lhs_dilation[i] < 1 || c->rhs_dilation[i] < 1) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT,
                    "convolution: expected strides and dilations of 1 or more, got %" PRId64 ", %" PRId64
                    " and %" PRId64,
                    c->stride[i], c->lhs_dilation[i], c->rhs_dilation[i]);
    return false;
  }
  int64_t padded = c->pad_low[i] + dilated(size, c->lhs_dilation[i]) + c->pad_high[i];
  int64_t window = dilated(kernel, c->rhs_dilation[i]);
  *out = padded < 0 || padded < window ? 0 : (padded - window) / c->stride[i] + 1;
  return true;
}

tt_val tt_convolution(tt_builder* b, tt_val lhs, tt_val rhs, const tt_conv* c, tt_dtype result) {
  tt_val operands[] = {lhs, rhs};
  if (!tt_usable(b, "convolution", 2, operands)) {
    return TT_POISON;
  }
  const tt_type *tl = tt_type_of(b, lhs), *tr = tt_type_of(b, rhs);
  int rank = c->spatial + 2;
  result = result == TT_DTYPE_INVALID ? tl->dtype : result;
  if (c->spatial < 0 || c->spatial > 8 || tl->rank != rank || tr->rank != rank) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "convolution: expected operands with %d dimensions, got %s and %s",
                           rank, tt_show(b, lhs), tt_show(b, rhs));
  }
  if (tl->bounded || tr->bounded) {
    return tt_builder_fail(b, TT_UNIMPLEMENTED, "convolution: expected static sizes, got %s and %s", tt_show(b, lhs),
                           tt_show(b, rhs));
  }
  int l[10], r[10], o[10];
  if (!check_result_dtype(b, "convolution", lhs, rhs, result) ||
      !place_dims(b, "lhs", c->spatial, c->lhs_batch, c->lhs_feature, c->lhs_spatial, l) ||
      !place_dims(b, "rhs", c->spatial, c->rhs_out, c->rhs_in, c->rhs_spatial, r) ||
      !place_dims(b, "output", c->spatial, c->out_batch, c->out_feature, c->out_spatial, o) ||
      !check_groups(b, lhs, rhs, c)) {
    return TT_POISON;
  }
  tt_type type = {.dtype = result, .rank = rank};
  type.dims[c->out_batch] = tl->dims[c->lhs_batch] / c->batch_groups;
  type.dims[c->out_feature] = tr->dims[c->rhs_out];
  for (int i = 0; i < c->spatial; i++) {
    if (!spatial_size(b, c, i, tl->dims[c->lhs_spatial[i]], tr->dims[c->rhs_spatial[i]],
                      &type.dims[c->out_spatial[i]])) {
      return TT_POISON;
    }
  }
  TT_SCOPED_TEXT(attrs);
  tt_attr_ints(&attrs, "window_strides", c->spatial, c->stride);
  tt_attr_pairs(&attrs, "padding", c->spatial, c->pad_low, c->pad_high);
  tt_attr_ints(&attrs, "lhs_dilation", c->spatial, c->lhs_dilation);
  tt_attr_ints(&attrs, "rhs_dilation", c->spatial, c->rhs_dilation);
  tt_attr_bools(&attrs, "window_reversal", c->spatial, c->reversal);
  TT_ATTR(&attrs, "dimension_numbers = #stablehlo.conv<");
  add_letters(&attrs, rank, l, 'b', 'f');
  tt_strbuf_add(&attrs, "x");
  add_letters(&attrs, rank, r, 'o', 'i');
  tt_strbuf_add(&attrs, "->");
  add_letters(&attrs, rank, o, 'b', 'f');
  tt_strbuf_add(&attrs, ">");
  TT_ATTR(&attrs, "feature_group_count = %" PRId64 " : i64, batch_group_count = %" PRId64 " : i64", c->feature_groups,
          c->batch_groups);
  tt_attr_precision(b, &attrs);
  return tt_emit1(b, "stablehlo.convolution", attrs.text, 2, operands, &type);
}
