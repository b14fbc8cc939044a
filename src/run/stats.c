// SPDX-License-Identifier: Apache-2.0
//
// Counters and caches as the public API shows them.
#include "run/stats.h"
#include "base/mem.h"
#include "cache/disk.h"
#include "cache/program.h"
#include "pjrt/pjrt.h"
#include "run/counters.h"
#include "run/device.h"
#include "tt/device.h"

void tt_stats_get(tt_stats* out_stats) {
  tt_program_stats programs;
  tt_program_stats_get(&programs);
  *out_stats = (tt_stats){
      .calls = atomic_load(&tt_counter.calls),
      .hits = atomic_load(&tt_counter.hits),
      .compiled = programs.compiled,
      .loaded = programs.loaded,
      .launches = atomic_load(&tt_counter.launches),
      .bytes_to_device = atomic_load(&tt_counter.to_device),
      .bytes_to_host = atomic_load(&tt_counter.to_host),
      .shared_copies = atomic_load(&tt_counter.shared_copies),
      .compile_ns = programs.compile_ns,
      .load_ns = programs.load_ns,
      .recorded = atomic_load(&tt_counter.recorded),
      .cuts = atomic_load(&tt_counter.cuts),
      .fused_runs = atomic_load(&tt_counter.fused_runs),
      .plans = tt_plans_held(),
      .programs = programs.held,
  };
}

// NULL before the first use: nothing was made then, and asking must not start the runtime.
static tt_pjrt_device* started_device(int index) {
  tt_device* device = NULL;
  if (!tt_runtime_started()) {
    return NULL;
  }
  tt_status status = tt_device_get(index, &device);
  tt_status_free(status);
  return status == NULL ? device->pjrt : NULL;
}

void tt_memory_get(int device, tt_memory* out_memory) {
  tt_pjrt_device* on = started_device(device);
  *out_memory = (tt_memory){0};
  if (on == NULL) {
    return;
  }
  tt_buffer_stats s;
  tt_buffer_stats_get(on, &s);
  *out_memory = (tt_memory){s.bytes, s.peak_bytes, s.allocated_bytes, s.freed_bytes,
                            s.count, s.peak_count, s.allocations,     s.frees};
}
void tt_memory_reset_peak(int device) {
  tt_pjrt_device* on = started_device(device);
  if (on != NULL) {
    tt_buffer_stats_reset_peak(on);
  }
}

const char* tt_cache_folder(void) {
  return tt_disk_folder();
}

tt_status tt_cache_usage(int64_t* out_files, int64_t* out_bytes) {
  *out_files = *out_bytes = 0;
  const char* folder = tt_disk_folder();
  return folder == NULL ? NULL : tt_disk_usage_at(folder, out_files, out_bytes);
}

tt_status tt_cache_clear(void) {
  const char* folder = tt_disk_folder();
  return folder == NULL ? NULL : tt_disk_trim_at(folder, 0);
}

void tt_memory_cache_clear(void) {
  tt_plans_forget();
  tt_families_forget();
  tt_fuse_forget();
  tt_program_forget();
}
