// SPDX-License-Identifier: Apache-2.0
//
// Reading by index: x[i, j], index_select, gather, take. src/ops/index_put.c writes.
#include "ops/index.h"

#include <stdio.h>
#include <string.h>

void tt_dims_text(int rank, const int64_t* dims, size_t size, char* text) {
  size_t used = (size_t)snprintf(text, size, "[");
  for (int d = 0; d < rank && used < size; ++d) {
    used += (size_t)snprintf(text + used, size - used, "%s%lld", d > 0 ? ", " : "", (long long)dims[d]);
  }
  if (used < size) {
    snprintf(text + used, size - used, "]");
  }
}

// The index tensors of `arg` have no common shape.
static void no_common_shape(tt_lower* L, int arg) {
  char text[512] = "";
  size_t used = 0;
  for (int d = 0; d < tt_arg_count(L, arg) && used + 1 < sizeof text; ++d) {
    const tt_tensor* t = tt_arg_info_at(L, arg, d);
    if (t != NULL) {
      used += (size_t)snprintf(text + used, sizeof text - used, "%s", used > 0 ? ", " : "");
      tt_dims_text(t->rank, t->sizes, sizeof text - used, text + used);
      used += strlen(text + used);
    }
  }
  tt_builder_fail(tt_lower_builder(L), TT_OUT_OF_RANGE,
                  "shape mismatch: indexing tensors could not be broadcast together with shapes %s", text);
}

tt_multi_index tt_multi_index_of(tt_lower* L, int arg, const tt_type* self, tt_index_use use) {
  tt_builder* b = tt_lower_builder(L);
  tt_multi_index m = {.indexed = 0};
  tt_val parts[TT_MAX_RANK];
  bool adjacent = true;
  for (int d = 0; d < tt_arg_count(L, arg) && d < self->rank; ++d) {
    const tt_tensor* t = tt_arg_info_at(L, arg, d);
    if (t == NULL) {
      continue;
    }
    if (t->dtype == TT_BOOL || t->dtype == TT_U8) {
      tt_unsupported(L, "a mask whose count of true elements is not known here");
      return m;
    }
    adjacent &= m.indexed == 0 || m.dims[m.indexed - 1] == d - 1;
    tt_val at = tt_arg_at(L, arg, d);
    if (use == TT_INDEX_READ) {
      parts[m.indexed] = tt_check_index(L, at, self->dims[d], true);
    } else if (use == TT_INDEX_WRITE) {
      parts[m.indexed] = tt_check_place(L, at, self->dims[d], true);
    } else {
      parts[m.indexed] = tt_convert(b, at, TT_I64);
      tt_val wrapped = tt_add(b, parts[m.indexed], tt_const_i(b, TT_I64, self->dims[d]));
      parts[m.indexed] = tt_where(b, tt_test_f(b, TT_LT, parts[m.indexed], 0), wrapped, parts[m.indexed]);
    }
    m.dims[m.indexed++] = d;
  }
  m.first = m.indexed == 0 || !adjacent ? 0 : (int)m.dims[0];
  // All index tensors broadcast to one shape.
  for (int k = 0; k < m.indexed; ++k) {
    tt_type t = *tt_type_of(b, parts[k]);
    int wider = t.rank > m.rank ? t.rank : m.rank;
    int64_t joined[TT_MAX_RANK];
    for (int d = 1; d <= wider; ++d) {
      int64_t mine = d <= m.rank ? m.sizes[m.rank - d] : 1;
      int64_t other = d <= t.rank ? t.dims[t.rank - d] : 1;
      if (mine != other && mine != 1 && other != 1) {
        no_common_shape(L, arg);
        return m;
      }
      joined[wider - d] = mine == 1 ? other : mine;
    }
    memcpy(m.sizes, joined, sizeof *joined * (size_t)wider);
    m.rank = wider;
  }
  int64_t largest = 1;
  for (int k = 0; k < m.indexed; ++k) {
    largest = self->dims[m.dims[k]] > largest ? self->dims[m.dims[k]] : largest;
  }
  for (int k = 0; k < m.indexed; ++k) {
    tt_val wide = tt_expand(b, tt_narrow_index(b, parts[k], largest), m.rank, m.sizes);
    parts[k] = tt_unsqueeze(b, wide, m.rank);
  }
  m.vectors = m.indexed == 0 ? TT_POISON : tt_concat(b, m.indexed, parts, m.rank);
  // The result: the dimensions not indexed in order, the index's own at `first`.
  m.gather = (tt_gather_dims){.num_collapsed = m.indexed, .num_start_map = m.indexed, .index_vector_dim = m.rank};
  memcpy(m.gather.collapsed, m.dims, sizeof m.dims);
  memcpy(m.gather.start_map, m.dims, sizeof m.dims);
  int next = 0;
  for (int d = 0, k = 0; d <= self->rank; ++d) {
    if (m.out_rank == m.first && next == 0) {
      next = 1;
      for (int i = 0; i < m.rank; ++i) {
        m.out_sizes[m.out_rank++] = m.sizes[i];
      }
    }
    if (d == self->rank) {
      break;
    }
    if (k < m.indexed && m.dims[k] == d) {
      k += 1;
      continue;
    }
    m.gather.offset[m.gather.num_offset++] = m.out_rank;
    m.out_sizes[m.out_rank++] = self->dims[d];
  }
  return m;
}

static tt_val read_index(tt_lower* L, tt_builder* b, int arg, bool check) {
  tt_val x = tt_arg(L, 0);
  tt_type type = *tt_type_of(b, x);
  tt_multi_index m = tt_multi_index_of(L, arg, &type, check ? TT_INDEX_READ : TT_INDEX_UNCHECKED);
  if (m.indexed == 0) {
    return x;
  }
  int64_t count = 1;
  for (int d = 0; d < m.rank; ++d) {
    count *= m.sizes[d];
  }
  if (tt_type_elements(&type) == 0 || count == 0) {
    return tt_zeros(b, type.dtype, m.out_rank, m.out_sizes);
  }
  int64_t slice[TT_MAX_RANK];
  memcpy(slice, type.dims, sizeof slice);
  for (int k = 0; k < m.indexed; ++k) {
    slice[m.dims[k]] = 1;
  }
  return tt_gather(b, x, m.vectors, &m.gather, slice);
}

TT_OP(index, "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor") {
  tt_out(L, 0, read_index(L, b, 1, true));
}
TT_OP(unsafe_index, "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor") {
  tt_out(L, 0, read_index(L, b, 1, false));
}

TT_OP(index_select, "index_select(Tensor self, int dim, Tensor index) -> Tensor") {
  tt_val x = tt_at_least_1d(b, tt_arg(L, 0));
  tt_val index = tt_at_least_1d(b, tt_arg(L, 2));
  int dim = tt_wrap_dim(tt_arg_int(L, 1), tt_rank_of(b, x));
  tt_val rows = tt_take_rows(b, x, tt_safe_index(L, index, tt_dim_of(b, x, dim), false), dim);
  const tt_type* out = tt_out_type(L, 0);
  tt_out(L, 0, tt_reshape(b, rows, out->rank, out->dims));
}

TT_OP(gather, "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor") {
  tt_val x = tt_at_least_1d(b, tt_arg(L, 0));
  tt_val index = tt_at_least_1d(b, tt_arg(L, 2));
  int dim = tt_wrap_dim(tt_arg_int(L, 1), tt_rank_of(b, x));
  const tt_type* out = tt_out_type(L, 0);
  if (tt_type_elements(out) == 0) {
    tt_out(L, 0, tt_zeros(b, out->dtype, out->rank, out->dims));
    return;
  }
  tt_val taken = tt_gather_along(b, x, tt_safe_index(L, index, tt_dim_of(b, x, dim), false), dim);
  tt_out(L, 0, tt_reshape(b, taken, out->rank, out->dims));
}

TT_OP(take, "take(Tensor self, Tensor index) -> Tensor") {
  tt_val flat = tt_flatten(b, tt_arg(L, 0));
  tt_val at = tt_safe_index(L, tt_arg(L, 1), tt_dim_of(b, flat, 0), true);
  tt_out(L, 0, tt_take_rows(b, flat, at, 0));
}
