// SPDX-License-Identifier: Apache-2.0
//
// The trace, as recording (fuse.c) and running (fuse_run.c) share it. Under the runtime lock while it records; once `running`, it belongs to
// the thread that holds the run lock, except for `owner` and storages, which stay under the runtime lock.
#ifndef TT_RUN_FUSE_TRACE_H
#define TT_RUN_FUSE_TRACE_H

#include "run/fuse.h"

typedef struct tt_fuse_param {
  tt_buffer* buffer;  // held from the record on; NULL for the check accumulator until the trace runs
  bool is_check;
} tt_fuse_param;

typedef struct tt_fuse_value {
  tt_storage* owner;  // the storage whose pending value it is, or NULL: then nobody sees it. Not held.
  const tt_type* type;
  tt_buffer* buffer;  // while running
  const char* op;
  int replaces;  // parameter that was its storage's value before, or -1: the first choice for taking over its memory
  int last_use;  // node that reads it last; known once running
} tt_fuse_value;

// Run-time numbers travel together: one parameter a dtype holds all of a trace's.
typedef struct tt_fuse_numbers {
  TT_VEC(char) bytes;
  int count;
} tt_fuse_numbers;

struct tt_fuse {
  tt_device* device;
  uint64_t serial;  // no two traces of the process have the same
  bool running;     // taken for running: calls that meet its values wait
  TT_VEC(tt_fuse_node) nodes;
  TT_VEC(int) operands;
  TT_VEC(tt_fuse_param) params;
  TT_VEC(tt_fuse_value) values;
  tt_fuse_numbers numbers[TT_DTYPE_COUNT];
  bool checked;     // some node checks indexes
  int check_value;  // then: the accumulator now, an operand
  int64_t value_bytes;
};

// The trace is over; its memory is kept for the next one.
void tt_fuse_retire(tt_fuse* trace);
void tt_fuse_free_retired(void);
// Where an operand that is a number lies among those of its dtype.
static inline tt_dtype tt_fuse_number_dtype(int operand) {
  return (tt_dtype)((operand - TT_FUSE_NUMBER) >> TT_FUSE_INDEX_BITS);
}
static inline int tt_fuse_number_index(int operand) {
  return operand & ((1 << TT_FUSE_INDEX_BITS) - 1);
}

#endif  // TT_RUN_FUSE_TRACE_H
