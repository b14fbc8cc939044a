// SPDX-License-Identifier: Apache-2.0
//
// The structs behind pjrt.h, for the files of this room only. All fields are fixed once the object is handed out, but
// for those that are marked atomic.
#ifndef TT_PJRT_INTERNAL_H
#define TT_PJRT_INTERNAL_H

#include <stdatomic.h>

#include "base/mem.h"
#include "base/obj.h"
#include "base/thread.h"
#include "pjrt/call.h"
#include "pjrt/pjrt.h"

struct tt_plugin {
  tt_obj obj;
  const PJRT_Api* api;
  char* path;
  int major, minor;
};

// What buffers a device has made and freed. Two counters up and two down, and what is held is their difference: half the
// atomic additions. Makers write the first line, freers the other one.
typedef struct tt_buffer_counts {
  _Atomic int64_t made_bytes;
  _Atomic int64_t made;
  _Atomic int64_t peak_bytes, peak_count;
  char other_line[64];
  _Atomic int64_t freed_bytes;
  _Atomic int64_t freed;
} tt_buffer_counts;

struct tt_pjrt_device {
  tt_buffer_counts counts;
  tt_client* client;  // borrowed: the client owns the device
  PJRT_Device* device;
  int id;
  char* kind;
  atomic_int spanning_launches;  // of programs over several devices, see exec.c
};

struct tt_client {
  tt_obj obj;
  tt_plugin* plugin;
  const PJRT_Api* api;
  PJRT_Client* client;
  char *platform, *platform_version;
  bool is_cpu;
  int generation;  // tt_fork_generation of the process that made it
  int device_count;
  tt_pjrt_device* devices;
};

struct tt_topology {
  tt_obj obj;
  tt_plugin* plugin;
  PJRT_TopologyDescription* topology;
  int device_count;
};

struct tt_exec {
  tt_obj obj;
  const PJRT_Api* api;
  tt_client* client;      // NULL if compiled ahead of time
  tt_topology* topology;  // NULL if compiled for a client
  PJRT_LoadedExecutable* loaded;
  PJRT_Executable* executable;
  tt_pjrt_device* device;  // the one it was compiled for; NULL if it spans several
  bool portable;           // runs on any device of the client
  bool spans_devices;      // replicas or partitions: each device is launched by itself
  bool may_donate;         // some input may alias an output
  int output_count;
  tt_type* output_types;
  int64_t* output_bytes;
  int64_t total_output_bytes;
};

struct tt_buffer {
  tt_obj obj;
  tt_client* client;
  tt_pjrt_device* device;
  PJRT_Buffer* buffer;
  int64_t bytes;
  atomic_bool given_up;  // donated: its bytes are no longer counted
  tt_type type;
};

struct tt_event {
  tt_obj obj;
  tt_client* client;
  PJRT_Event* event;
};

// Frees the status of a call whose failure leaves nothing to do (destroying things).
static inline void tt_pjrt_ignore(tt_status status) {
  if (__builtin_expect(status != NULL, 0)) {
    tt_status_free(status);
  }
}

// False in a forked child, where the plugin's threads are gone and its locks may be held for ever.
static inline bool tt_client_usable(const tt_client* client) {
  return client->generation == tt_fork_generation();
}
tt_status tt_client_forked(void);  // the error to give then
#define TT_PJRT_USABLE(client)                            \
  do {                                                    \
    if (__builtin_expect(!tt_client_usable(client), 0)) { \
      return tt_client_forked();                          \
    }                                                     \
  } while (0)

// options.c
PJRT_Buffer_Type tt_pjrt_type_of(tt_dtype dtype);                            // INVALID where PJRT has none
tt_dtype tt_pjrt_dtype_of(PJRT_Buffer_Type type);                            // TT_DTYPE_INVALID where we have none
PJRT_NamedValue* tt_pjrt_named_values(int count, const tt_option* options);  // malloc'ed; borrows the texts
TT_NODISCARD tt_status tt_pjrt_compile_options(const tt_compile_options* options, bool portable, tt_strbuf* out_bytes);

// buffer.c: wraps PJRT buffers that a launch has made, and counts them.
tt_buffer* tt_buffer_adopt(tt_client* client, tt_pjrt_device* device, PJRT_Buffer* raw, const tt_type* type,
                           int64_t bytes);
void tt_buffer_count_made(tt_pjrt_device* device, int64_t count, int64_t bytes);
void tt_buffer_note_donated(tt_buffer* buffer);  // stops counting it if the plugin has taken its memory

// event.c: owns `raw` from here on.
tt_event* tt_event_wrap(tt_client* client, PJRT_Event* raw);
// Waits for `raw` and destroys it.
TT_NODISCARD tt_status tt_pjrt_await_take(const PJRT_Api* api, PJRT_Event* raw);

#endif  // TT_PJRT_INTERNAL_H
