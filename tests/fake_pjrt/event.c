// SPDX-License-Identifier: Apache-2.0
//
// Events, and the queue of those whose news is held back.
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

typedef struct listener {
  struct listener* next;
  PJRT_Event_OnReadyCallback fn;
  void* arg;
} listener;

struct PJRT_Event {
  _Atomic int refs;
  bool done;  // under `lock`
  fake_outcome outcome;
  fake_array* from;  // bytes to copy when it fires
  void* to;
  listener* listeners;       // under `lock`
  struct PJRT_Event* newer;  // in the queue, which holds a reference
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool delaying;                // under `lock`
static PJRT_Event *oldest, *newest;  // under `lock`
static int queued, waiting;          // under `lock`

PJRT_Event* fake_event_share(PJRT_Event* event) {
  atomic_fetch_add(&event->refs, 1);
  return event;
}

void fake_event_release(PJRT_Event* event) {
  if (atomic_fetch_sub(&event->refs, 1) == 1) {
    fake_array_release(event->from);
    free(event->outcome.text);
    free(event);
    fake_live_add(-1);
  }
}

static PJRT_Error* error_of(const PJRT_Event* event) {
  return event->outcome.text != NULL ? fake_error(event->outcome.code, "%s", event->outcome.text) : NULL;
}

static void fire(PJRT_Event* event) {
  if (event->from != NULL && event->outcome.text == NULL) {
    memcpy(event->to, event->from->bytes, fake_array_bytes(&event->from->type));
  }
  (void)pthread_mutex_lock(&lock);
  event->done = true;
  listener* first = event->listeners;
  event->listeners = NULL;
  (void)pthread_cond_broadcast(&changed);
  (void)pthread_mutex_unlock(&lock);
  while (first != NULL) {
    listener* l = first;
    first = l->next;
    l->fn(error_of(event), l->arg);
    free(l);
  }
}

static PJRT_Event* make(fake_outcome outcome, bool may_be_delayed, fake_array* from, void* to) {
  PJRT_Event* event = fake_alloc(1, sizeof *event);
  fake_live_add(1);
  event->refs = 1;
  event->outcome = outcome;
  event->from = from;
  event->to = to;
  (void)pthread_mutex_lock(&lock);
  bool held = delaying && may_be_delayed;
  if (held) {
    (void)fake_event_share(event);
    *(newest != NULL ? &newest->newer : &oldest) = event;
    newest = event;
    ++queued;
  }
  (void)pthread_mutex_unlock(&lock);
  if (!held) {
    fire(event);
  }
  return event;
}

PJRT_Event* fake_event_new(fake_outcome outcome, bool may_be_delayed) {
  return make(outcome, may_be_delayed, NULL, NULL);
}
PJRT_Event* fake_event_for_copy(fake_outcome outcome, fake_array* from, void* to) {
  return make(outcome, true, from, to);
}

// ---- the queue ------------------------------------------------------------------------------------------------------------

int fake_events_release(int n) {
  int released = 0;
  for (; released != n; ++released) {
    (void)pthread_mutex_lock(&lock);
    PJRT_Event* event = oldest;
    if (event != NULL) {
      oldest = event->newer;
      newest = oldest != NULL ? newest : NULL;
      --queued;
    }
    (void)pthread_mutex_unlock(&lock);
    if (event == NULL) {
      break;
    }
    fire(event);
    fake_event_release(event);
  }
  return released;
}

void fake_events_delay(bool on) {
  (void)pthread_mutex_lock(&lock);
  delaying = on;
  (void)pthread_mutex_unlock(&lock);
  if (!on) {
    (void)fake_events_release(-1);
  }
}

int fake_events_delayed(void) {
  (void)pthread_mutex_lock(&lock);
  int n = queued;
  (void)pthread_mutex_unlock(&lock);
  return n;
}

void fake_events_await_waiter(void) {
  (void)pthread_mutex_lock(&lock);
  while (waiting == 0) {
    (void)pthread_cond_wait(&changed, &lock);
  }
  (void)pthread_mutex_unlock(&lock);
}

// ---- the API --------------------------------------------------------------------------------------------------------------

PJRT_Error* fake_PJRT_Event_Destroy(PJRT_Event_Destroy_Args* args) {
  FAKE_ENTER(PJRT_Event_Destroy);
  fake_event_release(args->event);
  return NULL;
}

PJRT_Error* fake_PJRT_Event_IsReady(PJRT_Event_IsReady_Args* args) {
  FAKE_ENTER(PJRT_Event_IsReady);
  (void)pthread_mutex_lock(&lock);
  args->is_ready = args->event->done;
  (void)pthread_mutex_unlock(&lock);
  return NULL;
}

PJRT_Error* fake_PJRT_Event_Await(PJRT_Event_Await_Args* args) {
  FAKE_ENTER(PJRT_Event_Await);
  (void)pthread_mutex_lock(&lock);
  ++waiting;
  while (!args->event->done) {
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_cond_wait(&changed, &lock);
  }
  --waiting;
  (void)pthread_mutex_unlock(&lock);
  return error_of(args->event);
}

PJRT_Error* fake_PJRT_Event_OnReady(PJRT_Event_OnReady_Args* args) {
  FAKE_ENTER(PJRT_Event_OnReady);
  listener* l = fake_alloc(1, sizeof *l);
  l->fn = args->callback;
  l->arg = args->user_arg;
  (void)pthread_mutex_lock(&lock);
  bool done = args->event->done;
  if (!done) {
    l->next = args->event->listeners;
    args->event->listeners = l;
  }
  (void)pthread_mutex_unlock(&lock);
  if (done) {
    PJRT_Error* error = error_of(args->event);
    free(l);
    args->callback(error, args->user_arg);
  }
  return NULL;
}
