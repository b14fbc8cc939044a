// SPDX-License-Identifier: Apache-2.0
//
// Hashes: each word and each bit counts, in its place. The map against a plain table over random operations.
#include "base/hash.h"

#include "base/mem.h"
#include "tt_test.h"

static uint64_t next_random(uint64_t* state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

TEST(hash, every_bit_of_every_word_counts) {
  for (size_t count = 1; count <= 9; ++count) {
    uint64_t words[9] = {0};
    uint64_t base = tt_hash_words(words, count);
    int least = 64;
    for (size_t i = 0; i < count; ++i) {
      for (int bit = 0; bit < 64; ++bit) {
        words[i] ^= UINT64_C(1) << bit;
        int changed = __builtin_popcountll(base ^ tt_hash_words(words, count));
        least = changed < least ? changed : least;
        words[i] ^= UINT64_C(1) << bit;
      }
    }
    EXPECT_TRUE(least >= 8);
  }
}

TEST(hash, order_and_length_count) {
  EXPECT_TRUE(tt_hash_words((uint64_t[]){1, 2}, 2) != tt_hash_words((uint64_t[]){2, 1}, 2));
  EXPECT_TRUE(tt_hash_words((uint64_t[]){0, 0}, 2) != tt_hash_words((uint64_t[]){0}, 1));
  EXPECT_TRUE(tt_hash_words(NULL, 0) == tt_hash_words(NULL, 0));
  EXPECT_TRUE(tt_hash_words((uint64_t[]){1, 2, 3, 4}, 4) != tt_hash_words((uint64_t[]){3, 4, 1, 2}, 4));
}

TEST(hash, small_keys_do_not_collide_in_64_bits_and_spread_in_the_low_ones) {
  enum { KEYS = 1 << 14 };
  uint64_t* seen = tt_malloc(KEYS * sizeof *seen);
  int buckets[256] = {0};
  for (uint64_t i = 0; i < KEYS; ++i) {
    seen[i] = tt_hash_words((uint64_t[]){i & 127, i >> 7, 3}, 3);
    ++buckets[seen[i] & 255];
  }
  tt_map* map = tt_map_create();
  bool distinct = true;
  for (uint64_t i = 0; i < KEYS && distinct; ++i) {
    distinct = tt_map_find(map, &seen[i], 1, seen[i]) == NULL;
    if (distinct) {
      tt_map_insert(map, &seen[i], 1, seen[i], seen);
    }
  }
  EXPECT_TRUE(distinct);
  for (int i = 0; i < 256; ++i) {
    EXPECT_TRUE(buckets[i] > 20 && buckets[i] < 120);  // 64 expected
  }
  tt_map_destroy(map);
  free(seen);
}

TEST(digest, every_byte_counts_and_so_does_the_length) {
  unsigned char bytes[67] = {0};
  tt_digest seed = {0, 0};
  tt_digest base = tt_digest_bytes(bytes, sizeof bytes, seed);
  for (size_t i = 0; i < sizeof bytes; ++i) {
    bytes[i] ^= 1;
    tt_digest other = tt_digest_bytes(bytes, sizeof bytes, seed);
    EXPECT_TRUE(__builtin_popcountll(base.hi ^ other.hi) >= 10 && __builtin_popcountll(base.lo ^ other.lo) >= 10);
    bytes[i] ^= 1;
  }
  for (size_t a = 0; a <= sizeof bytes; ++a) {
    for (size_t b = 0; b < a; ++b) {
      EXPECT_TRUE(!tt_digest_equal(tt_digest_bytes(bytes, a, seed), tt_digest_bytes(bytes, b, seed)));
    }
  }
  EXPECT_TRUE(tt_digest_equal(base, tt_digest_bytes(bytes, sizeof bytes, seed)));
}

TEST(digest, the_seed_counts) {
  tt_digest a = tt_digest_bytes("x", 1, (tt_digest){0, 0});
  tt_digest b = tt_digest_bytes("x", 1, (tt_digest){0, 1});
  tt_digest c = tt_digest_bytes("x", 1, (tt_digest){1, 0});
  EXPECT_TRUE(!tt_digest_equal(a, b) && !tt_digest_equal(a, c) && !tt_digest_equal(b, c));
}

TEST(digest, does_not_depend_on_alignment) {
  unsigned char space[64 + 16];
  for (size_t i = 0; i < sizeof space; ++i) {
    space[i] = (unsigned char)(i * 7);
  }
  unsigned char moved[64 + 17];
  memcpy(moved + 1, space, sizeof space);
  EXPECT_TRUE(
      tt_digest_equal(tt_digest_bytes(space, 61, (tt_digest){0}), tt_digest_bytes(moved + 1, 61, (tt_digest){0})));
}

// Files on disk are named by these: a change of the function must be made on purpose.
TEST(digest, is_stable_between_versions) {
  char hex[33];
  tt_digest_hex(tt_digest_bytes("torch_tpu", 9, (tt_digest){1, 2}), hex);
  EXPECT_STR(hex, "3379ef1111cc768b9a7d26bdcd7b6969");
}

TEST(digest, hex_has_32_digits_with_leading_zeros) {
  char hex[33];
  tt_digest_hex((tt_digest){0xab, 0x1}, hex);
  EXPECT_STR(hex, "00000000000000ab0000000000000001");
}

static void add_up(void* value, void* ctx) {
  *(uintptr_t*)ctx += (uintptr_t)value;
}

static void* number(size_t i) {
  return (void*)(uintptr_t)i;
}

TEST(map, keys_that_share_a_hash_are_told_apart) {
  tt_map* map = tt_map_create();
  uint64_t a[] = {1, 2};
  uint64_t b[] = {1, 3};
  uint64_t c[] = {1};
  tt_map_insert(map, a, 2, 5, number(1));
  tt_map_insert(map, b, 2, 5, number(2));
  tt_map_insert(map, c, 1, 5, number(3));
  a[0] = 99;  // the map has a copy of its own
  EXPECT_TRUE(tt_map_find(map, (uint64_t[]){1, 2}, 2, 5) == number(1));
  EXPECT_TRUE(tt_map_find(map, b, 2, 5) == number(2));
  EXPECT_TRUE(tt_map_find(map, c, 1, 5) == number(3));
  EXPECT_TRUE(tt_map_find(map, a, 2, 5) == NULL);
  EXPECT_TRUE(tt_map_remove(map, b, 2, 5) == number(2));
  EXPECT_TRUE(tt_map_remove(map, b, 2, 5) == NULL);
  EXPECT_TRUE(tt_map_find(map, c, 1, 5) == number(3));
  EXPECT_EQ_INT(tt_map_count(map), 2);
  uintptr_t sum = 0;
  tt_map_each(map, add_up, &sum);
  EXPECT_EQ_INT(sum, 4);
  tt_map_destroy(map);
}

TEST(map, an_empty_key_is_a_key) {
  tt_map* map = tt_map_create();
  EXPECT_TRUE(tt_map_find(map, NULL, 0, 0) == NULL);
  tt_map_insert(map, NULL, 0, 0, number(7));
  EXPECT_TRUE(tt_map_find(map, NULL, 0, 0) == number(7));
  tt_map_destroy(map);
  tt_map_destroy(NULL);
}

TEST(map, inserting_a_key_twice_is_a_bug) {
  tt_map* map = tt_map_create();
  uint64_t key = 4;
  tt_map_insert(map, &key, 1, 4, number(1));
  EXPECT_ABORTS(tt_map_insert(map, &key, 1, 4, number(2)));
  EXPECT_ABORTS(tt_map_insert(map, (uint64_t[]){5}, 1, 5, NULL));
  tt_map_destroy(map);
}

// Few distinct hashes near the top of the table, so that runs are long and wrap around; then good hashes.
static void random_operations(uint64_t seed, uint64_t hash_mask) {
  enum { KEYS = 300, STEPS = 20000 };
  void* model[KEYS] = {NULL};
  size_t live = 0;
  tt_map* map = tt_map_create();
  for (int step = 0; step < STEPS; ++step) {
    uint64_t key = next_random(&seed) % KEYS;
    uint64_t hash = (tt_hash_words(&key, 1) & hash_mask) | (hash_mask == 7 ? 0x3c : 0);
    REQUIRE_TRUE(tt_map_find(map, &key, 1, hash) == model[key]);
    if (model[key] != NULL && next_random(&seed) % 2) {
      REQUIRE_TRUE(tt_map_remove(map, &key, 1, hash) == model[key]);
      model[key] = NULL;
      --live;
    } else if (model[key] == NULL) {
      model[key] = number((size_t)step + 1);
      tt_map_insert(map, &key, 1, hash, model[key]);
      ++live;
    }
    REQUIRE_TRUE(tt_map_count(map) == live);
  }
  tt_map_destroy(map);
}

TEST(map, agrees_with_a_table_over_random_operations) {
  random_operations(1, UINT64_MAX);
  random_operations(2, 7);
  random_operations(3, 63);
}
