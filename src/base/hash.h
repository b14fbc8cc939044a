// SPDX-License-Identifier: Apache-2.0
//
// Hashing of word arrays (hot: call keys), 128-bit digests of bytes (program keys, file checksums), and one hash map.
// Not cryptographic.
#ifndef TT_BASE_HASH_H
#define TT_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t tt_hash_words(const uint64_t* words, size_t count);

typedef struct tt_digest {
  uint64_t hi, lo;
} tt_digest;
tt_digest tt_digest_bytes(const void* bytes, size_t size, tt_digest seed);
bool tt_digest_equal(tt_digest a, tt_digest b);
void tt_digest_hex(tt_digest digest, char out[33]);

// Word-array keys -> pointers. The map copies keys and owns neither values nor locks. Values must not be NULL.
typedef struct tt_map tt_map;
tt_map* tt_map_create(void);
void tt_map_destroy(tt_map* map);
void* tt_map_find(const tt_map* map, const uint64_t* key, size_t words, uint64_t hash);          // NULL if absent
void tt_map_insert(tt_map* map, const uint64_t* key, size_t words, uint64_t hash, void* value);  // absent before
void* tt_map_remove(tt_map* map, const uint64_t* key, size_t words, uint64_t hash);              // the value, or NULL
size_t tt_map_count(const tt_map* map);
// Calls `fn` for each value in no particular order; `fn` must not change the map.
void tt_map_each(const tt_map* map, void (*fn)(void* value, void* ctx), void* ctx);

#endif  // TT_BASE_HASH_H
