// SPDX-License-Identifier: Apache-2.0
//
// From programs of one call at a few sizes to one program for all sizes up to a bound.
//
// The instances are compared node by node. A size that differs between them becomes an expression of the symbols (the
// run-time sizes); its dimension is held at a bound, with the size as an input and masks where padding would be seen.
// What has no such form is refused, with a reason. docs/shapes.md describes the method.
#ifndef TT_HLO_BOUNDED_H
#define TT_HLO_BOUNDED_H

#include "tt/hlo.h"

enum { TT_SYMBOLS = 4, TT_SAMPLES = 5 };

// base + each . n + scale * product of n[s]^power[s]
typedef struct tt_size {
  int64_t base, scale, each[TT_SYMBOLS];
  int8_t power[TT_SYMBOLS];
} tt_size;

// Values of the symbols.
typedef struct tt_symbols {
  int64_t n[TT_SYMBOLS];
} tt_symbols;

bool tt_size_varies(const tt_size* size);
int64_t tt_size_at(const tt_size* size, const tt_symbols* at);
bool tt_size_equal(const tt_size* x, const tt_size* y);
// The simplest expression through all `samples` values; false if there is none.
bool tt_size_fit(int num_symbols, int samples, const tt_symbols* at, const int64_t* values, tt_size* out);
// How far a dimension of `size` elements is held: a power of two or three quarters of one, at least 16.
int64_t tt_size_bound(int64_t size);

// A program at one sample. The first builder becomes the result's.
typedef struct tt_instance {
  tt_builder* b;
  tt_val* roots;
} tt_instance;

// A size and the bound that the program holds it at: the program serves the symbols for which all of these agree.
typedef struct tt_held {
  tt_size size;
  int64_t bound;
} tt_held;

typedef struct tt_bounded {
  tt_builder* b;  // parameters: the instances', then one i64 a symbol
  tt_val* roots;  // values of the types held
  int num_held;
  tt_held* held;
  // By root: the dimensions of its value, row-major in the same order as the instance's.
  struct tt_bounded_root {
    int rank;
    tt_size dims[TT_MAX_RANK];
  }* root;
} tt_bounded;

// `now`: the symbols that decide between bounds. Refused: UNIMPLEMENTED, *out is empty.
TT_NODISCARD tt_status tt_bound_program(int num_symbols, int samples, const tt_symbols* at, const tt_symbols* now,
                                        int num_roots, const tt_instance* instances, tt_bounded* out);
void tt_bounded_deinit(tt_bounded* bounded);  // not its builder

#endif  // TT_HLO_BOUNDED_H
