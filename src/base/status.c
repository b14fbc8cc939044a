// SPDX-License-Identifier: Apache-2.0
//
// tt_status: one allocation for the error, one for its text. Annotating rebuilds the text, so that reading it is free.
#include "tt/status.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

struct tt_error {
  tt_code code;
  char* text;
  char origin[56];  // "file.c:123"; longer names lose their tail
};

static tt_status make_empty(tt_code code) {
  tt_status status = tt_calloc(1, sizeof *status);
  status->code = code;
  return status;
}

tt_status tt_status_make(tt_code code, const char* file, int line, const char* fmt, ...) {
  TT_CHECK(code != TT_OK);
  tt_status status = make_empty(code);
  const char* slash = strrchr(file, '/');
  (void)snprintf(status->origin, sizeof status->origin, "%.40s:%d", slash ? slash + 1 : file, line);
  va_list args;
  va_start(args, fmt);
  status->text = tt_vformat(fmt, args);
  va_end(args);
  return status;
}

tt_status tt_status_annotate(tt_status status, const char* fmt, ...) {
  if (status == NULL) {
    return NULL;
  }
  va_list args;
  va_start(args, fmt);
  char* context = tt_vformat(fmt, args);
  va_end(args);
  tt_strbuf text = {0};
  tt_strbuf_add(&text, context);
  tt_strbuf_add(&text, ": ");
  tt_strbuf_add(&text, status->text);
  free(context);
  free(status->text);
  status->text = tt_strbuf_take(&text);
  return status;
}

tt_status tt_status_clone(tt_status status) {
  if (status == NULL) {
    return NULL;
  }
  tt_status copy = make_empty(status->code);
  memcpy(copy->origin, status->origin, sizeof copy->origin);
  copy->text = tt_strdup(status->text);
  return copy;
}

void tt_status_free(tt_status status) {
  if (status != NULL) {
    free(status->text);
    free(status);
  }
}

tt_code tt_status_code(tt_status status) {
  return status ? status->code : TT_OK;
}

const char* tt_status_text(tt_status status) {
  return status ? status->text : "ok";
}

const char* tt_status_origin(tt_status status) {
  return status ? status->origin : "";
}

const char* tt_code_name(tt_code code) {
  static const char* const names[] = {
      [TT_OK] = "OK",
      [TT_CANCELLED] = "CANCELLED",
      [TT_UNKNOWN] = "UNKNOWN",
      [TT_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
      [TT_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
      [TT_NOT_FOUND] = "NOT_FOUND",
      [TT_ALREADY_EXISTS] = "ALREADY_EXISTS",
      [TT_PERMISSION_DENIED] = "PERMISSION_DENIED",
      [TT_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
      [TT_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
      [TT_ABORTED] = "ABORTED",
      [TT_OUT_OF_RANGE] = "OUT_OF_RANGE",
      [TT_UNIMPLEMENTED] = "UNIMPLEMENTED",
      [TT_INTERNAL] = "INTERNAL",
      [TT_UNAVAILABLE] = "UNAVAILABLE",
      [TT_DATA_LOSS] = "DATA_LOSS",
      [TT_UNAUTHENTICATED] = "UNAUTHENTICATED",
  };
  size_t index = (size_t)code;
  return index < sizeof names / sizeof *names ? names[index] : "UNKNOWN";
}
