// SPDX-License-Identifier: Apache-2.0
//
// Recording: a known call becomes a node of the device's trace, its results pending values of their storages.
#include "run/fuse.h"

#include <stdatomic.h>
#include <string.h>

#include "run/counters.h"
#include "run/fuse_trace.h"
#include "run/generator.h"
#include "run/numbers.h"

// A cut when a trace holds this many nodes, or its values would take this many bytes.
enum { MAX_NODES = 4096 };
static const int64_t max_value_bytes = INT64_C(4) << 30;

// ---- recording ----------------------------------------------------------------------------------------------------------

static void drop_storage(tt_storage* storage) {
  tt_lock();
  tt_fuse_disown_locked(storage);
  tt_unlock();
}

static tt_fuse* retired;  // under the runtime lock

static tt_fuse* fuse_create_locked(tt_device* device) {
  static _Atomic bool hooked;
  static uint64_t serials;
  if (!atomic_exchange(&hooked, true)) {
    tt_storage_set_drop_hook(drop_storage);
  }
  tt_fuse* f = retired != NULL ? retired : tt_calloc(1, sizeof *f);
  retired = NULL;
  f->device = device;
  f->serial = ++serials;
  return f;
}

static void fuse_free(tt_fuse* f) {
  TT_VEC_FREE(&f->nodes);
  TT_VEC_FREE(&f->operands);
  TT_VEC_FREE(&f->params);
  TT_VEC_FREE(&f->values);
  for (int t = 0; t < TT_DTYPE_COUNT; ++t) {
    TT_VEC_FREE(&f->numbers[t].bytes);
  }
  free(f);
}

void tt_fuse_retire(tt_fuse* f) {
  for (size_t i = 0; i < f->nodes.count; ++i) {
    tt_obj_release(f->nodes.items[i].plan);
  }
  for (size_t i = 0; i < f->params.count; ++i) {
    tt_buffer_release(f->params.items[i].buffer);
  }
  for (size_t i = 0; i < f->values.count; ++i) {
    tt_buffer_release(f->values.items[i].buffer);
  }
  f->nodes.count = f->operands.count = f->params.count = f->values.count = 0;
  for (int t = 0; t < TT_DTYPE_COUNT; ++t) {
    f->numbers[t].bytes.count = 0;
    f->numbers[t].count = 0;
  }
  f->checked = f->running = false;
  f->value_bytes = 0;
  tt_lock();
  tt_fuse* spare = retired;
  retired = f;
  tt_unlock();
  if (spare != NULL) {
    fuse_free(spare);
  }
}

void tt_fuse_free_retired(void) {
  tt_lock();
  tt_fuse* spare = retired;
  retired = NULL;
  tt_unlock();
  if (spare != NULL) {
    fuse_free(spare);
  }
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

static int add_param(tt_fuse* f, tt_buffer* buffer) {
  TT_VEC_PUSH(&f->params, (tt_fuse_param){.buffer = buffer});
  return ~(int)(f->params.count - 1);
}

// A storage's value as an operand: pending in this trace, or a buffer that becomes a parameter, once.
static inline int storage_operand(tt_fuse* f, tt_storage* s) {
  if (s->fuse == f) {
    return s->fuse_value;
  }
  if (s->param_trace != f->serial || s->param_buffer != s->buffer) {
    tt_buffer_retain(s->buffer);
    s->param = ~add_param(f, s->buffer);
    s->param_trace = f->serial;
    s->param_buffer = s->buffer;
  }
  return ~s->param;
}

static int number_operand(tt_fuse* f, tt_dtype dtype, int count, const void* bytes) {
  tt_fuse_numbers* n = &f->numbers[dtype];
  size_t size = tt_dtype_size(dtype) * (size_t)count;
  while (n->bytes.count + size > n->bytes.capacity) {
    n->bytes.capacity = n->bytes.capacity > 0 ? n->bytes.capacity * 2 : 256;
    n->bytes.items = tt_realloc(n->bytes.items, n->bytes.capacity);
  }
  memcpy(n->bytes.items + n->bytes.count, bytes, size);
  n->bytes.count += size;
  n->count += count;
  return TT_FUSE_NUMBER + ((int)dtype << TT_FUSE_INDEX_BITS) + n->count - count;
}

static tt_status operand_of_locked(tt_fuse* f, tt_plan* plan, tt_bound* bound, const tt_source* source,
                                   const char* where, int* out_operand) {
  tt_device* d = f->device;
  uint64_t bits[3] = {0, 0, 0};
  tt_scalar number;
  tt_generator* generator;
  switch (source->kind) {
    case TT_SOURCE_VALUE:
      *out_operand = storage_operand(f, bound->slots[source->index].t->storage);
      return NULL;
    case TT_SOURCE_CHECK:
      if (!f->checked) {
        f->checked = true;
        f->check_value = add_param(f, NULL);
        f->params.items[~f->check_value].is_check = true;
      }
      *out_operand = f->check_value;
      return NULL;
    case TT_SOURCE_RANDOM:
      generator = bound->call->generator != NULL ? bound->call->generator : d->generator;
      tt_generator_advance(generator, plan->random_steps, &bits[0], &bits[1]);
      *out_operand = number_operand(f, TT_U64, 3, bits);
      return NULL;
    case TT_SOURCE_SITE:
      number = tt_device_check_site_locked(d, plan->overload->name, where);
      tt_number_store(&number, TT_I64, bits);
      *out_operand = number_operand(f, TT_I64, 1, bits);
      return NULL;
    default:
      TT_TRY(tt_plan_number(plan, bound, source, &number));
      tt_number_store(&number, source->dtype, bits);
      *out_operand = number_operand(f, source->dtype, 1, bits);
      return NULL;
  }
}

// The storage's next value is pending.
static void own_locked(tt_fuse* f, tt_storage* storage, int number, const tt_type* type) {
  tt_fuse_value* v = &f->values.items[number];
  tt_fuse_disown_locked(storage);
  if (storage->param_trace == f->serial) {
    v->replaces = storage->param;
  }
  if (storage->buffer != NULL || storage->lost != NULL) {
    tt_storage_set_buffer_take(storage, NULL, NULL);
    tt_storage_lose(storage, NULL);
  }
  tt_storage_set_type(storage, type, v->type);
  storage->fuse_value = number;
  __atomic_store_n(&storage->fuse, f, __ATOMIC_RELEASE);
  v->owner = storage;
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
    d->fuse = fuse_create_locked(d);
  }
  tt_fuse* f = d->fuse;
  size_t operands = f->operands.count;
  for (int i = 0; i < plan->num_sources; ++i) {
    int operand;
    tt_status status = operand_of_locked(f, plan, bound, &plan->sources[i], where, &operand);
    if (status != NULL) {
      f->operands.count = operands;
      return status;
    }
    TT_VEC_PUSH(&f->operands, operand);
  }
  int first = (int)f->values.count;
  tt_obj_retain(plan);
  TT_VEC_PUSH(&f->nodes, (tt_fuse_node){.plan = plan, .first_operand = (int)operands, .first_value = first});
  tt_plan_make_outputs_locked(plan, d->index, out_outputs);
  for (int r = 0; r < plan->num_results; ++r) {
    const tt_type* type = &plan->result_types[r];
    TT_VEC_PUSH(&f->values, (tt_fuse_value){.type = type, .replaces = -1, .op = plan->overload->name});
    const tt_type* own = plan->value_types != NULL ? &plan->value_types[r] : type;
    int number = first + r;
    if (plan->results[r].kind == TT_RESULT_OUTPUT) {
      own_locked(f, out_outputs->items[plan->results[r].index].storage, number, own);
    } else if (plan->results[r].kind == TT_RESULT_WRITE) {
      own_locked(f, bound->slots[plan->results[r].index].t->storage, number, own);
    } else {
      f->check_value = number;
    }
  }
  f->value_bytes += plan->value_bytes;
  TT_COUNT(recorded, 1);
  *out_full = f->nodes.count >= MAX_NODES || f->value_bytes > max_value_bytes;
  return NULL;
}
