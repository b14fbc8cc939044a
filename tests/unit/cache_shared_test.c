// SPDX-License-Identifier: Apache-2.0
//
// The disk behind the cache of programs, as processes see it that share a folder. Each process is this program again, running
// the one test cache.a_process_gets_one_program.
#include <dirent.h>
#include <fcntl.h>

#include "base/mem.h"
#include "cache/disk.h"
#include "cache/program.h"
#include "run_support.h"

static const char text[] =
    "module @m {\n  func.func public @main(%arg0: tensor<5xf32>) -> (tensor<5xf32>) {\n"
    "    \"func.return\"(%arg0) : (tensor<5xf32>) -> ()\n  }\n}\n";

static void get_one(int64_t* out_compiled, int64_t* out_loaded) {
  tt_plugin* plugin = NULL;
  tt_client* client = NULL;
  tt_exec* exec = NULL;
  tt_program_stats before;
  tt_program_stats after;
  tt_compile_options options = {.xla_options = NULL};
  begin();
  REQUIRE_OK(tt_plugin_load(TT_FAKE_PLUGIN, &plugin));
  REQUIRE_OK(tt_client_create(plugin, 0, NULL, &client));
  tt_program_stats_get(&before);
  EXPECT_OK(tt_program_get(client, "m", text, &options, &exec));
  EXPECT_EQ_INT(tt_exec_output_count(exec), 1);
  tt_program_stats_get(&after);
  *out_compiled = after.compiled - before.compiled;
  *out_loaded = after.loaded - before.loaded;
  tt_exec_release(exec);
  tt_program_forget();
  tt_client_release(client);
  tt_plugin_release(plugin);
  end();
}

// TT_EXPECT: "compiled", "loaded", or nothing for either.
TEST(cache, a_process_gets_one_program) {
  const char* expect = getenv("TT_EXPECT");
  int64_t compiled = 0;
  int64_t loaded = 0;
  get_one(&compiled, &loaded);
  EXPECT_EQ_INT(compiled + loaded, 1);
  if (expect != NULL) {
    EXPECT_STR(compiled ? "compiled" : "loaded", expect);
  }
}

typedef struct shared_folder {
  char* path;
  char* knob;
} shared_folder;

static shared_folder make_folder(void) {
  shared_folder f = {temporary_folder(), NULL};
  tt_strbuf knob = {0};
  tt_strbuf_addf(&knob, "TORCH_TPU_CACHE_DIR=%s", f.path);
  f.knob = tt_strbuf_take(&knob);
  return f;
}
static void drop_folder(shared_folder* f) {
  remove_folder(f->path);
  free(f->path);
  free(f->knob);
}

static void expect_process(const shared_folder* f, const char* expect) {
  free(run_child("cache.a_process_gets_one_program", (const char* const[]){f->knob, expect, NULL}));
}
static const char compiled[] = "TT_EXPECT=compiled";
static const char loaded[] = "TT_EXPECT=loaded";

// The path of the one file in a folder.
static char* only_file(const char* folder) {
  tt_strbuf path = {0};
  int count = 0;
  DIR* dir = opendir(folder);
  for (struct dirent* d = dir != NULL ? readdir(dir) : NULL; d != NULL; d = readdir(dir)) {
    if (d->d_name[0] != '.') {
      ++count;
      tt_strbuf_free(&path);
      tt_strbuf_addf(&path, "%s/%s", folder, d->d_name);
    }
  }
  if (dir != NULL) {
    (void)closedir(dir);
  }
  EXPECT_EQ_INT(count, 1);
  return tt_strbuf_take(&path);
}

TEST(cache, the_next_process_loads_what_one_has_compiled) {
  shared_folder f = make_folder();
  expect_process(&f, compiled);
  free(only_file(f.path));
  expect_process(&f, loaded);
  drop_folder(&f);
}

TEST(cache, a_damaged_file_is_compiled_again_and_rewritten) {
  shared_folder f = make_folder();
  expect_process(&f, compiled);
  char* path = only_file(f.path);
  EXPECT_TRUE(truncate(path, 100) == 0);
  expect_process(&f, compiled);
  expect_process(&f, loaded);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  EXPECT_TRUE(pwrite(fd, "?", 1, 80) == 1);
  (void)close(fd);
  expect_process(&f, compiled);
  expect_process(&f, loaded);
  free(path);
  drop_folder(&f);
}

// Sound by our checksum, yet not what the plugin takes: its own format may have changed.
TEST(cache, bytes_that_the_plugin_refuses_are_compiled_again_and_rewritten) {
  shared_folder f = make_folder();
  expect_process(&f, compiled);
  char* path = only_file(f.path);
  tt_digest key = {0, 0};
  EXPECT_TRUE(sscanf(strrchr(path, '/') + 1, "%16lx%16lx", &key.hi, &key.lo) == 2);
  EXPECT_OK(tt_disk_write_at(f.path, key, "nonsense", 8));
  free(path);
  free(only_file(f.path));
  expect_process(&f, compiled);
  expect_process(&f, loaded);
  drop_folder(&f);
}

// Several processes start at once on an empty folder: each ends well, and one sound file is left.
TEST(cache, processes_fill_an_empty_folder_together) {
  shared_folder f = make_folder();
  pid_t starters[3];
  for (int i = 0; i < 3; ++i) {
    starters[i] = tt_test_fork();
    if (starters[i] == 0) {
      char* errors = run_child("cache.a_process_gets_one_program", (const char* const[]){f.knob, NULL});
      _exit(errors == NULL);
    }
  }
  for (int i = 0; i < 3; ++i) {
    int status = -1;
    (void)waitpid(starters[i], &status, 0);
    EXPECT_EQ_INT(status, 0);
  }
  free(only_file(f.path));
  expect_process(&f, loaded);
  drop_folder(&f);
}

static int count_of(const char* where, const char* part) {
  int n = 0;
  for (const char* at = where; at != NULL && (at = strstr(at, part)) != NULL; ++at) {
    ++n;
  }
  return n;
}

// A folder that is there and takes no file (/proc/self is one even for root), and one that cannot be made.
TEST(cache, a_folder_that_cannot_be_written_gives_one_warning) {
  static const char* const cases[][2] = {
      {"TORCH_TPU_CACHE_DIR=/proc/self",       "the tpu program cache is not written: cannot write /proc/self/"    },
      {"TORCH_TPU_CACHE_DIR=/dev/null/folder", "the tpu program cache is not written: cannot make /dev/null/folder"},
  };
  static const char name[] = "cache.a_folder_that_cannot_be_written_gives_one_warning";
  if (is_child()) {
    int64_t n[2];
    for (int i = 0; i < 3; ++i) {
      get_one(&n[0], &n[1]);
      EXPECT_EQ_INT(n[0], 1);  // work goes on
    }
    return;
  }
  for (int i = 0; i < 2; ++i) {
    char* errors = run_child(name, (const char* const[]){cases[i][0], NULL});
    EXPECT_EQ_INT(count_of(errors, cases[i][1]), 1);
    EXPECT_EQ_INT(count_of(errors, "warning"), 1);
    free(errors);
  }
}

TEST(cache, the_text_of_a_program_is_dumped_on_demand) {
  shared_folder f = make_folder();
  tt_strbuf knob = {0};
  tt_strbuf_addf(&knob, "TORCH_TPU_DUMP=%s", f.path);
  free(run_child("cache.a_process_gets_one_program", (const char* const[]){knob.text, NULL}));
  char* path = only_file(f.path);
  EXPECT_TRUE(strstr(path, "/m.") != NULL && strstr(path, ".mlir") != NULL);
  free(path);
  tt_strbuf_free(&knob);
  drop_folder(&f);
}
