// SPDX-License-Identifier: Apache-2.0
//
// The inside of the fake plugin: its objects, and the gate that every API function passes (control.c), where calls are
// counted and made to fail.
#ifndef FAKE_PJRT_PLUGIN_H
#define FAKE_PJRT_PLUGIN_H

#include <pjrt_c_api.h>
#include <pthread.h>

#include "fake.h"
#include "program.h"

// The functions this plugin has, in no particular order.
// clang-format off
#define FAKE_FUNCTIONS(F) \
  F(PJRT_Plugin_Initialize) \
  F(PJRT_Event_Destroy) \
  F(PJRT_Event_IsReady) \
  F(PJRT_Event_Await) \
  F(PJRT_Event_OnReady) \
  F(PJRT_Client_Create) \
  F(PJRT_Client_Destroy) \
  F(PJRT_Client_PlatformName) \
  F(PJRT_Client_PlatformVersion) \
  F(PJRT_Client_AddressableDevices) \
  F(PJRT_Client_Compile) \
  F(PJRT_Client_BufferFromHostBuffer) \
  F(PJRT_DeviceDescription_Id) \
  F(PJRT_DeviceDescription_Kind) \
  F(PJRT_Device_GetDescription) \
  F(PJRT_Device_MemoryStats) \
  F(PJRT_Executable_Destroy) \
  F(PJRT_Executable_NumOutputs) \
  F(PJRT_Executable_Serialize) \
  F(PJRT_Executable_DeserializeAndLoad) \
  F(PJRT_Executable_OutputElementTypes) \
  F(PJRT_Executable_OutputDimensions) \
  F(PJRT_Executable_GetCompiledMemoryStats) \
  F(PJRT_Executable_GetCostAnalysis) \
  F(PJRT_LoadedExecutable_Destroy) \
  F(PJRT_LoadedExecutable_GetExecutable) \
  F(PJRT_LoadedExecutable_Execute) \
  F(PJRT_Buffer_Destroy) \
  F(PJRT_Buffer_IsDeleted) \
  F(PJRT_Buffer_ReadyEvent) \
  F(PJRT_Buffer_ToHostBuffer) \
  F(PJRT_Buffer_CopyToDevice) \
  F(PJRT_TopologyDescription_Create) \
  F(PJRT_TopologyDescription_Destroy) \
  F(PJRT_TopologyDescription_GetDeviceDescriptions) \
  F(PJRT_Compile)
// clang-format on

typedef enum fake_entry {
#define ENUM(fn) FAKE_##fn,
  FAKE_FUNCTIONS(ENUM)
#undef ENUM
      FAKE_FUNCTION_COUNT
} fake_entry;

#define DECLARE(fn) PJRT_Error* fake_##fn(fn##_Args* args);
FAKE_FUNCTIONS(DECLARE)
#undef DECLARE

struct PJRT_Error {
  int code;
  char* text;
};
PJRT_Error* fake_error(int code, const char* fmt, ...) __attribute__((format(printf, 2, 3)));

// First in each function: counts the call; an error if this one is to fail.
PJRT_Error* fake_enter(fake_entry function);
#define FAKE_ENTER(fn)                           \
  do {                                           \
    PJRT_Error* refused = fake_enter(FAKE_##fn); \
    if (refused != NULL) {                       \
      return refused;                            \
    }                                            \
  } while (0)

// ---- objects --------------------------------------------------------------------------------------------------------------
void fake_live_add(int by);

struct PJRT_DeviceDescription {
  int id;
};
struct PJRT_Device {
  PJRT_DeviceDescription description;
  _Atomic int64_t in_use;
};
struct PJRT_Client {
  int count;
  char platform[16];
  PJRT_Device* devices;
  PJRT_Device** list;
};

// How something ended; `text` NULL: well.
typedef struct fake_outcome {
  int code;
  char* text;
} fake_outcome;
fake_outcome fake_outcome_copy(fake_outcome outcome);

// Shared by everybody who waits for the same thing: PJRT_Event is a counted reference to it.
PJRT_Event* fake_event_new(fake_outcome outcome, bool may_be_delayed);              // takes `outcome`
PJRT_Event* fake_event_for_copy(fake_outcome outcome, fake_array* from, void* to);  // copies when it fires
PJRT_Event* fake_event_share(PJRT_Event* event);
void fake_event_release(PJRT_Event* event);
void fake_events_delay(bool on);
int fake_events_release(int n);
int fake_events_delayed(void);
void fake_events_await_waiter(void);

struct PJRT_Buffer {
  PJRT_Device* device;
  tt_type type;
  fake_array* array;  // NULL: deleted, or its producer failed
  bool deleted;
  fake_outcome outcome;
  PJRT_Event* ready;
};
// A buffer of `device` (its memory was reserved before) for the array (taken) or failure (copied).
PJRT_Buffer* fake_buffer_new(PJRT_Device* device, const tt_type* type, fake_array* array, fake_outcome outcome,
                             bool delayed);
void fake_buffer_delete(PJRT_Buffer* buffer);
// Takes memory of the device; RESOURCE_EXHAUSTED when there is not enough.
PJRT_Error* fake_reserve(PJRT_Device* device, size_t bytes);

PJRT_Buffer_Type fake_buffer_type(tt_dtype dtype);
tt_dtype fake_dtype_of(PJRT_Buffer_Type type);

// ---- knobs that other files ask -------------------------------------------------------------------------------------------
bool fake_fail_later_now(fake_outcome* out_outcome);  // is this execution one that fails later?
void fake_compile_gate(void);
int64_t fake_memory_limit(void);
void fake_machine(int* out_devices, char out_platform[16]);
int64_t fake_bytes_in_use(void);
void fake_bytes_add(int64_t by);

#endif  // FAKE_PJRT_PLUGIN_H
