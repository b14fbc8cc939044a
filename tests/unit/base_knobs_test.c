// SPDX-License-Identifier: Apache-2.0
//
// Knobs, log and warnings. The environment is read once a process, so each case runs this program again with its own.
#define _GNU_SOURCE 1
#include "base/knobs.h"

#include <fcntl.h>

#include "base/log.h"
#include "base/mem.h"
#include "tt_test.h"

static bool is_child(void) {
  return getenv("TT_TEST_CHILD") != NULL;
}

// Runs the one test `name` in a new process with `assignments` ("A=1", ..., NULL) as its only knobs. What the process
// writes to stderr is kept; the caller frees it. NULL if the test failed there.
static char* run_child(const char* name, const char* const* assignments) {
  int ends[2];
  if (pipe(ends) != 0) {
    return NULL;
  }
  (void)fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    int nowhere = open("/dev/null", O_WRONLY);
    (void)dup2(nowhere, STDOUT_FILENO);
    (void)dup2(ends[1], STDERR_FILENO);
    const char *row, *type, *help;
    char value[256];
    for (int i = 0; tt_knob_row(i, &row, &type, &help, value, sizeof value); ++i) {
      (void)unsetenv(row);
    }
    for (; *assignments != NULL; ++assignments) {
      (void)putenv(tt_strdup(*assignments));
    }
    (void)setenv("TT_TEST_CHILD", "1", 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)execl("/proc/self/exe", "tt_unit", name, (char*)NULL);
    _exit(127);
  }
  (void)close(ends[1]);
  tt_strbuf text = {0};
  char piece[512];
  for (ssize_t n = 0; (n = read(ends[0], piece, sizeof piece)) > 0;) {
    tt_strbuf_addn(&text, piece, (size_t)n);
  }
  (void)close(ends[0]);
  int status = -1;
  (void)waitpid(child, &status, 0);
  char* written = tt_strbuf_take(&text);
  if (status != 0) {
    (void)printf("  the child wrote: %s\n", written);
    free(written);
    return NULL;
  }
  return written;
}

static void expect_silence(const char* name, const char* const* assignments) {
  char* written = run_child(name, assignments);
  EXPECT_STR(written, "");
  free(written);
}

TEST(knobs, defaults_hold_where_nothing_is_set) {
  if (!is_child()) {
    expect_silence("knobs.defaults_hold", (const char*[]){"TORCH_TPU_CACHE_MIB=", "TORCH_TPU_PLUGIN=", NULL});
    return;
  }
  EXPECT_TRUE(tt_knobs()->plugin == NULL);
  EXPECT_EQ_INT(tt_knobs()->cache_mib, 2048);
  EXPECT_EQ_INT(tt_knobs()->launch_blocking, 0);
  EXPECT_STR(tt_knobs()->fallback, "warn");
}

TEST(knobs, values_come_from_the_environment_and_are_read_once) {
  if (!is_child()) {
    expect_silence("knobs.values_come", (const char*[]){"TORCH_TPU_PLUGIN=/p.so", "TORCH_TPU_CACHE_MIB=-7",
                                                        "TPU_LAUNCH_BLOCKING=On", "TORCH_TPU_FALLBACK=error", NULL});
    return;
  }
  EXPECT_STR(tt_knobs()->plugin, "/p.so");
  EXPECT_EQ_INT(tt_knobs()->cache_mib, -7);
  EXPECT_EQ_INT(tt_knobs()->launch_blocking_short, 1);
  EXPECT_STR(tt_knobs()->fallback, "error");
  (void)setenv("TORCH_TPU_PLUGIN", "/q.so", 1);
  (void)setenv("TORCH_TPU_CACHE_MIB", "5", 1);
  EXPECT_STR(tt_knobs()->plugin, "/p.so");
  EXPECT_EQ_INT(tt_knobs()->cache_mib, -7);
}

TEST(knobs, values_that_do_not_parse_are_reported_once) {
  if (!is_child()) {
    char* written = run_child("knobs.values_that_do_not",
                              (const char*[]){"TORCH_TPU_CACHE_MIB=12x", "TORCH_TPU_LAUNCH_BLOCKING=maybe", NULL});
    EXPECT_STR(written,
               "torch_tpu: warning: expected an integer in TORCH_TPU_CACHE_MIB, got \"12x\"; the default is used; "
               "expected 0 or 1 in TORCH_TPU_LAUNCH_BLOCKING, got \"maybe\"; the default is used\n");
    free(written);
    return;
  }
  EXPECT_EQ_INT(tt_knobs()->cache_mib, 2048);
  EXPECT_EQ_INT(tt_knobs()->launch_blocking, 0);
}

TEST(knobs, rows_tell_name_type_help_and_value) {
  if (!is_child()) {
    expect_silence("knobs.rows_tell", (const char*[]){"TORCH_TPU_CACHE_MIB=11", "TPU_LAUNCH_BLOCKING=1", NULL});
    return;
  }
  const char *name, *type, *help;
  char value[64];
  int found = 0;
  int count = 0;
  for (; tt_knob_row(count, &name, &type, &help, value, sizeof value); ++count) {
    EXPECT_TRUE(strstr(name, "TPU_") != NULL && strlen(help) > 10);
    if (strcmp(name, "TORCH_TPU_CACHE_MIB") == 0) {
      EXPECT_STR(type, "integer");
      EXPECT_STR(value, "11");
      ++found;
    } else if (strcmp(name, "TPU_LAUNCH_BLOCKING") == 0) {
      EXPECT_STR(type, "boolean");
      EXPECT_STR(value, "1");
      ++found;
    } else if (strcmp(name, "TORCH_TPU_PLUGIN") == 0) {
      EXPECT_STR(type, "string");
      EXPECT_STR(value, "");
      ++found;
    }
  }
  EXPECT_EQ_INT(found, 3);
  EXPECT_TRUE(!tt_knob_row(-1, &name, &type, &help, value, sizeof value));
  EXPECT_TRUE(!tt_knob_row(count + 5, &name, &type, &help, value, sizeof value));
}

TEST(log, only_the_rooms_named_are_written) {
  if (!is_child()) {
    char* written = run_child("log.only_the_rooms", (const char*[]){"TORCH_TPU_LOG=run,cache", NULL});
    EXPECT_STR(written, "torch_tpu cache: wrote 3 files\n");
    free(written);
    return;
  }
  TT_LOG("cache", "wrote %d files", 3);
  TT_LOG("cach", "a shorter name");
  TT_LOG("pjrt", "another room");
  EXPECT_TRUE(tt_log_on("run") && !tt_log_on("all") && !tt_log_on(""));
}

TEST(log, all_means_each_room) {
  if (!is_child()) {
    char* written = run_child("log.all_means", (const char*[]){"TORCH_TPU_LOG=all", NULL});
    EXPECT_STR(written, "torch_tpu pjrt: yes\n");
    free(written);
    return;
  }
  TT_LOG("pjrt", "yes");
}

TEST(log, nothing_is_written_by_default) {
  if (!is_child()) {
    expect_silence("log.nothing_is", (const char*[]){NULL});
    return;
  }
  int evaluated = 0;
  TT_LOG("run", "%d", ++evaluated);
  EXPECT_EQ_INT(evaluated, 0);
}

static char heard[64];
static void hear(const char* text) {
  (void)snprintf(heard, sizeof heard, "%s", text);
}

TEST(warn, goes_to_the_sink_and_back_to_stderr_without_one) {
  if (!is_child()) {
    char* written = run_child("warn.goes", (const char*[]){NULL});
    EXPECT_STR(written, "torch_tpu: warning: to stderr\n");
    free(written);
    return;
  }
  tt_warn_set_sink(hear);
  tt_warn("op %s runs on the CPU", "aten::x");
  EXPECT_STR(heard, "op aten::x runs on the CPU");
  tt_warn_set_sink(NULL);
  tt_warn("to stderr");
}
