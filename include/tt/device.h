// SPDX-License-Identifier: Apache-2.0
//
// The runtime and its devices. The runtime (plugin, client, devices) starts at the first call that needs it; asking whether a
// plugin is there does not start it.
//
// Ownership: devices live as long as the process and are borrowed. Markers belong to their creator.
// Thread rule: thread-safe. After fork() the child gets FAILED_PRECONDITION from everything that needs a started runtime.
#ifndef TT_DEVICE_H
#define TT_DEVICE_H

#include "tt/status.h"
#include "tt/type.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_device tt_device;
typedef struct tt_marker tt_marker;

// Finds a plugin when TORCH_TPU_PLUGIN is unset: *out_path is malloc'ed and owned by the runtime. NOT_FOUND says what to install.
typedef tt_status (*tt_plugin_finder)(char** out_path);
TT_EXPORT void tt_runtime_set_finder(tt_plugin_finder finder);
// The plugin that is or would be used, borrowed; does not start the runtime.
TT_EXPORT TT_NODISCARD tt_status tt_runtime_plugin_path(const char** out_path);
TT_EXPORT bool tt_runtime_available(void);  // a plugin can be found and the device is not switched off
TT_EXPORT bool tt_runtime_started(void);
TT_EXPORT bool tt_runtime_in_bad_fork(void);              // started before a fork that made this process
TT_EXPORT TT_NODISCARD tt_status tt_runtime_start(void);  // once; later calls report the first failure again

typedef struct tt_runtime_info {  // borrowed strings
  const char *plugin_path, *platform, *platform_version, *device_kind;
  int api_major, api_minor, device_count;
  bool stand_in;  // a CPU stands in for a TPU
} tt_runtime_info;
TT_EXPORT TT_NODISCARD tt_status tt_runtime_describe(tt_runtime_info* out_info);

TT_EXPORT int tt_device_count(void);  // 0 if the runtime cannot start
TT_EXPORT TT_NODISCARD tt_status tt_device_get(int index, tt_device** out_device);
TT_EXPORT int tt_device_index(const tt_device* device);
// Waits until everything launched has run; reports (once) a failure or an index out of range found meanwhile.
TT_EXPORT TT_NODISCARD tt_status tt_device_synchronize(tt_device* device);
// Bytes: limit of the device (host memory where the CPU stands in), bytes in use by us.
TT_EXPORT TT_NODISCARD tt_status tt_device_memory(tt_device* device, int64_t* out_free, int64_t* out_total);

// Modes: strict launches each call at once; debug also waits for it and names op and Python line of a failure; fused records calls
// and runs many as one program (src/run/fuse.h). Setting a mode runs what is recorded.
typedef enum tt_mode { TT_MODE_STRICT = 0, TT_MODE_DEBUG = 1, TT_MODE_FUSED = 2 } tt_mode;
TT_EXPORT tt_mode tt_mode_get(void);
TT_EXPORT TT_NODISCARD tt_status tt_mode_set(tt_mode mode);
// Fused mode: runs what is recorded on all devices (a cut).
TT_EXPORT TT_NODISCARD tt_status tt_flush(void);
// Precision of f32 dot and convolution: 0 default, 1 high, 2 highest. Part of the key of calls that use it.
TT_EXPORT void tt_precision_set(int precision);

// A point in a device's order of launches (what a stream event records).
TT_EXPORT TT_NODISCARD tt_status tt_marker_create(tt_device* device, tt_marker** out_marker);
TT_EXPORT void tt_marker_destroy(tt_marker* marker);
TT_EXPORT bool tt_marker_done(tt_marker* marker);
TT_EXPORT TT_NODISCARD tt_status tt_marker_await(tt_marker* marker);
TT_EXPORT int64_t tt_marker_time_ns(tt_marker* marker);  // when it was reached (monotonic); 0 if not yet

// Random numbers: Philox with (seed, offset); each random call takes as many counter steps as it needs.
typedef struct tt_generator tt_generator;
TT_EXPORT tt_generator* tt_generator_create(uint64_t seed);
TT_EXPORT void tt_generator_retain(tt_generator* generator);
TT_EXPORT void tt_generator_release(tt_generator* generator);
TT_EXPORT void tt_generator_set(tt_generator* generator, uint64_t seed, uint64_t offset);
TT_EXPORT void tt_generator_get(tt_generator* generator, uint64_t* out_seed, uint64_t* out_offset);
TT_EXPORT tt_generator* tt_device_generator(int index);  // the device's default one; borrowed; starts nothing

// Counters since start. `bytes`/`allocations` count device buffers.
typedef struct tt_stats {
  int64_t calls, hits;       // calls made, calls whose plan was known
  int64_t compiled, loaded;  // programs compiled, programs read from the disk cache
  int64_t launches;          // programs run
  int64_t bytes_to_device, bytes_to_host;
  int64_t shared_copies;  // copies that only shared a value
  int64_t compile_ns, load_ns;
  int64_t recorded, cuts, fused_runs;  // fused mode: calls recorded, traces cut, traces run as one program
  int64_t plans, programs;             // now in memory
} tt_stats;
TT_EXPORT void tt_stats_get(tt_stats* out_stats);
typedef struct tt_memory {
  int64_t bytes, peak_bytes, allocated_bytes, freed_bytes, count, peak_count, allocations, frees;
} tt_memory;
TT_EXPORT void tt_memory_get(int device, tt_memory* out_memory);  // zeros before the device's first use
TT_EXPORT void tt_memory_reset_peak(int device);

// The disk cache: its folder (borrowed, NULL if off), files and bytes in it; remove all.
TT_EXPORT const char* tt_cache_folder(void);
TT_EXPORT TT_NODISCARD tt_status tt_cache_usage(int64_t* out_files, int64_t* out_bytes);
TT_EXPORT TT_NODISCARD tt_status tt_cache_clear(void);
TT_EXPORT void tt_memory_cache_clear(void);  // forget plans and programs held in memory

// Knobs, one row an environment variable; false past the end.
TT_EXPORT bool tt_knob(int index, const char** out_name, const char** out_type, const char** out_help, char* value,
                       int size);
// Text that names the Python line running now ("train.py:12"), or nothing; called in debug mode and for index checks.
typedef void (*tt_where_fn)(char* buffer, int size);
TT_EXPORT void tt_set_where(tt_where_fn fn);
// Where warnings go (the Python side: warnings.warn). Default: stderr.
typedef void (*tt_warn_fn)(const char* text);
TT_EXPORT void tt_set_warn(tt_warn_fn fn);
// Live objects of the C side, by kind, through `report`; the sum is returned. 0 when nothing is held any more.
TT_EXPORT int64_t tt_live_objects(void (*report)(const char* kind, int64_t live, void* ctx), void* ctx);

#ifdef __cplusplus
}
#endif
#endif  // TT_DEVICE_H
