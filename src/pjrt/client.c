// SPDX-License-Identifier: Apache-2.0
//
// Clients and their devices. What never changes (names, ids, kinds) is read once, when the client is made.
#include <string.h>

#include "base/log.h"
#include "pjrt/internal.h"

tt_status tt_client_forked(void) {
  return TT_STATUS(TT_FAILED_PRECONDITION,
                   "expected the process that opened the device, got a forked child of it; start processes with the "
                   "\"spawn\" method instead");
}

static char* dup_text(const char* text, size_t size) {
  tt_strbuf copy = {0};
  tt_strbuf_addn(&copy, text, size);
  return tt_strbuf_take(&copy);
}

static tt_status describe_device(tt_client* client, PJRT_Device* raw, tt_pjrt_device* device) {
  device->client = client;
  device->device = raw;
  PJRT_Device_GetDescription_Args description = {.device = raw};
  TT_TRY(TT_PJRT_CALL(client->api, PJRT_Device_GetDescription, &description));
  PJRT_DeviceDescription_Id_Args id = {.device_description = description.device_description};
  TT_TRY(TT_PJRT_CALL(client->api, PJRT_DeviceDescription_Id, &id));
  PJRT_DeviceDescription_Kind_Args kind = {.device_description = description.device_description};
  TT_TRY(TT_PJRT_CALL(client->api, PJRT_DeviceDescription_Kind, &kind));
  device->id = id.id;
  device->kind = dup_text(kind.device_kind, kind.device_kind_size);
  return NULL;
}

static tt_status describe(tt_client* client) {
  PJRT_Client_PlatformName_Args name = {.client = client->client};
  TT_TRY(TT_PJRT_CALL(client->api, PJRT_Client_PlatformName, &name));
  client->platform = dup_text(name.platform_name, name.platform_name_size);
  client->is_cpu = strcmp(client->platform, "cpu") == 0;
  PJRT_Client_PlatformVersion_Args version = {.client = client->client};
  TT_TRY(TT_PJRT_CALL(client->api, PJRT_Client_PlatformVersion, &version));
  client->platform_version = dup_text(version.platform_version, version.platform_version_size);
  PJRT_Client_AddressableDevices_Args devices = {.client = client->client};
  TT_TRY(TT_PJRT_CALL(client->api, PJRT_Client_AddressableDevices, &devices));
  if (devices.num_addressable_devices == 0) {
    TT_FAIL(TT_NOT_FOUND, "expected a client with devices, got platform %s with none", client->platform);
  }
  client->devices = tt_calloc(devices.num_addressable_devices, sizeof *client->devices);
  for (size_t i = 0; i < devices.num_addressable_devices; ++i) {
    client->device_count = (int)i + 1;
    TT_TRY(describe_device(client, devices.addressable_devices[i], &client->devices[i]));
  }
  return NULL;
}

static void destroy(void* obj) {
  tt_client* client = obj;
  if (client->client != NULL && tt_client_usable(client)) {
    PJRT_Client_Destroy_Args args = {.client = client->client};
    tt_pjrt_ignore(TT_PJRT_CALL(client->api, PJRT_Client_Destroy, &args));
  }
  for (int i = 0; i < client->device_count; ++i) {
    free(client->devices[i].kind);
  }
  free(client->devices);
  free(client->platform);
  free(client->platform_version);
  tt_plugin_release(client->plugin);
  free(client);
}
TT_OBJ_KIND(client_kind, "client", destroy);

tt_status tt_client_create(tt_plugin* plugin, int num_options, const tt_option* options, tt_client** out_client) {
  PJRT_NamedValue* values = tt_pjrt_named_values(num_options, options);
  PJRT_Client_Create_Args args = {.create_options = values, .num_options = (size_t)num_options};
  tt_status status = TT_PJRT_CALL(plugin->api, PJRT_Client_Create, &args);
  free(values);
  TT_TRY_CTX(status, "opening devices with %s", plugin->path);
  tt_client* client = tt_obj_create(&client_kind, sizeof *client);
  tt_plugin_retain(plugin);
  client->plugin = plugin;
  client->api = plugin->api;
  client->client = args.client;
  client->generation = tt_fork_generation();
  status = describe(client);
  if (status != NULL) {
    tt_client_release(client);
    return tt_status_annotate(status, "opening devices with %s", plugin->path);
  }
  TT_LOG("pjrt", "client on %s (%s): %d devices of kind %s", client->platform, client->platform_version,
         client->device_count, client->devices[0].kind);
  *out_client = client;
  return NULL;
}

void tt_client_retain(tt_client* client) {
  tt_obj_retain(client);
}
void tt_client_release(tt_client* client) {
  tt_obj_release(client);
}
tt_plugin* tt_client_plugin(const tt_client* client) {
  return client->plugin;
}
const char* tt_client_platform(const tt_client* client) {
  return client->platform;
}
const char* tt_client_platform_version(const tt_client* client) {
  return client->platform_version;
}
bool tt_client_is_cpu(const tt_client* client) {
  return client->is_cpu;
}
int tt_client_device_count(const tt_client* client) {
  return client->device_count;
}

tt_pjrt_device* tt_client_device(const tt_client* client, int index) {
  return index >= 0 && index < client->device_count ? &client->devices[index] : NULL;
}

int tt_pjrt_device_id(const tt_pjrt_device* device) {
  return device->id;
}
const char* tt_pjrt_device_kind(const tt_pjrt_device* device) {
  return device->kind;
}

tt_status tt_pjrt_device_memory(const tt_pjrt_device* device, int64_t* out_in_use, int64_t* out_limit) {
  TT_PJRT_USABLE(device->client);
  PJRT_Device_MemoryStats_Args args = {.device = device->device};
  TT_TRY(TT_PJRT_CALL(device->client->api, PJRT_Device_MemoryStats, &args));
  if (!args.bytes_limit_is_set) {
    TT_FAIL(TT_UNIMPLEMENTED, "expected a plugin that tells its memory limit, got %s without", device->kind);
  }
  *out_in_use = args.bytes_in_use;
  *out_limit = args.bytes_limit;
  return NULL;
}
