// SPDX-License-Identifier: Apache-2.0
//
// Word hash (multiply and fold), byte digest (two lanes of invertible steps, so that no single difference is lost) and
// an open-addressing map with backward-shift deletion.
#include "base/hash.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

__extension__ typedef unsigned __int128 uint128;

#define ODD_A UINT64_C(0x9e3779b97f4a7c15)
#define ODD_B UINT64_C(0xc2b2ae3d27d4eb4f)
#define ODD_C UINT64_C(0xd6e8feb86659fd93)

static uint64_t fold(uint64_t a, uint64_t b) {
  uint128 product = (uint128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t rotate(uint64_t x, int by) {
  return x << by | x >> (64 - by);
}

static uint64_t scramble(uint64_t x) {
  x = (x ^ x >> 32) * ODD_C;
  x = (x ^ x >> 29) * ODD_A;
  return x ^ x >> 32;
}

uint64_t tt_hash_words(const uint64_t* words, size_t count) {
  uint64_t a = ODD_A ^ count;
  uint64_t b = ODD_B;
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    a = fold(a ^ words[i], words[i + 1] ^ ODD_B) + ODD_C;
    b = fold(b ^ words[i + 2], words[i + 3] ^ ODD_A) + ODD_C;
  }
  for (; i < count; ++i) {
    a = rotate(a ^ words[i] * ODD_B, 31) * ODD_A + ODD_C;
  }
  return scramble(a ^ rotate(b, 23));
}

tt_digest tt_digest_bytes(const void* bytes, size_t size, tt_digest seed) {
  const unsigned char* p = bytes;
  uint64_t a = seed.hi ^ ODD_A;
  uint64_t b = seed.lo ^ ODD_B;
  for (size_t left = size; left > 0;) {
    uint64_t block[2] = {0, 0};
    size_t n = left < sizeof block ? left : sizeof block;
    memcpy(block, p, n);
    a = rotate(a ^ scramble(block[0]), 27) * ODD_B + b;
    b = rotate(b ^ scramble(block[1]), 35) * ODD_C + a;
    p += n;
    left -= n;
  }
  // The length tells a short last block from one padded with zeros.
  a ^= (uint64_t)size;
  for (int round = 0; round < 3; ++round) {
    a = scramble(a) + b;
    b = scramble(b) + a;
  }
  return (tt_digest){a, b};
}

bool tt_digest_equal(tt_digest a, tt_digest b) {
  return a.hi == b.hi && a.lo == b.lo;
}

void tt_digest_hex(tt_digest digest, char out[33]) {
  (void)snprintf(out, 33, "%016llx%016llx", (unsigned long long)digest.hi, (unsigned long long)digest.lo);
}

// ---- map ----------------------------------------------------------------------------------------------------------

typedef struct map_slot {
  uint64_t hash;
  uint64_t* key;
  size_t words;
  void* value;  // NULL: free
} map_slot;

struct tt_map {
  map_slot* slots;
  size_t capacity;  // a power of two
  size_t count;
};

enum { FIRST_CAPACITY = 64 };

tt_map* tt_map_create(void) {
  tt_map* map = tt_calloc(1, sizeof *map);
  map->capacity = FIRST_CAPACITY;
  map->slots = tt_calloc(map->capacity, sizeof *map->slots);
  return map;
}

void tt_map_destroy(tt_map* map) {
  if (map == NULL) {
    return;
  }
  for (size_t i = 0; i < map->capacity; ++i) {
    free(map->slots[i].key);
  }
  free(map->slots);
  free(map);
}

// The slot of the key, or the free slot where its search ends.
static size_t locate(const tt_map* map, const uint64_t* key, size_t words, uint64_t hash) {
  size_t mask = map->capacity - 1;
  size_t at = (size_t)hash & mask;
  for (;; at = (at + 1) & mask) {
    const map_slot* slot = &map->slots[at];
    if (slot->value == NULL) {
      return at;
    }
    if (slot->hash == hash && slot->words == words &&
        (words == 0 || memcmp(slot->key, key, words * sizeof *key) == 0)) {
      return at;
    }
  }
}

void* tt_map_find(const tt_map* map, const uint64_t* key, size_t words, uint64_t hash) {
  return map->slots[locate(map, key, words, hash)].value;
}

static void grow(tt_map* map) {
  map_slot* old = map->slots;
  size_t old_capacity = map->capacity;
  map->capacity *= 2;
  map->slots = tt_calloc(map->capacity, sizeof *map->slots);
  size_t mask = map->capacity - 1;
  for (size_t i = 0; i < old_capacity; ++i) {
    if (old[i].value != NULL) {
      size_t at = (size_t)old[i].hash & mask;
      while (map->slots[at].value != NULL) {
        at = (at + 1) & mask;
      }
      map->slots[at] = old[i];
    }
  }
  free(old);
}

void tt_map_insert(tt_map* map, const uint64_t* key, size_t words, uint64_t hash, void* value) {
  TT_CHECK(value != NULL);
  if ((map->count + 1) * 4 > map->capacity * 3) {
    grow(map);
  }
  map_slot* slot = &map->slots[locate(map, key, words, hash)];
  TT_CHECK(slot->value == NULL);
  *slot = (map_slot){hash, tt_memdup(key, words * sizeof *key), words, value};
  ++map->count;
}

void* tt_map_remove(tt_map* map, const uint64_t* key, size_t words, uint64_t hash) {
  size_t mask = map->capacity - 1;
  size_t hole = locate(map, key, words, hash);
  void* value = map->slots[hole].value;
  if (value == NULL) {
    return NULL;
  }
  free(map->slots[hole].key);
  // Pull back each later slot of the run whose home does not lie after the hole, so that searches still reach it.
  for (size_t at = (hole + 1) & mask; map->slots[at].value != NULL; at = (at + 1) & mask) {
    size_t home = (size_t)map->slots[at].hash & mask;
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      map->slots[hole] = map->slots[at];
      hole = at;
    }
  }
  map->slots[hole] = (map_slot){0};
  --map->count;
  return value;
}

size_t tt_map_count(const tt_map* map) {
  return map->count;
}

void tt_map_each(const tt_map* map, void (*fn)(void* value, void* ctx), void* ctx) {
  for (size_t i = 0; i < map->capacity; ++i) {
    if (map->slots[i].value != NULL) {
      fn(map->slots[i].value, ctx);
    }
  }
}
