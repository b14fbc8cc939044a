// SPDX-License-Identifier: Apache-2.0
//
// The worker pool, forks and the clock.
#define _GNU_SOURCE 1
#include "base/thread.h"

#include "base/mem.h"
#include "tt_test.h"

enum { TASKS = 500 };

typedef struct record {
  tt_mutex lock;
  int count;
  int order[TASKS];
} record;

typedef struct entry {
  record* into;
  int number;
} entry;

static void note(void* arg) {
  entry* e = arg;
  tt_mutex_lock(&e->into->lock);
  e->into->order[e->into->count++] = e->number;
  tt_mutex_unlock(&e->into->lock);
}

static void submit_all(int threads, record* into, entry* entries) {
  tt_pool* pool = tt_pool_create(threads, "test");
  for (int i = 0; i < TASKS; ++i) {
    entries[i] = (entry){into, i};
    tt_pool_submit(pool, note, &entries[i]);
  }
  tt_pool_destroy(pool);
}

TEST(pool, one_thread_keeps_the_order_of_submission) {
  record into = {.lock = TT_MUTEX_INIT};
  entry entries[TASKS];
  submit_all(1, &into, entries);
  EXPECT_EQ_INT(into.count, TASKS);
  for (int i = 0; i < TASKS; ++i) {
    REQUIRE_TRUE(into.order[i] == i);
  }
}

TEST(pool, destroy_waits_for_every_task) {
  record into = {.lock = TT_MUTEX_INIT};
  entry entries[TASKS];
  submit_all(3, &into, entries);
  EXPECT_EQ_INT(into.count, TASKS);
  bool seen[TASKS] = {false};
  for (int i = 0; i < TASKS; ++i) {
    seen[into.order[i]] = true;
  }
  for (int i = 0; i < TASKS; ++i) {
    EXPECT_TRUE(seen[i]);
  }
}

typedef struct gate {
  tt_mutex lock;
  tt_cond changed;
  int inside;
} gate;

// Comes back only when two are inside: it needs two threads at once.
static void meet(void* arg) {
  gate* g = arg;
  tt_mutex_lock(&g->lock);
  ++g->inside;
  tt_cond_broadcast(&g->changed);
  while (g->inside < 2) {
    tt_cond_wait(&g->changed, &g->lock);
  }
  tt_mutex_unlock(&g->lock);
}

TEST(pool, tasks_run_side_by_side) {
  gate g = {.lock = TT_MUTEX_INIT, .changed = TT_COND_INIT};
  tt_pool* pool = tt_pool_create(2, "meet");
  tt_pool_submit(pool, meet, &g);
  tt_pool_submit(pool, meet, &g);
  tt_pool_destroy(pool);
  EXPECT_EQ_INT(g.inside, 2);
}

typedef struct chain {
  tt_pool* pool;
  int left;
} chain;

static void step(void* arg) {
  chain* c = arg;
  if (--c->left > 0) {
    tt_pool_submit(c->pool, step, c);
  }
}

TEST(pool, a_task_may_submit_more) {
  chain c = {tt_pool_create(1, "chain"), 100};
  tt_pool_submit(c.pool, step, &c);
  tt_pool_destroy(c.pool);
  EXPECT_EQ_INT(c.left, 0);
}

static void read_name(void* arg) {
  (void)pthread_getname_np(pthread_self(), arg, 16);
}

TEST(pool, threads_have_names) {
  char name[16] = "";
  tt_pool* pool = tt_pool_create(1, "a_very_long_name");
  tt_pool_submit(pool, read_name, name);
  tt_pool_destroy(pool);
  EXPECT_STR(name, "a_very_long-0");
}

static void set(void* arg) {
  *(bool*)arg = true;
}

TEST(fork, children_have_a_generation_of_their_own_and_pools_do_not_hang) {
  EXPECT_EQ_INT(tt_fork_generation(), 0);
  tt_pool* pool = tt_pool_create(2, "parent");
  pid_t child = tt_test_fork();
  if (child == 0) {
    bool ran = false;
    tt_pool_submit(pool, set, &ran);  // no threads here: runs at once
    bool good = tt_fork_generation() == 1 && ran;
    tt_pool_destroy(pool);
    _exit(good ? 0 : 1);
  }
  int status = -1;
  REQUIRE_TRUE(waitpid(child, &status, 0) == child);
  EXPECT_EQ_INT(status, 0);
  EXPECT_EQ_INT(tt_fork_generation(), 0);
  tt_pool_destroy(pool);
}

TEST(clock, does_not_go_back) {
  int64_t before = tt_now_ns();
  for (int i = 0; i < 1000; ++i) {
    int64_t now = tt_now_ns();
    EXPECT_TRUE(now >= before);
    before = now;
  }
  (void)usleep(2000);
  EXPECT_TRUE(tt_now_ns() - before >= 2000000);
}
