// SPDX-License-Identifier: Apache-2.0
//
// Clients, devices and buffers.
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

// ---- clients and devices --------------------------------------------------------------------------------------------------

PJRT_Error* fake_PJRT_Client_Create(PJRT_Client_Create_Args* args) {
  FAKE_ENTER(PJRT_Client_Create);
  PJRT_Client* client = fake_alloc(1, sizeof *client);
  fake_live_add(1);
  fake_machine(&client->count, client->platform);
  for (size_t i = 0; i < args->num_options; ++i) {
    const PJRT_NamedValue* option = &args->create_options[i];
    if (strncmp(option->name, "cpu_device_count", option->name_size) == 0) {
      client->count = (int)option->int64_value;
    }
  }
  client->devices = fake_alloc((size_t)client->count, sizeof *client->devices);
  client->list = fake_alloc((size_t)client->count, sizeof *client->list);
  for (int i = 0; i < client->count; ++i) {
    client->devices[i].description.id = i;
    client->list[i] = &client->devices[i];
  }
  args->client = client;
  return NULL;
}

PJRT_Error* fake_PJRT_Client_Destroy(PJRT_Client_Destroy_Args* args) {
  FAKE_ENTER(PJRT_Client_Destroy);
  free(args->client->devices);
  free(args->client->list);
  free(args->client);
  fake_live_add(-1);
  return NULL;
}

PJRT_Error* fake_PJRT_Client_PlatformName(PJRT_Client_PlatformName_Args* args) {
  FAKE_ENTER(PJRT_Client_PlatformName);
  args->platform_name = args->client->platform;
  args->platform_name_size = strlen(args->client->platform);
  return NULL;
}

PJRT_Error* fake_PJRT_Client_PlatformVersion(PJRT_Client_PlatformVersion_Args* args) {
  FAKE_ENTER(PJRT_Client_PlatformVersion);
  args->platform_version = "1";
  args->platform_version_size = 1;
  return NULL;
}

PJRT_Error* fake_PJRT_Client_AddressableDevices(PJRT_Client_AddressableDevices_Args* args) {
  FAKE_ENTER(PJRT_Client_AddressableDevices);
  args->addressable_devices = args->client->list;
  args->num_addressable_devices = (size_t)args->client->count;
  return NULL;
}

PJRT_Error* fake_PJRT_Device_GetDescription(PJRT_Device_GetDescription_Args* args) {
  FAKE_ENTER(PJRT_Device_GetDescription);
  args->device_description = &args->device->description;
  return NULL;
}

PJRT_Error* fake_PJRT_DeviceDescription_Id(PJRT_DeviceDescription_Id_Args* args) {
  FAKE_ENTER(PJRT_DeviceDescription_Id);
  args->id = args->device_description->id;
  return NULL;
}

PJRT_Error* fake_PJRT_DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args* args) {
  FAKE_ENTER(PJRT_DeviceDescription_Kind);
  args->device_kind = "fake chip";
  args->device_kind_size = strlen(args->device_kind);
  return NULL;
}

PJRT_Error* fake_PJRT_Device_MemoryStats(PJRT_Device_MemoryStats_Args* args) {
  FAKE_ENTER(PJRT_Device_MemoryStats);
  args->bytes_in_use = atomic_load(&args->device->in_use);
  args->bytes_limit = fake_memory_limit();
  args->bytes_limit_is_set = args->bytes_limit > 0;
  return NULL;
}

// ---- types ----------------------------------------------------------------------------------------------------------------

static const PJRT_Buffer_Type types[TT_DTYPE_COUNT] = {
    [TT_BOOL] = PJRT_Buffer_Type_PRED,     [TT_U8] = PJRT_Buffer_Type_U8,     [TT_I8] = PJRT_Buffer_Type_S8,
    [TT_U16] = PJRT_Buffer_Type_U16,       [TT_I16] = PJRT_Buffer_Type_S16,   [TT_U32] = PJRT_Buffer_Type_U32,
    [TT_I32] = PJRT_Buffer_Type_S32,       [TT_U64] = PJRT_Buffer_Type_U64,   [TT_I64] = PJRT_Buffer_Type_S64,
    [TT_F16] = PJRT_Buffer_Type_F16,       [TT_BF16] = PJRT_Buffer_Type_BF16, [TT_F32] = PJRT_Buffer_Type_F32,
    [TT_F64] = PJRT_Buffer_Type_F64,       [TT_C64] = PJRT_Buffer_Type_C64,   [TT_C128] = PJRT_Buffer_Type_C128,
    [TT_F8E5M2] = PJRT_Buffer_Type_F8E5M2,
};

PJRT_Buffer_Type fake_buffer_type(tt_dtype dtype) {
  return types[dtype];
}

tt_dtype fake_dtype_of(PJRT_Buffer_Type type) {
  for (int i = TT_DTYPE_INVALID + 1; i < TT_DTYPE_COUNT; ++i) {
    if (types[i] == type) {
      return (tt_dtype)i;
    }
  }
  return TT_DTYPE_INVALID;
}

// ---- memory ---------------------------------------------------------------------------------------------------------------

PJRT_Error* fake_reserve(PJRT_Device* device, size_t size) {
  int64_t limit = fake_memory_limit();
  int64_t after = atomic_fetch_add(&device->in_use, (int64_t)size) + (int64_t)size;
  if (limit > 0 && after > limit) {
    atomic_fetch_sub(&device->in_use, (int64_t)size);
    return fake_error(PJRT_Error_Code_RESOURCE_EXHAUSTED, "out of memory allocating %zu bytes", size);
  }
  fake_bytes_add((int64_t)size);
  return NULL;
}

PJRT_Buffer* fake_buffer_new(PJRT_Device* device, const tt_type* type, fake_array* array, fake_outcome outcome,
                             bool delayed) {
  PJRT_Buffer* buffer = fake_alloc(1, sizeof *buffer);
  fake_live_add(1);
  buffer->device = device;
  buffer->type = *type;
  buffer->array = array;
  buffer->outcome = fake_outcome_copy(outcome);
  buffer->ready = fake_event_new(fake_outcome_copy(outcome), delayed);
  return buffer;
}

// Gives the memory back; the handle stays.
void fake_buffer_delete(PJRT_Buffer* buffer) {
  if (!buffer->deleted) {
    int64_t size = (int64_t)fake_array_bytes(&buffer->type);
    atomic_fetch_sub(&buffer->device->in_use, size);
    fake_bytes_add(-size);
    fake_array_release(buffer->array);
    buffer->array = NULL;
    buffer->deleted = true;
  }
}

static PJRT_Error* refuse_deleted(const PJRT_Buffer* buffer) {
  return buffer->deleted ? fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "buffer has been deleted or donated") : NULL;
}

// ---- buffers --------------------------------------------------------------------------------------------------------------

PJRT_Error* fake_PJRT_Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args* args) {
  FAKE_ENTER(PJRT_Client_BufferFromHostBuffer);
  tt_type type = {.dtype = fake_dtype_of(args->type), .rank = (int32_t)args->num_dims};
  if (type.dtype == TT_DTYPE_INVALID || args->num_dims > TT_MAX_RANK) {
    return fake_error(PJRT_Error_Code_UNIMPLEMENTED, "unknown element type %d", (int)args->type);
  }
  memcpy(type.dims, args->dims, args->num_dims * sizeof *args->dims);
  PJRT_Device* device = args->device != NULL ? args->device : &args->client->devices[0];
  PJRT_Error* error = fake_reserve(device, fake_array_bytes(&type));
  if (error != NULL) {
    return error;
  }
  fake_array* array = fake_array_new(&type);
  memcpy(array->bytes, args->data, fake_array_bytes(&type));
  fake_outcome well = {0, NULL};
  bool lends = args->host_buffer_semantics != PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  args->buffer = fake_buffer_new(device, &type, array, well, false);
  args->done_with_host_buffer = fake_event_new(well, lends);
  return NULL;
}

PJRT_Error* fake_PJRT_Buffer_Destroy(PJRT_Buffer_Destroy_Args* args) {
  FAKE_ENTER(PJRT_Buffer_Destroy);
  fake_buffer_delete(args->buffer);
  fake_event_release(args->buffer->ready);
  free(args->buffer->outcome.text);
  free(args->buffer);
  fake_live_add(-1);
  return NULL;
}

PJRT_Error* fake_PJRT_Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args* args) {
  FAKE_ENTER(PJRT_Buffer_IsDeleted);
  args->is_deleted = args->buffer->deleted;
  return NULL;
}

PJRT_Error* fake_PJRT_Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args* args) {
  FAKE_ENTER(PJRT_Buffer_ReadyEvent);
  PJRT_Error* error = refuse_deleted(args->buffer);
  if (error == NULL) {
    args->event = fake_event_share(args->buffer->ready);
  }
  return error;
}

PJRT_Error* fake_PJRT_Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args* args) {
  FAKE_ENTER(PJRT_Buffer_ToHostBuffer);
  PJRT_Error* error = refuse_deleted(args->src);
  if (error != NULL) {
    return error;
  }
  if (args->dst_size < fake_array_bytes(&args->src->type)) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "destination of %zu bytes is too small", args->dst_size);
  }
  fake_array* from = args->src->array != NULL ? fake_array_share(args->src->array) : NULL;
  args->event = fake_event_for_copy(fake_outcome_copy(args->src->outcome), from, args->dst);
  return NULL;
}

PJRT_Error* fake_PJRT_Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args* args) {
  FAKE_ENTER(PJRT_Buffer_CopyToDevice);
  PJRT_Buffer* from = args->buffer;
  PJRT_Error* error = refuse_deleted(from);
  if (error == NULL) {
    error = fake_reserve(args->dst_device, fake_array_bytes(&from->type));
  }
  if (error == NULL) {
    fake_array* array = from->array != NULL ? fake_array_share(from->array) : NULL;
    args->dst_buffer = fake_buffer_new(args->dst_device, &from->type, array, from->outcome, true);
  }
  return error;
}
