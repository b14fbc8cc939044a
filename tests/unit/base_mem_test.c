// SPDX-License-Identifier: Apache-2.0
//
// Host memory: the allocators' edges, the arena, vectors, text under construction.
#include "base/mem.h"

#include "tt_test.h"

TEST(mem, zero_bytes_are_a_valid_size) {
  void* pieces[] = {tt_malloc(0), tt_calloc(0, 8), tt_realloc(NULL, 0), tt_memdup(NULL, 0)};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(pieces[i] != NULL);
    free(pieces[i]);
  }
}

TEST(mem, calloc_refuses_a_product_that_overflows) {
  EXPECT_ABORTS(free(tt_calloc(SIZE_MAX / 2, 4)));
}

TEST(mem, a_failed_check_aborts) {
  EXPECT_ABORTS(TT_CHECK(1 + 1 == 3));
  TT_CHECK(1 + 1 == 2);
}

TEST(arena, pieces_are_zeroed_aligned_and_apart) {
  tt_arena arena;
  tt_arena_init(&arena);
  unsigned char* pieces[500];
  for (size_t i = 0; i < 500; ++i) {
    size_t size = i * 37 % 900;
    pieces[i] = tt_arena_alloc(&arena, size);
    EXPECT_EQ_INT((uintptr_t)pieces[i] % 16, 0);
    for (size_t b = 0; b < size; ++b) {
      REQUIRE_TRUE(pieces[i][b] == 0);
    }
    memset(pieces[i], (int)(i % 251 + 1), size);
  }
  for (size_t i = 0; i < 500; ++i) {
    for (size_t b = 0; b < i * 37 % 900; ++b) {
      REQUIRE_TRUE(pieces[i][b] == i % 251 + 1);
    }
  }
  tt_arena_deinit(&arena);
}

TEST(arena, a_large_piece_does_not_waste_the_open_block) {
  tt_arena arena;
  tt_arena_init(&arena);
  char* before = tt_arena_alloc(&arena, 16);
  char* large = tt_arena_alloc(&arena, 1 << 20);
  memset(large, 1, 1 << 20);
  char* after = tt_arena_alloc(&arena, 16);
  EXPECT_TRUE(after == before + 16);
  tt_arena_deinit(&arena);
}

TEST(arena, an_arena_that_was_never_used_can_go) {
  tt_arena arena;
  tt_arena_init(&arena);
  tt_arena_deinit(&arena);
  EXPECT_TRUE(arena.head == NULL);
}

TEST(arena, copies) {
  tt_arena arena;
  tt_arena_init(&arena);
  int numbers[] = {1, 2, 3};
  int* copy = tt_arena_dup(&arena, numbers, sizeof numbers);
  numbers[2] = 9;
  EXPECT_EQ_INT(copy[2], 3);
  EXPECT_STR(tt_arena_strdup(&arena, "text"), "text");
  EXPECT_TRUE(tt_arena_dup(&arena, NULL, 0) != NULL);
  tt_arena_deinit(&arena);
}

TEST(vec, grows_and_keeps_its_items) {
  TT_VEC(int) v = {0};
  for (int i = 0; i < 1000; ++i) {
    TT_VEC_PUSH(&v, i * 3);
  }
  EXPECT_EQ_INT(v.count, 1000);
  for (int i = 0; i < 1000; ++i) {
    REQUIRE_TRUE(v.items[i] == i * 3);
  }
  TT_VEC_FREE(&v);
  EXPECT_TRUE(v.items == NULL && v.count == 0);
}

TEST(strbuf, text_is_terminated_after_each_addition) {
  tt_strbuf s = {0};
  EXPECT_TRUE(s.text == NULL);
  tt_strbuf_add(&s, "");
  EXPECT_STR(s.text, "");
  tt_strbuf_add(&s, "a");
  tt_strbuf_addn(&s, "bcd", 2);
  tt_strbuf_addf(&s, "%d%s", 42, "!");
  EXPECT_STR(s.text, "abc42!");
  EXPECT_EQ_INT(s.length, 6);
  tt_strbuf_free(&s);
}

TEST(strbuf, formats_longer_than_its_room) {
  tt_strbuf s = {0};
  char* wide = tt_malloc(5001);
  memset(wide, 'w', 5000);
  wide[5000] = '\0';
  for (int i = 0; i < 3; ++i) {
    tt_strbuf_addf(&s, "%d:%s;", i, wide);
  }
  EXPECT_EQ_INT(s.length, 3 * 5003);
  EXPECT_STR(s.text + 3 * 5003 - 3, "ww;");
  EXPECT_TRUE(strncmp(s.text + 2 * 5003, "2:w", 3) == 0);
  free(wide);
  tt_strbuf_free(&s);
}

TEST(strbuf, take_hands_the_text_over) {
  tt_strbuf s = {0};
  char* empty = tt_strbuf_take(&s);
  EXPECT_STR(empty, "");
  free(empty);
  tt_strbuf_add(&s, "once");
  char* text = tt_strbuf_take(&s);
  EXPECT_TRUE(s.text == NULL && s.length == 0);
  tt_strbuf_add(&s, "again");
  EXPECT_STR(text, "once");
  EXPECT_STR(s.text, "again");
  free(text);
  tt_strbuf_free(&s);
}

TEST(strbuf, holds_bytes_with_zeros) {
  tt_strbuf s = {0};
  tt_strbuf_addn(&s, "a\0b", 3);
  EXPECT_EQ_INT(s.length, 3);
  EXPECT_EQ_INT(s.text[2], 'b');
  tt_strbuf_free(&s);
}
