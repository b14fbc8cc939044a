// SPDX-License-Identifier: Apache-2.0
//
// Families: noticing them, and serving calls by their programs.
#include "run/family.h"

#include <string.h>

#include "base/knobs.h"
#include "base/log.h"
#include "base/thread.h"

// A family is found from this many calls that differ in sizes only (more where several sizes vary by themselves), of which some
// are no bounds themselves: the layers of a network often differ in widths, which are.
enum { SEEN_FEW = 3, SEEN_SEVERAL = 5, UNEVEN = 2, KEEP_SEEN = 64, KEEP_FAMILIES = 64 };

typedef struct family {
  tt_law law;
  bool refused;
  TT_VEC(tt_family_program*) programs;
} family;

// All calls of one pattern.
typedef struct entry {
  int count;              // sizes each
  TT_VEC(int64_t*) seen;  // sizes of calls that no family has yet
  TT_VEC(family*) families;
} entry;

static tt_mutex lock = TT_MUTEX_INIT;  // guards the table; taken without the runtime lock
static tt_map* entries;

// ---- patterns -----------------------------------------------------------------------------------------------------------

void tt_pattern_take_locked(tt_bound* bound, tt_pattern* p) {
  memset(p, 0, sizeof *p);
  if (!tt_knobs()->dynamic_shapes || bound->call->overload->bakes_all || bound->call->generator != NULL) {
    return;
  }
  for (int i = 0; i < 2; ++i) {
    tt_bound_pattern_locked(bound, i == 1, &p->sizes[i]);
    p->words[i] = tt_malloc((bound->num_words + 1) * sizeof *p->words[i]);
    memcpy(p->words[i], bound->words, bound->num_words * sizeof *p->words[i]);
    p->words[i][bound->num_words] = (uint64_t)i;
    p->num_words[i] = bound->num_words + 1;
  }
  p->usable = p->sizes[1].count > 0;
  for (size_t i = 0; i < p->sizes[0].count; ++i) {
    p->usable = p->usable && p->sizes[0].items[i] >= 0;
  }
}

void tt_pattern_free(tt_pattern* p) {
  for (int i = 0; i < 2; ++i) {
    free(p->words[i]);
    TT_VEC_FREE(&p->sizes[i]);
  }
}

static void add_metas(tt_sizes* sizes, int num_metas, const tt_meta* metas) {
  for (int k = 0; k < num_metas; ++k) {
    for (int d = 0; metas[k].dtype != TT_DTYPE_INVALID && d < metas[k].rank; ++d) {
      TT_VEC_PUSH(sizes, metas[k].sizes[d]);
    }
    for (int d = 0; metas[k].dtype != TT_DTYPE_INVALID && d < metas[k].rank; ++d) {
      TT_VEC_PUSH(sizes, metas[k].strides[d]);
    }
  }
}

// ---- laws ---------------------------------------------------------------------------------------------------------------

static bool law_holds(const tt_law* law, const tt_sizes* sizes, tt_symbols* out) {
  if ((int)sizes->count != law->count) {
    return false;
  }
  memset(out, 0, sizeof *out);
  for (int s = 0; s < law->num_symbols; ++s) {
    out->n[s] = sizes->items[law->place[s]];
    if (out->n[s] < 1) {
      return false;
    }
  }
  for (int i = 0; i < law->count; ++i) {
    if (tt_size_at(&law->sizes[i], out) != sizes->items[i]) {
      return false;
    }
  }
  return true;
}

// A law through `n` lists of sizes; false if there is none with few symbols.
static bool law_find(int n, int64_t* const* lists, int inputs, int count, tt_law* law) {
  tt_symbols at[TT_SAMPLES];
  memset(at, 0, sizeof at);
  *law = (tt_law){.inputs = inputs, .count = count};
  law->sizes = tt_calloc((size_t)count + 1, sizeof *law->sizes);
  bool* done = tt_calloc((size_t)count + 1, sizeof *done);
  bool good = true;
  for (int left = count; left > 0 && good; --left) {
    // Sizes by how much they vary: n before 2 n and n * n. Outputs come last, and have no symbols of their own.
    int best = -1;
    int64_t best_range = 0;
    for (int i = 0; i < count; ++i) {
      int64_t low = lists[0][i];
      int64_t high = lists[0][i];
      for (int k = 1; k < n; ++k) {
        low = lists[k][i] < low ? lists[k][i] : low;
        high = lists[k][i] > high ? lists[k][i] : high;
      }
      if (!done[i] && (best < 0 || (i < inputs && high - low < best_range))) {
        best = i;
        best_range = high - low;
      }
    }
    done[best] = true;
    int64_t values[TT_SAMPLES];
    for (int k = 0; k < n; ++k) {
      values[k] = lists[k][best];
    }
    if (tt_size_fit(law->num_symbols, n, at, values, &law->sizes[best])) {
      continue;
    }
    good = best < inputs && law->num_symbols < TT_SYMBOLS;
    if (good) {
      int s = law->num_symbols++;
      law->place[s] = best;
      law->sizes[best] = (tt_size){0};
      law->sizes[best].each[s] = 1;
      for (int k = 0; k < n; ++k) {
        at[k].n[s] = values[k];
      }
    }
  }
  free(done);
  // Enough samples, of which some are no bounds.
  good = good && law->num_symbols > 0 && n >= (law->num_symbols == 1 ? SEEN_FEW : SEEN_SEVERAL);
  for (int s = 0; s < law->num_symbols && good; ++s) {
    int uneven = 0;
    for (int k = 0; k < n; ++k) {
      uneven += tt_size_bound(at[k].n[s]) != at[k].n[s];
    }
    good = uneven >= UNEVEN;
  }
  if (!good) {
    free(law->sizes);
    law->sizes = NULL;
  }
  return good;
}

static int differing(const int64_t* a, const int64_t* b, int n) {
  int count = 0;
  for (int i = 0; i < n; ++i) {
    count += a[i] != b[i];
  }
  return count;
}

// Of the calls seen, those that differ from the newest in the fewest places, if they are enough for a law.
static family* family_find(entry* e, int inputs) {
  const int64_t* newest = e->seen.items[e->seen.count - 1];
  int others = (int)e->seen.count - 1;
  for (int want = 1; want <= e->count; ++want) {
    for (int lead = 0; lead < others; ++lead) {
      if (differing(newest, e->seen.items[lead], e->count) != want) {
        continue;
      }
      // With it, all that differ from the newest only where it does; the latest ones count.
      int64_t* lists[TT_SAMPLES] = {e->seen.items[others]};
      int n = 1;
      for (int u = others - 1; u >= 0 && n < TT_SAMPLES; --u) {
        bool inside = true;
        for (int i = 0; i < e->count && inside; ++i) {
          inside = newest[i] == e->seen.items[u][i] || newest[i] != e->seen.items[lead][i];
        }
        if (inside) {
          lists[n++] = e->seen.items[u];
        }
      }
      tt_law law;
      if (n >= SEEN_FEW && law_find(n, lists, inputs, e->count, &law)) {
        family* made = tt_calloc(1, sizeof *made);
        made->law = law;
        return made;
      }
    }
  }
  return NULL;
}

static void entry_free(void* value, void* ctx);

static entry* entry_of(const uint64_t* words, size_t n, int count) {
  uint64_t hash = tt_hash_words(words, n);
  // Patterns that never came again fill it: start anew.
  if (entries != NULL && tt_map_count(entries) >= (size_t)tt_knobs()->cache_programs) {
    tt_map_each(entries, entry_free, NULL);
    tt_map_destroy(entries);
    entries = NULL;
  }
  if (entries == NULL) {
    entries = tt_map_create();
  }
  entry* e = tt_map_find(entries, words, n, hash);
  if (e == NULL) {
    e = tt_calloc(1, sizeof *e);
    e->count = count;
    tt_map_insert(entries, words, n, hash, e);
  }
  return e->count == count ? e : NULL;
}

// Remembers sizes that no family has; a family if they make one.
static family* notice(entry* e, const tt_sizes* sizes, int inputs) {
  for (size_t i = 0; i < e->seen.count; ++i) {
    if (memcmp(e->seen.items[i], sizes->items, sizes->count * sizeof *sizes->items) == 0) {
      return NULL;
    }
  }
  if (e->seen.count == KEEP_SEEN) {
    free(e->seen.items[0]);
    memmove(e->seen.items, e->seen.items + 1, (KEEP_SEEN - 1) * sizeof *e->seen.items);
    e->seen.count -= 1;
  }
  TT_VEC_PUSH(&e->seen, tt_memdup(sizes->items, sizes->count * sizeof *sizes->items));
  if (e->seen.count < SEEN_FEW || e->families.count >= KEEP_FAMILIES) {
    return NULL;
  }
  family* made = family_find(e, inputs);
  if (made != NULL) {
    TT_VEC_PUSH(&e->families, made);
    tt_symbols ignored;
    size_t kept = 0;
    for (size_t i = 0; i < e->seen.count; ++i) {
      tt_sizes one = {e->seen.items[i], (size_t)e->count, 0};
      if (law_holds(&made->law, &one, &ignored)) {
        free(e->seen.items[i]);
      } else {
        e->seen.items[kept++] = e->seen.items[i];
      }
    }
    e->seen.count = kept;
  }
  return made;
}

// ---- programs -----------------------------------------------------------------------------------------------------------

// The program holds the inputs as they are held now. A size at its bound needs no padding.
static bool inputs_fit(const tt_bound* bound, const tt_plan* plan) {
  for (int i = 0; i < plan->num_sources; ++i) {
    if (plan->sources[i].kind == TT_SOURCE_VALUE) {
      const tt_slot* slot = &bound->slots[plan->sources[i].index];
      if (!tt_type_equal(slot->padded != NULL ? slot->padded : slot->type, &plan->source_types[i])) {
        return false;
      }
    }
  }
  return true;
}

static tt_family_program* program_find(family* f, const tt_symbols* now) {
  for (size_t i = 0; i < f->programs.count; ++i) {
    const tt_bounded* bounded = &f->programs.items[i]->bounded;
    bool fits = true;
    for (int h = 0; h < bounded->num_held && fits; ++h) {
      fits = tt_size_bound(tt_size_at(&bounded->held[h].size, now)) == bounded->held[h].bound;
    }
    if (fits) {
      return f->programs.items[i];
    }
  }
  return NULL;
}

static tt_type type_at(const struct tt_bounded_root* root, tt_dtype dtype, const tt_symbols* now) {
  tt_type type = {.dtype = dtype, .rank = root->rank};
  for (int d = 0; d < root->rank; ++d) {
    type.dims[d] = tt_size_at(&root->dims[d], now);
  }
  return type;
}

static tt_plan* plan_for(const tt_family_program* program, const tt_overload* overload, const tt_symbols* now,
                         int num_metas, const tt_meta* metas) {
  tt_plan* plan = tt_plan_create(overload);
  tt_plan* shared = program->plan;
  size_t outs = (size_t)num_metas + 1;
  tt_obj_retain(shared);
  plan->program = shared;
  plan->serial = shared->serial;
  plan->text = shared->text;
  plan->exec = shared->exec;
  if (plan->exec != NULL) {
    tt_exec_retain(plan->exec);
  }
  plan->num_sources = shared->num_sources;
  plan->sources = shared->sources;
  plan->source_types = shared->source_types;
  plan->donate = shared->donate;
  plan->num_results = shared->num_results;
  plan->results = shared->results;
  plan->result_types = shared->result_types;
  plan->num_outputs = num_metas;
  plan->metas = tt_memdup(metas, (size_t)num_metas * sizeof *metas);
  plan->out_types = tt_calloc(outs, sizeof *plan->out_types);
  plan->out_padded = tt_calloc(outs, sizeof *plan->out_padded);
  plan->value_types = tt_calloc((size_t)shared->num_results + 1, sizeof *plan->value_types);
  for (int r = 0; r < shared->num_results; ++r) {
    plan->value_types[r] = type_at(&program->bounded.root[r], shared->result_types[r].dtype, now);
    if (shared->results[r].kind == TT_RESULT_OUTPUT) {
      plan->out_types[shared->results[r].index] = plan->value_types[r];
      plan->out_padded[shared->results[r].index] = shared->result_types[r];
    }
    plan->new_bytes += tt_type_bytes(&shared->result_types[r]);
  }
  plan->checks = shared->checks;
  plan->value_bytes = shared->value_bytes;
  memcpy(plan->sizes, now->n, sizeof plan->sizes);
  return plan;
}

static tt_status serve(family* f, tt_bound* bound, bool ints, const tt_symbols* now, int num_metas,
                       const tt_meta* metas, tt_plan** out_plan, bool* out_precise) {
  tt_family_program* program = program_find(f, now);
  if (program == NULL) {
    program = tt_calloc(1, sizeof *program);
    tt_status status = tt_family_program_make(bound, &f->law, ints, now, num_metas, metas, program);
    if (status != NULL) {
      TT_LOG("run", "%s keeps a program a size: %s", bound->call->overload->name, tt_status_text(status));
      free(program);
      f->refused = true;
      tt_status_free(status);
      return NULL;
    }
    TT_VEC_PUSH(&f->programs, program);
  }
  // Else a program of its own for this size, whose results are held at bounds.
  if (!inputs_fit(bound, program->plan)) {
    return NULL;
  }
  if (tt_mode_get() != TT_MODE_FUSED) {
    TT_TRY(tt_plan_compile(program->plan, bound->call->device));
  }
  *out_plan = plan_for(program, bound->call->overload, now, num_metas, metas);
  *out_precise = program->precise;
  return NULL;
}

// Which dimensions of the outputs vary.
static uint32_t* varying_outputs(const tt_law* law, int num_metas, const tt_meta* metas) {
  uint32_t* pad = tt_calloc((size_t)num_metas + 1, sizeof *pad);
  int at = law->inputs;
  for (int k = 0; k < num_metas; ++k) {
    for (int d = 0; metas[k].dtype != TT_DTYPE_INVALID && d < metas[k].rank; ++d) {
      pad[k] |= (uint32_t)tt_size_varies(&law->sizes[at + d]) << d;
    }
    at += metas[k].dtype != TT_DTYPE_INVALID ? 2 * metas[k].rank : 0;
  }
  return pad;
}

tt_status tt_family_plan(tt_bound* bound, tt_pattern* p, int num_metas, const tt_meta* metas, tt_plan** out_plan,
                         bool* out_precise, uint32_t** out_pad) {
  *out_plan = NULL;
  *out_pad = NULL;
  if (!p->usable) {
    return NULL;
  }
  tt_status status = NULL;
  tt_mutex_lock(&lock);
  for (int i = 0; i < 2 && *out_pad == NULL && status == NULL; ++i) {
    int inputs = (int)p->sizes[i].count;
    if (i == 1 && p->sizes[0].count == p->sizes[1].count) {
      break;  // no integer arguments
    }
    add_metas(&p->sizes[i], num_metas, metas);
    entry* e = entry_of(p->words[i], p->num_words[i], (int)p->sizes[i].count);
    family* f = NULL;
    tt_symbols now;
    for (size_t k = 0; e != NULL && k < e->families.count && f == NULL; ++k) {
      f = law_holds(&e->families.items[k]->law, &p->sizes[i], &now) ? e->families.items[k] : NULL;
    }
    if (f == NULL && e != NULL) {
      f = notice(e, &p->sizes[i], inputs);
      f = f != NULL && law_holds(&f->law, &p->sizes[i], &now) ? f : NULL;
    }
    if (f != NULL) {
      *out_pad = varying_outputs(&f->law, num_metas, metas);
      if (!f->refused) {
        status = serve(f, bound, i == 1, &now, num_metas, metas, out_plan, out_precise);
      }
    }
  }
  tt_mutex_unlock(&lock);
  return status;
}

uint32_t tt_upload_varies(const tt_type* type) {
  uint32_t pad = 0;
  if (!tt_knobs()->dynamic_shapes || tt_type_elements(type) == 0) {
    return 0;
  }
  tt_mutex_lock(&lock);
  for (int d = 0; d < type->rank; ++d) {
    uint64_t words[TT_MAX_RANK + 1];
    for (int i = 0; i < type->rank; ++i) {
      words[i] = i == d ? 0 : (uint64_t)type->dims[i];
    }
    words[type->rank] = (uint64_t)type->dtype << 8 | (uint64_t)d;
    entry* e = entry_of(words, (size_t)type->rank + 1, 1);
    int uneven = 0;
    bool known = false;
    for (size_t i = 0; e != NULL && i < e->seen.count; ++i) {
      known = known || e->seen.items[i][0] == type->dims[d];
      uneven += tt_size_bound(e->seen.items[i][0]) != e->seen.items[i][0];
    }
    if (e != NULL && !known && e->seen.count < SEEN_SEVERAL) {
      TT_VEC_PUSH(&e->seen, tt_memdup(&type->dims[d], sizeof type->dims[d]));
    }
    bool varies = e != NULL && e->seen.count >= SEEN_FEW && uneven >= UNEVEN;
    pad |= (uint32_t)varies << d;
  }
  tt_mutex_unlock(&lock);
  return pad;
}

static void entry_free(void* value, void* ctx) {
  (void)ctx;
  entry* e = value;
  for (size_t i = 0; i < e->seen.count; ++i) {
    free(e->seen.items[i]);
  }
  for (size_t i = 0; i < e->families.count; ++i) {
    family* f = e->families.items[i];
    for (size_t k = 0; k < f->programs.count; ++k) {
      tt_obj_release(f->programs.items[k]->plan);
      tt_bounded_deinit(&f->programs.items[k]->bounded);
      free(f->programs.items[k]);
    }
    TT_VEC_FREE(&f->programs);
    free(f->law.sizes);
    free(f);
  }
  TT_VEC_FREE(&e->seen);
  TT_VEC_FREE(&e->families);
  free(e);
}

void tt_families_forget(void) {
  tt_mutex_lock(&lock);
  if (entries != NULL) {
    tt_map_each(entries, entry_free, NULL);
    tt_map_destroy(entries);
    entries = NULL;
  }
  tt_mutex_unlock(&lock);
}
