// SPDX-License-Identifier: Apache-2.0
//
// The op table: entries put pointers to themselves into the linker section "tt_ops"; here they are sorted once.
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "ops/op.h"

extern const tt_op* const __start_tt_ops[];
extern const tt_op* const __stop_tt_ops[];

static const tt_op** sorted;
static int sorted_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int by_schema(const void* a, const void* c) {
  const tt_op* const* x = a;
  const tt_op* const* y = c;
  return strcmp((*x)->schema, (*y)->schema);
}

static void sort_entries(void) {
  sorted_count = (int)(__stop_tt_ops - __start_tt_ops);
  sorted = tt_malloc((size_t)sorted_count * sizeof *sorted);
  memcpy(sorted, __start_tt_ops, (size_t)sorted_count * sizeof *sorted);
  qsort(sorted, (size_t)sorted_count, sizeof *sorted, by_schema);
}

int tt_op_count(void) {
  pthread_once(&once, sort_entries);
  return sorted_count;
}
const tt_op* tt_op_at(int index) {
  return index >= 0 && index < tt_op_count() ? sorted[index] : NULL;
}
const char* tt_op_schema(const tt_op* op) {
  return op->schema;
}
tt_route tt_op_route(const tt_op* op) {
  return op->route;
}
const char* tt_op_note(const tt_op* op) {
  return op->note;
}

const char* tt_op_file(const tt_op* op) {
  const char* slash = strrchr(op->file, '/');
  return slash != NULL ? slash + 1 : op->file;
}
