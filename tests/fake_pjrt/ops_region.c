// SPDX-License-Identifier: Apache-2.0
//
// Operations with regions, calls, and those that address by computed positions: reduce, while, if, dot_general, gather, scatter.
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { MOST_REDUCED = 4 };

static fake_array* element(const fake_array* array, int64_t at) {
  tt_type scalar = {.dtype = array->type.dtype};
  fake_array* one = fake_array_new(&scalar);
  fake_store_raw(one, 0, array, at);
  return one;
}

// out[at] = region(out[at], in[from]) for n arrays together.
static void combine(fake_run* run, const fake_block* block, int n, fake_array** out, int64_t at, fake_array* const* in,
                    int64_t from) {
  fake_array* args[2 * MOST_REDUCED] = {NULL};
  fake_array* results[MOST_REDUCED] = {NULL};
  for (int k = 0; k < n; ++k) {
    args[k] = element(out[k], at);
    args[n + k] = element(in[k], from);
  }
  fake_call_block(run, block, args, results);
  for (int k = 0; k < n; ++k) {
    fake_store_raw(out[k], at, results[k], 0);
    fake_array_release(args[k]);
    fake_array_release(args[n + k]);
    fake_array_release(results[k]);
  }
}

static bool holds(const int64_t* list, int n, int64_t value) {
  for (int i = 0; i < n; ++i) {
    if (list[i] == value) {
      return true;
    }
  }
  return false;
}

static void eval_reduce(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  int64_t dims[TT_MAX_RANK];
  int64_t out_strides[TT_MAX_RANK];
  int64_t step[TT_MAX_RANK] = {0};
  int64_t position[TT_MAX_RANK] = {0};
  int n = op->num_results < MOST_REDUCED ? op->num_results : MOST_REDUCED;
  int reduced = fake_attr_ints(op, "dimensions", dims, TT_MAX_RANK);
  const tt_type* type = &in[0]->type;
  fake_strides(out[0]->type.rank, out[0]->type.dims, out_strides);
  int kept = 0;
  for (int d = 0; d < type->rank; ++d) {
    step[d] = holds(dims, reduced, d) ? 0 : out_strides[kept++];
  }
  for (int k = 0; k < n; ++k) {
    for (int64_t i = 0; i < out[k]->count; ++i) {
      fake_store_raw(out[k], i, in[n + k], 0);
    }
  }
  for (int64_t i = 0; i < in[0]->count; ++i) {
    int64_t to = 0;
    for (int d = 0; d < type->rank; ++d) {
      to += position[d] * step[d];
    }
    combine(run, &op->blocks[0], n, out, to, in, i);
    (void)fake_next(type->rank, type->dims, position);
  }
}

static void replace(fake_array** to, fake_array* value) {
  fake_array_release(*to);
  *to = value;
}

static void eval_while(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  fake_array** next = fake_alloc((size_t)op->num_results, sizeof *next);
  for (int k = 0; k < op->num_results; ++k) {
    replace(&out[k], fake_array_share(in[k]));
  }
  for (;;) {
    fake_array* more = NULL;
    fake_call_block(run, &op->blocks[0], out, &more);
    bool on = fake_load(more, 0).i != 0;
    fake_array_release(more);
    if (!on) {
      break;
    }
    fake_call_block(run, &op->blocks[1], out, next);
    for (int k = 0; k < op->num_results; ++k) {
      replace(&out[k], next[k]);
    }
  }
  free(next);
}

static void eval_if(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  for (int k = 0; k < op->num_results; ++k) {
    fake_array_release(out[k]);
  }
  fake_call_block(run, &op->blocks[fake_load(in[0], 0).i != 0 ? 0 : 1], NULL, out);
}

static void eval_call(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  for (int k = 0; k < op->num_results; ++k) {
    fake_array_release(out[k]);
  }
  fake_call_function(run, op->callee, in, out);
}

// ---- products -------------------------------------------------------------------------------------------------------------

static void eval_dot(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  static const char* const names[4] = {"lhs_batching_dimensions", "rhs_batching_dimensions",
                                       "lhs_contracting_dimensions", "rhs_contracting_dimensions"};
  int64_t lists[4][TT_MAX_RANK];
  int counts[4];
  for (int k = 0; k < 4; ++k) {
    counts[k] = fake_attr_ints(op, names[k], lists[k], TT_MAX_RANK);
  }
  // Result dims: batch, lhs free, rhs free; then the contracted ones. By each: how far it moves in lhs and rhs.
  int64_t strides[2][TT_MAX_RANK];
  int64_t steps[2][2 * TT_MAX_RANK];
  int64_t dims[2 * TT_MAX_RANK];
  int rank = counts[0];
  memset(steps, 0, sizeof steps);
  for (int side = 0; side < 2; ++side) {
    fake_strides(in[side]->type.rank, in[side]->type.dims, strides[side]);
    for (int k = 0; k < counts[0]; ++k) {
      steps[side][k] = strides[side][lists[side][k]];
      dims[k] = in[side]->type.dims[lists[side][k]];
    }
    for (int d = 0; d < in[side]->type.rank; ++d) {
      if (!holds(lists[side], counts[side], d) && !holds(lists[2 + side], counts[2 + side], d)) {
        steps[side][rank] = strides[side][d];
        dims[rank++] = in[side]->type.dims[d];
      }
    }
  }
  int64_t inner[TT_MAX_RANK];
  for (int k = 0; k < counts[2]; ++k) {
    inner[k] = in[0]->type.dims[lists[2][k]];
  }
  int64_t position[2 * TT_MAX_RANK] = {0};
  for (int64_t i = 0; i < out[0]->count; ++i) {
    int64_t at[TT_MAX_RANK] = {0};
    fake_num sum = {0, 0, 0};
    bool some = in[0]->count > 0 && in[1]->count > 0;
    while (some) {
      int64_t from[2] = {0, 0};
      for (int side = 0; side < 2; ++side) {
        for (int d = 0; d < rank; ++d) {
          from[side] += position[d] * steps[side][d];
        }
        for (int k = 0; k < counts[2]; ++k) {
          from[side] += at[k] * strides[side][lists[2 + side][k]];
        }
      }
      fake_num x = fake_load(in[0], from[0]);
      fake_num y = fake_load(in[1], from[1]);
      sum.i = (int64_t)((uint64_t)sum.i + (uint64_t)x.i * (uint64_t)y.i);
      sum.re += x.re * y.re - x.im * y.im;
      sum.im += x.re * y.im + x.im * y.re;
      some = fake_next(counts[2], inner, at);
    }
    fake_store(out[0], i, sum);
    (void)fake_next(rank, dims, position);
  }
}

// ---- gather and scatter ---------------------------------------------------------------------------------------------------

typedef struct address_map {
  int64_t window[TT_MAX_RANK], removed[TT_MAX_RANK], batch[TT_MAX_RANK], index_batch[TT_MAX_RANK],
      start_map[TT_MAX_RANK];
  int num_window, num_removed, num_batch, num_start;
  int64_t vector_dim;
} address_map;

static address_map read_map(const fake_op* op, bool scatter) {
  address_map m;
  m.num_window = fake_attr_ints(op, scatter ? "update_window_dims" : "offset_dims", m.window, TT_MAX_RANK);
  m.num_removed = fake_attr_ints(op, scatter ? "inserted_window_dims" : "collapsed_slice_dims", m.removed, TT_MAX_RANK);
  m.num_batch = fake_attr_ints(op, scatter ? "input_batching_dims" : "operand_batching_dims", m.batch, TT_MAX_RANK);
  (void)fake_attr_ints(op, scatter ? "scatter_indices_batching_dims" : "start_indices_batching_dims", m.index_batch,
                       TT_MAX_RANK);
  m.num_start =
      fake_attr_ints(op, scatter ? "scatter_dims_to_operand_dims" : "start_index_map", m.start_map, TT_MAX_RANK);
  m.vector_dim = fake_attr_int(op, "index_vector_dim", 0);
  return m;
}

// The operand position that `position` of the result (or updates) addresses, before clamping: start[] and window[] apart.
static void address(const address_map* m, const fake_array* operand, const fake_array* indices, int rank,
                    const int64_t* position, int64_t* start, int64_t* inside) {
  int64_t at[TT_MAX_RANK] = {0};
  int64_t strides[TT_MAX_RANK];
  int d_index = 0;
  int d_window = 0;
  int64_t inner[TT_MAX_RANK];
  for (int d = 0; d < rank; ++d) {
    if (holds(m->window, m->num_window, d)) {
      inner[d_window++] = position[d];
    } else {
      d_index += d_index == m->vector_dim;
      at[d_index++] = position[d];
    }
  }
  fake_strides(indices->type.rank, indices->type.dims, strides);
  int64_t base = 0;
  for (int d = 0; d < indices->type.rank; ++d) {
    base += at[d] * strides[d];
  }
  int64_t along = m->vector_dim < indices->type.rank ? strides[m->vector_dim] : 0;
  int next = 0;
  for (int d = 0; d < operand->type.rank; ++d) {
    start[d] = 0;
    inside[d] = holds(m->removed, m->num_removed, d) || holds(m->batch, m->num_batch, d) ? 0 : inner[next++];
  }
  for (int k = 0; k < m->num_start; ++k) {
    start[m->start_map[k]] = fake_load(indices, base + k * along).i;
  }
  for (int k = 0; k < m->num_batch; ++k) {
    start[m->batch[k]] = at[m->index_batch[k]];
  }
}

static void eval_gather(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  address_map m = read_map(op, false);
  int64_t sizes[TT_MAX_RANK];
  int64_t strides[TT_MAX_RANK];
  int64_t position[TT_MAX_RANK] = {0};
  const tt_type* type = &in[0]->type;
  (void)fake_attr_ints(op, "slice_sizes", sizes, TT_MAX_RANK);
  fake_strides(type->rank, type->dims, strides);
  for (int64_t i = 0; i < out[0]->count; ++i) {
    int64_t start[TT_MAX_RANK];
    int64_t inside[TT_MAX_RANK];
    int64_t from = 0;
    address(&m, in[0], in[1], out[0]->type.rank, position, start, inside);
    for (int d = 0; d < type->rank; ++d) {
      int64_t most = type->dims[d] - sizes[d];
      start[d] = start[d] < 0 ? 0 : start[d] > most ? most : start[d];
      from += (start[d] + inside[d]) * strides[d];
    }
    fake_store_raw(out[0], i, in[0], from);
    (void)fake_next(out[0]->type.rank, out[0]->type.dims, position);
  }
}

static void eval_scatter(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  address_map m = read_map(op, true);
  int64_t strides[TT_MAX_RANK];
  int64_t position[TT_MAX_RANK] = {0};
  const tt_type* type = &in[0]->type;
  fake_strides(type->rank, type->dims, strides);
  memcpy(out[0]->bytes, in[0]->bytes, fake_array_bytes(type));
  for (int64_t i = 0; i < in[2]->count; ++i) {
    int64_t start[TT_MAX_RANK];
    int64_t inside[TT_MAX_RANK];
    int64_t to = 0;
    bool fits = true;
    address(&m, in[0], in[1], in[2]->type.rank, position, start, inside);
    for (int d = 0; d < type->rank; ++d) {
      int64_t at = start[d] + inside[d];
      fits = fits && at >= 0 && at < type->dims[d];
      to += at * strides[d];
    }
    if (fits) {
      combine(run, &op->blocks[0], 1, out, to, &in[2], i);
    }
    (void)fake_next(in[2]->type.rank, in[2]->type.dims, position);
  }
}

const fake_rule fake_region_rules[] = {
    {"stablehlo.reduce",      eval_reduce },
    {"stablehlo.while",       eval_while  },
    {"stablehlo.if",          eval_if     },
    {"stablehlo.composite",   eval_call   },
    {"func.call",             eval_call   },
    {"stablehlo.dot_general", eval_dot    },
    {"stablehlo.gather",      eval_gather },
    {"stablehlo.scatter",     eval_scatter},
    {NULL,                    NULL        },
};
