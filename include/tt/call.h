// SPDX-License-Identifier: Apache-2.0
//
// Calls: one ATen call as plain data, its plan, and the three ways to serve it.
//
//   tt_call_run        a call whose plan is known: key, lookup, launch. *out_hit is false when it is not known.
//   tt_call_lower      makes the plan from the op's own entry, once PyTorch has said what the outputs look like.
//   tt_capture_*       runs PyTorch code (a decomposition, a composite kernel, a compiled graph) on tensors that hold no data;
//                      the calls it makes are lowered into one program, which becomes the plan.
//
// After a plan was made the caller calls tt_call_run again.
// Thread rule: thread-safe. A capture belongs to the thread that began it.
#ifndef TT_CALL_H
#define TT_CALL_H

#include "tt/storage.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_op tt_op;              // one entry of the op table (src/ops/op.h)
typedef struct tt_overload tt_overload;  // one registered overload
typedef struct tt_plan tt_plan;

typedef enum tt_arg_kind {
  TT_ARG_NONE,     // None
  TT_ARG_TENSOR,   // tensors[0]
  TT_ARG_TENSORS,  // tensors[0..count); absent ones have an invalid dtype
  TT_ARG_INT,      // number.i  (int, SymInt)
  TT_ARG_FLOAT,    // number.re
  TT_ARG_BOOL,     // number.i
  TT_ARG_COMPLEX,  // number.re, number.im
  TT_ARG_DTYPE,    // number.i is a tt_dtype
  TT_ARG_INTS,     // ints[0..count)
  TT_ARG_FLOATS,   // floats[0..count)
  TT_ARG_BOOLS,    // ints[0..count)
  TT_ARG_NUMBERS,  // numbers[0..count)  (Scalar[])
  TT_ARG_STRING,   // text
  TT_ARG_OPAQUE,   // layout, device, memory format, generator: number.i tells them apart in the key
} tt_arg_kind;

typedef struct tt_argument {
  uint8_t kind;
  bool runtime;  // Scalar or float that is not at the schema's default: its value may be a run-time input
  int32_t count;
  tt_scalar number;
  union {
    const tt_tensor* tensors;
    const int64_t* ints;
    const double* floats;
    const tt_scalar* numbers;
    const char* text;
  };
} tt_argument;

typedef struct tt_call {
  tt_overload* overload;
  int num_args;
  tt_argument* args;
  tt_generator* generator;  // NULL: the device's default
  int device;
  tt_dtype default_float;  // torch.get_default_dtype(), what integers become where floats are needed; invalid: F32
  // What the caller wants to find again at each run of the plan that is made for this call (results that are no tensors). The plan takes it
  // over and frees it with `free_extra`; if no plan is made it stays the caller's.
  void* extra;
  void (*free_extra)(void* extra);
} tt_call;

// What PyTorch says an output looks like.
typedef struct tt_meta {
  tt_dtype dtype;  // invalid: an absent output (None)
  int32_t rank;
  int64_t sizes[TT_MAX_RANK], strides[TT_MAX_RANK];
} tt_meta;

// ---- the table --------------------------------------------------------------------------------------------------------------
typedef enum tt_route { TT_ROUTE_LOWERING, TT_ROUTE_COMPOSITE, TT_ROUTE_DECOMPOSITION, TT_ROUTE_FALLBACK } tt_route;
TT_EXPORT int tt_op_count(void);
TT_EXPORT const tt_op* tt_op_at(int index);           // sorted by schema
TT_EXPORT const char* tt_op_schema(const tt_op* op);  // "add.Tensor(Tensor self, ...) -> Tensor"
TT_EXPORT tt_route tt_op_route(const tt_op* op);
TT_EXPORT const char* tt_op_note(const tt_op* op);  // reason, for composites and fallbacks; "" else
TT_EXPORT const char* tt_op_file(const tt_op* op);  // the topic, "pointwise"

// An overload as registered with PyTorch. out_alias[k] is the argument that output k is (in-place, out=), or -1. Bit i of
// `mutates`: argument i is written to. `op` may be NULL (route DECOMPOSITION). Strings are copied. Lives as long as the process.
TT_EXPORT tt_overload* tt_overload_create(const char* name, const tt_op* op, int num_args, uint64_t mutates,
                                          int num_outputs, const int* out_alias);
// Compiler options for its programs, "key=value key=value", beside the runtime's own; before its first call. In fused mode such an overload's
// calls are programs of their own.
TT_EXPORT void tt_overload_set_xla_options(tt_overload* overload, const char* xla_options);
TT_EXPORT const char* tt_overload_name(const tt_overload* overload);
TT_EXPORT const tt_op* tt_overload_op(const tt_overload* overload);
// Its programs carry the f32 precision (known once one was made): set it before such a call.
TT_EXPORT bool tt_overload_uses_precision(const tt_overload* overload);

// ---- running ----------------------------------------------------------------------------------------------------------------
// Outputs of a launch, in schema order, lists flattened. New tensors come with a storage (+1, the caller's) and a meta that
// lives until tt_outputs_deinit (it is the plan's, held until then); outputs that are arguments have storage NULL.
typedef struct tt_output {
  tt_storage* storage;
  const tt_meta* meta;
} tt_output;
typedef struct tt_outputs {
  int count;
  tt_output* items;  // owned by the caller's tt_outputs; free with tt_outputs_deinit
  tt_output inline_items[8];
  tt_plan* plan;  // NULL in a capture
} tt_outputs;
TT_EXPORT void tt_outputs_deinit(tt_outputs* outputs);  // frees the array and lets go of the plan, not of the storages

TT_EXPORT void* tt_outputs_extra(const tt_outputs* outputs);  // the plan's, borrowed; NULL if none

TT_EXPORT TT_NODISCARD tt_status tt_call_run(tt_call* call, tt_outputs* out_outputs, bool* out_hit);
// metas: num_metas outputs in schema order, lists flattened (for outputs that are arguments: that argument's meta).
TT_EXPORT TT_NODISCARD tt_status tt_call_lower(tt_call* call, int num_metas, const tt_meta* metas);

// ---- capture ----------------------------------------------------------------------------------------------------------------
typedef struct tt_capture tt_capture;
// Begins a capture for `call`'s plan and makes it this thread's current one; captures nest.
TT_EXPORT TT_NODISCARD tt_status tt_capture_begin(tt_call* call, tt_capture** out_capture);
// The stand-in of tensor `slot` (tensor arguments counted in order, list elements each one): a storage (+1) and the meta to
// wrap it with. Host scalars have no stand-in: use them as they are (they are then constants of the plan).
TT_EXPORT TT_NODISCARD tt_status tt_capture_input(tt_capture* capture, int slot, tt_storage** out_storage,
                                                  tt_meta* out_meta);
TT_EXPORT tt_capture* tt_capture_current(void);
// Lowers a call made under the current capture. Its new outputs' storages hold captured values.
TT_EXPORT TT_NODISCARD tt_status tt_capture_call(tt_call* call, int num_metas, const tt_meta* metas,
                                                 tt_outputs* out_outputs);
// Ends it: `tensors` are what the code returned, in schema order. Compiles and installs the plan of the outer call. Destroys the capture.
TT_EXPORT TT_NODISCARD tt_status tt_capture_end(tt_capture* capture, int num_outputs, const tt_tensor* tensors);
TT_EXPORT void tt_capture_abandon(tt_capture* capture);

#ifdef __cplusplus
}
#endif
#endif  // TT_CALL_H
