// SPDX-License-Identifier: Apache-2.0
//
// Log lines and warnings. Each is written with one call, so that lines of several threads do not mix.
#include "base/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/knobs.h"
#include "base/mem.h"

bool tt_log_on(const char* room) {
  const char* list = tt_knobs()->log;
  if (list == NULL) {
    return false;
  }
  size_t length = strlen(room);
  while (*list != '\0') {
    size_t n = strcspn(list, ",");
    if ((n == length && strncmp(list, room, n) == 0) || (n == 3 && strncmp(list, "all", n) == 0)) {
      return true;
    }
    list += n + (list[n] == ',');
  }
  return false;
}

void tt_log(const char* room, const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  char* text = tt_vformat(fmt, args);
  va_end(args);
  (void)fprintf(stderr, "torch_tpu %s: %s\n", room, text);
  free(text);
}

static void warn_on_stderr(const char* text) {
  (void)fprintf(stderr, "torch_tpu: warning: %s\n", text);
}

static _Atomic tt_warn_sink current_sink;

void tt_warn_set_sink(tt_warn_sink sink) {
  atomic_store(&current_sink, sink);
}

void tt_warn(const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  char* text = tt_vformat(fmt, args);
  va_end(args);
  tt_warn_sink sink = atomic_load(&current_sink);
  (sink ? sink : warn_on_stderr)(text);
  free(text);
}
