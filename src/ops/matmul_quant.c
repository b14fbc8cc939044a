// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of quantised operands: 8-bit floats with scales, 8-bit and 4-bit integer weights. Sums are f32.
#include "ops/op.h"

// ---- 8-bit floats -----------------------------------------------------------------------------------------------------------

static bool one_element(const tt_tensor* t) {
  for (int d = 0; d < t->rank; ++d) {
    if (t->sizes[d] != 1) {
      return false;
    }
  }
  return true;
}

// The scales of an operand [rows, columns], repeated over the blocks that they stand for.
static tt_val spread(tt_lower* L, tt_builder* b, tt_val scale, int64_t rows, int64_t columns) {
  int64_t want[2] = {rows, columns};
  if (tt_rank_of(b, scale) != 2) {
    tt_unsupported(L, "scales of %d dimensions for an operand of 2", tt_rank_of(b, scale));
    return TT_POISON;
  }
  for (int d = 0; d < 2; ++d) {
    int64_t have = tt_dim_of(b, scale, d);
    if (have == 0 || want[d] % have != 0) {
      tt_unsupported(L, "%lld scales for a dimension of %lld", (long long)have, (long long)want[d]);
      return TT_POISON;
    }
    if (have == 1 || have == want[d]) {
      continue;
    }
    int64_t blocks[3] = {d == 0 ? have : tt_dim_of(b, scale, 0), d == 0 ? want[0] / have : have,
                         d == 0 ? tt_dim_of(b, scale, 1) : want[1] / have};
    int64_t flat[2] = {d == 0 ? want[0] : blocks[0], d == 0 ? blocks[2] : want[1]};
    scale = tt_reshape(b, tt_expand(b, tt_unsqueeze(b, scale, d + 1), 3, blocks), 2, flat);
  }
  return scale;
}

static tt_val products(tt_builder* b, tt_val x, tt_val y) {
  int64_t last = 1, first = 0;
  if (tt_dim_of(b, x, 1) == 0) {
    int64_t dims[2] = {tt_dim_of(b, x, 0), tt_dim_of(b, y, 1)};
    return tt_zeros(b, TT_F32, 2, dims);
  }
  return tt_dot_general(b, x, y, 0, NULL, NULL, 1, &last, &first, TT_F32);
}

// 8-bit floats are exact in bf16, which every TPU multiplies.
static tt_val widened(tt_builder* b, tt_val x) {
  return tt_convert(b, x, TT_BF16);
}

// scale_a and scale_b are 0-d or [rows, columns] of blocks. Scales that do not vary along the sum are applied after it.
static void scaled_product(tt_lower* L, tt_builder* b, tt_val scale_a, tt_val scale_b, int bias, tt_val scale_result) {
  tt_val x = tt_arg(L, 0), y = tt_arg(L, 1);
  int64_t rows = tt_dim_of(b, x, 0), depth = tt_dim_of(b, x, 1), columns = tt_dim_of(b, y, 1);
  bool outside_a = tt_rank_of(b, scale_a) == 0 || tt_dim_of(b, scale_a, tt_rank_of(b, scale_a) - 1) == 1;
  bool outside_b = tt_rank_of(b, scale_b) == 0 || tt_dim_of(b, scale_b, 0) == 1;
  tt_val sum;
  scale_a = tt_rank_of(b, scale_a) == 0 ? scale_a : spread(L, b, scale_a, rows, depth);
  scale_b = tt_rank_of(b, scale_b) == 0 ? scale_b : spread(L, b, scale_b, depth, columns);
  if (outside_a && outside_b) {
    sum = tt_mul(b, products(b, widened(b, x), widened(b, y)), tt_mul(b, scale_a, scale_b));
  } else {
    tt_val wide_x = tt_mul(b, tt_convert(b, x, TT_F32), scale_a);
    tt_val wide_y = tt_mul(b, tt_convert(b, y, TT_F32), scale_b);
    sum = products(b, wide_x, wide_y);
  }
  if (tt_arg_has(L, bias)) {
    sum = tt_add(b, sum, tt_arg_as(L, bias, TT_F32));
  }
  if (scale_result != TT_POISON) {
    sum = tt_div(b, sum, scale_result);
  }
  tt_out(L, 0, sum);
}

static tt_val scale_of(tt_builder* b, const tt_tensor* info, tt_val v) {
  v = tt_convert(b, v, TT_F32);
  return one_element(info) ? tt_reshape(b, v, 0, NULL) : v;
}

TT_OP(scaled_mm,
      "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? "
      "scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor") {
  bool narrow = tt_dtype_size(tt_out_type(L, 0)->dtype) == 1 && tt_arg_has(L, 5);
  tt_val after = narrow ? scale_of(b, tt_arg_info(L, 5), tt_arg(L, 5)) : TT_POISON;
  scaled_product(L, b, scale_of(b, tt_arg_info(L, 2), tt_arg(L, 2)), scale_of(b, tt_arg_info(L, 3), tt_arg(L, 3)), 4,
                 after);
}
TT_OP(scaled_mm_v2,
      "_scaled_mm_v2(Tensor self, Tensor mat2, Tensor[] scale_a, int[] recipe_a, int[] swizzle_a, Tensor[] scale_b, "
      "int[] recipe_b, int[] swizzle_b, Tensor? bias, ScalarType? out_dtype, int[] contraction_dim=[], bool "
      "use_fast_accum=False) -> Tensor") {
  if (tt_arg_count(L, 2) != 1 || tt_arg_count(L, 5) != 1) {
    tt_unsupported(L, "more than one scale an operand");
    return;
  }
  for (int i = 4; i <= 7; i += 3) {
    int count = 0;
    const int64_t* swizzle = tt_arg_ints(L, i, &count);
    if (count > 0 && swizzle[0] != 0) {
      tt_unsupported(L, "swizzled scales");
      return;
    }
  }
  scaled_product(L, b, scale_of(b, tt_arg_info_at(L, 2, 0), tt_arg_at(L, 2, 0)),
                 scale_of(b, tt_arg_info_at(L, 5, 0), tt_arg_at(L, 5, 0)), 8, TT_POISON);
}

// ---- integer weights --------------------------------------------------------------------------------------------------------

TT_OP(weight_int8pack_mm, "_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  tt_val weight = tt_convert(b, tt_arg(L, 1), tt_dtype_of(b, x));
  tt_val sum = products(b, x, tt_swap_dims(b, weight, 0, 1));
  tt_out(L, 0, tt_mul(b, sum, tt_arg_as(L, 2, TT_F32)));
}

// CUDA's order of 4-bit weights [n, k] in 32-bit words [n / 8, k / (16 tiles), 32, tiles / 2], that of the tensor cores' m16n8k16: n is
// (n / 8, lane / 4), k is (outer, pair of tiles, tile, half, lane % 4, parity), and a word holds (parity, tile, half).
enum { N_TILE, N_LANE, K_OUTER, K_PAIR, K_TILE, K_HALF, K_LANE, K_PARITY, PARTS };

static void parts_of(int64_t n, int64_t k, int64_t tiles, int64_t dims[PARTS]) {
  int64_t sizes[PARTS] = {n / 8, 8, k / (tiles * 16), tiles / 2, 2, 2, 4, 2};
  for (int d = 0; d < PARTS; ++d) {
    dims[d] = sizes[d];
  }
}
// 4 * 0, 4 * 1, ... along the last of `rank` dimensions.
static tt_val shifts(tt_builder* b, int rank) {
  int64_t values[8], dims[TT_MAX_RANK];
  for (int k = 0; k < 8; ++k) {
    values[k] = 4 * k;
  }
  for (int d = 0; d < rank; ++d) {
    dims[d] = d == rank - 1 ? 8 : 1;
  }
  return tt_reshape(b, tt_const_ints(b, TT_U32, 8, values), rank, dims);
}

TT_OP(convert_weight_to_int4pack, "_convert_weight_to_int4pack(Tensor self, int innerKTiles) -> Tensor") {
  tt_val bytes = tt_arg(L, 0);  // [n, k / 2], the even element in the high bits
  int64_t n = tt_dim_of(b, bytes, 0), k = 2 * tt_dim_of(b, bytes, 1);
  tt_val pair[2] = {tt_bin(b, TT_SHR_LOGICAL, bytes, tt_like_i(b, bytes, 4)),
                    tt_and(b, bytes, tt_like_i(b, bytes, 15))};
  for (int i = 0; i < 2; ++i) {
    pair[i] = tt_unsqueeze(b, tt_convert(b, pair[i], TT_U32), 2);
  }
  int64_t dims[PARTS], word[5];
  parts_of(n, k, tt_arg_int(L, 1), dims);
  tt_val q = tt_reshape(b, tt_concat(b, 2, pair, 2), PARTS, dims);
  static const int order[PARTS] = {N_TILE, K_OUTER, N_LANE, K_LANE, K_PAIR, K_PARITY, K_TILE, K_HALF};
  q = tt_permute(b, q, order);
  word[0] = dims[N_TILE];
  word[1] = dims[K_OUTER];
  word[2] = 32;
  word[3] = dims[K_PAIR];
  word[4] = 8;
  q = tt_reshape(b, q, 5, word);
  int64_t last = 4;
  q = tt_reduce(b, TT_REDUCE_OR, tt_bin(b, TT_SHL, q, shifts(b, 5)), 1, &last);
  tt_out(L, 0, tt_bitcast(b, q, TT_I32));
}

TT_OP(weight_int4pack_mm,
      "_weight_int4pack_mm(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor") {
  tt_val x = tt_arg(L, 0);
  tt_val words = tt_bitcast(b, tt_arg(L, 1), TT_U32);
  int64_t n = tt_dim_of(b, words, 0) * 8, k = tt_dim_of(b, x, 1);
  int64_t dims[PARTS], packed[PARTS];
  parts_of(n, k, 2 * tt_dim_of(b, words, 3), dims);
  static const int stored[PARTS] = {N_TILE, K_OUTER, N_LANE, K_LANE, K_PAIR, K_PARITY, K_TILE, K_HALF};
  int back[PARTS];
  for (int d = 0; d < PARTS; ++d) {
    packed[d] = dims[stored[d]];
    back[stored[d]] = d;
  }
  tt_val q = tt_bin(b, TT_SHR_LOGICAL, tt_unsqueeze(b, words, 4), shifts(b, 5));
  q = tt_and(b, q, tt_like_i(b, q, 15));
  q = tt_permute(b, tt_reshape(b, q, PARTS, packed), back);
  int64_t group = tt_arg_int(L, 2);
  int64_t grouped[3] = {n, k / group, group}, matrix[2] = {n, k};
  tt_val value = tt_add_f(b, tt_convert(b, tt_reshape(b, q, 3, grouped), TT_F32), -8);
  tt_val scales = tt_swap_dims(b, tt_arg_as(L, 3, TT_F32), 0, 1);  // [n, groups, 2]
  tt_val weight = tt_add(b, tt_mul(b, value, tt_slice_dim(b, scales, 2, 0, 1, 1)), tt_slice_dim(b, scales, 2, 1, 2, 1));
  weight = tt_convert(b, tt_reshape(b, weight, 2, matrix), tt_dtype_of(b, x));
  tt_out(L, 0, products(b, x, tt_swap_dims(b, weight, 0, 1)));
}
