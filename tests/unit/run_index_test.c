// SPDX-License-Identifier: Apache-2.0
//
// Index checks: an index out of range is reported once, at the next host read or synchronize, with op and line.
#include "run_support.h"

static const char* line = "";
static void where_now(char* buffer, int size) {
  (void)snprintf(buffer, (size_t)size, "%s", line);
}

static void make_indexes(tensor* out, int n, const int64_t* values) {
  make(out, TT_I64, 1, (const int64_t[]){n}, values);
}

typedef struct setting {
  tensor values, good, bad, z;
} setting;

static void open_table(setting* s) {
  begin();
  line = "train.py:7";
  tt_set_where(where_now);
  make_f32(&s->values, 4, (const float[]){10, 20, 30, 40});
  make_indexes(&s->good, 3, (const int64_t[]){3, 0, -1});
  make_indexes(&s->bad, 3, (const int64_t[]){1, 9, -7});
}

static void close_table(setting* s) {
  drop(&s->values);
  drop(&s->good);
  drop(&s->bad);
  end();
}

TEST(index, in_range_is_looked_up) {
  setting s;
  open_table(&s);
  EXPECT_OK(take(&s.values, &s.good, &s.z));
  EXPECT_F32(&s.z, 3, 40, 10, 40);
  drop(&s.z);
  close_table(&s);
}

TEST(index, out_of_range_is_reported_once_at_the_next_read) {
  setting s;
  float got[3];
  float other[4];
  open_table(&s);
  EXPECT_OK(take(&s.values, &s.bad, &s.z));
  line = "elsewhere.py:1";
  EXPECT_STATUS(tt_copy_to_host(&s.values.t, other), TT_OUT_OF_RANGE,
                "index 9 is out of bounds for dimension with size 4 in test_take, called at train.py:7");
  EXPECT_OK(tt_copy_to_host(&s.z.t, got));  // reported before
  EXPECT_OK(tt_copy_to_host(&s.values.t, other));
  EXPECT_TRUE(other[3] == 40);
  drop(&s.z);
  EXPECT_OK(take(&s.values, &s.good, &s.z));
  EXPECT_F32(&s.z, 3, 40, 10, 40);
  drop(&s.z);
  close_table(&s);
}

TEST(index, the_first_of_several_is_reported) {
  setting s;
  tensor first, second;
  tt_device* device = NULL;
  open_table(&s);
  REQUIRE_OK(tt_device_get(0, &device));
  make_indexes(&second, 1, (const int64_t[]){-5});
  EXPECT_OK(take(&s.values, &s.bad, &first));
  line = "train.py:8";
  EXPECT_OK(take(&s.values, &second, &s.z));
  EXPECT_STATUS(tt_device_synchronize(device), TT_OUT_OF_RANGE,
                "index 9 is out of bounds for dimension with size 4 in test_take, called at train.py:7");
  EXPECT_OK(tt_device_synchronize(device));
  drop(&s.z);
  EXPECT_OK(take(&s.values, &second, &s.z));
  EXPECT_STATUS(tt_device_synchronize(device), TT_OUT_OF_RANGE,
                "index -5 is out of bounds for dimension with size 4 in test_take, called at train.py:8");
  drop(&s.z);
  drop(&first);
  drop(&second);
  close_table(&s);
}

TEST(index, debug_mode_reports_at_the_call) {
  setting s;
  open_table(&s);
  EXPECT_OK(tt_mode_set(TT_MODE_DEBUG));
  EXPECT_STATUS(take(&s.values, &s.bad, &s.z), TT_OUT_OF_RANGE,
                "index 9 is out of bounds for dimension with size 4 in test_take, called at train.py:7");
  EXPECT_OK(take(&s.values, &s.good, &s.z));
  drop(&s.z);
  close_table(&s);
}

TEST(index, a_loop_over_checked_calls_makes_nothing_new) {
  setting s;
  open_table(&s);
  EXPECT_OK(take(&s.values, &s.good, &s.z));
  drop(&s.z);
  tt_memory before;
  tt_memory after;
  tt_stats first;
  tt_stats last;
  tt_memory_get(0, &before);
  tt_stats_get(&first);
  for (int i = 0; i < 20; ++i) {
    EXPECT_OK(take(&s.values, &s.good, &s.z));
    drop(&s.z);
  }
  tt_memory_get(0, &after);
  tt_stats_get(&last);
  EXPECT_EQ_INT(after.count, before.count);
  EXPECT_EQ_INT(last.compiled, first.compiled);
  EXPECT_EQ_INT(last.bytes_to_device, first.bytes_to_device);
  close_table(&s);
}

// A checked launch that fails is its own outputs' business: other tensors read well, and later checks work.
TEST(index, a_failed_launch_does_not_spoil_the_checks) {
  setting s;
  float got[3];
  open_table(&s);
  EXPECT_OK(take(&s.values, &s.good, &s.z));
  EXPECT_F32(&s.z, 3, 40, 10, 40);
  drop(&s.z);
  fake()->fail_later(1, TT_INTERNAL, "the chip hiccuped");
  EXPECT_OK(take(&s.values, &s.good, &s.z));
  EXPECT_F32(&s.values, 4, 10, 20, 30, 40);
  EXPECT_STATUS(tt_copy_to_host(&s.z.t, got), TT_INTERNAL, "the chip hiccuped");
  drop(&s.z);
  EXPECT_OK(take(&s.values, &s.good, &s.z));
  EXPECT_F32(&s.z, 3, 40, 10, 40);
  drop(&s.z);
  EXPECT_OK(take(&s.values, &s.bad, &s.z));
  EXPECT_STATUS(tt_copy_to_host(&s.z.t, got), TT_OUT_OF_RANGE, "index 9 is out of bounds");
  drop(&s.z);
  close_table(&s);
}

// The same without a read between: the next checked launch takes the failed accumulator over.
TEST(index, a_failed_launch_does_not_poison_the_next_checked_one) {
  setting s;
  tensor second;
  float got[3];
  open_table(&s);
  fake()->fail_later(1, TT_INTERNAL, "the chip hiccuped");
  EXPECT_OK(take(&s.values, &s.good, &s.z));
  EXPECT_OK(take(&s.values, &s.good, &second));
  EXPECT_STATUS(tt_copy_to_host(&s.z.t, got), TT_INTERNAL, "the chip hiccuped");
  EXPECT_F32(&second, 3, 40, 10, 40);
  drop(&s.z);
  drop(&second);
  close_table(&s);
}

// However many places check indexes: each report names its own.
TEST(index, many_checked_lines_are_told_apart) {
  setting s;
  char text[32];
  tt_device* device = NULL;
  open_table(&s);
  REQUIRE_OK(tt_device_get(0, &device));
  line = "model.py:500";
  EXPECT_OK(take(&s.values, &s.bad, &s.z));
  drop(&s.z);
  for (int i = 0; i < 1000; ++i) {
    (void)snprintf(text, sizeof text, "model.py:%d", i);
    line = text;
    EXPECT_OK(take(&s.values, &s.good, &s.z));
    drop(&s.z);
  }
  EXPECT_STATUS(tt_device_synchronize(device), TT_OUT_OF_RANGE, "in test_take, called at model.py:500");
  close_table(&s);
}
