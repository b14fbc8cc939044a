// SPDX-License-Identifier: Apache-2.0
//
// Stride algebra: from (sizes, strides, offset) to a plan. view_emit.c turns plans into StableHLO.
#include "lazy/view.h"

#include <string.h>

static int64_t gcd(int64_t a, int64_t c) {
  while (c != 0) {
    int64_t r = a % c;
    a = c;
    c = r;
  }
  return a;
}

int64_t tt_view_base_elements(const tt_type* base, tt_dtype dtype) {
  if (base->dtype == dtype) {
    return tt_type_elements(base);
  }
  return tt_type_bytes(base) / (int64_t)tt_dtype_size(dtype);
}

bool tt_view_is_base(const tt_type* base, const tt_tensor* t) {
  if (t->offset != 0 || base->dtype != t->dtype || base->rank != t->rank) {
    return false;
  }
  int64_t stride = 1;
  for (int d = t->rank - 1; d >= 0; --d) {
    if (base->dims[d] != t->sizes[d] || (t->sizes[d] != 1 && t->strides[d] != stride)) {
      return false;
    }
    stride *= t->sizes[d];
  }
  return true;
}

// Dimensions that move, by falling stride (stable: equal strides keep their order).
static int find_walks(int rank, const int64_t* sizes, const int64_t* strides, int* walk) {
  int n = 0;
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] <= 1 || strides[d] == 0) {
      continue;
    }
    int at = n++;
    while (at > 0 && strides[walk[at - 1]] < strides[d]) {
      walk[at] = walk[at - 1];
      --at;
    }
    walk[at] = d;
  }
  return n;
}

// Places every walk on a factor; false if one does not fit.
static bool place_walks(tt_view_plan* p, const int64_t* sizes, const int64_t* strides, int64_t offset) {
  bool used[TT_MAX_RANK * 2] = {false};
  p->needs_offset = false;
  for (int w = 0; w < p->walks; ++w) {
    int64_t stride = strides[p->walk_dim[w]];
    int64_t extent = sizes[p->walk_dim[w]];
    int found = -1;
    for (int f = 0; f < p->factors && found < 0; ++f) {
      if (!used[f] && p->factor[f] > 1 && stride % p->unit[f] == 0 && stride / p->unit[f] < p->factor[f]) {
        found = f;
      }
    }
    if (found < 0) {
      return false;
    }
    int64_t step = stride / p->unit[found];
    int64_t digit = offset / p->unit[found] % p->factor[found];
    if (digit + (extent - 1) * step >= p->factor[found]) {
      return false;
    }
    used[found] = true;
    p->walk_factor[w] = found;
    p->walk_step[w] = step;
    // A walk that fits at one place only needs no start.
    p->needs_offset |= (extent - 1) * step + 1 != p->factor[found];
  }
  for (int f = 0; f < p->factors; ++f) {
    p->needs_offset |= !used[f] && p->factor[f] != 1;
  }
  return offset < p->padded;
}

static bool box_by_own_dims(const tt_type* base, const int64_t* sizes, const int64_t* strides, int64_t offset,
                            tt_view_plan* p) {
  p->factors = base->rank;
  int64_t unit = 1;
  for (int d = base->rank - 1; d >= 0; --d) {
    p->factor[d] = base->dims[d];
    p->unit[d] = unit;
    unit *= base->dims[d];
  }
  p->padded = unit;
  return place_walks(p, sizes, strides, offset);
}

static bool box_by_strides(int64_t elements, const int64_t* sizes, const int64_t* strides, int64_t offset,
                           tt_view_plan* p) {
  int n = 0;
  int64_t previous = 0;
  for (int w = 0; w < p->walks; ++w) {
    int64_t stride = strides[p->walk_dim[w]];
    int64_t unit = n == 0 ? stride : gcd(previous, stride);
    if (n > 0 && unit == previous) {
      return false;
    }
    p->unit[n++] = previous = unit;
  }
  if (n == 0 || previous != 1) {
    p->unit[n++] = 1;
  }
  p->factors = n;
  p->padded = (elements + p->unit[0] - 1) / p->unit[0] * p->unit[0];
  for (int f = 0; f < n; ++f) {
    p->factor[f] = f == 0 ? p->padded / p->unit[0] : p->unit[f - 1] / p->unit[f];
  }
  return place_walks(p, sizes, strides, offset);
}

void tt_view_analyse(const tt_type* base, tt_dtype dtype, int rank, const int64_t* sizes, const int64_t* strides,
                     int64_t offset, tt_view_plan* out_plan) {
  tt_view_plan* p = out_plan;
  memset(p, 0, sizeof *p);
  int64_t elements = tt_view_base_elements(base, dtype);
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] == 0) {
      p->kind = TT_VIEW_EMPTY;
      return;
    }
  }
  p->walks = find_walks(rank, sizes, strides, p->walk_dim);
  int64_t run = 1;
  bool contiguous = true;
  for (int w = p->walks - 1; w >= 0; --w) {
    contiguous &= strides[p->walk_dim[w]] == run;
    run *= sizes[p->walk_dim[w]];
  }
  if (contiguous && run == elements && offset == 0) {
    p->kind = TT_VIEW_WHOLE;
    return;
  }
  if (base->dtype == dtype && box_by_own_dims(base, sizes, strides, offset, p)) {
    p->kind = TT_VIEW_BOX;
    p->own_dims = true;
    return;
  }
  p->needs_offset = true;
  if (contiguous && offset + run <= elements) {
    p->kind = TT_VIEW_RUN;
    return;
  }
  if (box_by_strides(elements, sizes, strides, offset, p)) {
    p->kind = TT_VIEW_BOX;
    return;
  }
  p->needs_offset = true;
  p->kind = TT_VIEW_GATHER;
}

bool tt_view_dense_order(int rank, const int64_t* sizes, const int64_t* strides, int64_t* out_order) {
  int walk[TT_MAX_RANK];
  int walks = find_walks(rank, sizes, strides, walk);
  int64_t run = 1;
  for (int w = walks - 1; w >= 0; --w) {
    if (strides[walk[w]] != run) {
      return false;
    }
    run *= sizes[walk[w]];
  }
  // Size-1 dimensions stay where they are: their strides say nothing.
  int next = 0;
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] == 1) {
      out_order[d] = d;
    } else if (next < walks) {
      out_order[d] = walk[next++];
    } else {
      return false;
    }
  }
  return true;
}

bool tt_view_dense_type(tt_dtype dtype, int rank, const int64_t* sizes, const int64_t* strides, tt_type* out_type) {
  *out_type = tt_type_make(dtype, rank, sizes);
  if (tt_type_elements(out_type) == 0) {
    return true;
  }
  int64_t order[TT_MAX_RANK];
  if (!tt_view_dense_order(rank, sizes, strides, order)) {
    return false;
  }
  for (int d = 0; d < rank; ++d) {
    out_type->dims[d] = sizes[order[d]];
  }
  return true;
}
