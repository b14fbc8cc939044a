// SPDX-License-Identifier: Apache-2.0
//
// The cache of programs in memory: what is compiled, what is not, by one thread and by several.
#include "cache/program.h"

#include <pthread.h>
#include <sched.h>

#include "base/mem.h"
#include "run_support.h"

typedef struct setting {
  tt_plugin* plugin;
  tt_client* client;
  tt_program_stats before;
} setting;

static setting open_fake(void) {
  setting s = {NULL, NULL, {0}};
  begin();
  EXPECT_OK(tt_plugin_load(TT_FAKE_PLUGIN, &s.plugin));
  EXPECT_OK(tt_client_create(s.plugin, 0, NULL, &s.client));
  tt_program_stats_get(&s.before);
  return s;
}

static void close_fake(setting* s) {
  tt_program_forget();
  tt_client_release(s->client);
  tt_plugin_release(s->plugin);
  end();
}

// A program that returns its argument of n elements; each n another.
static tt_status get_with(setting* s, int n, const char* xla_options, tt_exec** out_exec) {
  tt_compile_options options = {.xla_options = xla_options};
  tt_strbuf text = {0};
  tt_strbuf_addf(&text,
                 "module @m {\n  func.func public @main(%%arg0: tensor<%dxf32>) -> (tensor<%dxf32>) {\n"
                 "    \"func.return\"(%%arg0) : (tensor<%dxf32>) -> ()\n  }\n}\n",
                 n, n, n);
  tt_status status = tt_program_get(s->client, "m", text.text, &options, out_exec);
  tt_strbuf_free(&text);
  return status;
}

static tt_exec* get(setting* s, int n) {
  tt_exec* exec = NULL;
  EXPECT_OK(get_with(s, n, NULL, &exec));
  tt_exec_release(exec);
  return exec;  // only to compare
}

static void expect_counts(const setting* s, int compiled, int loaded, int hits, const char* file, int line) {
  tt_program_stats now;
  tt_program_stats_get(&now);
  (void)tt_test_int(now.compiled - s->before.compiled, compiled, "programs compiled", file, line);
  (void)tt_test_int(now.loaded - s->before.loaded, loaded, "programs loaded", file, line);
  (void)tt_test_int(now.hits - s->before.hits, hits, "hits", file, line);
}
#define EXPECT_COUNTS(s, compiled, loaded, hits) expect_counts((s), (compiled), (loaded), (hits), __FILE__, __LINE__)

TEST(cache, the_same_text_is_compiled_once) {
  setting s = open_fake();
  tt_exec* first = get(&s, 3);
  EXPECT_TRUE(get(&s, 3) == first);
  EXPECT_COUNTS(&s, 1, 0, 1);
  EXPECT_EQ_INT(fake()->calls("PJRT_Client_Compile"), 1);
  EXPECT_EQ_INT(fake()->calls("PJRT_Executable_Serialize"), 0);  // no folder, no bytes
  close_fake(&s);
}

TEST(cache, other_text_or_options_are_other_programs) {
  setting s = open_fake();
  tt_exec* exec = NULL;
  (void)get(&s, 3);
  (void)get(&s, 4);
  EXPECT_OK(get_with(&s, 3, "xla_a=1", &exec));
  tt_exec_release(exec);
  EXPECT_OK(get_with(&s, 3, "xla_a=2", &exec));
  tt_exec_release(exec);
  EXPECT_COUNTS(&s, 4, 0, 0);
  close_fake(&s);
}

TEST(cache, a_failure_is_not_remembered) {
  setting s = open_fake();
  tt_exec* exec = NULL;
  fake()->fail("PJRT_Client_Compile", 1, TT_UNAVAILABLE, "compiler on holiday");
  EXPECT_STATUS(get_with(&s, 3, NULL, &exec), TT_UNAVAILABLE, "compiling m: PJRT_Client_Compile: compiler on holiday");
  EXPECT_TRUE(exec == NULL);
  (void)get(&s, 3);
  EXPECT_COUNTS(&s, 1, 0, 0);
  close_fake(&s);
}

TEST(cache, forgetting_leaves_programs_in_use) {
  setting s = open_fake();
  tt_exec* exec = NULL;
  EXPECT_OK(get_with(&s, 3, NULL, &exec));
  tt_program_forget();
  tt_program_stats now;
  tt_program_stats_get(&now);
  EXPECT_EQ_INT(now.held, 0);
  EXPECT_EQ_INT(tt_exec_output_count(exec), 1);
  tt_exec_release(exec);
  close_fake(&s);
}

TEST(cache, the_least_recently_used_program_leaves_first) {
  if (!is_child()) {
    free(run_child("cache.the_least_recently_used_program_leaves_first",
                   (const char* const[]){"TORCH_TPU_CACHE_PROGRAMS=2", NULL}));
    return;
  }
  setting s = open_fake();
  (void)get(&s, 1);
  (void)get(&s, 2);
  (void)get(&s, 1);
  (void)get(&s, 3);  // 2 leaves
  EXPECT_COUNTS(&s, 3, 0, 1);
  tt_program_stats now;
  tt_program_stats_get(&now);
  EXPECT_EQ_INT(now.held, 2);
  (void)get(&s, 1);
  EXPECT_COUNTS(&s, 3, 0, 2);
  (void)get(&s, 2);
  EXPECT_COUNTS(&s, 4, 0, 2);
  close_fake(&s);
}

// ---- threads --------------------------------------------------------------------------------------------------------------

typedef struct asker {
  setting* s;
  tt_exec* exec;
  tt_code code;
} asker;

static void* ask(void* arg) {
  asker* a = arg;
  tt_status status = get_with(a->s, 3, NULL, &a->exec);
  a->code = tt_status_code(status);
  tt_status_free(status);
  return NULL;
}

static void await_requests(const setting* s, int64_t n) {
  for (tt_program_stats now = s->before; now.requests - s->before.requests < n; tt_program_stats_get(&now)) {
    (void)sched_yield();
  }
}

// Four threads ask for one program while its compilation is held up.
static void ask_at_once(setting* s, asker askers[4]) {
  pthread_t threads[4];
  fake()->hold_compiles(true);
  for (int i = 0; i < 4; ++i) {
    askers[i] = (asker){s, NULL, TT_OK};
    REQUIRE_TRUE(pthread_create(&threads[i], NULL, ask, &askers[i]) == 0);
  }
  await_requests(s, 4);
  fake()->await_compile();
  fake()->hold_compiles(false);
  for (int i = 0; i < 4; ++i) {
    (void)pthread_join(threads[i], NULL);
  }
}

TEST(cache, threads_that_ask_at_once_compile_once) {
  setting s = open_fake();
  asker askers[4];
  ask_at_once(&s, askers);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(askers[i].exec != NULL && askers[i].exec == askers[0].exec);
    tt_exec_release(askers[i].exec);
  }
  EXPECT_EQ_INT(fake()->calls("PJRT_Client_Compile"), 1);
  EXPECT_COUNTS(&s, 1, 0, 3);
  close_fake(&s);
}

TEST(cache, a_failed_compilation_fails_for_its_own_thread_only) {
  setting s = open_fake();
  asker askers[4];
  fake()->fail("PJRT_Executable_NumOutputs", 1, TT_INTERNAL, "half way");
  ask_at_once(&s, askers);
  int failed = 0;
  for (int i = 0; i < 4; ++i) {
    failed += askers[i].code == TT_INTERNAL;
    EXPECT_TRUE((askers[i].exec != NULL) == (askers[i].code == TT_OK));
    tt_exec_release(askers[i].exec);
  }
  EXPECT_EQ_INT(failed, 1);
  close_fake(&s);
}
