// SPDX-License-Identifier: Apache-2.0
//
// From a call to a program: reading and writing the call's tensors through their views, run-time inputs, and at the end the
// program's text and the plan that says what its parameters and results stand for.
#include <stdatomic.h>
#include <string.h>

#include "hlo/bounded.h"
#include "run/call.h"
#include "run/numbers.h"

struct tt_number {
  tt_source source;
  tt_val value;
};

struct tt_trace {
  tt_bound* bound;
  tt_builder* b;
  tt_val* base;    // by first slot: the storage's value now
  bool* written;   // by first slot
  int* param;      // by first slot: the parameter that holds the storage's value, or -1
  tt_val* offset;  // by slot
  TT_VEC(tt_source) sources;
  TT_VEC(struct tt_number) numbers;
  uint64_t baked;
  tt_val random_state;
  uint64_t random_steps;
  tt_val bad, bad_index, bad_size;  // of the index checks so far
};

tt_trace* tt_trace_create(tt_bound* bound) {
  tt_trace* tr = tt_calloc(1, sizeof *tr);
  size_t n = bound->count > 0 ? (size_t)bound->count : 1;
  tr->bound = bound;
  tr->b = tt_builder_create();
  tr->base = tt_calloc(n, sizeof *tr->base);
  tr->written = tt_calloc(n, sizeof *tr->written);
  tr->param = tt_calloc(n, sizeof *tr->param);
  tr->offset = tt_calloc(n, sizeof *tr->offset);
  for (size_t i = 0; i < n; ++i) {
    tr->param[i] = -1;
  }
  tt_builder_set_precision(tr->b, tt_precision_get());
  return tr;
}

void tt_trace_destroy(tt_trace* tr) {
  if (tr == NULL) {
    return;
  }
  tt_builder_destroy(tr->b);
  free(tr->base);
  free(tr->written);
  free(tr->param);
  free(tr->offset);
  TT_VEC_FREE(&tr->sources);
  TT_VEC_FREE(&tr->numbers);
  free(tr);
}

tt_builder* tt_trace_builder(tt_trace* tr) {
  return tr->b;
}
uint64_t tt_trace_baked(const tt_trace* tr) {
  return tr->baked;
}

static tt_val add_source(tt_trace* tr, tt_source source, const tt_type* type) {
  TT_VEC_PUSH(&tr->sources, source);
  return tt_param(tr->b, type);
}

// The same number asked for twice is one parameter.
static tt_val number_source(tt_trace* tr, tt_source source, tt_dtype dtype) {
  source.dtype = tt_number_carrier(dtype);
  for (size_t i = 0; i < tr->numbers.count; ++i) {
    const tt_source* s = &tr->numbers.items[i].source;
    if (s->kind == source.kind && s->index == source.index && s->elem == source.elem && s->dtype == source.dtype) {
      return tt_convert(tr->b, tr->numbers.items[i].value, dtype);
    }
  }
  tt_type type = tt_type_scalar(source.dtype);
  tt_val value = add_source(tr, source, &type);
  TT_VEC_PUSH(&tr->numbers, (struct tt_number){source, value});
  return tt_convert(tr->b, value, dtype);
}

// ---- tensors ------------------------------------------------------------------------------------------------------------

static tt_val base_of(tt_trace* tr, int first) {
  if (tr->base[first] == TT_POISON) {
    const tt_slot* slot = &tr->bound->slots[first];
    if (slot->is_lost) {
      return tt_builder_fail(tr->b, slot->lost_code, "expected a tensor with a value, got one whose value was lost: %s",
                             slot->lost);
    }
    if (slot->unwritten) {
      tr->base[first] = tt_zeros(tr->b, slot->type->dtype, slot->type->rank, slot->type->dims);
    } else {
      const tt_type* held = slot->padded != NULL ? slot->padded : slot->type;
      tr->param[first] = (int)tr->sources.count;
      tr->base[first] = add_source(tr, (tt_source){.kind = TT_SOURCE_VALUE, .index = first}, held);
      if (slot->padded != NULL) {
        int64_t zero[TT_MAX_RANK] = {0};
        int64_t one[TT_MAX_RANK];
        for (int d = 0; d < held->rank; ++d) {
          one[d] = 1;
        }
        tr->base[first] = tt_slice(tr->b, tr->base[first], zero, slot->type->dims, one);
      }
    }
  }
  return tr->base[first];
}

static tt_val offset_of(tt_trace* tr, int index) {
  if (tr->offset[index] == TT_POISON) {
    tt_type type = tt_type_scalar(TT_I64);
    tr->offset[index] = add_source(tr, (tt_source){.kind = TT_SOURCE_OFFSET, .dtype = TT_I64, .index = index}, &type);
  }
  return tr->offset[index];
}

// A slot's plan over the base as it is in the trace: a write may have changed the base's type.
static const tt_view_plan* view_of(tt_trace* tr, int index, tt_view_plan* space) {
  const tt_slot* slot = &tr->bound->slots[index];
  const tt_type* now = tr->base[slot->first] != TT_POISON ? tt_type_of(tr->b, tr->base[slot->first]) : slot->type;
  if (slot->view != NULL && tt_type_equal(now, slot->type)) {
    return slot->view;
  }
  if (slot->view == NULL && tt_view_is_base(now, slot->t)) {
    return NULL;
  }
  const tt_tensor* t = slot->t;
  tt_view_analyse(now, t->dtype, t->rank, t->sizes, t->strides, t->offset, space);
  return space;
}

tt_val tt_trace_read(tt_trace* tr, int index, const tt_tensor* t, tt_dtype dtype) {
  const tt_slot* slot = &tr->bound->slots[index];
  if (dtype == TT_DTYPE_INVALID) {
    dtype = t->dtype;
  }
  if (slot->first < 0) {
    return number_source(tr, (tt_source){.kind = TT_SOURCE_HOST, .index = index}, dtype);
  }
  tt_val base = base_of(tr, slot->first);
  tt_view_plan space;
  const tt_view_plan* view = view_of(tr, index, &space);
  if (view != NULL) {
    tt_val offset = view->needs_offset ? offset_of(tr, index) : TT_POISON;
    base = tt_view_read(tr->b, base, t, view, offset);
  }
  return tt_convert(tr->b, tt_view_bits(tr->b, t, base), dtype);
}

void tt_trace_write(tt_trace* tr, int index, const tt_tensor* t, tt_val value) {
  const tt_slot* slot = &tr->bound->slots[index];
  if (slot->first < 0) {
    tt_builder_fail(tr->b, TT_INVALID_ARGUMENT, "expected a tensor on tpu to write to, got a number on the host");
    return;
  }
  value = tt_view_bits(tr->b, t, value);
  tt_view_plan space;
  const tt_view_plan* view = view_of(tr, index, &space);
  if (view == NULL) {
    tr->base[slot->first] = value;
  } else if (view->kind == TT_VIEW_WHOLE && t->dtype != slot->type->dtype &&
             tt_type_bytes(slot->type) == tt_type_bytes(tt_type_of(tr->b, value))) {
    // All bytes are overwritten: the storage takes the tensor's dtype.
    int64_t elements = tt_view_base_elements(slot->type, t->dtype);
    tt_type flat = tt_type_make(t->dtype, 1, &elements);
    tt_val none = tt_splat_i(tr->b, &flat, 0);
    tr->base[slot->first] = tt_view_write(tr->b, none, t, view, TT_POISON, value);
  } else {
    // A whole write does not look at the old value.
    tt_val base = view->kind == TT_VIEW_WHOLE && tr->base[slot->first] == TT_POISON
                      ? tt_zeros(tr->b, slot->type->dtype, slot->type->rank, slot->type->dims)
                      : base_of(tr, slot->first);
    tt_val offset = view->needs_offset ? offset_of(tr, index) : TT_POISON;
    tr->base[slot->first] = tt_view_write(tr->b, base, t, view, offset, value);
  }
  tr->written[slot->first] = true;
}

void tt_trace_bake(tt_trace* tr, int arg) {
  tr->baked |= UINT64_C(1) << arg;
}

tt_val tt_trace_number(tt_trace* tr, int arg, int elem, const tt_scalar* value, tt_dtype dtype) {
  if (tr->bound->call->overload->bakes_all || (tr->baked >> arg & 1) != 0) {
    return tt_const_scalar(tr->b, value, dtype);
  }
  return number_source(tr, (tt_source){.kind = TT_SOURCE_NUMBER, .index = arg, .elem = elem}, dtype);
}

// ---- random numbers and index checks ------------------------------------------------------------------------------------

tt_val tt_trace_random_bits(tt_trace* tr, const tt_type* type) {
  if (tr->random_state == TT_POISON) {
    int64_t three = 3;
    tt_type state = tt_type_make(TT_U64, 1, &three);
    tr->random_state = add_source(tr, (tt_source){.kind = TT_SOURCE_RANDOM, .dtype = TT_U64}, &state);
  }
  enum { BLOCK_BYTES = 16 };
  tr->random_steps += (uint64_t)((tt_type_bytes(type) + BLOCK_BYTES - 1) / BLOCK_BYTES);
  tt_val bits;
  tt_rng_bits(tr->b, tr->random_state, type, &tr->random_state, &bits);
  return bits;
}

void tt_trace_report_index(tt_trace* tr, tt_val bad, tt_val index, int64_t size) {
  tt_val bound_size = tt_const_i(tr->b, TT_I64, size);
  if (tr->bad == TT_POISON) {
    tr->bad = bad;
    tr->bad_index = index;
    tr->bad_size = bound_size;
    return;
  }
  tr->bad_index = tt_where(tr->b, tr->bad, tr->bad_index, index);
  tr->bad_size = tt_where(tr->b, tr->bad, tr->bad_size, bound_size);
  tr->bad = tt_or(tr->b, tr->bad, bad);
}

// The accumulator after this program: its first report stays.
static tt_val check_result(tt_trace* tr, int* out_param) {
  tt_builder* b = tr->b;
  int64_t four = 4;
  tt_type acc_type = tt_type_make(TT_I64, 1, &four);
  tt_type site_type = tt_type_scalar(TT_I64);
  *out_param = (int)tr->sources.count;
  tt_val acc = add_source(tr, (tt_source){.kind = TT_SOURCE_CHECK, .dtype = TT_I64}, &acc_type);
  tt_val site = add_source(tr, (tt_source){.kind = TT_SOURCE_SITE, .dtype = TT_I64}, &site_type);
  tt_val parts[4] = {tt_unsqueeze(b, site, 0), tt_unsqueeze(b, tr->bad_index, 0), tt_unsqueeze(b, tr->bad_size, 0),
                     tt_unsqueeze(b, tt_const_i(b, TT_I64, 0), 0)};
  tt_val report = tt_concat(b, 4, parts, 0);
  tt_val clean = tt_test_f(b, TT_EQ, tt_index_dim(b, acc, 0, 0), 0);
  return tt_where(b, tt_and(b, tr->bad, clean), report, acc);
}

// ---- lowering -----------------------------------------------------------------------------------------------------------

// Output k stands for an argument: unset, the argument stays as it is.
static bool output_is_argument(const tt_call* call, int k) {
  const tt_overload* overload = call->overload;
  int first = 0;
  for (int o = 0; o < overload->num_outputs; ++o) {
    int arg = overload->out_alias[o];
    first += arg >= 0 && call->args[arg].kind == TT_ARG_TENSORS ? call->args[arg].count : 1;
    if (k < first) {
      return arg >= 0;
    }
  }
  return false;
}

void tt_trace_lower(tt_builder* b, const tt_lower_hooks* hooks, void* ctx, const tt_call* call, int num_metas,
                    const tt_meta* metas, tt_val* outs) {
  tt_lower L = {.b = b,
                .call = call,
                .name = call->overload->name,
                .num_outs = num_metas,
                .outs = outs,
                .hooks = hooks,
                .ctx = ctx};
  tt_call_number_slots(call, L.first_slot);
  tt_type* types = tt_calloc(num_metas > 0 ? (size_t)num_metas : 1, sizeof *types);
  for (int k = 0; k < num_metas; ++k) {
    types[k] = tt_type_make(metas[k].dtype, metas[k].rank, metas[k].sizes);
    outs[k] = TT_POISON;
  }
  L.out_types = types;
  call->overload->op->lower(&L, b);
  for (int k = 0; k < num_metas && !tt_builder_failed(b); ++k) {
    if (outs[k] == TT_POISON && metas[k].dtype != TT_DTYPE_INVALID && !output_is_argument(call, k)) {
      tt_builder_fail(b, TT_INTERNAL, "%s: the lowering left output %d unset", L.name, k);
    }
  }
  free(types);
}

// ---- finishing ----------------------------------------------------------------------------------------------------------

// An output's storage value: dense in storage order, or laid out with gaps where PyTorch's strides have them.
static tt_val storage_value(tt_trace* tr, const tt_meta* m, tt_val value, tt_type* out_type) {
  if (tt_view_dense_type(m->dtype, m->rank, m->sizes, m->strides, out_type)) {
    return tt_view_to_dense(tr->b, value, m->rank, m->sizes, m->strides);
  }
  int64_t span = 1;
  for (int d = 0; d < m->rank; ++d) {
    span += (m->sizes[d] - 1) * m->strides[d];
  }
  *out_type = tt_type_make(m->dtype, 1, &span);
  tt_tensor t = {.sizes = m->sizes, .strides = m->strides, .rank = m->rank, .dtype = m->dtype};
  tt_view_plan view;
  tt_view_analyse(out_type, t.dtype, t.rank, t.sizes, t.strides, 0, &view);
  return tt_view_write(tr->b, tt_zeros(tr->b, m->dtype, 1, &span), &t, &view, tt_const_i(tr->b, TT_I64, 0), value);
}

// The old value's memory serves the new one.
static bool given_up(const tt_trace* tr, int s) {
  const tt_slot* slot = &tr->bound->slots[s];
  return slot->donate && slot->padded == NULL && tr->param[s] >= 0 &&
         tt_type_equal(tt_type_of(tr->b, tr->base[s]), slot->type);
}

// The value held at bounds in the dimensions of `pad` (of the output, not of the storage).
static tt_val padded_value(tt_trace* tr, const tt_meta* m, tt_val value, uint32_t pad) {
  int64_t order[TT_MAX_RANK];
  if (!tt_view_dense_order(m->rank, m->sizes, m->strides, order) || tt_rank_of(tr->b, value) != m->rank) {
    return value;
  }
  for (int d = 0; d < m->rank; ++d) {
    int64_t size = tt_dim_of(tr->b, value, d);
    if ((pad >> order[d] & 1) != 0 && size > 0) {
      value = tt_pad_dim(tr->b, value, d, 0, tt_size_bound(size) - size, 0);
    }
  }
  return value;
}

int tt_trace_collect(tt_trace* tr, int num_outs, const tt_meta* metas, const tt_val* outs, const uint32_t* pad,
                     tt_plan** out_plan, tt_val** out_values) {
  tt_bound* bound = tr->bound;
  const tt_overload* overload = bound->call->overload;
  tt_plan* plan = tt_plan_create(overload);
  size_t n = (size_t)num_outs + (size_t)bound->count + 1;
  tt_val* values = tt_calloc(n, sizeof *values);
  plan->results = tt_calloc(n, sizeof *plan->results);
  plan->num_outputs = num_outs;
  plan->metas = tt_memdup(metas, (size_t)num_outs * sizeof *metas);
  plan->out_types = tt_calloc(num_outs > 0 ? (size_t)num_outs : 1, sizeof *plan->out_types);
  int count = 0;
  for (int k = 0; k < num_outs; ++k) {
    if (outs[k] == TT_POISON || metas[k].dtype == TT_DTYPE_INVALID) {
      continue;
    }
    tt_val value = storage_value(tr, &metas[k], outs[k], &plan->out_types[k]);
    if (pad != NULL && pad[k] != 0) {
      value = padded_value(tr, &metas[k], value, pad[k]);
    }
    plan->new_bytes += tt_type_bytes(tt_type_of(tr->b, value));
    if (tt_type_elements(&plan->out_types[k]) > 0) {
      plan->results[count] = (tt_result){.kind = TT_RESULT_OUTPUT, .index = k};
      values[count++] = value;
    }
  }
  for (int s = 0; s < bound->count; ++s) {
    if (!tr->written[s] || tt_type_elements(tt_type_of(tr->b, tr->base[s])) == 0) {
      continue;
    }
    if (given_up(tr, s)) {
      tt_builder_alias(tr->b, tr->param[s], count);
    } else {
      plan->new_bytes += tt_type_bytes(tt_type_of(tr->b, tr->base[s]));
    }
    plan->results[count] = (tt_result){.kind = TT_RESULT_WRITE, .index = s};
    values[count++] = tr->base[s];
  }
  int check_param = -1;
  if (tr->bad != TT_POISON) {
    plan->checks = true;
    values[count] = check_result(tr, &check_param);
    plan->results[count] = (tt_result){.kind = TT_RESULT_CHECK};
    tt_builder_alias(tr->b, check_param, count);
    count += 1;
  }
  plan->num_results = count;
  plan->num_sources = (int)tr->sources.count;
  plan->sources = tt_memdup(tr->sources.items, tr->sources.count * sizeof *tr->sources.items);
  plan->donate = tt_calloc(tr->sources.count + 1, sizeof *plan->donate);
  for (int r = 0; r < count; ++r) {
    if (plan->results[r].kind == TT_RESULT_WRITE && given_up(tr, plan->results[r].index)) {
      plan->donate[tr->param[plan->results[r].index]] = true;
    }
  }
  if (check_param >= 0) {
    plan->donate[check_param] = true;
  }
  plan->random_steps = tr->random_steps;
  *out_plan = plan;
  *out_values = values;
  return count;
}

tt_status tt_plan_print(tt_plan* plan, tt_builder* b, tt_val* values) {
  char name[128];
  char* text = NULL;
  size_t n = (size_t)plan->num_results;
  tt_plan_program_name(plan, name, sizeof name);
  if (n == 0) {
    return tt_builder_take_error(b);
  }
  TT_TRY(tt_builder_finish(b, name, plan->num_results, values, &text));
  plan->text = text;
  plan->result_types = tt_calloc(n, sizeof *plan->result_types);
  for (size_t r = 0; r < n; ++r) {
    plan->result_types[r] = *tt_type_of(b, values[r]);
    plan->value_bytes += tt_type_bytes(&plan->result_types[r]);
  }
  plan->source_types = tt_calloc((size_t)plan->num_sources + 1, sizeof *plan->source_types);
  for (int i = 0; i < plan->num_sources; ++i) {
    plan->source_types[i] = *tt_builder_param_type(b, i);
  }
  return NULL;
}

// Where buffers are larger than values: both types are kept.
static void note_padding(tt_plan* plan) {
  bool padded = false;
  for (int r = 0; r < plan->num_results; ++r) {
    int k = plan->results[r].index;
    padded = padded ||
             (plan->results[r].kind == TT_RESULT_OUTPUT && !tt_type_equal(&plan->result_types[r], &plan->out_types[k]));
  }
  if (!padded) {
    return;
  }
  plan->value_types = tt_memdup(plan->result_types, (size_t)plan->num_results * sizeof *plan->value_types);
  plan->out_padded = tt_memdup(plan->out_types, (size_t)plan->num_outputs * sizeof *plan->out_padded);
  for (int r = 0; r < plan->num_results; ++r) {
    if (plan->results[r].kind == TT_RESULT_OUTPUT) {
      plan->value_types[r] = plan->out_types[plan->results[r].index];
      plan->out_padded[plan->results[r].index] = plan->result_types[r];
    }
  }
}

tt_status tt_trace_finish(tt_trace* tr, int num_outs, const tt_meta* metas, const tt_val* outs, const uint32_t* pad,
                          tt_plan** out_plan) {
  tt_plan* plan;
  tt_val* values;
  tt_trace_collect(tr, num_outs, metas, outs, pad, &plan, &values);
  tt_status status = tt_plan_print(plan, tr->b, values);
  free(values);
  if (status == NULL && plan->num_results > 0) {
    note_padding(plan);
  }
  // Fused mode runs most plans only as part of others.
  if (status == NULL && tt_mode_get() != TT_MODE_FUSED) {
    status = tt_plan_compile(plan, tr->bound->call->device);
  }
  if (status != NULL) {
    tt_obj_release(plan);
    return status;
  }
  *out_plan = plan;
  return NULL;
}
