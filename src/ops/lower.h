// SPDX-License-Identifier: Apache-2.0
//
// The inside of a lowering: one call being turned into StableHLO. src/run fills it and says, through hooks, how tensors are
// read and written and what becomes a run-time input; op entries see only op.h.
#ifndef TT_OPS_LOWER_H
#define TT_OPS_LOWER_H

#include "ops/op.h"

typedef struct tt_lower_hooks {
  // The tensor of slot `slot`, in `dtype` (TT_DTYPE_INVALID: its own).
  tt_val (*read)(tt_lower* L, int slot, const tt_tensor* t, tt_dtype dtype);
  void (*write)(tt_lower* L, int slot, const tt_tensor* t, tt_val value);
  // A number as a run-time input of `dtype`.
  tt_val (*number)(tt_lower* L, int arg, int elem, const tt_scalar* value, tt_dtype dtype);
  // Argument `arg` was baked in although its value is not in the key: it is from now on.
  void (*bake)(tt_lower* L, int arg);
  tt_val (*random_bits)(tt_lower* L, const tt_type* type);
  // Reports `index` (a 0-d i64: some offending index) against `size` if `bad` (0-d bool).
  void (*report_index)(tt_lower* L, tt_val bad, tt_val index, int64_t size);
} tt_lower_hooks;

enum { TT_MAX_ARGS = 64 };

struct tt_lower {
  tt_builder* b;
  const tt_call* call;
  const char* name;  // of the overload
  int first_slot[TT_MAX_ARGS];
  int num_outs;
  const tt_type* out_types;
  tt_val* outs;
  const tt_lower_hooks* hooks;
  void* ctx;
};

// Numbers the call's tensor slots: first_slot[i] for each argument. Returns how many there are.
int tt_call_number_slots(const tt_call* call, int first_slot[TT_MAX_ARGS]);
// A number as a constant of `dtype`.
tt_val tt_const_scalar(tt_builder* b, const tt_scalar* value, tt_dtype dtype);

#endif  // TT_OPS_LOWER_H
