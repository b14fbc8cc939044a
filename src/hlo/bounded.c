// SPDX-License-Identifier: Apache-2.0
//
// Comparing instances and walking them: what rules share.
#include "hlo/bounded.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hlo/bounded_graph.h"

tt_val tt_refuse(tt_bounding* g, const char* fmt, ...) {
  char text[256];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  g->refused = true;
  return tt_builder_fail(g->b, TT_UNIMPLEMENTED, "%s", text);
}

// ---- sizes --------------------------------------------------------------------------------------------------------

bool tt_fit_size(tt_bounding* g, const int64_t* values, tt_size* out) {
  if (tt_size_fit(g->num_symbols, g->samples, g->at, values, out)) {
    return true;
  }
  tt_refuse(g, "a size that is no expression of the call's sizes");
  return false;
}

tt_val tt_emit_size(tt_bounding* g, const tt_size* size) {
  tt_builder* b = g->b;
  tt_val value = tt_const_i(b, TT_I64, size->base);
  for (int s = 0; s < g->num_symbols; s++) {
    if (size->each[s] != 0) {
      tt_val term = tt_mul(b, g->symbol[s], tt_const_i(b, TT_I64, size->each[s]));
      value = tt_add(b, value, term);
    }
  }
  if (size->scale != 0) {
    tt_val term = tt_const_i(b, TT_I64, size->scale);
    for (int s = 0; s < g->num_symbols; s++) {
      for (int p = 0; p < size->power[s]; p++) {
        term = tt_mul(b, term, g->symbol[s]);
      }
    }
    value = tt_add(b, value, term);
  }
  return value;
}

int64_t tt_hold(tt_bounding* g, const tt_size* size) {
  if (!tt_size_varies(size)) {
    return size->base;
  }
  for (size_t i = 0; i < g->held.count; i++) {
    if (tt_size_equal(&g->held.items[i].size, size)) {
      return g->held.items[i].bound;
    }
  }
  tt_held held = {*size, tt_size_bound(tt_size_at(size, &g->now))};
  TT_VEC_PUSH(&g->held, held);
  return held.bound;
}

// ---- forms --------------------------------------------------------------------------------------------------------

tt_form tt_form_of(tt_bounding* g, const tt_size* size) {
  tt_form form = {.parts = 1};
  form.part[0] = (tt_part){*size, tt_hold(g, size)};
  return form;
}

int64_t tt_form_held(const tt_form* form) {
  int64_t held = 1;
  for (int i = 0; i < form->parts; i++) {
    held *= form->part[i].held;
  }
  return held;
}

bool tt_form_varies(const tt_form* form) {
  for (int i = 0; i < form->parts; i++) {
    if (tt_size_varies(&form->part[i].size)) {
      return true;
    }
  }
  return false;
}

bool tt_form_equal(const tt_form* x, const tt_form* y) {
  bool equal = x->parts == y->parts;
  for (int i = 0; equal && i < x->parts; i++) {
    equal = x->part[i].held == y->part[i].held && tt_size_equal(&x->part[i].size, &y->part[i].size);
  }
  return equal;
}

tt_size tt_form_size(tt_bounding* g, const tt_form* form) {
  if (form->parts != 1) {
    tt_refuse(g, "a merged dimension where order matters");
  }
  return form->part[0].size;
}

bool tt_result_forms(tt_bounding* g, int index, int result, tt_form* out) {
  const tt_type* type = &tt_at_sample(g, index, 0)->types[result];
  for (int d = 0; d < type->rank; d++) {
    int64_t values[TT_SAMPLES];
    tt_size size;
    for (int k = 0; k < g->samples; k++) {
      values[k] = tt_at_sample(g, index, k)->types[result].dims[d];
    }
    if (!tt_fit_size(g, values, &size)) {
      return false;
    }
    out[d] = tt_form_of(g, &size);
  }
  return true;
}

tt_type tt_held_type(tt_dtype dtype, int rank, const tt_form* forms) {
  tt_type type = {.dtype = dtype, .rank = rank};
  for (int d = 0; d < rank; d++) {
    type.dims[d] = tt_form_held(&forms[d]);
  }
  return type;
}

// ---- values -------------------------------------------------------------------------------------------------------

tt_val tt_resize(tt_bounding* g, tt_val x, int d, int64_t held) {
  int64_t have = tt_dim_of(g->b, x, d);
  if (have == held) {
    return x;
  }
  return have > held ? tt_slice_dim(g->b, x, d, 0, held, 1) : tt_pad_dim(g->b, x, d, 0, held - have, 0);
}

static tt_val valid_along(tt_bounding* g, const tt_form* form) {
  tt_builder* b = g->b;
  int64_t held = tt_form_held(form);
  tt_type type = tt_type_make(TT_I32, 1, &held);
  tt_val place = tt_iota(b, &type, 0);
  tt_val valid = TT_POISON;
  int64_t inner = held;
  for (int i = 0; i < form->parts; i++) {
    const tt_part* part = &form->part[i];
    inner /= part->held;
    if (!tt_size_varies(&part->size)) {
      continue;
    }
    tt_val digit = inner > 1 ? tt_div(b, place, tt_const_i(b, TT_I32, inner)) : place;
    if (i > 0) {
      digit = tt_bin(b, TT_REM, digit, tt_const_i(b, TT_I32, part->held));
    }
    tt_val here = tt_test(b, TT_LT, digit, tt_convert(b, tt_emit_size(g, &part->size), TT_I32));
    valid = valid == TT_POISON ? here : tt_and(b, valid, here);
  }
  return valid;
}

tt_val tt_valid(tt_bounding* g, int rank, const tt_form* forms, uint32_t dims) {
  tt_type type = tt_held_type(TT_BOOL, rank, forms);
  tt_val valid = TT_POISON;
  for (int64_t d = 0; d < rank; d++) {
    if ((dims >> d & 1) != 0 && tt_form_varies(&forms[d])) {
      tt_val here = tt_broadcast_in_dim(g->b, valid_along(g, &forms[d]), rank, type.dims, &d);
      valid = valid == TT_POISON ? here : tt_and(g->b, valid, here);
    }
  }
  return valid;
}

tt_val tt_masked(tt_bounding* g, tt_val x, int rank, const tt_form* forms, uint32_t dims, tt_val fill) {
  tt_val valid = tt_valid(g, rank, forms, dims);
  return valid == TT_POISON ? x : tt_where(g->b, valid, x, fill);
}

void tt_settle(tt_bounding* g, const tt_node* node, int result, tt_val now, const tt_form* forms) {
  tt_known* known = &g->known[node->first + (tt_val)result];
  int rank = node->types[result].rank;
  if (g->b->error != NULL) {
    return;
  }
  tt_type want = tt_held_type(node->types[result].dtype, rank, forms);
  if (!tt_type_equal(tt_type_of(g->b, now), &want)) {
    tt_refuse(g, "%s gives %s where %s is held", node->mnemonic, tt_show(g->b, now), tt_show_type(g->b, &want));
    return;
  }
  known->now = now;
  known->form = tt_arena_dup(&g->b->arena, forms, sizeof *forms * (size_t)(rank > 0 ? rank : 1));
}

static bool is_constant(const tt_node* node) {
  return node->kind == TT_NODE_OP && strcmp(node->mnemonic, "stablehlo.constant") == 0;
}

tt_val tt_in_form(tt_bounding* g, tt_val value, int rank, const tt_form* forms) {
  tt_builder* b = g->b;
  tt_known* known = &g->known[value];
  const tt_node* node = tt_node_of(b, value);
  bool same = true;
  for (int d = 0; d < rank; d++) {
    same = same && tt_form_equal(&known->form[d], &forms[d]);
  }
  if (same || rank == 0) {
    return known->now;
  }
  tt_type type = tt_held_type(node->types[0].dtype, rank, forms);
  if (node->kind != TT_NODE_OP) {
    return tt_refuse(g, "dimensions of equal sizes that are held differently");
  }
  if (is_constant(node) && node->splat != NULL) {
    tt_type one = tt_type_scalar(type.dtype);
    const tt_node* now = tt_node_of(b, known->now);
    tt_val scalar = now->splat != NULL ? tt_splat_elem(b, &one, now->splat) : TT_POISON;
    if (now->splat == NULL && now->num_operands == 1 && tt_rank_of(b, now->operands[0]) == 0) {
      scalar = now->operands[0];
    }
    return scalar != TT_POISON ? tt_expand(b, scalar, rank, type.dims) : tt_refuse(g, "a constant held differently");
  }
  if (strcmp(node->mnemonic, "stablehlo.broadcast_in_dim") == 0) {
    int64_t map[TT_MAX_RANK];
    tt_form inner[TT_MAX_RANK];
    tt_known* from = tt_operand(g, node, 0);
    int n = tt_node_of(b, node->operands[0])->types[node->operands[0] - tt_node_of(b, node->operands[0])->first].rank;
    tt_attr_read(node->attrs, "broadcast_dimensions", map);
    for (int k = 0; k < n; k++) {
      bool wide = tt_form_varies(&from->form[k]) || tt_form_held(&from->form[k]) != 1;
      inner[k] = wide ? forms[map[k]] : from->form[k];
    }
    return tt_broadcast_in_dim(b, tt_in_form(g, node->operands[0], n, inner), rank, type.dims, map);
  }
  bool plain = node->num_regions == 0 && node->num_results == 1 && node->num_operands > 0 && node->num_operands <= 3;
  tt_val operands[3] = {TT_POISON, TT_POISON, TT_POISON};
  for (int i = 0; plain && i < node->num_operands; i++) {
    const tt_type* t = tt_type_of(b, node->operands[i]);
    plain = t->rank == 0 || tt_type_same_dims(t, &node->types[0]);
  }
  if (!plain || strncmp(node->mnemonic, "stablehlo.rng", 13) == 0 || strcmp(node->mnemonic, "stablehlo.reverse") == 0 ||
      strcmp(node->mnemonic, "stablehlo.transpose") == 0) {
    return tt_refuse(g, "dimensions of equal sizes that are held differently");
  }
  for (int i = 0; i < node->num_operands; i++) {
    operands[i] = tt_in_form(g, node->operands[i], tt_rank_of(b, node->operands[i]), forms);
  }
  return tt_emit1(b, node->mnemonic, node->attrs, node->num_operands, operands, &type);
}

// ---- attributes ---------------------------------------------------------------------------------------------------

static const char* find_list(const char* attrs, const char* name) {
  size_t n = strlen(name);
  for (const char* at = strstr(attrs, name); at != NULL; at = strstr(at + 1, name)) {
    if (strncmp(at + n, " = ", 3) == 0 && (at == attrs || at[-1] == ' ' || at[-1] == '<')) {
      return at + n + 3;
    }
  }
  return NULL;
}

int tt_attr_read(const char* attrs, const char* name, int64_t* out) {
  const char* at = find_list(attrs, name);
  if (at == NULL) {
    return 0;
  }
  if (strncmp(at, "array<i64", 9) == 0) {
    at += 9;
  }
  char close = *at == '[' ? ']' : '>';
  bool list = *at == '[' || *at == ':' || *at == '>';
  int n = 0;
  while (*at != '\0' && !(list && *at == close) && n < TT_MAX_RANK) {
    if ((*at >= '0' && *at <= '9') || *at == '-') {
      char* end;
      out[n++] = strtoll(at, &end, 10);
      at = end;
      if (!list) {
        break;
      }
    } else {
      at++;
    }
  }
  return n;
}

void tt_attr_replace(tt_strbuf* out, const char* attrs, const char* name, int n, const int64_t* values) {
  const char* at = find_list(attrs, name);
  TT_CHECK(at != NULL);
  const char* end = strchr(at, '>') + 1;
  tt_strbuf_addn(out, attrs, (size_t)(at - attrs));
  tt_strbuf_addf(out, "array<i64%s", n > 0 ? ": " : "");
  for (int i = 0; i < n; i++) {
    tt_strbuf_addf(out, "%s%lld", i > 0 ? ", " : "", (long long)values[i]);
  }
  tt_strbuf_add(out, ">");
  tt_strbuf_add(out, end);
}

// ---- the walk -----------------------------------------------------------------------------------------------------

// The value's place among the walk's results, the same in all instances.
static uint64_t place_of(const tt_builder* b, tt_val v) {
  const tt_node* node = tt_node_of(b, v);
  uint64_t kind = node->kind == TT_NODE_PARAM ? 1 : 2;
  uint64_t number = node->kind == TT_NODE_PARAM ? (uint64_t)node->index : node->number;
  return kind << 60 | number << 8 | (v - node->first);
}

static bool alike(const tt_instance* x, const tt_instance* y, const tt_node* n, const tt_node* m) {
  bool same = n->kind == m->kind && strcmp(n->mnemonic, m->mnemonic) == 0 && n->num_operands == m->num_operands &&
              n->num_results == m->num_results && n->num_regions == m->num_regions;
  for (int i = 0; same && i < n->num_operands; i++) {
    same = place_of(x->b, n->operands[i]) == place_of(y->b, m->operands[i]);
  }
  for (int i = 0; same && i < n->num_results; i++) {
    same = n->types[i].dtype == m->types[i].dtype && n->types[i].rank == m->types[i].rank;
  }
  if (same && n->num_regions > 0 && n->region_key != NULL) {
    same = m->region_key != NULL && strcmp(n->region_key, m->region_key) == 0;
  }
  for (int i = 0; same && i < n->num_regions; i++) {
    const tt_region* r = n->regions[i];
    const tt_region* q = m->regions[i];
    same = r->num_nodes == q->num_nodes && r->num_results == q->num_results;
    for (int j = 0; same && j < r->num_nodes; j++) {
      // What a region computes on single elements does not depend on sizes.
      same = strcmp(r->nodes[j]->mnemonic, q->nodes[j]->mnemonic) == 0 &&
             strcmp(r->nodes[j]->attrs, q->nodes[j]->attrs) == 0;
    }
  }
  return same;
}

static int walk(tt_bounding* g, int num_roots, const tt_instance* instances) {
  int count = 0;
  for (int k = 0; k < g->samples; k++) {
    int n, captures;
    tt_node** captured;
    tt_graph_walk(instances[k].b, 0, num_roots, instances[k].roots, &n, &g->nodes[k], &captures, &captured);
    for (int i = 0; i < n; i++) {
      g->nodes[k][i]->number = (uint32_t)i;
    }
    if (k > 0 && (n != count || instances[k].b->params.count != instances[0].b->params.count)) {
      tt_refuse(g, "programs of different sizes differ in length");
      return 0;
    }
    count = n;
  }
  for (int k = 1; k < g->samples; k++) {
    for (int i = 0; i < count; i++) {
      if (!alike(&instances[0], &instances[k], g->nodes[0][i], g->nodes[k][i])) {
        tt_refuse(g, "programs of different sizes differ at %s", g->nodes[0][i]->mnemonic);
        return 0;
      }
    }
    for (int r = 0; r < num_roots; r++) {
      if (place_of(instances[0].b, instances[0].roots[r]) != place_of(instances[k].b, instances[k].roots[r])) {
        tt_refuse(g, "programs of different sizes differ in their results");
        return 0;
      }
    }
  }
  return count;
}

static void make_params(tt_bounding* g, const tt_instance* instances) {
  tt_builder* b = g->b;
  size_t n = b->params.count;
  tt_node** old = tt_arena_dup(&b->arena, b->params.items, n * sizeof *old);
  b->params.count = 0;
  for (size_t p = 0; p < n && b->error == NULL; p++) {
    tt_form forms[TT_MAX_RANK];
    const tt_type* type = old[p]->types;
    for (int d = 0; d < type->rank; d++) {
      int64_t values[TT_SAMPLES];
      tt_size size = {0};
      for (int k = 0; k < g->samples; k++) {
        values[k] = k == 0 ? type->dims[d] : instances[k].b->params.items[p]->types->dims[d];
      }
      tt_fit_size(g, values, &size);
      forms[d] = tt_form_of(g, &size);
    }
    tt_type held = tt_held_type(type->dtype, type->rank, forms);
    tt_settle(g, old[p], 0, tt_param(b, &held), forms);
  }
  tt_type scalar = tt_type_scalar(TT_I64);
  for (int s = 0; s < g->num_symbols; s++) {
    g->symbol[s] = tt_param(b, &scalar);
  }
}

// A root in its own dimensions, merged ones apart again, each varying one at its bound.
static tt_val finish_root(tt_bounding* g, tt_val root, struct tt_bounded_root* out) {
  const tt_known* known = &g->known[root];
  int rank = tt_rank_of(g->b, root);
  int64_t dims[TT_MAX_RANK];
  out->rank = 0;
  for (int d = 0; d < rank; d++) {
    for (int i = 0; i < known->form[d].parts; i++) {
      if (out->rank == TT_MAX_RANK) {
        return tt_refuse(g, "more than %d dimensions", TT_MAX_RANK);
      }
      dims[out->rank] = known->form[d].part[i].held;
      out->dims[out->rank++] = known->form[d].part[i].size;
    }
  }
  tt_val value = tt_reshape(g->b, known->now, out->rank, dims);
  for (int d = 0; d < out->rank && g->b->error == NULL; d++) {
    value = tt_resize(g, value, d, tt_hold(g, &out->dims[d]));
  }
  return value;
}

tt_status tt_bound_program(int num_symbols, int samples, const tt_symbols* at, const tt_symbols* now, int num_roots,
                           const tt_instance* instances, tt_bounded* out) {
  tt_bounding g = {.b = instances[0].b, .num_symbols = num_symbols, .samples = samples, .at = at, .now = *now};
  memset(out, 0, sizeof *out);
  int count = walk(&g, num_roots, instances);
  g.num_known = g.b->values.count;
  g.known = tt_calloc(g.num_known, sizeof *g.known);
  if (g.b->error == NULL) {
    make_params(&g, instances);
  }
  for (int i = 0; i < count && g.b->error == NULL; i++) {
    tt_bound_node(&g, i);
  }
  out->b = g.b;
  out->roots = tt_calloc((size_t)num_roots + 1, sizeof *out->roots);
  out->root = tt_calloc((size_t)num_roots + 1, sizeof *out->root);
  for (int r = 0; r < num_roots && g.b->error == NULL; r++) {
    out->roots[r] = finish_root(&g, instances[0].roots[r], &out->root[r]);
  }
  out->num_held = (int)g.held.count;
  out->held = g.held.items;
  free(g.known);
  tt_status status = tt_builder_take_error(g.b);
  if (status != NULL) {
    tt_bounded_deinit(out);
    memset(out, 0, sizeof *out);
  }
  return status;
}

void tt_bounded_deinit(tt_bounded* bounded) {
  free(bounded->roots);
  free(bounded->root);
  free(bounded->held);
}
