// SPDX-License-Identifier: Apache-2.0
//
// Grouped matrix products (mixtures of experts): rows, or terms of the sum, in groups that end at `offs`, each with its own matrix.
// XLA's ragged dot where the plugin has it, as a composite; elsewhere its decomposition, a loop over tiles that lie in one group.
#include "ops/op.h"

enum { TILE = 128 };

// ---- tiles --------------------------------------------------------------------------------------------------------------------

// What the loop's body needs besides its state (a counter and the result).
typedef struct tiling {
  tt_val lhs, rhs;             // padded by TILE in the ragged dimension
  tt_val starts, first, last;  // i32 [groups]: where a group starts, its first tile, and the one after its last
  tt_val ends, total;          // where a group ends; tiles in all
  int64_t tile, groups;
} tiling;

static tt_val at(tt_builder* b, tt_val vector, tt_val index) {
  int64_t one = 1;
  return tt_reshape(b, tt_dynamic_slice(b, vector, &index, &one), 0, NULL);
}

// sizes: i32 [groups] of groups that follow each other.
static tiling plan_tiles(tt_builder* b, tt_val sizes, int64_t tile) {
  tiling t = {.tile = tile, .groups = tt_dim_of(b, sizes, 0)};
  t.ends = tt_cumulative(b, TT_REDUCE_SUM, sizes, 0);
  t.starts = tt_sub(b, t.ends, sizes);
  tt_val count = tt_div(b, tt_add(b, sizes, tt_like_i(b, sizes, tile - 1)), tt_like_i(b, sizes, tile));
  t.last = tt_cumulative(b, TT_REDUCE_SUM, count, 0);
  t.first = tt_sub(b, t.last, count);
  t.total = tt_reshape(b, tt_slice_dim(b, t.last, 0, t.groups - 1, t.groups, 1), 0, NULL);
  return t;
}

// The group of tile `step`, where it starts and which of its places lie in the group.
static tt_val locate(tt_builder* b, const tiling* t, tt_val step, tt_val* start, tt_val* inside) {
  tt_val passed = tt_convert(b, tt_test(b, TT_LE, t->last, step), TT_I32);
  int64_t dim = 0;
  tt_val group = tt_reduce(b, TT_REDUCE_SUM, passed, 1, &dim);
  tt_val within = tt_sub(b, step, at(b, t->first, group));
  *start = tt_add(b, at(b, t->starts, group), tt_mul(b, within, tt_const_i(b, TT_I32, t->tile)));
  tt_type type = tt_type_make(TT_I32, 1, &t->tile);
  tt_val place = tt_add(b, tt_iota(b, &type, 0), *start);
  *inside = tt_test(b, TT_LT, place, at(b, t->ends, group));
  return group;
}

static void more_tiles(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  results[0] = tt_compare(b, TT_LT, args[0], ((const tiling*)ctx)->total);
}

// lhs [m, k] in groups of rows, rhs [groups, k, n].
static void row_tile(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  const tiling* t = ctx;
  tt_val start, inside;
  tt_val group = locate(b, t, args[0], &start, &inside);
  tt_val none = tt_const_i(b, TT_I32, 0);
  int64_t k = tt_dim_of(b, t->lhs, 1), n = tt_dim_of(b, t->rhs, 2);
  tt_val corner[2] = {start, none}, matrix_at[3] = {group, none, none};
  int64_t rows_size[2] = {t->tile, k}, matrix_size[3] = {1, k, n}, out_size[2] = {t->tile, n};
  tt_val rows = tt_dynamic_slice(b, t->lhs, corner, rows_size);
  tt_val matrix = tt_squeeze(b, tt_dynamic_slice(b, t->rhs, matrix_at, matrix_size), 0);
  int64_t one = 1, zero = 0;
  tt_val product = tt_dot_general(b, rows, matrix, 0, NULL, NULL, 1, &one, &zero, tt_dtype_of(b, args[1]));
  tt_val old = tt_dynamic_slice(b, args[1], corner, out_size);
  tt_val mixed = tt_where(b, tt_unsqueeze(b, inside, 1), product, old);
  results[0] = tt_add(b, args[0], tt_const_i(b, TT_I32, 1));
  results[1] = tt_dynamic_update_slice(b, args[1], mixed, corner);
}

// lhs [m, k], rhs [k, n], terms of the sum in groups; result [groups, m, n].
static void term_tile(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  const tiling* t = ctx;
  tt_val start, inside;
  tt_val group = locate(b, t, args[0], &start, &inside);
  tt_val none = tt_const_i(b, TT_I32, 0);
  int64_t m = tt_dim_of(b, t->lhs, 0), n = tt_dim_of(b, t->rhs, 1);
  tt_val left_at[2] = {none, start}, right_at[2] = {start, none}, out_at[3] = {group, none, none};
  int64_t left_size[2] = {m, t->tile}, right_size[2] = {t->tile, n}, out_size[3] = {1, m, n};
  tt_val left = tt_dynamic_slice(b, t->lhs, left_at, left_size);
  tt_val right = tt_dynamic_slice(b, t->rhs, right_at, right_size);
  left = tt_where(b, inside, left, tt_like_i(b, left, 0));
  right = tt_where(b, tt_unsqueeze(b, inside, 1), right, tt_like_i(b, right, 0));
  int64_t one = 1, zero = 0;
  tt_val product = tt_dot_general(b, left, right, 0, NULL, NULL, 1, &one, &zero, tt_dtype_of(b, args[1]));
  tt_val old = tt_dynamic_slice(b, args[1], out_at, out_size);
  results[0] = tt_add(b, args[0], tt_const_i(b, TT_I32, 1));
  results[1] = tt_dynamic_update_slice(b, args[1], tt_add(b, old, tt_unsqueeze(b, product, 0)), out_at);
}

// ---- the ragged dot -------------------------------------------------------------------------------------------------------------

static int64_t tile_for(int64_t length) {
  return length < TILE ? length : TILE;
}

// Decompositions: operands lhs, rhs, sizes.
static void ragged_rows(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  const tt_dtype* sums = ctx;
  int64_t m = tt_dim_of(b, args[0], 0);
  tiling t = plan_tiles(b, args[2], tile_for(m));
  t.lhs = tt_pad_dim(b, args[0], 0, 0, t.tile, 0);
  t.rhs = args[1];
  int64_t dims[2] = {m + t.tile, tt_dim_of(b, args[1], 2)};
  tt_val state[2] = {tt_const_i(b, TT_I32, 0), tt_zeros(b, *sums, 2, dims)}, done[2];
  tt_while(b, 2, state, more_tiles, row_tile, &t, done);
  results[0] = tt_slice_dim(b, done[1], 0, 0, m, 1);
}
static void ragged_terms(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  const tt_dtype* sums = ctx;
  tiling t = plan_tiles(b, args[2], tile_for(tt_dim_of(b, args[0], 1)));
  t.lhs = tt_pad_dim(b, args[0], 1, 0, t.tile, 0);
  t.rhs = tt_pad_dim(b, args[1], 0, 0, t.tile, 0);
  int64_t dims[3] = {t.groups, tt_dim_of(b, args[0], 0), tt_dim_of(b, args[1], 1)};
  tt_val state[2] = {tt_const_i(b, TT_I32, 0), tt_zeros(b, *sums, 3, dims)}, done[2];
  tt_while(b, 2, state, more_tiles, term_tile, &t, done);
  results[0] = done[1];
}

// The operation's attributes: precision, and which dimensions are batching of both, contracting of both, ragged of lhs, groups of rhs.
#define RAGGED(precision, lhs_contract, rhs_contract, ragged, group)                        \
  "{precision_config = [\"" precision "\", \"" precision                                    \
  "\"], ragged_dot_dimension_numbers = [dense<> : tensor<0xi64>, "                          \
  "dense<> : tensor<0xi64>, dense<" #lhs_contract "> : tensor<1xi64>, dense<" #rhs_contract \
  "> : tensor<1xi64>, "                                                                     \
  "dense<" #ragged "> : tensor<1xi64>, " group "]}"

static bool is_wide(tt_builder* b, tt_val x) {
  return tt_dtype_size(tt_dtype_of(b, x)) >= 4;
}

// lhs [m, k], rhs [groups, k, n], sizes i32 [groups] -> [m, n]; rows behind the last group are 0.
static tt_val rows_product(tt_builder* b, tt_val lhs, tt_val rhs, tt_val sizes, tt_dtype sums) {
  int64_t dims[2] = {tt_dim_of(b, lhs, 0), tt_dim_of(b, rhs, 2)};
  if (dims[0] == 0 || dims[1] == 0 || tt_dim_of(b, lhs, 1) == 0 || tt_dim_of(b, sizes, 0) == 0) {
    return tt_zeros(b, sums, 2, dims);
  }
  tt_val operands[3] = {lhs, rhs, sizes}, out;
  const char* attributes = is_wide(b, lhs) ? RAGGED("HIGHEST", 1, 1, 0, "dense<0> : tensor<1xi64>")
                                           : RAGGED("DEFAULT", 1, 1, 0, "dense<0> : tensor<1xi64>");
  tt_composite(b, "chlo.ragged_dot", attributes, 3, operands, ragged_rows, &sums, 1, &out);
  return out;
}
// lhs [m, k], rhs [k, n], sizes i32 [groups] over k -> [groups, m, n].
static tt_val terms_product(tt_builder* b, tt_val lhs, tt_val rhs, tt_val sizes, tt_dtype sums) {
  int64_t dims[3] = {tt_dim_of(b, sizes, 0), tt_dim_of(b, lhs, 0), tt_dim_of(b, rhs, 1)};
  if (dims[0] == 0 || dims[1] == 0 || dims[2] == 0 || tt_dim_of(b, lhs, 1) == 0) {
    return tt_zeros(b, sums, 3, dims);
  }
  tt_val operands[3] = {lhs, rhs, sizes}, out;
  const char* attributes = is_wide(b, lhs) ? RAGGED("HIGHEST", 1, 0, 1, "dense<> : tensor<0xi64>")
                                           : RAGGED("DEFAULT", 1, 0, 1, "dense<> : tensor<0xi64>");
  tt_composite(b, "chlo.ragged_dot", attributes, 3, operands, ragged_terms, &sums, 1, &out);
  return out;
}

// Sizes of the groups that end at `offs`, none reaching past `length`.
static tt_val sizes_of(tt_builder* b, tt_val offs, int64_t length) {
  offs = tt_min(b, tt_max(b, offs, tt_like_i(b, offs, 0)), tt_like_i(b, offs, length));
  tt_val before = tt_slice_dim(b, tt_pad_dim(b, offs, 0, 1, 0, 0), 0, 0, tt_dim_of(b, offs, 0), 1);
  return tt_max(b, tt_sub(b, offs, before), tt_like_i(b, offs, 0));
}

static tt_val grouped(tt_lower* L, tt_builder* b, tt_val x, tt_val y, int offs, tt_dtype sums) {
  int x_rank = tt_rank_of(b, x), y_rank = tt_rank_of(b, y);
  if (x_rank == 3 && y_rank == 3) {
    int64_t batch = 0, last = 2, before = 1;
    if (tt_dim_of(b, x, 2) == 0) {
      return tt_zeros(b, sums, 3, tt_out_type(L, 0)->dims);
    }
    return tt_dot_general(b, x, y, 1, &batch, &batch, 1, &last, &before, sums);
  }
  int64_t ragged = x_rank == 3 ? tt_dim_of(b, y, 1) : tt_dim_of(b, x, y_rank == 3 ? 0 : 1);
  tt_val sizes = sizes_of(b, tt_arg_as(L, offs, TT_I32), ragged);
  if (x_rank == 3) {
    tt_val flipped = rows_product(b, tt_swap_dims(b, y, 0, 1), tt_swap_dims(b, x, 1, 2), sizes, sums);
    return tt_swap_dims(b, flipped, 0, 1);
  }
  return y_rank == 3 ? rows_product(b, x, y, sizes, sums) : terms_product(b, x, y, sizes, sums);
}

TT_OP(grouped_mm,
      "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> "
      "Tensor") {
  tt_out(L, 0, grouped(L, b, tt_arg(L, 0), tt_arg(L, 1), 2, tt_dtype_compute(tt_arg_info(L, 0)->dtype)));
}

// An 8-bit operand with its scales, in bf16's range: [m] for rows, [groups, ...] for matrices. `over` is the scaled dimension.
static tt_val scaled_operand(tt_lower* L, tt_builder* b, int i, int over) {
  tt_val x = tt_arg_as(L, i, TT_F32);
  tt_val scale = tt_arg_as(L, i + 2, TT_F32);
  return tt_mul(b, x, tt_unsqueeze(b, scale, over == 0 ? -1 : -2));
}
TT_OP(scaled_grouped_mm,
      "_scaled_grouped_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? offs=None, Tensor? "
      "bias=None, Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor") {
  if (tt_arg_info(L, 0)->rank == 2 && tt_arg_info(L, 1)->rank == 2) {
    tt_unsupported(L, "scales by group of a ragged sum");
    return;
  }
  if (tt_arg_info(L, 2)->dtype != TT_F32) {
    tt_unsupported(L, "scales that are not float32");
    return;
  }
  tt_out(L, 0, grouped(L, b, scaled_operand(L, b, 0, 0), scaled_operand(L, b, 1, 1), 4, TT_F32));
}
