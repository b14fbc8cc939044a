// SPDX-License-Identifier: Apache-2.0
//
// Joining, repeating and turning: cat, stack, repeat, roll, flip, diagonals, blocks.
#include "base/mem.h"
#include "ops/op.h"

// ---- joining --------------------------------------------------------------------------------------------------------------

TT_OP(cat, "cat(Tensor[] tensors, int dim=0) -> Tensor") {
  const tt_type* out = tt_out_type(L, 0);
  int n = tt_arg_count(L, 0);
  int dim = tt_wrap_dim(tt_arg_int(L, 1), out->rank);
  if (tt_type_elements(out) == 0) {
    tt_out(L, 0, tt_zeros(b, out->dtype, out->rank, out->dims));
    return;
  }
  tt_val* parts = tt_malloc((size_t)n * sizeof *parts);
  int kept = 0;
  for (int j = 0; j < n; ++j) {
    const tt_tensor* t = tt_arg_info_at(L, 0, j);
    // A 1-d tensor without elements joins anything.
    if (t->rank != out->rank || t->sizes[dim] == 0) {
      continue;
    }
    parts[kept++] = tt_convert(b, tt_arg_at(L, 0, j), out->dtype);
  }
  tt_out(L, 0, kept == 1 ? parts[0] : tt_concat(b, kept, parts, dim));
  free(parts);
}

TT_OP(stack, "stack(Tensor[] tensors, int dim=0) -> Tensor") {
  const tt_type* out = tt_out_type(L, 0);
  int n = tt_arg_count(L, 0);
  int dim = tt_wrap_dim(tt_arg_int(L, 1), out->rank);
  tt_val* parts = tt_malloc((size_t)n * sizeof *parts);
  for (int j = 0; j < n; ++j) {
    parts[j] = tt_unsqueeze(b, tt_convert(b, tt_arg_at(L, 0, j), out->dtype), dim);
  }
  tt_out(L, 0, n == 1 ? parts[0] : tt_concat(b, n, parts, dim));
  free(parts);
}

TT_OP(block_diag, "block_diag(Tensor[] tensors) -> Tensor") {
  const tt_type* out = tt_out_type(L, 0);
  tt_val total = tt_zeros(b, out->dtype, 2, out->dims);
  int64_t row = 0;
  int64_t column = 0;
  for (int j = 0; j < tt_arg_count(L, 0); ++j) {
    tt_val block = tt_convert(b, tt_arg_at(L, 0, j), out->dtype);
    while (tt_rank_of(b, block) < 2) {
      block = tt_unsqueeze(b, block, 0);
    }
    int64_t rows = tt_dim_of(b, block, 0);
    int64_t columns = tt_dim_of(b, block, 1);
    tt_val starts[2] = {tt_const_i(b, TT_I64, row), tt_const_i(b, TT_I64, column)};
    if (rows > 0 && columns > 0) {
      total = tt_dynamic_update_slice(b, total, block, starts);
    }
    row += rows;
    column += columns;
  }
  tt_out(L, 0, total);
}

// ---- repeating and turning ----------------------------------------------------------------------------------------------------

TT_OP(repeat, "repeat(Tensor self, SymInt[] repeats) -> Tensor") {
  const tt_type* out = tt_out_type(L, 0);
  tt_type type = *tt_type_of(b, tt_arg(L, 0));
  if (tt_type_elements(out) == 0) {
    tt_out(L, 0, tt_zeros(b, out->dtype, out->rank, out->dims));
    return;
  }
  int lead = out->rank - type.rank;
  int rank = lead;
  int64_t dims[2 * TT_MAX_RANK];
  int64_t map[TT_MAX_RANK];
  for (int d = 0; d < lead; ++d) {
    dims[d] = out->dims[d];
  }
  // Each dimension d becomes [times, d]; those not repeated stay one.
  for (int d = 0; d < type.rank; ++d) {
    int64_t times = out->dims[lead + d] / type.dims[d];
    if (times > 1 && type.dims[d] > 1) {
      dims[rank++] = times;
    }
    map[d] = rank;
    dims[rank++] = type.dims[d] > 1 ? type.dims[d] : times;
  }
  if (rank > TT_MAX_RANK) {
    tt_unsupported(L, "more than %d dimensions", TT_MAX_RANK);
    return;
  }
  tt_val wide = tt_broadcast_in_dim(b, tt_arg(L, 0), rank, dims, map);
  tt_out(L, 0, tt_reshape(b, wide, out->rank, out->dims));
}

TT_OP(flip, "flip(Tensor self, int[] dims) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  int rank = tt_rank_of(b, x);
  int n;
  const int64_t* given = tt_arg_ints(L, 1, &n);
  int64_t dims[TT_MAX_RANK];
  for (int k = 0; k < n; ++k) {
    dims[k] = tt_wrap_dim(given[k], rank);
  }
  tt_out(L, 0, rank == 0 ? x : tt_reverse(b, x, n, dims));
}

static tt_val roll_dim(tt_builder* b, tt_val x, int64_t shift, int dim) {
  int64_t size = tt_dim_of(b, x, dim);
  if (size == 0) {
    return x;
  }
  int64_t start = ((size - shift) % size + size) % size;
  if (start == 0) {
    return x;
  }
  tt_val parts[2] = {tt_slice_dim(b, x, dim, start, size, 1), tt_slice_dim(b, x, dim, 0, start, 1)};
  return tt_concat(b, 2, parts, dim);
}

TT_OP(roll, "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  tt_type type = *tt_type_of(b, x);
  int num_shifts;
  int n;
  const int64_t* shifts = tt_arg_ints(L, 1, &num_shifts);
  const int64_t* dims = tt_arg_ints(L, 2, &n);
  if (n == 0) {
    x = tt_reshape(b, roll_dim(b, tt_flatten(b, x), shifts[0], 0), type.rank, type.dims);
  }
  for (int k = 0; k < n && type.rank > 0; ++k) {
    x = roll_dim(b, x, shifts[k], tt_wrap_dim(dims[k], type.rank));
  }
  tt_out(L, 0, x);
}

// ---- pixels and channels --------------------------------------------------------------------------------------------------

// [.., c r r, h, w] to [.., c, h r, w r], or back.
TT_OP(pixel_shuffle, "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor") {
  const tt_type* out = tt_out_type(L, 0);
  int lead = out->rank - 3;
  int64_t r = tt_arg_int(L, 1);
  int64_t dims[TT_MAX_RANK];
  int64_t perm[TT_MAX_RANK];
  for (int d = 0; d < lead; ++d) {
    dims[d] = out->dims[d];
    perm[d] = d;
  }
  int64_t split[6] = {out->dims[lead], r, r, out->dims[lead + 1] / r, out->dims[lead + 2] / r};
  int64_t order[5] = {0, 3, 1, 4, 2};
  for (int k = 0; k < 5; ++k) {
    dims[lead + k] = split[k];
    perm[lead + k] = lead + order[k];
  }
  tt_val parts = tt_transpose(b, tt_reshape(b, tt_arg(L, 0), lead + 5, dims), perm);
  tt_out(L, 0, tt_reshape(b, parts, out->rank, out->dims));
}

TT_OP(pixel_unshuffle, "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor") {
  const tt_type* out = tt_out_type(L, 0);
  int lead = out->rank - 3;
  int64_t r = tt_arg_int(L, 1);
  int64_t dims[TT_MAX_RANK];
  int64_t perm[TT_MAX_RANK];
  for (int d = 0; d < lead; ++d) {
    dims[d] = out->dims[d];
    perm[d] = d;
  }
  int64_t split[5] = {out->dims[lead] / (r * r), out->dims[lead + 1], r, out->dims[lead + 2], r};
  int64_t order[5] = {0, 2, 4, 1, 3};
  for (int k = 0; k < 5; ++k) {
    dims[lead + k] = split[k];
    perm[lead + k] = lead + order[k];
  }
  tt_val parts = tt_transpose(b, tt_reshape(b, tt_arg(L, 0), lead + 5, dims), perm);
  tt_out(L, 0, tt_reshape(b, parts, out->rank, out->dims));
}

static void channel_shuffle(tt_lower* L, tt_builder* b) {
  const tt_type* out = tt_out_type(L, 0);
  int64_t groups = tt_arg_int(L, 1);
  int64_t dims[TT_MAX_RANK] = {out->dims[0], groups, out->dims[1] / groups};
  for (int d = 2; d < out->rank; ++d) {
    dims[d + 1] = out->dims[d];
  }
  tt_val split = tt_swap_dims(b, tt_reshape(b, tt_arg(L, 0), out->rank + 1, dims), 1, 2);
  tt_out(L, 0, tt_reshape(b, split, out->rank, out->dims));
}
TT_OP(channel_shuffle, "channel_shuffle(Tensor self, SymInt groups) -> Tensor") {
  channel_shuffle(L, b);
}
TT_OP(native_channel_shuffle, "native_channel_shuffle(Tensor self, SymInt groups) -> Tensor") {
  channel_shuffle(L, b);
}
