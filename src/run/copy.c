// SPDX-License-Identifier: Apache-2.0
//
// Copies between host and device, storages from outside, and sharing a value instead of copying it.
#include <stdatomic.h>
#include <string.h>

#include "run/call.h"
#include "run/capture.h"
#include "run/counters.h"
#include "run/family.h"
#include "run/fuse.h"
#include "run/marker.h"

// The private ops behind copies: dst gets src; src as a dense row-major value.
static tt_overload* copy_overload(void) {
  static tt_overload* _Atomic made;
  tt_overload* overload = atomic_load(&made);
  if (overload == NULL) {
    const tt_op* op = NULL;
    for (int i = 0; i < tt_op_count(); ++i) {
      if (strncmp(tt_op_at(i)->schema, "device_copy(", 12) == 0) {
        op = tt_op_at(i);
      }
    }
    TT_CHECK(op != NULL);
    int alias = 0;
    overload = tt_overload_create("copy_", op, 2, 1, 1, &alias);
    atomic_store(&made, overload);
  }
  return overload;
}
static tt_overload* dense_overload(void) {
  static tt_overload* _Atomic made;
  tt_overload* overload = atomic_load(&made);
  if (overload == NULL) {
    int alias = -1;
    overload = tt_overload_create("dense", tt_overload_op(copy_overload()), 2, 0, 1, &alias);
    overload->bakes_all = true;  // of no family: its result has no padding
    atomic_store(&made, overload);
  }
  return overload;
}

static tt_meta dense_meta(const tt_tensor* t) {
  tt_meta m = {.dtype = t->dtype, .rank = t->rank};
  int64_t run = 1;
  for (int d = t->rank - 1; d >= 0; --d) {
    m.sizes[d] = t->sizes[d];
    m.strides[d] = run;
    run *= t->sizes[d];
  }
  return m;
}

static bool is_empty(const tt_tensor* t) {
  for (int d = 0; d < t->rank; ++d) {
    if (t->sizes[d] == 0) {
      return true;
    }
  }
  return false;
}

static tt_status run_copy(tt_overload* overload, const tt_tensor* dst, const tt_tensor* src, const tt_meta* meta,
                          tt_outputs* outputs) {
  tt_argument args[2] = {
      {.kind = TT_ARG_TENSOR, .count = 1, .tensors = dst},
      {.kind = TT_ARG_TENSOR, .count = 1, .tensors = src}
  };
  tt_call call = {.overload = overload, .num_args = 2, .args = args};
  call.device = tt_storage_device(dst->storage != NULL ? dst->storage : src->storage);
  if (tt_capture_current() != NULL) {
    return tt_capture_call(&call, 1, meta, outputs);
  }
  for (;;) {
    bool hit;
    TT_TRY(tt_call_run(&call, outputs, &hit));
    if (hit) {
      return NULL;
    }
    TT_TRY(tt_call_lower(&call, 1, meta));
  }
}

// dst takes src's value as it is: buffers never change, so two storages may hold one.
static bool share(const tt_tensor* dst, const tt_tensor* src) {
  if (src->conj != dst->conj || src->neg != dst->neg || src->storage == NULL || dst->dtype != src->dtype ||
      dst->rank != src->rank || tt_capture_current() != NULL) {
    return false;
  }
  for (int d = 0; d < dst->rank; ++d) {
    if (dst->sizes[d] != src->sizes[d] || (dst->sizes[d] != 1 && dst->strides[d] != src->strides[d])) {
      return false;
    }
  }
  bool shared = false;
  tt_lock();
  tt_storage* from = src->storage;
  tt_storage* to = dst->storage;
  tt_type type;
  if (from->buffer != NULL && !tt_fuse_is_running_locked(to) && dst->offset == 0 && src->offset == 0 &&
      from->type.dtype == src->dtype && from->device == to->device &&
      tt_view_dense_type(src->dtype, src->rank, src->sizes, src->strides, &type) &&
      tt_type_elements(&type) == tt_type_elements(&from->type) && tt_type_bytes(&type) == to->bytes) {
    tt_buffer_retain(from->buffer);
    tt_fuse_disown_locked(to);
    tt_type held = from->type;
    tt_storage_set_value_take(to, from->buffer, &held, from->producer);
    shared = true;
  }
  tt_unlock();
  return shared;
}

tt_status tt_copy_on_device(const tt_tensor* dst, const tt_tensor* src) {
  if (is_empty(dst)) {
    return NULL;
  }
  if (share(dst, src)) {
    TT_COUNT(shared_copies, 1);
    return NULL;
  }
  tt_meta meta = {.dtype = dst->dtype, .rank = dst->rank};
  memcpy(meta.sizes, dst->sizes, (size_t)dst->rank * sizeof *dst->sizes);
  memcpy(meta.strides, dst->strides, (size_t)dst->rank * sizeof *dst->strides);
  tt_outputs outputs;
  TT_TRY(run_copy(copy_overload(), dst, src, &meta, &outputs));
  tt_outputs_deinit(&outputs);
  return NULL;
}

// ---- host to device -----------------------------------------------------------------------------------------------------

// Packed elements, to their places in a padded row-major value.
static void unpack(const tt_type* held, const tt_type* type, int d, const char** from, char* to) {
  int64_t inner = (int64_t)tt_dtype_size(type->dtype);
  bool whole = true;
  for (int i = d + 1; i < type->rank; ++i) {
    inner *= held->dims[i];
    whole = whole && held->dims[i] == type->dims[i];
  }
  if (whole) {
    memcpy(to, *from, (size_t)(inner * type->dims[d]));
    *from += inner * type->dims[d];
    return;
  }
  for (int64_t i = 0; i < type->dims[d]; ++i) {
    unpack(held, type, d + 1, from, to + i * inner);
  }
}

tt_status tt_copy_from_host(const tt_tensor* dst, const void* bytes) {
  tt_device* d;
  if (is_empty(dst)) {
    return NULL;
  }
  tt_capture* capture = tt_capture_current();
  if (capture != NULL) {
    return tt_capture_store(capture, dst, bytes);
  }
  TT_TRY(tt_device_get(tt_storage_device(dst->storage), &d));
  tt_meta meta = dense_meta(dst);
  tt_type type = tt_type_make(dst->dtype, dst->rank, dst->sizes);
  tt_type held = type;
  uint32_t varies = tt_upload_varies(&type);
  for (int k = 0; k < type.rank; ++k) {
    held.dims[k] = (varies >> k & 1) != 0 ? tt_size_bound(type.dims[k]) : type.dims[k];
  }
  TT_TRY(tt_device_reserve(d, tt_type_bytes(&held), "copy to tpu"));
  tt_buffer* buffer = NULL;
  char* space = NULL;
  if (!tt_type_equal(&held, &type)) {
    const char* from = bytes;
    space = tt_calloc((size_t)tt_type_bytes(&held), 1);
    unpack(&held, &type, 0, &from, space);
  }
  tt_status sent = tt_buffer_from_host(d->client, d->pjrt, &held, space != NULL ? space : bytes, NULL, NULL, &buffer);
  free(space);
  TT_TRY(sent);
  TT_COUNT(to_device, tt_type_bytes(&type));
  tt_tensor dense = {.sizes = meta.sizes, .strides = meta.strides, .rank = meta.rank, .dtype = meta.dtype};
  dense.storage = tt_storage_new(d->index, &type, tt_type_bytes(&type));
  tt_storage_set_value_take(dense.storage, buffer, &type, "copy to tpu");
  tt_status status = tt_copy_on_device(dst, &dense);
  tt_storage_release(dense.storage);
  return status;
}

// ---- device to host -----------------------------------------------------------------------------------------------------

// A buffer (+1) that holds the tensor dense and row-major.
static tt_status dense_buffer(const tt_tensor* src, tt_buffer** out_buffer) {
  tt_storage* s = src->storage;
  if (s->capture != NULL) {
    TT_FAIL(TT_FAILED_PRECONDITION, "captured code asks for the values of a tensor");
  }
  *out_buffer = NULL;
  tt_device* device;
  TT_TRY(tt_device_get(s->device, &device));
  tt_status_free(tt_fuse_flush(
      device, "a value is read"));  // what failed is told by the tensors it was for, and this may be none of them
  tt_lock();
  bool plain = !src->conj && !src->neg && s->padded == NULL;
  bool ready = plain && s->buffer != NULL && tt_view_is_base(&s->type, src);
  // Row-major over the whole value in other dims is the same bytes.
  if (!ready && plain && s->buffer != NULL && src->offset == 0 && s->type.dtype == src->dtype) {
    tt_meta m = dense_meta(src);
    tt_type type = tt_type_make(src->dtype, src->rank, src->sizes);
    ready = tt_type_elements(&type) == tt_type_elements(&s->type);
    for (int d = 0; d < src->rank; ++d) {
      ready = ready && (src->sizes[d] == 1 || src->strides[d] == m.strides[d]);
    }
  }
  if (ready) {
    *out_buffer = s->buffer;
    tt_buffer_retain(s->buffer);
  }
  tt_unlock();
  if (ready) {
    return NULL;
  }
  tt_meta meta = dense_meta(src);
  tt_outputs outputs;
  TT_TRY(run_copy(dense_overload(), src, src, &meta, &outputs));
  tt_storage* made = outputs.items[0].storage;
  tt_status status = tt_fuse_flush(device, "a value is read");
  if (status != NULL) {
    tt_storage_release(made);
    tt_outputs_deinit(&outputs);
    return status;
  }
  *out_buffer = made->buffer;
  tt_buffer_retain(made->buffer);
  tt_storage_release(made);
  tt_outputs_deinit(&outputs);
  return NULL;
}

static int64_t bytes_of(const tt_tensor* t) {
  tt_type type = tt_type_make(t->dtype, t->rank, t->sizes);
  return tt_type_bytes(&type);
}

// The elements of a padded row-major value, packed.
static void pack(const tt_type* held, const tt_type* type, int d, const char* from, char** to) {
  int64_t inner = (int64_t)tt_dtype_size(type->dtype);
  bool whole = true;
  for (int i = d + 1; i < type->rank; ++i) {
    inner *= held->dims[i];
    whole = whole && held->dims[i] == type->dims[i];
  }
  if (whole) {
    memcpy(*to, from, (size_t)(inner * type->dims[d]));
    *to += inner * type->dims[d];
    return;
  }
  for (int64_t i = 0; i < type->dims[d]; ++i) {
    pack(held, type, d + 1, from + i * inner, to);
  }
}

// A tensor that is all of a padded value is read with the padding, which stays behind here: no program a size.
static tt_status read_padded(tt_device* device, const tt_tensor* src, void* bytes, bool* out_done) {
  tt_storage* s = src->storage;
  tt_status_free(tt_fuse_flush(device, "a value is read"));
  tt_lock();
  tt_buffer* buffer = NULL;
  tt_type type = s->type;
  if (s->capture == NULL && s->buffer != NULL && s->padded != NULL && !src->conj && !src->neg &&
      tt_view_is_base(&s->type, src)) {
    buffer = s->buffer;
    tt_buffer_retain(buffer);
  }
  const char* producer = s->producer;
  tt_unlock();
  *out_done = buffer != NULL;
  if (buffer == NULL) {
    return NULL;
  }
  tt_type held = *tt_buffer_type(buffer);
  char* space = tt_malloc((size_t)tt_type_bytes(&held));
  tt_status status = tt_buffer_to_host(buffer, space, (size_t)tt_type_bytes(&held));
  tt_buffer_release(buffer);
  if (status == NULL) {
    char* to = bytes;
    pack(&held, &type, 0, space, &to);
    TT_COUNT(to_host, tt_type_bytes(&held));
  }
  free(space);
  if (status != NULL) {
    return tt_status_annotate(status, "reading the result of %s", producer != NULL ? producer : "a copy");
  }
  return tt_device_verify_indexes(device);
}

tt_status tt_copy_to_host(const tt_tensor* src, void* bytes) {
  tt_device* d;
  tt_buffer* buffer;
  bool done = false;
  if (is_empty(src)) {
    return NULL;
  }
  TT_TRY(tt_device_get(tt_storage_device(src->storage), &d));
  TT_TRY(read_padded(d, src, bytes, &done));
  if (done) {
    return NULL;
  }
  TT_TRY(dense_buffer(src, &buffer));
  const char* producer = src->storage->producer;
  tt_status status = tt_buffer_to_host(buffer, bytes, (size_t)bytes_of(src));
  tt_buffer_release(buffer);
  if (status != NULL) {
    return tt_status_annotate(status, "reading the result of %s", producer != NULL ? producer : "a copy");
  }
  TT_COUNT(to_host, bytes_of(src));
  return tt_device_verify_indexes(d);
}

tt_status tt_copy_to_host_async(const tt_tensor* src, void* bytes, tt_marker** out_marker) {
  tt_device* d;
  tt_buffer* buffer;
  tt_event* event;
  TT_TRY(tt_device_get(tt_storage_device(src->storage), &d));
  if (is_empty(src)) {
    *out_marker = tt_marker_done_now();
    return NULL;
  }
  TT_TRY(dense_buffer(src, &buffer));
  tt_status status = tt_buffer_to_host_async(buffer, bytes, (size_t)bytes_of(src), &event);
  tt_buffer_release(buffer);
  if (status != NULL) {
    return status;
  }
  TT_COUNT(to_host, bytes_of(src));
  // The copy is one of the device's outstanding launches: synchronize waits for it.
  return tt_marker_of_event_take(d, event, out_marker);
}

tt_status tt_copy_across(const tt_tensor* dst, const tt_tensor* src) {
  tt_device* to;
  tt_buffer* here;
  tt_buffer* there = NULL;
  if (is_empty(src)) {
    return NULL;
  }
  TT_TRY(tt_device_get(tt_storage_device(dst->storage), &to));
  TT_TRY(dense_buffer(src, &here));
  tt_status status = tt_buffer_copy_to_device(here, to->pjrt, &there);
  tt_buffer_release(here);
  if (status != NULL) {
    return status;
  }
  tt_meta meta = dense_meta(src);
  tt_type type = tt_type_make(src->dtype, src->rank, src->sizes);
  tt_tensor dense = {.sizes = meta.sizes, .strides = meta.strides, .rank = meta.rank, .dtype = meta.dtype};
  dense.storage = tt_storage_new(to->index, &type, tt_type_bytes(&type));
  tt_storage_set_buffer_take(dense.storage, there, "copy between devices");
  status = tt_copy_on_device(dst, &dense);
  tt_storage_release(dense.storage);
  return status;
}

// ---- storages -----------------------------------------------------------------------------------------------------------

tt_status tt_storage_resize(tt_storage* s, int64_t bytes) {
  int64_t kept = s->bytes < bytes ? s->bytes : bytes;
  if (bytes == s->bytes) {
    return NULL;
  }
  tt_device* d;
  if (s->capture == NULL) {
    TT_TRY(tt_device_get(s->device, &d));
    tt_lock();
    bool pending = s->fuse != NULL;
    tt_unlock();
    if (pending) {
      TT_TRY(tt_fuse_flush(d, "a storage is resized"));
    }
  }
  if (bytes > s->bytes) {
    tt_storage_move(s, bytes);  // ranges of addresses do not overlap
  }
  tt_dtype dtype = s->type.dtype;
  int64_t size = (int64_t)tt_dtype_size(dtype);
  if (bytes % size != 0 || kept % size != 0) {
    dtype = TT_U8;
    size = 1;
  }
  int64_t elements = bytes / size;
  tt_type flat = tt_type_make(dtype, 1, &elements);
  if (s->capture != NULL || s->buffer == NULL || kept == 0) {
    if (s->capture != NULL && s->captured != TT_POISON && kept > 0) {
      TT_FAIL(TT_UNIMPLEMENTED, "captured code resizes a storage");
    }
    tt_lock();
    tt_storage_set_buffer_take(s, NULL, NULL);
    s->type = flat;
    tt_storage_set_bytes(s, bytes);
    tt_unlock();
    return NULL;
  }
  // The kept part moves to a fresh storage, whose value then becomes this one's.
  int64_t stride = 1;
  int64_t count = kept / size;
  tt_tensor old = {.storage = s, .sizes = &count, .strides = &stride, .rank = 1, .dtype = dtype};
  tt_tensor fresh = old;
  fresh.storage = tt_storage_new(s->device, &flat, bytes);
  tt_status status = tt_copy_on_device(&fresh, &old);
  if (status == NULL) {
    status = tt_fuse_flush(d, "a storage is resized");
  }
  if (status == NULL) {
    tt_lock();
    tt_buffer* buffer = fresh.storage->buffer;
    tt_type type = fresh.storage->type;
    tt_buffer_retain(buffer);
    tt_storage_set_value_take(s, buffer, &type, "resize_");
    tt_storage_set_bytes(s, bytes);
    tt_unlock();
  }
  tt_storage_release(fresh.storage);
  return status;
}

bool tt_storage_is_written(const tt_storage* s) {
  tt_lock();
  bool written = s->buffer != NULL || s->fuse != NULL;
  tt_unlock();
  return written;
}
