// SPDX-License-Identifier: Apache-2.0
//
// Statuses: what they carry, how context is added, copies.
#include "base/mem.h"
#include "tt_test.h"

static tt_status fails(int size) {
  TT_FAIL(TT_OUT_OF_RANGE, "expected a size below 4, got %d", size);
}

static tt_status passes_on(int size, bool* went_on) {
  TT_TRY(fails(size));
  *went_on = true;
  return NULL;
}

static tt_status adds_context(int size) {
  TT_TRY_CTX(fails(size), "slicing %s", "x");
  return NULL;
}

TEST(status, carries_code_text_and_place) {
  tt_status status = fails(7);
  EXPECT_EQ_INT(tt_status_code(status), TT_OUT_OF_RANGE);
  EXPECT_STR(tt_status_text(status), "expected a size below 4, got 7");
  EXPECT_TRUE(strncmp(tt_status_origin(status), "base_status_test.c:", 19) == 0);
  EXPECT_EQ_INT(atoi(tt_status_origin(status) + 19), 8);
  tt_status_free(status);
}

TEST(status, null_is_ok_everywhere) {
  EXPECT_EQ_INT(tt_status_code(NULL), TT_OK);
  EXPECT_STR(tt_status_text(NULL), "ok");
  EXPECT_STR(tt_status_origin(NULL), "");
  EXPECT_OK(tt_status_annotate(NULL, "not %s", "used"));
  EXPECT_TRUE(tt_status_clone(NULL) == NULL);
  tt_status_free(NULL);
}

TEST(status, context_stands_in_front_of_the_text) {
  tt_status status = tt_status_annotate(adds_context(5), "running %s", "narrow");
  EXPECT_STR(tt_status_text(status), "running narrow: slicing x: expected a size below 4, got 5");
  EXPECT_EQ_INT(tt_status_code(status), TT_OUT_OF_RANGE);
  tt_status_free(status);
}

TEST(status, a_failed_try_leaves_the_function) {
  bool went_on = false;
  EXPECT_STATUS(passes_on(4, &went_on), TT_OUT_OF_RANGE, "got 4");
  EXPECT_TRUE(!went_on);
}

TEST(status, a_clone_is_independent) {
  tt_status first = fails(9);
  tt_status second = tt_status_clone(first);
  first = tt_status_annotate(first, "first");
  EXPECT_STR(tt_status_text(second), "expected a size below 4, got 9");
  EXPECT_STR(tt_status_origin(second), tt_status_origin(first));
  tt_status_free(first);
  EXPECT_STATUS(second, TT_OUT_OF_RANGE, "got 9");
}

TEST(status, long_texts_are_kept_whole) {
  char* text = tt_malloc(10001);
  memset(text, 'x', 10000);
  text[10000] = '\0';
  tt_status status = tt_status_annotate(TT_STATUS(TT_INTERNAL, "%s!", text), "at");
  EXPECT_EQ_INT(strlen(tt_status_text(status)), 10005);
  EXPECT_STR(tt_status_text(status) + 10002, "xx!");
  tt_status_free(status);
  free(text);
}

TEST(status, each_code_has_a_name) {
  EXPECT_STR(tt_code_name(TT_OK), "OK");
  EXPECT_STR(tt_code_name(TT_INVALID_ARGUMENT), "INVALID_ARGUMENT");
  EXPECT_STR(tt_code_name(TT_UNAUTHENTICATED), "UNAUTHENTICATED");
  EXPECT_STR(tt_code_name((tt_code)99), "UNKNOWN");
  for (int a = 0; a <= TT_UNAUTHENTICATED; ++a) {
    for (int b = 0; b < a; ++b) {
      EXPECT_TRUE(strcmp(tt_code_name((tt_code)a), tt_code_name((tt_code)b)) != 0);
    }
  }
}

TEST(status, making_one_with_code_ok_is_a_bug) {
  EXPECT_ABORTS(tt_status_free(TT_STATUS(TT_OK, "fine")));
}
