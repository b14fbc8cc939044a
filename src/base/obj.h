// SPDX-License-Identifier: Apache-2.0
//
// Refcounted objects. `tt_obj` is the first member of each of them; `create` gives +1, `retain`/`release` accept NULL
// and may be called from any thread. The ledger counts live objects by kind; it must read zero at exit.
#ifndef TT_BASE_OBJ_H
#define TT_BASE_OBJ_H

#include <stdatomic.h>
#include <stdint.h>

#include "tt/status.h"

typedef struct tt_obj_kind {
  const char* name;            // "buffer", "program": what the ledger prints
  void (*destroy)(void* obj);  // frees what the object owns and the object itself
  _Atomic int64_t* live;       // the ledger's counter
} tt_obj_kind;

typedef struct tt_obj {
  _Atomic int32_t refs;
  const tt_obj_kind* kind;
} tt_obj;

// Defines `static const tt_obj_kind id` and registers it with the ledger on first use.
#define TT_OBJ_KIND(id, text, destroy_fn) \
  static _Atomic int64_t id##_live;       \
  static const tt_obj_kind id = {text, destroy_fn, &id##_live}

// Zeroed memory of `size` bytes with one reference.
void* tt_obj_create(const tt_obj_kind* kind, size_t size);
// The same, but only the first `zeroed` bytes are zero: for objects made in every call.
void* tt_obj_create_open(const tt_obj_kind* kind, size_t size, size_t zeroed);
void tt_obj_retain(void* obj);
void tt_obj_release(void* obj);
int32_t tt_obj_refs(const void* obj);

// Live objects over all kinds; `report` (may be NULL) is called once for each kind with live objects.
int64_t tt_ledger_live(void (*report)(const char* name, int64_t live, void* ctx), void* ctx);

#endif  // TT_BASE_OBJ_H
