// SPDX-License-Identifier: Apache-2.0
#include "lazy/tensor.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "lazy/view.h"

// Addresses start where no user process has memory (x86-64 and AArch64 use at most 57 bits) and only go up.
static _Atomic uint64_t next_address = UINT64_C(1) << 60;
enum { ADDRESS_ALIGNMENT = 256 };

static void destroy_storage(void* obj) {
  tt_storage* storage = obj;
  tt_buffer_release(storage->buffer);
  free(storage);
}
TT_OBJ_KIND(storage_kind, "storage", destroy_storage);

static _Thread_local tt_capture* thread_capture;
tt_capture* tt_capture_thread_get(void) { return thread_capture; }
void tt_capture_thread_set(tt_capture* capture) { thread_capture = capture; }

tt_storage* tt_storage_new(int device, const tt_type* type, int64_t bytes) {
  tt_storage* storage = tt_obj_create(&storage_kind, sizeof *storage);
  uint64_t span = ((uint64_t)bytes + ADDRESS_ALIGNMENT) / ADDRESS_ALIGNMENT * ADDRESS_ALIGNMENT;
  storage->device = device;
  storage->address = atomic_fetch_add_explicit(&next_address, span, memory_order_relaxed);
  storage->bytes = bytes;
  storage->type = *type;
  storage->capture = thread_capture;
  return storage;
}

void tt_storage_set_buffer_take(tt_storage* storage, tt_buffer* buffer, const char* producer) {
  tt_buffer_release(storage->buffer);
  storage->buffer = buffer;
  storage->producer = producer;
  if (buffer != NULL) {
    storage->type = *tt_buffer_type(buffer);
  }
}

tt_status tt_storage_create(int device, tt_dtype dtype, int rank, const int64_t* sizes, const int64_t* strides,
                            int64_t bytes, tt_storage** out_storage) {
  if (rank > TT_MAX_RANK) {
    TT_FAIL(TT_INVALID_ARGUMENT, "expected a tensor of at most %d dimensions on tpu, got %d", TT_MAX_RANK, rank);
  }
  tt_type type;
  if (!tt_view_dense_type(dtype, rank, sizes, strides, &type) || tt_type_bytes(&type) != bytes) {
    int64_t elements = bytes / (int64_t)tt_dtype_size(dtype);
    type = tt_type_make(dtype, 1, &elements);
  }
  *out_storage = tt_storage_new(device, &type, bytes);
  return NULL;
}

void tt_storage_retain(tt_storage* storage) { tt_obj_retain(storage); }
void tt_storage_release(tt_storage* storage) { tt_obj_release(storage); }
uint64_t tt_storage_address(const tt_storage* storage) { return storage->address; }
int64_t tt_storage_bytes(const tt_storage* storage) { return storage->bytes; }
int tt_storage_device(const tt_storage* storage) { return storage->device; }
