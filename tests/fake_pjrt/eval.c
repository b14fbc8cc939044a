// SPDX-License-Identifier: Apache-2.0
//
// Running a program: values by slot, regions, attributes, and the table of operations.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

struct fake_run {
  const fake_program* program;
  fake_array** values;  // by slot
};

// ---- attributes -----------------------------------------------------------------------------------------------------------

const char* fake_attr_find(const fake_op* op, const char* name) {
  size_t n = strlen(name);
  for (const char* at = op->attrs; (at = strstr(at, name)) != NULL; at += n) {
    bool begins = at == op->attrs || strchr(" <,[{", at[-1]) != NULL;
    if (begins && strncmp(at + n, " = ", 3) == 0) {
      return at + n + 3;
    }
  }
  return NULL;
}

int fake_attr_ints(const fake_op* op, const char* name, int64_t* out, int most) {
  const char* at = fake_attr_find(op, name);
  int n = 0;
  if (at == NULL) {
    return 0;
  }
  if (strncmp(at, "array<i64", 9) == 0) {
    at += 9;
    at += *at == ':';
  } else if (strncmp(at, "dense<", 6) == 0) {
    at += 6;
  }
  int depth = 0;
  for (; *at != '\0' && *at != '>'; ++at) {
    depth += (*at == '[') - (*at == ']');
    if (isdigit((unsigned char)*at) || *at == '-') {
      char* end = NULL;
      int64_t value = strtoll(at, &end, 10);
      at = end - 1;
      if (n < most) {
        out[n++] = value;
      }
      if (depth == 0 && (end[0] == '\0' || strncmp(end, " :", 2) == 0)) {
        break;
      }
    }
    if (*at == ']' && depth == 0) {
      break;
    }
  }
  return n;
}

int64_t fake_attr_int(const fake_op* op, const char* name, int64_t otherwise) {
  int64_t value = otherwise;
  (void)fake_attr_ints(op, name, &value, 1);
  return value;
}

bool fake_attr_has(const fake_op* op, const char* text) {
  return strstr(op->attrs, text) != NULL;
}

// ---- running --------------------------------------------------------------------------------------------------------------

static void set_value(fake_run* run, int slot, fake_array* array) {
  fake_array_release(run->values[slot]);
  run->values[slot] = array;
}

static void run_op(fake_run* run, const fake_op* op) {
  fake_array** in = fake_alloc((size_t)op->num_operands, sizeof *in);
  fake_array** out = fake_alloc((size_t)op->num_results, sizeof *out);
  for (int i = 0; i < op->num_operands; ++i) {
    in[i] = run->values[op->operands[i]];
  }
  for (int i = 0; i < op->num_results; ++i) {
    out[i] = fake_array_new(&op->types[i]);
  }
  op->rule->eval(run, op, in, out);
  for (int i = 0; i < op->num_results; ++i) {
    set_value(run, op->first_result + i, out[i]);
  }
  free(in);
  free(out);
}

void fake_call_block(fake_run* run, const fake_block* block, fake_array* const* args, fake_array** results) {
  for (int i = 0; i < block->num_args; ++i) {
    set_value(run, block->args[i], fake_array_share(args[i]));
  }
  for (int i = 0; i < block->num_ops; ++i) {
    run_op(run, &block->ops[i]);
  }
  for (int i = 0; i < block->num_results; ++i) {
    results[i] = fake_array_share(run->values[block->results[i]]);
  }
}

static fake_block* function_named(const fake_program* program, const char* name) {
  for (int i = 0; i < program->num_functions; ++i) {
    if (strcmp(program->functions[i].name, name) == 0) {
      return &program->functions[i].body;
    }
  }
  return NULL;
}

void fake_call_function(fake_run* run, const char* name, fake_array* const* args, fake_array** results) {
  fake_call_block(run, function_named(run->program, name), args, results);
}

bool fake_functions_resolve(const fake_program* program, const fake_block* block) {
  for (int i = 0; i < block->num_ops; ++i) {
    const fake_op* op = &block->ops[i];
    if (op->callee[0] != '\0' && function_named(program, op->callee) == NULL) {
      return false;
    }
    for (int k = 0; k < op->num_blocks; ++k) {
      if (!fake_functions_resolve(program, &op->blocks[k])) {
        return false;
      }
    }
  }
  return true;
}

void fake_program_run(const fake_program* program, fake_array* const* inputs, fake_array** outputs) {
  fake_run run = {program, fake_alloc((size_t)program->num_slots, sizeof *run.values)};
  fake_call_block(&run, program->main, inputs, outputs);
  for (int i = 0; i < program->num_slots; ++i) {
    fake_array_release(run.values[i]);
  }
  free(run.values);
}

const fake_rule* fake_rule_find(const char* name, size_t length) {
  const fake_rule* const tables[] = {fake_elementwise_rules, fake_shape_rules, fake_region_rules};
  for (size_t t = 0; t < sizeof tables / sizeof *tables; ++t) {
    for (const fake_rule* rule = tables[t]; rule->name != NULL; ++rule) {
      if (strlen(rule->name) == length && strncmp(rule->name, name, length) == 0) {
        return rule;
      }
    }
  }
  return NULL;
}

// ---- the end --------------------------------------------------------------------------------------------------------------

static void destroy_block(fake_block* block) {
  for (int i = 0; i < block->num_ops; ++i) {
    fake_op* op = &block->ops[i];
    for (int k = 0; k < op->num_blocks; ++k) {
      destroy_block(&op->blocks[k]);
    }
    free(op->attrs);
    free(op->operands);
    free(op->types);
    free(op->blocks);
  }
  free(block->ops);
  free(block->args);
  free(block->results);
}

void fake_program_destroy(fake_program* program) {
  if (program != NULL) {
    for (int i = 0; i < program->num_functions; ++i) {
      destroy_block(&program->functions[i].body);
    }
    free(program->functions);
    free(program->params);
    free(program->alias);
    free(program->outputs);
    free(program->text);
    free(program);
  }
}
