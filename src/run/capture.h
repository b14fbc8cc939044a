// SPDX-License-Identifier: Apache-2.0
//
// What call.c and capture.c share.
#ifndef TT_RUN_CAPTURE_H
#define TT_RUN_CAPTURE_H

#include "run/call.h"

// Installs the plan under the call's key as it is now, with `baked` arguments and, if `precise`, the f32 precision part of it. Takes the
// plan's reference.
void tt_call_adopt_plan(tt_call* call, uint64_t baked, bool precise, tt_plan* plan);
// Calls `write` for each output that is an argument (element `elem` of a list argument); its outs entry becomes TT_POISON.
void tt_call_each_aliased(const tt_call* call, int num_metas, tt_val* outs,
                          void (*write)(void* ctx, int arg, int elem, const tt_tensor* t, tt_val value), void* ctx);
// Host data written to a tensor while capturing: it becomes a constant.
TT_NODISCARD tt_status tt_capture_store(tt_capture* capture, const tt_tensor* dst, const void* bytes);

#endif  // TT_RUN_CAPTURE_H
