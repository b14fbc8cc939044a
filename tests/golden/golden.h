// SPDX-License-Identifier: Apache-2.0
//
// Golden texts. GOLDEN(name) builds a program with `b`; what the builder prints for it must equal tests/golden/name.txt.
// `tt_golden --update` writes the files anew; review the diff. Other arguments select by substring of the name.
//
//     GOLDEN(hlo_exp) { return tt_unary(b, TT_EXP, golden_f32(b, 2, (int64_t[]){2, 3})); }
#ifndef TT_TESTS_GOLDEN_H
#define TT_TESTS_GOLDEN_H

#include "tt/hlo.h"

typedef struct golden {
  struct golden* next;
  const char* name;
  tt_val (*build)(tt_builder* b);  // the one output
} golden;

void golden_register(golden* entry);

// The next parameter, f32.
static inline tt_val golden_f32(tt_builder* b, int rank, const int64_t* dims) {
  tt_type type = tt_type_make(TT_F32, rank, dims);
  return tt_param(b, &type);
}

#define GOLDEN(name)                                                      \
  static tt_val build_##name(tt_builder* b);                              \
  __attribute__((constructor)) static void register_golden_##name(void) { \
    static golden entry = {NULL, #name, build_##name};                    \
    golden_register(&entry);                                              \
  }                                                                       \
  static tt_val build_##name(tt_builder* b)

#endif  // TT_TESTS_GOLDEN_H
