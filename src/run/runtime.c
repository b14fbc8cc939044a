// SPDX-License-Identifier: Apache-2.0
//
// Starting the runtime: which plugin, its client, its devices. Modes, and callbacks set by the Python side.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/log.h"
#include "base/mem.h"
#include "cache/warm.h"
#include "run/device.h"
#include "run/fuse.h"
#include "tt/explain.h"

enum { MAX_DEVICES = 64 };

static struct {
  tt_mutex start_lock;
  tt_plugin_finder finder;
  char* path;
  bool started, failed;
  int generation;  // fork generation of the start
  tt_code failure;
  char* failure_text;
  tt_plugin* plugin;
  tt_client* client;
  int count;
  tt_device devices[MAX_DEVICES];
} rt = {.start_lock = TT_MUTEX_INIT};

static tt_mutex lock = TT_MUTEX_INIT;
static _Atomic int mode = -1;
static tt_where_fn where_fn;

void tt_lock(void) {
  tt_mutex_lock(&lock);
}
void tt_unlock(void) {
  tt_mutex_unlock(&lock);
}

void tt_runtime_set_finder(tt_plugin_finder finder) {
  rt.finder = finder;
}

static tt_status find_path_locked(const char** out_path) {
  const char* chosen = tt_knobs()->plugin;
  if (chosen != NULL && strcmp(chosen, "none") == 0) {
    TT_FAIL(TT_FAILED_PRECONDITION, "the tpu device is switched off by TORCH_TPU_PLUGIN=none");
  }
  if (chosen != NULL && chosen[0] != '\0') {
    *out_path = chosen;
    return NULL;
  }
  if (rt.path == NULL && rt.finder != NULL) {
    TT_TRY(rt.finder(&rt.path));
  }
  if (rt.path == NULL) {
    TT_FAIL(TT_NOT_FOUND,
            "no PJRT plugin found: set TORCH_TPU_PLUGIN to the path of one, or install `xla-cpu-pjrt` (no TPU) or "
            "`libtpu`");
  }
  *out_path = rt.path;
  return NULL;
}

tt_status tt_runtime_plugin_path(const char** out_path) {
  tt_mutex_lock(&rt.start_lock);
  tt_status status = find_path_locked(out_path);
  tt_mutex_unlock(&rt.start_lock);
  return status;
}

bool tt_runtime_available(void) {
  const char* path;
  tt_status status = tt_runtime_plugin_path(&path);
  bool found = status == NULL;
  tt_status_free(status);
  return found;
}

// Set last, with what it promises: whoever sees it may use the rest without the lock.
static bool started(void) {
  return __atomic_load_n(&rt.started, __ATOMIC_ACQUIRE);
}
bool tt_runtime_started(void) {
  return started();
}
bool tt_runtime_in_bad_fork(void) {
  return started() && tt_fork_generation() != rt.generation;
}

static tt_status start_locked(void) {
  const char* path;
  TT_TRY(find_path_locked(&path));
  TT_TRY(tt_plugin_load(path, &rt.plugin));
  tt_option devices = {.name = "cpu_device_count", .kind = TT_OPTION_INT, .number = tt_knobs()->devices};
  int options = tt_knobs()->devices > 1 ? 1 : 0;
  TT_TRY_CTX(tt_client_create(rt.plugin, options, &devices, &rt.client), "starting %s", path);
  int count = tt_client_device_count(rt.client);
  if (tt_client_is_cpu(rt.client) && count > tt_knobs()->devices && tt_knobs()->devices > 0) {
    count = (int)tt_knobs()->devices;  // a plugin that is not asked may show several
  }
  rt.count = count < MAX_DEVICES ? count : MAX_DEVICES;
  if (rt.count == 0) {
    TT_FAIL(TT_UNAVAILABLE, "%s shows no devices", path);
  }
  for (int i = 0; i < rt.count; ++i) {
    tt_device* d = &rt.devices[i];
    d->index = i;
    d->client = rt.client;
    d->pjrt = tt_client_device(rt.client, i);
    d->generator = tt_device_generator(i);
    d->scalars = tt_calloc(TT_SCALAR_SLOTS, sizeof *d->scalars);
    d->sites = tt_calloc(TT_CHECK_SITES, sizeof *d->sites);
  }
  return NULL;
}

tt_status tt_runtime_start(void) {
  if (started()) {
    if (tt_fork_generation() != rt.generation) {
      TT_FAIL(
          TT_FAILED_PRECONDITION,
          "the tpu runtime was started before fork() and cannot be used in the child; start processes with the 'spawn' "
          "method, or use tpu only after the fork");
    }
    return NULL;
  }
  tt_mutex_lock(&rt.start_lock);
  tt_status status = NULL;
  if (rt.failed) {
    status = TT_STATUS(rt.failure, "%s", rt.failure_text);
  } else if (!rt.started) {
    status = start_locked();
    if (status == NULL) {
      rt.generation = tt_fork_generation();
      if (tt_knobs()->cache_ahead) {
        tt_compile_warm(rt.client);
      }
      __atomic_store_n(&rt.started, true, __ATOMIC_RELEASE);
    } else {
      rt.failed = true;
      rt.failure = tt_status_code(status);
      rt.failure_text = tt_strdup(tt_status_text(status));
    }
  }
  tt_mutex_unlock(&rt.start_lock);
  return status;
}

// Kept numbers, checks and outstanding launches; the counters of memory are then what users hold.
static void clear_device_locked(tt_device* d) {
  for (int i = 0; i < TT_SCALAR_SLOTS; ++i) {
    tt_buffer_release(d->scalars[i].buffer);
  }
  for (; d->pending_count > 0; --d->pending_count) {
    tt_obj_release(d->pending[d->pending_head]);
    d->pending_head = (d->pending_head + 1) % TT_MAX_PENDING;
  }
  tt_buffer_release(d->check);
  free(d->scalars);
  free(d->sites);
  memset(d, 0, sizeof *d);
}

void tt_runtime_stop(void) {
  tt_warm_finish();
  tt_memory_cache_clear();
  tt_mutex_lock(&rt.start_lock);
  tt_lock();
  for (int i = 0; i < rt.count; ++i) {
    clear_device_locked(&rt.devices[i]);
  }
  tt_unlock();
  tt_client_release(rt.client);
  tt_plugin_release(rt.plugin);
  free(rt.failure_text);
  rt.client = NULL;
  rt.plugin = NULL;
  rt.failure_text = NULL;
  rt.count = 0;
  rt.failed = false;
  __atomic_store_n(&rt.started, false, __ATOMIC_RELEASE);
  tt_mutex_unlock(&rt.start_lock);
}

tt_status tt_runtime_describe(tt_runtime_info* out_info) {
  TT_TRY(tt_runtime_start());
  tt_runtime_info info = {
      .plugin_path = tt_plugin_path(rt.plugin),
      .platform = tt_client_platform(rt.client),
      .platform_version = tt_client_platform_version(rt.client),
      .device_kind = tt_pjrt_device_kind(rt.devices[0].pjrt),
      .device_count = rt.count,
      .stand_in = tt_client_is_cpu(rt.client),
  };
  tt_plugin_version(rt.plugin, &info.api_major, &info.api_minor);
  *out_info = info;
  return NULL;
}

int tt_device_count(void) {
  tt_status status = tt_runtime_start();
  int count = status == NULL ? rt.count : 0;
  tt_status_free(status);
  return count;
}

tt_status tt_device_get(int index, tt_device** out_device) {
  TT_TRY(tt_runtime_start());
  if (index < 0 || index >= rt.count) {
    TT_FAIL(TT_INVALID_ARGUMENT, "expected a tpu device index below %d, got %d", rt.count, index);
  }
  *out_device = &rt.devices[index];
  return NULL;
}

int tt_device_index(const tt_device* device) {
  return device->index;
}
tt_client* tt_device_client(tt_device* device) {
  return device->client;
}
tt_pjrt_device* tt_device_pjrt(tt_device* device) {
  return device->pjrt;
}

tt_mode tt_mode_get(void) {
  int now = atomic_load_explicit(&mode, memory_order_relaxed);
  if (now < 0) {
    const tt_knob_values* k = tt_knobs();
    now = k->launch_blocking || k->launch_blocking_short ? TT_MODE_DEBUG
          : k->defer_and_fuse || k->defer_and_fuse_short ? TT_MODE_FUSED
                                                         : TT_MODE_STRICT;
    atomic_store(&mode, now);
  }
  return (tt_mode)now;
}
tt_status tt_mode_set(tt_mode value) {
  TT_TRY(tt_flush_because("the eager mode is set"));
  atomic_store(&mode, (int)value);
  return NULL;
}

tt_status tt_flush(void) {
  return tt_flush_because("a flush was asked for");
}

tt_status tt_flush_because(const char* why) {
  if (!started()) {
    return NULL;
  }
  TT_TRY(tt_runtime_start());
  for (int i = 0; i < rt.count; ++i) {
    TT_TRY(tt_fuse_flush(&rt.devices[i], why));
  }
  return NULL;
}

void tt_set_where(tt_where_fn fn) {
  where_fn = fn;
}
void tt_where_now(char* buffer, int size) {
  buffer[0] = '\0';
  if (where_fn != NULL) {
    where_fn(buffer, size);
  }
}

void tt_set_warn(tt_warn_fn fn) {
  tt_warn_set_sink(fn);
}
bool tt_knob(int index, const char** out_name, const char** out_type, const char** out_help, char* value, int size) {
  return tt_knob_row(index, out_name, out_type, out_help, value, size);
}
int64_t tt_live_objects(void (*report)(const char* kind, int64_t live, void* ctx), void* ctx) {
  return tt_ledger_live(report, ctx);
}

tt_status tt_device_memory(tt_device* device, int64_t* out_free, int64_t* out_total) {
  int64_t used;
  int64_t limit;
  tt_status status = tt_pjrt_device_memory(device->pjrt, &used, &limit);
  if (status != NULL || limit <= 0) {
    tt_status_free(status);
    tt_buffer_stats stats;
    tt_buffer_stats_get(device->pjrt, &stats);
    used = stats.bytes;
    limit = tt_knobs()->memory_mib > 0 ? tt_knobs()->memory_mib << 20
                                       : (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
  }
  *out_total = limit;
  *out_free = limit > used ? limit - used : 0;
  return NULL;
}
