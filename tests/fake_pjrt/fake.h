// SPDX-License-Identifier: Apache-2.0
//
// The fake PJRT plugin as tests see it: a library that computes on the host, with knobs to make it fail, wait and run out of
// memory. Tests load it like any plugin, and get the knobs from its one other symbol, `fake_pjrt_control`.
//
// Executions compute at once; what can be delayed is the news of it: while `delay` is on, events of outputs, of copies to the
// host and of host bytes no longer needed stay pending until they are released, oldest first.
// Thread rule: thread-safe. `reset` only when no plugin call is under way.
#ifndef FAKE_PJRT_FAKE_H
#define FAKE_PJRT_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fake_control {
  void (*reset)(void);  // all knobs off, counters zero, delayed events released

  // The `nth` next call (1: the next) of a function ("PJRT_Client_Compile") fails with a PJRT error code.
  void (*fail)(const char* function, int nth, int code, const char* text);
  // The `nth` next execution is queued, and fails later: its outputs carry the error.
  void (*fail_later)(int nth, int code, const char* text);

  void (*delay)(bool on);          // turning it off releases all
  int (*release)(int n);           // the n oldest pending events (all if n < 0); returns how many
  int (*delayed)(void);            // pending events
  void (*await_waiter)(void);      // returns once a thread waits for a pending event
  void (*hold_compiles)(bool on);  // compilations wait inside the plugin until this is off again
  void (*await_compile)(void);     // returns once a compilation waits there

  void (*memory_limit)(int64_t bytes);  // device memory, by device; 0: no limit, and none reported
  // What the next client shows: devices, platform name; NULL and 0: one device, "fake".
  void (*machine)(int devices, const char* platform);
  // What the plugin claims to be: an API whose struct ends before the function `first_missing` ("" : at once; NULL: it is whole),
  // and its version (0, 0: the truth).
  void (*api)(const char* first_missing, int major, int minor);

  int64_t (*calls)(const char* function);  // since the last reset
  int64_t (*bytes_in_use)(void);
  int64_t (*live)(void);  // clients, executables, buffers and events not destroyed
} fake_control;

typedef const fake_control* (*fake_control_fn)(void);

#endif  // FAKE_PJRT_FAKE_H
