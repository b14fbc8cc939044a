// SPDX-License-Identifier: Apache-2.0
//
// What fails fails alone: refused launches, launches that fail later, memory, compilations, starts.
#include "run/device.h"
#include "run_support.h"

static const float one_two_three[3] = {1, 2, 3};

TEST(run, a_refused_launch_leaves_everything_as_it_was) {
  begin();
  tensor x, y;
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  EXPECT_OK(add_in_place(&x, &y, 1));
  fake()->fail("PJRT_LoadedExecutable_Execute", 1, TT_INTERNAL, "no launch");
  EXPECT_STATUS(add_in_place(&x, &y, 1), TT_INTERNAL, "running add_.Tensor: PJRT_LoadedExecutable_Execute: no launch");
  EXPECT_F32(&x, 3, 2, 4, 6);
  EXPECT_OK(add_in_place(&x, &y, 1));
  EXPECT_F32(&x, 3, 3, 6, 9);
  drop(&x);
  drop(&y);
  end();
}

TEST(run, a_failed_launch_poisons_its_outputs_and_nothing_else) {
  begin();
  tensor shared, good, bad, after, next;
  float got[3];
  tt_stats before;
  tt_stats stats;
  make_f32(&shared, 3, one_two_three);
  tt_stats_get(&before);
  fake()->fail_later(2, TT_INTERNAL, "the chip hiccuped");
  EXPECT_OK(add(&shared, &shared, 1, &good));
  EXPECT_OK(add(&shared, &shared, 2, &bad));
  EXPECT_OK(mul(&bad, &shared, &after));
  EXPECT_OK(mul(&good, &shared, &next));
  tt_stats_get(&stats);
  EXPECT_EQ_INT(stats.launches - before.launches, 4);
  EXPECT_STATUS(tt_copy_to_host(&bad.t, got), TT_INTERNAL, "reading the result of add.Tensor");
  EXPECT_STATUS(tt_copy_to_host(&bad.t, got), TT_INTERNAL, "the chip hiccuped");    // and again
  EXPECT_STATUS(tt_copy_to_host(&after.t, got), TT_INTERNAL, "the chip hiccuped");  // it was computed from it
  EXPECT_F32(&good, 3, 2, 4, 6);
  EXPECT_F32(&next, 3, 2, 8, 18);
  EXPECT_F32(&shared, 3, 1, 2, 3);
  drop(&good);
  drop(&bad);
  drop(&after);
  drop(&next);
  EXPECT_OK(add(&shared, &shared, 2, &bad));  // work goes on
  EXPECT_F32(&bad, 3, 3, 6, 9);
  drop(&bad);
  drop(&shared);
  end();
}

TEST(run, a_whole_write_heals_a_poisoned_tensor) {
  begin();
  tensor x, y;
  float got[3];
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  fake()->fail_later(1, TT_INTERNAL, "the chip hiccuped");
  EXPECT_OK(add_in_place(&x, &y, 1));
  EXPECT_STATUS(tt_copy_to_host(&x.t, got), TT_INTERNAL, "the chip hiccuped");
  EXPECT_OK(fill(&x, 5));
  EXPECT_F32(&x, 3, 5, 5, 5);
  drop(&x);
  drop(&y);
  end();
}

TEST(run, synchronize_reports_a_failure_once) {
  begin();
  tensor x, z;
  tt_device* device = NULL;
  make_f32(&x, 3, one_two_three);
  REQUIRE_OK(tt_device_get(0, &device));
  fake()->delay(true);
  fake()->fail_later(1, TT_INTERNAL, "the chip hiccuped");
  EXPECT_OK(add(&x, &x, 1, &z));
  fake()->delay(false);
  EXPECT_STATUS(tt_device_synchronize(device), TT_INTERNAL, "the chip hiccuped");
  EXPECT_OK(tt_device_synchronize(device));
  drop(&z);
  drop(&x);
  end();
}

// ---- memory ---------------------------------------------------------------------------------------------------------------

TEST(run, out_of_memory_is_an_error_and_the_process_goes_on) {
  begin();
  tensor x, z[4];
  int64_t n = 1 << 12;
  fake()->memory_limit(50 << 10);
  make(&x, TT_F32, 1, &n, NULL);
  EXPECT_OK(fill(&x, 1));
  EXPECT_OK(add(&x, &x, 1, &z[0]));
  EXPECT_OK(add(&x, &x, 1, &z[1]));
  EXPECT_STATUS(add(&x, &x, 1, &z[2]), TT_RESOURCE_EXHAUSTED,
                "running add.Tensor: PJRT_LoadedExecutable_Execute: out of memory");
  drop(&z[1]);
  EXPECT_OK(add(&x, &x, 1, &z[3]));
  float* got = malloc(sizeof(float) << 12);
  EXPECT_OK(tt_copy_to_host(&z[3].t, got));
  EXPECT_TRUE(got[0] == 2 && got[n - 1] == 2);
  free(got);
  drop(&z[0]);
  drop(&z[3]);
  drop(&x);
  end();
}

TEST(run, a_large_request_that_cannot_fit_is_refused_with_sizes) {
  begin();
  tensor x;
  int64_t n = 4 << 20;
  fake()->memory_limit(10 << 20);
  make(&x, TT_F32, 1, &n, NULL);
  EXPECT_STATUS(
      fill(&x, 1), TT_RESOURCE_EXHAUSTED,
      "tpu out of memory in fill_.Scalar: tried to allocate 16.00 MiB; tpu:0 has 10.00 MiB in total, 0.00 MiB in use");
  EXPECT_EQ_INT(fake()->calls("PJRT_LoadedExecutable_Execute"), 0);
  char* bytes = calloc((size_t)n, 4);
  EXPECT_STATUS(tt_copy_from_host(&x.t, bytes), TT_RESOURCE_EXHAUSTED, "tpu out of memory in copy to tpu");
  free(bytes);
  drop(&x);
  end();
}

// ---- compiling ------------------------------------------------------------------------------------------------------------

TEST(run, a_program_that_does_not_compile_fails_its_call_only) {
  begin();
  tensor x, z;
  make_f32(&x, 3, one_two_three);
  fake()->fail("PJRT_Client_Compile", 1, TT_INTERNAL, "compiler on holiday");
  EXPECT_STATUS(add(&x, &x, 1, &z), TT_INTERNAL, "compiling add_Tensor: PJRT_Client_Compile: compiler on holiday");
  EXPECT_OK(add(&x, &x, 1, &z));
  EXPECT_F32(&z, 3, 2, 4, 6);
  drop(&z);
  drop(&x);
  end();
}

TEST(run, a_call_that_does_not_lower_changes_nothing) {
  begin();
  tensor x, y;
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 4, NULL);
  EXPECT_STATUS(add_in_place(&x, &y, 1), TT_INVALID_ARGUMENT, "expected sizes that broadcast, got f32[3] and f32[4]");
  EXPECT_F32(&x, 3, 1, 2, 3);
  drop(&x);
  drop(&y);
  end();
}

// A CPU plugin that does not know our tuning flags is asked without them, for good.
TEST(run, flags_that_a_plugin_does_not_know_are_left_out) {
  if (!is_child()) {
    free(run_child("run.flags_that_a_plugin_does_not_know_are_left_out", (const char* const[]){NULL}));
    return;
  }
  begin();
  fake()->machine(1, "cpu");
  tensor x, z;
  make_f32(&x, 3, one_two_three);
  fake()->fail("PJRT_Client_Compile", 1, TT_INVALID_ARGUMENT, "No such compile option: 'xla_cpu_use_fusion_emitters'");
  EXPECT_OK(add(&x, &x, 1, &z));
  EXPECT_EQ_INT(fake()->calls("PJRT_Client_Compile"), 2);
  drop(&z);
  EXPECT_OK(mul(&x, &x, &z));
  EXPECT_EQ_INT(fake()->calls("PJRT_Client_Compile"), 3);
  drop(&z);
  drop(&x);
  end();
}

// ---- debug mode -----------------------------------------------------------------------------------------------------------

static void where_now(char* buffer, int size) {
  (void)snprintf(buffer, (size_t)size, "train.py:12");
}

TEST(run, debug_mode_names_op_and_line_at_the_call) {
  begin();
  tensor x, z;
  tt_set_where(where_now);
  make_f32(&x, 3, one_two_three);
  EXPECT_OK(tt_mode_set(TT_MODE_DEBUG));
  EXPECT_OK(add(&x, &x, 1, &z));
  EXPECT_F32(&z, 3, 2, 4, 6);
  drop(&z);
  fake()->fail_later(1, TT_INTERNAL, "the chip hiccuped");
  EXPECT_STATUS(add(&x, &x, 1, &z), TT_INTERNAL, "add.Tensor at train.py:12: PJRT_Event_Await: the chip hiccuped");
  EXPECT_OK(add(&x, &x, 1, &z));
  EXPECT_F32(&z, 3, 2, 4, 6);
  drop(&z);
  drop(&x);
  end();
}

TEST(run, the_mode_is_a_knob) {
  if (!is_child()) {
    free(run_child("run.the_mode_is_a_knob", (const char* const[]){"TORCH_TPU_LAUNCH_BLOCKING=1", NULL}));
    return;
  }
  EXPECT_EQ_INT(tt_mode_get(), TT_MODE_DEBUG);
}
