// SPDX-License-Identifier: Apache-2.0
//
// Host memory. These abort with one line when the host is out of memory: nothing above this file checks for NULL.
#ifndef TT_BASE_MEM_H
#define TT_BASE_MEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

void* tt_malloc(size_t size);
void* tt_calloc(size_t count, size_t size);
void* tt_realloc(void* p, size_t size);
char* tt_strdup(const char* text);
void* tt_memdup(const void* p, size_t size);

// A bump allocator: memory lives until the arena goes. Not thread-safe.
typedef struct tt_arena {
  struct tt_arena_block* head;
} tt_arena;
void tt_arena_init(tt_arena* arena);
void tt_arena_deinit(tt_arena* arena);
void* tt_arena_alloc(tt_arena* arena, size_t size);  // zeroed, aligned to 16
void* tt_arena_dup(tt_arena* arena, const void* p, size_t size);
char* tt_arena_strdup(tt_arena* arena, const char* text);

// A growable array: struct { T* items; size_t count, capacity; }.
#define TT_VEC(T)           \
  struct {                  \
    T* items;               \
    size_t count, capacity; \
  }
#define TT_VEC_PUSH(v, ...)                                                    \
  do {                                                                         \
    if ((v)->count == (v)->capacity) {                                         \
      (v)->capacity = (v)->capacity ? (v)->capacity * 2 : 8;                   \
      (v)->items = tt_realloc((v)->items, (v)->capacity * sizeof *(v)->items); \
    }                                                                          \
    (v)->items[(v)->count++] = (__VA_ARGS__);                                  \
  } while (0)
#define TT_VEC_FREE(v) (free((v)->items), (v)->items = NULL, (v)->count = (v)->capacity = 0)

// Text under construction. `text` is always NUL-terminated once something was added (NULL before).
typedef struct tt_strbuf {
  char* text;
  size_t length, capacity;
} tt_strbuf;
void tt_strbuf_add(tt_strbuf* s, const char* text);
void tt_strbuf_addn(tt_strbuf* s, const char* text, size_t n);
void tt_strbuf_addf(tt_strbuf* s, const char* fmt, ...) __attribute__((format(printf, 2, 3)));
char* tt_strbuf_take(tt_strbuf* s);  // hands the text over ("" if empty); the buffer is empty again
void tt_strbuf_free(tt_strbuf* s);
char* tt_vformat(const char* fmt, va_list args) __attribute__((format(printf, 1, 0)));  // malloc'ed text

#define TT_CLEANUP(fn) __attribute__((cleanup(fn)))

// Bugs, not inputs: these abort in all builds.
#define TT_CHECK(cond) ((cond) ? (void)0 : tt_check_failed(#cond, __FILE__, __LINE__))
_Noreturn void tt_check_failed(const char* cond, const char* file, int line);

#endif  // TT_BASE_MEM_H
