// SPDX-License-Identifier: Apache-2.0
//
// The inside of a builder: nodes in an arena, values as indexes into a table, regions, and the one function through
// which every emitter adds a node.
//
// A node lives on the region level where it was emitted; level 0 is the main function. Equal nodes of one level are one
// node. A node without operands (a constant, an iota) that is used on a deeper level is emitted again there, since XLA
// takes no outer values in the regions of reductions.
#ifndef TT_HLO_GRAPH_H
#define TT_HLO_GRAPH_H

#include "base/mem.h"
#include "tt/hlo.h"

typedef enum tt_node_kind { TT_NODE_OP, TT_NODE_PARAM, TT_NODE_REGION_ARGS } tt_node_kind;

typedef struct tt_node tt_node;

typedef struct tt_region {
  tt_node* args;  // a TT_NODE_REGION_ARGS node whose results are the arguments
  int num_results;
  tt_val* results;
  int num_nodes;
  tt_node** nodes;  // what the results need, operands first
  int num_captures;
  tt_node** captures;  // nodes of outer levels that are used inside
} tt_region;

struct tt_node {
  tt_node_kind kind;
  uint32_t level;
  const char* mnemonic;
  const char* attrs;       // the body of an attribute dictionary, "" if there is none
  const char* region_key;  // says what the regions compute, so that equal ones can be found; NULL: never equal
  bool outlined;           // the region is printed as a function of its own (composite)
  int num_operands, num_results, num_regions;
  tt_val* operands;
  tt_val first;  // the results are the values first, first + 1, ...
  tt_type* types;
  tt_region** regions;
  const void* splat;  // for a constant with equal elements: one element's bytes; else NULL
  int index;          // parameter number
  uint64_t hash;
  uint64_t stamp;   // of the last walk that came here
  uint32_t number;  // the printer's
};

typedef struct tt_value {
  tt_node* node;
  int index;
} tt_value;

struct tt_builder {
  tt_arena arena;
  tt_status error;
  int precision;
  bool precision_used;
  TT_VEC(tt_value) values;  // [0] is poison
  TT_VEC(tt_node*) params;
  struct {
    int param, output;
  }* aliases;
  int num_aliases;
  uint32_t level;
  TT_VEC(struct tt_level {
    uint32_t parent;
    bool open;
  })
  levels;
  tt_node** table;  // open addressing over nodes, for finding equal ones
  size_t table_count, table_capacity;
  uint64_t stamp;
};

// What an emitter hands over; everything is copied.
typedef struct tt_spec {
  const char* mnemonic;  // a literal
  const char* attrs;
  const char* region_key;
  bool outlined;
  int num_operands;
  const tt_val* operands;
  int num_results;
  const tt_type* results;
  int num_regions;
  tt_region* const* regions;
  const void* splat;
} tt_spec;

// Adds the node, or finds an equal one; the first result's value. Poison if the builder has failed.
tt_val tt_emit(tt_builder* b, const tt_spec* spec);
// The common case of one result and no regions.
tt_val tt_emit1(tt_builder* b, const char* mnemonic, const char* attrs, int n, const tt_val* operands,
                const tt_type* result);
// The values of `n` results from `first` on, or poison in each. Emitters fill `results` last, so that callers may pass
// the array that holds the operands.
static inline void tt_spread(tt_val first, int n, tt_val* results) {
  for (int i = 0; i < n; i++) {
    results[i] = first == TT_POISON ? TT_POISON : first + (tt_val)i;
  }
}
// Emits a region through `body`. NULL if the builder has failed. `who` is the operation's name for messages. `closed`:
// outer values other than constants are an error.
tt_region* tt_region_build(tt_builder* b, const char* who, bool closed, int num_args, const tt_type* arg_types,
                           int num_results, tt_body body, void* ctx);
// Collects what `roots` need on `level`, operands first. Allocates in the arena.
void tt_graph_walk(tt_builder* b, uint32_t level, int num_roots, const tt_val* roots, int* out_num_nodes,
                   tt_node*** out_nodes, int* out_num_captures, tt_node*** out_captures);

static inline tt_node* tt_node_of(const tt_builder* b, tt_val v) {
  return b->values.items[v].node;
}

// False, with the sticky error set, unless all of `values` can be used here.
bool tt_usable(tt_builder* b, const char* who, int n, const tt_val* values);
// "add" for "stablehlo.add".
const char* tt_short_name(const char* mnemonic);

// ---- attribute text: each adds ", " first where needed ------------------------------------------------------------
void tt_attr_separate(tt_strbuf* s);
#define TT_ATTR(s, ...) (tt_attr_separate(s), tt_strbuf_addf((s), __VA_ARGS__))
void tt_attr_ints(tt_strbuf* s, const char* name, int n, const int64_t* values);  // name = array<i64: 1, 2>
void tt_attr_bools(tt_strbuf* s, const char* name, int n, const bool* values);    // name = array<i1: true>
void tt_attr_list(tt_strbuf* s, const char* name, int n, const int64_t* values);  // name = [1, 2]; nothing if n is 0
void tt_attr_pairs(tt_strbuf* s, const char* name, int n, const int64_t* low, const int64_t* high);  // dense n x 2
void tt_attr_precision(tt_builder* b, tt_strbuf* s);
#define TT_SCOPED_TEXT(name) TT_CLEANUP(tt_strbuf_free) tt_strbuf name = {0}

// ---- types --------------------------------------------------------------------------------------------------------
void tt_print_type(tt_strbuf* s, const tt_type* type);
// "f32[2,3]"; usable in one expression: the text lives as long as the builder.
const char* tt_show(tt_builder* b, tt_val v);
const char* tt_show_type(tt_builder* b, const tt_type* type);
const char* tt_show_ints(tt_builder* b, int n, const int64_t* values);
// Equal dims, where a bounded size and the same static size go together: the result is bounded in both's dimensions.
bool tt_type_join(const tt_type* x, const tt_type* y, tt_dtype dtype, tt_type* out);
// False, with the sticky error set, unless 0 <= rank <= TT_MAX_RANK and all dims are >= 0.
bool tt_check_dims(tt_builder* b, const char* who, int rank, const int64_t* dims);
// False, with the sticky error set, if a dimension is not in [0, rank) or named twice.
bool tt_check_axes(tt_builder* b, const char* who, const char* what, int n, const int64_t* axes, int rank);

// ---- elements of constants (const.c, float.c) ---------------------------------------------------------------------
#define TT_ELEM_MAX 16
void tt_elem_from_double(tt_dtype dtype, double re, double im, void* out);
void tt_elem_from_int(tt_dtype dtype, int64_t value, void* out);
double tt_elem_to_double(tt_dtype dtype, const void* elem);  // real part
void tt_elem_print(tt_strbuf* s, tt_dtype dtype, const void* elem);
uint64_t tt_float_encode(tt_dtype dtype, double value);
double tt_float_decode(tt_dtype dtype, uint64_t bits);
tt_val tt_splat_elem(tt_builder* b, const tt_type* type, const void* elem);
// The element of a splat constant, or NULL.
static inline const void* tt_splat_of(const tt_builder* b, tt_val v) {
  return tt_node_of(b, v)->splat;
}

// ---- folding (fold.c): the value to use instead, or TT_POISON -----------------------------------------------------
tt_val tt_fold_unary(tt_builder* b, tt_prim prim, tt_val x);
tt_val tt_fold_binary(tt_builder* b, tt_prim prim, tt_val x, tt_val y, const tt_type* result);
tt_val tt_fold_select(tt_builder* b, tt_val pred, tt_val on_true, tt_val on_false, const tt_type* result);
tt_val tt_fold_convert(tt_builder* b, tt_val x, tt_dtype dtype);
// Operations that only move or repeat elements: no change of type (`same`), or a splat operand.
tt_val tt_fold_move(tt_builder* b, tt_val x, bool same, const tt_type* result);

// ---- printing -----------------------------------------------------------------------------------------------------
char* tt_print_module(tt_builder* b, const char* name, int num_outputs, const tt_val* outputs);

#endif  // TT_HLO_GRAPH_H
