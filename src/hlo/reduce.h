// SPDX-License-Identifier: Apache-2.0
//
// What reductions over dimensions and over windows share.
#ifndef TT_HLO_REDUCE_H
#define TT_HLO_REDUCE_H

#include "hlo/graph.h"

enum { TT_MAX_REDUCED = 16 };  // operands of one reduction or sort

tt_prim tt_reduce_prim(tt_reduce_kind kind);
const char* tt_reduce_name(tt_reduce_kind kind);
// A tt_body; ctx points to the tt_reduce_kind.
void tt_reduce_body(tt_builder* b, const tt_val* args, tt_val* results, void* ctx);
// n operands of equal sizes, each with a 0-d initial value of its dtype.
bool tt_check_reduced(tt_builder* b, const char* who, int n, const tt_val* xs, const tt_val* inits);
// The region: n accumulators and n elements in, n out. NULL if the builder has failed.
tt_region* tt_reducer(tt_builder* b, const char* who, int n, const tt_val* xs, tt_body body, void* ctx);

#endif  // TT_HLO_REDUCE_H
