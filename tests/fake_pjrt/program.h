// SPDX-License-Identifier: Apache-2.0
//
// Programs: the StableHLO text that src/hlo prints, parsed (parse.c), and computed on the host (eval.c and the ops_*.c). Slow
// and plain: one element at a time. What is not known is refused when the text is parsed.
#ifndef FAKE_PJRT_PROGRAM_H
#define FAKE_PJRT_PROGRAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tt/type.h"

// ---- arrays ---------------------------------------------------------------------------------------------------------------
typedef struct fake_array {
  _Atomic int refs;
  tt_type type;
  int64_t count;
  unsigned char* bytes;  // row-major; not changed once made
} fake_array;

fake_array* fake_array_new(const tt_type* type);  // zeroed
void fake_array_release(fake_array* array);       // accepts NULL
fake_array* fake_array_share(fake_array* array);
size_t fake_array_bytes(const tt_type* type);

size_t fake_dtype_size(tt_dtype dtype);
char fake_dtype_class(tt_dtype dtype);
bool fake_dtype_known(tt_dtype dtype);       // can be computed with
tt_dtype fake_dtype_parse(const char** at);  // "f32" before a '>'; INVALID if it is none or not known

// A number of any dtype: integers and bools in `i` (sign- or zero-extended), floats in `re`, complex numbers in both.
typedef struct fake_num {
  int64_t i;
  double re, im;
} fake_num;
fake_num fake_load(const fake_array* array, int64_t at);
void fake_store(fake_array* array, int64_t at, fake_num value);
void fake_store_raw(fake_array* to, int64_t at, const fake_array* from, int64_t from_at);  // same dtype
fake_num fake_convert(fake_num value, tt_dtype from, tt_dtype to);

// Positions: row-major strides, and stepping through all positions of `dims`.
void fake_strides(int rank, const int64_t* dims, int64_t* strides);
bool fake_next(int rank, const int64_t* dims, int64_t* position);  // false after the last

// ---- programs -------------------------------------------------------------------------------------------------------------
typedef struct fake_op fake_op;
typedef struct fake_run fake_run;
typedef struct fake_rule {
  const char* name;
  void (*eval)(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out);
} fake_rule;

typedef struct fake_block {
  int num_args, num_ops, num_results;
  int* args;  // slots
  int* results;
  fake_op* ops;
} fake_block;

typedef struct fake_function {
  char name[64];
  fake_block body;
} fake_function;

struct fake_op {
  const fake_rule* rule;
  char* attrs;      // the text between <{ and }>
  char callee[64];  // of calls and composites
  int num_operands, num_results, first_result, num_blocks;
  int* operands;  // slots
  tt_type* types;
  fake_block* blocks;
};

typedef struct fake_program {
  int num_slots, num_outputs, num_functions;
  fake_function* functions;
  fake_block* main;  // one of them
  tt_type* params;   // of main
  int* alias;        // by parameter: the output that may take its memory, or -1
  tt_type* outputs;
  char* text;
} fake_program;

// NULL and a reason if the text is not understood.
fake_program* fake_program_parse(const char* text, size_t size, char* error, size_t error_size);
void fake_program_destroy(fake_program* program);
// inputs are borrowed; outputs come with a reference.
void fake_program_run(const fake_program* program, fake_array* const* inputs, fake_array** outputs);

void fake_call_function(fake_run* run, const char* name, fake_array* const* args, fake_array** results);
bool fake_functions_resolve(const fake_program* program, const fake_block* block);  // every function called is there
// Calls a region: args are borrowed; results come with a reference.
void fake_call_block(fake_run* run, const fake_block* block, fake_array* const* args, fake_array** results);
const fake_rule* fake_rule_find(const char* name, size_t length);
extern const fake_rule fake_elementwise_rules[], fake_shape_rules[], fake_region_rules[];  // each ends with a NULL name

// ---- attributes -----------------------------------------------------------------------------------------------------------
// Integers of `name = array<i64: 1, 2>`, `[1, 2]`, `3 : i64` or `dense<[[1, 2]]>`; returns how many, 0 if absent.
int fake_attr_ints(const fake_op* op, const char* name, int64_t* out, int most);
int64_t fake_attr_int(const fake_op* op, const char* name, int64_t otherwise);
bool fake_attr_has(const fake_op* op, const char* text);
const char* fake_attr_find(const fake_op* op, const char* name);  // what follows `name = `, or NULL

void* fake_alloc(size_t count, size_t size);  // zeroed; aborts when the host has none

#endif  // FAKE_PJRT_PROGRAM_H
