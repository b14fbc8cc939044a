// SPDX-License-Identifier: Apache-2.0
//
// Loading plugins: each way in which it can go wrong gives one error that names path and reason.
#include "base/mem.h"
#include "pjrt/pjrt.h"
#include "run_support.h"

// Loads a plugin that must be refused.
static void expect_refused(const char* path, tt_code code, const char* reason) {
  tt_plugin* plugin = NULL;
  tt_status status = tt_plugin_load(path, &plugin);
  EXPECT_TRUE(strstr(tt_status_text(status), path) != NULL);
  EXPECT_STATUS(status, code, reason);
  EXPECT_TRUE(plugin == NULL);
}

static void drop_copy(char* path) {
  (void)unlink(path);
  free(path);
}

TEST(pjrt, a_missing_plugin_is_named) {
  expect_refused("/nowhere/plugin.so", TT_NOT_FOUND, "expected a readable file, got: No such file or directory");
}

TEST(pjrt, no_path_is_an_error) {
  tt_plugin* plugin = NULL;
  EXPECT_STATUS(tt_plugin_load("", &plugin), TT_INVALID_ARGUMENT, "expected the path of a PJRT plugin, got none");
}

TEST(pjrt, a_file_that_is_no_library_is_named) {
  expect_refused(TT_SOURCE_DIR "/CMakeLists.txt", TT_INVALID_ARGUMENT, "expected a shared library, got: ");
}

TEST(pjrt, a_library_that_is_no_plugin_is_named) {
  expect_refused("libm.so.6", TT_INVALID_ARGUMENT, "expected a PJRT plugin, got a library without GetPjrtApi");
}

TEST(pjrt, a_plugin_that_is_too_old_is_named) {
  char* path = NULL;
  const fake_control* copy = fake_copy(&path);
  copy->api(NULL, 0, 40);
  expect_refused(path, TT_FAILED_PRECONDITION, "expected PJRT API 0.57 or later, got 0.40");
  copy->api(NULL, 1, 81);
  expect_refused(path, TT_FAILED_PRECONDITION, "expected PJRT API 0.57 or later, got 1.81");
  drop_copy(path);
}

TEST(pjrt, a_plugin_without_an_api_is_named) {
  char* path = NULL;
  const fake_control* copy = fake_copy(&path);
  copy->api("", 0, 81);
  expect_refused(path, TT_INVALID_ARGUMENT, "expected a PJRT plugin, got a GetPjrtApi that gives none");
  drop_copy(path);
}

TEST(pjrt, a_plugin_that_does_not_initialise_is_tried_again) {
  char* path = NULL;
  tt_plugin* plugin = NULL;
  const fake_control* copy = fake_copy(&path);
  copy->fail("PJRT_Plugin_Initialize", 1, TT_UNAVAILABLE, "the chip is busy");
  expect_refused(path, TT_UNAVAILABLE, "PJRT_Plugin_Initialize: the chip is busy");
  EXPECT_OK(tt_plugin_load(path, &plugin));
  EXPECT_STR(tt_plugin_path(plugin), path);
  tt_plugin_release(plugin);
  EXPECT_OK(tt_plugin_load(path, &plugin));
  EXPECT_EQ_INT(copy->calls("PJRT_Plugin_Initialize"), 2);  // once a library, not once a load
  tt_plugin_release(plugin);
  drop_copy(path);
}

// ---- clients --------------------------------------------------------------------------------------------------------------

static tt_plugin* load(void) {
  tt_plugin* plugin = NULL;
  EXPECT_OK(tt_plugin_load(TT_FAKE_PLUGIN, &plugin));
  return plugin;
}

TEST(pjrt, a_client_shows_its_devices) {
  begin();
  fake()->machine(3, "cpu");
  tt_plugin* plugin = load();
  tt_client* client = NULL;
  REQUIRE_OK(tt_client_create(plugin, 0, NULL, &client));
  EXPECT_EQ_INT(tt_client_device_count(client), 3);
  EXPECT_STR(tt_client_platform(client), "cpu");
  EXPECT_TRUE(tt_client_is_cpu(client));
  EXPECT_EQ_INT(tt_pjrt_device_id(tt_client_device(client, 2)), 2);
  EXPECT_STR(tt_pjrt_device_kind(tt_client_device(client, 0)), "fake chip");
  EXPECT_TRUE(tt_client_device(client, 3) == NULL && tt_client_device(client, -1) == NULL);
  tt_client_release(client);
  tt_plugin_release(plugin);
  end();
}

// Whatever fails while a client is made, nothing is left, and the error names the plugin and the call.
TEST(pjrt, a_client_that_fails_half_way_leaves_nothing) {
  static const char* const functions[] = {
      "PJRT_Client_Create",         "PJRT_Client_PlatformName",       "PJRT_Client_PlatformVersion",
      "PJRT_Device_GetDescription", "PJRT_Client_AddressableDevices", "PJRT_DeviceDescription_Id",
      "PJRT_DeviceDescription_Kind"};
  begin();
  tt_plugin* plugin = load();
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
    tt_client* client = NULL;
    fake()->machine(2, NULL);
    fake()->fail(functions[i], strstr(functions[i], "Device_") != NULL ? 2 : 1, TT_UNAVAILABLE, "no answer");
    tt_status status = tt_client_create(plugin, 0, NULL, &client);
    EXPECT_TRUE(strstr(tt_status_text(status), functions[i]) != NULL);
    EXPECT_TRUE(strstr(tt_status_text(status), "opening devices with " TT_FAKE_PLUGIN) != NULL);
    EXPECT_STATUS(status, TT_UNAVAILABLE, "no answer");
    EXPECT_EQ_INT(fake()->live(), 0);
    fake()->reset();
  }
  tt_plugin_release(plugin);
  end();
}

TEST(pjrt, memory_is_unknown_where_the_plugin_does_not_tell) {
  begin();
  tt_plugin* plugin = load();
  tt_client* client = NULL;
  int64_t used = 0;
  int64_t limit = 0;
  REQUIRE_OK(tt_client_create(plugin, 0, NULL, &client));
  EXPECT_STATUS(tt_pjrt_device_memory(tt_client_device(client, 0), &used, &limit), TT_UNIMPLEMENTED, "fake chip");
  fake()->memory_limit(1 << 20);
  EXPECT_OK(tt_pjrt_device_memory(tt_client_device(client, 0), &used, &limit));
  EXPECT_EQ_INT(limit, 1 << 20);
  EXPECT_EQ_INT(used, 0);
  tt_client_release(client);
  tt_plugin_release(plugin);
  end();
}

// A function beyond the plugin's struct is never called, whatever lies there.
TEST(pjrt, a_function_the_plugin_is_too_old_for_is_not_called) {
  begin();
  tt_plugin* plugin = load();
  tt_client* client = NULL;
  int64_t used = 0;
  int64_t limit = 0;
  REQUIRE_OK(tt_client_create(plugin, 0, NULL, &client));
  fake()->api("PJRT_Device_MemoryStats", 0, 60);
  EXPECT_STATUS(tt_pjrt_device_memory(tt_client_device(client, 0), &used, &limit), TT_UNIMPLEMENTED,
                "PJRT_Device_MemoryStats: expected a plugin that has this function, got one of API 0.60");
  EXPECT_EQ_INT(fake()->calls("PJRT_Device_MemoryStats"), 0);
  fake()->api(NULL, 0, 0);
  tt_client_release(client);
  tt_plugin_release(plugin);
  end();
}
