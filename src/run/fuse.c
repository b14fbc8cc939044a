// SPDX-License-Identifier: Apache-2.0
//
// Recording: a known call becomes a node of the device's trace, its results pending values of their storages.
#include "run/fuse.h"

#include <stdatomic.h>
#include <string.h>

#include "run/counters.h"
#include "run/fuse_trace.h"
#include "run/generator.h"

// A cut when a trace holds this many nodes, or its values would take this many bytes.
enum { MAX_NODES = 4096 };
static const int64_t max_value_bytes = INT64_C(4) << 30;

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

void tt_fuse_destroy(tt_fuse* f) {
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

bool tt_fuse_is_running_locked(const tt_storage* storage) {
  return storage->fuse != NULL && storage->fuse->running;
}

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

static int add_param(tt_fuse* f, tt_buffer* buffer, const tt_type* type) {
  TT_VEC_PUSH(&f->params, (tt_fuse_param){.buffer = buffer, .type = *type});
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

static tt_status operand_of_locked(tt_fuse* f, tt_plan* plan, tt_bound* bound, int index, const char* where,
                                   int* out_operand) {
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
  tt_storage_lose(storage, NULL);
  storage->type = *type;
  storage->fuse_value = number;
  __atomic_store_n(&storage->fuse, f, __ATOMIC_RELEASE);
  f->values.items[number].owner = storage;
}

tt_status tt_fuse_record_locked(tt_plan* plan, tt_bound* bound, const char* where, tt_outputs* out_outputs,
                                bool* out_full) {
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
    TT_VEC_PUSH(&f->values, (tt_fuse_value){.type = type, .last_use = -1, .op = plan->overload->name});
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
