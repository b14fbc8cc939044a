// SPDX-License-Identifier: Apache-2.0
//
// Bounding operations that move elements: broadcast, transpose, reshape, slices, pad, concatenate, reverse, iota.
#include <string.h>

#include "hlo/bounded_graph.h"

static bool named(const tt_node* node, const char* name) {
  return strcmp(tt_short_name(node->mnemonic), name) == 0;
}

static const int64_t* dims_at(tt_bounding* g, int index, int k) {
  return tt_at_sample(g, index, k)->types[0].dims;
}

// Element `d` of the list `name` in all samples.
static bool attr_sizes(tt_bounding* g, int index, const char* name, int d, tt_size* out) {
  int64_t values[TT_SAMPLES];
  for (int k = 0; k < g->samples; k++) {
    int64_t list[TT_MAX_RANK];
    if (tt_attr_read(tt_at_sample(g, index, k)->attrs, name, list) <= d) {
      tt_refuse(g, "%s is short", name);
      return false;
    }
    values[k] = list[d];
  }
  return tt_fit_size(g, values, out);
}

static void bound_broadcast(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  const tt_known* x = tt_operand(g, node, 0);
  tt_form forms[TT_MAX_RANK];
  int64_t map[TT_MAX_RANK];
  int rank = tt_rank_of(g->b, node->operands[0]);
  tt_attr_read(node->attrs, "broadcast_dimensions", map);
  if (!tt_result_forms(g, index, 0, forms)) {
    return;
  }
  for (int k = 0; k < rank; k++) {
    if (tt_form_varies(&x->form[k]) || tt_form_held(&x->form[k]) != 1) {
      forms[map[k]] = x->form[k];
    }
  }
  tt_type type = tt_held_type(node->types[0].dtype, node->types[0].rank, forms);
  tt_settle(g, node, 0, tt_broadcast_in_dim(g->b, x->now, type.rank, type.dims, map), forms);
}

static void bound_transpose(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  const tt_known* x = tt_operand(g, node, 0);
  tt_form forms[TT_MAX_RANK];
  int64_t perm[TT_MAX_RANK];
  tt_attr_read(node->attrs, "permutation", perm);
  for (int d = 0; d < node->types[0].rank; d++) {
    forms[d] = x->form[perm[d]];
  }
  tt_settle(g, node, 0, tt_transpose(g->b, x->now, perm), forms);
}

// ---- reshape ------------------------------------------------------------------------------------------------------

typedef struct parts {
  int count;
  tt_part item[TT_MAX_RANK * TT_FACTORS];
} parts;

// Splits `part` so that its outer piece has the sizes `want` (by sample); changes x's dimension accordingly.
static bool split(tt_bounding* g, const tt_part* part, const int64_t* want, tt_part out[2]) {
  int64_t inner[TT_SAMPLES];
  for (int k = 0; k < g->samples; k++) {
    int64_t whole = tt_size_at(&part->size, &g->at[k]);
    if (want[k] == 0 || whole % want[k] != 0) {
      tt_refuse(g, "reshape that splits a size unevenly");
      return false;
    }
    inner[k] = whole / want[k];
  }
  tt_size outer_size, inner_size;
  if (!tt_fit_size(g, want, &outer_size) || !tt_fit_size(g, inner, &inner_size)) {
    return false;
  }
  if (tt_size_varies(&inner_size)) {
    tt_refuse(g, "reshape that splits a size at one that varies");
    return false;
  }
  out[0] = (tt_part){outer_size, tt_hold(g, &outer_size)};
  out[1] = (tt_part){inner_size, inner_size.base};
  return true;
}

// A part that varies followed by a static one is one part.
static void tidy(tt_bounding* g, tt_form* form) {
  int n = 0;
  for (int i = 0; i < form->parts; i++) {
    tt_part next = form->part[i];
    tt_part* last = n > 0 ? &form->part[n - 1] : NULL;
    bool still = !tt_size_varies(&next.size);
    if (still && next.size.base == 1) {
      continue;
    }
    if (last != NULL && still) {
      int64_t values[TT_SAMPLES];
      for (int k = 0; k < g->samples; k++) {
        values[k] = tt_size_at(&last->size, &g->at[k]) * next.size.base;
      }
      tt_fit_size(g, values, &last->size);
      last->held *= next.held;
      continue;
    }
    form->part[n++] = next;
  }
  if (n == 0) {
    form->part[n++] = (tt_part){{.base = 1}, 1};
  }
  form->parts = n;
}

static void bound_reshape(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  const tt_known* x = tt_operand(g, node, 0);
  tt_builder* b = g->b;
  int from = tt_rank_of(b, node->operands[0]);
  int to = node->types[0].rank;
  parts left = {0};
  bool vary = false;
  bool empty = tt_type_elements(&node->types[0]) == 0;
  for (int d = 0; d < from; d++) {
    vary = vary || tt_form_varies(&x->form[d]);
    for (int i = 0; i < x->form[d].parts; i++) {
      const tt_part* part = &x->form[d].part[i];
      if (tt_size_varies(&part->size) || part->size.base != 1) {
        left.item[left.count++] = *part;
      }
    }
  }
  tt_form forms[TT_MAX_RANK];
  if (!vary) {
    if (tt_result_forms(g, index, 0, forms)) {
      tt_settle(g, node, 0, tt_reshape(b, x->now, to, node->types[0].dims), forms);
    }
    return;
  }
  if (empty) {
    tt_refuse(g, "reshape of nothing");
    return;
  }
  // The parts themselves as dimensions, resized where they are split.
  int64_t held[TT_MAX_RANK * TT_FACTORS];
  int64_t resized[TT_MAX_RANK * TT_FACTORS];
  int original[TT_MAX_RANK * TT_FACTORS];
  for (int i = 0; i < left.count; i++) {
    held[i] = resized[i] = left.item[i].held;
    original[i] = i;
  }
  int at = 0;
  for (int d = 0; d < to; d++) {
    forms[d] = (tt_form){.parts = 0};
    int64_t have[TT_SAMPLES];
    for (int k = 0; k < g->samples; k++) {
      have[k] = 1;
    }
    for (;;) {
      bool done = true, fits = at < left.count;
      int64_t rest[TT_SAMPLES];
      for (int k = 0; k < g->samples; k++) {
        done = done && have[k] == dims_at(g, index, k)[d];
        if (dims_at(g, index, k)[d] % have[k] != 0) {
          tt_refuse(g, "reshape that splits a size unevenly");
          return;
        }
        rest[k] = dims_at(g, index, k)[d] / have[k];
        fits = fits && rest[k] % tt_size_at(&left.item[at].size, &g->at[k]) == 0;
      }
      if (done) {
        break;
      }
      if (at >= left.count || forms[d].parts == TT_FACTORS) {
        tt_refuse(g, "reshape that merges too much");
        return;
      }
      tt_part take = left.item[at];
      if (!fits) {
        tt_part two[2];
        if (!split(g, &take, rest, two)) {
          return;
        }
        if (tt_size_varies(&take.size)) {
          resized[original[at]] = two[0].held * two[1].held * (resized[original[at]] / take.held);
        }
        take = two[0];
        left.item[at] = two[1];
      } else {
        at++;
      }
      for (int k = 0; k < g->samples; k++) {
        have[k] *= tt_size_at(&take.size, &g->at[k]);
      }
      forms[d].part[forms[d].parts++] = take;
    }
  }
  int count = 0;
  for (int d = 0; d < from; d++) {
    for (int i = 0; i < x->form[d].parts; i++) {
      const tt_part* part = &x->form[d].part[i];
      count += tt_size_varies(&part->size) || part->size.base != 1;
    }
  }
  if (count > TT_MAX_RANK || at != left.count) {
    tt_refuse(g, "reshape that merges too much");
    return;
  }
  tt_val now = tt_reshape(b, x->now, count, held);
  for (int i = 0; i < count; i++) {
    now = tt_resize(g, now, i, resized[i]);
  }
  for (int d = 0; d < to; d++) {
    tidy(g, &forms[d]);
  }
  tt_type type = tt_held_type(node->types[0].dtype, to, forms);
  now = tt_reshape(b, now, to, type.dims);
  for (int d = 0; d < to && b->error == NULL; d++) {
    if (forms[d].parts == 1 && tt_size_varies(&forms[d].part[0].size)) {
      forms[d].part[0].held = tt_hold(g, &forms[d].part[0].size);
      now = tt_resize(g, now, d, forms[d].part[0].held);
    }
  }
  tt_settle(g, node, 0, now, forms);
}

// ---- slices -------------------------------------------------------------------------------------------------------

// x[start : start + (count - 1) * stride + 1 : stride] along d, `held` elements of it.
static tt_val take(tt_bounding* g, tt_val x, int d, const tt_size* start, int64_t held, int64_t stride) {
  tt_builder* b = g->b;
  int64_t window = held > 0 ? (held - 1) * stride + 1 : 0;
  int rank = tt_rank_of(b, x);
  if (!tt_size_varies(start)) {
    if (start->base + window > tt_dim_of(b, x, d)) {
      x = tt_resize(g, x, d, start->base + window);
    }
    return tt_slice_dim(b, x, d, start->base, start->base + window, stride);
  }
  x = tt_resize(g, x, d, tt_dim_of(b, x, d) + window);
  tt_val starts[TT_MAX_RANK] = {0};
  int64_t sizes[TT_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    starts[i] = i == d ? tt_emit_size(g, start) : tt_const_i(b, TT_I64, 0);
    sizes[i] = i == d ? window : tt_dim_of(b, x, i);
  }
  return tt_slice_dim(b, tt_dynamic_slice(b, x, starts, sizes), d, 0, window, stride);
}

static void bound_slice(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  const tt_known* x = tt_operand(g, node, 0);
  tt_form forms[TT_MAX_RANK];
  tt_val now = x->now;
  if (!tt_result_forms(g, index, 0, forms)) {
    return;
  }
  for (int d = 0; d < node->types[0].rank && g->b->error == NULL; d++) {
    tt_size start, stride;
    if (!attr_sizes(g, index, "start_indices", d, &start) || !attr_sizes(g, index, "strides", d, &stride)) {
      return;
    }
    if (tt_size_varies(&stride)) {
      tt_refuse(g, "a step that follows the sizes");
      return;
    }
    bool at_zero = !tt_size_varies(&start) && start.base == 0 && stride.base == 1;
    if (at_zero && x->form[d].parts > 1) {
      // All of a merged dimension, or nothing that can be named.
      int64_t whole = 1;
      for (int i = 0; i < x->form[d].parts; i++) {
        whole *= tt_size_at(&x->form[d].part[i].size, &g->at[0]);
      }
      if (whole == node->types[0].dims[d]) {
        forms[d] = x->form[d];
        continue;
      }
    }
    tt_form_size(g, &x->form[d]);
    now = take(g, now, d, &start, tt_form_held(&forms[d]), stride.base);
  }
  tt_settle(g, node, 0, now, forms);
}

// A start clamped as the exact program clamps it: into [0, size - taken].
static tt_val clamp_start(tt_bounding* g, tt_val start, const tt_size* size, const tt_size* taken) {
  tt_builder* b = g->b;
  tt_val last = tt_sub(b, tt_emit_size(g, size), tt_emit_size(g, taken));
  tt_val wide = tt_convert(b, start, TT_I64);
  tt_val clamped = tt_max(b, tt_min(b, wide, last), tt_const_i(b, TT_I64, 0));
  return tt_convert(b, clamped, tt_dtype_of(b, start));
}

static void bound_dynamic_slice(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  const tt_known* x = tt_operand(g, node, 0);
  tt_form forms[TT_MAX_RANK];
  tt_val starts[TT_MAX_RANK] = {0};
  int64_t sizes[TT_MAX_RANK];
  tt_val now = x->now;
  int rank = node->types[0].rank;
  if (!tt_result_forms(g, index, 0, forms)) {
    return;
  }
  for (int d = 0; d < rank && g->b->error == NULL; d++) {
    starts[d] = tt_operand(g, node, d + 1)->now;
    sizes[d] = tt_form_held(&forms[d]);
    if (!tt_form_varies(&x->form[d]) && !tt_form_varies(&forms[d])) {
      continue;
    }
    tt_size whole = tt_form_size(g, &x->form[d]);
    tt_size part = tt_form_size(g, &forms[d]);
    starts[d] = clamp_start(g, starts[d], &whole, &part);
    if (tt_size_varies(&part) && !tt_size_equal(&whole, &part)) {
      now = tt_resize(g, now, d, tt_dim_of(g->b, now, d) + sizes[d]);
    }
  }
  tt_settle(g, node, 0, tt_dynamic_slice(g->b, now, starts, sizes), forms);
}

static void bound_update_slice(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  tt_builder* b = g->b;
  const tt_known* x = tt_operand(g, node, 0);
  const tt_known* update = tt_operand(g, node, 1);
  tt_val starts[TT_MAX_RANK] = {0};
  int64_t sizes[TT_MAX_RANK];
  int rank = node->types[0].rank;
  tt_val whole = x->now;
  bool vary = false;
  for (int d = 0; d < rank && b->error == NULL; d++) {
    starts[d] = tt_operand(g, node, d + 2)->now;
    sizes[d] = tt_form_held(&update->form[d]);
    if (tt_form_equal(&x->form[d], &update->form[d])) {
      continue;
    }
    if (!tt_form_varies(&x->form[d]) && !tt_form_varies(&update->form[d])) {
      continue;
    }
    tt_size all = tt_form_size(g, &x->form[d]);
    tt_size part = tt_form_size(g, &update->form[d]);
    starts[d] = clamp_start(g, starts[d], &all, &part);
    if (tt_size_varies(&part)) {
      vary = true;
      whole = tt_resize(g, whole, d, tt_dim_of(b, whole, d) + sizes[d]);
    }
  }
  tt_val now = update->now;
  if (vary && b->error == NULL) {
    tt_val valid = tt_valid(g, rank, update->form, UINT32_MAX);
    now = tt_where(b, valid, now, tt_dynamic_slice(b, whole, starts, sizes));
  }
  now = tt_dynamic_update_slice(b, whole, now, starts);
  for (int d = 0; d < rank && b->error == NULL; d++) {
    now = tt_resize(g, now, d, tt_form_held(&x->form[d]));
  }
  tt_settle(g, node, 0, now, x->form);
}

// ---- pad, concatenate ---------------------------------------------------------------------------------------------

// Writes `part` into `whole` at `start` along d.
static tt_val place_at(tt_bounding* g, tt_val whole, tt_val part, int d, const tt_size* start) {
  tt_val starts[TT_MAX_RANK] = {0};
  for (int i = 0; i < tt_rank_of(g->b, whole); i++) {
    starts[i] = i == d ? tt_emit_size(g, start) : tt_const_i(g->b, TT_I64, 0);
  }
  return tt_dynamic_update_slice(g->b, whole, part, starts);
}

static void bound_pad(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  tt_builder* b = g->b;
  const tt_known* x = tt_operand(g, node, 0);
  tt_val fill = tt_operand(g, node, 1)->now;
  int rank = node->types[0].rank;
  tt_form forms[TT_MAX_RANK];
  tt_val now = x->now;
  if (!tt_result_forms(g, index, 0, forms)) {
    return;
  }
  // The padding of what is padded becomes part of the result.
  uint32_t changed = 0;
  for (int d = 0; d < rank; d++) {
    changed |= (uint32_t)!tt_form_equal(&forms[d], &x->form[d]) << d;
  }
  now = tt_masked(g, now, rank, x->form, changed, fill);
  int64_t still_low[TT_MAX_RANK], still_high[TT_MAX_RANK], still_inside[TT_MAX_RANK];
  for (int d = 0; d < rank && b->error == NULL; d++) {
    tt_size low, high, inside;
    if (!attr_sizes(g, index, "edge_padding_low", d, &low) || !attr_sizes(g, index, "edge_padding_high", d, &high) ||
        !attr_sizes(g, index, "interior_padding", d, &inside)) {
      return;
    }
    still_low[d] = still_high[d] = still_inside[d] = 0;
    bool vary = tt_form_varies(&x->form[d]) || tt_form_varies(&forms[d]);
    bool none = !tt_size_varies(&low) && !tt_size_varies(&high) && low.base == 0 && high.base == 0 &&
                !tt_size_varies(&inside) && inside.base == 0;
    if (none) {
      forms[d] = x->form[d];
      continue;
    }
    if (!vary && !tt_size_varies(&low)) {
      still_low[d] = low.base;
      still_high[d] = high.base;
      still_inside[d] = inside.base;
      continue;
    }
    tt_form_size(g, &x->form[d]);
    if (tt_size_varies(&inside) || inside.base != 0 || (!tt_size_varies(&low) && low.base < 0)) {
      tt_refuse(g, "padding between elements, or less than none, where sizes vary");
      return;
    }
    int64_t held = tt_form_held(&forms[d]);
    int64_t have = tt_dim_of(b, now, d);
    tt_type type = *tt_type_of(b, now);
    type.dims[d] = held + have;
    now = place_at(g, tt_expand(b, fill, rank, type.dims), now, d, &low);
    now = tt_resize(g, now, d, held);
  }
  if (b->error == NULL) {
    now = tt_pad(b, now, fill, still_low, still_high, still_inside);
    tt_settle(g, node, 0, now, forms);
  }
}

static void bound_concatenate(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  tt_builder* b = g->b;
  tt_form forms[TT_MAX_RANK];
  int64_t axis = 0;
  int rank = node->types[0].rank;
  int n = node->num_operands;
  tt_attr_read(node->attrs, "dimension", &axis);
  if (!tt_result_forms(g, index, 0, forms)) {
    return;
  }
  int lead = 0;
  bool vary = tt_form_varies(&forms[axis]);
  for (int i = 0; i < n; i++) {
    vary = vary || tt_form_varies(&tt_operand(g, node, i)->form[axis]);
    for (int d = 0; d < rank; d++) {
      if (d != axis && tt_operand(g, node, i)->form[d].parts > tt_operand(g, node, lead)->form[d].parts) {
        lead = i;
      }
    }
  }
  for (int d = 0; d < rank; d++) {
    forms[d] = d != axis ? tt_operand(g, node, lead)->form[d] : forms[d];
  }
  tt_val* items = tt_calloc((size_t)n, sizeof *items);
  int64_t total = 0;
  for (int i = 0; i < n && b->error == NULL; i++) {
    tt_form mine[TT_MAX_RANK];
    memcpy(mine, forms, sizeof *mine * (size_t)rank);
    mine[axis] = tt_operand(g, node, i)->form[axis];
    items[i] = tt_in_form(g, node->operands[i], rank, mine);
    total += tt_form_held(&mine[axis]);
  }
  tt_val now = TT_POISON;
  if (b->error == NULL && !vary) {
    now = tt_concat(b, n, items, (int)axis);
  } else if (b->error == NULL) {
    // Each part over the padding of the one before it.
    now = tt_resize(g, items[0], (int)axis, total);
    tt_size start = {0};
    for (int i = 1; i < n; i++) {
      tt_size before = tt_form_size(g, &tt_operand(g, node, i - 1)->form[axis]);
      int64_t values[TT_SAMPLES];
      for (int k = 0; k < g->samples; k++) {
        values[k] = tt_size_at(&start, &g->at[k]) + tt_size_at(&before, &g->at[k]);
      }
      if (!tt_fit_size(g, values, &start)) {
        break;
      }
      now = place_at(g, now, items[i], (int)axis, &start);
    }
    tt_form_size(g, &tt_operand(g, node, n - 1)->form[axis]);
    now = b->error == NULL ? tt_resize(g, now, (int)axis, tt_form_held(&forms[axis])) : now;
  }
  free(items);
  tt_settle(g, node, 0, now, forms);
}

static void bound_reverse(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  const tt_known* x = tt_operand(g, node, 0);
  int64_t dims[TT_MAX_RANK];
  int n = tt_attr_read(node->attrs, "dimensions", dims);
  tt_val now = tt_reverse(g->b, x->now, n, dims);
  for (int i = 0; i < n && g->b->error == NULL; i++) {
    const tt_form* form = &x->form[dims[i]];
    if (tt_form_varies(form)) {
      // The padding came first: skip it.
      tt_size start = tt_form_size(g, form);
      int64_t held = tt_form_held(form);
      start.base = held - start.base;
      start.scale = -start.scale;
      for (int s = 0; s < TT_SYMBOLS; s++) {
        start.each[s] = -start.each[s];
      }
      now = take(g, now, (int)dims[i], &start, held, 1);
    }
  }
  tt_settle(g, node, 0, now, x->form);
}

static void bound_iota(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  tt_form forms[TT_MAX_RANK];
  int64_t dim = 0;
  tt_attr_read(node->attrs, "iota_dimension", &dim);
  if (tt_result_forms(g, index, 0, forms)) {
    tt_type type = tt_held_type(node->types[0].dtype, node->types[0].rank, forms);
    tt_settle(g, node, 0, tt_iota(g->b, &type, (int)dim), forms);
  }
}

bool tt_bound_move(tt_bounding* g, int index) {
  static const struct {
    const char* name;
    void (*rule)(tt_bounding* g, int index);
  } rules[] = {
      {"broadcast_in_dim",     bound_broadcast    },
      {"transpose",            bound_transpose    },
      {"reshape",              bound_reshape      },
      {"slice",                bound_slice        },
      {"dynamic_slice",        bound_dynamic_slice},
      {"dynamic_update_slice", bound_update_slice },
      {"pad",                  bound_pad          },
      {"concatenate",          bound_concatenate  },
      {"reverse",              bound_reverse      },
      {"iota",                 bound_iota         },
  };
  const tt_node* node = tt_at_sample(g, index, 0);
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    if (named(node, rules[i].name)) {
      rules[i].rule(g, index);
      return true;
    }
  }
  return false;
}
