// SPDX-License-Identifier: Apache-2.0
//
// The operators of PyTorch's quantised graphs (torch.ao, namespace quantized_decomposed). Scales and zero points are run-time inputs; those
// that PyTorch computes by calls on tensors only are captured.
#include "ops/op.h"

#define DECOMPOSED "quantized_decomposed::"

// A number or a tensor of one element, as 0-d.
static tt_val one(tt_lower* L, int i, tt_dtype dtype) {
  if (tt_arg_info(L, i) == NULL) {
    return tt_arg_scalar(L, i, dtype);
  }
  return tt_reshape(tt_lower_builder(L), tt_arg_as(L, i, dtype), 0, NULL);
}

// Arguments: input, scale, zero point, limits; computed in f32.
static void quantize(tt_lower* L, tt_builder* b) {
  tt_dtype wide = tt_arg_info(L, 0)->dtype == TT_F64 ? TT_F64 : TT_F32;
  tt_val scale = one(L, 1, wide);
  tt_val q = tt_mul(b, tt_arg_as(L, 0, wide), tt_div(b, tt_like_f(b, scale, 1), scale));
  q = tt_add(b, tt_unary(b, TT_ROUND_EVEN, q), one(L, 2, wide));
  tt_out(L, 0, tt_min(b, tt_max(b, q, one(L, 3, wide)), one(L, 4, wide)));
}
static void dequantize(tt_lower* L, tt_builder* b) {
  tt_dtype wide = tt_out_type(L, 0)->dtype == TT_F64 ? TT_F64 : TT_F32;
  tt_val x = tt_sub(b, tt_arg_as(L, 0, wide), one(L, 2, wide));
  tt_out(L, 0, tt_mul(b, x, one(L, 1, wide)));
}

TT_OP(quantize_per_tensor, DECOMPOSED
      "quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, "
      "ScalarType dtype) -> Tensor") {
  quantize(L, b);
}
TT_OP(quantize_per_tensor_tensor, DECOMPOSED
      "quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int "
      "quant_max, ScalarType dtype) -> Tensor") {
  quantize(L, b);
}
TT_OP(quantize_per_tensor_tensor2, DECOMPOSED
      "quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor "
      "quant_max, ScalarType dtype) -> Tensor") {
  quantize(L, b);
}
TT_OP(dequantize_per_tensor, DECOMPOSED
      "dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, "
      "ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor") {
  dequantize(L, b);
}
TT_OP(dequantize_per_tensor_tensor, DECOMPOSED
      "dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int "
      "quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor") {
  dequantize(L, b);
}
TT_OP(dequantize_per_tensor_tensor2, DECOMPOSED
      "dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, "
      "Tensor quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor") {
  dequantize(L, b);
}

// Scale and zero point of what the input holds, 0 included.
static void choose(tt_lower* L, tt_builder* b, bool symmetric) {
  tt_val x = tt_arg_as(L, 0, TT_F32);
  int64_t dims[TT_MAX_RANK];
  for (int d = 0; d < tt_rank_of(b, x); ++d) {
    dims[d] = d;
  }
  tt_val zero = tt_const_f(b, TT_F32, 0);
  tt_val least = tt_min(b, tt_reduce(b, TT_REDUCE_MIN, x, tt_rank_of(b, x), dims), zero);
  tt_val most = tt_max(b, tt_reduce(b, TT_REDUCE_MAX, x, tt_rank_of(b, x), dims), zero);
  tt_val low = tt_arg_scalar(L, 1, TT_F32), high = tt_arg_scalar(L, 2, TT_F32), eps = tt_arg_scalar(L, 3, TT_F32);
  tt_val span = tt_sub(b, high, low);
  int64_t size = 1;
  tt_val scale, place;
  if (symmetric) {
    scale = tt_max(b, tt_div(b, tt_max(b, tt_neg(b, least), most), tt_mul_f(b, span, 0.5)), eps);
    place = tt_const_f(b, TT_F32, tt_arg_dtype_or(L, 4, TT_I8) == TT_U8 ? 128 : 0);
  } else {
    scale = tt_max(b, tt_div(b, tt_sub(b, most, least), span), eps);
    place = tt_sub(b, low, tt_unary(b, TT_ROUND_EVEN, tt_div(b, least, scale)));
    place = tt_min(b, tt_max(b, place, low), high);
  }
  tt_out(L, 0, tt_reshape(b, scale, 1, &size));
  tt_out(L, 1, tt_reshape(b, place, 1, &size));
}
TT_OP(choose_qparams, DECOMPOSED
      "choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> "
      "(Tensor, Tensor)") {
  choose(L, b, false);
}
TT_OP(choose_qparams_symmetric, DECOMPOSED
      "choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType "
      "dtype) -> (Tensor, Tensor)") {
  choose(L, b, true);
}

// Groups of neighbouring columns, each with its scale; PyTorch's kernel looks for NaN first.
TT_OP(quantize_per_channel_group, DECOMPOSED
      "quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int "
      "quant_max, ScalarType dtype, int group_size) -> Tensor") {
  tt_val x = tt_arg_as(L, 0, TT_F32);
  int64_t size = tt_arg_int(L, 6);
  int64_t width = tt_dim_of(b, x, tt_rank_of(b, x) - 1);
  size = size > width ? width : size;
  int64_t groups = tt_type_elements(tt_type_of(b, x)) / (size > 0 ? size : 1);
  int64_t grouped[2] = {groups, size}, column[2] = {groups, 1};
  tt_val scale = tt_reshape(b, tt_arg_as(L, 1, TT_F32), 2, column);
  tt_val q = tt_mul(b, tt_reshape(b, x, 2, grouped), tt_div(b, tt_like_f(b, scale, 1), scale));
  q = tt_unary(b, TT_ROUND_EVEN, tt_add(b, q, tt_reshape(b, tt_arg_as(L, 2, TT_F32), 2, column)));
  q = tt_min(b, tt_max(b, q, one(L, 3, TT_F32)), one(L, 4, TT_F32));
  const tt_type* out = tt_out_type(L, 0);
  tt_out(L, 0, tt_reshape(b, q, out->rank, out->dims));
}

#define CALLS_ONLY "PyTorch's kernel makes calls only"
TT_COMPOSITE(quantize_per_channel_d,
             DECOMPOSED
             "quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, "
             "int quant_max, ScalarType dtype) -> Tensor",
             CALLS_ONLY);
TT_COMPOSITE(dequantize_per_channel_d,
             DECOMPOSED
             "dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int "
             "quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
             CALLS_ONLY);
TT_COMPOSITE(choose_qparams_per_token,
             DECOMPOSED "choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)", CALLS_ONLY);
TT_COMPOSITE(choose_qparams_per_token_asymmetric,
             DECOMPOSED "choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
             CALLS_ONLY);
TT_COMPOSITE(quantize_per_token,
             DECOMPOSED
             "quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int "
             "quant_max, ScalarType dtype) -> Tensor",
             CALLS_ONLY);
TT_COMPOSITE(dequantize_per_token,
             DECOMPOSED
             "dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int "
             "quant_max, ScalarType dtype, ScalarType output_dtype) -> Tensor",
             CALLS_ONLY);
TT_COMPOSITE(dequantize_per_channel_group,
             DECOMPOSED
             "dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, "
             "int quant_max, ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor",
             CALLS_ONLY);
