// SPDX-License-Identifier: Apache-2.0
//
// The way in: PJRT_Api, errors, the gate that counts calls and makes them fail, and the knobs.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

typedef struct planned_failure {
  int nth;  // 0: none
  int code;
  char text[200];
} planned_failure;

// Under `lock`.
static struct {
  int64_t calls[FAKE_FUNCTION_COUNT];
  planned_failure failures[FAKE_FUNCTION_COUNT];
  planned_failure later;
  bool hold_compiles;
  int compiles_waiting;
  int64_t memory_limit;
  int devices;
  char platform[16];
} knobs;
static _Atomic int64_t live, bytes;

static const char* const names[FAKE_FUNCTION_COUNT] = {
#define NAME(fn) #fn,
    FAKE_FUNCTIONS(NAME)
#undef NAME
};

// ---- errors ---------------------------------------------------------------------------------------------------------------

PJRT_Error* fake_error(int code, const char* fmt, ...) {
  PJRT_Error* error = fake_alloc(1, sizeof *error);
  char text[512];
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  error->code = code;
  error->text = fake_alloc(strlen(text) + 1, 1);
  memcpy(error->text, text, strlen(text));
  return error;
}

static void error_destroy(PJRT_Error_Destroy_Args* args) {
  if (args->error != NULL) {
    free(args->error->text);
    free(args->error);
  }
}
static void error_message(PJRT_Error_Message_Args* args) {
  args->message = args->error->text;
  args->message_size = strlen(args->error->text);
}
static PJRT_Error* error_code(PJRT_Error_GetCode_Args* args) {
  args->code = (PJRT_Error_Code)args->error->code;
  return NULL;
}

fake_outcome fake_outcome_copy(fake_outcome outcome) {
  fake_outcome copy = {outcome.code, NULL};
  if (outcome.text != NULL) {
    copy.text = fake_alloc(strlen(outcome.text) + 1, 1);
    memcpy(copy.text, outcome.text, strlen(outcome.text));
  }
  return copy;
}

// ---- the gate -------------------------------------------------------------------------------------------------------------

static bool due(planned_failure* failure) {
  return failure->nth > 0 && --failure->nth == 0;
}

PJRT_Error* fake_enter(fake_entry function) {
  (void)pthread_mutex_lock(&lock);
  knobs.calls[function] += 1;
  planned_failure* failure = &knobs.failures[function];
  PJRT_Error* error = due(failure) ? fake_error(failure->code, "%s", failure->text) : NULL;
  (void)pthread_mutex_unlock(&lock);
  return error;
}

bool fake_fail_later_now(fake_outcome* out_outcome) {
  (void)pthread_mutex_lock(&lock);
  bool now = due(&knobs.later);
  if (now) {
    *out_outcome = fake_outcome_copy((fake_outcome){knobs.later.code, knobs.later.text});
  }
  (void)pthread_mutex_unlock(&lock);
  return now;
}

void fake_compile_gate(void) {
  (void)pthread_mutex_lock(&lock);
  knobs.compiles_waiting += 1;
  (void)pthread_cond_broadcast(&changed);
  while (knobs.hold_compiles) {
    (void)pthread_cond_wait(&changed, &lock);
  }
  knobs.compiles_waiting -= 1;
  (void)pthread_mutex_unlock(&lock);
}

int64_t fake_memory_limit(void) {
  (void)pthread_mutex_lock(&lock);
  int64_t limit = knobs.memory_limit;
  (void)pthread_mutex_unlock(&lock);
  return limit;
}

void fake_machine(int* out_devices, char out_platform[16]) {
  (void)pthread_mutex_lock(&lock);
  *out_devices = knobs.devices > 0 ? knobs.devices : 1;
  memcpy(out_platform, knobs.platform[0] != '\0' ? knobs.platform : "fake\0           ", 16);
  (void)pthread_mutex_unlock(&lock);
}

void fake_live_add(int by) {
  atomic_fetch_add(&live, by);
}
void fake_bytes_add(int64_t by) {
  atomic_fetch_add(&bytes, by);
}
int64_t fake_bytes_in_use(void) {
  return atomic_load(&bytes);
}

// ---- the API --------------------------------------------------------------------------------------------------------------

static PJRT_Api api = {
    .struct_size = PJRT_Api_STRUCT_SIZE,
    .pjrt_api_version = {.struct_size = PJRT_Api_Version_STRUCT_SIZE,
                         .major_version = PJRT_API_MAJOR,
                         .minor_version = PJRT_API_MINOR},
    .PJRT_Error_Destroy = error_destroy,
    .PJRT_Error_Message = error_message,
    .PJRT_Error_GetCode = error_code,
#define FIELD(fn) .fn = fake_##fn,
    FAKE_FUNCTIONS(FIELD)
#undef FIELD
};

__attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi(void);
const PJRT_Api* GetPjrtApi(void) {
  return &api;
}

PJRT_Error* fake_PJRT_Plugin_Initialize(PJRT_Plugin_Initialize_Args* args) {
  (void)args;
  FAKE_ENTER(PJRT_Plugin_Initialize);
  return NULL;
}

// ---- the knobs ------------------------------------------------------------------------------------------------------------

static void set_failure(planned_failure* failure, int nth, int code, const char* text) {
  failure->nth = nth;
  failure->code = code;
  (void)snprintf(failure->text, sizeof failure->text, "%s", text);
}

static int index_of(const char* function) {
  for (int i = 0; i < FAKE_FUNCTION_COUNT; ++i) {
    if (strcmp(names[i], function) == 0) {
      return i;
    }
  }
  (void)fprintf(stderr, "fake_pjrt: no function %s\n", function);
  abort();
}

static void set_api(const char* first_missing, int major, int minor) {
  static const size_t offsets[FAKE_FUNCTION_COUNT] = {
#define OFFSET(fn) offsetof(PJRT_Api, fn),
      FAKE_FUNCTIONS(OFFSET)
#undef OFFSET
  };
  bool truth = major == 0 && minor == 0;
  size_t beginning = offsetof(PJRT_Api, pjrt_api_version);
  api.struct_size = first_missing == NULL      ? PJRT_Api_STRUCT_SIZE
                    : first_missing[0] == '\0' ? beginning
                                               : offsets[index_of(first_missing)];
  api.pjrt_api_version.major_version = truth ? PJRT_API_MAJOR : major;
  api.pjrt_api_version.minor_version = truth ? PJRT_API_MINOR : minor;
}

static void reset(void) {
  fake_events_delay(false);
  (void)pthread_mutex_lock(&lock);
  memset(&knobs, 0, sizeof knobs);
  (void)pthread_cond_broadcast(&changed);
  (void)pthread_mutex_unlock(&lock);
  set_api(NULL, 0, 0);
}

static void fail(const char* function, int nth, int code, const char* text) {
  (void)pthread_mutex_lock(&lock);
  set_failure(&knobs.failures[index_of(function)], nth, code, text);
  (void)pthread_mutex_unlock(&lock);
}

static void fail_later(int nth, int code, const char* text) {
  (void)pthread_mutex_lock(&lock);
  set_failure(&knobs.later, nth, code, text);
  (void)pthread_mutex_unlock(&lock);
}

static void hold_compiles(bool on) {
  (void)pthread_mutex_lock(&lock);
  knobs.hold_compiles = on;
  (void)pthread_cond_broadcast(&changed);
  (void)pthread_mutex_unlock(&lock);
}

static void await_compile(void) {
  (void)pthread_mutex_lock(&lock);
  while (knobs.compiles_waiting == 0) {
    (void)pthread_cond_wait(&changed, &lock);
  }
  (void)pthread_mutex_unlock(&lock);
}

static void memory_limit(int64_t limit) {
  (void)pthread_mutex_lock(&lock);
  knobs.memory_limit = limit;
  (void)pthread_mutex_unlock(&lock);
}

static void machine(int devices, const char* platform) {
  (void)pthread_mutex_lock(&lock);
  knobs.devices = devices;
  (void)snprintf(knobs.platform, sizeof knobs.platform, "%s", platform != NULL ? platform : "");
  (void)pthread_mutex_unlock(&lock);
}

static int64_t calls(const char* function) {
  (void)pthread_mutex_lock(&lock);
  int64_t n = knobs.calls[index_of(function)];
  (void)pthread_mutex_unlock(&lock);
  return n;
}

static int64_t live_objects(void) {
  return atomic_load(&live);
}

__attribute__((visibility("default"))) const fake_control* fake_pjrt_control(void);
const fake_control* fake_pjrt_control(void) {
  static const fake_control control = {
      .reset = reset,
      .fail = fail,
      .fail_later = fail_later,
      .delay = fake_events_delay,
      .release = fake_events_release,
      .delayed = fake_events_delayed,
      .await_waiter = fake_events_await_waiter,
      .hold_compiles = hold_compiles,
      .await_compile = await_compile,
      .memory_limit = memory_limit,
      .machine = machine,
      .api = set_api,
      .calls = calls,
      .bytes_in_use = fake_bytes_in_use,
      .live = live_objects,
  };
  return &control;
}
