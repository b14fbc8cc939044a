// SPDX-License-Identifier: Apache-2.0
//
// Starting the runtime: once, with one clear error if it fails, from any thread, and not across a fork.
#include <pthread.h>

#include "run/device.h"
#include "run_support.h"

TEST(runtime, asking_for_a_plugin_does_not_start_it) {
  begin();
  const char* path = NULL;
  EXPECT_OK(tt_runtime_plugin_path(&path));
  EXPECT_STR(path, TT_FAKE_PLUGIN);
  EXPECT_TRUE(tt_runtime_available());
  EXPECT_TRUE(!tt_runtime_started());
  EXPECT_EQ_INT(fake()->calls("PJRT_Client_Create"), 0);
  end();
}

TEST(runtime, describes_plugin_and_devices) {
  begin();
  fake()->machine(3, NULL);
  tt_runtime_info info;
  EXPECT_OK(tt_runtime_describe(&info));
  EXPECT_STR(info.plugin_path, TT_FAKE_PLUGIN);
  EXPECT_STR(info.platform, "fake");
  EXPECT_STR(info.device_kind, "fake chip");
  EXPECT_EQ_INT(info.device_count, 3);
  EXPECT_TRUE(!info.stand_in && tt_runtime_started());
  EXPECT_EQ_INT(tt_device_count(), 3);
  tt_device* device = NULL;
  EXPECT_OK(tt_device_get(2, &device));
  EXPECT_EQ_INT(tt_device_index(device), 2);
  EXPECT_STATUS(tt_device_get(3, &device), TT_INVALID_ARGUMENT, "expected a tpu device index below 3, got 3");
  EXPECT_STATUS(tt_device_get(-1, &device), TT_INVALID_ARGUMENT, "got -1");
  end();
}

TEST(runtime, a_failed_start_is_reported_again_and_not_retried) {
  begin();
  fake()->fail("PJRT_Client_Create", 1, TT_UNAVAILABLE, "the chip is in use by process 7");
  EXPECT_STATUS(tt_runtime_start(), TT_UNAVAILABLE, "the chip is in use by process 7");
  EXPECT_STATUS(tt_runtime_start(), TT_UNAVAILABLE, "the chip is in use by process 7");
  EXPECT_EQ_INT(tt_device_count(), 0);
  EXPECT_TRUE(!tt_runtime_started());
  EXPECT_EQ_INT(fake()->calls("PJRT_Client_Create"), 1);
  end();
}

TEST(runtime, a_plugin_that_is_not_there_is_named) {
  static const char name[] = "runtime.a_plugin_that_is_not_there_is_named";
  if (!is_child()) {
    free(run_child(name, (const char* const[]){"TORCH_TPU_PLUGIN=/nowhere/plugin.so", NULL}));
    return;
  }
  EXPECT_STATUS(tt_runtime_start(), TT_NOT_FOUND,
                "loading plugin /nowhere/plugin.so: expected a readable file, got: No such file");
  tt_runtime_stop();
}

TEST(runtime, the_device_can_be_switched_off) {
  static const char name[] = "runtime.the_device_can_be_switched_off";
  if (!is_child()) {
    free(run_child(name, (const char* const[]){"TORCH_TPU_PLUGIN=none", NULL}));
    return;
  }
  EXPECT_TRUE(!tt_runtime_available());
  EXPECT_STATUS(tt_runtime_start(), TT_FAILED_PRECONDITION, "switched off by TORCH_TPU_PLUGIN=none");
  EXPECT_EQ_INT(tt_device_count(), 0);
  tt_runtime_stop();
}

static int finds;
static tt_status find_nothing(char** out_path) {
  (void)out_path;
  ++finds;
  TT_FAIL(TT_NOT_FOUND, "install something");
}
static tt_status find_fake(char** out_path) {
  ++finds;
  *out_path = strdup(TT_FAKE_PLUGIN);
  return NULL;
}

TEST(runtime, a_finder_is_asked_when_no_path_is_given) {
  static const char name[] = "runtime.a_finder_is_asked_when_no_path_is_given";
  if (!is_child()) {
    free(run_child(name, (const char* const[]){"TORCH_TPU_PLUGIN=", NULL}));
    return;
  }
  const char* path = NULL;
  EXPECT_STATUS(tt_runtime_plugin_path(&path), TT_NOT_FOUND, "install `xla-cpu-pjrt` (no TPU) or `libtpu`");
  tt_runtime_set_finder(find_nothing);
  EXPECT_STATUS(tt_runtime_plugin_path(&path), TT_NOT_FOUND, "install something");
  tt_runtime_set_finder(find_fake);
  EXPECT_OK(tt_runtime_plugin_path(&path));
  EXPECT_OK(tt_runtime_plugin_path(&path));
  EXPECT_STR(path, TT_FAKE_PLUGIN);
  EXPECT_EQ_INT(finds, 2);  // what was found is kept
  EXPECT_EQ_INT(tt_device_count(), 1);
  tt_runtime_stop();
}

static void* start(void* arg) {
  *(tt_status*)arg = tt_runtime_start();
  return NULL;
}

TEST(runtime, threads_start_it_once) {
  begin();
  pthread_t threads[4];
  tt_status statuses[4] = {NULL};
  for (int i = 0; i < 4; ++i) {
    REQUIRE_TRUE(pthread_create(&threads[i], NULL, start, &statuses[i]) == 0);
  }
  for (int i = 0; i < 4; ++i) {
    (void)pthread_join(threads[i], NULL);
    EXPECT_OK(statuses[i]);
  }
  EXPECT_EQ_INT(fake()->calls("PJRT_Client_Create"), 1);
  end();
}

// A child of a process that has started gets an error at once, and leaves the plugin alone.
TEST(runtime, a_forked_child_gets_an_error) {
  begin();
  tensor x, z;
  make_f32(&x, 3, (const float[]){1, 2, 3});
  EXPECT_OK(add(&x, &x, 1, &z));
  pid_t child = tt_test_fork();
  if (child == 0) {
    float got[3];
    tensor w;
    int before = tt_test_failures;
    EXPECT_TRUE(tt_runtime_in_bad_fork());
    EXPECT_STATUS(tt_copy_to_host(&z.t, got), TT_FAILED_PRECONDITION, "started before fork()");
    EXPECT_STATUS(add(&x, &x, 1, &w), TT_FAILED_PRECONDITION, "'spawn'");
    EXPECT_STATUS(tt_copy_from_host(&x.t, got), TT_FAILED_PRECONDITION, "started before fork()");
    drop(&z);  // nothing of the plugin is called
    _exit(tt_test_failures != before);
  }
  int status = -1;
  (void)waitpid(child, &status, 0);
  EXPECT_EQ_INT(status, 0);
  EXPECT_TRUE(!tt_runtime_in_bad_fork());
  EXPECT_F32(&z, 3, 2, 4, 6);
  drop(&x);
  drop(&z);
  end();
}

TEST(runtime, a_child_may_start_it_after_the_fork) {
  begin();
  pid_t child = tt_test_fork();
  if (child == 0) {
    tensor x;
    int before = tt_test_failures;
    make_f32(&x, 3, (const float[]){1, 2, 3});
    EXPECT_F32(&x, 3, 1, 2, 3);
    _exit(tt_test_failures != before);
  }
  int status = -1;
  (void)waitpid(child, &status, 0);
  EXPECT_EQ_INT(status, 0);
  end();
}

TEST(runtime, memory_is_the_devices_or_the_hosts) {
  begin();
  tt_device* device = NULL;
  int64_t available = 0;
  int64_t total = 0;
  REQUIRE_OK(tt_device_get(0, &device));
  EXPECT_OK(tt_device_memory(device, &available, &total));
  EXPECT_TRUE(total > INT64_C(1) << 28 && available <= total);  // the host's
  fake()->memory_limit(1 << 20);
  EXPECT_OK(tt_device_memory(device, &available, &total));
  EXPECT_EQ_INT(total, 1 << 20);
  EXPECT_EQ_INT(available, 1 << 20);
  end();
}

// ---- random numbers -------------------------------------------------------------------------------------------------------

TEST(runtime, a_generator_hands_out_each_step_once) {
  tt_generator* generator = tt_generator_create(42);
  uint64_t seed = 0;
  uint64_t offset = 1;
  tt_generator_get(generator, &seed, &offset);
  EXPECT_TRUE(seed == 42 && offset == 0);
  tt_generator_set(generator, 7, 100);
  tt_generator_get(generator, &seed, &offset);
  EXPECT_TRUE(seed == 7 && offset == 100);
  tt_generator_release(generator);
  EXPECT_TRUE(tt_device_generator(0) == tt_device_generator(0));
  EXPECT_TRUE(tt_device_generator(0) != tt_device_generator(1));
  EXPECT_TRUE(tt_device_generator(-1) == NULL);
}
