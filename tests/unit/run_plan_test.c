// SPDX-License-Identifier: Apache-2.0
//
// Plans: what a call's key holds and what it does not, when memory is reused, and when a copy only shares.
#include "run_support.h"

static const float one_two_three[3] = {1, 2, 3};

static int64_t compiled(void) {
  tt_stats stats;
  tt_stats_get(&stats);
  return stats.compiled;
}
static int64_t plans(void) {
  tt_stats stats;
  tt_stats_get(&stats);
  return stats.plans;
}

TEST(run, the_same_call_is_planned_once) {
  begin();
  tensor x, y, z;
  tt_stats before;
  tt_stats after;
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  tt_stats_get(&before);
  for (int i = 0; i < 5; ++i) {
    EXPECT_OK(add(&x, &y, 1, &z));
    EXPECT_F32(&z, 3, 2, 4, 6);
    drop(&z);
  }
  tt_stats_get(&after);
  EXPECT_EQ_INT(after.compiled - before.compiled, 1);
  EXPECT_EQ_INT(after.launches - before.launches, 5);
  EXPECT_EQ_INT(after.hits - before.hits, 5);
  EXPECT_EQ_INT(after.calls - before.calls, 5);
  drop(&x);
  drop(&y);
  end();
}

TEST(run, another_number_is_no_new_plan) {
  begin();
  tensor x, y, z, half;
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  EXPECT_OK(add(&x, &y, 2, &z));
  EXPECT_F32(&z, 3, 3, 6, 9);
  drop(&z);
  number(&half, 0.5);
  EXPECT_OK(mul(&x, &half, &z));
  EXPECT_F32(&z, 3, 0.5f, 1, 1.5f);
  drop(&z);
  EXPECT_OK(fill(&x, 7));
  int64_t before = compiled();
  EXPECT_OK(add(&x, &y, 10, &z));
  EXPECT_F32(&z, 3, 17, 27, 37);
  drop(&z);
  number(&half, 0.25);
  EXPECT_OK(mul(&y, &half, &z));
  EXPECT_F32(&z, 3, 0.25f, 0.5f, 0.75f);
  drop(&z);
  EXPECT_OK(fill(&x, -1));
  EXPECT_F32(&x, 3, -1, -1, -1);
  EXPECT_EQ_INT(compiled() - before, 0);
  drop(&x);
  drop(&y);
  end();
}

TEST(run, another_offset_is_no_new_plan) {
  begin();
  tensor base, window, z;
  float values[40];
  for (int i = 0; i < 40; ++i) {
    values[i] = (float)i;
  }
  make(&base, TT_F32, 2, (const int64_t[]){5, 8}, values);
  view(&window, &base, 2, (const int64_t[]){2, 2}, (const int64_t[]){8, 1}, 0);
  EXPECT_OK(add(&window, &window, 1, &z));
  drop(&z);
  int64_t before = compiled();
  for (int row = 0; row < 4; ++row) {
    float at = (float)(8 * row + row);
    view(&window, &base, 2, (const int64_t[]){2, 2}, (const int64_t[]){8, 1}, 9 * row);
    EXPECT_OK(add(&window, &window, 1, &z));
    EXPECT_F32(&z, 4, 2 * at, 2 * at + 2, 2 * at + 16, 2 * at + 18);
    drop(&z);
  }
  // Written through: the same holds, after the first.
  view(&window, &base, 2, (const int64_t[]){2, 2}, (const int64_t[]){8, 1}, 0);
  EXPECT_OK(fill(&window, 100));
  int64_t written = compiled();
  view(&window, &base, 2, (const int64_t[]){2, 2}, (const int64_t[]){8, 1}, 11);
  EXPECT_OK(fill(&window, 200));
  tensor row;
  view(&row, &base, 1, (const int64_t[]){8}, (const int64_t[]){1}, 8);
  EXPECT_F32(&row, 8, 100, 100, 10, 200, 200, 13, 14, 15);
  EXPECT_TRUE(written - before <= 2);
  EXPECT_EQ_INT(compiled() - written, 1);  // reading the row
  drop(&base);
  end();
}

TEST(run, other_sizes_dtypes_or_aliasing_are_other_plans) {
  begin();
  tensor x, y, z, wide, other;
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  make_f32(&wide, 4, NULL);
  make(&other, TT_I64, 1, (const int64_t[]){3}, (const int64_t[]){1, 2, 3});
  EXPECT_OK(add(&x, &y, 1, &z));
  drop(&z);
  int64_t before = plans();
  EXPECT_OK(add(&wide, &wide, 1, &z));
  drop(&z);
  EXPECT_OK(add(&other, &other, 1, &z));
  drop(&z);
  EXPECT_OK(add(&x, &x, 1, &z));
  EXPECT_F32(&z, 3, 2, 4, 6);
  drop(&z);
  EXPECT_EQ_INT(plans() - before, 3);
  drop(&x);
  drop(&y);
  drop(&wide);
  drop(&other);
  end();
}

TEST(run, forgotten_plans_are_made_again) {
  begin();
  tensor x, z;
  make_f32(&x, 3, one_two_three);
  EXPECT_OK(add(&x, &x, 1, &z));
  drop(&z);
  tt_memory_cache_clear();
  EXPECT_EQ_INT(plans(), 0);
  int64_t before = compiled();
  EXPECT_OK(add(&x, &x, 1, &z));
  EXPECT_F32(&z, 3, 2, 4, 6);
  EXPECT_EQ_INT(compiled() - before, 1);
  drop(&z);
  drop(&x);
  end();
}

// What the outputs look like belongs to the plan, which may be forgotten before the caller has looked.
TEST(run, outputs_keep_their_description_when_plans_are_forgotten) {
  begin();
  tensor x;
  tt_outputs outputs;
  int alias = -1;
  static tt_overload* overload;
  if (overload == NULL) {
    overload = tt_overload_create("neg", find_op("neg("), 1, 0, 1, &alias);
  }
  make_f32(&x, 3, one_two_three);
  tt_argument args[1] = {tensor_arg(&x)};
  tt_meta meta = {.dtype = TT_F32, .rank = 1, .sizes = {3}, .strides = {1}};
  REQUIRE_OK(call(overload, 1, args, 1, &meta, &outputs));
  tt_memory_cache_clear();
  EXPECT_EQ_INT(outputs.items[0].meta->sizes[0], 3);
  tt_storage_release(outputs.items[0].storage);
  tt_outputs_deinit(&outputs);
  drop(&x);
  end();
}

// ---- memory ---------------------------------------------------------------------------------------------------------------

TEST(run, an_in_place_call_reuses_the_memory_nobody_else_holds) {
  begin();
  tensor x, y;
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  EXPECT_OK(add_in_place(&x, &y, 1));
  tt_memory before;
  tt_memory after;
  tt_memory_get(0, &before);
  tt_memory_reset_peak(0);
  for (int i = 0; i < 10; ++i) {
    EXPECT_OK(add_in_place(&x, &y, 1));
  }
  tt_memory_get(0, &after);
  EXPECT_EQ_INT(after.bytes, before.bytes);
  EXPECT_EQ_INT(after.frees - before.frees, 10);
  EXPECT_F32(&x, 3, 12, 24, 36);
  EXPECT_F32(&y, 3, 1, 2, 3);
  drop(&x);
  drop(&y);
  end();
}

TEST(run, a_value_that_somebody_else_holds_is_not_given_up) {
  begin();
  tensor x, copy, y;
  tt_stats before;
  tt_stats after;
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  make_f32(&copy, 3, NULL);
  tt_stats_get(&before);
  EXPECT_OK(tt_copy_on_device(&copy.t, &x.t));
  tt_stats_get(&after);
  EXPECT_EQ_INT(after.shared_copies - before.shared_copies, 1);
  EXPECT_EQ_INT(after.launches - before.launches, 0);
  EXPECT_OK(add_in_place(&x, &y, 1));
  EXPECT_F32(&x, 3, 2, 4, 6);
  EXPECT_F32(&copy, 3, 1, 2, 3);
  EXPECT_OK(add_in_place(&x, &y, 1));  // now it is alone
  EXPECT_OK(add_in_place(&copy, &x, 1));
  EXPECT_F32(&copy, 3, 4, 8, 12);
  EXPECT_F32(&x, 3, 3, 6, 9);
  drop(&x);
  drop(&y);
  drop(&copy);
  end();
}

TEST(run, a_tensor_may_be_its_own_operand) {
  begin();
  tensor x;
  make_f32(&x, 3, one_two_three);
  EXPECT_OK(add_in_place(&x, &x, 1));
  EXPECT_OK(add_in_place(&x, &x, 1));
  EXPECT_F32(&x, 3, 4, 8, 12);
  drop(&x);
  end();
}

TEST(run, a_view_may_be_added_to_its_base) {
  begin();
  tensor base, row, first;
  make(&base, TT_F32, 2, (const int64_t[]){2, 3}, (const float[]){1, 2, 3, 4, 5, 6});
  view(&row, &base, 2, (const int64_t[]){2, 3}, (const int64_t[]){0, 1}, 3);  // the second row, twice
  view(&first, &base, 1, (const int64_t[]){3}, (const int64_t[]){1}, 0);
  EXPECT_OK(add_in_place(&base, &row, 1));
  EXPECT_F32(&base, 6, 5, 7, 9, 8, 10, 12);
  EXPECT_OK(add_in_place(&first, &first, 1));
  EXPECT_F32(&base, 6, 10, 14, 18, 8, 10, 12);
  drop(&base);
  end();
}

// ---- copies ---------------------------------------------------------------------------------------------------------------

TEST(run, host_data_goes_through_a_view) {
  begin();
  tensor base, column;
  make(&base, TT_F32, 2, (const int64_t[]){2, 3}, (const float[]){1, 2, 3, 4, 5, 6});
  view(&column, &base, 1, (const int64_t[]){2}, (const int64_t[]){3}, 1);
  EXPECT_OK(tt_copy_from_host(&column.t, (const float[]){20, 50}));
  EXPECT_F32(&base, 6, 1, 20, 3, 4, 50, 6);
  EXPECT_F32(&column, 2, 20, 50);
  drop(&base);
  end();
}

TEST(run, a_copy_converts_and_broadcasts) {
  begin();
  tensor whole, row;
  make(&whole, TT_F32, 2, (const int64_t[]){2, 3}, NULL);
  make(&row, TT_I64, 1, (const int64_t[]){3}, (const int64_t[]){-1, 0, 4});
  EXPECT_OK(tt_copy_on_device(&whole.t, &row.t));
  EXPECT_F32(&whole, 6, -1, 0, 4, -1, 0, 4);
  drop(&whole);
  drop(&row);
  end();
}

TEST(run, a_tensor_goes_to_another_device) {
  begin();
  fake()->machine(2, NULL);
  tensor x, there;
  int64_t n = 3;
  make_f32(&x, 3, one_two_three);
  describe(&there, NULL, TT_F32, 1, &n, NULL, 0);
  REQUIRE_OK(tt_storage_create(1, TT_F32, 1, there.sizes, there.strides, 12, &there.t.storage));
  EXPECT_OK(tt_copy_across(&there.t, &x.t));
  EXPECT_F32(&there, 3, 1, 2, 3);
  EXPECT_EQ_INT(tt_storage_device(there.t.storage), 1);
  drop(&x);
  drop(&there);
  end();
}

TEST(run, an_empty_tensor_takes_part) {
  begin();
  tensor x, z;
  int64_t none = 0;
  make(&x, TT_F32, 1, &none, NULL);
  EXPECT_OK(tt_copy_from_host(&x.t, NULL));
  EXPECT_OK(add(&x, &x, 1, &z));
  EXPECT_OK(tt_copy_to_host(&z.t, NULL));
  EXPECT_OK(add_in_place(&x, &x, 2));
  drop(&x);
  drop(&z);
  end();
}
