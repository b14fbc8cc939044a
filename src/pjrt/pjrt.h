// SPDX-License-Identifier: Apache-2.0
//
// The hardware interface: a PJRT plugin, its client and devices, programs, buffers and events. Nothing above this room
// sees pjrt_c_api.h, and everything above is the same on every plugin.
//
// Ownership: plugin, client, topology, exec and buffer are refcounted objects (retain/release accept NULL, any thread);
// each retains what it stands on (buffer -> client -> plugin). Plugins are never unloaded. Devices are borrowed from their client.
// Thread rule: all functions are thread-safe.
#ifndef TT_PJRT_PJRT_H
#define TT_PJRT_PJRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tt/status.h"
#include "tt/type.h"

typedef struct tt_plugin tt_plugin;
typedef struct tt_client tt_client;
typedef struct tt_pjrt_device tt_pjrt_device;
typedef struct tt_topology tt_topology;
typedef struct tt_exec tt_exec;
typedef struct tt_buffer tt_buffer;
typedef struct tt_event tt_event;

// A name and a value: client creation options, topology options, plugin attributes.
typedef struct tt_option {
  const char* name;
  enum { TT_OPTION_STRING, TT_OPTION_INT, TT_OPTION_BOOL, TT_OPTION_FLOAT } kind;
  const char* text;
  int64_t number;
  double real;
} tt_option;

// ---- plugin -----------------------------------------------------------------------------------------------------------
// Loads the shared library at `path` and initialises it. Errors name path and reason: not found, not a shared library, no
// GetPjrtApi, API too old (major differs, or minor below what we need), initialisation failed.
TT_NODISCARD tt_status tt_plugin_load(const char* path, tt_plugin** out_plugin);
void tt_plugin_retain(tt_plugin* plugin);
void tt_plugin_release(tt_plugin* plugin);
const char* tt_plugin_path(const tt_plugin* plugin);
void tt_plugin_version(const tt_plugin* plugin, int* major, int* minor);

// ---- client and devices -------------------------------------------------------------------------------------------------
TT_NODISCARD tt_status tt_client_create(tt_plugin* plugin, int num_options, const tt_option* options,
                                        tt_client** out_client);
void tt_client_retain(tt_client* client);
void tt_client_release(tt_client* client);
tt_plugin* tt_client_plugin(const tt_client* client);
const char* tt_client_platform(const tt_client* client);  // "cpu", "tpu"
const char* tt_client_platform_version(const tt_client* client);
bool tt_client_is_cpu(const tt_client* client);
int tt_client_device_count(const tt_client* client);                   // addressable ones
tt_pjrt_device* tt_client_device(const tt_client* client, int index);  // NULL if out of range
int tt_pjrt_device_id(const tt_pjrt_device* device);                   // global id
const char* tt_pjrt_device_kind(const tt_pjrt_device* device);         // "cpu", "TPU v5 lite"
// UNIMPLEMENTED where the plugin has none. Bytes.
TT_NODISCARD tt_status tt_pjrt_device_memory(const tt_pjrt_device* device, int64_t* out_in_use, int64_t* out_limit);

// ---- compiling ------------------------------------------------------------------------------------------------------------
// Options of one compilation; zero-initialise. `xla_options`: "key=value key=value", may be NULL; true/false/integers/floats
// are sent with their type, the rest as strings.
typedef struct tt_compile_options {
  int num_replicas, num_partitions;  // 0 = 1
  const char* xla_options;
} tt_compile_options;

TT_NODISCARD tt_status tt_exec_compile(tt_client* client, const char* stablehlo, size_t size,
                                       const tt_compile_options* options, tt_exec** out_exec);
// Bytes that tt_exec_load takes; malloc'ed, owned by the caller.
TT_NODISCARD tt_status tt_exec_serialize(tt_exec* exec, void** out_bytes, size_t* out_size);
TT_NODISCARD tt_status tt_exec_load(tt_client* client, const void* bytes, size_t size,
                                    const tt_compile_options* options, tt_exec** out_exec);
void tt_exec_retain(tt_exec* exec);
void tt_exec_release(tt_exec* exec);
int tt_exec_output_count(const tt_exec* exec);

typedef struct tt_memory_stats {  // bytes, of one device
  int64_t code, arguments, outputs, aliased, temporaries, peak;
} tt_memory_stats;
TT_NODISCARD tt_status tt_exec_memory_stats(tt_exec* exec, tt_memory_stats* out_stats);
// Calls `fn` for each named figure of the plugin's cost analysis ("flops", "bytes accessed", ...).
TT_NODISCARD tt_status tt_exec_cost(tt_exec* exec, void (*fn)(const char* name, double value, void* ctx), void* ctx);

// Ahead of time, for a machine that is not there. `name`: "v5e:2x2", "tpu7x:2x2x1". The result cannot be executed.
TT_NODISCARD tt_status tt_topology_create(tt_plugin* plugin, const char* name, tt_topology** out_topology);
void tt_topology_release(tt_topology* topology);
int tt_topology_device_count(const tt_topology* topology);
TT_NODISCARD tt_status tt_topology_compile(tt_topology* topology, const char* stablehlo, size_t size,
                                           const tt_compile_options* options, tt_exec** out_exec);

// ---- running ----------------------------------------------------------------------------------------------------------------
// Launches on `device` (the exec's own if NULL). inputs are borrowed; donate (may be NULL) tells which of them the caller
// gives up by its aliases: all others are marked non-donatable. out_outputs receives tt_exec_output_count owned buffers.
// Returns when the launch is queued. A failure before that leaves inputs as they were.
// A program with replicas or partitions needs `device`, one launch a device, each from a thread of its own: the CPU plugin
// runs collectives inside the call, so a second launch from the same thread would never come.
TT_NODISCARD tt_status tt_exec_run(tt_exec* exec, tt_pjrt_device* device, int num_inputs, tt_buffer* const* inputs,
                                   const bool* donate, tt_buffer** out_outputs);

// ---- buffers ------------------------------------------------------------------------------------------------------------------
// Copies `bytes` (dense, row-major) to the device. If `keep` is NULL the bytes are copied before the call returns; else the
// plugin may read them later and calls keep(ctx), once, from any thread, when it no longer needs them. After an error the
// bytes are still the caller's and keep is not called. `device` NULL is the client's first.
TT_NODISCARD tt_status tt_buffer_from_host(tt_client* client, tt_pjrt_device* device, const tt_type* type,
                                           const void* bytes, void (*keep)(void* ctx), void* ctx,
                                           tt_buffer** out_buffer);
// Waits for the buffer, then copies it to `bytes` (tt_type_bytes of its type, row-major). Reports a failed producer.
TT_NODISCARD tt_status tt_buffer_to_host(tt_buffer* buffer, void* bytes, size_t size);
// Starts the copy; *out_event is ready when the bytes are there.
TT_NODISCARD tt_status tt_buffer_to_host_async(tt_buffer* buffer, void* bytes, size_t size, tt_event** out_event);
TT_NODISCARD tt_status tt_buffer_copy_to_device(tt_buffer* buffer, tt_pjrt_device* device, tt_buffer** out_buffer);
void tt_buffer_retain(tt_buffer* buffer);
void tt_buffer_release(tt_buffer* buffer);
// Type as the plugin reports it (bounded dims appear as their bound).
const tt_type* tt_buffer_type(const tt_buffer* buffer);
int64_t tt_buffer_bytes(const tt_buffer* buffer);
TT_NODISCARD tt_status tt_buffer_await(tt_buffer* buffer);  // blocks; the producer's error if it failed
TT_NODISCARD tt_status tt_buffer_ready_event(tt_buffer* buffer, tt_event** out_event);
// The same, but NULL if the buffer is ready already.
TT_NODISCARD tt_status tt_buffer_pending_event_or_null(tt_buffer* buffer, tt_event** out_event);
// Bytes held by live buffers of a device, their peak since the last reset, and counters.
typedef struct tt_buffer_stats {
  int64_t bytes, peak_bytes, allocated_bytes, freed_bytes;  // the last two count up for ever
  int64_t count, peak_count, allocations, frees;
} tt_buffer_stats;
void tt_buffer_stats_get(const tt_pjrt_device* device, tt_buffer_stats* out_stats);
void tt_buffer_stats_reset_peak(tt_pjrt_device* device);

// ---- events ---------------------------------------------------------------------------------------------------------------------
TT_NODISCARD tt_status tt_event_await(tt_event* event);
TT_NODISCARD tt_status tt_event_is_ready(tt_event* event, bool* out_ready);
// Calls fn(status, ctx) once, from any thread, when the event is done; fn owns the status. The event stays the caller's.
TT_NODISCARD tt_status tt_event_on_ready(tt_event* event, void (*fn)(tt_status status, void* ctx), void* ctx);
void tt_event_destroy(tt_event* event);  // accepts NULL

#endif  // TT_PJRT_PJRT_H
