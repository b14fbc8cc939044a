// SPDX-License-Identifier: Apache-2.0
//
// The C test harness. A test is a sentence in a room and registers itself; all test files linked together are one program:
//
//     TEST(map, a_removed_key_is_not_found) { EXPECT_TRUE(tt_map_find(...) == NULL); }
//
// EXPECT_* note a failure and go on; REQUIRE_* also leave the function. Statuses given to either are freed. A test that
// ends with more live objects than it began with fails. Arguments of the program select tests by substring of "room.sentence".
#ifndef TT_TESTS_TT_TEST_H
#define TT_TESTS_TT_TEST_H

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/obj.h"
#include "tt/status.h"

typedef struct tt_test_case {
  struct tt_test_case* next;
  const char* name;
  void (*run)(void);
} tt_test_case;

// Weak: every test file has a copy, the linker keeps one.
#define TT_TEST_SHARED __attribute__((weak))
TT_TEST_SHARED tt_test_case* tt_test_list;
TT_TEST_SHARED int tt_test_failures;  // of the running test
TT_TEST_SHARED int64_t tt_test_live;  // objects alive when it began

#define TEST(room, sentence)                                                          \
  static void test_##room##_##sentence(void);                                         \
  __attribute__((constructor)) static void register_##room##_##sentence(void) {       \
    static tt_test_case test = {NULL, #room "." #sentence, test_##room##_##sentence}; \
    test.next = tt_test_list;                                                         \
    tt_test_list = &test;                                                             \
  }                                                                                   \
  static void test_##room##_##sentence(void)

__attribute__((format(printf, 3, 4))) static inline void tt_test_fail(const char* file, int line, const char* fmt,
                                                                      ...) {
  va_list args;
  va_start(args, fmt);
  (void)printf("  %s:%d: ", file, line);
  (void)vprintf(fmt, args);
  (void)printf("\n");
  va_end(args);
  ++tt_test_failures;
}

static inline bool tt_test_true(bool good, const char* text, const char* file, int line) {
  if (!good) {
    tt_test_fail(file, line, "expected %s", text);
  }
  return good;
}

static inline bool tt_test_int(long long got, long long want, const char* text, const char* file, int line) {
  if (got != want) {
    tt_test_fail(file, line, "expected %s to be %lld, got %lld", text, want, got);
  }
  return got == want;
}

static inline bool tt_test_str(const char* got, const char* want, const char* text, const char* file, int line) {
  bool good = got != NULL && want != NULL ? strcmp(got, want) == 0 : got == want;
  if (!good) {
    tt_test_fail(file, line, "expected %s to be \"%s\", got \"%s\"", text, want ? want : "(null)",
                 got ? got : "(null)");
  }
  return good;
}

static inline bool tt_test_status(tt_status status, tt_code code, const char* part, const char* text, const char* file,
                                  int line) {
  bool good = tt_status_code(status) == code && (part == NULL || strstr(tt_status_text(status), part) != NULL);
  if (!good) {
    tt_test_fail(file, line, "expected %s to give %s%s%s%s, got %s: %s [%s]", text, tt_code_name(code),
                 part ? " with \"" : "", part ? part : "", part ? "\"" : "", tt_code_name(tt_status_code(status)),
                 tt_status_text(status), tt_status_origin(status));
  }
  tt_status_free(status);
  return good;
}

#define EXPECT_TRUE(cond) ((void)tt_test_true((cond), #cond, __FILE__, __LINE__))
#define EXPECT_EQ_INT(got, want) ((void)tt_test_int((long long)(got), (long long)(want), #got, __FILE__, __LINE__))
#define EXPECT_STR(got, want) ((void)tt_test_str((got), (want), #got, __FILE__, __LINE__))
#define EXPECT_OK(status) ((void)tt_test_status((status), TT_OK, NULL, #status, __FILE__, __LINE__))
// `part` must occur in the text; NULL if any text will do.
#define EXPECT_STATUS(status, code, part) ((void)tt_test_status((status), (code), (part), #status, __FILE__, __LINE__))

#define TT_TEST_REQUIRE(good) \
  do {                        \
    if (!(good)) {            \
      return;                 \
    }                         \
  } while (0)
#define REQUIRE_TRUE(cond) TT_TEST_REQUIRE(tt_test_true((cond), #cond, __FILE__, __LINE__))
#define REQUIRE_OK(status) TT_TEST_REQUIRE(tt_test_status((status), TT_OK, NULL, #status, __FILE__, __LINE__))

// Runs `statement` in a forked child, which must end by abort().
#define EXPECT_ABORTS(statement)                                                                    \
  do {                                                                                              \
    pid_t tt_test_child = tt_test_fork();                                                           \
    if (tt_test_child == 0) {                                                                       \
      statement;                                                                                    \
      _exit(0);                                                                                     \
    }                                                                                               \
    (void)tt_test_true(tt_test_aborted(tt_test_child), #statement " to abort", __FILE__, __LINE__); \
  } while (0)

static inline pid_t tt_test_fork(void) {
  (void)fflush(stdout);
  pid_t child = fork();
  if (child == 0 && freopen("/dev/null", "w", stderr) == NULL) {
    _exit(1);
  }
  return child;
}

static inline bool tt_test_aborted(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

// For a test that makes objects which live until the program ends (a client shared by several tests).
static inline void tt_test_keep_objects(void) {
  tt_test_live = tt_ledger_live(NULL, NULL);
}

static inline void tt_test_report_live(const char* name, int64_t live, void* ctx) {
  (void)ctx;
  (void)printf("  %lld live objects of kind %s\n", (long long)live, name);
}

static inline bool tt_test_run(const tt_test_case* test) {
  tt_test_failures = 0;
  tt_test_live = tt_ledger_live(NULL, NULL);
  test->run();
  if (tt_ledger_live(NULL, NULL) > tt_test_live) {
    tt_test_fail(test->name, 0, "expected no objects left over");
    (void)tt_ledger_live(tt_test_report_live, NULL);
  }
  if (tt_test_failures > 0) {
    (void)printf("FAILED %s\n", test->name);
  }
  (void)fflush(stdout);
  return tt_test_failures == 0;
}

TT_TEST_SHARED int main(int argc, char** argv) {
  int passed = 0;
  int failed = 0;
  for (const tt_test_case* test = tt_test_list; test != NULL; test = test->next) {
    bool chosen = argc == 1;
    for (int i = 1; i < argc; ++i) {
      chosen = chosen || strstr(test->name, argv[i]) != NULL;
    }
    if (chosen) {
      *(tt_test_run(test) ? &passed : &failed) += 1;
    }
  }
  (void)printf("%d passed, %d failed\n", passed, failed);
  return failed > 0 || passed == 0;
}

#endif  // TT_TESTS_TT_TEST_H
