// SPDX-License-Identifier: Apache-2.0
//
// A builder's life, its sticky error, its values and nodes, and finding equal nodes.
#include "hlo/graph.h"

#include <stdio.h>
#include <string.h>

tt_builder* tt_builder_create(void) {
  tt_builder* b = tt_calloc(1, sizeof *b);
  tt_arena_init(&b->arena);
  b->precision = 2;
  static tt_type poison_type = {.dtype = TT_F32};
  static tt_node poison = {.kind = TT_NODE_PARAM, .num_results = 1, .types = &poison_type, .attrs = "", .mnemonic = ""};
  TT_VEC_PUSH(&b->values, (tt_value){&poison, 0});
  TT_VEC_PUSH(&b->levels, (struct tt_level){0, true});
  return b;
}

void tt_builder_destroy(tt_builder* b) {
  if (!b) {
    return;
  }
  tt_status_free(b->error);
  TT_VEC_FREE(&b->values);
  TT_VEC_FREE(&b->params);
  TT_VEC_FREE(&b->levels);
  free(b->aliases);
  free(b->table);
  tt_arena_deinit(&b->arena);
  free(b);
}

tt_val tt_builder_fail(tt_builder* b, tt_code code, const char* fmt, ...) {
  if (b->error) {
    return TT_POISON;
  }
  va_list args;
  va_start(args, fmt);
  char text[1024];
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  b->error = TT_STATUS(code, "%s", text);
  return TT_POISON;
}

bool tt_builder_failed(const tt_builder* b) {
  return b->error != NULL;
}

tt_status tt_builder_take_error(tt_builder* b) {
  tt_status error = b->error;
  b->error = NULL;
  return error;
}

bool tt_builder_used_precision(const tt_builder* b) {
  return b->precision_used;
}

void tt_builder_set_precision(tt_builder* b, int precision) {
  if (precision < 0 || precision > 2) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "precision: expected 0, 1 or 2, got %d", precision);
    return;
  }
  b->precision = precision;
}

// ---- values -------------------------------------------------------------------------------------------------------

static const tt_value* value_at(const tt_builder* b, tt_val v) {
  return &b->values.items[v < b->values.count ? v : TT_POISON];
}

const tt_type* tt_type_of(const tt_builder* b, tt_val v) {
  const tt_value* value = value_at(b, v);
  return &value->node->types[value->index];
}

tt_dtype tt_dtype_of(const tt_builder* b, tt_val v) {
  return tt_type_of(b, v)->dtype;
}

int tt_rank_of(const tt_builder* b, tt_val v) {
  return tt_type_of(b, v)->rank;
}

int64_t tt_dim_of(const tt_builder* b, tt_val v, int d) {
  const tt_type* type = tt_type_of(b, v);
  d = d < 0 ? d + type->rank : d;
  return d >= 0 && d < type->rank ? type->dims[d] : 0;
}

const char* tt_short_name(const char* mnemonic) {
  const char* dot = strrchr(mnemonic, '.');
  return dot ? dot + 1 : mnemonic;
}

bool tt_usable(tt_builder* b, const char* who, int n, const tt_val* values) {
  if (b->error) {
    return false;
  }
  for (int i = 0; i < n; i++) {
    if (values[i] == TT_POISON || values[i] >= b->values.count) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected a value for operand %d, got none", who, i);
      return false;
    }
    if (!b->levels.items[tt_node_of(b, values[i])->level].open) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: operand %d belongs to a region that is closed", who, i);
      return false;
    }
  }
  return true;
}

static void add_values(tt_builder* b, tt_node* node) {
  node->first = (tt_val)b->values.count;
  for (int i = 0; i < node->num_results; i++) {
    TT_VEC_PUSH(&b->values, (tt_value){node, i});
  }
}

static tt_node* new_node(tt_builder* b, tt_node_kind kind, int num_results, const tt_type* types) {
  tt_node* node = tt_arena_alloc(&b->arena, sizeof *node);
  node->kind = kind;
  node->level = b->level;
  node->mnemonic = "";
  node->attrs = "";
  node->num_results = num_results;
  node->types = tt_arena_dup(&b->arena, types, sizeof *types * (size_t)num_results);
  return node;
}

// ---- parameters ---------------------------------------------------------------------------------------------------

tt_val tt_param(tt_builder* b, const tt_type* type) {
  if (b->error) {
    return TT_POISON;
  }
  if (b->level != 0) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "parameter: expected to be outside of regions");
  }
  if (!tt_check_dims(b, "parameter", type->rank, type->dims)) {
    return TT_POISON;
  }
  if (type->dtype <= TT_DTYPE_INVALID || type->dtype >= TT_DTYPE_COUNT) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "parameter: expected a dtype, got %d", (int)type->dtype);
  }
  tt_node* node = new_node(b, TT_NODE_PARAM, 1, type);
  node->index = (int)b->params.count;
  TT_VEC_PUSH(&b->params, node);
  add_values(b, node);
  return node->first;
}

int tt_builder_param_count(const tt_builder* b) {
  return (int)b->params.count;
}

const tt_type* tt_builder_param_type(const tt_builder* b, int index) {
  return index >= 0 && (size_t)index < b->params.count ? b->params.items[index]->types : tt_type_of(b, TT_POISON);
}

void tt_builder_alias(tt_builder* b, int param, int output) {
  b->aliases = tt_realloc(b->aliases, sizeof *b->aliases * (size_t)(b->num_aliases + 1));
  b->aliases[b->num_aliases].param = param;
  b->aliases[b->num_aliases].output = output;
  b->num_aliases++;
}

// ---- nodes --------------------------------------------------------------------------------------------------------

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ (hash >> 29);
}

static uint64_t mix_text(uint64_t hash, const char* text) {
  for (; *text; text++) {
    hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
  }
  return mix(hash, 0);
}

static uint64_t hash_spec(const tt_builder* b, const tt_spec* spec, const tt_val* operands) {
  uint64_t hash = mix_text(mix(UINT64_C(0xCBF29CE484222325), b->level), spec->mnemonic);
  hash = mix_text(hash, spec->attrs);
  for (int i = 0; i < spec->num_operands; i++) {
    hash = mix(hash, operands[i]);
  }
  for (int i = 0; i < spec->num_results; i++) {
    const tt_type* type = &spec->results[i];
    hash = mix(mix(hash, ((uint64_t)type->dtype << 32) | (uint32_t)type->rank), type->bounded);
    for (int d = 0; d < type->rank; d++) {
      hash = mix(hash, (uint64_t)type->dims[d]);
    }
  }
  return hash;
}

static bool equal_spec(const tt_builder* b, const tt_node* node, const tt_spec* spec, const tt_val* operands) {
  bool same = node->level == b->level && node->num_operands == spec->num_operands &&
              node->num_results == spec->num_results && node->num_regions == spec->num_regions &&
              strcmp(node->mnemonic, spec->mnemonic) == 0 && strcmp(node->attrs, spec->attrs) == 0;
  if (same && spec->num_regions > 0) {
    same = node->region_key && strcmp(node->region_key, spec->region_key) == 0;
  }
  for (int i = 0; same && i < spec->num_operands; i++) {
    same = node->operands[i] == operands[i];
  }
  for (int i = 0; same && i < spec->num_results; i++) {
    same = tt_type_equal(&node->types[i], &spec->results[i]);
  }
  return same;
}

static tt_node** find_slot(tt_node** table, size_t capacity, uint64_t hash) {
  size_t slot = (size_t)hash & (capacity - 1);
  while (table[slot]) {
    slot = (slot + 1) & (capacity - 1);
  }
  return &table[slot];
}

static tt_node* find_equal(const tt_builder* b, const tt_spec* spec, const tt_val* operands, uint64_t hash) {
  if (!b->table_capacity) {
    return NULL;
  }
  for (size_t slot = (size_t)hash & (b->table_capacity - 1); b->table[slot];
       slot = (slot + 1) & (b->table_capacity - 1)) {
    if (b->table[slot]->hash == hash && equal_spec(b, b->table[slot], spec, operands)) {
      return b->table[slot];
    }
  }
  return NULL;
}

static void remember(tt_builder* b, tt_node* node) {
  if ((b->table_count + 1) * 2 > b->table_capacity) {
    size_t capacity = b->table_capacity ? b->table_capacity * 2 : 256;
    tt_node** table = tt_calloc(capacity, sizeof *table);
    for (size_t i = 0; i < b->table_capacity; i++) {
      if (b->table[i]) {
        *find_slot(table, capacity, b->table[i]->hash) = b->table[i];
      }
    }
    free(b->table);
    b->table = table;
    b->table_capacity = capacity;
  }
  *find_slot(b->table, b->table_capacity, node->hash) = node;
  b->table_count++;
}

// The same value on this level, if it needs no operands.
static tt_val localize(tt_builder* b, tt_val v) {
  const tt_node* node = tt_node_of(b, v);
  if (node->level == b->level || node->kind != TT_NODE_OP || node->num_operands > 0 || node->num_regions > 0) {
    return v;
  }
  tt_spec spec = {.mnemonic = node->mnemonic,
                  .attrs = node->attrs,
                  .num_results = node->num_results,
                  .results = node->types,
                  .splat = node->splat};
  return tt_emit(b, &spec) + (v - node->first);
}

tt_val tt_emit(tt_builder* b, const tt_spec* given) {
  tt_spec spec = *given;
  spec.attrs = spec.attrs ? spec.attrs : "";
  if (!tt_usable(b, tt_short_name(spec.mnemonic), spec.num_operands, spec.operands)) {
    return TT_POISON;
  }
  for (int i = 0; i < spec.num_results; i++) {
    if (!tt_check_dims(b, tt_short_name(spec.mnemonic), spec.results[i].rank, spec.results[i].dims)) {
      return TT_POISON;
    }
  }
  tt_val* operands = tt_arena_dup(&b->arena, spec.operands, sizeof *operands * (size_t)spec.num_operands);
  for (int i = 0; i < spec.num_operands; i++) {
    operands[i] = localize(b, operands[i]);
  }
  bool findable = spec.num_regions == 0 || spec.region_key != NULL;
  uint64_t hash = findable ? hash_spec(b, &spec, operands) : 0;
  tt_node* node = findable ? find_equal(b, &spec, operands, hash) : NULL;
  if (node) {
    return node->first;
  }
  node = new_node(b, TT_NODE_OP, spec.num_results, spec.results);
  node->mnemonic = spec.mnemonic;
  node->attrs = tt_arena_strdup(&b->arena, spec.attrs);
  node->region_key = spec.region_key ? tt_arena_strdup(&b->arena, spec.region_key) : NULL;
  node->outlined = spec.outlined;
  node->num_operands = spec.num_operands;
  node->operands = operands;
  node->num_regions = spec.num_regions;
  node->regions = tt_arena_dup(&b->arena, spec.regions, sizeof *node->regions * (size_t)spec.num_regions);
  node->splat = spec.splat ? tt_arena_dup(&b->arena, spec.splat, TT_ELEM_MAX) : NULL;
  node->hash = hash;
  add_values(b, node);
  if (findable) {
    remember(b, node);
  }
  return node->first;
}

tt_val tt_emit1(tt_builder* b, const char* mnemonic, const char* attrs, int n, const tt_val* operands,
                const tt_type* result) {
  tt_spec spec = {.mnemonic = mnemonic,
                  .attrs = attrs,
                  .num_operands = n,
                  .operands = operands,
                  .num_results = 1,
                  .results = result};
  return tt_emit(b, &spec);
}

// ---- regions ------------------------------------------------------------------------------------------------------

tt_region* tt_region_build(tt_builder* b, const char* who, bool closed, int num_args, const tt_type* arg_types,
                           int num_results, tt_body body, void* ctx) {
  if (b->error) {
    return NULL;
  }
  uint32_t parent = b->level;
  b->level = (uint32_t)b->levels.count;
  TT_VEC_PUSH(&b->levels, (struct tt_level){parent, true});

  tt_region* region = tt_arena_alloc(&b->arena, sizeof *region);
  region->args = new_node(b, TT_NODE_REGION_ARGS, num_args, arg_types);
  add_values(b, region->args);
  tt_val* args = tt_arena_alloc(&b->arena, sizeof *args * (size_t)num_args);
  for (int i = 0; i < num_args; i++) {
    args[i] = region->args->first + (tt_val)i;
  }
  region->num_results = num_results;
  region->results = tt_arena_alloc(&b->arena, sizeof *region->results * (size_t)num_results);
  body(b, args, region->results, ctx);
  bool good = tt_usable(b, who, num_results, region->results);
  if (good) {
    for (int i = 0; i < num_results; i++) {
      region->results[i] = localize(b, region->results[i]);
    }
    tt_graph_walk(b, b->level, num_results, region->results, &region->num_nodes, &region->nodes, &region->num_captures,
                  &region->captures);
    if (closed && region->num_captures > 0) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected a region that uses only its arguments and constants", who);
      good = false;
    }
  }
  b->levels.items[b->level].open = false;
  b->level = parent;
  return good ? region : NULL;
}

typedef struct visit {
  tt_node* node;
  int operand, region, capture;  // what to look at next
} visit;

// The next node that `v->node` needs, or NULL when all have been seen.
static tt_node* next_need(const tt_builder* b, visit* v) {
  if (v->operand < v->node->num_operands) {
    return tt_node_of(b, v->node->operands[v->operand++]);
  }
  for (; v->region < v->node->num_regions; v->region++, v->capture = 0) {
    if (v->capture < v->node->regions[v->region]->num_captures) {
      return v->node->regions[v->region]->captures[v->capture++];
    }
  }
  return NULL;
}

void tt_graph_walk(tt_builder* b, uint32_t level, int num_roots, const tt_val* roots, int* out_num_nodes,
                   tt_node*** out_nodes, int* out_num_captures, tt_node*** out_captures) {
  TT_VEC(tt_node*) nodes = {0}, captures = {0};
  TT_VEC(visit) stack = {0};
  uint64_t stamp = ++b->stamp;
  for (int i = 0; i < num_roots; i++) {
    tt_node* need = tt_node_of(b, roots[i]);
    while (need || stack.count > 0) {
      if (need && need->stamp != stamp) {
        need->stamp = stamp;
        if (need->level != level) {
          TT_VEC_PUSH(&captures, need);
        } else if (need->kind == TT_NODE_OP) {
          TT_VEC_PUSH(&stack, (visit){.node = need});
        }
      }
      if (stack.count == 0) {
        break;
      }
      visit* top = &stack.items[stack.count - 1];
      need = next_need(b, top);
      if (!need) {
        TT_VEC_PUSH(&nodes, top->node);
        stack.count--;
      }
    }
  }
  *out_num_nodes = (int)nodes.count;
  *out_nodes = tt_arena_dup(&b->arena, nodes.items, nodes.count * sizeof *nodes.items);
  *out_num_captures = (int)captures.count;
  *out_captures = tt_arena_dup(&b->arena, captures.items, captures.count * sizeof *captures.items);
  TT_VEC_FREE(&nodes);
  TT_VEC_FREE(&captures);
  TT_VEC_FREE(&stack);
}

// ---- finishing ----------------------------------------------------------------------------------------------------

static void check_aliases(tt_builder* b, int num_outputs, const tt_val* outputs) {
  for (int i = 0; i < b->num_aliases; i++) {
    int param = b->aliases[i].param, output = b->aliases[i].output;
    if (param < 0 || (size_t)param >= b->params.count || output < 0 || output >= num_outputs) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT,
                      "alias: expected a parameter below %d and an output below %d, got %d and %d",
                      (int)b->params.count, num_outputs, param, output);
      return;
    }
    if (!tt_type_equal(b->params.items[param]->types, tt_type_of(b, outputs[output]))) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "alias: expected parameter %d and output %d of one type, got %s and %s",
                      param, output, tt_show_type(b, b->params.items[param]->types), tt_show(b, outputs[output]));
      return;
    }
    for (int k = 0; k < i; k++) {
      if (b->aliases[k].param == param || b->aliases[k].output == output) {
        tt_builder_fail(b, TT_INVALID_ARGUMENT, "alias: parameter %d or output %d is aliased twice", param, output);
        return;
      }
    }
  }
}

tt_status tt_builder_finish(tt_builder* b, const char* name, int num_outputs, const tt_val* outputs, char** out_text) {
  *out_text = NULL;
  if (tt_usable(b, "output", num_outputs, outputs)) {
    check_aliases(b, num_outputs, outputs);
  }
  if (b->error) {
    return tt_builder_take_error(b);
  }
  *out_text = tt_print_module(b, name, num_outputs, outputs);
  return NULL;
}
