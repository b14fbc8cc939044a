// SPDX-License-Identifier: Apache-2.0
//
// Reads the environment into one struct by the rows of knobs.def. An empty variable counts as unset; a value that does
// not parse is reported once and the default stays in force.
#include "base/knobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <strings.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"

typedef enum knob_type { KNOB_STR, KNOB_INT, KNOB_BOOL } knob_type;

typedef struct knob_row {
  const char* name;
  knob_type type;
  size_t offset;
  const char* help;
} knob_row;

static const knob_row rows[] = {
#define K(field, name, type, value, help) {name, KNOB_##type, offsetof(tt_knob_values, field), help},
#include "base/knobs.def"
#undef K
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

static tt_knob_values values = {
#define K(field, name, type, value, help) .field = value,
#include "base/knobs.def"
#undef K
};

static bool parse_int(const char* text, int64_t* out) {
  char* end = NULL;
  errno = 0;
  long long number = strtoll(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0') {
    return false;
  }
  *out = number;
  return true;
}

static bool parse_bool(const char* text, bool* out) {
  static const char* const words[] = {"0", "1", "false", "true", "no", "yes", "off", "on"};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
    if (strcasecmp(text, words[i]) == 0) {
      *out = i % 2 == 1;
      return true;
    }
  }
  return false;
}

static void read_row(const knob_row* row, tt_strbuf* complaints) {
  const char* text = getenv(row->name);
  if (text == NULL || *text == '\0') {
    return;
  }
  char* field = (char*)&values + row->offset;
  bool good = true;
  switch (row->type) {
    case KNOB_STR:
      *(tt_knob_STR*)(void*)field = tt_strdup(text);  // setenv may free the environment's own copy
      break;
    case KNOB_INT:
      good = parse_int(text, (tt_knob_INT*)(void*)field);
      break;
    case KNOB_BOOL:
      good = parse_bool(text, (tt_knob_BOOL*)(void*)field);
      break;
  }
  if (!good) {
    tt_strbuf_addf(complaints, "%sexpected %s in %s, got \"%s\"; the default is used", complaints->length ? "; " : "",
                   row->type == KNOB_INT ? "an integer" : "0 or 1", row->name, text);
  }
}

const tt_knob_values* tt_knobs(void) {
  static atomic_bool done;
  static tt_mutex lock = TT_MUTEX_INIT;
  if (atomic_load_explicit(&done, memory_order_acquire)) {
    return &values;
  }
  tt_strbuf complaints = {0};
  tt_mutex_lock(&lock);
  if (!atomic_load_explicit(&done, memory_order_relaxed)) {
    for (int i = 0; i < ROW_COUNT; ++i) {
      read_row(&rows[i], &complaints);
    }
    atomic_store_explicit(&done, true, memory_order_release);
  }
  tt_mutex_unlock(&lock);
  // After unlocking: the sink may come back here.
  if (complaints.length > 0) {
    tt_warn("%s", complaints.text);
  }
  tt_strbuf_free(&complaints);
  return &values;
}

bool tt_knob_row(int index, const char** name, const char** type, const char** help, char* value, int size) {
  if (index < 0 || index >= ROW_COUNT) {
    return false;
  }
  static const char* const type_names[] = {"string", "integer", "boolean"};
  const knob_row* row = &rows[index];
  const char* field = (const char*)tt_knobs() + row->offset;
  *name = row->name;
  *type = type_names[row->type];
  *help = row->help;
  switch (row->type) {
    case KNOB_STR: {
      const char* text = *(const tt_knob_STR*)(const void*)field;
      (void)snprintf(value, (size_t)size, "%s", text ? text : "");
      break;
    }
    case KNOB_INT:
      (void)snprintf(value, (size_t)size, "%" PRId64, *(const tt_knob_INT*)(const void*)field);
      break;
    case KNOB_BOOL:
      (void)snprintf(value, (size_t)size, "%d", *(const tt_knob_BOOL*)(const void*)field);
      break;
  }
  return true;
}
