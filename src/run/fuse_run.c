// SPDX-License-Identifier: Apache-2.0
//
// Running a trace at a cut: by its program if that is compiled, else call by call while a worker compiles it.
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/knobs.h"
#include "base/log.h"
#include "run/counters.h"
#include "run/explain.h"
#include "run/fuse_trace.h"
#include "run/stats.h"

typedef TT_VEC(uint64_t) tt_fuse_key;

// The numbers last sent to a program: a loop that changes none sends none.
typedef struct sent {
  tt_buffer* buffer;
  char* bytes;
} sent;

// A trace's program: compiled by a worker, shared by all traces that are alike.
typedef struct fused {
  enum { FUSED_NEW, FUSED_COMPILING, FUSED_READY, FUSED_FAILED } state;
  tt_exec* exec;
  char* text;
  tt_device* device;
  sent numbers[TT_DTYPE_COUNT];
  tt_explain_trace trace;
} fused;

// A trace that finds this many compilations waiting is not compiled this time: it may be one of many that never come again.
enum { MAX_COMPILING = 4 };

static int compiling;                      // under the runtime lock
static _Atomic bool stopping;              // compilations not yet begun are not worth beginning
static tt_map* programs;                   // key -> fused; under the runtime lock
static tt_pool* pool;                      // one compile worker; under the run lock
static tt_mutex run_lock = TT_MUTEX_INIT;  // one trace runs at a time; taken before the runtime lock

void tt_fuse_wait(void) {
  tt_mutex_lock(&run_lock);
  tt_mutex_unlock(&run_lock);
}

// What the program of a trace gives back, and which parameters give up their memory.
typedef struct shape {
  int num_outputs;
  int* outputs;  // values
  tt_type* types;
  int* alias;    // by parameter: output or -1
  bool* donate;  // by parameter
} shape;

static const tt_type* param_type(const tt_fuse_param* param) {
  static const tt_type check = {.dtype = TT_I64, .rank = 1, .dims = {4}};
  return param->is_check ? &check : tt_buffer_type(param->buffer);
}

static bool may_give(const tt_fuse* f, int p, const tt_type* type) {
  const tt_fuse_param* in = &f->params.items[p];
  return (in->is_check || tt_obj_refs(in->buffer) == 1) && tt_type_equal(param_type(in), type);
}

static int first_check(const tt_fuse* f) {
  for (size_t p = 0; p < f->params.count; ++p) {
    if (f->params.items[p].is_check) {
      return (int)p;
    }
  }
  return -1;
}

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
  // The text has a parameter more for each dtype of run-time numbers: these stay.
  size_t params = f->params.count + TT_DTYPE_COUNT;
  s.alias = tt_malloc(params * sizeof *s.alias);
  s.donate = tt_calloc(params, sizeof *s.donate);
  for (size_t p = 0; p < params; ++p) {
    s.alias[p] = -1;
  }
  // Only this trace holds the buffer: nobody reads it afterwards. First its own storage's new value, then any of its type.
  bool* taken = tt_calloc((size_t)s.num_outputs + 1, sizeof *taken);
  for (int o = 0; o < s.num_outputs; ++o) {
    const tt_fuse_value* out = &f->values.items[s.outputs[o]];
    int p = out->owner != NULL ? out->replaces : first_check(f);
    if (p >= 0 && may_give(f, p, &s.types[o])) {
      taken[o] = s.donate[p] = true;
      s.alias[p] = o;
    }
  }
  for (size_t p = 0; p < f->params.count; ++p) {
    bool free_to_go = s.alias[p] < 0 && !f->params.items[p].is_check && tt_obj_refs(f->params.items[p].buffer) == 1;
    for (int o = 0; free_to_go && s.alias[p] < 0 && o < s.num_outputs; ++o) {
      if (!taken[o] && f->values.items[s.outputs[o]].owner != NULL && may_give(f, (int)p, &s.types[o])) {
        taken[o] = s.donate[p] = true;
        s.alias[p] = o;
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

// Everything the program's text depends on: which plans, how they are wired, what is kept, whose memory is reused.
static void key_of(const tt_fuse* f, const shape* s, tt_fuse_key* key) {
  for (size_t i = 0; i < f->nodes.count; ++i) {
    const tt_fuse_node* node = &f->nodes.items[i];
    TT_VEC_PUSH(key, node->plan->serial);
    int n = node->plan->num_sources;
    for (int k = 0; k < n; k += 2) {
      const int* operand = &f->operands.items[node->first_operand + k];
      TT_VEC_PUSH(key, (uint64_t)(uint32_t)operand[0] << 32 | (k + 1 < n ? (uint32_t)operand[1] : 0));
    }
  }
  TT_VEC_PUSH(key, UINT64_C(0xfe) << 56 | (uint64_t)s->num_outputs);
  for (int o = 0; o < s->num_outputs; ++o) {
    TT_VEC_PUSH(key, (uint64_t)s->outputs[o]);
  }
  for (size_t p = 0; p < f->params.count; ++p) {
    if (s->alias[p] >= 0) {
      TT_VEC_PUSH(key, (uint64_t)p << 32 | (uint64_t)s->alias[p]);
    }
  }
}

static void place_locked(tt_fuse* f, int number, tt_buffer* buffer) {
  tt_fuse_value* v = &f->values.items[number];
  tt_storage* owner = v->owner;
  if (owner != NULL) {
    v->owner = NULL;
    __atomic_store_n(&owner->fuse, NULL, __ATOMIC_RELEASE);
    tt_type type = owner->type;
    tt_storage_set_value_take(owner, buffer, &type, v->op);
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

// Adds the parameters that hold the trace's numbers; the program keeps them.
static tt_status send_numbers(tt_fuse* f, fused* program, tt_buffer** inputs, int* num_inputs) {
  for (int t = 0; t < TT_DTYPE_COUNT; ++t) {
    tt_fuse_numbers* n = &f->numbers[t];
    sent* last = &program->numbers[t];
    if (n->count == 0) {
      continue;
    }
    if (last->buffer == NULL || memcmp(last->bytes, n->bytes.items, n->bytes.count) != 0) {
      int64_t count = n->count;
      tt_type type = tt_type_make((tt_dtype)t, 1, &count);
      tt_buffer_release(last->buffer);
      last->buffer = NULL;
      TT_TRY(tt_buffer_from_host(f->device->client, f->device->pjrt, &type, n->bytes.items, NULL, NULL, &last->buffer));
      last->bytes = tt_realloc(last->bytes, n->bytes.count);
      memcpy(last->bytes, n->bytes.items, n->bytes.count);
    }
    inputs[(*num_inputs)++] = last->buffer;
  }
  return NULL;
}

static tt_status run_fused_locked(tt_fuse* f, const shape* s, fused* program, tt_pending** out_wait) {
  size_t params = f->params.count + TT_DTYPE_COUNT;
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
  int num_inputs = (int)f->params.count;
  tt_status status = tt_device_reserve(f->device, bytes, "a fused program");
  if (status == NULL) {
    status = send_numbers(f, program, inputs, &num_inputs);
  }
  if (status == NULL) {
    status = tt_exec_run(program->exec, f->device->pjrt, num_inputs, inputs, s->donate, results);
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

// An operand's buffer, to be released by the caller.
static tt_status operand_locked(tt_fuse* f, int operand, const tt_source* source, tt_buffer** out) {
  *out = NULL;
  if (operand < TT_FUSE_NUMBER) {
    *out = operand < 0 ? f->params.items[~operand].buffer : f->values.items[operand].buffer;
  } else {
    tt_dtype dtype = tt_fuse_number_dtype(operand);
    size_t size = tt_dtype_size(dtype);
    const char* bytes = f->numbers[dtype].bytes.items + (size_t)tt_fuse_number_index(operand) * size;
    uint64_t bits[3] = {0, 0, 0};
    if (source->kind == TT_SOURCE_RANDOM) {
      memcpy(bits, bytes, sizeof bits);
      return tt_device_random_state(f->device, bits, out);
    }
    memcpy(bits, bytes, size);
    TT_TRY(tt_device_bits_locked(f->device, bits, dtype, out));
  }
  tt_buffer_retain(*out);
  return NULL;
}

// One node by its own program.
static tt_status run_node_locked(tt_fuse* f, int number, tt_pending** out_wait) {
  tt_fuse_node* node = &f->nodes.items[number];
  tt_plan* plan = node->plan;
  size_t n = plan->num_sources > 0 ? (size_t)plan->num_sources : 1;
  tt_buffer** inputs = tt_malloc(n * sizeof *inputs);
  tt_buffer** results = tt_malloc((size_t)plan->num_results * sizeof *results);
  bool* donate = tt_calloc(n, sizeof *donate);
  tt_status status = tt_device_reserve(f->device, plan->new_bytes, plan->overload->name);
  int have = 0;
  for (; have < plan->num_sources && status == NULL; ++have) {
    int operand = f->operands.items[node->first_operand + have];
    status = operand_locked(f, operand, &plan->sources[have], &inputs[have]);
    donate[have] = plan->sources[have].kind == TT_SOURCE_CHECK;
  }
  if (status == NULL) {
    status = tt_exec_run(plan->exec, f->device->pjrt, plan->num_sources, inputs, donate, results);
  }
  for (int i = 0; i < have; ++i) {
    tt_buffer_release(inputs[i]);
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
      if (operand >= 0 && operand < TT_FUSE_NUMBER && f->values.items[operand].last_use == number &&
          f->values.items[operand].owner == NULL && !is_check) {
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
    const tt_fuse_node* node = &f->nodes.items[i];
    for (int k = 0; k < node->plan->num_sources; ++k) {
      int operand = f->operands.items[node->first_operand + k];
      if (operand >= 0 && operand < TT_FUSE_NUMBER) {
        f->values.items[operand].last_use = (int)i;
      }
    }
  }
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
    tt_fuse_value* made = &f->values.items[v];
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
  tt_status status = NULL;
  if (!atomic_load(&stopping)) {
    status = tt_compile(program->device, "fused", program->text, NULL, &exec);
  }
  if (status != NULL) {
    tt_warn("a fused program does not compile, its calls run one by one: %s", tt_status_text(status));
    tt_status_free(status);
  }
  tt_lock();
  program->exec = exec;
  program->state = exec != NULL ? FUSED_READY : FUSED_FAILED;
  compiling -= 1;
  free(program->text);
  program->text = NULL;
  tt_unlock();
}

static char* print(tt_fuse* f, const shape* s) {
  const tt_type** types = tt_malloc((f->params.count + 1) * sizeof *types);
  int numbers[TT_DTYPE_COUNT];
  for (size_t p = 0; p < f->params.count; ++p) {
    types[p] = param_type(&f->params.items[p]);
  }
  for (int t = 0; t < TT_DTYPE_COUNT; ++t) {
    numbers[t] = f->numbers[t].count;
  }
  tt_fuse_text text = {.num_nodes = (int)f->nodes.count,
                       .nodes = f->nodes.items,
                       .operands = f->operands.items,
                       .num_params = (int)f->params.count,
                       .param_types = types,
                       .num_numbers = numbers,
                       .param_alias = s->alias,
                       .num_outputs = s->num_outputs,
                       .outputs = s->outputs,
                       .output_types = s->types};
  char* printed = tt_fuse_print(&text);
  free(types);
  return printed;
}

static void forget_program(void* item, void* ctx) {
  (void)ctx;
  fused* program = item;
  for (int t = 0; t < TT_DTYPE_COUNT; ++t) {
    tt_buffer_release(program->numbers[t].buffer);
    free(program->numbers[t].bytes);
  }
  tt_exec_release(program->exec);
  free(program->text);
  free(program->trace.steps);
  free(program);
}

static void describe_trace(const tt_fuse* f, const shape* s, tt_explain_trace* out) {
  *out = (tt_explain_trace){.count = f->nodes.count, .kept = s->num_outputs};
  out->steps = tt_calloc(f->nodes.count + 1, sizeof *out->steps);
  for (size_t i = 0; i < f->nodes.count; ++i) {
    const tt_fuse_node* node = &f->nodes.items[i];
    uint64_t wiring = 0;
    for (int k = 0; k < node->plan->num_sources; ++k) {
      uint64_t words[2] = {wiring, (uint64_t)(uint32_t)f->operands.items[node->first_operand + k]};
      wiring = tt_hash_words(words, 2);
    }
    out->steps[i] = (tt_explain_step){node->plan->serial, wiring, node->plan->overload->name};
  }
}

typedef struct nearest_trace {
  const fused* to;
  const fused* found;
  long likeness;
} nearest_trace;

static void look_at_trace(void* item, void* ctx) {
  const fused* other = item;
  nearest_trace* n = ctx;
  if (other != n->to && other->device == n->to->device) {
    long likeness = tt_explain_likeness(&other->trace, &n->to->trace);
    if (n->found == NULL || likeness > n->likeness) {
      n->found = other;
      n->likeness = likeness;
    }
  }
}

// *out_news: what is new about the trace, if it is and somebody asks.
static fused* program_locked(tt_fuse* f, const shape* s, char** out_news) {
  // Full of traces, most of which never came again: start anew, when no worker holds one.
  if (programs != NULL && compiling == 0 && tt_map_count(programs) >= (size_t)tt_knobs()->cache_programs) {
    tt_map_each(programs, forget_program, NULL);
    tt_map_destroy(programs);
    programs = NULL;
  }
  if (programs == NULL) {
    programs = tt_map_create();
  }
  tt_fuse_key key = {0};
  key_of(f, s, &key);
  uint64_t hash = tt_hash_words(key.items, key.count);
  fused* program = tt_map_find(programs, key.items, key.count, hash);
  if (program == NULL) {
    program = tt_calloc(1, sizeof *program);
    program->device = f->device;
    describe_trace(f, s, &program->trace);
    if (tt_explain_is_on() && s->num_outputs > 0) {
      nearest_trace nearest = {.to = program};
      tt_map_each(programs, look_at_trace, &nearest);
      *out_news = tt_explain_trace_locked(nearest.found != NULL ? &nearest.found->trace : NULL, &program->trace);
    }
    tt_map_insert(programs, key.items, key.count, hash, program);
  }
  TT_VEC_FREE(&key);
  return program;
}

// Results that never came: their storages say why.
static void give_up_locked(tt_fuse* f, const tt_status why) {
  for (size_t v = 0; v < f->values.count; ++v) {
    tt_storage* owner = f->values.items[v].owner;
    if (owner != NULL) {
      tt_fuse_disown_locked(owner);
      tt_storage_lose(owner, why);
    }
  }
}

static void explain_cut(const tt_fuse* f, int kept, bool ready, int state, const char* why, const char* where) {
  static const char* const how[] = {
      [FUSED_NEW] = "they ran one by one: too few for a program, or other programs are still compiling",
      [FUSED_COMPILING] = "they ran one by one while their program compiles",
      [FUSED_READY] = "they ran as one program",
      [FUSED_FAILED] = "they ran one by one: their program does not compile",
  };
  char text[256];
  snprintf(text, sizeof text, "%s: %zu calls recorded, %d results kept; %s", why, f->nodes.count, kept,
           kept == 0 ? "nothing had to run"
           : ready   ? how[FUSED_READY]
                     : how[state]);
  tt_explain_note(TT_EXPLAIN_CUT, where, text);
}

static tt_status run_trace(tt_fuse* f, const char* why, const char* where) {
  tt_pending* wait = NULL;
  char* news = NULL;
  TT_COUNT(cuts, 1);
  tt_lock();
  tt_status status = check_param_locked(f);
  shape s = shape_of_locked(f);
  fused* program = program_locked(f, &s, &news);
  bool submit = status == NULL && program->state == FUSED_NEW && s.num_outputs > 0 && f->nodes.count > 1 &&
                compiling < MAX_COMPILING;
  if (submit) {
    compiling += 1;
    program->state = FUSED_COMPILING;
  }
  tt_unlock();
  if (submit) {
    program->text = print(f, &s);
    if (tt_knobs()->compile_wait) {
      compile_fused(program);
    } else {
      tt_pool_submit(pool, compile_fused, program);
    }
  }
  tt_lock();
  bool ready = program->state == FUSED_READY;
  int state = program->state;
  if (status == NULL && ready) {
    status = run_fused_locked(f, &s, program, &wait);
  }
  tt_unlock();
  tt_status_free(tt_pending_await_release(wait));
  if (status == NULL && !ready && s.num_outputs > 0) {
    status = run_call_by_call(f);
  }
  if (status != NULL) {
    tt_lock();
    give_up_locked(f, status);
    tt_unlock();
  }
  if (tt_explain_is_on()) {
    int kept = 0;
    for (int o = 0; o < s.num_outputs; ++o) {
      kept += !f->checked || s.outputs[o] != f->check_value;
    }
    explain_cut(f, kept, ready, state, why, where);
    if (news != NULL) {
      tt_explain_note(TT_EXPLAIN_NEW, where, news);
    }
  }
  free(news);
  shape_free(&s);
  return status;
}

tt_status tt_fuse_flush(tt_device* d, const char* why) {
  char where[112] = "";
  if (tt_explain_is_on()) {
    tt_where_now(where, sizeof where);  // takes Python's lock, so before ours
  }
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
    status = run_trace(f, why, where);
    tt_lock();
    give_up_locked(f, NULL);  // no storage points here any more
    tt_unlock();
    tt_fuse_retire(f);
  }
  tt_mutex_unlock(&run_lock);
  return status;
}

void tt_fuse_forget(void) {
  tt_mutex_lock(&run_lock);
  if (pool != NULL) {
    atomic_store(&stopping, true);
    tt_pool_destroy(pool);  // the compilation under way ends first
    pool = NULL;
    atomic_store(&stopping, false);
  }
  tt_lock();
  tt_map* old = programs;
  programs = NULL;
  tt_unlock();
  if (old != NULL) {
    tt_map_each(old, forget_program, NULL);
    tt_map_destroy(old);
  }
  tt_fuse_free_retired();
  tt_mutex_unlock(&run_lock);
}
