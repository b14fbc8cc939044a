// SPDX-License-Identifier: Apache-2.0
//
// Loading ahead: what a script asked for in one run is in memory before the next run asks.
#include "cache/warm.h"

#include <sched.h>

#include "base/mem.h"
#include "cache/program.h"
#include "run_support.h"

typedef struct setting {
  tt_plugin* plugin;
  tt_client* client;
  tt_program_stats before;
} setting;

static const tt_compile_options no_options = {.xla_options = NULL};

static setting open_fake(const char* script) {
  setting s = {NULL, NULL, {0}};
  EXPECT_OK(tt_plugin_load(TT_FAKE_PLUGIN, &s.plugin));
  EXPECT_OK(tt_client_create(s.plugin, 0, NULL, &s.client));
  tt_program_stats_get(&s.before);
  tt_warm_start(s.client, script, &no_options);
  return s;
}

static void close_fake(setting* s) {
  tt_warm_finish();
  tt_program_forget();
  tt_client_release(s->client);
  tt_plugin_release(s->plugin);
}

static void get(setting* s, int n) {
  tt_exec* exec = NULL;
  tt_strbuf text = {0};
  tt_strbuf_addf(&text,
                 "module @m {\n  func.func public @main(%%arg0: tensor<%dxf32>) -> (tensor<%dxf32>) {\n"
                 "    \"func.return\"(%%arg0) : (tensor<%dxf32>) -> ()\n  }\n}\n",
                 n, n, n);
  EXPECT_OK(tt_program_get(s->client, "m", text.text, &no_options, &exec));
  tt_exec_release(exec);
  tt_strbuf_free(&text);
}

static tt_program_stats since(const setting* s) {
  tt_program_stats now;
  tt_program_stats_get(&now);
  now.compiled -= s->before.compiled;
  now.loaded -= s->before.loaded;
  now.hits -= s->before.hits;
  return now;
}

static void await_loaded(const setting* s, int64_t count) {
  while (since(s).loaded < count) {
    sched_yield();
  }
}

static void in_folder(const char* name) {
  tt_strbuf knob = {0};
  char* folder = temporary_folder();
  tt_strbuf_addf(&knob, "TORCH_TPU_CACHE_DIR=%s", folder);
  free(run_child(name, (const char* const[]){knob.text, NULL}));
  tt_strbuf_free(&knob);
  remove_folder(folder);
  free(folder);
}

TEST(cache, what_a_script_used_last_time_is_loaded_ahead) {
  if (!is_child()) {
    in_folder("cache.what_a_script_used_last_time_is_loaded_ahead");
    return;
  }
  begin();
  setting s = open_fake("a.py");
  get(&s, 2);
  get(&s, 3);
  EXPECT_EQ_INT(since(&s).compiled, 2);
  close_fake(&s);

  s = open_fake("a.py");
  await_loaded(&s, 2);
  get(&s, 3);
  EXPECT_EQ_INT(since(&s).hits, 1);  // 2 is not asked for, and is off the list now
  close_fake(&s);

  s = open_fake("a.py");
  await_loaded(&s, 1);
  get(&s, 2);
  get(&s, 3);
  EXPECT_EQ_INT(since(&s).loaded, 2);
  EXPECT_EQ_INT(since(&s).hits, 1);
  EXPECT_EQ_INT(since(&s).compiled, 0);
  close_fake(&s);

  s = open_fake("b.py");  // another script: nothing ahead
  get(&s, 2);
  EXPECT_EQ_INT(since(&s).hits, 0);
  EXPECT_EQ_INT(since(&s).loaded, 1);
  close_fake(&s);
  end();
}

TEST(cache, a_program_that_does_not_load_ahead_is_compiled_when_asked_for) {
  if (!is_child()) {
    in_folder("cache.a_program_that_does_not_load_ahead_is_compiled_when_asked_for");
    return;
  }
  begin();
  setting s = open_fake("a.py");
  get(&s, 2);
  close_fake(&s);
  fake()->fail("PJRT_Executable_DeserializeAndLoad", 1, TT_INTERNAL, "torn");
  s = open_fake("a.py");
  get(&s, 2);
  EXPECT_EQ_INT(since(&s).compiled + since(&s).loaded, 1);
  close_fake(&s);
  end();
}

TEST(cache, a_list_of_programs_nobody_wants_is_given_up) {
  if (!is_child()) {
    in_folder("cache.a_list_of_programs_nobody_wants_is_given_up");
    return;
  }
  begin();
  enum { MANY = 300, ON_TRUST = 256 };
  setting s = open_fake("a.py");
  for (int n = 1; n <= MANY; ++n) {
    get(&s, n);
  }
  close_fake(&s);
  s = open_fake("a.py");
  await_loaded(&s, ON_TRUST);
  tt_warm_finish();
  EXPECT_EQ_INT(since(&s).loaded, ON_TRUST);
  close_fake(&s);
  end();
}
