// SPDX-License-Identifier: Apache-2.0
//
// The order of launches, on a plugin that holds its news back: synchronize, markers, copies under way, the throttle.
#include <pthread.h>
#include <stdatomic.h>

#include "run/device.h"
#include "run_support.h"

static const float one_two_three[3] = {1, 2, 3};

static tt_device* first_device(void) {
  tt_device* device = NULL;
  EXPECT_OK(tt_device_get(0, &device));
  return device;
}

TEST(order, a_marker_is_reached_when_what_came_before_is_done) {
  begin();
  tensor x, z, w;
  tt_marker *before = NULL, *after = NULL;
  tt_device* device = first_device();
  make_f32(&x, 3, one_two_three);
  REQUIRE_OK(tt_marker_create(device, &before));
  EXPECT_TRUE(tt_marker_done(before));
  EXPECT_TRUE(tt_marker_time_ns(before) > 0);
  fake()->delay(true);
  EXPECT_OK(add(&x, &x, 1, &z));
  REQUIRE_OK(tt_marker_create(device, &after));
  EXPECT_OK(add(&x, &x, 1, &w));  // later: the marker does not wait for it
  EXPECT_TRUE(!tt_marker_done(after));
  EXPECT_EQ_INT(tt_marker_time_ns(after), 0);
  EXPECT_EQ_INT(fake()->release(1), 1);
  EXPECT_TRUE(tt_marker_done(after));
  EXPECT_TRUE(tt_marker_time_ns(after) >= tt_marker_time_ns(before));
  EXPECT_OK(tt_marker_await(after));
  EXPECT_EQ_INT(fake()->delayed(), 1);
  tt_marker_destroy(before);
  tt_marker_destroy(after);
  drop(&x);
  drop(&z);
  drop(&w);
  end();
}

TEST(order, a_marker_may_go_before_it_is_reached) {
  begin();
  tensor x, z;
  tt_marker* marker = NULL;
  make_f32(&x, 3, one_two_three);
  fake()->delay(true);
  EXPECT_OK(add(&x, &x, 1, &z));
  REQUIRE_OK(tt_marker_create(first_device(), &marker));
  tt_marker_destroy(marker);
  drop(&z);
  drop(&x);
  fake()->delay(false);
  end();
}

TEST(order, a_marker_counts_a_failed_launch_as_done) {
  begin();
  tensor x, z;
  tt_marker* marker = NULL;
  make_f32(&x, 3, one_two_three);
  fake()->delay(true);
  fake()->fail_later(1, TT_INTERNAL, "the chip hiccuped");
  EXPECT_OK(add(&x, &x, 1, &z));
  REQUIRE_OK(tt_marker_create(first_device(), &marker));
  fake()->delay(false);
  EXPECT_TRUE(tt_marker_done(marker));
  EXPECT_STATUS(tt_marker_await(marker), TT_INTERNAL, "the chip hiccuped");
  tt_marker_destroy(marker);
  drop(&z);
  drop(&x);
  end();
}

static void* release_when_awaited(void* arg) {
  fake()->await_waiter();
  (void)fake()->release(*(int*)arg);
  return NULL;
}

// Runs `wait` while another thread releases n events as soon as this one waits.
static void wait_and_release(int n, tt_status (*wait)(void* ctx), void* ctx) {
  pthread_t thread;
  REQUIRE_TRUE(pthread_create(&thread, NULL, release_when_awaited, &n) == 0);
  EXPECT_OK(wait(ctx));
  (void)pthread_join(thread, NULL);
}
static tt_status synchronize(void* ctx) {
  return tt_device_synchronize(ctx);
}
static tt_status await_marker(void* ctx) {
  return tt_marker_await(ctx);
}

TEST(order, synchronize_waits_for_everything) {
  begin();
  tensor x, z, w;
  make_f32(&x, 3, one_two_three);
  fake()->delay(true);
  EXPECT_OK(add(&x, &x, 1, &z));
  EXPECT_OK(mul(&x, &z, &w));
  EXPECT_EQ_INT(fake()->delayed(), 2);
  wait_and_release(-1, synchronize, first_device());
  EXPECT_EQ_INT(fake()->delayed(), 0);
  drop(&x);
  drop(&z);
  drop(&w);
  end();
}

TEST(order, a_copy_to_the_host_is_there_when_its_marker_is_reached) {
  begin();
  tensor x, z;
  tt_marker* marker = NULL;
  float got[3] = {0, 0, 0};
  make_f32(&x, 3, one_two_three);
  fake()->delay(true);
  EXPECT_OK(add(&x, &x, 1, &z));
  REQUIRE_OK(tt_copy_to_host_async(&z.t, got, &marker));
  EXPECT_EQ_INT(fake()->release(1), 1);  // the sum
  EXPECT_TRUE(!tt_marker_done(marker) && got[0] == 0);
  drop(&z);  // the copy holds what it needs
  wait_and_release(1, await_marker, marker);
  EXPECT_TRUE(tt_marker_done(marker) && got[0] == 2 && got[2] == 6);
  tt_marker_destroy(marker);
  drop(&x);
  end();
}

// The host runs ahead by a bounded number of launches, then waits for the oldest.
TEST(order, launches_do_not_pile_up_without_end) {
  begin();
  tensor x, z;
  pthread_t thread;
  int one = 1;
  make_f32(&x, 3, one_two_three);
  fake()->delay(true);
  for (int i = 0; i < TT_MAX_PENDING; ++i) {
    EXPECT_OK(add(&x, &x, 1, &z));
    drop(&z);
  }
  EXPECT_EQ_INT(fake()->delayed(), TT_MAX_PENDING);
  REQUIRE_TRUE(pthread_create(&thread, NULL, release_when_awaited, &one) == 0);
  EXPECT_OK(add(&x, &x, 1, &z));  // waits for the first
  (void)pthread_join(thread, NULL);
  EXPECT_EQ_INT(fake()->delayed(), TT_MAX_PENDING);
  drop(&z);
  fake()->delay(false);
  EXPECT_OK(tt_device_synchronize(first_device()));
  drop(&x);
  end();
}

// Releasing what a launch still reads or writes is safe: the plugin holds it.
TEST(order, tensors_may_go_while_their_launches_run) {
  begin();
  tensor x, z, w;
  make_f32(&x, 3, one_two_three);
  fake()->delay(true);
  EXPECT_OK(add(&x, &x, 1, &z));
  EXPECT_OK(mul(&z, &x, &w));
  drop(&x);
  drop(&z);
  fake()->delay(false);
  EXPECT_F32(&w, 3, 2, 8, 18);
  drop(&w);
  end();
}

// ---- threads --------------------------------------------------------------------------------------------------------------

enum { THREADS = 4, ROUNDS = 40 };
typedef struct worker {
  tensor shared;
  int number;
  atomic_int* failed;
} worker;

// Calls with numbers, sizes and offsets of its own on a tensor that all threads read, and in place on one of its own.
static void* work(void* arg) {
  worker* w = arg;
  for (int i = 0; i < ROUNDS; ++i) {
    tensor mine, sum, part;
    float got[3] = {0, 0, 0};
    tt_status status = NULL;
    make_f32(&mine, 3, one_two_three);
    view(&part, &w->shared, 1, (const int64_t[]){3}, (const int64_t[]){1}, (i + w->number) % 4);
    status = add(&part, &mine, i, &sum);
    if (status == NULL) {
      status = add_in_place(&sum, &mine, 1);
    }
    if (status == NULL) {
      status = tt_copy_to_host(&sum.t, got);
    }
    float want = (float)((i + w->number) % 4) + (float)i + 1;
    if (status != NULL || got[0] != want || (i % 16 == 15 && w->number == 0)) {
      tt_memory_cache_clear();
    }
    if (status != NULL || got[0] != want) {
      atomic_fetch_add(w->failed, 1);
    }
    tt_status_free(status);
    drop(&sum);
    drop(&mine);
  }
  return NULL;
}

TEST(order, threads_work_side_by_side) {
  begin();
  pthread_t threads[THREADS];
  worker workers[THREADS];
  atomic_int failed = 0;
  tensor shared, sum;
  int64_t six = 6;
  make(&shared, TT_F32, 1, &six, (const float[]){0, 1, 2, 3, 4, 5});
  EXPECT_OK(add(&shared, &shared, 1, &sum));  // the shared overloads are made by one thread
  EXPECT_OK(add_in_place(&sum, &sum, 1));
  drop(&sum);
  for (int i = 0; i < THREADS; ++i) {
    workers[i].number = i;
    workers[i].failed = &failed;
    describe(&workers[i].shared, shared.t.storage, TT_F32, 1, &six, NULL, 0);
    REQUIRE_TRUE(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < THREADS; ++i) {
    (void)pthread_join(threads[i], NULL);
  }
  EXPECT_EQ_INT(atomic_load(&failed), 0);
  drop(&shared);
  end();
}
