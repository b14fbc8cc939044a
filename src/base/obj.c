// SPDX-License-Identifier: Apache-2.0
//
// Reference counts and the ledger. A kind joins the ledger when its first object is made; the top bit of its counter
// remembers that, so that making and freeing objects costs one atomic addition each and takes no lock.
#include "base/obj.h"

#include <string.h>

#include "base/mem.h"
#include "base/thread.h"

enum { MOST_KINDS = 64 };
static const int64_t registered_bit = INT64_C(1) << 62;

static tt_mutex ledger_lock = TT_MUTEX_INIT;
static const tt_obj_kind* ledger[MOST_KINDS];  // under ledger_lock
static int ledger_count;                       // under ledger_lock

static void register_kind(const tt_obj_kind* kind) {
  tt_mutex_lock(&ledger_lock);
  if ((atomic_fetch_or_explicit(kind->live, registered_bit, memory_order_relaxed) & registered_bit) == 0) {
    TT_CHECK(ledger_count < MOST_KINDS);
    ledger[ledger_count++] = kind;
  }
  tt_mutex_unlock(&ledger_lock);
}

void* tt_obj_create(const tt_obj_kind* kind, size_t size) {
  return tt_obj_create_open(kind, size, size);
}

// malloc and memset: glibc's calloc passes by the thread's own cache of free blocks.
void* tt_obj_create_open(const tt_obj_kind* kind, size_t size, size_t zeroed) {
  tt_obj* obj = tt_malloc(size);
  memset(obj, 0, zeroed);
  atomic_init(&obj->refs, 1);
  obj->kind = kind;
  int64_t before = atomic_fetch_add_explicit(kind->live, 1, memory_order_relaxed);
  if (__builtin_expect((before & registered_bit) == 0, 0)) {
    register_kind(kind);
  }
  return obj;
}

void tt_obj_retain(void* obj) {
  if (obj != NULL) {
    int32_t before = atomic_fetch_add_explicit(&((tt_obj*)obj)->refs, 1, memory_order_relaxed);
    TT_CHECK(before > 0);
  }
}

void tt_obj_release(void* obj) {
  if (obj == NULL) {
    return;
  }
  tt_obj* base = obj;
  int32_t before = atomic_fetch_sub_explicit(&base->refs, 1, memory_order_acq_rel);
  TT_CHECK(before > 0);
  if (before == 1) {
    const tt_obj_kind* kind = base->kind;
    kind->destroy(obj);
    atomic_fetch_sub_explicit(kind->live, 1, memory_order_relaxed);
  }
}

int32_t tt_obj_refs(const void* obj) {
  return atomic_load_explicit(&((const tt_obj*)obj)->refs, memory_order_acquire);
}

int64_t tt_ledger_live(void (*report)(const char* name, int64_t live, void* ctx), void* ctx) {
  // Copied out first: a report may make or free objects.
  const tt_obj_kind* kinds[MOST_KINDS];
  tt_mutex_lock(&ledger_lock);
  int count = ledger_count;
  for (int i = 0; i < count; ++i) {
    kinds[i] = ledger[i];
  }
  tt_mutex_unlock(&ledger_lock);
  int64_t total = 0;
  for (int i = 0; i < count; ++i) {
    int64_t live = atomic_load_explicit(kinds[i]->live, memory_order_relaxed) & ~registered_bit;
    total += live;
    if (live != 0 && report != NULL) {
      report(kinds[i]->name, live, ctx);
    }
  }
  return total;
}
