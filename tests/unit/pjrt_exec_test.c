// SPDX-License-Identifier: Apache-2.0
//
// Programs, buffers and events on a plugin that delays and fails.
#include <pthread.h>
#include <stdatomic.h>

#include "pjrt/pjrt.h"
#include "run_support.h"
#include "tt/hlo.h"

// A client of `devices` devices, the program f(x, y) = x + y of f32[3], and two inputs for it.
typedef struct setting {
  tt_plugin* plugin;
  tt_client* client;
  tt_exec* sum;
  tt_buffer* in[2];
} setting;

static const int64_t three = 3;

static tt_buffer* upload(tt_client* client, float first) {
  const float values[3] = {first, first + 1, first + 2};
  tt_type type = tt_type_make(TT_F32, 1, &three);
  tt_buffer* buffer = NULL;
  EXPECT_OK(tt_buffer_from_host(client, NULL, &type, values, NULL, NULL, &buffer));
  return buffer;
}

// x's memory may serve the result if `alias`.
static tt_exec* compile_sum(tt_client* client, bool alias) {
  tt_builder* b = tt_builder_create();
  tt_type type = tt_type_make(TT_F32, 1, &three);
  tt_val x = tt_param(b, &type);
  tt_val sum = tt_add(b, x, tt_param(b, &type));
  char* text = NULL;
  tt_exec* exec = NULL;
  if (alias) {
    tt_builder_alias(b, 0, 0);
  }
  EXPECT_OK(tt_builder_finish(b, "sum", 1, &sum, &text));
  EXPECT_OK(tt_exec_compile(client, text, strlen(text), NULL, &exec));
  free(text);
  tt_builder_destroy(b);
  return exec;
}

static setting open_fake(int devices, bool alias) {
  setting s = {
      NULL, NULL, NULL, {NULL, NULL}
  };
  begin();
  fake()->machine(devices, NULL);
  EXPECT_OK(tt_plugin_load(TT_FAKE_PLUGIN, &s.plugin));
  EXPECT_OK(tt_client_create(s.plugin, 0, NULL, &s.client));
  s.sum = compile_sum(s.client, alias);
  s.in[0] = upload(s.client, 1);
  s.in[1] = upload(s.client, 10);
  return s;
}

static void close_fake(setting* s) {
  fake()->delay(false);
  tt_buffer_release(s->in[0]);
  tt_buffer_release(s->in[1]);
  tt_exec_release(s->sum);
  tt_client_release(s->client);
  tt_plugin_release(s->plugin);
  end();
}

static tt_buffer* run(const setting* s, tt_exec* exec) {
  tt_buffer* out = NULL;
  EXPECT_OK(tt_exec_run(exec, NULL, 2, s->in, NULL, &out));
  return out;
}

static void expect_values(tt_buffer* buffer, float a, float b, float c) {
  float got[3] = {0, 0, 0};
  EXPECT_OK(tt_buffer_to_host(buffer, got, sizeof got));
  EXPECT_TRUE(got[0] == a && got[1] == b && got[2] == c);
}

// ---- programs -------------------------------------------------------------------------------------------------------------

TEST(pjrt, a_program_runs) {
  setting s = open_fake(1, false);
  tt_buffer* out = run(&s, s.sum);
  expect_values(out, 11, 13, 15);
  EXPECT_EQ_INT(tt_buffer_bytes(out), 12);
  tt_buffer_release(out);
  close_fake(&s);
}

TEST(pjrt, a_program_survives_as_bytes) {
  setting s = open_fake(1, false);
  tt_exec* again = NULL;
  void* bytes = NULL;
  size_t size = 0;
  REQUIRE_OK(tt_exec_serialize(s.sum, &bytes, &size));
  EXPECT_STATUS(tt_exec_load(s.client, "FAKE", 4, NULL, &again), TT_INVALID_ARGUMENT, "not a serialized executable");
  REQUIRE_OK(tt_exec_load(s.client, bytes, size, NULL, &again));
  tt_buffer* out = run(&s, again);
  expect_values(out, 11, 13, 15);
  free(bytes);
  tt_buffer_release(out);
  tt_exec_release(again);
  close_fake(&s);
}

TEST(pjrt, a_program_that_does_not_compile_says_why) {
  setting s = open_fake(1, false);
  tt_exec* exec = NULL;
  static const char text[] =
      "module @m {\n  func.func public @main() -> (tensor<f32>) {\n    %0 = \"stablehlo.nonsense\"() : ";
  EXPECT_STATUS(tt_exec_compile(s.client, text, strlen(text), NULL, &exec), TT_INVALID_ARGUMENT,
                "PJRT_Client_Compile: cannot compile: unknown operation stablehlo.nonsense");
  EXPECT_TRUE(exec == NULL);
  close_fake(&s);
}

// Whatever fails while a program is made, nothing of it is left.
TEST(pjrt, a_program_that_fails_half_way_leaves_nothing) {
  static const char* const functions[] = {"PJRT_LoadedExecutable_GetExecutable", "PJRT_Executable_NumOutputs",
                                          "PJRT_Executable_OutputElementTypes", "PJRT_Executable_OutputDimensions"};
  setting s = open_fake(1, false);
  void* bytes = NULL;
  size_t size = 0;
  REQUIRE_OK(tt_exec_serialize(s.sum, &bytes, &size));
  int64_t before = fake()->live();
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
    tt_exec* exec = NULL;
    fake()->fail(functions[i], 1, TT_INTERNAL, "half way");
    EXPECT_STATUS(tt_exec_load(s.client, bytes, size, NULL, &exec), TT_INTERNAL, functions[i]);
    EXPECT_EQ_INT(fake()->live(), before);
  }
  free(bytes);
  close_fake(&s);
}

// Without the figure the program must be taken for one that can donate, and its inputs named as to be kept.
TEST(pjrt, an_old_plugin_without_memory_figures_still_runs) {
  setting s = open_fake(1, false);
  tt_memory_stats stats;
  fake()->api("PJRT_Executable_GetCompiledMemoryStats", 0, 60);
  tt_exec* exec = compile_sum(s.client, true);
  EXPECT_STATUS(tt_exec_memory_stats(exec, &stats), TT_UNIMPLEMENTED, "got one of API 0.60");
  tt_buffer* out = run(&s, exec);
  expect_values(s.in[0], 1, 2, 3);  // nobody gave it up
  expect_values(out, 11, 13, 15);
  tt_buffer_release(out);
  tt_exec_release(exec);
  close_fake(&s);
}

TEST(pjrt, a_donated_input_is_gone_and_not_counted) {
  setting s = open_fake(1, true);
  tt_buffer* out = NULL;
  tt_buffer_stats before;
  tt_buffer_stats after;
  float got[3];
  tt_buffer_stats_get(tt_client_device(s.client, 0), &before);
  EXPECT_OK(tt_exec_run(s.sum, NULL, 2, s.in, (const bool[]){true, false}, &out));
  tt_buffer_stats_get(tt_client_device(s.client, 0), &after);
  EXPECT_EQ_INT(after.bytes, before.bytes);
  EXPECT_EQ_INT(fake()->bytes_in_use(), 24);
  EXPECT_STATUS(tt_buffer_to_host(s.in[0], got, sizeof got), TT_INVALID_ARGUMENT, "deleted or donated");
  expect_values(out, 11, 13, 15);
  tt_buffer_release(out);
  tt_buffer_stats_get(tt_client_device(s.client, 0), &after);
  EXPECT_EQ_INT(after.bytes, before.bytes - 12);
  close_fake(&s);
}

TEST(pjrt, a_refused_launch_leaves_its_inputs) {
  setting s = open_fake(1, true);
  tt_buffer* out = NULL;
  tt_buffer_stats before;
  tt_buffer_stats after;
  tt_buffer_stats_get(tt_client_device(s.client, 0), &before);
  fake()->fail("PJRT_LoadedExecutable_Execute", 1, TT_INTERNAL, "no launch");
  EXPECT_STATUS(tt_exec_run(s.sum, NULL, 2, s.in, (const bool[]){true, false}, &out), TT_INTERNAL, "no launch");
  tt_buffer_stats_get(tt_client_device(s.client, 0), &after);
  EXPECT_EQ_INT(after.bytes, before.bytes);
  EXPECT_EQ_INT(after.allocations, before.allocations);
  expect_values(s.in[0], 1, 2, 3);
  close_fake(&s);
}

TEST(pjrt, a_failure_after_the_launch_is_reported_by_what_depends_on_it) {
  setting s = open_fake(1, false);
  tt_buffer* second = NULL;
  float got[3];
  fake()->fail_later(1, TT_DATA_LOSS, "the chip fell off");
  tt_buffer* first = run(&s, s.sum);
  EXPECT_OK(tt_exec_run(s.sum, NULL, 2, (tt_buffer* const[]){first, s.in[0]}, NULL, &second));
  EXPECT_STATUS(tt_buffer_await(first), TT_DATA_LOSS, "the chip fell off");
  EXPECT_STATUS(tt_buffer_to_host(first, got, sizeof got), TT_DATA_LOSS, "the chip fell off");
  EXPECT_STATUS(tt_buffer_to_host(second, got, sizeof got), TT_DATA_LOSS, "the chip fell off");
  expect_values(s.in[0], 1, 2, 3);
  tt_buffer_release(first);
  tt_buffer_release(second);
  close_fake(&s);
}

TEST(pjrt, a_program_for_a_machine_that_is_not_there_is_not_run) {
  static const char text[] =
      "module @m {\n  func.func public @main(%arg0: tensor<f32>) -> (tensor<f32>) {\n    \"func.return\"(%arg0) : "
      "(tensor<f32>) -> ()\n"
      "  }\n}\n";
  setting s = open_fake(1, false);
  tt_topology* topology = NULL;
  tt_exec* exec = NULL;
  EXPECT_STATUS(tt_topology_create(s.plugin, "fake:9x9", &topology), TT_INVALID_ARGUMENT,
                "describing topology fake:9x9");
  REQUIRE_OK(tt_topology_create(s.plugin, "fake:2x2", &topology));
  EXPECT_EQ_INT(tt_topology_device_count(topology), 4);
  REQUIRE_OK(tt_topology_compile(topology, text, strlen(text), NULL, &exec));
  tt_topology_release(topology);  // the program keeps it
  EXPECT_EQ_INT(tt_exec_output_count(exec), 1);
  EXPECT_STATUS(tt_exec_run(exec, NULL, 0, NULL, NULL, NULL), TT_FAILED_PRECONDITION, "compiled ahead of time");
  tt_exec_release(exec);
  close_fake(&s);
}

// ---- events ---------------------------------------------------------------------------------------------------------------

static void note_ready(tt_status status, void* ctx) {
  atomic_fetch_add((atomic_int*)ctx, status == NULL ? 1 : 100);
  tt_status_free(status);
}

static bool is_ready(tt_event* event) {
  bool ready = false;
  EXPECT_OK(tt_event_is_ready(event, &ready));
  return ready;
}

TEST(pjrt, an_event_is_done_when_the_plugin_says_so) {
  setting s = open_fake(1, false);
  tt_event* event = NULL;
  tt_event* copied = NULL;
  atomic_int told = 0;
  float got[3] = {0, 0, 0};
  fake()->delay(true);
  tt_buffer* out = run(&s, s.sum);
  REQUIRE_OK(tt_buffer_ready_event(out, &event));
  REQUIRE_OK(tt_buffer_to_host_async(out, got, sizeof got, &copied));
  EXPECT_OK(tt_event_on_ready(event, note_ready, &told));
  EXPECT_TRUE(!is_ready(event) && atomic_load(&told) == 0);
  EXPECT_EQ_INT(fake()->release(1), 1);
  EXPECT_TRUE(is_ready(event) && atomic_load(&told) == 1);
  EXPECT_TRUE(!is_ready(copied) && got[0] == 0);
  EXPECT_EQ_INT(fake()->release(1), 1);
  EXPECT_OK(tt_event_await(copied));
  EXPECT_TRUE(got[0] == 11);
  EXPECT_OK(tt_event_on_ready(event, note_ready, &told));  // done already
  EXPECT_EQ_INT(atomic_load(&told), 2);
  tt_buffer_release(out);  // events outlive their buffers
  tt_event_destroy(event);
  tt_event_destroy(copied);
  close_fake(&s);
}

static void* release_when_awaited(void* arg) {
  (void)arg;
  fake()->await_waiter();
  fake()->delay(false);  // the wait for the result and the copy after it
  return NULL;
}

TEST(pjrt, reading_waits_until_the_result_is_there) {
  setting s = open_fake(1, false);
  pthread_t thread;
  fake()->delay(true);
  tt_buffer* out = run(&s, s.sum);
  REQUIRE_TRUE(pthread_create(&thread, NULL, release_when_awaited, NULL) == 0);
  expect_values(out, 11, 13, 15);
  (void)pthread_join(thread, NULL);
  tt_buffer_release(out);
  close_fake(&s);
}

static void note_kept(void* ctx) {
  atomic_fetch_add((atomic_int*)ctx, 1);
}

TEST(pjrt, host_bytes_are_given_back_once) {
  static const float values[3] = {1, 2, 3};
  setting s = open_fake(1, false);
  tt_type type = tt_type_make(TT_F32, 1, &three);
  tt_buffer* b = NULL;
  atomic_int kept = 0;
  fake()->delay(true);
  EXPECT_OK(tt_buffer_from_host(s.client, NULL, &type, values, note_kept, &kept, &b));
  tt_buffer_release(b);  // the bytes are the plugin's still
  EXPECT_EQ_INT(atomic_load(&kept), 0);
  fake()->delay(false);
  EXPECT_EQ_INT(atomic_load(&kept), 1);
  EXPECT_OK(tt_buffer_from_host(s.client, NULL, &type, values, note_kept, &kept, &b));
  EXPECT_EQ_INT(atomic_load(&kept), 2);
  tt_buffer_release(b);
  fake()->fail("PJRT_Event_OnReady", 1, TT_INTERNAL, "no callbacks");  // then it waits itself
  EXPECT_OK(tt_buffer_from_host(s.client, NULL, &type, values, note_kept, &kept, &b));
  EXPECT_EQ_INT(atomic_load(&kept), 3);
  tt_buffer_release(b);
  fake()->fail("PJRT_Client_BufferFromHostBuffer", 1, TT_RESOURCE_EXHAUSTED, "full");
  EXPECT_STATUS(tt_buffer_from_host(s.client, NULL, &type, values, note_kept, &kept, &b), TT_RESOURCE_EXHAUSTED,
                "full");
  EXPECT_EQ_INT(atomic_load(&kept), 3);  // after an error they are the caller's
  close_fake(&s);
}

// ---- sizes and devices ----------------------------------------------------------------------------------------------------

TEST(pjrt, a_read_of_the_wrong_size_is_refused) {
  setting s = open_fake(1, false);
  float got[2];
  EXPECT_STATUS(tt_buffer_to_host(s.in[0], got, sizeof got), TT_INVALID_ARGUMENT,
                "expected room for the 12 bytes of f32[3], got 8");
  close_fake(&s);
}

TEST(pjrt, an_empty_buffer_comes_and_goes) {
  setting s = open_fake(1, false);
  int64_t dims[2] = {0, 4};
  tt_type type = tt_type_make(TT_I64, 2, dims);
  tt_buffer* buffer = NULL;
  REQUIRE_OK(tt_buffer_from_host(s.client, NULL, &type, NULL, NULL, NULL, &buffer));
  EXPECT_OK(tt_buffer_to_host(buffer, NULL, 0));
  tt_buffer_release(buffer);
  close_fake(&s);
}

TEST(pjrt, a_buffer_is_copied_to_another_device_and_to_its_own) {
  setting s = open_fake(2, false);
  tt_buffer *there = NULL, *own = NULL;
  EXPECT_OK(tt_buffer_copy_to_device(s.in[0], tt_client_device(s.client, 1), &there));
  EXPECT_OK(tt_buffer_copy_to_device(s.in[0], tt_client_device(s.client, 0), &own));
  expect_values(there, 1, 2, 3);
  expect_values(own, 1, 2, 3);
  EXPECT_EQ_INT(fake()->calls("PJRT_Buffer_CopyToDevice"), 1);
  tt_buffer_release(there);
  tt_buffer_release(own);
  close_fake(&s);
}

TEST(pjrt, out_of_memory_is_a_status) {
  static const float values[3] = {1, 2, 3};
  setting s = open_fake(1, false);
  tt_type type = tt_type_make(TT_F32, 1, &three);
  tt_buffer* third = NULL;
  fake()->memory_limit(30);
  EXPECT_STATUS(tt_buffer_from_host(s.client, NULL, &type, values, NULL, NULL, &third), TT_RESOURCE_EXHAUSTED,
                "PJRT_Client_BufferFromHostBuffer: out of memory allocating 12 bytes");
  tt_buffer_release(s.in[0]);
  s.in[0] = NULL;
  EXPECT_OK(tt_buffer_from_host(s.client, NULL, &type, values, NULL, NULL, &third));
  tt_buffer_release(third);
  close_fake(&s);
}
