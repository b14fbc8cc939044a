// SPDX-License-Identifier: Apache-2.0
//
// Host memory: allocation that cannot fail, the arena, growing text. Running out of host memory ends here, with a line.
#include "base/mem.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

enum { ARENA_ALIGN = 16, ARENA_FIRST = 4096, ARENA_MOST = 256 * 1024 };

struct tt_arena_block {
  struct tt_arena_block* next;
  size_t used, capacity;
  alignas(ARENA_ALIGN) unsigned char bytes[];
};

_Noreturn static void out_of_memory(size_t size) {
  (void)fprintf(stderr, "torch_tpu: out of host memory (asked for %zu bytes)\n", size);
  abort();
}

static void* require(void* p, size_t size) {
  if (p == NULL) {
    out_of_memory(size);
  }
  return p;
}

void* tt_malloc(size_t size) {
  return require(malloc(size ? size : 1), size);
}

void* tt_calloc(size_t count, size_t size) {
  size_t total = 0;
  if (__builtin_mul_overflow(count, size, &total)) {
    out_of_memory(SIZE_MAX);
  }
  return require(calloc(total ? total : 1, 1), total);
}

void* tt_realloc(void* p, size_t size) {
  return require(realloc(p, size ? size : 1), size);
}

void* tt_memdup(const void* p, size_t size) {
  void* copy = tt_malloc(size);
  if (size > 0) {
    memcpy(copy, p, size);
  }
  return copy;
}

char* tt_strdup(const char* text) {
  return tt_memdup(text, strlen(text) + 1);
}

void tt_check_failed(const char* cond, const char* file, int line) {
  (void)fprintf(stderr, "torch_tpu: internal error: expected %s at %s:%d\n", cond, file, line);
  abort();
}

// ---- arena --------------------------------------------------------------------------------------------------------

void tt_arena_init(tt_arena* arena) {
  arena->head = NULL;
}

void tt_arena_deinit(tt_arena* arena) {
  for (struct tt_arena_block* block = arena->head; block != NULL;) {
    struct tt_arena_block* next = block->next;
    free(block);
    block = next;
  }
  arena->head = NULL;
}

static struct tt_arena_block* new_block(size_t capacity) {
  struct tt_arena_block* block = tt_calloc(1, sizeof *block + capacity);
  block->capacity = capacity;
  return block;
}

void* tt_arena_alloc(tt_arena* arena, size_t size) {
  if (size > SIZE_MAX / 2) {
    out_of_memory(size);
  }
  size = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
  struct tt_arena_block* head = arena->head;
  if (head == NULL || head->capacity - head->used < size) {
    size_t usual = head ? head->capacity * 2 : ARENA_FIRST;
    usual = usual > ARENA_MOST ? ARENA_MOST : usual;
    if (head != NULL && size > usual / 2) {
      // A large piece gets a block of its own behind the head, whose free space stays in use.
      struct tt_arena_block* own = new_block(size);
      own->used = size;
      own->next = head->next;
      head->next = own;
      return own->bytes;
    }
    struct tt_arena_block* block = new_block(size > usual ? size : usual);
    block->next = head;
    arena->head = head = block;
  }
  void* p = head->bytes + head->used;
  head->used += size;
  return p;
}

void* tt_arena_dup(tt_arena* arena, const void* p, size_t size) {
  void* copy = tt_arena_alloc(arena, size);
  if (size > 0) {
    memcpy(copy, p, size);
  }
  return copy;
}

char* tt_arena_strdup(tt_arena* arena, const char* text) {
  return tt_arena_dup(arena, text, strlen(text) + 1);
}

// ---- text ---------------------------------------------------------------------------------------------------------

static void reserve(tt_strbuf* s, size_t more) {
  size_t needed = s->length + more + 1;
  if (needed > s->capacity) {
    size_t capacity = s->capacity ? s->capacity * 2 : 64;
    s->capacity = capacity > needed ? capacity : needed;
    s->text = tt_realloc(s->text, s->capacity);
  }
}

void tt_strbuf_addn(tt_strbuf* s, const char* text, size_t n) {
  reserve(s, n);
  if (n > 0) {
    memcpy(s->text + s->length, text, n);
  }
  s->length += n;
  s->text[s->length] = '\0';
}

void tt_strbuf_add(tt_strbuf* s, const char* text) {
  tt_strbuf_addn(s, text, strlen(text));
}

static void add_formatted(tt_strbuf* s, const char* fmt, va_list args) {
  va_list again;
  va_copy(again, args);
  reserve(s, 63);
  int length = vsnprintf(s->text + s->length, s->capacity - s->length, fmt, args);
  TT_CHECK(length >= 0);
  if ((size_t)length >= s->capacity - s->length) {
    reserve(s, (size_t)length);
    (void)vsnprintf(s->text + s->length, s->capacity - s->length, fmt, again);
  }
  va_end(again);
  s->length += (size_t)length;
}

void tt_strbuf_addf(tt_strbuf* s, const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  add_formatted(s, fmt, args);
  va_end(args);
}

char* tt_vformat(const char* fmt, va_list args) {
  tt_strbuf text = {0};
  add_formatted(&text, fmt, args);
  return tt_strbuf_take(&text);
}

char* tt_strbuf_take(tt_strbuf* s) {
  char* text = s->text ? s->text : tt_strdup("");
  *s = (tt_strbuf){0};
  return text;
}

void tt_strbuf_free(tt_strbuf* s) {
  free(s->text);
  *s = (tt_strbuf){0};
}
