// SPDX-License-Identifier: Apache-2.0
//
// The text of a trace: each plan's main function under a name of its own, once, and a main function that calls them.
#include <stdio.h>
#include <string.h>

#include "run/fuse_trace.h"

static void add_type(tt_strbuf* s, const tt_type* type) {
  tt_strbuf_add(s, "tensor<");
  for (int d = 0; d < type->rank; ++d) {
    tt_strbuf_addf(s, "%lldx", (long long)type->dims[d]);
  }
  tt_strbuf_addf(s, "%s>", tt_dtype_text(type->dtype));
}

// Appends the functions of a plan's module. Every @name gets the plan's number, public becomes private, and argument attributes
// (donation is main's business) go.
static void add_functions(tt_strbuf* s, const tt_plan* plan) {
  const char* at = strchr(plan->text, '{') + 1;
  const char* end = strrchr(plan->text, '}');
  while (at < end) {
    if (strncmp(at, "func.func public", 16) == 0) {
      tt_strbuf_add(s, "func.func private");
      at += 16;
    } else if (strncmp(at, " {tf.aliasing_output", 20) == 0) {
      at = strchr(at, '}') + 1;
    } else if (*at == '@') {
      size_t n = 1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
      tt_strbuf_addn(s, at, n);
      tt_strbuf_addf(s, "_%llu", (unsigned long long)plan->serial);
      at += n;
    } else {
      size_t n = strcspn(at + 1, "f @") + 1;
      n = at + n > end ? (size_t)(end - at) : n;
      tt_strbuf_addn(s, at, n);
      at += n;
    }
  }
}

// A value by the node that makes it, the last one that starts at or before it: %n3 or %n3#1.
static void add_value(tt_strbuf* s, const tt_fuse_text* t, int value) {
  int low = 0;
  int high = t->num_nodes - 1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (t->nodes[middle].first_value <= value) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  tt_strbuf_addf(s, "%%n%d", low);
  if (t->nodes[low].plan->num_results > 1) {
    tt_strbuf_addf(s, "#%d", value - t->nodes[low].first_value);
  }
}

static void add_types(tt_strbuf* s, int n, const tt_type* types) {
  for (int i = 0; i < n; ++i) {
    tt_strbuf_add(s, i > 0 ? ", " : "");
    add_type(s, &types[i]);
  }
}

// Numbers lie together by dtype: an operand is one of them, or a random state's three.
static int number_param(const tt_fuse_text* t, tt_dtype dtype) {
  int param = t->num_params;
  for (int d = 0; d < (int)dtype; ++d) {
    param += t->num_numbers[d] > 0;
  }
  return param;
}

static void add_number(tt_strbuf* s, const tt_fuse_text* t, int operand, const tt_type* type, int name) {
  tt_dtype dtype = tt_fuse_number_dtype(operand);
  const char* element = tt_dtype_text(dtype);
  int at = tt_fuse_number_index(operand);
  int n = type->rank == 0 ? 1 : (int)type->dims[0];
  tt_strbuf_addf(s,
                 "    %%s%d = \"stablehlo.slice\"(%%arg%d) <{start_indices = array<i64: %d>, limit_indices = "
                 "array<i64: %d>, strides = array<i64: 1>}> : (tensor<%dx%s>) -> tensor<%dx%s>\n",
                 name, number_param(t, dtype), at, at + n, t->num_numbers[dtype], element, n, element);
  if (type->rank == 0) {
    tt_strbuf_addf(s, "    %%k%d = \"stablehlo.reshape\"(%%s%d) : (tensor<1x%s>) -> tensor<%s>\n", name, name, element,
                   element);
  }
}

static void add_operand(tt_strbuf* s, const tt_fuse_text* t, int number, const tt_type* type) {
  int operand = t->operands[number];
  if (operand < 0) {
    tt_strbuf_addf(s, "%%arg%d", ~operand);
  } else if (operand >= TT_FUSE_NUMBER) {
    tt_strbuf_addf(s, "%%%c%d", type->rank == 0 ? 'k' : 's', number);
  } else {
    add_value(s, t, operand);
  }
}

static void add_call(tt_strbuf* s, const tt_fuse_text* t, int number) {
  const tt_fuse_node* node = &t->nodes[number];
  const tt_plan* plan = node->plan;
  for (int i = 0; i < plan->num_sources; ++i) {
    if (t->operands[node->first_operand + i] >= TT_FUSE_NUMBER) {
      int name = node->first_operand + i;
      add_number(s, t, t->operands[name], &plan->source_types[i], name);
    }
  }
  tt_strbuf_addf(s, "    %%n%d", number);
  if (plan->num_results > 1) {
    tt_strbuf_addf(s, ":%d", plan->num_results);
  }
  tt_strbuf_addf(s, " = func.call @main_%llu(", (unsigned long long)plan->serial);
  for (int i = 0; i < plan->num_sources; ++i) {
    tt_strbuf_add(s, i > 0 ? ", " : "");
    add_operand(s, t, node->first_operand + i, &plan->source_types[i]);
  }
  tt_strbuf_add(s, ") : (");
  add_types(s, plan->num_sources, plan->source_types);
  tt_strbuf_add(s, ") -> (");
  add_types(s, plan->num_results, plan->result_types);
  tt_strbuf_add(s, ")\n");
}

char* tt_fuse_print(const tt_fuse_text* t) {
  tt_strbuf s = {0};
  tt_strbuf_add(&s, "module @fused {\n");
  // A plan may stand in many nodes; its functions are printed once.
  tt_map* seen = tt_map_create();
  for (int i = 0; i < t->num_nodes; ++i) {
    tt_plan* plan = t->nodes[i].plan;
    uint64_t hash = tt_hash_words(&plan->serial, 1);
    if (tt_map_find(seen, &plan->serial, 1, hash) == NULL) {
      tt_map_insert(seen, &plan->serial, 1, hash, plan);
      add_functions(&s, plan);
    }
  }
  tt_map_destroy(seen);
  tt_strbuf_add(&s, "  func.func public @main(");
  for (int i = 0; i < t->num_params; ++i) {
    tt_strbuf_addf(&s, "%s%%arg%d: ", i > 0 ? ", " : "", i);
    add_type(&s, t->param_types[i]);
    if (t->param_alias[i] >= 0) {
      tt_strbuf_addf(&s, " {tf.aliasing_output = %d : i32}", t->param_alias[i]);
    }
  }
  for (int d = 0; d < TT_DTYPE_COUNT; ++d) {
    if (t->num_numbers[d] > 0) {
      int param = number_param(t, (tt_dtype)d);
      const char* element = tt_dtype_text((tt_dtype)d);
      tt_strbuf_addf(&s, "%s%%arg%d: tensor<%dx%s>", param > 0 ? ", " : "", param, t->num_numbers[d], element);
    }
  }
  tt_strbuf_add(&s, ") -> (");
  add_types(&s, t->num_outputs, t->output_types);
  tt_strbuf_add(&s, ") {\n");
  for (int i = 0; i < t->num_nodes; ++i) {
    add_call(&s, t, i);
  }
  tt_strbuf_add(&s, "    \"func.return\"(");
  for (int i = 0; i < t->num_outputs; ++i) {
    tt_strbuf_add(&s, i > 0 ? ", " : "");
    add_value(&s, t, t->outputs[i]);
  }
  tt_strbuf_add(&s, ") : (");
  add_types(&s, t->num_outputs, t->output_types);
  tt_strbuf_add(&s, ") -> ()\n  }\n}\n");
  return tt_strbuf_take(&s);
}
