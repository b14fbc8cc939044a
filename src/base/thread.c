// SPDX-License-Identifier: Apache-2.0
//
// Mutexes and conditions that abort on misuse, the worker pool, the fork counter and the clock.
#define _GNU_SOURCE 1
#include "base/thread.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/mem.h"

void tt_mutex_init(tt_mutex* m) {
  TT_CHECK(pthread_mutex_init(&m->m, NULL) == 0);
}
void tt_mutex_deinit(tt_mutex* m) {
  TT_CHECK(pthread_mutex_destroy(&m->m) == 0);
}
void tt_mutex_lock(tt_mutex* m) {
  TT_CHECK(pthread_mutex_lock(&m->m) == 0);
}
void tt_mutex_unlock(tt_mutex* m) {
  TT_CHECK(pthread_mutex_unlock(&m->m) == 0);
}

void tt_cond_init(tt_cond* c) {
  TT_CHECK(pthread_cond_init(&c->c, NULL) == 0);
}
void tt_cond_deinit(tt_cond* c) {
  TT_CHECK(pthread_cond_destroy(&c->c) == 0);
}
void tt_cond_wait(tt_cond* c, tt_mutex* m) {
  TT_CHECK(pthread_cond_wait(&c->c, &m->m) == 0);
}
void tt_cond_broadcast(tt_cond* c) {
  TT_CHECK(pthread_cond_broadcast(&c->c) == 0);
}

// ---- fork ---------------------------------------------------------------------------------------------------------

static atomic_int fork_generation;

static void in_child(void) {
  atomic_fetch_add_explicit(&fork_generation, 1, memory_order_relaxed);
}

__attribute__((constructor)) static void watch_forks(void) {
  TT_CHECK(pthread_atfork(NULL, NULL, in_child) == 0);
}

int tt_fork_generation(void) {
  return atomic_load_explicit(&fork_generation, memory_order_relaxed);
}

int64_t tt_now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// ---- pool ---------------------------------------------------------------------------------------------------------

typedef struct task {
  struct task* next;
  void (*fn)(void* arg);
  void* arg;
} task;

struct tt_pool {
  tt_mutex lock;
  tt_cond changed;
  task* first;     // under lock
  task** last;     // under lock: where the next task is hooked in
  bool closing;    // under lock
  int generation;  // of the process that owns the threads
  int count;
  pthread_t* threads;
};

static void* work(void* arg) {
  tt_pool* pool = arg;
  tt_mutex_lock(&pool->lock);
  for (;;) {
    task* next = pool->first;
    if (next == NULL) {
      if (pool->closing) {
        break;
      }
      tt_cond_wait(&pool->changed, &pool->lock);
      continue;
    }
    pool->first = next->next;
    if (pool->first == NULL) {
      pool->last = &pool->first;
    }
    tt_mutex_unlock(&pool->lock);
    next->fn(next->arg);
    free(next);
    tt_mutex_lock(&pool->lock);
  }
  tt_mutex_unlock(&pool->lock);
  return NULL;
}

tt_pool* tt_pool_create(int threads, const char* name) {
  TT_CHECK(threads > 0);
  tt_pool* pool = tt_calloc(1, sizeof *pool);
  tt_mutex_init(&pool->lock);
  tt_cond_init(&pool->changed);
  pool->last = &pool->first;
  pool->generation = tt_fork_generation();
  pool->threads = tt_calloc((size_t)threads, sizeof *pool->threads);
  // Signals belong to the main thread: Python handles Ctrl-C there.
  sigset_t all, before;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int i = 0; i < threads; ++i) {
    if (pthread_create(&pool->threads[i], NULL, work, pool) != 0) {
      break;
    }
    char thread_name[16];  // the kernel's limit
    (void)snprintf(thread_name, sizeof thread_name, "%.11s-%d", name, i % 100);
    (void)pthread_setname_np(pool->threads[i], thread_name);
    pool->count = i + 1;
  }
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return pool;
}

// A forked child has the pool's memory but not its threads; a system out of threads gives a pool that has none.
static bool has_threads(const tt_pool* pool) {
  return pool->count > 0 && pool->generation == tt_fork_generation();
}

void tt_pool_submit(tt_pool* pool, void (*fn)(void* arg), void* arg) {
  if (!has_threads(pool)) {
    fn(arg);
    return;
  }
  task* added = tt_malloc(sizeof *added);
  *added = (task){.fn = fn, .arg = arg};
  tt_mutex_lock(&pool->lock);
  *pool->last = added;
  pool->last = &added->next;
  tt_cond_broadcast(&pool->changed);
  tt_mutex_unlock(&pool->lock);
}

void tt_pool_destroy(tt_pool* pool) {
  if (pool == NULL) {
    return;
  }
  if (pool->generation == tt_fork_generation()) {
    tt_mutex_lock(&pool->lock);
    pool->closing = true;
    tt_cond_broadcast(&pool->changed);
    tt_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->count; ++i) {
      TT_CHECK(pthread_join(pool->threads[i], NULL) == 0);
    }
    tt_cond_deinit(&pool->changed);
    tt_mutex_deinit(&pool->lock);
  }
  free(pool->threads);
  free(pool);
}
