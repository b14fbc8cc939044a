// SPDX-License-Identifier: Apache-2.0
//
// The started runtime: its lock, its devices, and what hangs on a device: outstanding launches, small constants kept on the
// device, index checks.
//
// One lock guards storages' contents, plans and device state: a call takes it for the microseconds of key, lookup and launch,
// never while compiling, waiting for the device, or calling back into Python.
#ifndef TT_RUN_DEVICE_H
#define TT_RUN_DEVICE_H

#include "base/thread.h"
#include "lazy/tensor.h"
#include "pjrt/pjrt.h"
#include "tt/device.h"

// A launch that may still run: an event and how many hold it.
typedef struct tt_pending {
  tt_obj obj;
  tt_event* event;
} tt_pending;

enum { TT_MAX_PENDING = 64, TT_SCALAR_SLOTS = 4096, TT_CHECK_SITES = 4096 };

typedef struct tt_scalar_slot {
  tt_buffer* buffer;
  uint64_t bits[2];
  tt_dtype dtype;
} tt_scalar_slot;

// Where an index check was launched from.
typedef struct tt_check_site {
  const char* op;
  char where[112];
} tt_check_site;

struct tt_device {
  int index;
  tt_client* client;
  tt_pjrt_device* pjrt;
  tt_generator* generator;
  struct tt_fuse* fuse;  // fused mode: what is recorded and not yet run
  // Outstanding launches, oldest first, a ring.
  tt_pending* pending[TT_MAX_PENDING];
  int pending_head, pending_count;
  int64_t pending_bytes;
  tt_scalar_slot* scalars;
  // Index checks: the accumulator i64[4] = {site, index, size, 0}, NULL while nothing was checked since the last look.
  tt_buffer* check;
  tt_check_site* sites;
};

// Starts to load ahead what this script used in its last run (cache/warm.h), with the options that tt_compile uses.
void tt_compile_warm(tt_client* client);

void tt_lock(void);
void tt_unlock(void);

// For tests: gives up plans, programs and what hangs on devices, then client and plugin, so that the next call starts the runtime
// anew (or tries again, after a failed start). Nobody else may be in the runtime; tensors that still live keep the old client.
void tt_runtime_stop(void);

tt_client* tt_device_client(tt_device* device);
tt_pjrt_device* tt_device_pjrt(tt_device* device);

// ---- with the lock held -------------------------------------------------------------------------------------------------
// Notes a launch by one of its outputs, `bytes` of new memory. *out_wait (NULL if none) is the oldest launch when there are too
// many outstanding: the caller awaits and releases it after unlocking.
void tt_device_note_launch_locked(tt_device* device, tt_buffer* output, int64_t bytes, tt_pending** out_wait);
// The same for an event (taken); returns a reference to its entry.
tt_pending* tt_device_note_event_locked(tt_device* device, tt_event* event, tt_pending** out_wait);
// References to all outstanding launches; returns their number.
int tt_device_pending_locked(tt_device* device, tt_pending* out[TT_MAX_PENDING]);
// A 0-d buffer of `dtype` holding the number (rounded to it); borrowed until the next call.
TT_NODISCARD tt_status tt_device_scalar_locked(tt_device* device, const tt_scalar* value, tt_dtype dtype,
                                               tt_buffer** out_buffer);
// The same for a number stored in `dtype` already.
TT_NODISCARD tt_status tt_device_bits_locked(tt_device* device, const uint64_t bits[2], tt_dtype dtype,
                                             tt_buffer** out_buffer);
// A check site for this op and line: its id.
tt_scalar tt_device_check_site_locked(tt_device* device, const char* op, const char* where);
// A buffer u64[3] = {seed, offset, 0}, the caller's.
TT_NODISCARD tt_status tt_device_random_state(tt_device* device, const uint64_t state[3], tt_buffer** out_buffer);
TT_NODISCARD tt_status tt_device_check_buffer_locked(tt_device* device, tt_buffer** out_buffer);
// ---- without the lock ---------------------------------------------------------------------------------------------------
TT_NODISCARD tt_status tt_pending_await_release(tt_pending* pending);  // accepts NULL
// Reports an index out of range found by launches so far, once, and starts afresh. Waits for them.
TT_NODISCARD tt_status tt_device_verify_indexes(tt_device* device);
// Room for `bytes` more on the device, or RESOURCE_EXHAUSTED with sizes. With or without the lock.
TT_NODISCARD tt_status tt_device_reserve(tt_device* device, int64_t bytes, const char* what);
void tt_where_now(char* buffer, int size);

#endif  // TT_RUN_DEVICE_H
