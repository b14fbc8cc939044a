// SPDX-License-Identifier: Apache-2.0
//
// Capture: PyTorch code runs on tensors that hold no data; each call it makes is lowered into one program. A captured storage
// holds a value of the builder instead of a buffer.
#include "run/capture.h"

#include <stdatomic.h>
#include <string.h>

struct tt_capture {
  uint64_t id;
  tt_call* call;
  tt_bound bound;
  tt_trace* trace;
  tt_capture* outer;      // of this thread, before
  tt_storage** stand_in;  // by slot; slots that show the same view share one
  tt_val* initial;        // by slot: the stand-in's value at the start
};

tt_capture* tt_capture_current(void) {
  return tt_capture_thread_get();
}

static tt_builder* builder(tt_capture* c) {
  return tt_trace_builder(c->trace);
}

// ---- the calls made inside ----------------------------------------------------------------------------------------------

static bool belongs(const tt_capture* c, const tt_storage* s) {
  return s->capture == c && s->capture_id == c->id;
}

static tt_val captured_base(tt_capture* c, tt_storage* s) {
  if (!belongs(c, s)) {
    return tt_builder_fail(builder(c), TT_UNIMPLEMENTED, "captured code uses a tensor from outside");
  }
  if (s->captured == TT_POISON) {
    s->captured = tt_zeros(builder(c), s->type.dtype, s->type.rank, s->type.dims);
  }
  return s->captured;
}

static tt_val captured_read(tt_capture* c, const tt_tensor* t) {
  tt_val base = captured_base(c, t->storage);
  if (base == TT_POISON || tt_view_is_base(&t->storage->type, t)) {
    return tt_view_bits(builder(c), t, base);
  }
  tt_view_plan view;
  tt_view_analyse(&t->storage->type, t->dtype, t->rank, t->sizes, t->strides, t->offset, &view);
  return tt_view_bits(builder(c), t,
                      tt_view_read(builder(c), base, t, &view, tt_const_i(builder(c), TT_I64, t->offset)));
}

static void captured_write(tt_capture* c, const tt_tensor* t, tt_val value) {
  tt_storage* s = t->storage;
  if (s == NULL || !belongs(c, s)) {
    tt_builder_fail(builder(c), TT_UNIMPLEMENTED, "captured code writes to a tensor from outside");
    return;
  }
  value = tt_view_bits(builder(c), t, value);
  if (tt_view_is_base(&s->type, t)) {
    s->captured = value;
    return;
  }
  tt_view_plan view;
  tt_val base = captured_base(c, s);
  tt_view_analyse(&s->type, t->dtype, t->rank, t->sizes, t->strides, t->offset, &view);
  s->captured = tt_view_write(builder(c), base, t, &view, tt_const_i(builder(c), TT_I64, t->offset), value);
}

static tt_val inner_read(tt_lower* L, int slot, const tt_tensor* t, tt_dtype dtype) {
  (void)slot;
  if (dtype == TT_DTYPE_INVALID) {
    dtype = t->dtype;
  }
  if (t->storage == NULL) {
    return tt_const_scalar(L->b, &t->host, dtype);
  }
  return tt_convert(L->b, captured_read(L->ctx, t), dtype);
}
static void inner_write(tt_lower* L, int slot, const tt_tensor* t, tt_val value) {
  (void)slot;
  captured_write(L->ctx, t, value);
}
static tt_val inner_number(tt_lower* L, int arg, int elem, const tt_scalar* value, tt_dtype dtype) {
  (void)arg;
  (void)elem;
  return tt_const_scalar(L->b, value, dtype);
}
static void inner_bake(tt_lower* L, int arg) {
  (void)L;
  (void)arg;
}
static tt_val inner_random(tt_lower* L, const tt_type* type) {
  tt_capture* c = L->ctx;
  return tt_trace_random_bits(c->trace, type);
}
static void inner_report(tt_lower* L, tt_val bad, tt_val index, int64_t size) {
  tt_capture* c = L->ctx;
  tt_trace_report_index(c->trace, bad, index, size);
}
static const tt_lower_hooks inner_hooks = {inner_read, inner_write,  inner_number,
                                           inner_bake, inner_random, inner_report};

// A new storage that holds the captured value of an output.
static tt_storage* captured_storage(tt_capture* c, int device, const tt_meta* m, tt_val value) {
  tt_type type;
  if (tt_view_dense_type(m->dtype, m->rank, m->sizes, m->strides, &type)) {
    tt_storage* s = tt_storage_new(device, &type, tt_type_bytes(&type));
    s->captured = tt_view_to_dense(builder(c), value, m->rank, m->sizes, m->strides);
    return s;
  }
  int64_t span = 1;
  for (int d = 0; d < m->rank; ++d) {
    span += (m->sizes[d] - 1) * m->strides[d];
  }
  type = tt_type_make(m->dtype, 1, &span);
  tt_storage* s = tt_storage_new(device, &type, tt_type_bytes(&type));
  tt_tensor t = {.storage = s, .sizes = m->sizes, .strides = m->strides, .rank = m->rank, .dtype = m->dtype};
  captured_write(c, &t, value);
  return s;
}

static void write_argument(void* ctx, int arg, int elem, const tt_tensor* t, tt_val value) {
  (void)arg;
  (void)elem;
  captured_write(ctx, t, value);
}

tt_status tt_capture_call(tt_call* call, int num_metas, const tt_meta* metas, tt_outputs* out_outputs) {
  tt_capture* c = tt_capture_current();
  tt_val* outs = tt_calloc(num_metas > 0 ? (size_t)num_metas : 1, sizeof *outs);
  tt_trace_lower(builder(c), &inner_hooks, c, call, num_metas, metas, outs);
  if (!tt_builder_failed(builder(c))) {
    tt_call_each_aliased(call, num_metas, outs, write_argument, c);
  }
  tt_status status = tt_builder_take_error(builder(c));
  out_outputs->plan = NULL;
  out_outputs->count = num_metas;
  out_outputs->items = num_metas <= 8 ? out_outputs->inline_items : tt_calloc((size_t)num_metas, sizeof(tt_output));
  memset(out_outputs->items, 0, (size_t)num_metas * sizeof(tt_output));
  for (int k = 0; k < num_metas && status == NULL; ++k) {
    out_outputs->items[k].meta = &metas[k];
    if (outs[k] != TT_POISON) {
      out_outputs->items[k].storage = captured_storage(c, call->device, &metas[k], outs[k]);
    }
    status = tt_builder_take_error(builder(c));
  }
  if (status != NULL) {
    for (int k = 0; k < num_metas; ++k) {
      tt_storage_release(out_outputs->items[k].storage);
    }
    tt_outputs_deinit(out_outputs);
  }
  free(outs);
  return status;
}

tt_status tt_capture_store(tt_capture* c, const tt_tensor* dst, const void* bytes) {
  tt_type type = tt_type_make(dst->dtype, dst->rank, dst->sizes);
  captured_write(c, dst, tt_const_bytes(builder(c), &type, bytes));
  return tt_builder_take_error(builder(c));
}

// ---- begin and end ------------------------------------------------------------------------------------------------------

tt_status tt_capture_begin(tt_call* call, tt_capture** out_capture) {
  TT_TRY(tt_runtime_start());
  static _Atomic uint64_t ids;
  tt_capture* c = tt_calloc(1, sizeof *c);
  c->id = atomic_fetch_add(&ids, 1) + 1;
  c->call = call;
  tt_bound_init(&c->bound, call);
  tt_lock();
  tt_bound_key_locked(&c->bound);
  tt_bound_freeze_locked(&c->bound);
  tt_unlock();
  if (c->bound.captured) {
    tt_status status = tt_bound_captured(&c->bound);
    tt_bound_deinit(&c->bound);
    free(c);
    return status;
  }
  c->trace = tt_trace_create(&c->bound);
  size_t n = c->bound.count > 0 ? (size_t)c->bound.count : 1;
  c->stand_in = tt_calloc(n, sizeof *c->stand_in);
  c->initial = tt_calloc(n, sizeof *c->initial);
  c->outer = tt_capture_thread_get();
  tt_capture_thread_set(c, c->id);
  *out_capture = c;
  return NULL;
}

static bool same_view(const tt_tensor* a, const tt_tensor* b) {
  if (a->storage != b->storage || a->dtype != b->dtype || a->rank != b->rank || a->offset != b->offset ||
      a->conj != b->conj || a->neg != b->neg) {
    return false;
  }
  return memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof *a->sizes) == 0 &&
         memcmp(a->strides, b->strides, (size_t)a->rank * sizeof *a->strides) == 0;
}

// What stands for a tensor: its own strides if they are dense, else row-major.
static tt_meta stand_in_meta(const tt_tensor* t) {
  tt_meta m = {.dtype = t->dtype, .rank = t->rank};
  tt_type type;
  bool dense = tt_view_dense_type(t->dtype, t->rank, t->sizes, t->strides, &type);
  int64_t run = 1;
  for (int d = t->rank - 1; d >= 0; --d) {
    m.sizes[d] = t->sizes[d];
    m.strides[d] = dense ? t->strides[d] : run;
    run *= t->sizes[d] > 0 ? t->sizes[d] : 1;
  }
  return m;
}

tt_status tt_capture_input(tt_capture* c, int slot, tt_storage** out_storage, tt_meta* out_meta) {
  TT_CHECK(slot >= 0 && slot < c->bound.count);
  const tt_tensor* t = c->bound.slots[slot].t;
  TT_CHECK(t->storage != NULL);
  *out_meta = stand_in_meta(t);
  for (int s = 0; s < slot; ++s) {
    if (c->stand_in[s] != NULL && same_view(c->bound.slots[s].t, t)) {
      tt_storage_retain(c->stand_in[s]);
      *out_storage = c->stand_in[s];
      return NULL;
    }
  }
  tt_storage* s = captured_storage(c, c->call->device, out_meta, tt_trace_read(c->trace, slot, t, TT_DTYPE_INVALID));
  c->stand_in[slot] = s;
  c->initial[slot] = s->captured;
  tt_status status = tt_builder_take_error(builder(c));
  if (status == NULL) {
    tt_storage_retain(s);
    *out_storage = s;
  }
  return status;
}

static void destroy(tt_capture* c) {
  tt_capture_thread_set(c->outer, c->outer != NULL ? c->outer->id : 0);
  for (int s = 0; s < c->bound.count; ++s) {
    tt_storage_release(c->stand_in[s]);
  }
  free(c->stand_in);
  free(c->initial);
  tt_trace_destroy(c->trace);
  tt_bound_deinit(&c->bound);
  free(c);
}

void tt_capture_abandon(tt_capture* c) {
  if (c != NULL) {
    destroy(c);
  }
}

// A stand-in that changed: the change belongs to the tensor it stood for.
static void write_stand_ins(tt_capture* c) {
  for (int slot = 0; slot < c->bound.count; ++slot) {
    tt_storage* s = c->stand_in[slot];
    if (s == NULL || s->captured == c->initial[slot]) {
      continue;
    }
    const tt_tensor* t = c->bound.slots[slot].t;
    tt_meta m = stand_in_meta(t);
    tt_tensor inner = {.storage = s, .sizes = m.sizes, .strides = m.strides, .rank = m.rank, .dtype = m.dtype};
    tt_trace_write(c->trace, slot, t, captured_read(c, &inner));
  }
}

// An output that is an argument: its stand-in carries it.
static void carried(void* ctx, int arg, int elem, const tt_tensor* t, tt_val value) {
  (void)ctx;
  (void)arg;
  (void)elem;
  (void)t;
  (void)value;
}

tt_status tt_capture_end(tt_capture* c, int num_outputs, const tt_tensor* tensors) {
  size_t n = num_outputs > 0 ? (size_t)num_outputs : 1;
  tt_val* outs = tt_calloc(n, sizeof *outs);
  tt_meta* metas = tt_calloc(n, sizeof *metas);
  for (int k = 0; k < num_outputs; ++k) {
    const tt_tensor* t = &tensors[k];
    if (t->dtype == TT_DTYPE_INVALID) {
      continue;
    }
    metas[k] = (tt_meta){.dtype = t->dtype, .rank = t->rank};
    memcpy(metas[k].sizes, t->sizes, (size_t)t->rank * sizeof *t->sizes);
    memcpy(metas[k].strides, t->strides, (size_t)t->rank * sizeof *t->strides);
    outs[k] = t->storage == NULL ? tt_const_scalar(builder(c), &t->host, t->dtype) : captured_read(c, t);
  }
  tt_call_each_aliased(c->call, num_outputs, outs, carried, NULL);
  write_stand_ins(c);
  tt_plan* plan = NULL;
  tt_status status = tt_trace_finish(c->trace, num_outputs, metas, outs, NULL, &plan);
  free(outs);
  free(metas);
  tt_call* call = c->call;
  bool precise = tt_builder_used_precision(builder(c));
  destroy(c);
  if (status == NULL) {
    tt_call_adopt_plan(call, 0, precise, plan);
  }
  return status;
}
