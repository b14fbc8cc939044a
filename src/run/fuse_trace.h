// SPDX-License-Identifier: Apache-2.0
//
// The trace, as recording (fuse.c) and running (fuse_run.c) share it. Under the runtime lock while it records; once `running`, it belongs to
// the thread that holds the run lock, except for `owner` and storages, which stay under the runtime lock.
#ifndef TT_RUN_FUSE_TRACE_H
#define TT_RUN_FUSE_TRACE_H

#include "run/fuse.h"

typedef struct tt_fuse_param {
  tt_buffer* buffer;  // held from the record on; NULL for the check accumulator until the trace runs
  tt_type type;
  bool is_check;
  const tt_storage* from;  // whose value it was (identity only): the first choice for taking over its memory
} tt_fuse_param;

typedef struct tt_fuse_value {
  tt_storage* owner;  // the storage whose pending value it is, or NULL: then nobody sees it. Not held.
  const tt_type* type;
  tt_buffer* buffer;  // while running
  int last_use;       // node that reads it last, when run call by call
  const char* op;
} tt_fuse_value;

struct tt_fuse {
  tt_device* device;
  bool running;  // taken for running: calls that meet its values wait
  TT_VEC(tt_fuse_node) nodes;
  TT_VEC(int) operands;
  TT_VEC(tt_fuse_param) params;
  TT_VEC(tt_fuse_value) values;
  TT_VEC(uint64_t) key;
  tt_map* param_of;  // buffer -> parameter + 1
  bool checked;      // some node checks indexes
  int check_value;   // then: the accumulator now, an operand
  int64_t value_bytes;
};

void tt_fuse_destroy(tt_fuse* trace);

#endif  // TT_RUN_FUSE_TRACE_H
