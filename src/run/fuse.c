// SPDX-License-Identifier: Apache-2.0
#include "run/fuse.h"

#include <stdatomic.h>
#include <string.h>

#include "base/knobs.h"
#include "base/log.h"
#include "run/counters.h"
#include "run/generator.h"
#include "run/stats.h"

// A cut when a trace holds this many nodes, or its values would take this many bytes.
enum { MAX_NODES = 4096 };
static const int64_t max_value_bytes = INT64_C(4) << 30;

typedef struct param {
  tt_buffer* buffer;  // held from the record on; NULL for the check accumulator until the trace runs
  tt_type type;
  bool is_check;
  const tt_storage* from;  // whose value it was (identity only): the first choice for taking over its memory
} param;

typedef struct value {
  tt_storage* owner;  // the storage whose pending value it is, or NULL: then nobody sees it. Not held.
  const tt_type* type;
  tt_buffer* buffer;  // while running
  int last_use;       // node that reads it last, when run call by call
  const char* op;
} value;

struct tt_fuse {
  tt_device* device;
  bool running;  // taken for running: calls that meet its values wait
  TT_VEC(tt_fuse_node) nodes;
  TT_VEC(int) operands;
  TT_VEC(param) params;
  TT_VEC(value) values;
  TT_VEC(uint64_t) key;
  tt_map* param_of;  // buffer -> parameter + 1
  bool checked;      // some node checks indexes
  int check_value;   // then: the accumulator now, an operand
  int64_t value_bytes;
};

// A trace's program: compiled by a worker, shared by all traces that are alike.
typedef struct fused {
  enum { FUSED_NEW, FUSED_COMPILING, FUSED_READY, FUSED_FAILED } state;
  tt_exec* exec;
  char* text;
  tt_device* device;
} fused;

static tt_map* programs;       // key -> fused; under the runtime lock
static tt_pool* pool;
static tt_mutex run_lock = TT_MUTEX_INIT;  // one trace runs at a time; taken before the runtime lock

// ---- recording ----------------------------------------------------------------------------------------------------------

static void drop_storage(tt_storage* storage) {
  tt_lock();
  tt_fuse_disown_locked(storage);
  tt_unlock();
}

static tt_fuse* fuse_create(tt_device* device) {
  static _Atomic bool hooked;
  if (!atomic_exchange(&hooked, true)) {
    tt_storage_set_drop_hook(drop_storage);
  }
  tt_fuse* f = tt_calloc(1, sizeof *f);
  f->device = device;
  f->param_of = tt_map_create();
  return f;
}

static void fuse_destroy(tt_fuse* f) {
  for (size_t i = 0; i < f->nodes.count; ++i) {
    tt_obj_release(f->nodes.items[i].plan);
  }
  for (size_t i = 0; i < f->params.count; ++i) {
    tt_buffer_release(f->params.items[i].buffer);
  }
  for (size_t i = 0; i < f->values.count; ++i) {
    tt_buffer_release(f->values.items[i].buffer);
  }
  TT_VEC_FREE(&f->nodes);
  TT_VEC_FREE(&f->operands);
  TT_VEC_FREE(&f->params);
  TT_VEC_FREE(&f->values);
  TT_VEC_FREE(&f->key);
  tt_map_destroy(f->param_of);
  free(f);
}

void tt_fuse_disown_locked(tt_storage* storage) {
  tt_fuse* f = storage->fuse;
  if (f != NULL) {
    f->values.items[storage->fuse_value].owner = NULL;
    __atomic_store_n(&storage->fuse, NULL, __ATOMIC_RELEASE);
  }
}

bool tt_fuse_is_running_locked(const tt_storage* storage) { return storage->fuse != NULL && storage->fuse->running; }

tt_fuse_state tt_fuse_state_locked(const tt_bound* bound) {
  tt_fuse_state state = TT_FUSE_CLEAR;
  for (int i = 0; i < bound->count; ++i) {
    const tt_storage* storage = bound->slots[i].t->storage;
    if (storage != NULL && storage->fuse != NULL) {
      if (storage->fuse->running) {
        return TT_FUSE_RUNNING;
      }
      state = TT_FUSE_PENDING;
    }
  }
  return state;
}

void tt_fuse_wait(void) {
  tt_mutex_lock(&run_lock);
  tt_mutex_unlock(&run_lock);
}

static int add_param(tt_fuse* f, tt_buffer* buffer, const tt_type* type) {
  TT_VEC_PUSH(&f->params, (param){.buffer = buffer, .type = *type});
  return ~(int)(f->params.count - 1);
}

// A storage's value as an operand: pending in this trace, or a buffer that becomes a parameter, once.
static int storage_operand(tt_fuse* f, tt_storage* s) {
  if (s->fuse == f) {
    return s->fuse_value;
  }
  uint64_t word = (uint64_t)(uintptr_t)s->buffer;
  uint64_t hash = tt_hash_words(&word, 1);
  void* found = tt_map_find(f->param_of, &word, 1, hash);
  if (found != NULL) {
    return ~((int)(uintptr_t)found - 1);
  }
  tt_buffer_retain(s->buffer);
  int operand = add_param(f, s->buffer, &s->type);
  f->params.items[~operand].from = s;
  tt_map_insert(f->param_of, &word, 1, hash, (void*)(uintptr_t)f->params.count);
  return operand;
}

static tt_status operand_of_locked(tt_fuse* f, tt_plan* plan, tt_bound* bound, int index, const char* where, int* out_operand) {
  const tt_source* source = &plan->sources[index];
  tt_device* d = f->device;
  tt_buffer* buffer = NULL;
  tt_scalar number;
  switch (source->kind) {
    case TT_SOURCE_VALUE:
      *out_operand = storage_operand(f, bound->slots[source->index].t->storage);
      return NULL;
    case TT_SOURCE_CHECK:
      if (!f->checked) {
        f->checked = true;
        f->check_value = add_param(f, NULL, &plan->source_types[index]);
        f->params.items[~f->check_value].is_check = true;
      }
      *out_operand = f->check_value;
      return NULL;
    case TT_SOURCE_RANDOM: {
      uint64_t state[3] = {0, 0, 0};
      tt_generator* generator = bound->call->generator != NULL ? bound->call->generator : d->generator;
      tt_generator_advance(generator, plan->random_steps, &state[0], &state[1]);
      TT_TRY(tt_device_random_state(d, state, &buffer));
      break;
    }
    case TT_SOURCE_SITE:
      TT_TRY(tt_device_check_site_locked(d, plan->overload->name, where, &buffer));
      tt_buffer_retain(buffer);
      break;
    default:
      TT_TRY(tt_plan_number(plan, bound, source, &number));
      TT_TRY(tt_device_scalar_locked(d, &number, source->dtype, &buffer));
      tt_buffer_retain(buffer);
      break;
  }
  *out_operand = add_param(f, buffer, &plan->source_types[index]);
  return NULL;
}

static void own_locked(tt_fuse* f, tt_storage* storage, int number, const tt_type* type) {
  tt_fuse_disown_locked(storage);
  tt_storage_set_buffer_take(storage, NULL, NULL);
  storage->type = *type;
  storage->fuse_value = number;
  __atomic_store_n(&storage->fuse, f, __ATOMIC_RELEASE);
  f->values.items[number].owner = storage;
}

tt_status tt_fuse_record_locked(tt_plan* plan, tt_bound* bound, const char* where, tt_outputs* out_outputs, bool* out_full) {
  tt_device* d;
  TT_TRY(tt_device_get(bound->call->device, &d));
  *out_full = false;
  if (plan->text == NULL) {
    tt_plan_make_outputs_locked(plan, d->index, out_outputs);
    return NULL;
  }
  if (d->fuse == NULL) {
    d->fuse = fuse_create(d);
  }
  tt_fuse* f = d->fuse;
  size_t operands = f->operands.count;
  TT_VEC_PUSH(&f->key, plan->serial);
  for (int i = 0; i < plan->num_sources; ++i) {
    int operand;
    tt_status status = operand_of_locked(f, plan, bound, i, where, &operand);
    if (status != NULL) {
      f->operands.count = operands;
      f->key.count -= (size_t)i + 1;
      return status;
    }
    TT_VEC_PUSH(&f->operands, operand);
    TT_VEC_PUSH(&f->key, (uint64_t)(int64_t)operand);
  }
  int first = (int)f->values.count;
  int node = (int)f->nodes.count;
  tt_obj_retain(plan);
  TT_VEC_PUSH(&f->nodes, (tt_fuse_node){.plan = plan, .first_operand = (int)operands, .first_value = first});
  for (size_t i = operands; i < f->operands.count; ++i) {
    if (f->operands.items[i] >= 0) {
      f->values.items[f->operands.items[i]].last_use = node;
    }
  }
  tt_plan_make_outputs_locked(plan, d->index, out_outputs);
  for (int r = 0; r < plan->num_results; ++r) {
    const tt_type* type = &plan->result_types[r];
    TT_VEC_PUSH(&f->values, (value){.type = type, .last_use = -1, .op = plan->overload->name});
    f->value_bytes += tt_type_bytes(type);
    int number = first + r;
    if (plan->results[r].kind == TT_RESULT_OUTPUT) {
      own_locked(f, out_outputs->items[plan->results[r].index].storage, number, type);
    } else if (plan->results[r].kind == TT_RESULT_WRITE) {
      own_locked(f, bound->slots[plan->results[r].index].t->storage, number, type);
    } else {
      f->check_value = number;
    }
  }
  TT_COUNT(recorded, 1);
  *out_full = f->nodes.count >= MAX_NODES || f->value_bytes > max_value_bytes;
  return NULL;
}

// ---- running ------------------------------------------------------------------------------------------------------------

// What the program of a trace gives back, and which parameters give up their memory.
typedef struct shape {
  int num_outputs;
  int* outputs;        // values
  tt_type* types;
  int* alias;          // by parameter: output or -1
  bool* donate;        // by parameter
} shape;

static shape shape_of_locked(tt_fuse* f) {
  shape s = {0};
  size_t n = f->values.count + 1;
  s.outputs = tt_malloc(n * sizeof *s.outputs);
  s.types = tt_malloc(n * sizeof *s.types);
  for (size_t v = 0; v < f->values.count; ++v) {
    bool is_check = f->checked && f->check_value == (int)v;
    if (f->values.items[v].owner != NULL || is_check) {
      s.types[s.num_outputs] = *f->values.items[v].type;
      s.outputs[s.num_outputs++] = (int)v;
    }
  }
  size_t params = f->params.count > 0 ? f->params.count : 1;
  s.alias = tt_malloc(params * sizeof *s.alias);
  s.donate = tt_calloc(params, sizeof *s.donate);
  bool* taken = tt_calloc((size_t)s.num_outputs + 1, sizeof *taken);
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t p = 0; p < f->params.count; ++p) {
      param* in = &f->params.items[p];
      if (pass == 0) {
        s.alias[p] = -1;
      }
      // Only this trace holds the buffer: nobody reads it afterwards. First its own storage's new value, then any of its type.
      bool free_to_go = in->is_check || (in->from != NULL && tt_obj_refs(in->buffer) == 1);
      for (int o = 0; free_to_go && s.alias[p] < 0 && o < s.num_outputs; ++o) {
        const value* out = &f->values.items[s.outputs[o]];
        bool own = in->is_check ? out->owner == NULL : out->owner == in->from;
        if (!taken[o] && (own || pass == 1) && (out->owner == NULL) == in->is_check && tt_type_equal(&in->type, &s.types[o])) {
          taken[o] = s.donate[p] = true;
          s.alias[p] = o;
        }
      }
    }
  }
  free(taken);
  return s;
}

static void shape_free(shape* s) {
  free(s->outputs);
  free(s->types);
  free(s->alias);
  free(s->donate);
}

static void finish_key(tt_fuse* f, const shape* s) {
  TT_VEC_PUSH(&f->key, UINT64_C(0xfe) << 56 | (uint64_t)s->num_outputs);
  for (int o = 0; o < s->num_outputs; ++o) {
    TT_VEC_PUSH(&f->key, (uint64_t)s->outputs[o]);
  }
  for (size_t p = 0; p < f->params.count; ++p) {
    if (s->alias[p] >= 0) {
      TT_VEC_PUSH(&f->key, (uint64_t)p << 32 | (uint64_t)s->alias[p]);
    }
  }
}

static void place_locked(tt_fuse* f, int number, tt_buffer* buffer) {
  value* v = &f->values.items[number];
  tt_storage* owner = v->owner;
  if (owner != NULL) {
    v->owner = NULL;
    __atomic_store_n(&owner->fuse, NULL, __ATOMIC_RELEASE);
    tt_storage_set_buffer_take(owner, buffer, v->op);
  } else if (f->checked && f->check_value == number) {
    tt_buffer_release(f->device->check);
    f->device->check = buffer;
  } else {
    tt_buffer_release(buffer);
  }
}

static tt_status check_param_locked(tt_fuse* f) {
  for (size_t p = 0; p < f->params.count; ++p) {
    if (f->params.items[p].is_check) {
      TT_TRY(tt_device_check_buffer_locked(f->device, &f->params.items[p].buffer));
      tt_buffer_retain(f->params.items[p].buffer);
    }
  }
  return NULL;
}

static tt_status run_fused_locked(tt_fuse* f, const shape* s, tt_exec* exec, tt_pending** out_wait) {
  size_t params = f->params.count > 0 ? f->params.count : 1;
  size_t outputs = s->num_outputs > 0 ? (size_t)s->num_outputs : 1;
  tt_buffer** inputs = tt_malloc(params * sizeof *inputs);
  tt_buffer** results = tt_malloc(outputs * sizeof *results);
  for (size_t p = 0; p < f->params.count; ++p) {
    inputs[p] = f->params.items[p].buffer;
  }
  int64_t bytes = 0;
  for (int o = 0; o < s->num_outputs; ++o) {
    bytes += tt_type_bytes(&s->types[o]);
  }
  tt_status status = tt_device_reserve(f->device, bytes, "a fused program");
  if (status == NULL) {
    status = tt_exec_run(exec, f->device->pjrt, (int)f->params.count, inputs, s->donate, results);
  }
  if (status == NULL) {
    TT_COUNT(launches, 1);
    TT_COUNT(fused_runs, 1);
    tt_device_note_launch_locked(f->device, results[0], bytes, out_wait);
    for (int o = 0; o < s->num_outputs; ++o) {
      place_locked(f, s->outputs[o], results[o]);
    }
  }
  free(inputs);
  free(results);
  return status;
}

// One node by its own program.
static tt_status run_node_locked(tt_fuse* f, int number, tt_pending** out_wait) {
  tt_fuse_node* node = &f->nodes.items[number];
  tt_plan* plan = node->plan;
  size_t n = plan->num_sources > 0 ? (size_t)plan->num_sources : 1;
  tt_buffer** inputs = tt_malloc(n * sizeof *inputs);
  tt_buffer** results = tt_malloc((size_t)plan->num_results * sizeof *results);
  bool* donate = tt_calloc(n, sizeof *donate);
  for (int i = 0; i < plan->num_sources; ++i) {
    int operand = f->operands.items[node->first_operand + i];
    inputs[i] = operand < 0 ? f->params.items[~operand].buffer : f->values.items[operand].buffer;
    donate[i] = plan->sources[i].kind == TT_SOURCE_CHECK;
  }
  tt_status status = tt_device_reserve(f->device, plan->new_bytes, plan->overload->name);
  if (status == NULL) {
    status = tt_exec_run(plan->exec, f->device->pjrt, plan->num_sources, inputs, donate, results);
  }
  if (status == NULL) {
    TT_COUNT(launches, 1);
    tt_device_note_launch_locked(f->device, results[0], plan->new_bytes, out_wait);
    for (int r = 0; r < plan->num_results; ++r) {
      f->values.items[node->first_value + r].buffer = results[r];
    }
    // Values read for the last time, and by nobody else, go.
    for (int i = 0; i < plan->num_sources; ++i) {
      int operand = f->operands.items[node->first_operand + i];
      bool is_check = f->checked && operand == f->check_value;
      if (operand >= 0 && f->values.items[operand].last_use == number && f->values.items[operand].owner == NULL && !is_check) {
        tt_buffer_release(f->values.items[operand].buffer);
        f->values.items[operand].buffer = NULL;
      }
    }
  }
  free(inputs);
  free(results);
  free(donate);
  return status;
}

static tt_status run_call_by_call(tt_fuse* f) {
  for (size_t i = 0; i < f->nodes.count; ++i) {
    tt_pending* wait = NULL;
    TT_TRY(tt_plan_compile(f->nodes.items[i].plan, f->device->index));
    tt_lock();
    tt_status status = run_node_locked(f, (int)i, &wait);
    tt_unlock();
    tt_status_free(tt_pending_await_release(wait));
    TT_TRY(status);
  }
  tt_lock();
  for (size_t v = 0; v < f->values.count; ++v) {
    value* made = &f->values.items[v];
    if (made->owner != NULL || (f->checked && f->check_value == (int)v)) {
      tt_buffer* buffer = made->buffer;
      made->buffer = NULL;
      place_locked(f, (int)v, buffer);
    }
  }
  tt_unlock();
  return NULL;
}

static void compile_fused(void* arg) {
  fused* program = arg;
  tt_exec* exec = NULL;
  tt_status status = tt_compile(program->device, "fused", program->text, &exec);
  if (status != NULL) {
    tt_warn("a fused program does not compile, its calls run one by one: %s", tt_status_text(status));
    tt_status_free(status);
  }
  tt_lock();
  program->exec = exec;
  program->state = exec != NULL ? FUSED_READY : FUSED_FAILED;
  free(program->text);
  program->text = NULL;
  tt_unlock();
}

static char* print(tt_fuse* f, const shape* s) {
  size_t n = f->params.count > 0 ? f->params.count : 1;
  tt_type* types = tt_malloc(n * sizeof *types);
  for (size_t p = 0; p < f->params.count; ++p) {
    types[p] = f->params.items[p].type;
  }
  tt_fuse_text text = {
      .num_nodes = (int)f->nodes.count, .nodes = f->nodes.items, .operands = f->operands.items, .num_params = (int)f->params.count,
      .param_types = types, .param_alias = s->alias, .num_outputs = s->num_outputs, .outputs = s->outputs, .output_types = s->types};
  char* printed = tt_fuse_print(&text);
  free(types);
  return printed;
}

static fused* program_locked(tt_fuse* f) {
  if (programs == NULL) {
    programs = tt_map_create();
  }
  uint64_t hash = tt_hash_words(f->key.items, f->key.count);
  fused* program = tt_map_find(programs, f->key.items, f->key.count, hash);
  if (program == NULL) {
    program = tt_calloc(1, sizeof *program);
    program->device = f->device;
    tt_map_insert(programs, f->key.items, f->key.count, hash, program);
  }
  return program;
}

// Results that never came: their storages stay unwritten.
static void give_up_locked(tt_fuse* f) {
  for (size_t v = 0; v < f->values.count; ++v) {
    tt_storage* owner = f->values.items[v].owner;
    if (owner != NULL) {
      tt_fuse_disown_locked(owner);
    }
  }
}

static tt_status run_trace(tt_fuse* f) {
  tt_pending* wait = NULL;
  TT_COUNT(cuts, 1);
  tt_lock();
  tt_status status = check_param_locked(f);
  shape s = shape_of_locked(f);
  finish_key(f, &s);
  fused* program = program_locked(f);
  bool submit = program->state == FUSED_NEW && s.num_outputs > 0 && f->nodes.count > 1;
  if (submit) {
    program->state = FUSED_COMPILING;
  }
  tt_unlock();
  if (status == NULL && submit) {
    program->text = print(f, &s);
    if (tt_knobs()->compile_wait) {
      compile_fused(program);
    } else {
      tt_pool_submit(pool, compile_fused, program);
    }
  }
  tt_lock();
  tt_exec* exec = program->state == FUSED_READY ? program->exec : NULL;
  if (status == NULL && exec != NULL) {
    status = run_fused_locked(f, &s, exec, &wait);
  }
  tt_unlock();
  tt_status_free(tt_pending_await_release(wait));
  if (status == NULL && exec == NULL && s.num_outputs > 0) {
    status = run_call_by_call(f);
  }
  if (status != NULL) {
    tt_lock();
    give_up_locked(f);
    tt_unlock();
  }
  shape_free(&s);
  return status;
}

tt_status tt_fuse_flush(tt_device* d) {
  tt_mutex_lock(&run_lock);
  tt_lock();
  tt_fuse* f = d->fuse;
  d->fuse = NULL;
  if (f != NULL) {
    f->running = true;
    if (pool == NULL) {
      pool = tt_pool_create(1, "tpu compile");
    }
  }
  tt_unlock();
  tt_status status = NULL;
  if (f != NULL) {
    status = run_trace(f);
    tt_lock();
    give_up_locked(f);  // no storage points here any more
    tt_unlock();
    fuse_destroy(f);
  }
  tt_mutex_unlock(&run_lock);
  return status;
}

static void forget_program(void* item, void* ctx) {
  (void)ctx;
  fused* program = item;
  tt_exec_release(program->exec);
  free(program->text);
  free(program);
}

void tt_fuse_forget(void) {
  tt_mutex_lock(&run_lock);
  if (pool != NULL) {
    tt_pool_destroy(pool);  // compilations under way end first
    pool = NULL;
  }
  tt_lock();
  tt_map* old = programs;
  programs = NULL;
  tt_unlock();
  if (old != NULL) {
    tt_map_each(old, forget_program, NULL);
    tt_map_destroy(old);
  }
  tt_mutex_unlock(&run_lock);
}
