// SPDX-License-Identifier: Apache-2.0
//
// Masks: fill, scatter in order, and the flat places of true elements.
#include "ops/indexing.h"

static void masked_fill(tt_lower* L, tt_builder* b, tt_val value) {
  tt_val x = tt_arg(L, 0);
  tt_out(L, 0, tt_where(b, tt_arg_as(L, 1, TT_BOOL), value, x));
}
TT_OP(masked_fill_scalar, "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor") {
  masked_fill(L, b, tt_arg_scalar(L, 2, tt_arg_info(L, 0)->dtype));
}
TT_OP(masked_fill_tensor, "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor") {
  masked_fill(L, b, tt_reshape(b, tt_arg_as(L, 2, tt_arg_info(L, 0)->dtype), 0, NULL));
}

TT_OP(masked_scatter, "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor") {
  if (tt_arg_info(L, 1)->dtype != TT_BOOL) {
    tt_unsupported(L, "expected a bool mask");  // the CPU refuses it in PyTorch's words
    return;
  }
  const tt_type* out = tt_out_type(L, 0);
  tt_val x = tt_expand(b, tt_arg(L, 0), out->rank, out->dims);
  tt_val mask = tt_expand(b, tt_arg_as(L, 1, TT_BOOL), out->rank, out->dims);
  tt_val source = tt_flatten(b, tt_arg_as(L, 2, out->dtype));
  if (tt_dim_of(b, source, 0) == 0 || tt_type_elements(out) == 0) {
    tt_out(L, 0, x);
    return;
  }
  // Element k among the true ones takes source[k]: a read, not a write. Elements that are not true read place 0.
  tt_val flat = tt_flatten(b, mask);
  tt_val rank = tt_rank_in_mask(b, flat);
  tt_val wanted = tt_where(b, flat, rank, tt_like_i(b, rank, 0));
  tt_val taken = tt_take_rows(b, source, tt_safe_index(L, wanted, tt_dim_of(b, source, 0), false), 0);
  tt_out(L, 0, tt_where(b, mask, tt_reshape(b, taken, out->rank, out->dims), x));
}

TT_OP(masked_scatter_backward, "masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor") {
  const tt_type* out = tt_out_type(L, 0);
  tt_type grad = *tt_type_of(b, tt_arg(L, 0));
  tt_val flat = tt_flatten(b, tt_expand(b, tt_arg_as(L, 1, TT_BOOL), grad.rank, grad.dims));
  int64_t n = tt_type_elements(out);
  tt_val rank = tt_rank_in_mask(b, flat);
  tt_val at = tt_where(b, flat, rank, tt_like_i(b, rank, n));  // place n is outside: skipped
  tt_val sum = tt_put_flat(b, tt_zeros(b, out->dtype, 1, &n), at, tt_flatten(b, tt_arg(L, 0)), TT_COMBINE_SET);
  tt_out(L, 0, tt_reshape(b, sum, out->rank, out->dims));
}

static void ascending(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  results[0] = tt_compare(b, TT_LT, args[0], args[1]);
}

TT_OP(nonzero_static, "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  tt_type type = *tt_type_of(b, x);
  const tt_type* out = tt_out_type(L, 0);
  int64_t size = out->dims[0];
  int64_t fill = tt_arg_int(L, 2);
  if (tt_type_elements(out) == 0 || tt_type_elements(&type) == 0) {
    tt_out(L, 0, tt_expand(b, tt_const_i(b, TT_I64, fill), out->rank, out->dims));
    return;
  }
  // Flat places of true elements in front, the rest (n) behind them: one sort.
  tt_val mask = tt_flatten(b, tt_convert(b, x, TT_BOOL));
  int64_t n = tt_dim_of(b, mask, 0);
  tt_val places = tt_iota_like(b, mask, n < INT32_MAX ? TT_I32 : TT_I64, 0);
  tt_val keyed = tt_where(b, mask, places, tt_like_i(b, places, n));
  tt_val sorted;
  tt_sort(b, 1, &keyed, 0, false, ascending, NULL, &sorted);
  sorted = size <= n ? tt_slice_dim(b, sorted, 0, 0, size, 1) : tt_pad_dim(b, sorted, 0, 0, size - n, (double)n);
  tt_val found = tt_test(b, TT_LT, sorted, tt_like_i(b, sorted, n));
  tt_val parts[TT_MAX_RANK];
  int64_t unit = 1;
  for (int d = type.rank - 1; d >= 0; --d) {
    tt_val digit = tt_bin(b, TT_REM, tt_div(b, sorted, tt_like_i(b, sorted, unit)), tt_like_i(b, sorted, type.dims[d]));
    parts[d] = tt_unsqueeze(b, tt_where(b, found, tt_convert(b, digit, TT_I64), tt_const_i(b, TT_I64, fill)), 1);
    unit *= type.dims[d];
  }
  tt_out(L, 0, tt_concat(b, type.rank, parts, 1));
}
