// SPDX-License-Identifier: Apache-2.0
//
// The builder: sticky errors, equal nodes, what is printed and in which order, regions, aliases.
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tt/hlo.h"
#include "tt_test.h"

#define DIMS(...)                                                          \
  (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { \
    __VA_ARGS__                                                            \
  }

static void destroy(tt_builder** b) {
  tt_builder_destroy(*b);
}
static void release_text(char** text) {
  free(*text);
}
#define SCOPED_BUILDER(name) TT_CLEANUP(destroy) tt_builder* name = tt_builder_create()
#define SCOPED_TEXT(name) TT_CLEANUP(release_text) char* name = NULL

static tt_val param(tt_builder* b, int rank, const int64_t* dims) {
  tt_type type = tt_type_make(TT_F32, rank, dims);
  return tt_param(b, &type);
}

static int count(const char* text, const char* part) {
  int n = 0;
  for (const char* at = strstr(text, part); at; at = strstr(at + 1, part)) {
    n++;
  }
  return n;
}

TEST(hlo, first_error_is_kept_and_reported_at_finish) {
  SCOPED_BUILDER(b);
  SCOPED_TEXT(text);
  tt_val x = param(b, DIMS(2)), y = param(b, DIMS(3));
  tt_val bad = tt_binary(b, TT_ADD, x, y);
  EXPECT_EQ_INT(bad, TT_POISON);
  EXPECT_TRUE(tt_builder_failed(b));
  EXPECT_EQ_INT(tt_unary(b, TT_NOT, x), TT_POISON);  // a second error, which is not the one reported
  EXPECT_EQ_INT(tt_unary(b, TT_NEG, x), TT_POISON);  // nothing works after an error
  tt_val out = tt_unary(b, TT_EXP, bad);
  EXPECT_STATUS(tt_builder_finish(b, "m", 1, &out, &text), TT_INVALID_ARGUMENT,
                "add: expected operands of one type, got f32[2] and f32[3]");
  EXPECT_TRUE(text == NULL);
}

TEST(hlo, builder_works_again_once_its_error_is_taken) {
  SCOPED_BUILDER(b);
  tt_val x = param(b, DIMS(2));
  tt_builder_fail(b, TT_UNIMPLEMENTED, "no %s", "luck");
  EXPECT_STATUS(tt_builder_take_error(b), TT_UNIMPLEMENTED, "no luck");
  EXPECT_OK(tt_builder_take_error(b));
  EXPECT_TRUE(tt_unary(b, TT_EXP, x) != TT_POISON);
}

TEST(hlo, poison_operand_of_a_sound_builder_is_an_error) {
  SCOPED_BUILDER(b);
  EXPECT_EQ_INT(tt_unary(b, TT_EXP, TT_POISON), TT_POISON);
  EXPECT_STATUS(tt_builder_take_error(b), TT_INVALID_ARGUMENT, "exponential: expected a value for operand 0, got none");
  EXPECT_EQ_INT(tt_rank_of(b, TT_POISON), 0);
  EXPECT_EQ_INT(tt_dtype_of(b, 12345), TT_F32);
}

TEST(hlo, dead_code_is_not_printed) {
  SCOPED_BUILDER(b);
  SCOPED_TEXT(text);
  tt_val x = param(b, DIMS(2)), unused = param(b, DIMS(5));
  tt_unary(b, TT_TANH, x);
  tt_unary(b, TT_SINE, unused);
  tt_val out = tt_unary(b, TT_EXP, x);
  EXPECT_OK(tt_builder_finish(b, "m", 1, &out, &text));
  EXPECT_TRUE(strstr(text, "tanh") == NULL && strstr(text, "sine") == NULL);
  EXPECT_TRUE(strstr(text, "@main(%arg0: tensor<2xf32>, %arg1: tensor<5xf32>) -> (tensor<2xf32>)") != NULL);
  EXPECT_TRUE(strstr(text, "%0 = \"stablehlo.exponential\"(%arg0)") != NULL);
}

// exp(x) * tanh(x) + 2, with the parts emitted in either order.
static char* emit_in_order(bool exp_first) {
  SCOPED_BUILDER(b);
  char* text = NULL;
  tt_val x = param(b, DIMS(2)), two = TT_POISON, e = TT_POISON, t = TT_POISON;
  if (exp_first) {
    e = tt_unary(b, TT_EXP, x);
    t = tt_unary(b, TT_TANH, x);
    two = tt_like_f(b, x, 2);
  } else {
    two = tt_like_f(b, x, 2);
    t = tt_unary(b, TT_TANH, x);
    e = tt_unary(b, TT_EXP, x);
  }
  tt_val out = tt_add(b, tt_mul(b, e, t), two);
  EXPECT_OK(tt_builder_finish(b, "m", 1, &out, &text));
  return text;
}

TEST(hlo, order_of_emission_does_not_show) {
  TT_CLEANUP(release_text) char* one = emit_in_order(true);
  TT_CLEANUP(release_text) char* other = emit_in_order(false);
  EXPECT_STR(one, other);
}

TEST(hlo, equal_nodes_are_one_node) {
  SCOPED_BUILDER(b);
  tt_val x = param(b, DIMS(2, 3));
  int64_t one = 1, zero = 0;
  EXPECT_EQ_INT(tt_unary(b, TT_EXP, x), tt_unary(b, TT_EXP, x));
  EXPECT_EQ_INT(tt_const_f(b, TT_F32, 0.1), tt_const_f(b, TT_F32, 0.1));
  EXPECT_EQ_INT(tt_reduce(b, TT_REDUCE_SUM, x, 1, &one), tt_reduce(b, TT_REDUCE_SUM, x, 1, &one));
  EXPECT_TRUE(tt_reduce(b, TT_REDUCE_SUM, x, 1, &one) != tt_reduce(b, TT_REDUCE_MAX, x, 1, &one));
  EXPECT_TRUE(tt_reduce(b, TT_REDUCE_SUM, x, 1, &one) != tt_reduce(b, TT_REDUCE_SUM, x, 1, &zero));
  EXPECT_TRUE(tt_const_f(b, TT_F32, 0.0) != tt_const_f(b, TT_F32, -0.0));
  EXPECT_TRUE(tt_const_i(b, TT_I32, 1) != tt_const_i(b, TT_I64, 1));
}

TEST(hlo, thousands_of_nodes_keep_their_places) {
  SCOPED_BUILDER(b);
  SCOPED_TEXT(text);
  tt_val x = param(b, DIMS(2)), chain = x;
  for (int i = 0; i < 20000; i++) {
    chain = tt_add_f(b, chain, 1.0 + (i % 7));
  }
  EXPECT_OK(tt_builder_finish(b, "deep", 1, &chain, &text));
  EXPECT_EQ_INT(count(text, "stablehlo.add"), 20000);
  EXPECT_EQ_INT(count(text, "stablehlo.constant"), 7);
}

static void add_outer(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  results[0] = tt_add(b, args[0], *(const tt_val*)ctx);
}

static void below_ten(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  results[0] = tt_test_f(b, TT_LT, args[0], 10);
}

TEST(hlo, outer_values_of_a_region_come_before_it) {
  SCOPED_BUILDER(b);
  SCOPED_TEXT(text);
  tt_val x = param(b, 0, NULL), out = TT_POISON;
  tt_val step = tt_unary(b, TT_EXP, x);
  tt_while(b, 1, &x, below_ten, add_outer, &step, &out);
  EXPECT_OK(tt_builder_finish(b, "loop", 1, &out, &text));
  const char* exponential = strstr(text, "stablehlo.exponential");
  const char* loop = strstr(text, "stablehlo.while");
  EXPECT_TRUE(exponential && loop && exponential < loop);
}

TEST(hlo, reduction_may_use_outer_constants_but_no_other_outer_values) {
  SCOPED_BUILDER(b);
  SCOPED_TEXT(text);
  tt_val x = param(b, DIMS(4)), outer = tt_const_f(b, TT_F32, 3), result = TT_POISON;
  tt_val init = tt_const_f(b, TT_F32, 0), other = param(b, 0, NULL);
  int64_t dim = 0;
  tt_reduce_many(b, 1, &x, &init, 1, &dim, add_outer, &outer, &result);
  EXPECT_OK(tt_builder_finish(b, "m", 1, &result, &text));
  EXPECT_TRUE(strstr(strstr(text, "^bb0"), "dense<3.0e+00>") != NULL);
  tt_reduce_many(b, 1, &x, &init, 1, &dim, add_outer, &other, &result);
  EXPECT_STATUS(tt_builder_take_error(b), TT_INVALID_ARGUMENT,
                "reduce: expected a region that uses only its arguments and constants");
}

static tt_val leaked;
static void leak(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  leaked = results[0] = tt_add(b, args[0], args[1]);
}

TEST(hlo, value_of_a_closed_region_cannot_be_used) {
  SCOPED_BUILDER(b);
  tt_val x = param(b, DIMS(4)), init = tt_const_f(b, TT_F32, 0), result = TT_POISON;
  int64_t dim = 0;
  tt_reduce_many(b, 1, &x, &init, 1, &dim, leak, NULL, &result);
  tt_unary(b, TT_EXP, leaked);
  EXPECT_STATUS(tt_builder_take_error(b), TT_INVALID_ARGUMENT,
                "exponential: operand 0 belongs to a region that is closed");
}

static void two_constants(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)args;
  (void)ctx;
  results[0] = tt_const_f(b, TT_F32, 1);
}

static void int_constant(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)args;
  (void)ctx;
  results[0] = tt_const_i(b, TT_I32, 1);
}

static void nothing(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)b;
  (void)args;
  (void)results;
  (void)ctx;
}

TEST(hlo, branches_must_agree_and_give_results) {
  SCOPED_BUILDER(b);
  tt_val pred = tt_const_i(b, TT_BOOL, 1), result = TT_POISON;
  tt_if(b, pred, 1, two_constants, int_constant, NULL, &result);
  EXPECT_STATUS(tt_builder_take_error(b), TT_INVALID_ARGUMENT,
                "if: expected the second branch to give f32[] as result 0, got i32[]");
  tt_if(b, pred, 1, nothing, nothing, NULL, &result);
  EXPECT_STATUS(tt_builder_take_error(b), TT_INVALID_ARGUMENT, "if: expected a value for operand 0, got none");
}

TEST(hlo, alias_is_printed_and_checked) {
  SCOPED_BUILDER(b);
  SCOPED_TEXT(text);
  tt_val x = param(b, DIMS(2)), out = tt_unary(b, TT_EXP, x), scalar = tt_const_f(b, TT_F32, 1);
  tt_builder_alias(b, 0, 0);
  EXPECT_OK(tt_builder_finish(b, "m", 1, &out, &text));
  EXPECT_TRUE(strstr(text, "%arg0: tensor<2xf32> {tf.aliasing_output = 0 : i32}") != NULL);
  SCOPED_TEXT(none);
  EXPECT_STATUS(tt_builder_finish(b, "m", 1, &scalar, &none), TT_INVALID_ARGUMENT,
                "alias: expected parameter 0 and output 0 of one type, got f32[2] and f32[]");
  tt_builder_alias(b, 0, 1);
  tt_val both[] = {out, out};
  EXPECT_STATUS(tt_builder_finish(b, "m", 2, both, &none), TT_INVALID_ARGUMENT, "is aliased twice");
  tt_builder_alias(b, 4, 0);
  EXPECT_STATUS(tt_builder_finish(b, "m", 2, both, &none), TT_INVALID_ARGUMENT, "aliased twice");
}

static void square_plus(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  (void)ctx;
  results[0] = tt_add_f(b, tt_mul(b, args[0], args[0]), 1);
}

TEST(hlo, equal_decompositions_share_one_function) {
  SCOPED_BUILDER(b);
  SCOPED_TEXT(text);
  tt_val x = param(b, DIMS(2)), once = TT_POISON, twice = TT_POISON;
  tt_composite(b, "my.square_plus", "{k = 3 : i64}", 1, &x, square_plus, NULL, 1, &once);
  tt_composite(b, "my.square_plus", NULL, 1, &once, square_plus, NULL, 1, &twice);
  EXPECT_OK(tt_builder_finish(b, "m", 1, &twice, &text));
  EXPECT_EQ_INT(count(text, "func.func private"), 1);
  EXPECT_EQ_INT(count(text, "decomposition = @decomposition_0"), 2);
  EXPECT_EQ_INT(count(text, "composite_attributes = {k = 3 : i64}"), 1);
}

TEST(hlo, precision_is_carried_by_contractions) {
  SCOPED_BUILDER(b);
  SCOPED_TEXT(text);
  tt_val x = param(b, DIMS(2, 2));
  tt_val highest = tt_matmul(b, x, x);
  tt_builder_set_precision(b, 0);
  tt_val outputs[] = {highest, tt_matmul(b, x, x)};
  EXPECT_TRUE(outputs[0] != outputs[1]);
  EXPECT_OK(tt_builder_finish(b, "m", 2, outputs, &text));
  EXPECT_EQ_INT(count(text, "<precision HIGHEST>"), 2);
  EXPECT_EQ_INT(count(text, "<precision DEFAULT>"), 2);
}

TEST(hlo, module_name_becomes_a_symbol) {
  SCOPED_BUILDER(b);
  SCOPED_TEXT(text);
  tt_val x = param(b, DIMS(2));
  EXPECT_OK(tt_builder_finish(b, "1 aten::add.\"x\"", 1, &x, &text));
  EXPECT_TRUE(strstr(text, "module @m_1_aten__add__x_ {") != NULL);
}
