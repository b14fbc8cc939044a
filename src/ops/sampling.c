// SPDX-License-Identifier: Apache-2.0
//
// Draws that try until they succeed: Poisson, binomial, gamma, Dirichlet. A loop runs until every element is done. Its random words
// come from a Philox state of its own, seeded by the generator, since how many it needs is not known beforehand.
#include "ops/op.h"

// ---- the loop -------------------------------------------------------------------------------------------------------------

enum { MAX_STATE = 4, MAX_TRIES = 10000 };

typedef struct trial {
  int values;  // of the state that a step changes
  // Changes `values`; gives which elements are done by this step. `uniform` in (0, 1).
  tt_val (*step)(tt_builder* b, tt_val* values, tt_val (*uniform)(tt_builder* b, void* source), void* source,
                 const void* given);
  const void* given;
} trial;

typedef struct source {
  tt_val state;
  tt_type type;
} source;

static tt_val next_uniform(tt_builder* b, void* from) {
  source* s = from;
  tt_val bits;
  tt_type words = s->type;
  bool wide = s->type.dtype == TT_F64;
  words.dtype = wide ? TT_U64 : TT_U32;
  tt_rng_bits(b, s->state, &words, &s->state, &bits);
  tt_val top = tt_convert(b, tt_bin(b, TT_SHR_LOGICAL, bits, tt_const_i(b, words.dtype, wide ? 11 : 8)), s->type.dtype);
  return tt_mul_f(b, tt_add_f(b, top, 0.5), wide ? 0x1p-53 : 0x1p-24);
}

// State: tries, Philox state, done, values.
static void some_left(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  int64_t zero = 0;
  tt_val all = tt_reduce(b, TT_REDUCE_AND, args[2], 1, &zero);
  results[0] = tt_and(b, tt_not(b, all), tt_test_f(b, TT_LT, args[0], MAX_TRIES));
}
static void one_try(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  const trial* t = ctx;
  source s = {.state = args[1], .type = *tt_type_of(b, args[3])};
  tt_val values[MAX_STATE];
  for (int k = 0; k < t->values; ++k) {
    values[k] = args[3 + k];
  }
  tt_val done = t->step(b, values, next_uniform, &s, t->given);
  results[0] = tt_add(b, args[0], tt_const_i(b, TT_I32, 1));
  results[1] = s.state;
  results[2] = tt_or(b, args[2], done);
  for (int k = 0; k < t->values; ++k) {
    results[3 + k] = tt_where(b, args[2], args[3 + k], values[k]);
  }
}
// Runs the trial for the elements of `active` (1-d); values start as given and hold the results.
static void run_trial(tt_lower* L, tt_builder* b, const trial* t, tt_val active, tt_val* values) {
  int64_t two = 2, one = 1;
  tt_type seed_type = tt_type_make(TT_U64, 1, &two);
  tt_val parts[2] = {tt_random_bits(L, &seed_type), tt_zeros(b, TT_U64, 1, &one)};
  tt_val state[3 + MAX_STATE] = {tt_const_i(b, TT_I32, 0), tt_concat(b, 2, parts, 0), tt_not(b, active)},
                   done[3 + MAX_STATE];
  for (int k = 0; k < t->values; ++k) {
    state[3 + k] = values[k];
  }
  tt_while(b, 3 + t->values, state, some_left, one_try, (void*)t, done);
  for (int k = 0; k < t->values; ++k) {
    values[k] = done[3 + k];
  }
}

typedef tt_val (*uniform_fn)(tt_builder* b, void* source);

static tt_val log_of(tt_builder* b, tt_val x) {
  return tt_unary(b, TT_LOG, x);
}
static tt_val like(tt_builder* b, tt_val x, double v) {
  return tt_like_f(b, x, v);
}
// An argument as a 1-d value in the dtype to compute in.
static tt_val read_flat(tt_lower* L, tt_builder* b, int i, tt_dtype dtype) {
  return tt_flatten(b, tt_expand(b, tt_arg_as(L, i, dtype), tt_out_type(L, 0)->rank, tt_out_type(L, 0)->dims));
}
static void out_flat(tt_lower* L, tt_builder* b, tt_val v) {
  tt_out(L, 0, tt_reshape(b, v, tt_out_type(L, 0)->rank, tt_out_type(L, 0)->dims));
}
static bool nothing(tt_lower* L, tt_builder* b) {
  bool none = tt_type_elements(tt_out_type(L, 0)) == 0;
  if (none) {
    tt_out(L, 0, tt_const_i(b, tt_out_type(L, 0)->dtype, 0));
  }
  return none;
}
static tt_dtype draw_dtype(const tt_lower* L) {
  return tt_dtype_compute(tt_out_type(L, 0)->dtype);
}

// ---- Poisson ----------------------------------------------------------------------------------------------------------------

// Counts arrivals in unit time. values: count, time so far.
static tt_val arrivals(tt_builder* b, tt_val* v, uniform_fn uniform, void* from, const void* given) {
  tt_val rate = *(const tt_val*)given;
  tt_val time = tt_sub(b, v[1], log_of(b, uniform(b, from)));
  tt_val over = tt_test(b, TT_GT, time, rate);
  v[0] = tt_where(b, over, v[0], tt_add_f(b, v[0], 1));
  v[1] = time;
  return over;
}
// Hoermann's transformed rejection (PTRS, 1993), for rates of 10 and more. values: result.
static tt_val poisson_rejection(tt_builder* b, tt_val* v, uniform_fn uniform, void* from, const void* given) {
  tt_val rate = *(const tt_val*)given;
  tt_val w = tt_add_f(b, tt_mul_f(b, tt_unary(b, TT_SQRT, rate), 2.53), 0.931);
  tt_val a = tt_add_f(b, tt_mul_f(b, w, 0.02483), -0.059);
  tt_val inverse = tt_add_f(b, tt_div(b, like(b, w, 1.1328), tt_add_f(b, w, -3.4)), 1.1239);
  tt_val limit = tt_sub(b, like(b, w, 0.9277), tt_div(b, like(b, w, 3.6224), tt_add_f(b, w, -2)));
  tt_val u = tt_add_f(b, uniform(b, from), -0.5), y = uniform(b, from);
  tt_val us = tt_sub(b, like(b, u, 0.5), tt_unary(b, TT_ABS, u));
  tt_val slope = tt_add(b, tt_div(b, tt_mul_f(b, a, 2), us), w);
  tt_val k = tt_unary(b, TT_FLOOR, tt_add_f(b, tt_add(b, tt_mul(b, slope, u), rate), 0.43));
  tt_val quick = tt_and(b, tt_test_f(b, TT_GE, us, 0.07), tt_test(b, TT_LE, y, limit));
  tt_val outside =
      tt_or(b, tt_test_f(b, TT_LT, k, 0), tt_and(b, tt_test_f(b, TT_LT, us, 0.013), tt_test(b, TT_GT, y, us)));
  tt_val left = tt_add(b, log_of(b, y), log_of(b, inverse));
  left = tt_sub(b, left, log_of(b, tt_add(b, tt_div(b, a, tt_mul(b, us, us)), w)));
  tt_val right =
      tt_sub(b, tt_sub(b, tt_mul(b, k, log_of(b, rate)), rate), tt_unary(b, TT_CHLO_LGAMMA, tt_add_f(b, k, 1)));
  v[0] = k;
  return tt_or(b, quick, tt_and(b, tt_not(b, outside), tt_test(b, TT_LE, left, right)));
}
TT_OP(poisson, "poisson(Tensor self, Generator? generator=None) -> Tensor") {
  if (nothing(L, b)) {
    return;
  }
  tt_val rate = read_flat(L, b, 0, draw_dtype(L)), zero = tt_full_like(b, rate, 0);
  tt_val big = tt_test_f(b, TT_GE, rate, 10);
  tt_val small_rate = tt_where(b, big, zero, rate), big_rate = tt_where(b, big, rate, tt_full_like(b, rate, 10));
  trial count = {2, arrivals, &small_rate}, reject = {1, poisson_rejection, &big_rate};
  tt_val counted[2] = {zero, zero}, drawn[1] = {zero};
  run_trial(L, b, &count, tt_not(b, big), counted);
  run_trial(L, b, &reject, big, drawn);
  out_flat(L, b, tt_where(b, big, drawn[0], counted[0]));
}

// ---- binomial ---------------------------------------------------------------------------------------------------------------

typedef struct binomial_given {
  tt_val count, p;
} binomial_given;

// Adds up waiting times between successes. values: successes, trials so far.
static tt_val waiting_times(tt_builder* b, tt_val* v, uniform_fn uniform, void* from, const void* given) {
  const binomial_given* g = given;
  tt_val wait = tt_unary(b, TT_CEIL, tt_div(b, log_of(b, uniform(b, from)), tt_unary(b, TT_LOG1P, tt_neg(b, g->p))));
  tt_val trials = tt_add(b, v[1], wait);
  tt_val over = tt_not(b, tt_test(b, TT_LE, trials, g->count));
  v[0] = tt_where(b, over, v[0], tt_add_f(b, v[0], 1));
  v[1] = trials;
  return over;
}
static tt_val log_choose_terms(tt_builder* b, tt_val n, tt_val k) {
  tt_val kept = tt_unary(b, TT_CHLO_LGAMMA, tt_add_f(b, k, 1));
  return tt_add(b, kept, tt_unary(b, TT_CHLO_LGAMMA, tt_add_f(b, tt_sub(b, n, k), 1)));
}
// Hoermann's transformed rejection (BTRS, 1993), for count * p of 10 and more and p up to a half. values: result.
static tt_val binomial_rejection(tt_builder* b, tt_val* v, uniform_fn uniform, void* from, const void* given) {
  const binomial_given* g = given;
  tt_val n = g->count, p = g->p, q = tt_sub(b, like(b, p, 1), p);
  tt_val spread = tt_unary(b, TT_SQRT, tt_mul(b, tt_mul(b, n, p), q));
  tt_val w = tt_add_f(b, tt_mul_f(b, spread, 2.53), 1.15);
  tt_val a = tt_add(b, tt_add_f(b, tt_mul_f(b, w, 0.0248), -0.0873), tt_mul_f(b, p, 0.01));
  tt_val centre = tt_add_f(b, tt_mul(b, n, p), 0.5);
  tt_val limit = tt_sub(b, like(b, w, 0.92), tt_div(b, like(b, w, 4.2), w));
  tt_val alpha = tt_mul(b, tt_add_f(b, tt_div(b, like(b, w, 5.1), w), 2.83), spread);
  tt_val mode = tt_unary(b, TT_FLOOR, tt_mul(b, tt_add_f(b, n, 1), p));
  tt_val u = tt_add_f(b, uniform(b, from), -0.5), y = uniform(b, from);
  tt_val us = tt_sub(b, like(b, u, 0.5), tt_unary(b, TT_ABS, u));
  tt_val slope = tt_add(b, tt_div(b, tt_mul_f(b, a, 2), us), w);
  tt_val k = tt_unary(b, TT_FLOOR, tt_add(b, tt_mul(b, slope, u), centre));
  tt_val quick = tt_and(b, tt_test_f(b, TT_GE, us, 0.07), tt_test(b, TT_LE, y, limit));
  tt_val inside = tt_and(b, tt_test_f(b, TT_GE, k, 0), tt_test(b, TT_LE, k, n));
  tt_val left = log_of(b, tt_div(b, tt_mul(b, y, alpha), tt_add(b, tt_div(b, a, tt_mul(b, us, us)), w)));
  tt_val odds = log_of(b, tt_div(b, p, q));
  tt_val safe = tt_where(b, inside, k, mode);
  tt_val right = tt_sub(b, log_choose_terms(b, n, mode), log_choose_terms(b, n, safe));
  right = tt_add(b, right, tt_mul(b, tt_sub(b, safe, mode), odds));
  v[0] = k;
  return tt_and(b, inside, tt_or(b, quick, tt_test(b, TT_LE, left, right)));
}
TT_OP(binomial, "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor") {
  if (nothing(L, b)) {
    return;
  }
  tt_dtype dtype = draw_dtype(L);
  tt_val n = read_flat(L, b, 0, dtype), p = read_flat(L, b, 1, dtype), zero = tt_full_like(b, n, 0);
  // The rarer outcome is counted.
  tt_val flip = tt_test_f(b, TT_GT, p, 0.5);
  tt_val rare = tt_where(b, flip, tt_sub(b, like(b, p, 1), p), p);
  tt_val some = tt_and(b, tt_test_f(b, TT_GT, rare, 0), tt_test_f(b, TT_GT, n, 0));
  tt_val big = tt_and(b, some, tt_test_f(b, TT_GE, tt_mul(b, n, rare), 10));
  tt_val little = tt_and(b, some, tt_not(b, big));
  binomial_given small_given = {n, tt_where(b, little, rare, tt_full_like(b, p, 0.5))};
  binomial_given big_given = {tt_where(b, big, n, tt_full_like(b, n, 100)),
                              tt_where(b, big, rare, tt_full_like(b, p, 0.5))};
  trial wait = {2, waiting_times, &small_given}, reject = {1, binomial_rejection, &big_given};
  tt_val counted[2] = {zero, zero}, drawn[1] = {zero};
  run_trial(L, b, &wait, little, counted);
  run_trial(L, b, &reject, big, drawn);
  tt_val k = tt_where(b, big, drawn[0], counted[0]);
  tt_val result = tt_where(b, flip, tt_sub(b, n, k), k);
  tt_val unknown = tt_or(b, tt_is_nan(b, p), tt_is_nan(b, n));
  out_flat(L, b, tt_where(b, unknown, tt_add(b, p, n), result));
}

// ---- gamma and Dirichlet ------------------------------------------------------------------------------------------------------

// Marsaglia and Tsang (2000), for shapes of 1 and more. values: result.
static tt_val gamma_rejection(tt_builder* b, tt_val* v, uniform_fn uniform, void* from, const void* given) {
  tt_val d = tt_add_f(b, *(const tt_val*)given, -1.0 / 3);
  tt_val c = tt_unary(b, TT_RSQRT, tt_mul_f(b, d, 9));
  tt_val half = tt_add_f(b, tt_mul_f(b, uniform(b, from), 2), -1);
  tt_val x = tt_mul_f(b, tt_unary(b, TT_CHLO_ERF_INV, half), 1.4142135623730951);
  tt_val root = tt_add_f(b, tt_mul(b, c, x), 1);
  tt_val cube = tt_mul(b, tt_mul(b, root, root), root);
  tt_val positive = tt_test_f(b, TT_GT, cube, 0);
  tt_val safe = tt_where(b, positive, cube, like(b, cube, 1));
  tt_val bound = tt_mul_f(b, tt_mul(b, x, x), 0.5);
  bound = tt_add(b, bound, tt_mul(b, d, tt_add(b, tt_sub(b, like(b, safe, 1), safe), log_of(b, safe))));
  v[0] = tt_mul(b, d, safe);
  return tt_and(b, positive, tt_test(b, TT_LT, log_of(b, uniform(b, from)), bound));
}
// 1-d draws for 1-d shapes. Below 1: that of shape + 1 times u^(1 / shape).
static tt_val gamma_draw(tt_lower* L, tt_builder* b, tt_val shape) {
  tt_dtype dtype = tt_dtype_of(b, shape);
  tt_val small = tt_test_f(b, TT_LT, shape, 1);
  tt_val raised = tt_where(b, small, tt_add_f(b, shape, 1), shape);
  trial t = {1, gamma_rejection, &raised};
  tt_val drawn[1] = {tt_full_like(b, shape, 0)};
  run_trial(L, b, &t, tt_test_f(b, TT_GT, shape, 0), drawn);
  int64_t n = tt_dim_of(b, shape, 0);
  tt_val u = tt_random_uniform(L, dtype, 1, &n);
  tt_val power = tt_unary(b, TT_EXP, tt_div(b, log_of(b, tt_sub(b, like(b, u, 1), u)), shape));
  tt_val value = tt_mul(b, drawn[0], tt_where(b, small, power, like(b, power, 1)));
  return tt_max(b, value, like(b, value, dtype == TT_F64 ? 2.2250738585072014e-308 : 1.1754943508222875e-38));
}
TT_OP(standard_gamma, "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor") {
  if (!nothing(L, b)) {
    out_flat(L, b, gamma_draw(L, b, read_flat(L, b, 0, draw_dtype(L))));
  }
}
TT_OP(sample_dirichlet, "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor") {
  if (!nothing(L, b)) {
    const tt_type* to = tt_out_type(L, 0);
    tt_val g = tt_reshape(b, gamma_draw(L, b, read_flat(L, b, 0, draw_dtype(L))), to->rank, to->dims);
    tt_out(L, 0, tt_div(b, g, tt_sum_keep(b, g, -1)));
  }
}
