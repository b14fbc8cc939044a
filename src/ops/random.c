// SPDX-License-Identifier: Apache-2.0
//
// Numbers drawn from distributions that one formula of uniform or normal numbers gives, and dropout.
#include <math.h>

#include "ops/op.h"

static tt_dtype real_dtype(const tt_lower* L) {
  tt_dtype dtype = tt_dtype_real(tt_out_type(L, 0)->dtype);
  return dtype == TT_F64 ? TT_F64 : TT_F32;
}
static tt_val uniform_like(tt_lower* L, tt_dtype dtype, const tt_type* type) {
  return tt_random_uniform(L, dtype, type->rank, type->dims);
}
static tt_val uniform_out(tt_lower* L) {
  return uniform_like(L, real_dtype(L), tt_out_type(L, 0));
}
static tt_val normal_out(tt_lower* L) {
  const tt_type* type = tt_out_type(L, 0);
  return tt_random_normal(L, real_dtype(L), type->rank, type->dims);
}
// Uniform in (0, 1].
static tt_val uniform_above_zero(tt_lower* L, tt_builder* b) {
  tt_val u = uniform_out(L);
  return tt_sub(b, tt_like_f(b, u, 1), u);
}

TT_OP(uniform, "uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor") {
  tt_dtype dtype = real_dtype(L);
  tt_dtype out = tt_dtype_real(tt_out_type(L, 0)->dtype);
  tt_val from = tt_arg_scalar(L, 1, dtype);
  tt_val to = tt_arg_scalar(L, 2, dtype);
  int parts = tt_dtype_is_complex(tt_out_type(L, 0)->dtype) ? 2 : 1;
  tt_val x[2] = {TT_POISON, TT_POISON};
  for (int k = 0; k < parts; ++k) {
    tt_val u = uniform_out(L);
    x[k] = tt_convert(b, tt_add(b, from, tt_mul(b, u, tt_sub(b, to, from))), out);
    // Rounding may reach `to`, which is not among the results.
    x[k] = tt_where(b, tt_test(b, TT_GE, x[k], tt_convert(b, to, out)), tt_convert(b, from, out), x[k]);
  }
  tt_out(L, 0, parts == 2 ? tt_binary(b, TT_COMPLEX, x[0], x[1]) : x[0]);
}

// A complex number's variance is shared between its parts.
static tt_val standard_normal(tt_lower* L, tt_builder* b) {
  if (!tt_dtype_is_complex(tt_out_type(L, 0)->dtype)) {
    return normal_out(L);
  }
  tt_val re = normal_out(L);
  tt_val im = normal_out(L);
  return tt_binary(b, TT_COMPLEX, tt_mul_f(b, re, sqrt(0.5)), tt_mul_f(b, im, sqrt(0.5)));
}
static tt_val mean_or_std(tt_lower* L, int i, tt_dtype dtype) {
  return tt_arg_info(L, i) != NULL ? tt_arg_as(L, i, dtype) : tt_arg_scalar(L, i, dtype);
}
static tt_val normal(tt_lower* L, tt_builder* b, int mean, int std) {
  tt_val z = standard_normal(L, b);
  tt_dtype dtype = tt_dtype_of(b, z);
  return tt_add(b, mean_or_std(L, mean, dtype), tt_mul(b, mean_or_std(L, std, dtype), z));
}
TT_OP(normal, "normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)") {
  tt_out(L, 0, normal(L, b, 1, 2));
}
TT_OP(normal_functional,
      "normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor") {
  tt_out(L, 0, normal(L, b, 1, 2));
}
TT_OP(normal_tensor_float, "normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor") {
  tt_out(L, 0, normal(L, b, 0, 1));
}
TT_OP(normal_float_tensor, "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor") {
  tt_out(L, 0, normal(L, b, 0, 1));
}
TT_OP(normal_tensors, "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor") {
  tt_out(L, 0, normal(L, b, 0, 1));
}
TT_OP(log_normal, "log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor") {
  tt_out(L, 0, tt_unary(b, TT_EXP, normal(L, b, 1, 2)));
}

TT_OP(exponential, "exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor") {
  tt_val u = uniform_above_zero(L, b);
  double least = tt_dtype_of(b, u) == TT_F64 ? 0x1p-54 : 0x1p-25;  // never 0: others divide by it
  tt_val x = tt_max(b, tt_neg(b, tt_unary(b, TT_LOG, u)), tt_like_f(b, u, least));
  tt_out(L, 0, tt_div(b, x, tt_arg_scalar(L, 1, tt_dtype_of(b, u))));
}
TT_OP(geometric, "geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor") {
  tt_val u = uniform_above_zero(L, b);
  tt_val p = tt_arg_scalar(L, 1, tt_dtype_of(b, u));
  tt_val x = tt_div(b, tt_unary(b, TT_LOG, u), tt_unary(b, TT_LOG1P, tt_neg(b, p)));
  tt_out(L, 0, tt_max(b, tt_unary(b, TT_CEIL, x), tt_like_f(b, u, 1)));
}
TT_OP(cauchy, "cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor") {
  tt_val u = uniform_out(L);
  tt_val x = tt_unary(b, TT_TAN, tt_mul_f(b, tt_add_f(b, u, -0.5), 3.141592653589793));
  tt_dtype dtype = tt_dtype_of(b, u);
  tt_out(L, 0, tt_add(b, tt_arg_scalar(L, 1, dtype), tt_mul(b, tt_arg_scalar(L, 2, dtype), x)));
}

// ---- coins ------------------------------------------------------------------------------------------------------------

static void bernoulli(tt_lower* L, tt_builder* b, tt_val p) {
  tt_val u = uniform_like(L, tt_dtype_of(b, p), tt_out_type(L, 0));
  tt_out(L, 0, tt_test(b, TT_LT, u, p));
}
TT_OP(bernoulli, "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor") {
  bernoulli(L, b, tt_arg_as(L, 0, real_dtype(L)));
}
TT_OP(bernoulli_p, "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor") {
  bernoulli(L, b, tt_arg_scalar(L, 1, TT_F32));
}
TT_OP(bernoulli_tensor, "bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor") {
  bernoulli(L, b, tt_arg_as(L, 1, tt_arg_info(L, 1)->dtype == TT_F64 ? TT_F64 : TT_F32));
}

TT_OP(native_dropout, "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)") {
  if (tt_arg_has(L, 2) && !tt_arg_bool(L, 2)) {
    tt_out(L, 0, tt_arg(L, 0));
    tt_out(L, 1, tt_const_i(b, TT_BOOL, 1));
    return;
  }
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 0)->dtype);
  tt_val p = tt_arg_scalar(L, 1, tt_dtype_real(dtype));
  tt_val keep = tt_test(b, TT_GE, uniform_like(L, tt_dtype_of(b, p), tt_out_type(L, 0)), p);
  tt_val left = tt_sub(b, tt_like_f(b, p, 1), p);
  tt_val scale = tt_where(b, tt_test_f(b, TT_EQ, left, 0), tt_like_f(b, p, 0), tt_div(b, tt_like_f(b, p, 1), left));
  // A product, not a choice: NaN and infinity go through, as on the CPU.
  tt_val factor = tt_where(b, keep, scale, tt_like_f(b, scale, 0));
  tt_out(L, 0, tt_mul(b, tt_arg_as(L, 0, dtype), tt_convert(b, factor, dtype)));
  tt_out(L, 1, keep);
}
TT_OP(native_dropout_backward, "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor") {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 0)->dtype);
  tt_val kept = tt_mul(b, tt_arg_as(L, 0, dtype), tt_arg_as(L, 1, dtype));
  tt_out(L, 0, tt_mul(b, kept, tt_arg_scalar(L, 2, dtype)));
}
TT_OP(fused_dropout, "_fused_dropout(Tensor self, float p, Generator? generator=None) -> (Tensor, Tensor)") {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 0)->dtype);
  tt_val p = tt_arg_scalar(L, 1, dtype);  // of being kept
  tt_val keep = tt_test(b, TT_LT, uniform_like(L, dtype, tt_out_type(L, 0)), p);
  tt_out(L, 0, tt_where(b, keep, tt_div(b, tt_arg_as(L, 0, dtype), p), tt_like_f(b, p, 0)));
  tt_out(L, 1, keep);
}

static void rrelu_with_noise(tt_lower* L, tt_builder* b) {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 0)->dtype);
  tt_val x = tt_arg_as(L, 0, dtype);
  tt_val lower = tt_arg_scalar(L, 2, dtype);
  tt_val upper = tt_arg_scalar(L, 3, dtype);
  tt_val low = tt_test_f(b, TT_LE, x, 0);
  if (!tt_arg_bool(L, 4)) {
    tt_val slope = tt_mul_f(b, tt_add(b, lower, upper), 0.5);
    tt_out(L, 0, tt_where(b, low, tt_mul(b, x, slope), x));
    return;
  }
  tt_val u = tt_add(b, lower, tt_mul(b, uniform_like(L, dtype, tt_type_of(b, x)), tt_sub(b, upper, lower)));
  tt_val noise = tt_where(b, low, u, tt_like_f(b, u, 1));
  tt_write(L, 1, noise);
  tt_out(L, 0, tt_mul(b, x, noise));
}
TT_OP(rrelu_with_noise,
      "rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, "
      "bool training=False, Generator? generator=None) -> Tensor") {
  rrelu_with_noise(L, b);
}
TT_OP(rrelu_with_noise_inplace,
      "rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, "
      "bool training=False, Generator? generator=None) -> Tensor(a!)") {
  rrelu_with_noise(L, b);
}

// ---- integers -----------------------------------------------------------------------------------------------------------

// Bits of a float's significand: the integers up to two to that power are exact.
static int exact_bits(tt_dtype dtype) {
  return dtype == TT_F64 ? 53 : dtype == TT_F32 ? 24 : dtype == TT_F16 ? 11 : dtype == TT_BF16 ? 8 : 3;
}
// The largest number random_ draws of a dtype.
static uint64_t largest(tt_dtype dtype) {
  switch (tt_dtype_class(dtype)) {
    case 'b':
      return 1;
    case 'u':
      return UINT64_MAX >> (64 - 8 * tt_dtype_size(dtype));
    case 'i':
      return UINT64_MAX >> (65 - 8 * tt_dtype_size(dtype));
    default:
      return UINT64_C(1) << exact_bits(dtype);
  }
}
// from + a number below `range`; range 0 means all 64 bits.
static void draw_integers(tt_lower* L, tt_builder* b, int64_t from, uint64_t range) {
  bool narrow = range != 0 && range <= UINT32_MAX;
  tt_type type = *tt_out_type(L, 0);
  type.dtype = narrow ? TT_U32 : TT_U64;
  tt_val bits = tt_random_bits(L, &type);
  if (range != 0) {
    bits = tt_bin(b, TT_REM, bits, tt_const_i(b, type.dtype, (int64_t)range));
  }
  tt_val wide = tt_convert(b, bits, TT_I64);
  tt_out(L, 0, tt_add(b, wide, tt_const_i(b, TT_I64, from)));
}
static void check_range(tt_builder* b, int64_t from, int64_t to) {
  if (from >= to) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
                    (long long)from, (long long)to);
  }
}
TT_OP(random, "random(Tensor self, *, Generator? generator=None) -> Tensor") {
  draw_integers(L, b, 0, largest(tt_out_type(L, 0)->dtype) + 1);
}
TT_OP(random_to, "random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor") {
  int64_t to = tt_arg_int(L, 1);
  check_range(b, 0, to);
  draw_integers(L, b, 0, (uint64_t)to);
}
TT_OP(random_from, "random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor") {
  int64_t from = tt_arg_int(L, 1);
  if (tt_arg_has(L, 2)) {
    int64_t to = tt_arg_int(L, 2);
    check_range(b, from, to);
    draw_integers(L, b, from, (uint64_t)to - (uint64_t)from);
  } else {
    draw_integers(L, b, from, from == INT64_MIN ? 0 : largest(tt_out_type(L, 0)->dtype) - (uint64_t)from + 1);
  }
}

static void first_less(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  results[0] = tt_compare(b, TT_LT, args[0], args[1]);
}
// The order of as many random words.
static void randperm(tt_lower* L, tt_builder* b) {
  tt_type type = *tt_out_type(L, 0);
  type.dtype = TT_U64;
  tt_val xs[2] = {tt_random_bits(L, &type), TT_POISON};
  type.dtype = TT_I32;
  xs[1] = tt_iota(b, &type, 0);
  tt_val sorted[2];
  tt_sort(b, 2, xs, 0, true, first_less, NULL, sorted);
  tt_out(L, 0, sorted[1]);
}
TT_OP(randperm_out, "randperm.generator_out(SymInt n, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)") {
  randperm(L, b);
}

// ---- choices --------------------------------------------------------------------------------------------------------------

TT_OP(multinomial,
      "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor") {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 0)->dtype);
  tt_val p = tt_arg_as(L, 0, dtype);
  int64_t count = tt_arg_int(L, 1);
  int rank = tt_rank_of(b, p);
  int64_t last = rank - 1;
  if (!tt_arg_bool(L, 2) || count == 1) {
    // A race: the first to arrive, at rates p.
    tt_val u = uniform_like(L, dtype, tt_type_of(b, p));
    tt_val wait = tt_neg(b, tt_unary(b, TT_LOG, tt_sub(b, tt_like_f(b, u, 1), u)));
    tt_val speed = tt_div(b, p, tt_max(b, wait, tt_like_f(b, u, dtype == TT_F64 ? 0x1p-54 : 0x1p-25)));
    if (count == 1) {
      tt_out(L, 0, tt_unsqueeze(b, tt_arg_reduce(b, true, speed, (int)last, NULL), -1));
      return;
    }
    tt_val values, places;
    tt_top_k(b, speed, count, &values, &places);
    tt_out(L, 0, places);
    return;
  }
  // Where a uniform number falls in the running sum.
  tt_val sums = tt_cumulative(b, TT_REDUCE_SUM, p, (int)last);
  tt_val total = tt_slice_dim(b, sums, (int)last, tt_dim_of(b, p, (int)last) - 1, tt_dim_of(b, p, (int)last), 1);
  tt_val at = tt_mul(b, uniform_like(L, dtype, tt_out_type(L, 0)), total);
  tt_val below = tt_test(b, TT_LE, tt_unsqueeze(b, sums, (int)last), tt_unsqueeze(b, at, -1));
  tt_val inside = tt_test(b, TT_LT, tt_unsqueeze(b, sums, (int)last), tt_unsqueeze(b, total, -1));
  int64_t summed = rank;
  tt_out(L, 0, tt_reduce(b, TT_REDUCE_SUM, tt_convert(b, tt_and(b, below, inside), TT_I32), 1, &summed));
}
