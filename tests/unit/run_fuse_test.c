// SPDX-License-Identifier: Apache-2.0
//
// Fused mode: calls are recorded, run as one program at a cut, and lose nothing when that fails.
#include <pthread.h>
#include <stdatomic.h>

#include "run_support.h"

static const float one_two_three[3] = {1, 2, 3};

static tt_stats now(void) {
  tt_stats stats;
  tt_stats_get(&stats);
  return stats;
}

// z = (x + y) * x, and x += y. The intermediate sum goes.
static void record_three(const tensor* x, const tensor* y, double alpha, tensor* z) {
  tensor sum;
  EXPECT_OK(add(x, y, alpha, &sum));
  EXPECT_OK(mul(&sum, x, z));
  EXPECT_OK(add_in_place(x, y, 1));
  drop(&sum);
}

// In a process that waits for a new trace's program, so that what runs is known.
static bool child_waits(const char* name) {
  if (!is_child()) {
    free(run_child(name, (const char* const[]){"TORCH_TPU_COMPILE_WAIT=1", NULL}));
    return false;
  }
  begin();
  return true;
}

TEST(fuse, recorded_calls_run_as_one_program_at_the_read) {
  if (!child_waits("fuse.recorded_calls_run_as_one_program_at_the_read")) {
    return;
  }
  tensor x, y, z;
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  EXPECT_OK(tt_mode_set(TT_MODE_FUSED));
  tt_stats before = now();
  record_three(&x, &y, 1, &z);
  EXPECT_EQ_INT(now().launches - before.launches, 0);
  EXPECT_F32(&z, 3, 2, 8, 18);
  EXPECT_EQ_INT(now().launches - before.launches, 1);
  EXPECT_EQ_INT(now().compiled - before.compiled, 1);
  EXPECT_F32(&x, 3, 2, 4, 6);
  EXPECT_EQ_INT(now().launches - before.launches, 1);  // it came with the other
  drop(&z);
  // The same again with another number compiles nothing.
  before = now();
  record_three(&x, &y, 10, &z);
  EXPECT_F32(&z, 3, 24, 96, 216);
  EXPECT_F32(&x, 3, 3, 6, 9);
  EXPECT_EQ_INT(now().compiled - before.compiled, 0);
  EXPECT_EQ_INT(now().launches - before.launches, 1);
  drop(&x);
  drop(&y);
  drop(&z);
  end();
}

TEST(fuse, a_change_of_mode_runs_what_is_recorded) {
  begin();
  tensor x, y, z;
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  EXPECT_OK(tt_mode_set(TT_MODE_FUSED));
  tt_stats before = now();
  record_three(&x, &y, 1, &z);
  EXPECT_EQ_INT(now().launches - before.launches, 0);
  EXPECT_OK(tt_mode_set(TT_MODE_STRICT));
  EXPECT_TRUE(now().launches > before.launches);
  EXPECT_F32(&z, 3, 2, 8, 18);
  EXPECT_F32(&x, 3, 2, 4, 6);
  drop(&x);
  drop(&y);
  drop(&z);
  end();
}

TEST(fuse, what_nobody_looks_at_is_not_run) {
  begin();
  tensor x, z;
  make_f32(&x, 3, one_two_three);
  EXPECT_OK(tt_mode_set(TT_MODE_FUSED));
  tt_stats before = now();
  EXPECT_OK(add(&x, &x, 1, &z));
  drop(&z);
  EXPECT_F32(&x, 3, 1, 2, 3);
  EXPECT_EQ_INT(now().launches - before.launches, 0);
  drop(&x);
  end();
}

// However often, and whatever was read before: a value that was never made is an error, not zeros.
static void expect_lost(const tensor* t, tt_code code, const char* part) {
  float got[3];
  tensor more;
  EXPECT_STATUS(tt_copy_to_host(&t->t, got), code, part);
  EXPECT_STATUS(tt_copy_to_host(&t->t, got), code, part);
  tt_status status = add(t, t, 1, &more);
  if (status == NULL) {
    status = tt_copy_to_host(&more.t, got);
    drop(&more);
  }
  EXPECT_STATUS(status, code, part);
}

TEST(fuse, a_refused_program_is_told_by_each_of_its_tensors) {
  if (!child_waits("fuse.a_refused_program_is_told_by_each_of_its_tensors")) {
    return;
  }
  tensor x, y, z;
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  EXPECT_OK(tt_mode_set(TT_MODE_FUSED));
  fake()->fail("PJRT_LoadedExecutable_Execute", 1, TT_RESOURCE_EXHAUSTED, "no room");
  record_three(&x, &y, 1, &z);
  EXPECT_F32(&y, 3, 1, 2, 3);  // its own read is not the failure's business
  expect_lost(&z, TT_RESOURCE_EXHAUSTED, "no room");
  expect_lost(&x, TT_RESOURCE_EXHAUSTED, "no room");
  EXPECT_F32(&y, 3, 1, 2, 3);
  EXPECT_OK(fill(&x, 7));  // a write of the whole heals it
  EXPECT_F32(&x, 3, 7, 7, 7);
  EXPECT_OK(add_in_place(&x, &y, 1));
  EXPECT_F32(&x, 3, 8, 9, 10);
  drop(&x);
  drop(&y);
  drop(&z);
  end();
}

TEST(fuse, a_program_that_fails_later_is_told_by_each_of_its_tensors) {
  if (!child_waits("fuse.a_program_that_fails_later_is_told_by_each_of_its_tensors")) {
    return;
  }
  tensor x, y, z;
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  EXPECT_OK(tt_mode_set(TT_MODE_FUSED));
  fake()->fail_later(1, TT_INTERNAL, "the chip hiccuped");
  record_three(&x, &y, 1, &z);
  expect_lost(&z, TT_INTERNAL, "the chip hiccuped");
  expect_lost(&x, TT_INTERNAL, "the chip hiccuped");
  EXPECT_F32(&y, 3, 1, 2, 3);
  drop(&x);
  drop(&y);
  drop(&z);
  end();
}

TEST(fuse, a_program_that_does_not_compile_runs_call_by_call) {
  if (!child_waits("fuse.a_program_that_does_not_compile_runs_call_by_call")) {
    return;
  }
  tensor x, y, z;
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  EXPECT_OK(tt_mode_set(TT_MODE_FUSED));
  fake()->fail("PJRT_Client_Compile", 1, TT_INTERNAL, "too much for the compiler");
  record_three(&x, &y, 1, &z);
  EXPECT_F32(&z, 3, 2, 8, 18);
  EXPECT_F32(&x, 3, 2, 4, 6);
  EXPECT_EQ_INT(fake()->calls("PJRT_Client_Compile"), 4);
  drop(&x);
  drop(&y);
  drop(&z);
  end();
}

TEST(fuse, an_index_out_of_range_is_told_at_the_read) {
  begin();
  tensor values, bad, z;
  float got[2];
  make_f32(&values, 3, one_two_three);
  make(&bad, TT_I64, 1, (const int64_t[]){2}, (const int64_t[]){1, 5});
  EXPECT_OK(tt_mode_set(TT_MODE_FUSED));
  EXPECT_OK(take(&values, &bad, &z));
  EXPECT_STATUS(tt_copy_to_host(&z.t, got), TT_OUT_OF_RANGE,
                "index 5 is out of bounds for dimension with size 3 in test_take");
  EXPECT_OK(tt_copy_to_host(&z.t, got));
  drop(&z);
  drop(&bad);
  drop(&values);
  end();
}

// Traces alike, again and again, while the worker compiles: right before, during and after.
TEST(fuse, results_do_not_depend_on_when_the_program_is_ready) {
  begin();
  tensor x, y, z;
  make_f32(&y, 3, one_two_three);
  EXPECT_OK(tt_mode_set(TT_MODE_FUSED));
  int64_t fused = now().fused_runs;
  for (int i = 0; i < 10 || (now().fused_runs == fused && i < 100000); ++i) {
    make_f32(&x, 3, one_two_three);
    record_three(&x, &y, 1, &z);
    EXPECT_F32(&z, 3, 2, 8, 18);
    EXPECT_F32(&x, 3, 2, 4, 6);
    drop(&x);
    drop(&z);
  }
  EXPECT_TRUE(now().fused_runs > fused);
  drop(&y);
  end();
}

typedef struct worker {
  tensor shared;
  atomic_int* failed;
} worker;

static void* work(void* arg) {
  worker* w = arg;
  for (int i = 0; i < 30; ++i) {
    tensor mine, sum;
    float got[3] = {0, 0, 0};
    make_f32(&mine, 3, one_two_three);
    tt_status status = add(&w->shared, &mine, i, &sum);
    if (status == NULL) {
      status = add_in_place(&sum, &mine, 1);
    }
    if (status == NULL) {
      status = tt_copy_to_host(&sum.t, got);
    }
    if (status != NULL || got[0] != (float)(2 + i)) {
      atomic_fetch_add(w->failed, 1);
    }
    tt_status_free(status);
    drop(&sum);
    drop(&mine);
  }
  return NULL;
}

TEST(fuse, threads_record_and_read_side_by_side) {
  begin();
  enum { THREADS = 3 };
  pthread_t threads[THREADS];
  worker workers[THREADS];
  atomic_int failed = 0;
  int64_t three = 3;
  tensor shared, sum;
  make_f32(&shared, 3, one_two_three);
  EXPECT_OK(add(&shared, &shared, 1, &sum));  // the shared overloads are made by one thread
  EXPECT_OK(add_in_place(&sum, &sum, 1));
  drop(&sum);
  EXPECT_OK(tt_mode_set(TT_MODE_FUSED));
  for (int i = 0; i < THREADS; ++i) {
    workers[i].failed = &failed;
    describe(&workers[i].shared, shared.t.storage, TT_F32, 1, &three, NULL, 0);
    REQUIRE_TRUE(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < THREADS; ++i) {
    (void)pthread_join(threads[i], NULL);
  }
  EXPECT_EQ_INT(atomic_load(&failed), 0);
  drop(&shared);
  end();
}
