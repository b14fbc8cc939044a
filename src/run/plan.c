// SPDX-License-Identifier: Apache-2.0
//
// Plans: what a known call runs and where results go. The table of plans, launching, and the calls of include/tt/call.h that
// use them.
#include <stdatomic.h>
#include <string.h>

#include "base/knobs.h"
#include "run/call.h"
#include "run/counters.h"
#include "run/generator.h"
#include "run/stats.h"

tt_counters tt_counter;

static tt_map* plans;  // under the runtime lock
static uint64_t use_clock;

// ---- overloads ----------------------------------------------------------------------------------------------------------

tt_overload* tt_overload_create(const char* name, const tt_op* op, int num_args, uint64_t mutates, int num_outputs,
                                const int* out_alias) {
  tt_overload* overload = tt_calloc(1, sizeof *overload);
  overload->name = tt_strdup(name);
  overload->op = op;
  overload->num_args = num_args;
  overload->num_outputs = num_outputs;
  overload->out_alias = tt_memdup(out_alias, (size_t)num_outputs * sizeof *out_alias);
  overload->mutates = mutates;
  overload->bakes_all = op == NULL || op->route != TT_ROUTE_LOWERING;
  return overload;
}
void tt_overload_set_xla_options(tt_overload* overload, const char* xla_options) {
  free(overload->xla_options);
  overload->xla_options = xla_options[0] != '\0' ? tt_strdup(xla_options) : NULL;
}
const char* tt_overload_name(const tt_overload* overload) {
  return overload->name;
}
const tt_op* tt_overload_op(const tt_overload* overload) {
  return overload->op;
}
bool tt_overload_uses_precision(const tt_overload* overload) {
  return atomic_load_explicit(&overload->precise, memory_order_relaxed);
}

// ---- the table ----------------------------------------------------------------------------------------------------------

static void destroy_plan(void* obj) {
  tt_plan* plan = obj;
  tt_exec_release(plan->exec);
  if (plan->program != NULL) {
    plan->text = NULL;
    plan->source_types = plan->result_types = NULL;
    plan->sources = NULL;
    plan->donate = NULL;
    plan->results = NULL;
    tt_obj_release(plan->program);
  }
  free(plan->value_types);
  free(plan->out_padded);
  if (plan->extra != NULL) {
    plan->free_extra(plan->extra);
  }
  free(plan->text);
  free(plan->key);
  free(plan->source_types);
  free(plan->result_types);
  free(plan->sources);
  free(plan->donate);
  free(plan->results);
  free(plan->metas);
  free(plan->out_types);
  free(plan);
}
TT_OBJ_KIND(plan_kind, "plan", destroy_plan);

tt_plan* tt_plan_create(const tt_overload* overload) {
  tt_plan* plan = tt_obj_create(&plan_kind, sizeof *plan);
  static _Atomic uint64_t serials;
  plan->overload = overload;
  plan->serial = atomic_fetch_add(&serials, 1) + 1;
  return plan;
}

void tt_plan_program_name(const tt_plan* plan, char* out, size_t size) {
  const char* name = plan->overload->name;
  size_t n = 0;
  for (; name[n] != '\0' && n + 1 < size; ++n) {
    char c = name[n];
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out[n] = plain ? c : '_';
  }
  out[n] = '\0';
}

tt_status tt_plan_compile(tt_plan* plan, int device_index) {
  tt_lock();
  bool ready = plan->exec != NULL || plan->text == NULL;
  tt_unlock();
  if (ready) {
    return NULL;
  }
  tt_device* device;
  tt_exec* exec = NULL;
  char name[128];
  if (plan->program != NULL) {
    TT_TRY(tt_plan_compile(plan->program, device_index));
    tt_lock();
    if (plan->exec == NULL) {
      plan->exec = plan->program->exec;
      tt_exec_retain(plan->exec);
    }
    tt_unlock();
    return NULL;
  }
  tt_plan_program_name(plan, name, sizeof name);
  TT_TRY(tt_device_get(device_index, &device));
  TT_TRY(tt_compile(device, name, plan->text, plan->overload->xla_options, &exec));
  tt_lock();
  if (plan->exec == NULL) {
    plan->exec = exec;
    exec = NULL;
  }
  tt_unlock();
  tt_exec_release(exec);
  return NULL;
}

tt_plan* tt_plan_find_locked(tt_bound* bound) {
  if (plans == NULL) {
    return NULL;
  }
  tt_plan* plan = tt_map_find(plans, bound->words, bound->num_words, bound->hash);
  if (plan != NULL) {
    plan->used = ++use_clock;
  }
  return plan;
}

// The half of the table used least recently goes, when it is full: seldom, and in one sweep.
static void drop_plans_locked(void (*each)(void*, void*), void* ctx) {
  tt_map* old = plans;
  plans = NULL;
  tt_map_each(old, each, ctx);
  tt_map_destroy(old);
}
static void release_plan(void* value, void* ctx) {
  (void)ctx;
  tt_obj_release(value);
}

void tt_plan_install_locked(tt_bound* bound, tt_plan* plan) {
  if (plans != NULL && tt_map_count(plans) >= (size_t)tt_knobs()->cache_programs * 4) {
    drop_plans_locked(release_plan, NULL);
  }
  if (plans == NULL) {
    plans = tt_map_create();
  }
  plan->used = ++use_clock;
  if (tt_map_find(plans, bound->words, bound->num_words, bound->hash) != NULL) {
    tt_obj_release(plan);  // another thread was first
    return;
  }
  plan->key = tt_memdup(bound->words, bound->num_words * sizeof *bound->words);
  plan->key_words = bound->num_words;
  tt_map_insert(plans, bound->words, bound->num_words, bound->hash, plan);
}

void tt_plan_each_locked(void (*fn)(void* plan, void* ctx), void* ctx) {
  if (plans != NULL) {
    tt_map_each(plans, fn, ctx);
  }
}

void tt_plans_forget(void) {
  tt_lock();
  if (plans != NULL) {
    drop_plans_locked(release_plan, NULL);
  }
  tt_unlock();
}

int64_t tt_plans_held(void) {
  tt_lock();
  int64_t n = plans != NULL ? (int64_t)tt_map_count(plans) : 0;
  tt_unlock();
  return n;
}

// ---- launching ----------------------------------------------------------------------------------------------------------

tt_status tt_plan_number(const tt_plan* plan, const tt_bound* bound, const tt_source* source, tt_scalar* out_number) {
  const tt_argument* arg = &bound->call->args[source->kind == TT_SOURCE_NUMBER ? source->index : 0];
  switch (source->kind) {
    case TT_SOURCE_OFFSET:
      *out_number = (tt_scalar){.kind = 'i', .i = bound->slots[source->index].t->offset};
      return NULL;
    case TT_SOURCE_SIZE:
      *out_number = (tt_scalar){.kind = 'i', .i = plan->sizes[source->index]};
      return NULL;
    case TT_SOURCE_HOST:
      *out_number = bound->slots[source->index].t->host;
      return NULL;
    case TT_SOURCE_NUMBER:
      if (arg->kind == TT_ARG_NUMBERS) {
        *out_number = arg->numbers[source->elem];
      } else if (arg->kind == TT_ARG_FLOATS) {
        *out_number = (tt_scalar){.kind = 'f', .re = arg->floats[source->elem]};
      } else {
        *out_number = arg->number;
        out_number->kind = arg->kind == TT_ARG_FLOAT ? 'f' : arg->kind == TT_ARG_COMPLEX ? 'c' : 'i';
      }
      return NULL;
    default:
      TT_FAIL(TT_INTERNAL, "%s: input of kind %d is no number", plan->overload->name, (int)source->kind);
  }
}

static tt_status gather_input_locked(tt_plan* plan, tt_bound* bound, tt_device* d, const tt_source* source,
                                     const char* where, tt_buffer** out, bool* out_owned) {
  const tt_call* call = bound->call;
  tt_scalar number;
  *out_owned = false;
  switch (source->kind) {
    case TT_SOURCE_VALUE:
      *out = bound->slots[source->index].t->storage->buffer;
      return NULL;
    case TT_SOURCE_RANDOM: {
      uint64_t state[3] = {0, 0, 0};
      tt_generator_advance(call->generator != NULL ? call->generator : d->generator, plan->random_steps, &state[0],
                           &state[1]);
      *out_owned = true;
      return tt_device_random_state(d, state, out);
    }
    case TT_SOURCE_CHECK:
      return tt_device_check_buffer_locked(d, out);
    case TT_SOURCE_SITE:
      number = tt_device_check_site_locked(d, plan->overload->name, where);
      TT_TRY(tt_device_scalar_locked(d, &number, TT_I64, out));
      break;
    default:
      TT_TRY(tt_plan_number(plan, bound, source, &number));
      TT_TRY(tt_device_scalar_locked(d, &number, source->dtype, out));
      break;
  }
  // Numbers stay on the device as long as their slot is not needed for others: hold them for this launch.
  tt_buffer_retain(*out);
  *out_owned = true;
  return NULL;
}

static void init_outputs(tt_outputs* outputs, int count) {
  outputs->count = count;
  outputs->items = count <= 8 ? outputs->inline_items : tt_calloc((size_t)count, sizeof *outputs->items);
  memset(outputs->items, 0, (size_t)count * sizeof *outputs->items);
}
void* tt_outputs_extra(const tt_outputs* outputs) {
  return outputs->plan != NULL ? outputs->plan->extra : NULL;
}

void tt_outputs_deinit(tt_outputs* outputs) {
  tt_obj_release(outputs->plan);
  outputs->plan = NULL;
  if (outputs->items != outputs->inline_items) {
    free(outputs->items);
  }
  outputs->items = outputs->inline_items;
  outputs->count = 0;
}

void tt_plan_make_outputs_locked(tt_plan* plan, int device, tt_outputs* out_outputs) {
  init_outputs(out_outputs, plan->num_outputs);
  tt_obj_retain(plan);
  out_outputs->plan = plan;
  for (int k = 0; k < plan->num_outputs; ++k) {
    out_outputs->items[k].meta = &plan->metas[k];
    if (plan->out_types[k].dtype != TT_DTYPE_INVALID) {
      tt_storage* made = tt_storage_new(device, &plan->out_types[k], tt_type_bytes(&plan->out_types[k]));
      if (plan->out_padded != NULL) {
        tt_storage_set_type(made, &plan->out_types[k], &plan->out_padded[k]);
      }
      out_outputs->items[k].storage = made;
    }
  }
}

static void place_result_locked(tt_plan* plan, tt_bound* bound, tt_device* d, int number, tt_buffer* buffer,
                                tt_outputs* outputs) {
  const tt_result* result = &plan->results[number];
  const tt_type* type = plan->value_types != NULL ? &plan->value_types[number] : tt_buffer_type(buffer);
  switch (result->kind) {
    case TT_RESULT_OUTPUT:
      tt_storage_set_value_take(outputs->items[result->index].storage, buffer, type, plan->overload->name);
      break;
    case TT_RESULT_WRITE:
      tt_storage_set_value_take(bound->slots[result->index].t->storage, buffer, type, plan->overload->name);
      break;
    case TT_RESULT_CHECK:
    default:
      tt_buffer_release(d->check);
      d->check = buffer;
      break;
  }
}

enum { INLINE_BUFFERS = 32 };

static tt_status run_locked(tt_plan* plan, tt_bound* bound, tt_device* d, const char* where, tt_buffer** inputs,
                            bool* owned, tt_buffer** results) {
  TT_TRY(tt_device_reserve(d, plan->new_bytes, plan->overload->name));
  int have = 0;
  tt_status status = NULL;
  for (; have < plan->num_sources && status == NULL; ++have) {
    inputs[have] = NULL;
    status = gather_input_locked(plan, bound, d, &plan->sources[have], where, &inputs[have], &owned[have]);
  }
  if (status == NULL) {
    status = tt_exec_run(plan->exec, d->pjrt, plan->num_sources, inputs, plan->donate, results);
  }
  for (int i = 0; i < have; ++i) {
    if (owned[i]) {
      tt_buffer_release(inputs[i]);
    }
  }
  return status;
}

tt_status tt_plan_launch_locked(tt_plan* plan, tt_bound* bound, const char* where, tt_outputs* out_outputs,
                                tt_pending** out_wait) {
  tt_device* d;
  *out_wait = NULL;
  TT_TRY(tt_device_get(bound->call->device, &d));
  size_t sources = (size_t)plan->num_sources;
  size_t count = (size_t)plan->num_results;
  tt_buffer* inline_inputs[INLINE_BUFFERS];
  tt_buffer* inline_results[INLINE_BUFFERS];
  bool inline_owned[INLINE_BUFFERS];
  tt_buffer** inputs = sources <= INLINE_BUFFERS ? inline_inputs : tt_malloc(sources * sizeof *inputs);
  bool* owned = sources <= INLINE_BUFFERS ? inline_owned : tt_malloc(sources * sizeof *owned);
  tt_buffer** results = count <= INLINE_BUFFERS ? inline_results : tt_malloc(count * sizeof *results);
  tt_status status = NULL;
  if (plan->exec != NULL) {
    status = run_locked(plan, bound, d, where, inputs, owned, results);
    TT_COUNT(launches, status == NULL ? 1 : 0);
  }
  if (status == NULL) {
    tt_plan_make_outputs_locked(plan, bound->call->device, out_outputs);
    if (plan->exec != NULL) {
      tt_device_note_launch_locked(d, results[0], plan->new_bytes, out_wait);
    }
    for (size_t r = 0; r < count; ++r) {
      place_result_locked(plan, bound, d, (int)r, results[r], out_outputs);
    }
  }
  if (inputs != inline_inputs) {
    free(inputs);
    free(owned);
  }
  if (results != inline_results) {
    free(results);
  }
  return status == NULL ? NULL : tt_status_annotate(status, "running %s", plan->overload->name);
}
