// SPDX-License-Identifier: Apache-2.0
//
// Connectionist temporal classification (Graves et al. 2006): the sum over all alignments by a forward and a backward recursion
// over time. The lengths are data, so that one program serves all batches; shim/ctc.cpp brings host lengths over.
#include <math.h>

#include "ops/indexing.h"
#include "ops/reduce.h"

typedef struct ctc {
  int64_t steps, batch, classes, states;  // states: blank, label, blank, ... label, blank
  tt_val log_probs;                       // [T, N, C]
  tt_val labels;                          // [N, L]: the class of each state, i64
  tt_val emitted;                         // [T, N, L]: log probability of the state's class
  tt_val may_skip;                        // [N, L]: a path may enter from two states before
  tt_val last, before_last;               // [N, L]: the final blank; the final label
  tt_val input_lengths;                   // [N, 1], i32
} ctc;

static tt_val never(tt_builder* b, tt_val like) {
  return tt_full_like(b, like, -(double)INFINITY);
}

// x moved by `by` states to higher (or, negative, lower) ones; -inf comes in.
static tt_val shifted(tt_builder* b, tt_val x, int64_t by) {
  int64_t size = tt_dim_of(b, x, 1);
  if (size <= (by < 0 ? -by : by)) {
    return never(b, x);
  }
  return tt_pad_dim(b, x, 1, by, -by, -(double)INFINITY);
}

static ctc ctc_operands(tt_lower* L, tt_builder* b, int first, int lengths, int blank_arg) {
  ctc c;
  c.log_probs = tt_arg_as(L, first, tt_dtype_compute(tt_arg_info(L, first)->dtype));
  c.steps = tt_dim_of(b, c.log_probs, 0);
  c.batch = tt_dim_of(b, c.log_probs, 1);
  c.classes = tt_dim_of(b, c.log_probs, 2);
  tt_val targets = tt_arg_as(L, first + 1, TT_I64);
  int64_t column[2] = {c.batch, 1};
  c.input_lengths = tt_reshape(b, tt_arg_as(L, lengths, TT_I32), 2, column);
  tt_val target_lengths = tt_reshape(b, tt_arg_as(L, lengths + 1, TT_I32), 2, column);
  tt_val blank = tt_const_i(b, TT_I64, tt_arg_int(L, blank_arg));
  // Places beyond a target's length may hold anything.
  targets = tt_max(b, tt_min(b, targets, tt_like_i(b, targets, c.classes - 1)), tt_like_i(b, targets, 0));
  int64_t outer[2] = {0, 1};
  int64_t inner[2] = {0, 1};
  if (tt_dim_of(b, targets, 1) == 0) {
    c.labels = tt_expand(b, blank, 2, column);
  } else {
    c.labels = tt_pad(b, targets, blank, outer, outer, inner);
  }
  c.states = tt_dim_of(b, c.labels, 1);
  int64_t dims[3] = {c.steps, c.batch, c.states};
  c.emitted = tt_gather_along(b, c.log_probs, tt_expand(b, tt_unsqueeze(b, c.labels, 0), 3, dims), 2);
  tt_val state = tt_iota_like(b, c.labels, TT_I32, 1);
  tt_val two_before = c.states > 2 ? tt_pad_dim(b, c.labels, 1, 2, -2, 0) : c.labels;
  c.may_skip = tt_and(b, tt_test_f(b, TT_GE, state, 2), tt_test(b, TT_NE, c.labels, two_before));
  tt_val final_blank = tt_add(b, target_lengths, target_lengths);
  c.last = tt_test(b, TT_EQ, state, final_blank);
  c.before_last = tt_test(b, TT_EQ, state, tt_add_f(b, final_blank, -1));
  return c;
}

static tt_val row(tt_builder* b, tt_val x, tt_val t, const ctc* c) {
  tt_val zero = tt_const_i(b, TT_I32, 0);
  tt_val starts[3] = {t, zero, zero};
  int64_t sizes[3] = {1, c->batch, c->states};
  return tt_squeeze(b, tt_dynamic_slice(b, x, starts, sizes), 0);
}
static tt_val with_row(tt_builder* b, tt_val x, tt_val t, tt_val row_value) {
  tt_val zero = tt_const_i(b, TT_I32, 0);
  tt_val starts[3] = {t, zero, zero};
  return tt_dynamic_update_slice(b, x, tt_unsqueeze(b, row_value, 0), starts);
}

// log(exp(x) + exp(y) + exp(z))
static tt_val log_add3(tt_builder* b, tt_val x, tt_val y, tt_val z) {
  tt_val high = tt_max(b, x, tt_max(b, y, z));
  tt_val safe = tt_where(b, tt_is_inf(b, high), tt_full_like(b, high, 0), high);
  tt_val sum = tt_unary(b, TT_EXP, tt_sub(b, x, safe));
  sum = tt_add(b, sum, tt_unary(b, TT_EXP, tt_sub(b, y, safe)));
  sum = tt_add(b, sum, tt_unary(b, TT_EXP, tt_sub(b, z, safe)));
  return tt_add(b, tt_unary(b, TT_LOG, sum), safe);
}

// Loop state: step (i32), all rows [T, N, L], the row before [N, L].
static void forward_cond(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  results[0] = tt_compare(b, TT_LT, args[0], tt_const_i(b, TT_I32, ((const ctc*)ctx)->steps));
}
static void forward_step(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  const ctc* c = ctx;
  tt_val before = args[2];
  tt_val skipped = tt_where(b, c->may_skip, shifted(b, before, 2), never(b, before));
  tt_val reached = log_add3(b, before, shifted(b, before, 1), skipped);
  tt_val alpha = tt_add(b, reached, row(b, c->emitted, args[0], c));
  results[0] = tt_add(b, args[0], tt_const_i(b, TT_I32, 1));
  results[1] = with_row(b, args[1], args[0], alpha);
  results[2] = alpha;
}

static void backward_cond(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  results[0] = tt_compare(b, TT_GE, args[0], tt_const_i(b, TT_I32, 0));
}
static void backward_step(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  const ctc* c = ctx;
  tt_val after = args[2];
  tt_val emitted = row(b, c->emitted, args[0], c);
  tt_val skipped = shifted(b, tt_where(b, c->may_skip, after, never(b, after)), -2);
  tt_val reached = tt_add(b, log_add3(b, after, shifted(b, after, -1), skipped), emitted);
  tt_val ends = tt_where(b, tt_or(b, c->last, c->before_last), emitted, never(b, emitted));
  tt_val last_step = tt_add_f(b, c->input_lengths, -1);
  tt_val is_last = tt_expand_like(b, tt_test(b, TT_EQ, args[0], last_step), after);
  tt_val is_earlier = tt_expand_like(b, tt_test(b, TT_LT, args[0], last_step), after);
  tt_val beta = tt_where(b, is_last, ends, tt_where(b, is_earlier, reached, never(b, after)));
  results[0] = tt_add(b, args[0], tt_const_i(b, TT_I32, -1));
  results[1] = with_row(b, args[1], args[0], beta);
  results[2] = beta;
}

TT_OP(ctc_loss,
      "_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, "
      "bool zero_infinity=False) -> (Tensor, Tensor)") {
  ctc c = ctc_operands(L, b, 0, 2, 4);
  // Before time starts all paths are in a state in front of the first: step 0 reaches states 0 and 1.
  int64_t all[3] = {c.steps, c.batch, c.states};
  tt_val row0 = tt_zeros(b, tt_dtype_of(b, c.emitted), 2, all + 1);
  tt_val state = tt_iota_like(b, row0, TT_I32, 1);
  tt_val emitted0 = tt_index_dim(b, c.emitted, 0, 0);
  tt_val labels = tt_reduce_keep(b, TT_REDUCE_OR, c.before_last, 1, (int64_t[]){1});
  tt_val first_label = tt_and(b, tt_test_f(b, TT_EQ, state, 1), labels);
  tt_val alpha0 = tt_where(b, tt_or(b, tt_test_f(b, TT_EQ, state, 0), first_label), emitted0, never(b, row0));
  tt_val rows = never(b, c.emitted);
  rows = with_row(b, rows, tt_const_i(b, TT_I32, 0), alpha0);
  tt_val inits[3] = {tt_const_i(b, TT_I32, 1), rows, alpha0};
  tt_val results[3] = {TT_POISON, TT_POISON, TT_POISON};
  tt_while(b, 3, inits, forward_cond, forward_step, &c, results);
  tt_val alpha = results[1];
  tt_val step = tt_iota_like(b, alpha, TT_I32, 0);
  tt_val last_step = tt_unsqueeze(b, tt_add_f(b, c.input_lengths, -1), 0);
  tt_val ends = tt_unsqueeze(b, tt_or(b, c.last, c.before_last), 0);
  tt_val counts = tt_and(b, tt_test(b, TT_EQ, step, last_step), ends);
  int64_t over[2] = {0, 2};
  tt_val total = tt_log_sum_exp(b, tt_where(b, counts, alpha, never(b, alpha)), 2, over);
  // No input: the empty target is certain, others impossible.
  int64_t batch = c.batch;
  total = tt_reshape(b, total, 1, &batch);
  tt_val no_input = tt_reshape(b, tt_test_f(b, TT_EQ, c.input_lengths, 0), 1, &batch);
  tt_val no_label = tt_not(b, tt_reshape(b, labels, 1, &batch));
  tt_val certain = tt_and(b, no_input, no_label);
  tt_out_shaped(L, 0, tt_where(b, certain, tt_full_like(b, total, 0), tt_neg(b, total)));
  tt_out_shaped(L, 1, tt_transpose(b, alpha, (int64_t[]){1, 0, 2}));
}

TT_OP(ctc_loss_backward,
      "_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
      "target_lengths, "
      "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor") {
  ctc c = ctc_operands(L, b, 1, 3, 7);
  tt_dtype dtype = tt_dtype_of(b, c.emitted);
  int64_t all[3] = {c.steps, c.batch, c.states};
  tt_val row0 = tt_zeros(b, dtype, 2, all + 1);
  tt_val inits[3] = {tt_const_i(b, TT_I32, c.steps - 1), never(b, c.emitted), never(b, row0)};
  tt_val results[3] = {TT_POISON, TT_POISON, TT_POISON};
  tt_while(b, 3, inits, backward_cond, backward_step, &c, results);
  tt_val alpha = tt_transpose(b, tt_arg_as(L, 6, dtype), (int64_t[]){1, 0, 2});
  tt_val paths = tt_add(b, alpha, results[1]);
  // Of each class: the paths through its states, added up by a product with the table of which states are whose.
  tt_val high = tt_max_keep(b, paths, 2);
  high = tt_where(b, tt_is_inf(b, high), tt_full_like(b, high, 0), high);
  tt_type table = tt_type_make(TT_I64, 3, (int64_t[]){c.batch, c.states, c.classes});
  tt_val is_class = tt_test(b, TT_EQ, tt_iota(b, &table, 2), tt_unsqueeze(b, c.labels, 2));
  tt_val scaled = tt_unary(b, TT_EXP, tt_sub(b, paths, high));
  int64_t one = 1;
  int64_t two = 2;
  int64_t zero = 0;
  tt_val sums = tt_dot_general(b, scaled, tt_convert(b, is_class, dtype), 1, &one, &zero, 1, &two, &one, dtype);
  tt_val by_class = tt_transpose(b, tt_unary(b, TT_LOG, sums), (int64_t[]){1, 0, 2});
  by_class = tt_add(b, by_class, high);
  int64_t per_item[3] = {1, c.batch, 1};
  tt_val loss = tt_reshape(b, tt_arg_as(L, 5, dtype), 3, per_item);
  tt_val grad = tt_reshape(b, tt_arg_as(L, 0, dtype), 3, per_item);
  tt_val share = tt_unary(b, TT_EXP, tt_sub(b, tt_add(b, by_class, loss), c.log_probs));
  tt_val slope = tt_mul(b, tt_sub(b, tt_unary(b, TT_EXP, c.log_probs), share), grad);
  tt_val step = tt_iota_like(b, slope, TT_I32, 0);
  tt_val counts = tt_test(b, TT_LT, step, tt_unsqueeze(b, c.input_lengths, 0));
  if (tt_arg_bool(L, 8)) {
    counts = tt_and(b, counts, tt_test_f(b, TT_LT, loss, (double)INFINITY));
  }
  tt_out(L, 0, tt_where(b, counts, slope, tt_full_like(b, slope, 0)));
}
