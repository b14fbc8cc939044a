// SPDX-License-Identifier: Apache-2.0
//
// Fused eager mode: calls are recorded and run later, many as one program.
//
// A call's plan is known as in strict mode (shapes, errors, the program's text), but instead of being launched it becomes a node of the
// device's trace: its plan, where its inputs come from (a buffer, an earlier node's result, a number), and the values it makes.
// Storages written by a node are pending: they have a type and the number of their value, but no buffer. At a cut (host read, synchronize, end of an
// optimizer's step, size limit, change of mode) the trace becomes one program: its plans' functions, and a main function that calls them in
// order (XLA inlines). Its outputs are the values that a storage still holds. Numbers, offsets and random states are inputs, so a loop's traces are
// alike.
//
// The first time a trace is seen it runs call by call while a worker compiles it; later ones run the compiled program once it is ready.
#ifndef TT_RUN_FUSE_H
#define TT_RUN_FUSE_H

#include "run/call.h"

typedef struct tt_fuse tt_fuse;

// With the lock held: records the call and makes its outputs. *out_full: the caller should flush after unlocking.
TT_NODISCARD tt_status tt_fuse_record_locked(tt_plan* plan, tt_bound* bound, const char* where, tt_outputs* out_outputs,
                                             bool* out_full);
// With the lock held: what stands in the way of using the call's tensors. RUNNING: another thread runs the trace that makes one, wait for
// it (without the lock) and key the call again. PENDING: one is recorded only; a launch has to flush first.
typedef enum tt_fuse_state { TT_FUSE_CLEAR, TT_FUSE_PENDING, TT_FUSE_RUNNING } tt_fuse_state;
tt_fuse_state tt_fuse_state_locked(const tt_bound* bound);
bool tt_fuse_is_running_locked(const tt_storage* storage);  // the storage's value is being made
void tt_fuse_wait(void);
// Without the lock: runs what is recorded on the device. Failures show when results are read; only failing to compile is reported here.
// `why` is what an explanation says of the cut.
TT_NODISCARD tt_status tt_fuse_flush(tt_device* device, const char* why);
// With the lock held: `storage` gets another value or goes away.
void tt_fuse_disown_locked(tt_storage* storage);

// An operand is the number of a value, ~ the number of a parameter, or a run-time number: TT_FUSE_NUMBER + its dtype and index.
enum { TT_FUSE_NUMBER = 1 << 30, TT_FUSE_INDEX_BITS = 24 };

// fuse_text.c: the module of a trace. `nodes` name their plan and, in order, the operands of its function as main's values.
typedef struct tt_fuse_node {
  tt_plan* plan;
  int first_operand;  // in the trace's list of operands
  int first_value;    // number of the value its first result makes
} tt_fuse_node;
typedef struct tt_fuse_text {
  int num_nodes;
  const tt_fuse_node* nodes;
  const int* operands;
  int num_params;
  const tt_type* const* param_types;
  const int* num_numbers;  // by dtype: one parameter more for each that has some
  const int* param_alias;  // output whose memory it may become, or -1
  int num_outputs;
  const int* outputs;  // values
  const tt_type* output_types;
} tt_fuse_text;
char* tt_fuse_print(const tt_fuse_text* trace);  // malloc'ed

#endif  // TT_RUN_FUSE_H
