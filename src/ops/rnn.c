// SPDX-License-Identifier: Apache-2.0
//
// Cells of recurrent networks: what follows the two matrix products of a step. The workspace holds what the backward pass needs.
#include "ops/op.h"

static tt_val gates_of(tt_lower* L, tt_builder* b, int gates, int bias, tt_dtype dtype) {
  tt_val x = tt_arg_as(L, gates, dtype);
  return tt_arg_has(L, bias) ? tt_add(b, x, tt_arg_as(L, bias, dtype)) : x;
}
static tt_val chunk(tt_builder* b, tt_val x, int count, int k) {
  int64_t size = tt_dim_of(b, x, 1) / count;
  return tt_slice_dim(b, x, 1, k * size, (k + 1) * size, 1);
}
static tt_val sigmoid(tt_builder* b, tt_val x) {
  return tt_unary(b, TT_LOGISTIC, x);
}
static tt_val sigmoid_slope(tt_builder* b, tt_val y) {
  return tt_mul(b, y, tt_sub(b, tt_like_f(b, y, 1), y));
}
static tt_val tanh_slope(tt_builder* b, tt_val y) {
  return tt_sub(b, tt_like_f(b, y, 1), tt_mul(b, y, y));
}
static tt_val row_sums(tt_builder* b, tt_val x) {
  int64_t dim = 0;
  return tt_reduce(b, TT_REDUCE_SUM, x, 1, &dim);
}

TT_OP(lstm_cell,
      "_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor? input_bias=None, "
      "Tensor? hidden_bias=None) -> (Tensor, Tensor, Tensor)") {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 0)->dtype);
  tt_val gates = tt_add(b, gates_of(L, b, 0, 3, dtype), gates_of(L, b, 1, 4, dtype));
  tt_val parts[4];
  for (int k = 0; k < 4; ++k) {
    tt_val x = chunk(b, gates, 4, k);
    parts[k] = k == 2 ? tt_unary(b, TT_TANH, x) : sigmoid(b, x);
  }
  tt_val cy = tt_add(b, tt_mul(b, parts[1], tt_arg_as(L, 2, dtype)), tt_mul(b, parts[0], parts[2]));
  tt_out(L, 0, tt_mul(b, parts[3], tt_unary(b, TT_TANH, cy)));
  tt_out(L, 1, cy);
  tt_out(L, 2, tt_concat(b, 4, parts, 1));
}

TT_OP(lstm_cell_backward,
      "_thnn_fused_lstm_cell_backward_impl(Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, "
      "Tensor workspace, bool has_bias) -> (Tensor, Tensor, Tensor)") {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 2)->dtype);
  tt_val saved = tt_arg_as(L, 4, dtype);
  tt_val i = chunk(b, saved, 4, 0), f = chunk(b, saved, 4, 1), g = chunk(b, saved, 4, 2), o = chunk(b, saved, 4, 3);
  tt_val cx = tt_arg_as(L, 2, dtype);
  tt_val top = tt_unary(b, TT_TANH, tt_arg_as(L, 3, dtype));
  tt_val dh = tt_arg_has(L, 0) ? tt_arg_as(L, 0, dtype) : tt_full_like(b, cx, 0);
  tt_val dc = tt_mul(b, tt_mul(b, dh, o), tanh_slope(b, top));
  dc = tt_arg_has(L, 1) ? tt_add(b, dc, tt_arg_as(L, 1, dtype)) : dc;
  tt_val parts[4] = {
      tt_mul(b, tt_mul(b, dc, g), sigmoid_slope(b, i)),
      tt_mul(b, tt_mul(b, dc, cx), sigmoid_slope(b, f)),
      tt_mul(b, tt_mul(b, dc, i), tanh_slope(b, g)),
      tt_mul(b, tt_mul(b, dh, top), sigmoid_slope(b, o)),
  };
  tt_val gates = tt_concat(b, 4, parts, 1);
  tt_out(L, 0, gates);
  tt_out(L, 1, tt_mul(b, dc, f));
  if (tt_out_wanted(L, 2)) {
    tt_out(L, 2, row_sums(b, gates));
  }
}

TT_OP(gru_cell,
      "_thnn_fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx, Tensor? input_bias=None, "
      "Tensor? hidden_bias=None) -> (Tensor, Tensor)") {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 0)->dtype);
  tt_val x = gates_of(L, b, 0, 3, dtype), h = gates_of(L, b, 1, 4, dtype), hx = tt_arg_as(L, 2, dtype);
  tt_val r = sigmoid(b, tt_add(b, chunk(b, x, 3, 0), chunk(b, h, 3, 0)));
  tt_val z = sigmoid(b, tt_add(b, chunk(b, x, 3, 1), chunk(b, h, 3, 1)));
  tt_val hidden = chunk(b, h, 3, 2);
  tt_val n = tt_unary(b, TT_TANH, tt_add(b, chunk(b, x, 3, 2), tt_mul(b, r, hidden)));
  tt_val saved[5] = {r, z, n, hx, hidden};
  tt_out(L, 0, tt_add(b, n, tt_mul(b, z, tt_sub(b, hx, n))));
  tt_out(L, 1, tt_concat(b, 5, saved, 1));
}

TT_OP(gru_cell_backward,
      "_thnn_fused_gru_cell_backward(Tensor grad_hy, Tensor workspace, bool has_bias) -> "
      "(Tensor, Tensor, Tensor, Tensor, Tensor)") {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 0)->dtype);
  tt_val saved = tt_arg_as(L, 1, dtype), dh = tt_arg_as(L, 0, dtype);
  tt_val r = chunk(b, saved, 5, 0), z = chunk(b, saved, 5, 1), n = chunk(b, saved, 5, 2);
  tt_val hx = chunk(b, saved, 5, 3), hidden = chunk(b, saved, 5, 4);
  tt_val dn = tt_mul(b, tt_mul(b, dh, tt_sub(b, tt_like_f(b, z, 1), z)), tanh_slope(b, n));
  tt_val dz = tt_mul(b, tt_mul(b, dh, tt_sub(b, hx, n)), sigmoid_slope(b, z));
  tt_val dr = tt_mul(b, tt_mul(b, dn, hidden), sigmoid_slope(b, r));
  tt_val into_x[3] = {dr, dz, dn}, into_h[3] = {dr, dz, tt_mul(b, dn, r)};
  tt_val gx = tt_concat(b, 3, into_x, 1), gh = tt_concat(b, 3, into_h, 1);
  tt_out(L, 0, gx);
  tt_out(L, 1, gh);
  tt_out(L, 2, tt_mul(b, dh, z));
  if (tt_out_wanted(L, 3)) {
    tt_out(L, 3, row_sums(b, gx));
    tt_out(L, 4, row_sums(b, gh));
  }
}
