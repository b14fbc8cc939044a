// SPDX-License-Identifier: Apache-2.0
//
// Threads: names for pthreads, call-once, and a bounded worker pool that runs tasks in order of submission.
// Nothing here survives fork(): `tt_fork_generation` lets owners notice that they are in a child.
#ifndef TT_BASE_THREAD_H
#define TT_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tt_mutex {
  pthread_mutex_t m;
} tt_mutex;
#define TT_MUTEX_INIT {PTHREAD_MUTEX_INITIALIZER}
void tt_mutex_init(tt_mutex* m);
void tt_mutex_deinit(tt_mutex* m);
void tt_mutex_lock(tt_mutex* m);
void tt_mutex_unlock(tt_mutex* m);

typedef struct tt_cond {
  pthread_cond_t c;
} tt_cond;
#define TT_COND_INIT {PTHREAD_COND_INITIALIZER}
void tt_cond_init(tt_cond* c);
void tt_cond_deinit(tt_cond* c);
void tt_cond_wait(tt_cond* c, tt_mutex* m);
void tt_cond_broadcast(tt_cond* c);

typedef struct tt_pool tt_pool;
tt_pool* tt_pool_create(int threads, const char* name);
// Waits for queued tasks, then joins.
void tt_pool_destroy(tt_pool* pool);
void tt_pool_submit(tt_pool* pool, void (*fn)(void* arg), void* arg);

// 0 in the process that loaded us, more in forked children.
int tt_fork_generation(void);
int64_t tt_now_ns(void);  // monotonic

#endif  // TT_BASE_THREAD_H
