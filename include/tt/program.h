// SPDX-License-Identifier: Apache-2.0
//
// Programs without PyTorch: StableHLO text (from a tt_builder, or anybody's) is compiled and run on host arrays.
//
//   tt_program_compile   for a device of this machine; tt_program_run copies inputs there, runs, and copies outputs back
//   tt_program_analyze   for a machine that is not here: memory and cost, by a plugin that can describe it (libtpu)
//
// Ownership: the creator has one reference. Thread rule: thread-safe.
#ifndef TT_PROGRAM_H
#define TT_PROGRAM_H

#include "tt/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_program tt_program;

// Dense and row-major, tt_type_bytes(&type) long.
typedef struct tt_array {
  tt_type type;
  void* bytes;
} tt_array;

TT_EXPORT TT_NODISCARD tt_status tt_program_compile(int device, const char* stablehlo, tt_program** out_program);
TT_EXPORT void tt_program_retain(tt_program* program);
TT_EXPORT void tt_program_release(tt_program* program);  // accepts NULL
TT_EXPORT int tt_program_output_count(const tt_program* program);
// Fills outputs[k].bytes; outputs[k].type says what the caller expects there, and a program that gives something else is
// INVALID_ARGUMENT (no output is written then). Inputs are read before the call returns. Waits for the result.
TT_EXPORT TT_NODISCARD tt_status tt_program_run(tt_program* program, int num_inputs, const tt_array* inputs,
                                                int num_outputs, const tt_array* outputs);

// What one device of the described machine needs. Bytes.
typedef struct tt_program_report {
  int device_count;  // of the machine
  int64_t code_bytes, argument_bytes, output_bytes, aliased_bytes, temporary_bytes, peak_bytes;
} tt_program_report;
typedef void (*tt_cost_fn)(const char* name, double value, void* ctx);
// Compiles for `topology` ("v5e:2x2", "tpu7x:2x2x1") with the plugin at path `plugin` (NULL: the runtime's own). `cost` (may
// be NULL) receives the compiler's figures: "flops", "bytes accessed", "optimal_seconds" and more.
TT_EXPORT TT_NODISCARD tt_status tt_program_analyze(const char* plugin, const char* topology, const char* stablehlo,
                                                    tt_program_report* out_report, tt_cost_fn cost, void* ctx);

#ifdef __cplusplus
}
#endif
#endif  // TT_PROGRAM_H
