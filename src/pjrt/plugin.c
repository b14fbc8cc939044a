// SPDX-License-Identifier: Apache-2.0
//
// Loading plugins. A library stays loaded and initialised for the life of the process: plugins keep threads and
// destructors of their own, so unloading one is not safe. tt_plugin objects come and go on top of that.
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "pjrt/internal.h"

// 0.57 moved fields of PJRT_Api to their final places.
enum { MINOR_NEEDED = 57 };

typedef struct library {
  struct library* next;
  const PJRT_Api* api;
} library;

static tt_mutex lock = TT_MUTEX_INIT;
static library* initialised;  // under lock

// ---- errors of calls ----------------------------------------------------------------------------------------------

tt_status tt_pjrt_missing(const PJRT_Api* api, const char* function, const char* file, int line) {
  return tt_status_make(TT_UNIMPLEMENTED, file, line,
                        "%s: expected a plugin that has this function, got one of API %d.%d", function,
                        api->pjrt_api_version.major_version, api->pjrt_api_version.minor_version);
}

tt_status tt_pjrt_error(const PJRT_Api* api, PJRT_Error* error, const char* function, const char* file, int line) {
  PJRT_Error_Message_Args message = {.struct_size = PJRT_Error_Message_Args_STRUCT_SIZE, .error = error};
  api->PJRT_Error_Message(&message);
  PJRT_Error_GetCode_Args code = {.struct_size = PJRT_Error_GetCode_Args_STRUCT_SIZE, .error = error};
  PJRT_Error* nested = api->PJRT_Error_GetCode(&code);
  tt_code number = (tt_code)code.code;
  if (nested != NULL || number == TT_OK || number > TT_UNAUTHENTICATED) {
    number = TT_UNKNOWN;
  }
  tt_status status =
      tt_status_make(number, file, line, "%s: %.*s", function, (int)message.message_size, message.message);
  PJRT_Error_Destroy_Args destroy = {.struct_size = PJRT_Error_Destroy_Args_STRUCT_SIZE, .error = error};
  api->PJRT_Error_Destroy(&destroy);
  if (nested != NULL) {
    destroy.error = nested;
    api->PJRT_Error_Destroy(&destroy);
  }
  return status;
}

// ---- environment --------------------------------------------------------------------------------------------------

static bool has_tpu_chip(void) {
  glob_t found;
  bool chip = false;
  if (glob("/sys/bus/pci/devices/*/vendor", 0, NULL, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc && !chip; ++i) {
      char vendor[16] = "";
      FILE* file = fopen(found.gl_pathv[i], "re");
      if (file != NULL) {
        chip = fgets(vendor, sizeof vendor, file) != NULL && strncmp(vendor, "0x1ae0", 6) == 0;
        (void)fclose(file);
      }
    }
    globfree(&found);
  }
  return chip;
}

// Read by the library when it is loaded, so they must stand before.
static void prepare_environment(const char* path) {
  const int keep = 0;  // what the user has set stays
  (void)setenv("TF_CPP_MIN_LOG_LEVEL", "3", keep);
  const char* slash = strrchr(path, '/');
  if (strcmp(slash ? slash + 1 : path, "libtpu.so") == 0 && !has_tpu_chip()) {
    // Without a chip libtpu only compiles; it would ask a metadata server which machine this is, and wait.
    (void)setenv("TPU_SKIP_MDS_QUERY", "1", keep);
    (void)setenv("TPU_ACCELERATOR_TYPE", "v5litepod-1", keep);
    (void)setenv("TPU_WORKER_HOSTNAMES", "localhost", keep);
    (void)setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", keep);
  }
}

// ---- loading ------------------------------------------------------------------------------------------------------

static tt_status find_api(const char* path, const PJRT_Api** out_api) {
  if (strchr(path, '/') != NULL && access(path, R_OK) != 0) {
    TT_FAIL(TT_NOT_FOUND, "expected a readable file, got: %s", strerror(errno));
  }
  prepare_environment(path);
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    const char* reason = dlerror();
    TT_FAIL(TT_INVALID_ARGUMENT, "expected a shared library, got: %s", reason ? reason : "an unknown error");
  }
  void* symbol = dlsym(handle, "GetPjrtApi");
  if (symbol == NULL) {
    (void)dlclose(handle);
    TT_FAIL(TT_INVALID_ARGUMENT, "expected a PJRT plugin, got a library without GetPjrtApi");
  }
  const PJRT_Api* (*get_api)(void) = NULL;
  memcpy(&get_api, &symbol, sizeof get_api);  // ISO C has no cast from an object to a function pointer
  const PJRT_Api* api = get_api();
  if (api == NULL || api->struct_size < offsetof(PJRT_Api, PJRT_Error_Destroy)) {
    TT_FAIL(TT_INVALID_ARGUMENT, "expected a PJRT plugin, got a GetPjrtApi that gives none");
  }
  const PJRT_Api_Version* version = &api->pjrt_api_version;
  if (version->major_version != PJRT_API_MAJOR || version->minor_version < MINOR_NEEDED) {
    TT_FAIL(TT_FAILED_PRECONDITION, "expected PJRT API %d.%d or later, got %d.%d", PJRT_API_MAJOR, MINOR_NEEDED,
            version->major_version, version->minor_version);
  }
  *out_api = api;
  return NULL;
}

static tt_status initialise_locked(const PJRT_Api* api) {
  for (const library* known = initialised; known != NULL; known = known->next) {
    if (known->api == api) {
      return NULL;
    }
  }
  PJRT_Plugin_Initialize_Args args = {0};
  TT_TRY(TT_PJRT_CALL(api, PJRT_Plugin_Initialize, &args));
  library* added = tt_malloc(sizeof *added);
  *added = (library){.next = initialised, .api = api};
  initialised = added;
  return NULL;
}

static void destroy(void* obj) {
  tt_plugin* plugin = obj;
  free(plugin->path);
  free(plugin);
}
TT_OBJ_KIND(plugin_kind, "plugin", destroy);

tt_status tt_plugin_load(const char* path, tt_plugin** out_plugin) {
  if (path == NULL || *path == '\0') {
    TT_FAIL(TT_INVALID_ARGUMENT, "expected the path of a PJRT plugin, got none");
  }
  const PJRT_Api* api = NULL;
  tt_mutex_lock(&lock);
  tt_status status = find_api(path, &api);
  if (status == NULL) {
    status = initialise_locked(api);
  }
  tt_mutex_unlock(&lock);
  TT_TRY_CTX(status, "loading plugin %s", path);
  tt_plugin* plugin = tt_obj_create(&plugin_kind, sizeof *plugin);
  plugin->api = api;
  plugin->path = tt_strdup(path);
  plugin->major = api->pjrt_api_version.major_version;
  plugin->minor = api->pjrt_api_version.minor_version;
  TT_LOG("pjrt", "loaded %s, API %d.%d", path, plugin->major, plugin->minor);
  *out_plugin = plugin;
  return NULL;
}

void tt_plugin_retain(tt_plugin* plugin) {
  tt_obj_retain(plugin);
}
void tt_plugin_release(tt_plugin* plugin) {
  tt_obj_release(plugin);
}
const char* tt_plugin_path(const tt_plugin* plugin) {
  return plugin->path;
}

void tt_plugin_version(const tt_plugin* plugin, int* major, int* minor) {
  *major = plugin->major;
  *minor = plugin->minor;
}
