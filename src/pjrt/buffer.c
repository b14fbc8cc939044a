// SPDX-License-Identifier: Apache-2.0
//
// Buffers: made from host bytes or by a launch, copied, awaited, freed, and counted. A buffer exists as soon as its
// producer is queued; reading it waits, and reports the producer's failure.
#include "pjrt/internal.h"

// ---- counting -----------------------------------------------------------------------------------------------------

static int64_t load(const _Atomic int64_t* x) {
  return atomic_load_explicit(x, memory_order_relaxed);
}
static int64_t add(_Atomic int64_t* x, int64_t by) {
  return atomic_fetch_add_explicit(x, by, memory_order_relaxed) + by;
}

static void raise_peak(_Atomic int64_t* peak, int64_t value) {
  int64_t seen = load(peak);
  while (value > seen &&
         !atomic_compare_exchange_weak_explicit(peak, &seen, value, memory_order_relaxed, memory_order_relaxed)) {
  }
}

void tt_buffer_count_made(tt_pjrt_device* device, int64_t count, int64_t bytes) {
  tt_buffer_counts* counts = &device->counts;
  int64_t freed_bytes = load(&counts->freed_bytes);
  int64_t freed = load(&counts->freed);
  raise_peak(&counts->peak_bytes, add(&counts->made_bytes, bytes) - freed_bytes);
  raise_peak(&counts->peak_count, add(&counts->made, count) - freed);
}

static void count_freed(tt_pjrt_device* device, int64_t count, int64_t bytes) {
  add(&device->counts.freed_bytes, bytes);
  add(&device->counts.freed, count);
}

void tt_buffer_stats_get(const tt_pjrt_device* device, tt_buffer_stats* out_stats) {
  const tt_buffer_counts* counts = &device->counts;
  int64_t freed_bytes = load(&counts->freed_bytes);
  int64_t freed = load(&counts->freed);
  int64_t made_bytes = load(&counts->made_bytes);
  int64_t made = load(&counts->made);
  *out_stats = (tt_buffer_stats){.bytes = made_bytes - freed_bytes,
                                 .peak_bytes = load(&counts->peak_bytes),
                                 .allocated_bytes = made_bytes,
                                 .freed_bytes = freed_bytes,
                                 .count = made - freed,
                                 .peak_count = load(&counts->peak_count),
                                 .allocations = made,
                                 .frees = freed};
}

void tt_buffer_stats_reset_peak(tt_pjrt_device* device) {
  tt_buffer_counts* counts = &device->counts;
  tt_buffer_stats now;
  tt_buffer_stats_get(device, &now);
  atomic_store_explicit(&counts->peak_bytes, now.bytes, memory_order_relaxed);
  atomic_store_explicit(&counts->peak_count, now.count, memory_order_relaxed);
}

// ---- life ---------------------------------------------------------------------------------------------------------

static void destroy(void* obj) {
  tt_buffer* buffer = obj;
  if (__builtin_expect(tt_client_usable(buffer->client), 1)) {
    PJRT_Buffer_Destroy_Args args = {.buffer = buffer->buffer};
    tt_pjrt_ignore(TT_PJRT_CALL(buffer->client->api, PJRT_Buffer_Destroy, &args));
  }
  if (!atomic_load_explicit(&buffer->given_up, memory_order_relaxed)) {
    count_freed(buffer->device, 1, buffer->bytes);
  }
  tt_client_release(buffer->client);
  free(buffer);
}
TT_OBJ_KIND(buffer_kind, "buffer", destroy);

tt_buffer* tt_buffer_adopt(tt_client* client, tt_pjrt_device* device, PJRT_Buffer* raw, const tt_type* type,
                           int64_t bytes) {
  tt_buffer* buffer = tt_obj_create_open(&buffer_kind, sizeof *buffer, offsetof(tt_buffer, type));
  tt_client_retain(client);
  buffer->client = client;
  buffer->device = device;
  buffer->buffer = raw;
  buffer->bytes = bytes;
  tt_type_copy(&buffer->type, type);
  return buffer;
}

void tt_buffer_note_donated(tt_buffer* buffer) {
  PJRT_Buffer_IsDeleted_Args args = {.buffer = buffer->buffer};
  tt_status status = TT_PJRT_CALL(buffer->client->api, PJRT_Buffer_IsDeleted, &args);
  if (status == NULL && args.is_deleted && !atomic_exchange_explicit(&buffer->given_up, true, memory_order_relaxed)) {
    count_freed(buffer->device, 1, buffer->bytes);
  }
  tt_pjrt_ignore(status);
}

void tt_buffer_retain(tt_buffer* buffer) {
  tt_obj_retain(buffer);
}
void tt_buffer_release(tt_buffer* buffer) {
  tt_obj_release(buffer);
}
const tt_type* tt_buffer_type(const tt_buffer* buffer) {
  return &buffer->type;
}
int64_t tt_buffer_bytes(const tt_buffer* buffer) {
  return buffer->bytes;
}

// ---- from the host ------------------------------------------------------------------------------------------------

typedef struct keeper {
  const PJRT_Api* api;
  PJRT_Event* event;
  void (*keep)(void* ctx);
  void* ctx;
} keeper;

// Owned by the event until it fires.
static void on_host_done(PJRT_Error* error, void* arg) {
  keeper* k = arg;
  // A failed transfer is reported by the buffer itself; the host bytes are free either way.
  tt_pjrt_ignore(tt_pjrt_check(k->api, error, "PJRT_Event_OnReady", __FILE__, __LINE__));
  k->keep(k->ctx);
  PJRT_Event_Destroy_Args args = {.event = k->event};
  tt_pjrt_ignore(TT_PJRT_CALL(k->api, PJRT_Event_Destroy, &args));
  free(k);
}

static void hand_over_host_bytes(const PJRT_Api* api, PJRT_Event* event, void (*keep)(void* ctx), void* ctx) {
  if (keep == NULL) {
    PJRT_Event_Destroy_Args args = {.event = event};
    tt_pjrt_ignore(TT_PJRT_CALL(api, PJRT_Event_Destroy, &args));
    return;
  }
  keeper* k = tt_malloc(sizeof *k);
  *k = (keeper){api, event, keep, ctx};
  PJRT_Event_OnReady_Args args = {.event = event, .callback = on_host_done, .user_arg = k};
  tt_status status = TT_PJRT_CALL(api, PJRT_Event_OnReady, &args);
  if (status != NULL) {
    tt_status_free(status);
    free(k);
    tt_pjrt_ignore(tt_pjrt_await_take(api, event));
    keep(ctx);
  }
}

tt_status tt_buffer_from_host(tt_client* client, tt_pjrt_device* device, const tt_type* type, const void* bytes,
                              void (*keep)(void* ctx), void* ctx, tt_buffer** out_buffer) {
  TT_PJRT_USABLE(client);
  static const char nothing[16];
  if (device == NULL) {
    device = &client->devices[0];
  }
  PJRT_Buffer_Type element_type = tt_pjrt_type_of(type->dtype);
  if (device->client != client || element_type == PJRT_Buffer_Type_INVALID || type->bounded != 0) {
    char text[256];
    TT_FAIL(TT_INVALID_ARGUMENT, "expected a device of this client and a type with fixed sizes, got %s",
            device->client != client ? "a device of another client" : tt_type_describe(type, text, sizeof text));
  }
  PJRT_Client_BufferFromHostBuffer_Args args = {
      .client = client->client,
      .data = bytes ? bytes : nothing,
      .type = element_type,
      .dims = type->dims,
      .num_dims = (size_t)type->rank,
      .host_buffer_semantics = keep ? PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes
                                    : PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
      .device = device->device};
  TT_TRY(TT_PJRT_CALL(client->api, PJRT_Client_BufferFromHostBuffer, &args));
  int64_t size = tt_type_bytes(type);
  tt_buffer_count_made(device, 1, size);
  *out_buffer = tt_buffer_adopt(client, device, args.buffer, type, size);
  hand_over_host_bytes(client->api, args.done_with_host_buffer, keep, ctx);
  return NULL;
}

// ---- to the host and waiting --------------------------------------------------------------------------------------

static tt_status ready(tt_buffer* buffer, PJRT_Event** out_event) {
  TT_PJRT_USABLE(buffer->client);
  PJRT_Buffer_ReadyEvent_Args args = {.buffer = buffer->buffer};
  TT_TRY(TT_PJRT_CALL(buffer->client->api, PJRT_Buffer_ReadyEvent, &args));
  *out_event = args.event;
  return NULL;
}

static tt_status start_copy(tt_buffer* buffer, void* bytes, size_t size, PJRT_Event** out_event) {
  TT_PJRT_USABLE(buffer->client);
  if (size != (size_t)buffer->bytes) {
    char text[256];
    TT_FAIL(TT_INVALID_ARGUMENT, "expected room for the %lld bytes of %s, got %zu", (long long)buffer->bytes,
            tt_type_describe(&buffer->type, text, sizeof text), size);
  }
  if (size == 0) {
    return ready(buffer, out_event);
  }
  // Without a layout the bytes would come in the device's order, which need not be row-major.
  int64_t minor_to_major[TT_MAX_RANK];
  for (int d = 0; d < buffer->type.rank; ++d) {
    minor_to_major[d] = buffer->type.rank - 1 - d;
  }
  PJRT_Buffer_MemoryLayout layout = {
      .struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE,
      .tiled = {.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE,
                .minor_to_major = minor_to_major,
                .minor_to_major_size = (size_t)buffer->type.rank},
      .type = PJRT_Buffer_MemoryLayout_Type_Tiled
  };
  PJRT_Buffer_ToHostBuffer_Args args = {.src = buffer->buffer, .host_layout = &layout, .dst = bytes, .dst_size = size};
  TT_TRY(TT_PJRT_CALL(buffer->client->api, PJRT_Buffer_ToHostBuffer, &args));
  *out_event = args.event;
  return NULL;
}

tt_status tt_buffer_await(tt_buffer* buffer) {
  PJRT_Event* event = NULL;
  TT_TRY(ready(buffer, &event));
  return tt_pjrt_await_take(buffer->client->api, event);
}

tt_status tt_buffer_to_host(tt_buffer* buffer, void* bytes, size_t size) {
  PJRT_Event* event = NULL;
  // A copy of what is there already is made at once; one that has to wait is made by another thread, later.
  TT_TRY(tt_buffer_await(buffer));
  TT_TRY(start_copy(buffer, bytes, size, &event));
  return tt_pjrt_await_take(buffer->client->api, event);
}

tt_status tt_buffer_to_host_async(tt_buffer* buffer, void* bytes, size_t size, tt_event** out_event) {
  PJRT_Event* event = NULL;
  TT_TRY(start_copy(buffer, bytes, size, &event));
  *out_event = tt_event_wrap(buffer->client, event);
  return NULL;
}

tt_status tt_buffer_ready_event(tt_buffer* buffer, tt_event** out_event) {
  PJRT_Event* event = NULL;
  TT_TRY(ready(buffer, &event));
  *out_event = tt_event_wrap(buffer->client, event);
  return NULL;
}

tt_status tt_buffer_pending_event_or_null(tt_buffer* buffer, tt_event** out_event) {
  PJRT_Event* event = NULL;
  *out_event = NULL;
  TT_TRY(ready(buffer, &event));
  PJRT_Event_IsReady_Args args = {.event = event};
  tt_status status = TT_PJRT_CALL(buffer->client->api, PJRT_Event_IsReady, &args);
  if (status == NULL && !args.is_ready) {
    *out_event = tt_event_wrap(buffer->client, event);
    return NULL;
  }
  PJRT_Event_Destroy_Args done = {.event = event};
  tt_status destroyed = TT_PJRT_CALL(buffer->client->api, PJRT_Event_Destroy, &done);
  if (status == NULL) {
    return destroyed;
  }
  tt_status_free(destroyed);
  return status;
}

// ---- to another device --------------------------------------------------------------------------------------------

// Plugins refuse a copy onto the buffer's own device, and reach no other client's: both go through the host.
static tt_status copy_through_host(tt_buffer* buffer, tt_pjrt_device* device, tt_buffer** out_buffer) {
  void* bytes = tt_malloc((size_t)buffer->bytes);
  tt_status status = tt_buffer_to_host(buffer, bytes, (size_t)buffer->bytes);
  if (status == NULL) {
    status = tt_buffer_from_host(device->client, device, &buffer->type, bytes, NULL, NULL, out_buffer);
  }
  free(bytes);
  return status;
}

tt_status tt_buffer_copy_to_device(tt_buffer* buffer, tt_pjrt_device* device, tt_buffer** out_buffer) {
  TT_PJRT_USABLE(buffer->client);
  if (device == buffer->device || device->client != buffer->client) {
    return copy_through_host(buffer, device, out_buffer);
  }
  PJRT_Buffer_CopyToDevice_Args args = {.buffer = buffer->buffer, .dst_device = device->device};
  TT_TRY(TT_PJRT_CALL(buffer->client->api, PJRT_Buffer_CopyToDevice, &args));
  tt_buffer_count_made(device, 1, buffer->bytes);
  *out_buffer = tt_buffer_adopt(buffer->client, device, args.dst_buffer, &buffer->type, buffer->bytes);
  return NULL;
}
