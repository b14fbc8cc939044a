// SPDX-License-Identifier: Apache-2.0
//
// The public calls: run a known call, make the plan of an unknown one.
#include "tt/call.h"

#include <stdatomic.h>
#include <string.h>

#include "run/call.h"
#include "run/capture.h"
#include "run/counters.h"
#include "run/explain.h"
#include "run/family.h"
#include "run/fuse.h"

// Debug mode: waits for the call's results and says where it was made.
static tt_status await_call(tt_bound* bound, tt_plan* plan, tt_outputs* outputs, const char* where) {
  tt_device* d;
  TT_TRY(tt_device_get(bound->call->device, &d));
  tt_status status = tt_device_synchronize(d);
  for (int k = 0; k < outputs->count && status == NULL; ++k) {
    tt_storage* s = outputs->items[k].storage;
    if (s != NULL && s->buffer != NULL) {
      status = tt_buffer_await(s->buffer);
    }
  }
  if (status == NULL) {
    return NULL;
  }
  for (int k = 0; k < outputs->count; ++k) {
    tt_storage_release(outputs->items[k].storage);
  }
  tt_outputs_deinit(outputs);
  if (tt_status_code(status) == TT_OUT_OF_RANGE) {
    return status;  // names both already
  }
  return tt_status_annotate(status, "%s%s%s", plan->overload->name, where[0] != '\0' ? " at " : "", where);
}

// With the lock held and a plan found: launches it, or records it in fused mode.
static tt_status serve_locked(tt_plan* plan, tt_bound* bound, tt_mode mode, const char* where, tt_outputs* outputs,
                              tt_pending** out_wait, bool* out_full) {
  TT_COUNT(calls, 1);
  TT_COUNT(hits, 1);
  if (mode == TT_MODE_FUSED) {
    return tt_fuse_record_locked(plan, bound, where, outputs, out_full);
  }
  return tt_plan_launch_locked(plan, bound, where, outputs, out_wait);
}

// Keys the call and finds its plan, with the lock held before and after; lets go of it in between to wait for a trace that runs, to
// name the Python line (the interpreter's lock is never taken under ours), or to compile a plan whose program was put off.
static tt_status find_locked(tt_bound* bound, tt_mode mode, char* where, int where_size, tt_plan** out_plan) {
  for (;;) {
    tt_bound_key_locked(bound);
    if (__builtin_expect(bound->captured, 0)) {
      return tt_bound_captured(bound);
    }
    tt_fuse_state state = tt_fuse_state_locked(bound);
    if (__builtin_expect(state == TT_FUSE_RUNNING || (state == TT_FUSE_PENDING && mode != TT_MODE_FUSED), 0)) {
      tt_unlock();
      if (state == TT_FUSE_RUNNING) {
        tt_fuse_wait();
      }
      tt_status status =
          state == TT_FUSE_PENDING ? tt_flush_because("a call outside fused mode uses what is recorded") : NULL;
      tt_lock();
      TT_TRY(status);
      continue;
    }
    tt_plan* plan = tt_plan_find_locked(bound);
    *out_plan = plan;
    if (plan == NULL) {
      return NULL;
    }
    bool compile = mode != TT_MODE_FUSED && plan->text != NULL && plan->exec == NULL;
    bool name = plan->checks && where[0] == '\0';
    if (!compile && !name) {
      return NULL;
    }
    tt_obj_retain(plan);
    tt_unlock();
    tt_status status = compile ? tt_plan_compile(plan, bound->call->device) : NULL;
    if (name) {
      tt_where_now(where, where_size);
      if (where[0] == '\0') {
        strcpy(where, " ");
      }
    }
    tt_obj_release(plan);
    tt_lock();
    TT_TRY(status);
  }
}

tt_status tt_call_run(tt_call* call, tt_outputs* out_outputs, bool* out_hit) {
  tt_bound bound;
  char where[112] = "";
  tt_pending* wait = NULL;
  tt_plan* plan = NULL;
  bool full = false;
  tt_mode mode = tt_mode_get();
  if (mode == TT_MODE_FUSED && call->overload->xla_options != NULL) {
    mode = TT_MODE_STRICT;  // compiled by itself, with options of its own
  }
  *out_hit = false;
  TT_TRY(tt_runtime_start());
  if (mode == TT_MODE_DEBUG) {
    tt_where_now(where, sizeof where);
  }
  tt_bound_init(&bound, call);
  tt_lock();
  tt_status status = find_locked(&bound, mode, where, sizeof where, &plan);
  if (status == NULL && plan != NULL) {
    status = serve_locked(plan, &bound, mode, where, out_outputs, &wait, &full);
    *out_hit = true;
    if (mode == TT_MODE_DEBUG) {
      tt_obj_retain(plan);
    }
  }
  tt_unlock();
  if (__builtin_expect(wait != NULL, 0)) {
    tt_status_free(tt_pending_await_release(wait));  // a failed launch reports through its own outputs
  }
  if (*out_hit && mode == TT_MODE_DEBUG) {
    status = status == NULL ? await_call(&bound, plan, out_outputs, where) : status;
    tt_obj_release(plan);
  }
  if (full && status == NULL) {
    tt_device* d;
    status = tt_device_get(call->device, &d);
    status = status == NULL ? tt_fuse_flush(d, "the trace is full") : status;
  }
  tt_bound_deinit(&bound);
  return status;
}

// ---- making plans -------------------------------------------------------------------------------------------------------

static tt_val hook_read(tt_lower* L, int slot, const tt_tensor* t, tt_dtype dtype) {
  return tt_trace_read(L->ctx, slot, t, dtype);
}
static void hook_write(tt_lower* L, int slot, const tt_tensor* t, tt_val value) {
  tt_trace_write(L->ctx, slot, t, value);
}
static tt_val hook_number(tt_lower* L, int arg, int elem, const tt_scalar* value, tt_dtype dtype) {
  return tt_trace_number(L->ctx, arg, elem, value, dtype);
}
static void hook_bake(tt_lower* L, int arg) {
  tt_trace_bake(L->ctx, arg);
}
static tt_val hook_random(tt_lower* L, const tt_type* type) {
  return tt_trace_random_bits(L->ctx, type);
}
static void hook_report(tt_lower* L, tt_val bad, tt_val index, int64_t size) {
  tt_trace_report_index(L->ctx, bad, index, size);
}
static const tt_lower_hooks call_hooks = {hook_read, hook_write, hook_number, hook_bake, hook_random, hook_report};

void tt_call_adopt_plan(tt_call* call, uint64_t baked, bool precise, tt_plan* plan) {
  tt_bound bound;
  plan->extra = call->extra;
  plan->free_extra = call->free_extra;
  call->extra = NULL;
  atomic_fetch_or(&call->overload->baked, baked);
  if (precise) {
    atomic_store(&call->overload->precise, true);
  }
  tt_bound_init(&bound, call);
  tt_lock();
  tt_bound_key_locked(&bound);
  bool explained = tt_explain_is_on();
  if (explained) {
    tt_obj_retain(plan);
  }
  tt_plan_install_locked(&bound, plan);
  char* news = explained && plan->key != NULL ? tt_explain_plan_locked(plan) : NULL;
  tt_unlock();
  tt_bound_deinit(&bound);
  tt_explain_note_take(TT_EXPLAIN_NEW, news);
  if (explained) {
    tt_obj_release(plan);
  }
}

// Results of in-place and out= overloads go to the argument they stand for; a list of results to a list argument.
void tt_call_each_aliased(const tt_call* call, int num_metas, tt_val* outs,
                          void (*write)(void* ctx, int arg, int elem, const tt_tensor* t, tt_val value), void* ctx) {
  const tt_overload* overload = call->overload;
  int k = 0;
  for (int o = 0; o < overload->num_outputs && k < num_metas; ++o) {
    int arg = overload->out_alias[o];
    int count = arg >= 0 && call->args[arg].kind == TT_ARG_TENSORS ? call->args[arg].count : 1;
    for (int j = 0; j < count && k < num_metas; ++j, ++k) {
      if (arg >= 0 && outs[k] != TT_POISON) {
        write(ctx, arg, j, &call->args[arg].tensors[j], outs[k]);
        outs[k] = TT_POISON;
      }
    }
  }
}

typedef struct write_back {
  tt_trace* trace;
  tt_bound* bound;
} write_back;

static void write_one(void* ctx, int arg, int elem, const tt_tensor* t, tt_val value) {
  write_back* w = ctx;
  tt_trace_write(w->trace, w->bound->first_slot[arg] + elem, t, value);
}

void tt_trace_lower_call(tt_trace* trace, tt_bound* bound, int num_metas, const tt_meta* metas, tt_val* outs) {
  tt_builder* b = tt_trace_builder(trace);
  tt_trace_lower(b, &call_hooks, trace, bound->call, num_metas, metas, outs);
  if (!tt_builder_failed(b)) {
    write_back w = {trace, bound};
    tt_call_each_aliased(bound->call, num_metas, outs, write_one, &w);
  }
}

tt_status tt_call_lower(tt_call* call, int num_metas, const tt_meta* metas) {
  tt_bound bound;
  TT_TRY(tt_runtime_start());
  tt_pattern pattern;
  tt_bound_init(&bound, call);
  tt_lock();
  tt_pattern_take_locked(&bound, &pattern);
  tt_bound_key_locked(&bound);
  tt_bound_freeze_locked(&bound);
  tt_unlock();
  tt_plan* plan = NULL;
  bool precise = false;
  uint32_t* pad = NULL;
  tt_status status = tt_family_plan(&bound, &pattern, num_metas, metas, &plan, &precise, &pad);
  tt_pattern_free(&pattern);
  if (status != NULL || plan != NULL) {
    if (plan != NULL) {
      tt_call_adopt_plan(call, 0, precise, plan);
    }
    free(pad);
    tt_bound_deinit(&bound);
    return status;
  }
  tt_trace* trace = tt_trace_create(&bound);
  tt_val* outs = tt_calloc(num_metas > 0 ? (size_t)num_metas : 1, sizeof *outs);
  tt_trace_lower_call(trace, &bound, num_metas, metas, outs);
  status = tt_trace_finish(trace, num_metas, metas, outs, pad, &plan);
  free(pad);
  if (status == NULL) {
    tt_call_adopt_plan(call, tt_trace_baked(trace), tt_builder_used_precision(tt_trace_builder(trace)), plan);
  }
  free(outs);
  tt_trace_destroy(trace);
  tt_bound_deinit(&bound);
  return status;
}
