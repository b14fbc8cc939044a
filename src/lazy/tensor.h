// SPDX-License-Identifier: Apache-2.0
//
// The inside of a storage. Everything but the count is guarded by the runtime lock (run/runtime.h), except in a storage that
// stands in a capture, which belongs to the capture's thread.
#ifndef TT_LAZY_TENSOR_H
#define TT_LAZY_TENSOR_H

#include "base/obj.h"
#include "pjrt/pjrt.h"
#include "tt/call.h"
#include "tt/hlo.h"

struct tt_storage {
  tt_obj obj;
  int device;
  uint64_t address;
  tt_storage *older, *newer;  // all live storages, under tensor.c's own lock
  int64_t bytes;
  // The buffer's type, or what a pending value's will be, if it is larger than `type` (padding at the end of dimensions); else NULL.
  tt_type* padded;
  tt_buffer* buffer;     // NULL: never written
  const char* producer;  // op that made the buffer, for error texts
  char* lost;            // why the value never came (its fused program did not run), or NULL; a whole write ends that
  tt_code lost_code;
  // In fused mode: the trace that has yet to make the value, and the value's number there. `buffer` is NULL then.
  struct tt_fuse* fuse;
  int fuse_value;
  // The trace that last took `buffer` for a parameter, by its serial, and which: valid while `buffer` is still that one.
  uint64_t param_trace;
  tt_buffer* param_buffer;
  int param;
  // In a capture: whose, and the value. `buffer` is NULL then.
  tt_capture* capture;
  uint64_t capture_id;  // no two captures of the process have the same, though one may lie where another lay
  tt_val captured;
  // Marks of the call being keyed: which slot saw this storage first.
  uint64_t epoch;
  int slot;
  tt_type type;  // of `buffer`, `captured`, or what the first whole write will have; last: not zeroed as a whole
};

// The capture that this thread is in, or NULL. New storages belong to it.
tt_capture* tt_capture_thread_get(void);
void tt_capture_thread_set(tt_capture* capture, uint64_t id);

// Without a runtime: any device index, no checks.
tt_storage* tt_storage_new(int device, const tt_type* type, int64_t bytes);
// A fresh range of addresses, for `bytes` bytes.
void tt_storage_move(tt_storage* storage, int64_t bytes);
void tt_storage_set_bytes(tt_storage* storage, int64_t bytes);
// Called with no lock when a storage with a pending value goes away (run/fuse.c); the value is then nobody's.
void tt_storage_set_drop_hook(void (*hook)(tt_storage* storage));
// Notes why the value that was to come will not (NULL: forgets it).
void tt_storage_lose(tt_storage* storage, const tt_status why);
// Takes the buffer's reference. The storage has no pending value.
void tt_storage_set_buffer_take(tt_storage* storage, tt_buffer* buffer, const char* producer);
// The same for a buffer that may be padded: `type` is the value's own.
void tt_storage_set_value_take(tt_storage* storage, tt_buffer* buffer, const tt_type* type, const char* producer);
// Notes the type that the value has, and that of its buffer (NULL: the same).
void tt_storage_set_type(tt_storage* storage, const tt_type* type, const tt_type* padded);

#endif  // TT_LAZY_TENSOR_H
