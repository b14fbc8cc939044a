// SPDX-License-Identifier: Apache-2.0
//
// Checks that many emitters share.
#include "hlo/graph.h"

bool tt_check_dims(tt_builder* b, const char* who, int rank, const int64_t* dims) {
  if (rank < 0 || rank > TT_MAX_RANK) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected at most %d dimensions, got %d", who, TT_MAX_RANK, rank);
    return false;
  }
  int64_t elements = 1;
  for (int d = 0; d < rank; d++) {
    if (dims[d] < 0) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected sizes of 0 or more, got %s", who,
                      tt_show_ints(b, rank, dims));
      return false;
    }
    if (__builtin_mul_overflow(elements, dims[d] ? dims[d] : 1, &elements) || elements > INT64_MAX / 16) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected fewer than 2^59 elements, got sizes %s", who,
                      tt_show_ints(b, rank, dims));
      return false;
    }
  }
  return true;
}

bool tt_check_axes(tt_builder* b, const char* who, const char* what, int n, const int64_t* axes, int rank) {
  uint64_t seen = 0;
  if (n < 0 || n > rank) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected at most %d %s dimensions, got %d", who, rank, what, n);
    return false;
  }
  for (int i = 0; i < n; i++) {
    if (axes[i] < 0 || axes[i] >= rank) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected %s dimensions in [0, %d), got %s", who, what, rank,
                      tt_show_ints(b, n, axes));
      return false;
    }
    if ((seen >> axes[i]) & 1) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected distinct %s dimensions, got %s", who, what,
                      tt_show_ints(b, n, axes));
      return false;
    }
    seen |= UINT64_C(1) << axes[i];
  }
  return true;
}

bool tt_type_join(const tt_type* x, const tt_type* y, tt_dtype dtype, tt_type* out) {
  if (x->rank != y->rank) {
    return false;
  }
  for (int d = 0; d < x->rank; d++) {
    if (x->dims[d] != y->dims[d]) {
      return false;
    }
  }
  *out = *x;
  out->dtype = dtype;
  out->bounded = x->bounded | y->bounded;
  return true;
}
