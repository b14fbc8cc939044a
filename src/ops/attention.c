// SPDX-License-Identifier: Apache-2.0
//
// Scaled dot product attention, forward and backward, each one program. 16-bit inputs are multiplied as they are; scores and sums
// are f32. Fewer key and value heads than query heads (GQA): the query heads that share one are rows of one product.
// Rows with nothing to attend to give 0. Dropout's mask is made again in the backward pass from the seed the forward pass returns.
#include <math.h>

#include "ops/op.h"

typedef struct attention {
  tt_val q, k, v;  // [batch, key heads, query heads per key head * rows, features]
  int64_t batch, heads, shared, rows, keys, features, value_features;
  tt_dtype dtype, sums;
  tt_val scale;
} attention;

// [batch, heads, rows, ...] as the product wants it, and back.
static tt_val fold(tt_builder* b, const attention* a, tt_val x) {
  int64_t dims[4] = {a->batch, a->shared, a->heads / a->shared * a->rows, tt_dim_of(b, x, 3)};
  return tt_reshape(b, x, 4, dims);
}
static tt_val unfold(tt_builder* b, const attention* a, tt_val x) {
  int64_t dims[4] = {a->batch, a->heads, a->rows, tt_dim_of(b, x, 3)};
  return tt_reshape(b, x, 4, dims);
}
// Product over dimension i of x and j of y within each head.
static tt_val dot(tt_builder* b, const attention* a, tt_val x, int64_t i, tt_val y, int64_t j) {
  int64_t batch[2] = {0, 1};
  if (tt_dim_of(b, x, (int)i) == 0) {
    int64_t dims[4] = {a->batch, a->shared, tt_dim_of(b, x, (int)(5 - i)), tt_dim_of(b, y, (int)(5 - j))};
    return tt_zeros(b, a->sums, 4, dims);
  }
  return tt_dot_general(b, x, y, 2, batch, batch, 1, &i, &j, a->sums);
}

static attention read_attention(tt_lower* L, tt_builder* b, int first, int scale) {
  attention a = {.dtype = tt_arg_info(L, first)->dtype};
  const int64_t* q = tt_arg_info(L, first)->sizes;
  const int64_t* k = tt_arg_info(L, first + 1)->sizes;
  a.sums = tt_dtype_compute(a.dtype);
  a.batch = q[0];
  a.heads = q[1];
  a.shared = k[1];
  a.rows = q[2];
  a.features = q[3];
  a.keys = k[2];
  a.value_features = tt_arg_info(L, first + 2)->sizes[3];
  a.q = fold(b, &a, tt_arg(L, first));
  a.k = tt_arg(L, first + 1);
  a.v = tt_arg(L, first + 2);
  a.scale = tt_arg_has(L, scale) ? tt_arg_scalar(L, scale, a.sums)
                                 : tt_const_f(b, a.sums, a.features > 0 ? 1 / sqrt((double)a.features) : 1);
  return a;
}

// q k' * scale + bias, -inf where nothing is to be seen. [batch, heads, rows, keys]
static tt_val scores(tt_lower* L, tt_builder* b, const attention* a, int bias, bool causal) {
  tt_val s = unfold(b, a, dot(b, a, a->q, 3, a->k, 3));
  s = tt_mul(b, s, a->scale);
  tt_val never = tt_const_min(b, a->sums);
  if (tt_arg_has(L, bias)) {
    bool choice = tt_arg_info(L, bias)->dtype == TT_BOOL;
    s = choice ? tt_where(b, tt_arg(L, bias), s, never) : tt_add(b, s, tt_arg_as(L, bias, a->sums));
  }
  if (causal) {
    int64_t dims[2] = {a->rows, a->keys};
    tt_type type = tt_type_make(TT_I32, 2, dims);
    s = tt_where(b, tt_compare(b, TT_GE, tt_iota(b, &type, 0), tt_iota(b, &type, 1)), s, never);
  }
  return s;
}

// Factors of dropout for the seed: 0 or 1 / (1 - p).
static tt_val dropout_factors(tt_lower* L, tt_builder* b, const attention* a, tt_val seed, tt_val offset, int p_arg) {
  int64_t one[1] = {1};
  tt_val words[3] = {tt_reshape(b, tt_bitcast(b, seed, TT_U64), 1, one),
                     tt_reshape(b, tt_bitcast(b, offset, TT_U64), 1, one), tt_zeros(b, TT_U64, 1, one)};
  int64_t dims[4] = {a->batch, a->heads, a->rows, a->keys};
  tt_type type = tt_type_make(TT_U32, 4, dims);
  tt_val state, bits;
  tt_rng_bits(b, tt_concat(b, 3, words, 0), &type, &state, &bits);
  tt_val u = tt_convert(b, tt_bin(b, TT_SHR_LOGICAL, bits, tt_const_i(b, TT_U32, 8)), TT_F32);
  tt_val p = tt_arg_scalar(L, p_arg, TT_F32);
  tt_val keep = tt_test(b, TT_GE, tt_mul_f(b, u, 0x1p-24), p);
  tt_val left = tt_sub(b, tt_like_f(b, p, 1), p);
  tt_val scale = tt_where(b, tt_test_f(b, TT_EQ, left, 0), tt_like_f(b, p, 0), tt_div(b, tt_like_f(b, p, 1), left));
  return tt_convert(b, tt_where(b, keep, scale, tt_like_f(b, p, 0)), a->sums);
}
static bool drops(tt_lower* L, tt_builder* b, int p_arg) {
  double p = 0;
  return !tt_val_is_const(b, tt_arg_scalar(L, p_arg, TT_F32), &p) || p != 0;
}

TT_OP(
    attention,
    "_scaled_dot_product_fused_attention_overrideable(Tensor query, Tensor key, Tensor value, Tensor? attn_bias=None, "
    "float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, "
    "Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor philox_seed, "
    "Tensor philox_offset, Tensor debug_attn_mask)") {
  attention a = read_attention(L, b, 0, 7);
  tt_val s = scores(L, b, &a, 3, tt_arg_bool(L, 5));
  tt_val zero = tt_const_f(b, a.sums, 0);
  tt_val top = tt_max_keep(b, s, 3);
  top = tt_where(b, tt_test(b, TT_EQ, top, tt_const_min(b, a.sums)), zero, top);
  tt_val p = tt_unary(b, TT_EXP, tt_sub(b, s, top));
  tt_val sum = tt_sum_keep(b, p, 3);
  tt_val empty = tt_test_f(b, TT_EQ, sum, 0);
  tt_val seed = tt_const_i(b, TT_I64, 0);
  tt_val offset = seed;
  if (drops(L, b, 4)) {
    tt_type word = tt_type_scalar(TT_U64);
    seed = tt_bitcast(b, tt_random_bits(L, &word), TT_I64);
    offset = tt_bitcast(b, tt_random_bits(L, &word), TT_I64);
    p = tt_mul(b, p, dropout_factors(L, b, &a, seed, offset, 4));
  }
  tt_val o = unfold(b, &a, dot(b, &a, fold(b, &a, tt_convert(b, p, a.dtype)), 3, a.v, 2));
  tt_out(L, 0, tt_where(b, empty, zero, tt_div(b, o, sum)));
  tt_val lse = tt_where(b, empty, zero, tt_add(b, top, tt_unary(b, TT_LOG, sum)));
  tt_out(L, 1, tt_squeeze(b, lse, 3));
  tt_out(L, 4, seed);
  tt_out(L, 5, offset);
}

// Sums `x` over what `type` was broadcast along.
static tt_val sum_to(tt_builder* b, tt_val x, const int64_t* sizes, int rank) {
  int shift = tt_rank_of(b, x) - rank;
  int64_t dims[TT_MAX_RANK];
  int n = 0;
  for (int d = 0; d < tt_rank_of(b, x); ++d) {
    if (d < shift || (sizes[d - shift] == 1 && tt_dim_of(b, x, d) != 1)) {
      dims[n++] = d;
    }
  }
  return tt_reshape(b, tt_reduce(b, TT_REDUCE_SUM, x, n, dims), rank, sizes);
}

TT_OP(
    attention_backward,
    "_scaled_dot_product_fused_attention_overrideable_backward(Tensor grad_out, Tensor query, Tensor key, Tensor "
    "value, "
    "Tensor attn_bias, bool[4] grad_input_mask, Tensor out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, "
    "SymInt max_q, "
    "SymInt max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, float? scale=None) -> "
    "(Tensor grad_query, Tensor grad_key, Tensor grad_value, Tensor grad_attn_bias)") {
  int num_masks;
  const int64_t* wanted = tt_arg_ints(L, 5, &num_masks);
  attention a = read_attention(L, b, 1, 16);
  tt_val zero = tt_const_f(b, a.sums, 0);
  tt_val s = scores(L, b, &a, 4, tt_arg_bool(L, 13));
  tt_val p = tt_unary(b, TT_EXP, tt_sub(b, s, tt_unsqueeze(b, tt_arg_as(L, 7, a.sums), -1)));
  tt_val grad = tt_arg(L, 0);
  tt_val d = fold(b, &a, grad);
  tt_val dp = unfold(b, &a, dot(b, &a, d, 3, a.v, 3));
  tt_val kept = p;
  if (drops(L, b, 12)) {
    tt_val factors = dropout_factors(L, b, &a, tt_arg(L, 14), tt_arg(L, 15), 12);
    kept = tt_mul(b, p, factors);
    dp = tt_mul(b, dp, factors);
  }
  tt_val share = tt_sum_keep(b, tt_mul(b, tt_convert(b, grad, a.sums), tt_arg_as(L, 6, a.sums)), 3);
  tt_val ds = tt_mul(b, p, tt_sub(b, dp, share));
  tt_val scaled = fold(b, &a, tt_convert(b, tt_mul(b, ds, a.scale), a.dtype));
  tt_out(L, 0, wanted[0] ? unfold(b, &a, dot(b, &a, scaled, 3, a.k, 2)) : zero);
  tt_out(L, 1, wanted[1] ? dot(b, &a, scaled, 2, a.q, 2) : zero);
  tt_out(L, 2, wanted[2] ? dot(b, &a, fold(b, &a, tt_convert(b, kept, a.dtype)), 2, d, 2) : zero);
  if (tt_out_wanted(L, 3)) {
    const tt_tensor* bias = tt_arg_info(L, 4);
    tt_out(L, 3, wanted[3] ? sum_to(b, ds, bias->sizes, bias->rank) : zero);
  }
}
