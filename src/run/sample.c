// SPDX-License-Identifier: Apache-2.0
//
// A family's program: the call is lowered at a few sizes of its family, and what comes out is made one program.
#include <stdatomic.h>
#include <string.h>

#include "run/capture.h"
#include "run/family.h"

// A call like `model`, at other sizes. Nothing of it is launched: its tensors have types and views only.
typedef struct sample {
  tt_arena arena;
  tt_call call;
  tt_bound bound;
  tt_trace* trace;
  tt_meta* metas;
  tt_plan* plan;
  tt_val* values;
  int count;
} sample;

// Sizes in the order in which key.c lists them.
typedef struct cursor {
  const int64_t* next;
} cursor;

static const int64_t* pull(sample* s, cursor* c, int n) {
  int64_t* out = tt_arena_alloc(&s->arena, ((size_t)n + 1) * sizeof *out);
  for (int i = 0; i < n; ++i) {
    out[i] = *c->next++;
  }
  return out;
}

static const int64_t* row_major(sample* s, int rank, const int64_t* sizes) {
  int64_t* strides = tt_arena_alloc(&s->arena, ((size_t)rank + 1) * sizeof *strides);
  int64_t run = 1;
  for (int d = rank - 1; d >= 0; --d) {
    strides[d] = run;
    run *= sizes[d];
  }
  return strides;
}

// An offset that stands for the model's: the same places in the base's dimensions, as far as they exist.
static int64_t move_offset(const tt_slot* model, const tt_tensor* t, const tt_type* base) {
  const tt_view_plan* view = model->view;
  int64_t offset = model->t->offset;
  if (!view->needs_offset) {
    return offset;
  }
  if (view->kind == TT_VIEW_BOX && view->own_dims) {
    int64_t room[TT_MAX_RANK];
    int64_t unit[TT_MAX_RANK];
    int64_t run = 1;
    for (int d = base->rank - 1; d >= 0; --d) {
      unit[d] = run;
      run *= base->dims[d];
      room[d] = base->dims[d] - 1;
    }
    for (int w = 0; w < view->walks; ++w) {
      room[view->walk_factor[w]] -= (t->sizes[view->walk_dim[w]] - 1) * view->walk_step[w];
    }
    int64_t moved = 0;
    for (int d = 0; d < base->rank; ++d) {
      int64_t digit = offset / view->unit[d] % view->factor[d];
      digit = digit > room[d] ? room[d] : digit;
      moved += (digit < 0 ? 0 : digit) * unit[d];
    }
    return moved;
  }
  int64_t span = 1;
  for (int d = 0; d < t->rank; ++d) {
    span += (t->sizes[d] - 1) * t->strides[d];
  }
  int64_t last = tt_view_base_elements(base, t->dtype) - span;
  return offset < last ? offset : last < 0 ? 0 : last;
}

static bool same_view(const tt_view_plan* a, const tt_view_plan* b) {
  bool same = a->kind == b->kind && a->needs_offset == b->needs_offset && a->own_dims == b->own_dims &&
              a->walks == b->walks && a->factors == b->factors;
  for (int w = 0; same && w < a->walks; ++w) {
    same = a->walk_dim[w] == b->walk_dim[w] && (a->kind != TT_VIEW_BOX || a->walk_factor[w] == b->walk_factor[w]);
  }
  return same;
}

static bool set_slot(sample* s, cursor* c, const tt_slot* model, tt_slot* slot, tt_tensor* t) {
  *slot = *model;
  *t = *model->t;
  slot->t = t;
  slot->padded = NULL;
  if (t->storage == NULL) {
    return true;
  }
  tt_type* base = tt_arena_dup(&s->arena, model->type, sizeof *base);
  slot->type = base;
  t->sizes = pull(s, c, t->rank);
  if (model->is_base) {
    t->strides = row_major(s, t->rank, t->sizes);
    memcpy(base->dims, t->sizes, (size_t)t->rank * sizeof *t->sizes);
    return true;
  }
  t->strides = pull(s, c, t->rank);
  const int64_t* dims = pull(s, c, base->rank);
  memcpy(base->dims, dims, (size_t)base->rank * sizeof *dims);
  t->offset = move_offset(model, t, base);
  slot->view = tt_arena_alloc(&s->arena, sizeof *slot->view);
  tt_view_analyse(base, t->dtype, t->rank, t->sizes, t->strides, t->offset, slot->view);
  return same_view(slot->view, model->view);
}

// Slots with one storage have one base.
static bool bases_agree(const tt_bound* bound) {
  for (int i = 0; i < bound->count; ++i) {
    int first = bound->slots[i].first;
    if (first >= 0 && !tt_type_equal(bound->slots[i].type, bound->slots[first].type)) {
      return false;
    }
  }
  return true;
}

static bool fill(sample* s, const tt_bound* model, bool ints_are_sizes, const int64_t* sizes, int num_metas,
                 const tt_meta* metas) {
  cursor c = {sizes};
  const tt_call* call = model->call;
  s->call = *call;
  s->call.extra = NULL;
  s->call.args = tt_arena_dup(&s->arena, call->args, (size_t)call->num_args * sizeof *call->args);
  tt_bound_init(&s->bound, &s->call);
  bool good = true;
  for (int i = 0; i < call->num_args && good; ++i) {
    tt_argument* arg = &s->call.args[i];
    uint64_t baked = atomic_load(&call->overload->baked);
    bool in_key = !arg->runtime || call->overload->bakes_all || (baked >> i & 1) != 0;
    if (arg->kind == TT_ARG_TENSOR || arg->kind == TT_ARG_TENSORS) {
      int n = arg->kind == TT_ARG_TENSOR ? 1 : arg->count;
      tt_tensor* tensors = tt_arena_alloc(&s->arena, ((size_t)n + 1) * sizeof *tensors);
      for (int j = 0; j < n && good; ++j) {
        int slot = model->first_slot[i] + j;
        good = set_slot(s, &c, &model->slots[slot], &s->bound.slots[slot], &tensors[j]);
      }
      arg->tensors = tensors;
    } else if (arg->kind == TT_ARG_INTS && ints_are_sizes) {
      arg->ints = pull(s, &c, arg->count);
    } else if (arg->kind == TT_ARG_INT && ints_are_sizes && in_key) {
      arg->number.i = *c.next++;
    }
  }
  if (!good || !bases_agree(&s->bound)) {
    return false;
  }
  s->metas = tt_arena_dup(&s->arena, metas, ((size_t)num_metas + 1) * sizeof *metas);
  for (int k = 0; k < num_metas; ++k) {
    for (int d = 0; metas[k].dtype != TT_DTYPE_INVALID && d < metas[k].rank; ++d) {
      s->metas[k].sizes[d] = *c.next++;
    }
    for (int d = 0; metas[k].dtype != TT_DTYPE_INVALID && d < metas[k].rank; ++d) {
      s->metas[k].strides[d] = *c.next++;
    }
  }
  return true;
}

static tt_status lower(sample* s, int num_metas) {
  s->trace = tt_trace_create(&s->bound);
  tt_builder* b = tt_trace_builder(s->trace);
  tt_val* outs = tt_calloc((size_t)num_metas + 1, sizeof *outs);
  tt_trace_lower_call(s->trace, &s->bound, num_metas, s->metas, outs);
  s->count = tt_trace_collect(s->trace, num_metas, s->metas, outs, NULL, &s->plan, &s->values);
  free(outs);
  return tt_builder_take_error(b);
}

static bool same_program(const tt_plan* a, const tt_plan* b) {
  bool same =
      a->num_sources == b->num_sources && a->num_results == b->num_results && a->random_steps == b->random_steps;
  for (int i = 0; same && i < a->num_sources; ++i) {
    const tt_source* x = &a->sources[i];
    const tt_source* y = &b->sources[i];
    same = x->kind == y->kind && x->dtype == y->dtype && x->index == y->index && x->elem == y->elem &&
           a->donate[i] == b->donate[i];
  }
  for (int r = 0; same && r < a->num_results; ++r) {
    same = a->results[r].kind == b->results[r].kind && a->results[r].index == b->results[r].index;
  }
  return same;
}

static void sample_free(sample* s) {
  if (s->bound.call != NULL) {
    tt_bound_deinit(&s->bound);
  }
  tt_trace_destroy(s->trace);
  tt_obj_release(s->plan);
  free(s->values);
  tt_arena_deinit(&s->arena);
}

// Sizes to lower at, between the bound below `now` and its own: odd ones, that meet no other size of the call, so that equal numbers in the
// programs are equal for a reason.
static bool choose(const tt_law* law, const tt_symbols* now, int attempt, tt_symbols at[TT_SAMPLES]) {
  static const int64_t steps[TT_SYMBOLS][TT_SAMPLES] = {
      {0, 1, 2, 3, 4},
      {3, 0, 4, 1, 2},
      {1, 4, 0, 2, 3},
      {2, 3, 1, 4, 0},
  };
  for (int s = 0; s < law->num_symbols; ++s) {
    int64_t found[TT_SAMPLES];
    int count = 0;
    int64_t top = tt_size_bound(now->n[s]) - 1 - 2 * attempt;
    for (int64_t v = top; v > 4 && count < TT_SAMPLES; --v) {
      bool meets = false;
      for (int i = 0; i < law->count && !meets; ++i) {
        meets = !tt_size_varies(&law->sizes[i]) && law->sizes[i].base == v;
      }
      for (int o = 0; o < s; ++o) {
        for (int k = 0; k < TT_SAMPLES; ++k) {
          meets = meets || at[k].n[o] == v;
        }
      }
      if (!meets) {
        found[count++] = v;
      }
    }
    if (count < TT_SAMPLES) {
      return false;
    }
    for (int k = 0; k < TT_SAMPLES; ++k) {
      at[k].n[s] = found[steps[s][k]];
    }
  }
  return true;
}

static tt_status try_at(const tt_bound* bound, const tt_law* law, bool ints_are_sizes, const tt_symbols* now,
                        const tt_symbols* at, int num_metas, const tt_meta* metas, tt_family_program* out) {
  sample samples[TT_SAMPLES];
  tt_instance instances[TT_SAMPLES];
  memset(samples, 0, sizeof samples);
  int64_t* sizes = tt_calloc((size_t)law->count + 1, sizeof *sizes);
  tt_status status = NULL;
  for (int k = 0; k < TT_SAMPLES && status == NULL; ++k) {
    tt_arena_init(&samples[k].arena);
    for (int i = 0; i < law->count; ++i) {
      sizes[i] = tt_size_at(&law->sizes[i], &at[k]);
    }
    if (!fill(&samples[k], bound, ints_are_sizes, sizes, num_metas, metas)) {
      status = TT_STATUS(TT_UNIMPLEMENTED, "views of other forms at other sizes");
      break;
    }
    status = lower(&samples[k], num_metas);
    instances[k] = (tt_instance){tt_trace_builder(samples[k].trace), samples[k].values};
    if (status == NULL && !same_program(samples[0].plan, samples[k].plan)) {
      status = TT_STATUS(TT_UNIMPLEMENTED, "programs of different sizes take different inputs");
    }
  }
  free(sizes);
  tt_plan* plan = samples[0].plan;
  if (status == NULL && (plan->num_results == 0 || plan->random_steps != 0)) {
    status = TT_STATUS(TT_UNIMPLEMENTED, "random numbers, or nothing to compute");
  }
  if (status == NULL) {
    status = tt_bound_program(law->num_symbols, TT_SAMPLES, at, now, plan->num_results, instances, &out->bounded);
  }
  if (status == NULL) {
    // The sizes come after the other inputs.
    size_t n = (size_t)plan->num_sources;
    size_t all = n + (size_t)law->num_symbols;
    plan->sources = tt_realloc(plan->sources, all * sizeof *plan->sources);
    plan->donate = tt_realloc(plan->donate, all * sizeof *plan->donate);
    for (int s = 0; s < law->num_symbols; ++s) {
      plan->sources[n + (size_t)s] = (tt_source){.kind = TT_SOURCE_SIZE, .dtype = TT_I64, .index = s};
      plan->donate[n + (size_t)s] = false;
    }
    plan->num_sources = (int)all;
    out->precise = tt_builder_used_precision(out->bounded.b);
    status = tt_plan_print(plan, out->bounded.b, out->bounded.roots);
    out->bounded.b = NULL;
    if (status == NULL) {
      out->plan = plan;
      samples[0].plan = NULL;
    } else {
      tt_bounded_deinit(&out->bounded);
    }
  }
  for (int k = 0; k < TT_SAMPLES; ++k) {
    sample_free(&samples[k]);
  }
  return status;
}

tt_status tt_family_program_make(const tt_bound* bound, const tt_law* law, bool ints_are_sizes, const tt_symbols* now,
                                 int num_metas, const tt_meta* metas, tt_family_program* out) {
  tt_status status = NULL;
  for (int attempt = 0; attempt < 2; ++attempt) {
    tt_symbols at[TT_SAMPLES];
    memset(at, 0, sizeof at);
    tt_status_free(status);
    if (!choose(law, now, attempt, at)) {
      return TT_STATUS(TT_UNIMPLEMENTED, "too few sizes to compare");
    }
    status = try_at(bound, law, ints_are_sizes, now, at, num_metas, metas, out);
    if (status == NULL) {
      break;
    }
  }
  return status;
}
