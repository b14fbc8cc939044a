// SPDX-License-Identifier: Apache-2.0
//
// Markers: points in a device's order of launches. A marker is reached when every launch outstanding at its making is done;
// the last of them to finish stamps the time.
#include "run/marker.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "run/fuse.h"

struct tt_marker {
  tt_obj obj;
  _Atomic int left;
  _Atomic int64_t time;
  int count;
  tt_pending* pending[TT_MAX_PENDING];
};

static void destroy_marker(void* obj) {
  tt_marker* marker = obj;
  for (int i = 0; i < marker->count; ++i) {
    tt_obj_release(marker->pending[i]);
  }
  free(marker);
}
TT_OBJ_KIND(marker_kind, "marker", destroy_marker);

// The first to notice stamps the time.
static void stamp(tt_marker* marker) {
  int64_t unset = 0;
  atomic_compare_exchange_strong(&marker->time, &unset, tt_now_ns());
}

static void one_less(tt_marker* marker) {
  if (atomic_fetch_sub(&marker->left, 1) == 1) {
    stamp(marker);
  }
}

static void on_done(tt_status status, void* ctx) {
  tt_status_free(status);  // the launch's own outputs report it
  one_less(ctx);
  tt_obj_release(ctx);
}

// Watches the pending launches it holds; one extra count keeps early callbacks from stamping too soon.
static tt_status watch(tt_marker* marker) {
  tt_status first = NULL;
  atomic_store(&marker->left, marker->count + 1);
  for (int i = 0; i < marker->count; ++i) {
    tt_obj_retain(marker);
    tt_status status = tt_event_on_ready(marker->pending[i]->event, on_done, marker);
    if (status != NULL) {
      one_less(marker);
      tt_obj_release(marker);
      if (first == NULL) {
        first = status;
      } else {
        tt_status_free(status);
      }
    }
  }
  one_less(marker);
  return first;
}

tt_status tt_marker_create(tt_device* device, tt_marker** out_marker) {
  TT_TRY(tt_fuse_flush(device, "an event is recorded"));
  tt_marker* marker = tt_obj_create(&marker_kind, sizeof *marker);
  tt_lock();
  marker->count = tt_device_pending_locked(device, marker->pending);
  tt_unlock();
  tt_status status = watch(marker);
  if (status != NULL) {
    tt_obj_release(marker);
    return status;
  }
  *out_marker = marker;
  return NULL;
}

tt_marker* tt_marker_done_now(void) {
  tt_marker* marker = tt_obj_create(&marker_kind, sizeof *marker);
  atomic_store(&marker->time, tt_now_ns());
  return marker;
}

tt_status tt_marker_of_event_take(tt_device* device, tt_event* event, tt_marker** out_marker) {
  tt_marker* marker = tt_obj_create(&marker_kind, sizeof *marker);
  tt_pending* wait = NULL;
  tt_lock();
  marker->pending[0] = tt_device_note_event_locked(device, event, &wait);
  marker->count = 1;
  tt_unlock();
  tt_status_free(tt_pending_await_release(wait));
  tt_status status = watch(marker);
  if (status != NULL) {
    tt_obj_release(marker);
    return status;
  }
  *out_marker = marker;
  return NULL;
}

void tt_marker_destroy(tt_marker* marker) {
  tt_obj_release(marker);
}
int64_t tt_marker_time_ns(tt_marker* marker) {
  return atomic_load(&marker->time);
}

// Whoever waited for the launches finds the marker done, even if the plugin has yet to call back.
bool tt_marker_done(tt_marker* marker) {
  if (atomic_load(&marker->left) <= 0) {
    stamp(marker);  // the last callback may be about to
    return true;
  }
  for (int i = 0; i < marker->count; ++i) {
    bool ready = false;
    tt_status status = tt_event_is_ready(marker->pending[i]->event, &ready);
    ready = ready || status != NULL;
    tt_status_free(status);
    if (!ready) {
      return false;
    }
  }
  stamp(marker);
  return true;
}

tt_status tt_marker_await(tt_marker* marker) {
  tt_status first = NULL;
  for (int i = 0; i < marker->count; ++i) {
    tt_status status = tt_event_await(marker->pending[i]->event);
    if (first == NULL) {
      first = status;
    } else {
      tt_status_free(status);
    }
  }
  stamp(marker);
  return first;
}
