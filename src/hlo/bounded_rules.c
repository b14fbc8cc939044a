// SPDX-License-Identifier: Apache-2.0
//
// Bounding a node: constants, elementwise operations, reductions, contractions, gather and scatter.
#include <math.h>
#include <string.h>

#include "hlo/bounded_graph.h"

static bool named(const tt_node* node, const char* name) {
  return strcmp(tt_short_name(node->mnemonic), name) == 0;
}

static bool same_attrs(tt_bounding* g, int index) {
  for (int k = 1; k < g->samples; k++) {
    if (strcmp(tt_at_sample(g, index, 0)->attrs, tt_at_sample(g, index, k)->attrs) != 0) {
      return false;
    }
  }
  return true;
}

static bool varies(const tt_known* known, int rank) {
  for (int d = 0; d < rank; d++) {
    if (tt_form_varies(&known->form[d])) {
      return true;
    }
  }
  return false;
}

// The node again, over operands and types as they are held.
static tt_val again(tt_bounding* g, const tt_node* node, const tt_val* operands, const char* attrs,
                    const tt_type* types) {
  tt_spec spec = {.mnemonic = node->mnemonic,
                  .attrs = attrs,
                  .region_key = node->region_key,
                  .outlined = node->outlined,
                  .num_operands = node->num_operands,
                  .operands = operands,
                  .num_results = node->num_results,
                  .results = types,
                  .num_regions = node->num_regions,
                  .regions = node->regions,
                  .splat = node->splat};
  return tt_emit(g->b, &spec);
}

// ---- constants ----------------------------------------------------------------------------------------------------

// A number that follows the sizes: itself an expression of them, or the inverse of one.
static tt_val varying_number(tt_bounding* g, int index, tt_dtype dtype) {
  double values[TT_SAMPLES];
  int64_t whole[TT_SAMPLES];
  bool integral = true;
  for (int k = 0; k < g->samples; k++) {
    values[k] = tt_elem_to_double(dtype, tt_at_sample(g, index, k)->splat);
    integral = integral && fabs(values[k]) < 1e15 && values[k] == floor(values[k]);
    whole[k] = integral ? (int64_t)values[k] : 0;
  }
  tt_size size;
  if (integral) {
    return tt_fit_size(g, whole, &size) ? tt_convert(g->b, tt_emit_size(g, &size), dtype) : TT_POISON;
  }
  if (!tt_dtype_is_float(dtype)) {
    return tt_refuse(g, "a constant that follows the sizes");
  }
  for (int64_t top = 1; top <= 4; top++) {
    bool inverse = true;
    double slack = dtype == TT_F64 ? 1e-13 : 1e-6;
    for (int k = 0; k < g->samples; k++) {
      double inverted = (double)top / values[k];
      whole[k] = (int64_t)llround(inverted);
      inverse = inverse && isfinite(inverted) && fabs(inverted) < 1e12 &&
                fabs(inverted - (double)whole[k]) <= slack * fabs(inverted);
    }
    if (inverse && tt_size_fit(g->num_symbols, g->samples, g->at, whole, &size)) {
      tt_dtype compute = dtype == TT_F64 ? TT_F64 : TT_F32;
      tt_val below = tt_convert(g->b, tt_emit_size(g, &size), compute);
      return tt_convert(g->b, tt_div(g->b, tt_const_i(g->b, compute, top), below), dtype);
    }
  }
  return tt_refuse(g, "a constant that follows the sizes");
}

static void bound_constant(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  tt_form forms[TT_MAX_RANK];
  tt_dtype dtype = node->types[0].dtype;
  if (!tt_result_forms(g, index, 0, forms)) {
    return;
  }
  if (same_attrs(g, index)) {
    tt_settle(g, node, 0, node->first, forms);
    return;
  }
  if (node->splat == NULL || tt_dtype_is_complex(dtype)) {
    tt_refuse(g, "a table that follows the sizes");
    return;
  }
  bool same = true;
  for (int k = 1; k < g->samples; k++) {
    const tt_node* other = tt_at_sample(g, index, k);
    if (other->splat == NULL) {
      tt_refuse(g, "a table that follows the sizes");
      return;
    }
    same = same && memcmp(other->splat, node->splat, tt_dtype_size(dtype)) == 0;
  }
  tt_type held = tt_held_type(dtype, node->types[0].rank, forms);
  tt_val now;
  if (same) {
    now = tt_splat_elem(g->b, &held, node->splat);
  } else {
    tt_val number = varying_number(g, index, dtype);
    now = number != TT_POISON ? tt_expand(g->b, number, held.rank, held.dims) : TT_POISON;
  }
  tt_settle(g, node, 0, now, forms);
}

// ---- elementwise --------------------------------------------------------------------------------------------------

static bool is_elementwise(const tt_node* node) {
  static const char* const others[] = {
      "and", "or", "compare", "select", "convert", "reduce_precision", "optimization_barrier"};
  if (node->num_regions > 0 || node->num_results != 1) {
    return false;
  }
#define TT_SAME_TEXT(id, text, classes, result) \
  if (strcmp(node->mnemonic, (text)) == 0) {    \
    return true;                                \
  }
  TT_UNARY_PRIMS(TT_SAME_TEXT)
  TT_BINARY_PRIMS(TT_SAME_TEXT)
#undef TT_SAME_TEXT
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    if (named(node, others[i])) {
      return true;
    }
  }
  return false;
}

// Brings the operands from `first` on to one form: that of one of them which the others can take. Its forms in *out.
static bool agree(tt_bounding* g, const tt_node* node, int first, int count, tt_val* operands, const tt_form** out) {
  int rank = tt_rank_of(g->b, node->operands[first]);
  bool equal = true;
  int lead = first;
  for (int i = first; i < first + count; i++) {
    const tt_known* known = tt_operand(g, node, i);
    const tt_known* best = tt_operand(g, node, lead);
    for (int d = 0; d < rank; d++) {
      equal = equal && tt_form_equal(&known->form[d], &best->form[d]);
      if (known->form[d].parts > best->form[d].parts) {
        lead = i;
      }
    }
  }
  *out = tt_operand(g, node, lead)->form;
  for (int i = first; i < first + count; i++) {
    operands[i] = equal ? tt_operand(g, node, i)->now : tt_in_form(g, node->operands[i], rank, *out);
  }
  return g->b->error == NULL;
}

static void bound_elementwise(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  tt_val operands[3];
  const tt_form* forms;
  // The predicate of a select may be one for all.
  int first = named(node, "select") && tt_rank_of(g->b, node->operands[0]) == 0 ? 1 : 0;
  if (first == 1) {
    operands[0] = tt_operand(g, node, 0)->now;
  }
  if (!same_attrs(g, index)) {
    tt_refuse(g, "%s with attributes that follow the sizes", node->mnemonic);
    return;
  }
  if (agree(g, node, first, node->num_operands - first, operands, &forms)) {
    tt_type type = tt_held_type(node->types[0].dtype, node->types[0].rank, forms);
    tt_settle(g, node, 0, again(g, node, operands, node->attrs, &type), forms);
  }
}

static void bound_bitcast(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  const tt_known* x = tt_operand(g, node, 0);
  int from = tt_rank_of(g->b, node->operands[0]);
  int to = node->types[0].rank;
  tt_form forms[TT_MAX_RANK];
  tt_form result[TT_MAX_RANK];
  if (!tt_result_forms(g, index, 0, result)) {
    return;
  }
  for (int d = 0; d < to; d++) {
    forms[d] = d < from ? x->form[d] : result[d];
  }
  if (from > to && tt_form_varies(&x->form[from - 1])) {
    tt_refuse(g, "bits joined along a size that varies");
    return;
  }
  tt_type type = tt_held_type(node->types[0].dtype, to, forms);
  tt_settle(g, node, 0, again(g, node, &x->now, node->attrs, &type), forms);
}

// ---- reductions ---------------------------------------------------------------------------------------------------

static void bound_reduce(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  int n = node->num_results;
  tt_val* operands = tt_calloc((size_t)node->num_operands, sizeof *operands);
  tt_type* types = tt_calloc((size_t)n, sizeof *types);
  const tt_form* forms;
  int rank = tt_rank_of(g->b, node->operands[0]);
  int64_t dims[TT_MAX_RANK];
  int ndims = tt_attr_read(node->attrs, "dimensions", dims);
  uint32_t reduced = 0;
  for (int i = 0; i < ndims; i++) {
    reduced |= UINT32_C(1) << dims[i];
  }
  if (agree(g, node, 0, n, operands, &forms)) {
    tt_form left[TT_MAX_RANK];
    int kept = 0;
    for (int d = 0; d < rank; d++) {
      if ((reduced >> d & 1) == 0) {
        left[kept++] = forms[d];
      }
    }
    for (int i = 0; i < n; i++) {
      operands[n + i] = tt_operand(g, node, n + i)->now;
      operands[i] = tt_masked(g, operands[i], rank, forms, reduced, operands[n + i]);
      types[i] = tt_held_type(node->types[i].dtype, kept, left);
    }
    tt_val now = again(g, node, operands, node->attrs, types);
    for (int i = 0; i < n; i++) {
      tt_settle(g, node, i, now + (tt_val)i, left);
    }
  }
  free(operands);
  free(types);
}

// ---- contractions -------------------------------------------------------------------------------------------------

// Both sides of contracted or batched dimensions must be held alike.
static bool pair_forms(tt_bounding* g, const tt_known* l, const tt_known* r, int n, const int64_t* ld,
                       const int64_t* rd) {
  for (int i = 0; i < n; i++) {
    if (!tt_form_equal(&l->form[ld[i]], &r->form[rd[i]])) {
      tt_refuse(g, "a product over dimensions that are held differently");
      return false;
    }
  }
  return true;
}

static uint32_t bits_of(int n, const int64_t* axes) {
  uint32_t bits = 0;
  for (int i = 0; i < n; i++) {
    bits |= UINT32_C(1) << axes[i];
  }
  return bits;
}

static void bound_dot(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  const tt_known* l = tt_operand(g, node, 0);
  const tt_known* r = tt_operand(g, node, 1);
  int64_t lb[TT_MAX_RANK], rb[TT_MAX_RANK], lc[TT_MAX_RANK], rc[TT_MAX_RANK];
  int batch = tt_attr_read(node->attrs, "lhs_batching_dimensions", lb);
  int contract = tt_attr_read(node->attrs, "lhs_contracting_dimensions", lc);
  tt_attr_read(node->attrs, "rhs_batching_dimensions", rb);
  tt_attr_read(node->attrs, "rhs_contracting_dimensions", rc);
  int lrank = tt_rank_of(g->b, node->operands[0]);
  int rrank = tt_rank_of(g->b, node->operands[1]);
  if (!pair_forms(g, l, r, batch, lb, rb) || !pair_forms(g, l, r, contract, lc, rc)) {
    return;
  }
  // Padding may hold anything, NaN too, so both sides are cleared.
  tt_val operands[2];
  operands[0] = tt_masked(g, l->now, lrank, l->form, bits_of(contract, lc), tt_like_i(g->b, l->now, 0));
  operands[1] = tt_masked(g, r->now, rrank, r->form, bits_of(contract, rc), tt_like_i(g->b, r->now, 0));
  tt_form forms[TT_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < batch; i++) {
    forms[rank++] = l->form[lb[i]];
  }
  uint32_t used = bits_of(batch, lb) | bits_of(contract, lc);
  for (int d = 0; d < lrank; d++) {
    if ((used >> d & 1) == 0) {
      forms[rank++] = l->form[d];
    }
  }
  used = bits_of(batch, rb) | bits_of(contract, rc);
  for (int d = 0; d < rrank; d++) {
    if ((used >> d & 1) == 0) {
      forms[rank++] = r->form[d];
    }
  }
  tt_type type = tt_held_type(node->types[0].dtype, rank, forms);
  tt_settle(g, node, 0, again(g, node, operands, node->attrs, &type), forms);
}

// Images vary in their number only; the gradient of the kernel sums over them, as features.
static void bound_convolution(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  const char* dims = strstr(node->attrs, "#stablehlo.conv<");
  int64_t groups = 1, batches = 1;
  tt_attr_read(node->attrs, "feature_group_count", &groups);
  tt_attr_read(node->attrs, "batch_group_count", &batches);
  int where[3][2] = {{0}};  // lhs: batch, feature; rhs: out, in; result: batch, feature
  for (int side = 0, d = 0; dims != NULL && side < 3; dims++) {
    if (*dims == ']') {
      side++;
      d = 0;
    } else if (*dims == ',') {
      d++;
    } else if (dims[-1] == '[' || dims[-1] == ' ') {
      if (*dims == 'b' || *dims == 'o') {
        where[side][0] = d;
      } else if (*dims == 'f' || *dims == 'i') {
        where[side][1] = d;
      }
    }
  }
  const tt_known* l = tt_operand(g, node, 0);
  const tt_known* r = tt_operand(g, node, 1);
  int rank = node->types[0].rank;
  tt_form forms[TT_MAX_RANK];
  if (!tt_result_forms(g, index, 0, forms) || !same_attrs(g, index)) {
    tt_refuse(g, "a convolution whose window follows the sizes");
    return;
  }
  for (int d = 0; d < rank; d++) {
    bool lv = tt_form_varies(&l->form[d]), rv = tt_form_varies(&r->form[d]);
    if ((lv && d != where[0][0] && d != where[0][1]) || (rv && d != where[1][1])) {
      tt_refuse(g, "a convolution over a spatial size that varies");
      return;
    }
  }
  bool inner = tt_form_varies(&l->form[where[0][1]]) || tt_form_varies(&r->form[where[1][1]]);
  bool batch = tt_form_varies(&l->form[where[0][0]]);
  if ((inner && (groups != 1 || !tt_form_equal(&l->form[where[0][1]], &r->form[where[1][1]]))) ||
      (batch && batches != 1)) {
    tt_refuse(g, "a grouped convolution over sizes that vary");
    return;
  }
  forms[where[2][0]] = batch ? l->form[where[0][0]] : forms[where[2][0]];
  tt_val operands[2];
  operands[0] = tt_masked(g, l->now, rank, l->form, UINT32_C(1) << where[0][1], tt_like_i(g->b, l->now, 0));
  operands[1] = tt_masked(g, r->now, rank, r->form, UINT32_C(1) << where[1][1], tt_like_i(g->b, r->now, 0));
  tt_type type = tt_held_type(node->types[0].dtype, rank, forms);
  tt_settle(g, node, 0, again(g, node, operands, node->attrs, &type), forms);
}

// ---- gather and scatter -------------------------------------------------------------------------------------------

typedef struct picks {
  int num_offset, num_absent;
  int64_t offset[TT_MAX_RANK], absent[2 * TT_MAX_RANK];
  int64_t vector;
} picks;

static picks picks_of(const tt_node* node, const char* offset, const char* collapsed, const char* batching) {
  picks p = {.vector = 0};
  p.num_offset = tt_attr_read(node->attrs, offset, p.offset);
  p.num_absent = tt_attr_read(node->attrs, collapsed, p.absent);
  p.num_absent += tt_attr_read(node->attrs, batching, p.absent + p.num_absent);
  tt_attr_read(node->attrs, "index_vector_dim", &p.vector);
  return p;
}

static void bound_gather(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  const tt_known* x = tt_operand(g, node, 0);
  const tt_known* at = tt_operand(g, node, 1);
  picks p = picks_of(node, "offset_dims", "collapsed_slice_dims", "operand_batching_dims");
  int rank = tt_rank_of(g->b, node->operands[0]);
  int64_t sizes[TT_MAX_RANK];
  tt_form taken[TT_MAX_RANK];
  for (int d = 0; d < rank; d++) {
    bool whole = true;
    int64_t values[TT_SAMPLES];
    for (int k = 0; k < g->samples; k++) {
      const tt_node* n = tt_at_sample(g, index, k);
      int64_t at_sample[TT_MAX_RANK];
      tt_attr_read(n->attrs, "slice_sizes", at_sample);
      const tt_node* operand = k == 0 ? tt_node_of(g->b, n->operands[0]) : NULL;
      values[k] = at_sample[d];
      whole = whole && (operand == NULL || operand->types[n->operands[0] - operand->first].dims[d] == values[k]);
    }
    tt_size size;
    if (!tt_fit_size(g, values, &size)) {
      return;
    }
    taken[d] = tt_form_of(g, &size);
    if (whole && x->form[d].parts == 1 && tt_size_equal(&size, &x->form[d].part[0].size)) {
      taken[d] = x->form[d];
    } else if (tt_form_varies(&taken[d])) {
      tt_refuse(g, "gather with windows that follow the sizes");
      return;
    }
    sizes[d] = tt_form_held(&taken[d]);
  }
  tt_form forms[TT_MAX_RANK];
  uint32_t absent = bits_of(p.num_absent, p.absent), offsets = bits_of(p.num_offset, p.offset);
  for (int d = 0, window = 0, next = 0; d < node->types[0].rank; d++) {
    if ((offsets >> d & 1) != 0) {
      while ((absent >> window & 1) != 0) {
        window++;
      }
      forms[d] = taken[window++];
      continue;
    }
    next += next == p.vector ? 1 : 0;
    forms[d] = at->form[next++];
  }
  TT_SCOPED_TEXT(attrs);
  tt_attr_replace(&attrs, node->attrs, "slice_sizes", rank, sizes);
  tt_val operands[2] = {x->now, at->now};
  tt_type type = tt_held_type(node->types[0].dtype, node->types[0].rank, forms);
  tt_settle(g, node, 0, again(g, node, operands, attrs.text, &type), forms);
}

static void bound_scatter(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  if (node->num_operands != 3 || !same_attrs(g, index)) {
    tt_refuse(g, "scatter of several operands");
    return;
  }
  const tt_known* x = tt_operand(g, node, 0);
  const tt_known* at = tt_operand(g, node, 1);
  const tt_known* updates = tt_operand(g, node, 2);
  picks p = picks_of(node, "update_window_dims", "inserted_window_dims", "input_batching_dims");
  int rank = tt_rank_of(g->b, node->operands[2]);
  tt_form forms[TT_MAX_RANK];
  uint32_t absent = bits_of(p.num_absent, p.absent), offsets = bits_of(p.num_offset, p.offset);
  for (int d = 0, window = 0, next = 0; d < rank; d++) {
    if ((offsets >> d & 1) != 0) {
      while ((absent >> window & 1) != 0) {
        window++;
      }
      // A window along a size that varies covers all of it: its padding lands in padding.
      forms[d] = tt_form_varies(&updates->form[d]) ? x->form[window] : updates->form[d];
      window++;
      continue;
    }
    next += next == p.vector ? 1 : 0;
    forms[d] = at->form[next++];
  }
  // Indices of padding point nowhere: such updates are dropped.
  int at_rank = tt_rank_of(g->b, node->operands[1]);
  tt_val nowhere = tt_like_i(g->b, at->now, -1);
  if (!tt_dtype_is_signed(tt_dtype_of(g->b, at->now))) {
    nowhere = tt_const_max(g->b, tt_dtype_of(g->b, at->now));
  }
  tt_val operands[3] = {x->now, tt_masked(g, at->now, at_rank, at->form, UINT32_MAX, nowhere),
                        tt_in_form(g, node->operands[2], rank, forms)};
  tt_type type = tt_held_type(node->types[0].dtype, node->types[0].rank, x->form);
  tt_settle(g, node, 0, again(g, node, operands, node->attrs, &type), x->form);
}

// ---- all nodes ----------------------------------------------------------------------------------------------------

// What looks at single dimensions only, and those do not vary; the others pass through.
static bool passes(tt_bounding* g, const tt_node* node) {
  const tt_known* x = tt_operand(g, node, 0);
  int rank = tt_rank_of(g->b, node->operands[0]);
  int64_t values[TT_MAX_RANK];
  if (named(node, "sort")) {
    tt_attr_read(node->attrs, "dimension", values);
    return !tt_form_varies(&x->form[values[0]]);
  }
  if (named(node, "top_k")) {
    return !tt_form_varies(&x->form[rank - 1]);
  }
  if (named(node, "reduce_window")) {
    tt_attr_read(node->attrs, "window_dimensions", values);
    for (int d = 0; d < rank; d++) {
      if (tt_form_varies(&x->form[d]) && values[d] != 1) {
        return false;
      }
    }
    return true;
  }
  return false;
}

static void bound_other(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  bool vary = !same_attrs(g, index);
  size_t n = (size_t)node->num_operands + 1;
  tt_val* operands = tt_calloc(n, sizeof *operands);
  for (int i = 0; i < node->num_operands; i++) {
    operands[i] = tt_operand(g, node, i)->now;
    vary = vary || varies(tt_operand(g, node, i), tt_rank_of(g->b, node->operands[i]));
  }
  for (int i = 0; i < node->num_regions; i++) {
    vary = vary || node->regions[i]->num_captures > 0;
  }
  tt_form* forms = tt_calloc((size_t)node->num_results * TT_MAX_RANK, sizeof *forms);
  tt_type* types = tt_calloc((size_t)node->num_results, sizeof *types);
  for (int r = 0; r < node->num_results && g->b->error == NULL; r++) {
    tt_form* mine = forms + r * TT_MAX_RANK;
    if (tt_result_forms(g, index, r, mine)) {
      for (int d = 0; d < node->types[r].rank; d++) {
        vary = vary || tt_form_varies(&mine[d]);
      }
      types[r] = tt_held_type(node->types[r].dtype, node->types[r].rank, mine);
    }
  }
  if (vary && g->b->error == NULL) {
    if (!same_attrs(g, index) || !passes(g, node)) {
      tt_refuse(g, "%s over sizes that vary", node->mnemonic);
    }
    const tt_known* x = tt_operand(g, node, 0);
    for (int r = 0; r < node->num_results && g->b->error == NULL; r++) {
      for (int d = 0; d < node->types[r].rank; d++) {
        tt_form* mine = &forms[r * TT_MAX_RANK + d];
        *mine = tt_form_varies(&x->form[d]) ? x->form[d] : *mine;
      }
      types[r] = tt_held_type(node->types[r].dtype, node->types[r].rank, forms + r * TT_MAX_RANK);
    }
  }
  if (g->b->error == NULL) {
    tt_val now = again(g, node, operands, node->attrs, types);
    for (int r = 0; r < node->num_results; r++) {
      tt_settle(g, node, r, now + (tt_val)r, forms + r * TT_MAX_RANK);
    }
  }
  free(operands);
  free(forms);
  free(types);
}

void tt_bound_node(tt_bounding* g, int index) {
  const tt_node* node = tt_at_sample(g, index, 0);
  if (named(node, "constant")) {
    bound_constant(g, index);
  } else if (named(node, "bitcast_convert")) {
    bound_bitcast(g, index);
  } else if (is_elementwise(node)) {
    bound_elementwise(g, index);
  } else if (named(node, "reduce")) {
    bound_reduce(g, index);
  } else if (named(node, "dot_general")) {
    bound_dot(g, index);
  } else if (named(node, "convolution")) {
    bound_convolution(g, index);
  } else if (named(node, "gather")) {
    bound_gather(g, index);
  } else if (named(node, "scatter")) {
    bound_scatter(g, index);
  } else if (!tt_bound_move(g, index)) {
    bound_other(g, index);
  }
}
