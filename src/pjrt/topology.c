// SPDX-License-Identifier: Apache-2.0
//
// Machines that are described but not there, for compiling ahead of time.
#include <string.h>

#include "pjrt/internal.h"

static void destroy(void* obj) {
  tt_topology* topology = obj;
  PJRT_TopologyDescription_Destroy_Args args = {.topology = topology->topology};
  tt_pjrt_ignore(TT_PJRT_CALL(topology->plugin->api, PJRT_TopologyDescription_Destroy, &args));
  tt_plugin_release(topology->plugin);
  free(topology);
}
TT_OBJ_KIND(topology_kind, "topology", destroy);

tt_status tt_topology_create(tt_plugin* plugin, const char* name, tt_topology** out_topology) {
  PJRT_TopologyDescription_Create_Args args = {.topology_name = name, .topology_name_size = strlen(name)};
  TT_TRY_CTX(TT_PJRT_CALL(plugin->api, PJRT_TopologyDescription_Create, &args), "describing topology %s with %s", name,
             plugin->path);
  tt_topology* topology = tt_obj_create(&topology_kind, sizeof *topology);
  tt_plugin_retain(plugin);
  topology->plugin = plugin;
  topology->topology = args.topology;
  PJRT_TopologyDescription_GetDeviceDescriptions_Args devices = {.topology = args.topology};
  tt_status status = TT_PJRT_CALL(plugin->api, PJRT_TopologyDescription_GetDeviceDescriptions, &devices);
  if (status != NULL) {
    tt_topology_release(topology);
    return tt_status_annotate(status, "describing topology %s", name);
  }
  topology->device_count = (int)devices.num_descriptions;
  *out_topology = topology;
  return NULL;
}

void tt_topology_release(tt_topology* topology) {
  tt_obj_release(topology);
}
int tt_topology_device_count(const tt_topology* topology) {
  return topology->device_count;
}
