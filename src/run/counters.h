// SPDX-License-Identifier: Apache-2.0
//
// The counters behind tt_stats_get. Relaxed atomics: exact, not ordered.
#ifndef TT_RUN_COUNTERS_H
#define TT_RUN_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct tt_counters {
  _Atomic int64_t calls, hits, launches, recorded, cuts, fused_runs, to_device, to_host, shared_copies;
} tt_counters;
extern tt_counters tt_counter;

#define TT_COUNT(field, n) atomic_fetch_add_explicit(&tt_counter.field, (n), memory_order_relaxed)

#endif  // TT_RUN_COUNTERS_H
