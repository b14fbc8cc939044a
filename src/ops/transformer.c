// SPDX-License-Identifier: Apache-2.0
//
// The inference kernels of torch.nn.MultiheadAttention and TransformerEncoderLayer. PyTorch's own make calls only; each is one program.
#include <math.h>

#include "ops/op.h"

TT_COMPOSITE(
    native_multi_head_attention,
    "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor "
    "qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, "
    "bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
    "PyTorch's CPU kernel makes calls only");
TT_COMPOSITE(
    transformer_encoder_layer,
    "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, "
    "Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor "
    "norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor "
    "ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor",
    "PyTorch's CPU kernel makes calls only");

// [batch, rows, 3 * width] plus bias, as queries (scaled), keys and values [batch, heads, rows, width / heads].
TT_OP(transform_bias_rescale_qkv,
      "_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)") {
  tt_dtype dtype = tt_dtype_compute(tt_arg_info(L, 0)->dtype);
  tt_val x = tt_add(b, tt_arg_as(L, 0, dtype), tt_arg_as(L, 1, dtype));
  int64_t heads = tt_arg_int(L, 2), width = tt_dim_of(b, x, 2) / 3;
  int64_t dims[4] = {tt_dim_of(b, x, 0), tt_dim_of(b, x, 1), heads, width / heads};
  for (int k = 0; k < 3; ++k) {
    tt_val part = tt_reshape(b, tt_slice_dim(b, x, 2, k * width, (k + 1) * width, 1), 4, dims);
    part = tt_swap_dims(b, part, 1, 2);
    tt_out(L, k, k == 0 ? tt_mul_f(b, part, 1 / sqrt((double)dims[3])) : part);
  }
}
