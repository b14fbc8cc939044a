// SPDX-License-Identifier: Apache-2.0
//
// A call's slots and key: every field that shapes the program, and nothing that does not. Offsets and run-time numbers are left out.
#include <stdatomic.h>
#include <string.h>

#include "run/call.h"

static uint64_t next_epoch;  // under the runtime lock
static int precision = 2;

void tt_precision_set(int value) {
  __atomic_store_n(&precision, value, __ATOMIC_RELAXED);
}
int tt_precision_get(void) {
  return __atomic_load_n(&precision, __ATOMIC_RELAXED);
}

void tt_bound_init(tt_bound* bound, const tt_call* call) {
  bound->call = call;
  bound->count = tt_call_number_slots(call, bound->first_slot);
  bound->words = bound->inline_words;
  bound->word_capacity = INLINE_WORDS;
  bound->num_words = 0;
  bound->views = 0;
  bound->sizes = NULL;
  tt_arena_init(&bound->arena);
  bound->slots = bound->count <= INLINE_SLOTS ? bound->inline_slots
                                              : tt_arena_alloc(&bound->arena, (size_t)bound->count * sizeof(tt_slot));
}

void tt_bound_deinit(tt_bound* bound) {
  if (bound->words != bound->inline_words) {
    free(bound->words);
  }
  tt_arena_deinit(&bound->arena);
}

static void grow(tt_bound* bound, size_t more) {
  size_t capacity = bound->word_capacity;
  while (capacity < bound->num_words + more) {
    capacity *= 2;
  }
  uint64_t* words = tt_malloc(capacity * sizeof *words);
  memcpy(words, bound->words, bound->num_words * sizeof *words);
  if (bound->words != bound->inline_words) {
    free(bound->words);
  }
  bound->words = words;
  bound->word_capacity = capacity;
}

static inline void reserve(tt_bound* bound, size_t more) {
  if (__builtin_expect(bound->num_words + more > bound->word_capacity, 0)) {
    grow(bound, more);
  }
}
static inline void put(tt_bound* bound, uint64_t word) {
  bound->words[bound->num_words++] = word;
}
static inline void put_ints(tt_bound* bound, int64_t n, const int64_t* values) {
  if (__builtin_expect(bound->sizes != NULL, 0)) {
    for (int64_t i = 0; i < n; ++i) {
      TT_VEC_PUSH(bound->sizes, values[i]);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    put(bound, (uint64_t)values[i]);
  }
}
static void put_double(tt_bound* bound, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  put(bound, bits);
}
static void put_number(tt_bound* bound, const tt_scalar* n) {
  put(bound, (uint64_t)(unsigned char)n->kind);
  put(bound, (uint64_t)n->i);
  put_double(bound, n->kind == 'i' ? 0 : n->re);
  put_double(bound, n->kind == 'c' ? n->im : 0);
}

static tt_view_plan* new_view(tt_bound* bound) {
  return bound->views < INLINE_VIEWS ? &bound->inline_views[bound->views++]
                                     : tt_arena_alloc(&bound->arena, sizeof(tt_view_plan));
}

// How far the buffer's dimensions go: part of a key, not of a pattern.
static void put_padded(tt_bound* bound, const tt_type* padded) {
  if (bound->sizes == NULL) {
    put(bound, (uint64_t)TT_KEY_PADDED << 16 | (uint64_t)padded->rank);
    put_ints(bound, padded->rank, padded->dims);
  }
}

static void put_tensor(tt_bound* bound, int index, const tt_tensor* t, bool mutated) {
  tt_slot* slot = &bound->slots[index];
  slot->t = t;
  slot->first = -1;
  slot->is_base = slot->unwritten = slot->is_lost = slot->donate = false;
  slot->view = NULL;
  reserve(bound, 10 + 5 * TT_MAX_RANK);
  uint64_t flags = (t->wrapped ? TT_KEY_WRAPPED : 0u) | (t->conj ? TT_KEY_CONJ : 0u) | (t->neg ? TT_KEY_NEG : 0u);
  if (t->storage == NULL) {
    put(bound, (uint64_t)t->dtype | (uint64_t)t->rank << 8 | (flags | TT_KEY_HOST) << 16);
    if (t->dtype != TT_DTYPE_INVALID && bound->call->overload->bakes_all) {
      put_number(bound, &t->host);
    }
    return;
  }
  tt_storage* s = t->storage;
  bound->captured |= s->capture != NULL;
  if (s->epoch != next_epoch) {
    s->epoch = next_epoch;
    s->slot = index;
  }
  slot->first = s->slot;
  slot->unwritten = s->buffer == NULL && s->fuse == NULL;
  slot->is_lost = slot->unwritten && s->lost != NULL;
  slot->is_base = tt_view_is_base(&s->type, t);
  slot->donate = mutated && s->buffer != NULL && tt_obj_refs(s->buffer) == 1;
  flags |= (slot->is_base ? TT_KEY_BASE : 0u) | (slot->unwritten ? TT_KEY_UNWRITTEN : 0u) |
           (slot->is_lost ? TT_KEY_LOST : 0u) | (slot->donate ? TT_KEY_DONATE : 0u);
  if (__builtin_expect(s->padded != NULL, 0)) {
    put_padded(bound, s->padded);
  }
  uint64_t alias = slot->first == index ? 0 : (uint64_t)slot->first + 1;
  if (slot->is_base) {
    put(bound, (uint64_t)t->dtype | (uint64_t)t->rank << 8 | flags << 16 | alias << 32);
    put_ints(bound, t->rank, t->sizes);
    return;
  }
  slot->view = new_view(bound);
  tt_view_analyse(&s->type, t->dtype, t->rank, t->sizes, t->strides, t->offset, slot->view);
  flags |= (slot->view->needs_offset ? TT_KEY_NEEDS_OFFSET : 0u) | (slot->view->own_dims ? TT_KEY_OWN_DIMS : 0u);
  put(bound, (uint64_t)t->dtype | (uint64_t)t->rank << 8 | flags << 16 | alias << 32);
  put(bound, (uint64_t)slot->view->kind | (uint64_t)s->type.dtype << 8 | (uint64_t)s->type.rank << 16);
  put_ints(bound, t->rank, t->sizes);
  put_ints(bound, t->rank, t->strides);
  put_ints(bound, s->type.rank, s->type.dims);
}

static void put_text(tt_bound* bound, const char* text) {
  size_t length = strlen(text);
  size_t words = (length + 7) / 8;
  reserve(bound, words + 1);
  put(bound, length);
  for (size_t i = 0; i < words; ++i) {
    uint64_t word = 0;
    memcpy(&word, text + 8 * i, length - 8 * i < 8 ? length - 8 * i : 8);
    put(bound, word);
  }
}

// Integers of an argument: constants of the call, or in a pattern perhaps sizes.
static void put_constants(tt_bound* bound, int n, const int64_t* values, bool may_be_sizes) {
  if (bound->sizes != NULL && bound->ints_are_sizes && may_be_sizes) {
    put_ints(bound, n, values);
    return;
  }
  for (int i = 0; i < n; ++i) {
    put(bound, (uint64_t)values[i]);
  }
}

static void put_argument(tt_bound* bound, int i, uint64_t baked) {
  const tt_argument* arg = &bound->call->args[i];
  const tt_overload* overload = bound->call->overload;
  bool in_key = !arg->runtime || overload->bakes_all || (baked >> i & 1) != 0;
  reserve(bound, 8 + (size_t)arg->count * 4);
  put(bound, (uint64_t)arg->kind | (uint64_t)arg->runtime << 8 | (uint64_t)(uint32_t)arg->count << 32);
  switch ((tt_arg_kind)arg->kind) {
    case TT_ARG_TENSOR:
      put_tensor(bound, bound->first_slot[i], &arg->tensors[0], (overload->mutates >> i & 1) != 0);
      break;
    case TT_ARG_TENSORS:
      for (int j = 0; j < arg->count; ++j) {
        put_tensor(bound, bound->first_slot[i] + j, &arg->tensors[j], (overload->mutates >> i & 1) != 0);
      }
      break;
    case TT_ARG_INT:
      if (__builtin_expect(bound->sizes != NULL, 0) && bound->ints_are_sizes && in_key) {
        put_constants(bound, 1, &arg->number.i, true);
        break;
      }
      // fallthrough
    case TT_ARG_BOOL:
    case TT_ARG_FLOAT:
    case TT_ARG_COMPLEX:
      if (in_key) {
        put_number(bound, &arg->number);
      }
      break;
    case TT_ARG_DTYPE:
    case TT_ARG_OPAQUE:
      put(bound, (uint64_t)arg->number.i);
      break;
    case TT_ARG_INTS:
    case TT_ARG_BOOLS:
      put_constants(bound, arg->count, arg->ints, arg->kind == TT_ARG_INTS);
      break;
    case TT_ARG_FLOATS:
      for (int j = 0; in_key && j < arg->count; ++j) {
        put_double(bound, arg->floats[j]);
      }
      break;
    case TT_ARG_NUMBERS:
      for (int j = 0; j < arg->count; ++j) {
        if (in_key) {
          put_number(bound, &arg->numbers[j]);
        } else {
          put(bound, (uint64_t)(unsigned char)arg->numbers[j].kind);
        }
      }
      break;
    case TT_ARG_STRING:
      put_text(bound, arg->text);
      break;
    case TT_ARG_NONE:
    default:
      break;
  }
}

void tt_bound_key_locked(tt_bound* bound) {
  next_epoch += 1;
  bound->captured = false;
  bound->num_words = 0;
  bound->views = 0;
  const tt_call* call = bound->call;
  uint64_t baked = atomic_load_explicit(&call->overload->baked, memory_order_relaxed);
  put(bound, (uint64_t)(uintptr_t)call->overload);
  uint64_t precise =
      atomic_load_explicit(&call->overload->precise, memory_order_relaxed) ? (uint64_t)tt_precision_get() + 1 : 0;
  put(bound, (uint64_t)call->device | precise << 16 | (uint64_t)call->default_float << 32);
  put(bound, baked);
  for (int i = 0; i < call->num_args; ++i) {
    put_argument(bound, i, baked);
  }
  bound->hash = tt_hash_words(bound->words, bound->num_words);
}

void tt_bound_pattern_locked(tt_bound* bound, bool ints_are_sizes, tt_sizes* out_sizes) {
  out_sizes->count = 0;
  bound->sizes = out_sizes;
  bound->ints_are_sizes = ints_are_sizes;
  tt_bound_key_locked(bound);
  bound->sizes = NULL;
}

tt_status tt_bound_captured(const tt_bound* bound) {
  return TT_STATUS(
      TT_FAILED_PRECONDITION,
      "%s: expected tensors with values, got one made by captured code (a decomposition or compiled function kept it)",
      bound->call->overload->name);
}

void tt_bound_freeze_locked(tt_bound* bound) {
  for (int i = 0; i < bound->count; ++i) {
    tt_slot* slot = &bound->slots[i];
    if (slot->first == i) {
      const tt_storage* s = slot->t->storage;
      slot->type = tt_arena_dup(&bound->arena, &s->type, sizeof(tt_type));
      slot->padded = s->padded != NULL ? tt_arena_dup(&bound->arena, s->padded, sizeof(tt_type)) : NULL;
      if (slot->is_lost) {
        slot->lost = tt_arena_strdup(&bound->arena, slot->t->storage->lost);
        slot->lost_code = slot->t->storage->lost_code;
      }
    } else if (slot->first >= 0) {
      slot->type = bound->slots[slot->first].type;
      slot->padded = bound->slots[slot->first].padded;
    }
  }
}
