// SPDX-License-Identifier: Apache-2.0
//
// From the generic MLIR text of src/hlo/print.c, and the calls of src/run/fuse_text.c, to a program.
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { NAME_SIZE = 24, MOST_VALUES = 256 };

typedef struct parser {
  const char* at;
  fake_program* program;
  char (*names)[NAME_SIZE];  // by slot
  int capacity, scope;       // names of other functions lie below `scope`
  char* error;
  size_t error_size;
  bool failed;
} parser;

__attribute__((format(printf, 2, 3))) static void fail(parser* p, const char* fmt, ...) {
  if (!p->failed) {
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(p->error, p->error_size, fmt, args);
    va_end(args);
    p->failed = true;
  }
  p->at = "";  // every loop ends at the end of the text
}

static void skip(parser* p) {
  p->at += strspn(p->at, " \n\t");
}

static bool take(parser* p, const char* text) {
  skip(p);
  size_t n = strlen(text);
  if (strncmp(p->at, text, n) != 0) {
    return false;
  }
  p->at += n;
  return true;
}

static void expect(parser* p, const char* text) {
  if (!take(p, text)) {
    fail(p, "expected %s, got \"%.40s\"", text, p->at);
  }
}

// ---- types ----------------------------------------------------------------------------------------------------------------

static tt_type parse_type(parser* p) {
  tt_type type;
  memset(&type, 0, sizeof type);
  expect(p, "tensor<");
  while (isdigit((unsigned char)*p->at)) {
    char* end = NULL;
    int64_t dim = strtoll(p->at, &end, 10);
    if (*end != 'x' || type.rank == TT_MAX_RANK) {
      fail(p, "bad dimensions \"%.40s\"", p->at);
      break;
    }
    type.dims[type.rank++] = dim;
    p->at = end + 1;
  }
  type.dtype = fake_dtype_parse(&p->at);
  if (type.dtype == TT_DTYPE_INVALID) {
    fail(p, "unknown element type \"%.40s\"", p->at);
    type.dtype = TT_F32;
  }
  expect(p, ">");
  return type;
}

// "(a, b)" or a single type; returns how many.
static int parse_types(parser* p, tt_type* out) {
  int n = 0;
  if (!take(p, "(")) {
    out[n++] = parse_type(p);
    return n;
  }
  while (!p->failed && !take(p, ")")) {
    if (n == MOST_VALUES) {
      fail(p, "more than %d types", MOST_VALUES);
      return 0;
    }
    out[n++] = parse_type(p);
    (void)take(p, ",");
  }
  return n;
}

// ---- names ----------------------------------------------------------------------------------------------------------------

static void parse_name(parser* p, char out[NAME_SIZE]) {
  size_t n = 0;
  expect(p, "%");
  while (isalnum((unsigned char)*p->at) || *p->at == '#') {
    if (n + 1 < NAME_SIZE) {
      out[n++] = *p->at;
    }
    ++p->at;
  }
  out[n] = '\0';
}

static int add_name(parser* p, const char* name) {
  int slot = p->program->num_slots++;
  if (slot == p->capacity) {
    p->capacity = p->capacity > 0 ? 2 * p->capacity : 64;
    p->names = realloc(p->names, (size_t)p->capacity * NAME_SIZE);
    if (p->names == NULL) {
      abort();
    }
  }
  (void)snprintf(p->names[slot], NAME_SIZE, "%s", name);
  return slot;
}

static int parse_use(parser* p) {
  char name[NAME_SIZE];
  parse_name(p, name);
  for (int slot = p->program->num_slots - 1; slot >= p->scope; --slot) {
    if (strcmp(p->names[slot], name) == 0) {
      return slot;
    }
  }
  fail(p, "unknown value %%%s", name);
  return 0;
}

static void* copy(const void* items, int n, size_t size) {
  void* made = fake_alloc((size_t)n, size);
  memcpy(made, items, (size_t)n * size);
  return made;
}

static int parse_uses(parser* p, int* out) {
  int n = 0;
  expect(p, "(");
  while (!p->failed && !take(p, ")")) {
    if (n == MOST_VALUES) {
      fail(p, "more than %d operands", MOST_VALUES);
      return 0;
    }
    out[n++] = parse_use(p);
    (void)take(p, ",");
  }
  return n;
}

// ---- operations -----------------------------------------------------------------------------------------------------------

static void parse_block(parser* p, fake_block* block);

static void parse_region(parser* p, fake_op* op) {
  op->blocks = realloc(op->blocks, (size_t)(op->num_blocks + 1) * sizeof *op->blocks);
  if (op->blocks == NULL) {
    abort();
  }
  fake_block* block = &op->blocks[op->num_blocks++];
  memset(block, 0, sizeof *block);
  expect(p, "{");
  expect(p, "^bb0(");
  int args[MOST_VALUES];
  while (!p->failed && !take(p, ")")) {
    char name[NAME_SIZE];
    parse_name(p, name);
    expect(p, ":");
    (void)parse_type(p);
    if (block->num_args < MOST_VALUES) {
      args[block->num_args++] = add_name(p, name);
    }
    (void)take(p, ",");
  }
  block->args = copy(args, block->num_args, sizeof(int));
  expect(p, ":");
  parse_block(p, block);
  expect(p, "}");
}

static void parse_attrs(parser* p, fake_op* op) {
  const char* end = take(p, "<{") ? strstr(p->at, "}>") : p->at;
  if (end == NULL) {
    fail(p, "attributes without end");
    return;
  }
  size_t n = (size_t)(end - p->at);
  op->attrs = fake_alloc(n + 1, 1);
  memcpy(op->attrs, p->at, n);
  p->at = n > 0 ? end + 2 : p->at;
  const char* callee = fake_attr_find(op, "decomposition");
  if (callee != NULL) {
    (void)snprintf(op->callee, sizeof op->callee, "%.*s", (int)strcspn(callee + 1, ",} "), callee + 1);
  }
}

// A function's name: @ and what follows, without the @.
static void parse_symbol(parser* p, char out[64]) {
  expect(p, "@");
  size_t n = strspn(p->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
  (void)snprintf(out, 64, "%.*s", (int)n, p->at);
  p->at += n;
}

static void parse_op(parser* p, const char* name, int count, fake_op* op) {
  skip(p);
  bool call = strncmp(p->at, "func.call ", 10) == 0;
  const char* start = *p->at == '"' ? p->at + 1 : p->at;
  size_t length = strcspn(start, call ? " " : "\"");
  op->rule = fake_rule_find(start, length);
  if (op->rule == NULL) {
    fail(p, "unknown operation %.*s", (int)length, start);
    return;
  }
  p->at = start + length + 1;
  if (call) {
    parse_symbol(p, op->callee);
  }
  int operands[MOST_VALUES];
  op->num_operands = parse_uses(p, operands);
  op->operands = copy(operands, op->num_operands, sizeof(int));
  parse_attrs(p, op);
  if (take(p, "(")) {
    do {
      parse_region(p, op);
    } while (take(p, ","));
    expect(p, ")");
  }
  static _Thread_local tt_type types[MOST_VALUES];
  expect(p, ":");
  if (parse_types(p, types) != op->num_operands) {
    fail(p, "%%%s: a type for each operand is missing", name);
  }
  expect(p, "->");
  op->num_results = parse_types(p, types);
  if (op->num_results != count) {
    fail(p, "%%%s: expected %d results, got %d", name, count, op->num_results);
  }
  op->types = copy(types, op->num_results, sizeof *types);
  op->first_result = p->program->num_slots;
  for (int i = 0; i < op->num_results; ++i) {
    char full[2 * NAME_SIZE];
    (void)snprintf(full, sizeof full, op->num_results > 1 ? "%s#%d" : "%s", name, i);
    (void)add_name(p, full);
  }
}

// Operations up to and with the return.
static void parse_block(parser* p, fake_block* block) {
  int capacity = 0;
  while (skip(p), *p->at == '%') {
    char name[NAME_SIZE];
    long count = 1;
    parse_name(p, name);
    if (take(p, ":")) {
      char* end = NULL;
      count = strtol(p->at, &end, 10);
      p->at = end;
    }
    expect(p, "=");
    if (block->num_ops == capacity) {
      capacity = capacity > 0 ? 2 * capacity : 8;
      block->ops = realloc(block->ops, (size_t)capacity * sizeof *block->ops);
      if (block->ops == NULL) {
        abort();
      }
    }
    memset(&block->ops[block->num_ops], 0, sizeof *block->ops);
    parse_op(p, name, (int)count, &block->ops[block->num_ops++]);
  }
  if (!take(p, "\"stablehlo.return\"") && !take(p, "\"func.return\"")) {
    fail(p, "expected a return, got \"%.40s\"", p->at);
    return;
  }
  int results[MOST_VALUES];
  static _Thread_local tt_type types[MOST_VALUES];
  block->num_results = parse_uses(p, results);
  block->results = copy(results, block->num_results, sizeof(int));
  expect(p, ":");
  (void)parse_types(p, types);
  expect(p, "->");
  expect(p, "()");
}

// ---- the module -----------------------------------------------------------------------------------------------------------

typedef struct signature {
  int count;
  int slots[MOST_VALUES], alias[MOST_VALUES];
  tt_type types[MOST_VALUES];
} signature;

static void parse_params(parser* p, signature* s) {
  s->count = 0;
  expect(p, "(");
  while (!p->failed && !take(p, ")")) {
    char name[NAME_SIZE];
    int n = s->count;
    if (n == MOST_VALUES) {
      fail(p, "more than %d parameters", MOST_VALUES);
      break;
    }
    parse_name(p, name);
    expect(p, ":");
    s->types[n] = parse_type(p);
    s->slots[n] = add_name(p, name);
    s->alias[n] = -1;
    if (take(p, "{tf.aliasing_output =")) {
      char* end = NULL;
      s->alias[n] = (int)strtol(p->at, &end, 10);
      p->at = end;
      expect(p, ": i32}");
    }
    s->count = n + 1;
    (void)take(p, ",");
  }
}

static void parse_function(parser* p) {
  static _Thread_local signature params;
  static _Thread_local tt_type types[MOST_VALUES];
  fake_program* program = p->program;
  bool is_main = take(p, "func.func public");
  if (!is_main) {
    expect(p, "func.func private");
  }
  program->functions = realloc(program->functions, (size_t)(program->num_functions + 1) * sizeof *program->functions);
  if (program->functions == NULL) {
    abort();
  }
  fake_function* function = &program->functions[program->num_functions++];
  memset(function, 0, sizeof *function);
  p->scope = program->num_slots;
  parse_symbol(p, function->name);
  parse_params(p, &params);
  function->body.num_args = params.count;
  function->body.args = copy(params.slots, params.count, sizeof(int));
  expect(p, "->");
  int outputs = parse_types(p, types);
  if (is_main && program->params == NULL) {
    program->num_outputs = outputs;
    program->outputs = copy(types, outputs, sizeof(tt_type));
    program->params = copy(params.types, params.count, sizeof(tt_type));
    program->alias = copy(params.alias, params.count, sizeof(int));
  }
  expect(p, "{");
  parse_block(p, &function->body);
  if (!p->failed && function->body.num_results != outputs) {
    fail(p, "@%s: expected %d results, got %d", function->name, outputs, function->body.num_results);
  }
  expect(p, "}");
}

static void parse_module(parser* p) {
  fake_program* program = p->program;
  char name[64];
  expect(p, "module");
  skip(p);
  parse_symbol(p, name);
  expect(p, "{");
  while (!p->failed && !take(p, "}")) {
    parse_function(p);
  }
  for (int i = 0; i < program->num_functions; ++i) {
    if (strcmp(program->functions[i].name, "main") == 0) {
      program->main = &program->functions[i].body;
    }
    if (!p->failed && !fake_functions_resolve(program, &program->functions[i].body)) {
      fail(p, "@%s calls a function that is not there", program->functions[i].name);
    }
  }
  if (program->main == NULL) {
    fail(p, "expected a function @main, got none");
  }
}

fake_program* fake_program_parse(const char* text, size_t size, char* error, size_t error_size) {
  fake_program* program = fake_alloc(1, sizeof *program);
  program->text = fake_alloc(size + 1, 1);
  memcpy(program->text, text, size);
  parser p = {.at = program->text, .program = program, .error = error, .error_size = error_size};
  parse_module(&p);
  free(p.names);
  if (p.failed) {
    fake_program_destroy(program);
    return NULL;
  }
  return program;
}
