// SPDX-License-Identifier: Apache-2.0
#include "lazy/tensor.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "lazy/view.h"

// Addresses start where no user process has memory (x86-64 and AArch64 use at most 57 bits) and only go up.
static _Atomic uint64_t next_address = UINT64_C(1) << 60;
enum { ADDRESS_ALIGNMENT = 256 };

// Live storages, so that one can be found by an address in it. The lock is taken last, and for a few
// instructions only.
static atomic_flag list_lock = ATOMIC_FLAG_INIT;
static void lock_list(void) {
  while (atomic_flag_test_and_set_explicit(&list_lock, memory_order_acquire)) {
    sched_yield();
  }
}
static void unlock_list(void) {
  atomic_flag_clear_explicit(&list_lock, memory_order_release);
}
static tt_storage* newest;

static void (*drop_hook)(tt_storage* storage);
void tt_storage_set_drop_hook(void (*hook)(tt_storage* storage)) {
  drop_hook = hook;
}

static void destroy_storage(void* obj) {
  tt_storage* storage = obj;
  if (__atomic_load_n(&storage->fuse, __ATOMIC_ACQUIRE) != NULL) {
    drop_hook(storage);
  }
  lock_list();
  if (storage->newer != NULL) {
    storage->newer->older = storage->older;
  } else {
    newest = storage->older;
  }
  if (storage->older != NULL) {
    storage->older->newer = storage->newer;
  }
  unlock_list();
  tt_buffer_release(storage->buffer);
  free(storage->padded);
  free(storage->lost);
  free(storage);
}
TT_OBJ_KIND(storage_kind, "storage", destroy_storage);

static _Thread_local tt_capture* thread_capture;
static _Thread_local uint64_t thread_capture_id;
tt_capture* tt_capture_thread_get(void) {
  return thread_capture;
}
void tt_capture_thread_set(tt_capture* capture, uint64_t id) {
  thread_capture = capture;
  thread_capture_id = id;
}

static uint64_t span_of(int64_t bytes) {
  return ((uint64_t)bytes + ADDRESS_ALIGNMENT) / ADDRESS_ALIGNMENT * ADDRESS_ALIGNMENT;
}
static uint64_t take_address(int64_t bytes) {
  return atomic_fetch_add_explicit(&next_address, span_of(bytes), memory_order_relaxed);
}

tt_storage* tt_storage_new(int device, const tt_type* type, int64_t bytes) {
  tt_storage* storage = tt_obj_create_open(&storage_kind, sizeof *storage, offsetof(tt_storage, type));
  storage->device = device;
  storage->address = take_address(bytes);
  storage->bytes = bytes;
  tt_type_copy(&storage->type, type);
  storage->capture = thread_capture;
  storage->capture_id = thread_capture_id;
  lock_list();
  storage->older = newest;
  if (newest != NULL) {
    newest->newer = storage;
  }
  newest = storage;
  unlock_list();
  return storage;
}

void tt_storage_move(tt_storage* storage, int64_t bytes) {
  lock_list();
  storage->address = take_address(bytes);
  unlock_list();
}

// Looked at by tt_storage_find, so not under the runtime's lock alone.
void tt_storage_set_bytes(tt_storage* storage, int64_t bytes) {
  lock_list();
  storage->bytes = bytes;
  unlock_list();
}

// One that is being destroyed has no reference left, and gets none.
static bool retain_if_alive(tt_storage* storage) {
  int32_t refs = atomic_load(&storage->obj.refs);
  while (refs > 0) {
    if (atomic_compare_exchange_weak(&storage->obj.refs, &refs, refs + 1)) {
      return true;
    }
  }
  return false;
}

tt_storage* tt_storage_find(uint64_t address) {
  lock_list();
  tt_storage* storage = newest;
  while (storage != NULL && (address < storage->address || address - storage->address >= span_of(storage->bytes) ||
                             !retain_if_alive(storage))) {
    storage = storage->older;
  }
  unlock_list();
  return storage;
}

void tt_storage_set_type(tt_storage* storage, const tt_type* type, const tt_type* padded) {
  storage->type = *type;
  if (padded != NULL && !tt_type_equal(type, padded)) {
    storage->padded = storage->padded != NULL ? storage->padded : tt_malloc(sizeof *storage->padded);
    *storage->padded = *padded;
  } else if (storage->padded != NULL) {
    free(storage->padded);
    storage->padded = NULL;
  }
}

void tt_storage_set_value_take(tt_storage* storage, tt_buffer* buffer, const tt_type* type, const char* producer) {
  tt_buffer_release(storage->buffer);
  storage->buffer = buffer;
  storage->producer = producer;
  tt_storage_set_type(storage, type, tt_buffer_type(buffer));
  tt_storage_lose(storage, NULL);
}

void tt_storage_set_buffer_take(tt_storage* storage, tt_buffer* buffer, const char* producer) {
  tt_buffer_release(storage->buffer);
  storage->buffer = buffer;
  storage->producer = producer;
  if (buffer != NULL || storage->padded != NULL) {
    tt_type type = buffer != NULL ? *tt_buffer_type(buffer) : storage->type;
    tt_storage_set_type(storage, &type, NULL);
  }
  if (buffer != NULL) {
    if (__builtin_expect(storage->lost != NULL, 0)) {
      tt_storage_lose(storage, NULL);
    }
  }
}

void tt_storage_lose(tt_storage* storage, const tt_status why) {
  free(storage->lost);
  storage->lost = why != NULL ? tt_strdup(tt_status_text(why)) : NULL;
  storage->lost_code = tt_status_code(why);
}

tt_status tt_storage_create(int device, tt_dtype dtype, int rank, const int64_t* sizes, const int64_t* strides,
                            int64_t bytes, tt_storage** out_storage) {
  tt_type type;
  bool dense = rank <= TT_MAX_RANK && tt_view_dense_type(dtype, rank, sizes, strides, &type);
  if (!dense || tt_type_bytes(&type) != bytes) {
    int64_t elements = bytes / (int64_t)tt_dtype_size(dtype);
    type = tt_type_make(dtype, 1, &elements);
  }
  *out_storage = tt_storage_new(device, &type, bytes);
  return NULL;
}

void tt_storage_retain(tt_storage* storage) {
  tt_obj_retain(storage);
}
void tt_storage_release(tt_storage* storage) {
  tt_obj_release(storage);
}
uint64_t tt_storage_address(const tt_storage* storage) {
  return storage->address;
}
int64_t tt_storage_bytes(const tt_storage* storage) {
  return storage->bytes;
}
int tt_storage_device(const tt_storage* storage) {
  return storage->device;
}
