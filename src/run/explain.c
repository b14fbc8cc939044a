// SPDX-License-Identifier: Apache-2.0
//
// Notes for torch.tpu.explain(): nothing is noted, and nothing is asked of Python, while nobody listens.
#include "run/explain.h"

#include <stdatomic.h>
#include <string.h>

#include "run/key_text.h"

typedef struct note {
  tt_explain_kind kind;
  char* where;
  char* text;
} note;

// A listener that never ends must not eat the memory: later notes are counted only.
enum { MAX_NOTES = 20000 };

static tt_mutex notes_lock = TT_MUTEX_INIT;  // taken last
static TT_VEC(note) notes;
static _Atomic int listeners;

bool tt_explain_is_on(void) {
  return atomic_load_explicit(&listeners, memory_order_relaxed) > 0;
}

int64_t tt_explain_begin(void) {
  tt_mutex_lock(&notes_lock);
  atomic_fetch_add(&listeners, 1);
  int64_t mark = (int64_t)notes.count;
  tt_mutex_unlock(&notes_lock);
  return mark;
}

void tt_explain_end(int64_t mark, void (*each)(tt_explain_kind kind, const char* where, const char* text, void* ctx),
                    void* ctx) {
  tt_mutex_lock(&notes_lock);
  for (size_t i = (size_t)mark; i < notes.count; ++i) {
    each(notes.items[i].kind, notes.items[i].where, notes.items[i].text, ctx);
  }
  if (atomic_fetch_sub(&listeners, 1) == 1) {
    for (size_t i = 0; i < notes.count; ++i) {
      free(notes.items[i].where);
      free(notes.items[i].text);
    }
    TT_VEC_FREE(&notes);
  }
  tt_mutex_unlock(&notes_lock);
}

void tt_explain_note(tt_explain_kind kind, const char* where, const char* text) {
  tt_mutex_lock(&notes_lock);
  if (tt_explain_is_on() && notes.count < MAX_NOTES) {
    TT_VEC_PUSH(&notes, (note){kind, tt_strdup(where), tt_strdup(text)});
  }
  tt_mutex_unlock(&notes_lock);
}

void tt_explain_note_here(tt_explain_kind kind, const char* text) {
  if (tt_explain_is_on()) {
    char where[112];
    tt_where_now(where, sizeof where);
    tt_explain_note(kind, where, text);
  }
}

void tt_explain_note_take(tt_explain_kind kind, char* text) {
  if (text != NULL) {
    tt_explain_note_here(kind, text);
    free(text);
  }
}

// ---- new calls ----------------------------------------------------------------------------------------------------------

typedef struct search {
  const tt_plan* plan;
  tt_key_fields fields;
  const tt_plan* nearest;
  int differ;
  uint64_t serial;
} search;

static void look_at(void* item, void* ctx) {
  const tt_plan* other = item;
  search* s = ctx;
  if (other == s->plan || other->overload != s->plan->overload || other->key == NULL) {
    return;
  }
  tt_key_fields fields = {0};
  tt_key_read(other, &fields);
  int differ = tt_key_compare(&fields, &s->fields, NULL);
  if (s->nearest == NULL || differ < s->differ || (differ == s->differ && other->used > s->nearest->used)) {
    s->nearest = other;
    s->differ = differ;
  }
  TT_VEC_FREE(&fields);
}

char* tt_explain_plan_locked(const tt_plan* plan) {
  tt_strbuf out = {0};
  search s = {.plan = plan};
  tt_key_read(plan, &s.fields);
  tt_plan_each_locked(look_at, &s);
  tt_strbuf_addf(&out, "%s: ", plan->overload->name);
  if (s.nearest == NULL) {
    tt_strbuf_add(&out, "called for the first time");
  } else {
    tt_key_fields before = {0};
    tt_key_read(s.nearest, &before);
    if (tt_key_compare(&before, &s.fields, &out) == 0) {
      tt_strbuf_add(&out, "which numbers are part of the program was learnt");
    }
    TT_VEC_FREE(&before);
  }
  TT_VEC_FREE(&s.fields);
  return tt_strbuf_take(&out);
}

// ---- new traces ---------------------------------------------------------------------------------------------------------

static void find_serial(void* item, void* ctx) {
  const tt_plan* plan = item;
  search* s = ctx;
  if (plan->serial == s->serial) {
    s->nearest = plan;
  }
}
static const tt_plan* plan_of_locked(uint64_t serial) {
  search s = {.serial = serial};
  tt_plan_each_locked(find_serial, &s);
  return s.nearest != NULL && s.nearest->key != NULL ? s.nearest : NULL;
}

static bool same_step(const tt_explain_step* a, const tt_explain_step* b) {
  return a->serial == b->serial && a->wiring == b->wiring;
}

long tt_explain_likeness(const tt_explain_trace* a, const tt_explain_trace* b) {
  size_t shorter = a->count < b->count ? a->count : b->count;
  size_t n = 0;
  while (n < shorter && same_step(&a->steps[n], &b->steps[n])) {
    ++n;
  }
  size_t tail = 0;
  while (n + tail < shorter && same_step(&a->steps[a->count - 1 - tail], &b->steps[b->count - 1 - tail])) {
    ++tail;
  }
  size_t ops = 0;
  for (size_t i = 0; i < shorter; ++i) {
    ops += strcmp(a->steps[i].op, b->steps[i].op) == 0;
  }
  return 2 * (long)(n + tail + ops) - labs((long)a->count - (long)b->count);
}

char* tt_explain_trace_locked(const tt_explain_trace* nearest, const tt_explain_trace* now) {
  tt_strbuf out = {0};
  tt_strbuf_addf(&out, "a trace of %zu calls: ", now->count);
  if (nearest == NULL) {
    tt_strbuf_add(&out, "the first one");
    return tt_strbuf_take(&out);
  }
  size_t n = 0;
  while (n < now->count && n < nearest->count && same_step(&now->steps[n], &nearest->steps[n])) {
    ++n;
  }
  if (n == now->count && n == nearest->count) {
    tt_strbuf_addf(&out, "other results are kept (%d before, %d now) or other memory is given up", nearest->kept,
                   now->kept);
  } else if (n == now->count || n == nearest->count) {
    tt_strbuf_addf(&out, "it ends after %zu calls, the nearest known one after %zu", now->count, nearest->count);
  } else {
    const tt_explain_step* a = &nearest->steps[n];
    const tt_explain_step* b = &now->steps[n];
    tt_strbuf_addf(&out, "its call %zu is %s", n + 1, b->op);
    if (strcmp(a->op, b->op) != 0) {
      tt_strbuf_addf(&out, ", %s in the nearest known one", a->op);
    } else if (a->serial == b->serial) {
      tt_strbuf_add(&out, ", with other values than in the nearest known one");
    } else {
      const tt_plan* before = plan_of_locked(a->serial);
      const tt_plan* after = plan_of_locked(b->serial);
      tt_strbuf_add(&out, "; ");
      if (before != NULL && after != NULL) {
        tt_key_fields x = {0};
        tt_key_fields y = {0};
        tt_key_read(before, &x);
        tt_key_read(after, &y);
        tt_key_compare(&x, &y, &out);
        TT_VEC_FREE(&x);
        TT_VEC_FREE(&y);
      } else {
        tt_strbuf_add(&out, "the call it was before is forgotten");
      }
    }
  }
  return tt_strbuf_take(&out);
}
