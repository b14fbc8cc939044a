// SPDX-License-Identifier: Apache-2.0
//
// Events: waiting, polling, callbacks.
#include <sched.h>

#include "base/thread.h"
#include "pjrt/internal.h"

static void destroy_raw(const PJRT_Api* api, PJRT_Event* raw) {
  PJRT_Event_Destroy_Args args = {.event = raw};
  tt_pjrt_ignore(TT_PJRT_CALL(api, PJRT_Event_Destroy, &args));
}

// A small program is done before a sleeping thread would be awake again: look a few times before going to sleep.
static void poll_a_little(const PJRT_Api* api, PJRT_Event* raw) {
  enum { POLL_NS = 50000 };
  PJRT_Event_IsReady_Args args = {.event = raw};
  int64_t end = tt_now_ns() + POLL_NS;
  do {
    tt_status status = TT_PJRT_CALL(api, PJRT_Event_IsReady, &args);
    if (status != NULL || args.is_ready) {
      tt_pjrt_ignore(status);
      return;
    }
    sched_yield();
  } while (tt_now_ns() < end);
}

tt_status tt_pjrt_await_take(const PJRT_Api* api, PJRT_Event* raw) {
  poll_a_little(api, raw);
  PJRT_Event_Await_Args args = {.event = raw};
  tt_status status = TT_PJRT_CALL(api, PJRT_Event_Await, &args);
  destroy_raw(api, raw);
  return status;
}

static void destroy(void* obj) {
  tt_event* event = obj;
  if (tt_client_usable(event->client)) {
    destroy_raw(event->client->api, event->event);
  }
  tt_client_release(event->client);
  free(event);
}
TT_OBJ_KIND(event_kind, "event", destroy);

tt_event* tt_event_wrap(tt_client* client, PJRT_Event* raw) {
  tt_event* event = tt_obj_create(&event_kind, sizeof *event);
  tt_client_retain(client);
  event->client = client;
  event->event = raw;
  return event;
}

void tt_event_destroy(tt_event* event) {
  tt_obj_release(event);
}

tt_status tt_event_await(tt_event* event) {
  TT_PJRT_USABLE(event->client);
  PJRT_Event_Await_Args args = {.event = event->event};
  return TT_PJRT_CALL(event->client->api, PJRT_Event_Await, &args);
}

tt_status tt_event_is_ready(tt_event* event, bool* out_ready) {
  TT_PJRT_USABLE(event->client);
  PJRT_Event_IsReady_Args args = {.event = event->event};
  TT_TRY(TT_PJRT_CALL(event->client->api, PJRT_Event_IsReady, &args));
  *out_ready = args.is_ready;
  return NULL;
}

typedef struct listener {
  const PJRT_Api* api;
  void (*fn)(tt_status status, void* ctx);
  void* ctx;
} listener;

static void on_ready(PJRT_Error* error, void* arg) {
  listener* l = arg;
  l->fn(tt_pjrt_check(l->api, error, "PJRT_Event_OnReady", __FILE__, __LINE__), l->ctx);
  free(l);
}

tt_status tt_event_on_ready(tt_event* event, void (*fn)(tt_status status, void* ctx), void* ctx) {
  TT_PJRT_USABLE(event->client);
  listener* l = tt_malloc(sizeof *l);
  *l = (listener){event->client->api, fn, ctx};
  PJRT_Event_OnReady_Args args = {.event = event->event, .callback = on_ready, .user_arg = l};
  tt_status status = TT_PJRT_CALL(event->client->api, PJRT_Event_OnReady, &args);
  if (status != NULL) {
    free(l);
  }
  return status;
}
