// SPDX-License-Identifier: Apache-2.0
//
// Attention over sequences of different lengths laid side by side: rows [total, heads, features], cum_seq_q and cum_seq_k where the
// sequences start. What nested (jagged) tensors and torch.nn.attention.varlen call. Sequences are padded to the longest and masked; a causal
// mask and a window are aligned at the sequences' ends. Without cum_seq the operands are [batch, rows, heads, features].
#include <math.h>

#include "ops/jagged.h"

typedef struct varlen {
  bool jagged;
  tt_val q_starts, k_starts;  // [batch + 1]
  tt_val q, k, v;             // [batch, heads, rows, features], heads of k and v repeated
  int64_t batch, heads, shared, rows, keys, total_q, total_k;
  tt_dtype dtype, sums;
  tt_val scale;
} varlen;

static tt_val padded(tt_builder* b, const varlen* a, tt_val x, tt_val starts, int64_t length) {
  if (a->jagged) {
    x = tt_jagged_pad(b, x, starts, length, tt_like_i(b, x, 0));
  }
  x = tt_swap_dims(b, x, 1, 2);
  int64_t have = tt_dim_of(b, x, 1);
  if (have != a->heads) {
    int64_t wide[5] = {a->batch, have, a->heads / have, length, tt_dim_of(b, x, 3)};
    int64_t flat[4] = {a->batch, a->heads, length, wide[4]};
    x = tt_reshape(b, tt_expand(b, tt_unsqueeze(b, x, 2), 5, wide), 4, flat);
  }
  return x;
}
// Back; gradients of heads that were repeated are added up.
static tt_val unpadded(tt_builder* b, const varlen* a, tt_val x, tt_val starts, int64_t total, int64_t heads) {
  if (heads != a->heads) {
    int64_t wide[5] = {a->batch, heads, a->heads / heads, tt_dim_of(b, x, 2), tt_dim_of(b, x, 3)};
    int64_t dim = 2;
    x = tt_reduce(b, TT_REDUCE_SUM, tt_reshape(b, x, 5, wide), 1, &dim);
  }
  x = tt_swap_dims(b, x, 1, 2);
  return a->jagged ? tt_jagged_unpad(b, x, starts, total) : x;
}

static tt_val dot(tt_builder* b, const varlen* a, tt_val x, int64_t i, tt_val y, int64_t j) {
  int64_t batch[2] = {0, 1};
  if (tt_dim_of(b, x, (int)i) == 0) {
    int64_t dims[4] = {a->batch, a->heads, tt_dim_of(b, x, (int)(5 - i)), tt_dim_of(b, y, (int)(5 - j))};
    return tt_zeros(b, a->sums, 4, dims);
  }
  return tt_dot_general(b, x, y, 2, batch, batch, 1, &i, &j, a->sums);
}

// Arguments: query, key, value at `first`; cum_seq_q, cum_seq_k, max_q, max_k at `seq`.
static varlen read(tt_lower* L, tt_builder* b, int first, int seq, int scale) {
  varlen a = {.dtype = tt_arg_info(L, first)->dtype, .jagged = tt_arg_has(L, seq)};
  const tt_tensor *q = tt_arg_info(L, first), *k = tt_arg_info(L, first + 1);
  a.sums = tt_dtype_compute(a.dtype);
  a.heads = q->sizes[q->rank - 2];
  a.shared = k->sizes[k->rank - 2];
  a.total_q = q->sizes[0];
  a.total_k = k->sizes[0];
  a.rows = a.jagged ? tt_arg_int(L, seq + 2) : q->sizes[1];
  a.keys = a.jagged ? tt_arg_int(L, seq + 3) : k->sizes[1];
  if (a.jagged) {
    a.q_starts = tt_arg_as(L, seq, TT_I32);
    a.k_starts = tt_arg_as(L, seq + 1, TT_I32);
  }
  a.batch = a.jagged ? tt_dim_of(b, a.q_starts, 0) - 1 : q->sizes[0];
  a.q = padded(b, &a, tt_arg(L, first), a.q_starts, a.rows);
  a.k = padded(b, &a, tt_arg(L, first + 1), a.k_starts, a.keys);
  a.v = padded(b, &a, tt_arg(L, first + 2), a.k_starts, a.keys);
  int64_t features = q->sizes[q->rank - 1];
  a.scale = tt_arg_has(L, scale) ? tt_arg_scalar(L, scale, a.sums)
                                 : tt_const_f(b, a.sums, features > 0 ? 1 / sqrt((double)features) : 1);
  return a;
}

static tt_val lengths(tt_builder* b, const varlen* a, tt_val starts, int64_t whole) {
  int64_t dims[4] = {a->batch, 1, 1, 1};
  if (!a->jagged) {
    return tt_expand(b, tt_const_i(b, TT_I32, whole), 4, dims);
  }
  tt_val n = tt_sub(b, tt_slice_dim(b, starts, 0, 1, a->batch + 1, 1), tt_slice_dim(b, starts, 0, 0, a->batch, 1));
  return tt_reshape(b, n, 4, dims);
}

// Scaled products, -inf where nothing is to be seen. `left` and `right`: how far before and after its own place a row sees, -1 for all.
static tt_val scores(tt_lower* L, tt_builder* b, const varlen* a, bool causal, int left_arg, int right_arg) {
  int64_t left = tt_arg_int_or(L, left_arg, -1), right = tt_arg_int_or(L, right_arg, -1);
  tt_val s = tt_mul(b, dot(b, a, a->q, 3, a->k, 3), a->scale);
  int64_t dims[4] = {1, 1, a->rows, a->keys};
  tt_type type = tt_type_make(TT_I32, 4, dims);
  tt_val column = tt_iota(b, &type, 3);
  tt_val keys = lengths(b, a, a->k_starts, a->keys);
  tt_val seen = tt_test(b, TT_LT, column, keys);
  tt_val place = tt_add(b, tt_iota(b, &type, 2), tt_sub(b, keys, lengths(b, a, a->q_starts, a->rows)));
  if (causal || right >= 0) {
    tt_val reach = tt_add(b, place, tt_const_i(b, TT_I32, causal ? 0 : right));
    seen = tt_and(b, seen, tt_test(b, TT_LE, column, reach));
  }
  if (left >= 0) {
    seen = tt_and(b, seen, tt_test(b, TT_GE, column, tt_sub(b, place, tt_const_i(b, TT_I32, left))));
  }
  return tt_where(b, seen, s, tt_const_min(b, a->sums));
}

static bool served(tt_lower* L, tt_builder* b, int dropout, const int* others, int count) {
  double p = 1;
  tt_val chance = tt_arg_scalar(L, dropout, TT_F32);
  if (!tt_val_is_const(b, chance, &p)) {
    p = tt_arg_float(L, dropout);
  }
  if (p != 0) {
    tt_unsupported(L, "dropout over sequences of different lengths");
    return false;
  }
  for (int k = 0; k < count; ++k) {
    if (tt_arg_has(L, others[k])) {
      tt_unsupported(L, "seqused_k, alibi_slopes or block_table");
      return false;
    }
  }
  return true;
}

TT_OP(flash_attention_forward,
      "_flash_attention_forward(Tensor query, Tensor key, Tensor value, Tensor? cum_seq_q, Tensor? cum_seq_k, SymInt "
      "max_q, SymInt max_k, float dropout_p, bool is_causal, bool return_debug_mask, *, float? scale=None, SymInt? "
      "window_size_left=None, SymInt? window_size_right=None, Tensor? seqused_k=None, Tensor? alibi_slopes=None, "
      "Tensor? block_table=None, int? num_splits=None) -> (Tensor output, Tensor softmax_logsumexp, Tensor rng_state, "
      "Tensor unused, Tensor debug_attn_mask)") {
  static const int others[3] = {13, 14, 15};
  if (!served(L, b, 7, others, 3)) {
    return;
  }
  varlen a = read(L, b, 0, 3, 10);
  tt_val s = scores(L, b, &a, tt_arg_bool(L, 8), 11, 12);
  tt_val zero = tt_const_f(b, a.sums, 0);
  tt_val top = tt_max_keep(b, s, 3);
  top = tt_where(b, tt_test(b, TT_EQ, top, tt_const_min(b, a.sums)), zero, top);
  tt_val p = tt_unary(b, TT_EXP, tt_sub(b, s, top));
  tt_val sum = tt_sum_keep(b, p, 3);
  tt_val empty = tt_test_f(b, TT_EQ, sum, 0);
  tt_val o = dot(b, &a, tt_convert(b, p, a.dtype), 3, a.v, 2);
  o = tt_where(b, empty, zero, tt_div(b, o, sum));
  tt_out(L, 0, unpadded(b, &a, o, a.q_starts, a.total_q, a.heads));
  tt_val lse = tt_where(b, empty, zero, tt_add(b, top, tt_unary(b, TT_LOG, sum)));
  if (a.jagged) {
    lse = tt_swap_dims(b, tt_squeeze(b, unpadded(b, &a, lse, a.q_starts, a.total_q, a.heads), 2), 0, 1);
  } else {
    lse = tt_squeeze(b, lse, 3);
  }
  tt_out(L, 1, lse);
  for (int k = 2; k < 5; ++k) {
    const tt_type* type = tt_out_type(L, k);
    tt_out(L, k, tt_zeros(b, type->dtype, type->rank, type->dims));
  }
}

TT_OP(flash_attention_backward,
      "_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor "
      "logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, "
      "Tensor rng_state, Tensor unused, *, float? scale=None, SymInt? window_size_left=None, SymInt? "
      "window_size_right=None) -> (Tensor, Tensor, Tensor)") {
  if (!served(L, b, 10, NULL, 0)) {
    return;
  }
  varlen a = read(L, b, 1, 6, 14);
  tt_val s = scores(L, b, &a, tt_arg_bool(L, 11), 15, 16);
  tt_val lse = tt_arg_as(L, 5, a.sums);
  if (a.jagged) {
    tt_val rows = tt_unsqueeze(b, tt_swap_dims(b, lse, 0, 1), 2);
    lse = padded(b, &a, rows, a.q_starts, a.rows);
  } else {
    lse = tt_unsqueeze(b, lse, 3);
  }
  tt_val p = tt_unary(b, TT_EXP, tt_sub(b, s, lse));
  tt_val grad = padded(b, &a, tt_arg(L, 0), a.q_starts, a.rows);
  tt_val out = padded(b, &a, tt_arg(L, 4), a.q_starts, a.rows);
  tt_val dp = dot(b, &a, grad, 3, a.v, 3);
  tt_val share = tt_sum_keep(b, tt_mul(b, tt_convert(b, grad, a.sums), tt_convert(b, out, a.sums)), 3);
  tt_val ds = tt_convert(b, tt_mul(b, tt_mul(b, p, tt_sub(b, dp, share)), a.scale), a.dtype);
  tt_out(L, 0, unpadded(b, &a, dot(b, &a, ds, 3, a.k, 2), a.q_starts, a.total_q, a.heads));
  tt_out(L, 1, unpadded(b, &a, dot(b, &a, ds, 2, a.q, 2), a.k_starts, a.total_k, a.shared));
  tt_out(L, 2, unpadded(b, &a, dot(b, &a, tt_convert(b, p, a.dtype), 2, grad, 2), a.k_starts, a.total_k, a.shared));
}
