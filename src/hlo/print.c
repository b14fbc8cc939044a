// SPDX-License-Identifier: Apache-2.0
//
// Text: MLIR's generic form for every operation, types, and the pieces of attribute dictionaries.
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "hlo/graph.h"

// ---- attributes ---------------------------------------------------------------------------------------------------

void tt_attr_separate(tt_strbuf* s) {
  if (s->length > 0) {
    tt_strbuf_add(s, ", ");
  }
}

static void add_ints(tt_strbuf* s, int n, const int64_t* values) {
  for (int i = 0; i < n; i++) {
    tt_strbuf_addf(s, "%s%" PRId64, i ? ", " : "", values[i]);
  }
}

void tt_attr_ints(tt_strbuf* s, const char* name, int n, const int64_t* values) {
  TT_ATTR(s, "%s = array<i64%s", name, n ? ": " : "");
  add_ints(s, n, values);
  tt_strbuf_add(s, ">");
}

void tt_attr_bools(tt_strbuf* s, const char* name, int n, const bool* values) {
  TT_ATTR(s, "%s = array<i1%s", name, n ? ": " : "");
  for (int i = 0; i < n; i++) {
    tt_strbuf_addf(s, "%s%s", i ? ", " : "", values[i] ? "true" : "false");
  }
  tt_strbuf_add(s, ">");
}

void tt_attr_list(tt_strbuf* s, const char* name, int n, const int64_t* values) {
  if (n > 0) {
    TT_ATTR(s, "%s = [", name);
    add_ints(s, n, values);
    tt_strbuf_add(s, "]");
  }
}

void tt_attr_pairs(tt_strbuf* s, const char* name, int n, const int64_t* low, const int64_t* high) {
  TT_ATTR(s, "%s = dense<%s", name, n ? "[" : "");
  for (int i = 0; i < n; i++) {
    tt_strbuf_addf(s, "%s[%" PRId64 ", %" PRId64 "]", i ? ", " : "", low[i], high[i]);
  }
  tt_strbuf_addf(s, "%s> : tensor<%dx2xi64>", n ? "]" : "", n);
}

void tt_attr_precision(tt_builder* b, tt_strbuf* s) {
  static const char* const names[] = {"DEFAULT", "HIGH", "HIGHEST"};
  b->precision_used = true;
  const char* name = names[b->precision];
  TT_ATTR(s, "precision_config = [#stablehlo<precision %s>, #stablehlo<precision %s>]", name, name);
}

// ---- types --------------------------------------------------------------------------------------------------------

void tt_print_type(tt_strbuf* s, const tt_type* type) {
  tt_strbuf_add(s, "tensor<");
  for (int d = 0; d < type->rank; d++) {
    if ((type->bounded >> d) & 1) {
      tt_strbuf_add(s, "?x");
    } else {
      tt_strbuf_addf(s, "%" PRId64 "x", type->dims[d]);
    }
  }
  tt_strbuf_add(s, tt_dtype_text(type->dtype));
  if (type->bounded) {
    tt_strbuf_add(s, ", #stablehlo.bounds<");
    for (int d = 0; d < type->rank; d++) {
      tt_strbuf_add(s, d ? ", " : "");
      if ((type->bounded >> d) & 1) {
        tt_strbuf_addf(s, "%" PRId64, type->dims[d]);
      } else {
        tt_strbuf_add(s, "?");
      }
    }
    tt_strbuf_add(s, ">");
  }
  tt_strbuf_add(s, ">");
}

const char* tt_show_type(tt_builder* b, const tt_type* type) {
  char text[512];
  return tt_arena_strdup(&b->arena, tt_type_describe(type, text, sizeof text));
}

const char* tt_show(tt_builder* b, tt_val v) {
  return tt_show_type(b, tt_type_of(b, v));
}

const char* tt_show_ints(tt_builder* b, int n, const int64_t* values) {
  TT_SCOPED_TEXT(s);
  tt_strbuf_add(&s, "[");
  add_ints(&s, n, values);
  tt_strbuf_add(&s, "]");
  return tt_arena_strdup(&b->arena, s.text);
}

// ---- nodes --------------------------------------------------------------------------------------------------------

typedef struct printer {
  tt_builder* b;
  tt_strbuf* out;
  uint32_t next, next_arg;
  TT_VEC(char*) functions;  // bodies of outlined functions; the index is part of the name
} printer;

static void print_value(printer* p, tt_val v) {
  const tt_node* node = tt_node_of(p->b, v);
  switch (node->kind) {
    case TT_NODE_PARAM:
      tt_strbuf_addf(p->out, "%%arg%d", node->index);
      break;
    case TT_NODE_REGION_ARGS:
      tt_strbuf_addf(p->out, "%%a%" PRIu32, node->number + (v - node->first));
      break;
    case TT_NODE_OP:
      tt_strbuf_addf(p->out, "%%%" PRIu32, node->number);
      if (node->num_results > 1) {
        tt_strbuf_addf(p->out, "#%" PRIu32, v - node->first);
      }
      break;
  }
}

static void print_values(printer* p, int n, const tt_val* values) {
  for (int i = 0; i < n; i++) {
    tt_strbuf_add(p->out, i ? ", " : "");
    print_value(p, values[i]);
  }
}

static void print_types_of(printer* p, int n, const tt_val* values) {
  tt_strbuf_add(p->out, "(");
  for (int i = 0; i < n; i++) {
    tt_strbuf_add(p->out, i ? ", " : "");
    tt_print_type(p->out, tt_type_of(p->b, values[i]));
  }
  tt_strbuf_add(p->out, ")");
}

static void indent(printer* p, int depth) {
  for (int i = 0; i < depth; i++) {
    tt_strbuf_add(p->out, "  ");
  }
}

static void print_node(printer* p, tt_node* node, int depth);

static void print_return(printer* p, const char* mnemonic, int n, const tt_val* values, int depth) {
  indent(p, depth);
  tt_strbuf_addf(p->out, "\"%s\"(", mnemonic);
  print_values(p, n, values);
  tt_strbuf_add(p->out, ") : ");
  print_types_of(p, n, values);
  tt_strbuf_add(p->out, " -> ()\n");
}

static void print_args(printer* p, tt_node* args) {
  args->number = p->next_arg;
  p->next_arg += (uint32_t)args->num_results;
  for (int i = 0; i < args->num_results; i++) {
    tt_strbuf_addf(p->out, "%s%%a%" PRIu32 ": ", i ? ", " : "", args->number + (uint32_t)i);
    tt_print_type(p->out, &args->types[i]);
  }
}

static void print_region(printer* p, const tt_region* region, int depth) {
  tt_strbuf_add(p->out, "{\n");
  indent(p, depth);
  tt_strbuf_add(p->out, "^bb0(");
  print_args(p, region->args);
  tt_strbuf_add(p->out, "):\n");
  for (int i = 0; i < region->num_nodes; i++) {
    print_node(p, region->nodes[i], depth + 1);
  }
  print_return(p, "stablehlo.return", region->num_results, region->results, depth + 1);
  indent(p, depth);
  tt_strbuf_add(p->out, "}");
}

// Prints `region` as the rest of a function, from its parameter list on; equal texts share one function.
static size_t outline(printer* p, const tt_region* region) {
  tt_strbuf text = {0};
  tt_strbuf* out = p->out;
  uint32_t next = p->next, next_arg = p->next_arg;
  p->out = &text;
  p->next = p->next_arg = 0;
  tt_strbuf_add(&text, "(");
  print_args(p, region->args);
  tt_strbuf_add(&text, ") -> ");
  print_types_of(p, region->num_results, region->results);
  tt_strbuf_add(&text, " {\n");
  for (int i = 0; i < region->num_nodes; i++) {
    print_node(p, region->nodes[i], 2);
  }
  print_return(p, "func.return", region->num_results, region->results, 2);
  tt_strbuf_add(&text, "  }\n");
  p->out = out;
  p->next = next;
  p->next_arg = next_arg;
  for (size_t i = 0; i < p->functions.count; i++) {
    if (strcmp(p->functions.items[i], text.text) == 0) {
      tt_strbuf_free(&text);
      return i;
    }
  }
  TT_VEC_PUSH(&p->functions, tt_strbuf_take(&text));
  return p->functions.count - 1;
}

static void print_node(printer* p, tt_node* node, int depth) {
  size_t function = node->outlined ? outline(p, node->regions[0]) : 0;
  node->number = p->next++;
  indent(p, depth);
  tt_strbuf_addf(p->out, "%%%" PRIu32, node->number);
  if (node->num_results > 1) {
    tt_strbuf_addf(p->out, ":%d", node->num_results);
  }
  tt_strbuf_addf(p->out, " = \"%s\"(", node->mnemonic);
  print_values(p, node->num_operands, node->operands);
  tt_strbuf_add(p->out, ")");
  if (node->outlined) {
    tt_strbuf_add(p->out, " <{");
    tt_strbuf_add(p->out, node->attrs);
    tt_strbuf_addf(p->out, ", decomposition = @decomposition_%zu}>", function);
  } else if (node->attrs[0]) {
    tt_strbuf_add(p->out, " <{");
    tt_strbuf_add(p->out, node->attrs);
    tt_strbuf_add(p->out, "}>");
  }
  if (node->num_regions > 0 && !node->outlined) {
    tt_strbuf_add(p->out, " (");
    for (int i = 0; i < node->num_regions; i++) {
      tt_strbuf_add(p->out, i ? ", " : "");
      print_region(p, node->regions[i], depth);
    }
    tt_strbuf_add(p->out, ")");
  }
  tt_strbuf_add(p->out, " : ");
  print_types_of(p, node->num_operands, node->operands);
  tt_strbuf_add(p->out, " -> ");
  tt_strbuf_add(p->out, node->num_results == 1 ? "" : "(");
  for (int i = 0; i < node->num_results; i++) {
    tt_strbuf_add(p->out, i ? ", " : "");
    tt_print_type(p->out, &node->types[i]);
  }
  tt_strbuf_add(p->out, node->num_results == 1 ? "\n" : ")\n");
}

static void print_symbol(tt_strbuf* s, const char* name) {
  tt_strbuf_add(s, isalpha((unsigned char)name[0]) ? "" : "m_");
  for (; *name; name++) {
    tt_strbuf_addn(s, isalnum((unsigned char)*name) ? name : "_", 1);
  }
}

static void print_params(printer* p) {
  for (size_t i = 0; i < p->b->params.count; i++) {
    tt_strbuf_addf(p->out, "%s%%arg%zu: ", i ? ", " : "", i);
    tt_print_type(p->out, p->b->params.items[i]->types);
    for (int k = 0; k < p->b->num_aliases; k++) {
      if ((size_t)p->b->aliases[k].param == i) {
        tt_strbuf_addf(p->out, " {tf.aliasing_output = %d : i32}", p->b->aliases[k].output);
      }
    }
  }
}

char* tt_print_module(tt_builder* b, const char* name, int num_outputs, const tt_val* outputs) {
  tt_strbuf text = {0};
  printer p = {.b = b, .out = &text};
  int num_nodes, num_captures;
  tt_node **nodes, **captures;
  tt_graph_walk(b, 0, num_outputs, outputs, &num_nodes, &nodes, &num_captures, &captures);
  tt_strbuf_add(&text, "module @");
  print_symbol(&text, name);
  tt_strbuf_add(&text, " {\n  func.func public @main(");
  print_params(&p);
  tt_strbuf_add(&text, ") -> ");
  print_types_of(&p, num_outputs, outputs);
  tt_strbuf_add(&text, " {\n");
  for (int i = 0; i < num_nodes; i++) {
    print_node(&p, nodes[i], 2);
  }
  print_return(&p, "func.return", num_outputs, outputs, 2);
  tt_strbuf_add(&text, "  }\n");
  for (size_t i = 0; i < p.functions.count; i++) {
    tt_strbuf_addf(&text, "  func.func private @decomposition_%zu", i);
    tt_strbuf_add(&text, p.functions.items[i]);
    free(p.functions.items[i]);
  }
  TT_VEC_FREE(&p.functions);
  tt_strbuf_add(&text, "}\n");
  return tt_strbuf_take(&text);
}
