// SPDX-License-Identifier: Apache-2.0
//
// The inside of bounding: what is known of each value, and helpers that its rules (bounded_rules.c, bounded_move.c) share.
#ifndef TT_HLO_BOUNDED_GRAPH_H
#define TT_HLO_BOUNDED_GRAPH_H

#include "hlo/bounded.h"
#include "hlo/graph.h"

enum { TT_FACTORS = 4 };

// A dimension as it is held: a product of parts, outermost first. Of a part of `size` elements, `held` are there, the valid
// ones first. A dimension with static size has one part that is held as it is; one that varies usually one at its bound; only
// a reshape that merges dimensions makes more.
typedef struct tt_part {
  tt_size size;
  int64_t held;
} tt_part;
typedef struct tt_form {
  int parts;
  tt_part part[TT_FACTORS];
} tt_form;

typedef struct tt_known {
  tt_val now;     // the value in the bounded program; TT_POISON: not yet
  tt_form* form;  // by dimension
  int node;       // in the walk; -1: a parameter
  int result;
} tt_known;

typedef struct tt_bounding {
  tt_builder* b;
  int num_symbols, samples;
  const tt_symbols* at;
  tt_symbols now;
  tt_node** nodes[TT_SAMPLES];
  tt_known* known;  // by value of the first instance
  size_t num_known;
  tt_val symbol[TT_SYMBOLS];
  TT_VEC(tt_held) held;
  bool refused;
} tt_bounding;

// Remembers the first reason. Returns TT_POISON.
tt_val tt_refuse(tt_bounding* g, const char* fmt, ...) TT_PRINTF(2, 3);
static inline tt_node* tt_at_sample(const tt_bounding* g, int node, int sample) {
  return g->nodes[sample][node];
}
// ---- sizes
bool tt_fit_size(tt_bounding* g, const int64_t* values, tt_size* out);
tt_val tt_emit_size(tt_bounding* g, const tt_size* size);  // 0-d i64
int64_t tt_hold(tt_bounding* g, const tt_size* size);      // the bound, noted
// ---- forms
tt_form tt_form_of(tt_bounding* g, const tt_size* size);  // one part
int64_t tt_form_held(const tt_form* form);
bool tt_form_varies(const tt_form* form);
bool tt_form_equal(const tt_form* x, const tt_form* y);
tt_size tt_form_size(tt_bounding* g, const tt_form* form);  // of a form with one part
// Forms of the result by fitting its sizes.
bool tt_result_forms(tt_bounding* g, int node, int result, tt_form* out);
tt_type tt_held_type(tt_dtype dtype, int rank, const tt_form* forms);
// ---- values
static inline tt_known* tt_operand(tt_bounding* g, const tt_node* node, int i) {
  return &g->known[node->operands[i]];
}
// The value held in other forms of the same sizes: possible for what is broadcast, counted or computed from such.
tt_val tt_in_form(tt_bounding* g, tt_val value, int rank, const tt_form* forms);
// Cuts or fills (with zeros) dimension d to `held` places.
tt_val tt_resize(tt_bounding* g, tt_val x, int d, int64_t held);
// Which places of dimension d of a value with these forms are valid, in the value's dims; `keep`: bits of dimensions to look at.
tt_val tt_valid(tt_bounding* g, int rank, const tt_form* forms, uint32_t dims);
// x with the padding of the dimensions replaced by `fill` (0-d).
tt_val tt_masked(tt_bounding* g, tt_val x, int rank, const tt_form* forms, uint32_t dims, tt_val fill);
void tt_settle(tt_bounding* g, const tt_node* node, int result, tt_val now, const tt_form* forms);
// ---- attributes
int tt_attr_read(const char* attrs, const char* name,
                 int64_t* out);  // numbers of `name = array<..>`, `[..]` or a number
void tt_attr_replace(tt_strbuf* out, const char* attrs, const char* name, int n, const int64_t* values);

// One node; false if it is none of the rule's.
void tt_bound_node(tt_bounding* g, int index);
bool tt_bound_move(tt_bounding* g, int index);

#endif  // TT_HLO_BOUNDED_GRAPH_H
