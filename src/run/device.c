// SPDX-License-Identifier: Apache-2.0
//
// What hangs on a device: outstanding launches, small numbers kept there, index checks, room for memory.
#include "run/device.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "run/fuse.h"
#include "run/numbers.h"

// More bytes than this outstanding, and the host waits for the oldest launch.
static const int64_t max_pending_bytes = INT64_C(1) << 30;

static void destroy_pending(void* obj) {
  tt_pending* pending = obj;
  tt_event_destroy(pending->event);
  free(pending);
}
TT_OBJ_KIND(pending_kind, "pending launch", destroy_pending);

static bool done(tt_pending* pending) {
  bool ready = false;
  tt_status status = tt_event_is_ready(pending->event, &ready);
  bool failed = status != NULL;
  tt_status_free(status);
  return ready || failed;
}

static tt_pending* pop_oldest(tt_device* d) {
  tt_pending* oldest = d->pending[d->pending_head];
  d->pending_head = (d->pending_head + 1) % TT_MAX_PENDING;
  if (--d->pending_count == 0) {
    d->pending_bytes = 0;
  }
  return oldest;
}

static void drop_done_locked(tt_device* d) {
  while (d->pending_count > 0 && done(d->pending[d->pending_head])) {
    tt_obj_release(pop_oldest(d));
  }
}

tt_pending* tt_device_note_event_locked(tt_device* d, tt_event* event, tt_pending** out_wait) {
  *out_wait = NULL;
  drop_done_locked(d);
  if (d->pending_count == TT_MAX_PENDING || d->pending_bytes > max_pending_bytes) {
    *out_wait = pop_oldest(d);
    d->pending_bytes = 0;
  }
  tt_pending* pending = tt_obj_create(&pending_kind, sizeof *pending);
  pending->event = event;
  d->pending[(d->pending_head + d->pending_count++) % TT_MAX_PENDING] = pending;
  tt_obj_retain(pending);
  return pending;
}

void tt_device_note_launch_locked(tt_device* d, tt_buffer* output, int64_t bytes, tt_pending** out_wait) {
  *out_wait = NULL;
  tt_event* event = NULL;
  tt_status status = tt_buffer_pending_event_or_null(output, &event);
  if (event == NULL) {
    tt_status_free(status);  // done already, or failed: then the buffer itself reports it
    return;
  }
  d->pending_bytes += bytes;
  tt_obj_release(tt_device_note_event_locked(d, event, out_wait));
}

int tt_device_pending_locked(tt_device* d, tt_pending* out[TT_MAX_PENDING]) {
  for (int i = 0; i < d->pending_count; ++i) {
    out[i] = d->pending[(d->pending_head + i) % TT_MAX_PENDING];
    tt_obj_retain(out[i]);
  }
  return d->pending_count;
}

tt_status tt_pending_await_release(tt_pending* pending) {
  if (pending == NULL) {
    return NULL;
  }
  tt_status status = tt_event_await(pending->event);
  tt_obj_release(pending);
  return status;
}

tt_status tt_device_synchronize(tt_device* d) {
  tt_pending* pending[TT_MAX_PENDING];
  TT_TRY(tt_runtime_start());
  TT_TRY(tt_fuse_flush(d, "synchronize"));
  tt_lock();
  int n = tt_device_pending_locked(d, pending);
  tt_unlock();
  tt_status first = NULL;
  for (int i = 0; i < n; ++i) {
    tt_status status = tt_pending_await_release(pending[i]);
    if (first == NULL) {
      first = status;
    } else {
      tt_status_free(status);
    }
  }
  tt_lock();
  drop_done_locked(d);  // a failure is reported once
  tt_unlock();
  if (first != NULL) {
    return first;
  }
  return tt_device_verify_indexes(d);
}

// ---- numbers ----------------------------------------------------------------------------------------------------------

tt_status tt_device_scalar_locked(tt_device* d, const tt_scalar* value, tt_dtype dtype, tt_buffer** out_buffer) {
  uint64_t bits[2] = {0, 0};
  tt_number_store(value, dtype, bits);
  return tt_device_bits_locked(d, bits, dtype, out_buffer);
}

tt_status tt_device_bits_locked(tt_device* d, const uint64_t bits[2], tt_dtype dtype, tt_buffer** out_buffer) {
  uint64_t words[3] = {(uint64_t)dtype, bits[0], bits[1]};
  tt_scalar_slot* slot = &d->scalars[tt_hash_words(words, 3) % TT_SCALAR_SLOTS];
  if (slot->buffer == NULL || slot->dtype != dtype || slot->bits[0] != bits[0] || slot->bits[1] != bits[1]) {
    tt_type type = tt_type_scalar(dtype);
    tt_buffer* fresh = NULL;
    TT_TRY(tt_buffer_from_host(d->client, d->pjrt, &type, bits, NULL, NULL, &fresh));
    tt_buffer_release(slot->buffer);
    slot->buffer = fresh;
    slot->dtype = dtype;
    slot->bits[0] = bits[0];
    slot->bits[1] = bits[1];
  }
  *out_buffer = slot->buffer;
  return NULL;
}

tt_status tt_device_random_state(tt_device* d, const uint64_t state[3], tt_buffer** out_buffer) {
  int64_t three = 3;
  tt_type type = tt_type_make(TT_U64, 1, &three);
  return tt_buffer_from_host(d->client, d->pjrt, &type, state, NULL, NULL, out_buffer);
}

// ---- index checks -----------------------------------------------------------------------------------------------------

static tt_type check_type(void) {
  int64_t four = 4;
  return tt_type_make(TT_I64, 1, &four);
}

// The launch that made it failed. It is not asked to wait: of one still under way nothing is known.
static bool has_failed(tt_buffer* buffer) {
  tt_event* event = NULL;
  bool ready = false;
  tt_status status = tt_buffer_ready_event(buffer, &event);
  if (status == NULL) {
    status = tt_event_is_ready(event, &ready);
  }
  if (status == NULL && ready) {
    status = tt_event_await(event);
  }
  tt_event_destroy(event);
  bool failed = status != NULL;
  tt_status_free(status);
  return failed;
}

tt_status tt_device_check_buffer_locked(tt_device* d, tt_buffer** out_buffer) {
  // A failed launch spoils its own outputs, not those of the checked calls after it.
  if (d->check != NULL && has_failed(d->check)) {
    tt_buffer_release(d->check);
    d->check = NULL;
  }
  if (d->check == NULL) {
    static const int64_t clean[4] = {0, 0, 0, 0};
    tt_type type = check_type();
    TT_TRY(tt_buffer_from_host(d->client, d->pjrt, &type, clean, NULL, NULL, &d->check));
  }
  *out_buffer = d->check;
  return NULL;
}

tt_scalar tt_device_check_site_locked(tt_device* d, const char* op, const char* where) {
  // The same op on the same line keeps its site: a loop makes no new numbers. Another place gets another site, as long as there is
  // one nearby; else it takes over the first, and with it what that one may still have to report.
  enum { PROBES = 32 };
  uint64_t hash = (uint64_t)(uintptr_t)op ^ UINT64_C(0xcbf29ce484222325);
  for (const char* p = where; *p != '\0'; ++p) {
    hash = (hash ^ (uint64_t)(unsigned char)*p) * UINT64_C(0x100000001b3);
  }
  hash ^= hash >> 32;
  int64_t id = 0;
  for (uint64_t probe = 0; probe < PROBES && id == 0; ++probe) {
    int64_t at = (int64_t)((hash + probe) % (TT_CHECK_SITES - 1)) + 1;
    const tt_check_site* site = &d->sites[at];
    if (site->op == NULL || (site->op == op && strncmp(site->where, where, sizeof site->where - 1) == 0)) {
      id = at;
    }
  }
  if (id == 0) {
    id = (int64_t)(hash % (TT_CHECK_SITES - 1)) + 1;
  }
  tt_check_site* site = &d->sites[id];
  site->op = op;
  strncpy(site->where, where, sizeof site->where - 1);
  return (tt_scalar){.kind = 'i', .i = id};
}

tt_status tt_device_verify_indexes(tt_device* d) {
  tt_lock();
  tt_buffer* check = d->check;
  d->check = NULL;
  tt_unlock();
  if (check == NULL) {
    return NULL;
  }
  int64_t found[4] = {0, 0, 0, 0};
  tt_status status = tt_buffer_to_host(check, found, sizeof found);
  tt_buffer_release(check);
  // That a launch failed is told by its outputs, and by nothing that does not depend on them.
  bool failed = status != NULL;
  tt_status_free(status);
  if (failed || found[0] == 0) {
    return NULL;
  }
  tt_lock();
  tt_check_site site = d->sites[found[0] % TT_CHECK_SITES];
  tt_unlock();
  TT_FAIL(TT_OUT_OF_RANGE, "index %lld is out of bounds for dimension with size %lld in %s%s%s", (long long)found[1],
          (long long)found[2], site.op, site.where[0] != '\0' ? ", called at " : "", site.where);
}

// ---- memory -----------------------------------------------------------------------------------------------------------

tt_status tt_device_reserve(tt_device* d, int64_t bytes, const char* what) {
  // Only large requests are worth the question.
  if (bytes < (INT64_C(1) << 22)) {
    return NULL;
  }
  int64_t available;
  int64_t total;
  TT_TRY(tt_device_memory(d, &available, &total));
  if (bytes > available) {
    const double mib = 1 << 20;
    TT_FAIL(TT_RESOURCE_EXHAUSTED,
            "tpu out of memory in %s: tried to allocate %.2f MiB; tpu:%d has %.2f MiB in total, %.2f MiB in use, %.2f "
            "MiB free",
            what, (double)bytes / mib, d->index, (double)total / mib, (double)(total - available) / mib,
            (double)available / mib);
  }
  return NULL;
}
