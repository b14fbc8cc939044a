// SPDX-License-Identifier: Apache-2.0
//
// Families: calls that differ in sizes only. docs/shapes.md describes the method.
//
// A call's pattern is its key without sizes. Calls of one pattern whose sizes were seen to follow one or more numbers (the symbols)
// form a family, which has programs for all sizes up to bounds (hlo/bounded.h). A new size then needs no compilation, only a
// plan that names the program and the sizes.
//
// Thread rule: thread-safe, without the runtime lock.
#ifndef TT_RUN_FAMILY_H
#define TT_RUN_FAMILY_H

#include "hlo/bounded.h"
#include "run/call.h"

// What a family knows: each size of the call, and then of its outputs' sizes and strides, as an expression of the symbols.
typedef struct tt_law {
  int num_symbols;
  int place[TT_SYMBOLS];  // where a symbol's value stands among the sizes
  int inputs, count;      // sizes of the call; and with the outputs'
  tt_size* sizes;
} tt_law;

// A call's pattern and sizes, taken with the runtime lock held.
typedef struct tt_pattern {
  uint64_t* words[2];  // without, and with, integer arguments among the sizes
  size_t num_words[2];
  tt_sizes sizes[2];
  bool usable;
} tt_pattern;
void tt_pattern_take_locked(tt_bound* bound, tt_pattern* out_pattern);
void tt_pattern_free(tt_pattern* pattern);

// Serves the call by its family: *out_plan (NULL: none serves it). *out_pad: by output, which dimensions are known to vary, for a program of its
// own; NULL or malloc'ed.
TT_NODISCARD tt_status tt_family_plan(tt_bound* bound, tt_pattern* pattern, int num_metas, const tt_meta* metas,
                                      tt_plan** out_plan, bool* out_precise, uint32_t** out_pad);
// Which dimensions of a tensor sent from the host have been seen with several sizes.
uint32_t tt_upload_varies(const tt_type* type);
void tt_families_forget(void);

// sample.c: the family's program for symbols around `now`, from lowerings of the call at a few sizes. UNIMPLEMENTED if there is none.
typedef struct tt_family_program {
  tt_plan* plan;  // sources, results, text
  bool precise;
  tt_bounded bounded;
} tt_family_program;
TT_NODISCARD tt_status tt_family_program_make(const tt_bound* bound, const tt_law* law, bool ints_are_sizes,
                                              const tt_symbols* now, int num_metas, const tt_meta* metas,
                                              tt_family_program* out_program);

#endif  // TT_RUN_FAMILY_H
