// SPDX-License-Identifier: Apache-2.0
//
// Rows of different numbers side by side (jagged, as nested tensors and compressed sparse matrices keep them): padded to one length and
// back, and which group each row belongs to.
#include "ops/jagged.h"

#include "ops/indexing.h"

// Row of `values` for each place [groups, length] of the padded form, and whether it is in the group.
static tt_val source_rows(tt_builder* b, tt_val offsets, int64_t groups, int64_t length, tt_val* inside) {
  int64_t dims[2] = {groups, length};
  tt_val starts = tt_unsqueeze(b, tt_slice_dim(b, offsets, 0, 0, groups, 1), 1);
  tt_val ends = tt_unsqueeze(b, tt_slice_dim(b, offsets, 0, 1, groups + 1, 1), 1);
  tt_type type = tt_type_make(tt_dtype_of(b, offsets), 2, dims);
  tt_val rows = tt_add(b, tt_iota(b, &type, 1), starts);
  *inside = tt_test(b, TT_LT, rows, ends);
  return rows;
}

static tt_val flag_over(tt_builder* b, tt_val flag, int rank) {
  while (tt_rank_of(b, flag) < rank) {
    flag = tt_unsqueeze(b, flag, -1);
  }
  return flag;
}

tt_val tt_jagged_pad(tt_builder* b, tt_val values, tt_val offsets, int64_t length, tt_val fill) {
  int64_t total = tt_dim_of(b, values, 0);
  int64_t groups = tt_dim_of(b, offsets, 0) - 1;
  int rank = tt_rank_of(b, values) + 1;
  int64_t dims[TT_MAX_RANK] = {groups, length};
  for (int d = 2; d < rank; ++d) {
    dims[d] = tt_dim_of(b, values, d - 1);
  }
  if (total == 0 || groups <= 0 || length == 0) {
    return tt_expand(b, fill, rank, dims);
  }
  tt_val inside;
  tt_val rows = source_rows(b, offsets, groups, length, &inside);
  rows = tt_min(b, tt_max(b, rows, tt_like_i(b, rows, 0)), tt_like_i(b, rows, total - 1));
  tt_val taken = tt_take_rows(b, values, tt_narrow_index(b, rows, total), 0);
  return tt_where(b, flag_over(b, inside, rank), taken, fill);
}

tt_val tt_jagged_groups(tt_builder* b, tt_val offsets, int64_t total) {
  int64_t groups = tt_dim_of(b, offsets, 0) - 1;
  tt_dtype dtype = tt_dtype_of(b, offsets);
  tt_val steps = tt_zeros(b, dtype, 1, &total);
  if (total == 0 || groups <= 0) {
    return steps;
  }
  tt_val ends = tt_slice_dim(b, offsets, 0, 1, groups + 1, 1);
  tt_val ones = tt_expand(b, tt_const_i(b, dtype, 1), 1, &groups);
  return tt_cumulative(b, TT_REDUCE_SUM, tt_put_flat(b, steps, ends, ones, TT_COMBINE_ADD), 0);
}

tt_val tt_jagged_unpad(tt_builder* b, tt_val padded, tt_val offsets, int64_t total) {
  int64_t groups = tt_dim_of(b, padded, 0), length = tt_dim_of(b, padded, 1);
  int rank = tt_rank_of(b, padded) - 1;
  int64_t dims[TT_MAX_RANK] = {total}, flat[TT_MAX_RANK] = {groups * length};
  for (int d = 1; d < rank; ++d) {
    dims[d] = flat[d] = tt_dim_of(b, padded, d + 1);
  }
  if (total == 0 || groups == 0 || length == 0) {
    return tt_zeros(b, tt_dtype_of(b, padded), rank, dims);
  }
  tt_val group = tt_jagged_groups(b, offsets, total);
  tt_val known = tt_min(b, group, tt_like_i(b, group, groups - 1));
  tt_val starts = tt_take_rows(b, offsets, tt_narrow_index(b, known, groups + 1), 0);
  tt_val within = tt_sub(b, tt_iota_like(b, group, tt_dtype_of(b, group), 0), starts);
  tt_val inside = tt_and(b, tt_test(b, TT_LT, group, tt_like_i(b, group, groups)),
                         tt_and(b, tt_test(b, TT_GE, within, tt_like_i(b, within, 0)),
                                tt_test(b, TT_LT, within, tt_like_i(b, within, length))));
  tt_val place = tt_add(b, tt_mul(b, known, tt_like_i(b, known, length)), within);
  place = tt_min(b, tt_max(b, place, tt_like_i(b, place, 0)), tt_like_i(b, place, groups * length - 1));
  tt_val taken = tt_take_rows(b, tt_reshape(b, padded, rank, flat), tt_narrow_index(b, place, groups * length), 0);
  return tt_where(b, flag_over(b, inside, rank), taken, tt_like_i(b, taken, 0));
}

static bool one_list(tt_lower* L, int i) {
  if (tt_arg_count(L, i) != 1) {
    tt_unsupported(L, "%d jagged dimensions (only one is)", tt_arg_count(L, i));
    return false;
  }
  return true;
}

TT_OP(jagged_to_padded,
      "_jagged_to_padded_dense_forward(Tensor values, Tensor[] offsets, SymInt[] max_lengths, float "
      "padding_value=0.0) -> Tensor") {
  if (!one_list(L, 1)) {
    return;
  }
  tt_val values = tt_arg(L, 0);
  tt_val fill = tt_arg_scalar(L, 3, tt_dtype_of(b, values));
  tt_out(L, 0, tt_jagged_pad(b, values, tt_arg_at(L, 1, 0), tt_out_type(L, 0)->dims[1], fill));
}
TT_OP(padded_to_jagged,
      "_padded_dense_to_jagged_forward(Tensor dense, Tensor[] offsets, SymInt? total_L=None) -> Tensor") {
  if (!one_list(L, 1)) {
    return;
  }
  tt_out(L, 0, tt_jagged_unpad(b, tt_arg(L, 0), tt_arg_at(L, 1, 0), tt_out_type(L, 0)->dims[0]));
}

// ---- rows of sparse matrices, which are jagged -------------------------------------------------------------------------------------

TT_OP(coo_to_csr, "_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor") {
  int64_t rows = tt_arg_int(L, 1), count = tt_arg_info(L, 0)->sizes[0];
  int64_t ends = rows + 1;
  tt_val at = tt_add(b, tt_arg_as(L, 0, TT_I64), tt_const_i(b, TT_I64, 1));
  tt_val ones = tt_expand(b, tt_const_i(b, TT_I64, 1), 1, &count);
  tt_val steps = tt_zeros(b, TT_I64, 1, &ends);
  if (count > 0) {
    steps = tt_put_flat(b, steps, at, ones, TT_COMBINE_ADD);
  }
  tt_out(L, 0, tt_cumulative(b, TT_REDUCE_SUM, steps, 0));
}
TT_OP(csr_to_coo,
      "_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, bool out_int32=False, bool "
      "transpose=False) -> Tensor") {
  if (tt_arg_info(L, 0)->rank != 1) {
    tt_unsupported(L, "batches of compressed matrices");
    return;
  }
  tt_val columns = tt_arg_as(L, 1, TT_I64);
  tt_val rows = tt_jagged_groups(b, tt_arg_as(L, 0, TT_I64), tt_dim_of(b, columns, 0));
  bool swap = tt_arg_bool(L, 3);
  tt_val pair[2] = {tt_unsqueeze(b, swap ? columns : rows, 0), tt_unsqueeze(b, swap ? rows : columns, 0)};
  tt_out(L, 0, tt_concat(b, 2, pair, 0));
}
