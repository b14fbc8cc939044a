# SPDX-License-Identifier: Apache-2.0
"""The model families, one entry each: a small random configuration, its inputs, and how it generates.

A new family is a function that returns a model and one row of FAMILIES. Sizes are alike on purpose: programs are shared between families."""

import dataclasses
import os
from typing import Callable

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers as hf

BATCH, LENGTH, WIDTH, HEADS, LAYERS, VOCABULARY = 2, 8, 32, 4, 2, 64


@dataclasses.dataclass
class Family:
    make: Callable  # () -> model
    inputs: Callable  # () -> keyword arguments of a training step, on the CPU
    prompt: tuple = ()  # names of the inputs that generate() gets; empty: does not generate
    dropout_free: bool = True  # False: train mode draws numbers whatever the configuration says, so steps run in eval mode
    loss: Callable = lambda outputs, inputs: outputs.loss


def number_source():
    return torch.Generator().manual_seed(11)


def image(channels, size):
    return torch.randn(BATCH, channels, size, size, generator=number_source())


def tokens():
    ids = torch.randint(3, VOCABULARY, (BATCH, LENGTH), generator=number_source())
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}


DECODER = dict(vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
               num_key_value_heads=2, head_dim=8, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)


def decoder(config, model, **changes):
    return Family(lambda: model(config(**{**DECODER, **changes})), tokens, prompt=("input_ids", "attention_mask"))


def bert():
    return hf.BertForMaskedLM(hf.BertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=2 * WIDTH,
        max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))


def t5():
    return hf.T5ForConditionalGeneration(hf.T5Config(
        vocab_size=VOCABULARY, d_model=WIDTH, d_kv=8, d_ff=2 * WIDTH, num_layers=LAYERS, num_heads=HEADS, dropout_rate=0.0,
        decoder_start_token_id=0, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False))


def mamba():
    return hf.MambaForCausalLM(hf.MambaConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, state_size=8, num_hidden_layers=LAYERS, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        tie_word_embeddings=False))


def whisper():
    return hf.WhisperForConditionalGeneration(hf.WhisperConfig(
        vocab_size=VOCABULARY, d_model=WIDTH, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, encoder_ffn_dim=2 * WIDTH, decoder_ffn_dim=2 * WIDTH, num_mel_bins=8, max_source_positions=16,
        max_target_positions=64, decoder_start_token_id=1, pad_token_id=0, bos_token_id=1, eos_token_id=2, suppress_tokens=None,
        begin_suppress_tokens=None, tie_word_embeddings=False))


def vit():
    return hf.ViTForImageClassification(hf.ViTConfig(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=2 * WIDTH, image_size=16, patch_size=8,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=5))


def clip():
    part = dict(hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, projection_dim=16)
    text = dict(part, vocab_size=VOCABULARY, max_position_embeddings=16, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    vision = dict(part, image_size=16, patch_size=8)
    return hf.CLIPModel(hf.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16))


def unet():
    import diffusers

    return diffusers.UNet2DModel(
        sample_size=8, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8,
        attention_head_dim=8, down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))


def dit():
    import diffusers

    return diffusers.DiTTransformer2DModel(
        num_attention_heads=HEADS, attention_head_dim=8, in_channels=4, out_channels=4, num_layers=LAYERS, sample_size=8, patch_size=2,
        num_embeds_ada_norm=10, norm_num_groups=8)


def denoise(outputs, inputs):
    """The usual loss of a diffusion model; the sample itself stands for the noise."""
    return torch.nn.functional.mse_loss(outputs.sample.float(), inputs.get("sample", inputs.get("hidden_states")).float())


def captions():
    return {"input_ids": tokens()["input_ids"], "pixel_values": image(3, 16), "return_loss": True}


def speech():
    return {"input_features": torch.randn(BATCH, 8, 32, generator=number_source()), "labels": tokens()["labels"]}


CACHES = ("dynamic", "static")
FAMILIES = {
    "qwen3": decoder(hf.Qwen3Config, hf.Qwen3ForCausalLM),
    "qwen3_moe": decoder(hf.Qwen3MoeConfig, hf.Qwen3MoeForCausalLM, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=WIDTH),
    "deepseek_v3": decoder(hf.DeepseekV3Config, hf.DeepseekV3ForCausalLM, num_key_value_heads=HEADS, n_routed_experts=4,
                           num_experts_per_tok=2, n_shared_experts=1, n_group=2, topk_group=1, first_k_dense_replace=1,
                           moe_intermediate_size=WIDTH, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8,
                           v_head_dim=8),
    "gemma3": decoder(hf.Gemma3TextConfig, hf.Gemma3ForCausalLM, sliding_window=4, layer_types=["sliding_attention", "full_attention"],
                      query_pre_attn_scalar=8),
    "llama": decoder(hf.LlamaConfig, hf.LlamaForCausalLM),
    "mistral": decoder(hf.MistralConfig, hf.MistralForCausalLM, sliding_window=4),
    "mamba": Family(mamba, tokens, prompt=("input_ids", "attention_mask")),
    "t5": Family(t5, tokens, prompt=("input_ids", "attention_mask")),
    "whisper": Family(whisper, speech, prompt=("input_features",)),
    "bert": Family(bert, tokens),
    "vit": Family(vit, lambda: {"pixel_values": image(3, 16), "labels": torch.tensor([1, 4])}),
    "clip": Family(clip, captions),
    "unet2d": Family(unet, lambda: {"sample": image(3, 8), "timestep": torch.tensor([3, 70])}, loss=denoise),
    "dit": Family(dit, lambda: {"hidden_states": image(4, 8), "timestep": torch.tensor([3, 70]), "class_labels": torch.tensor([1, 7])},
                  loss=denoise, dropout_free=False),
}

EXPERTS = ("qwen3_moe", "deepseek_v3")
SLIDING = ("gemma3", "mistral")


def build(name, dtype=torch.float32):
    """The family's model with the same random numbers each time, on the CPU."""
    torch.manual_seed(5)
    model = FAMILIES[name].make()
    with torch.no_grad():
        for parameter in model.parameters():  # away from zero, so that tokens and gradients are no ties
            if parameter.dim() > 1:
                parameter.normal_(0, 0.15)
    return model.to(dtype)


def inputs_of(name, device="cpu", dtype=torch.float32):
    given = FAMILIES[name].inputs()
    move = lambda value: value.to(device, dtype if value.is_floating_point() else value.dtype)
    return {key: move(value) if isinstance(value, torch.Tensor) else value for key, value in given.items()}


def train_step(name, model, inputs):
    """One step of AdamW; returns everything a user can see afterwards. The eps keeps gradients that are zero but for rounding from being
    turned into a step of full size by their sign."""
    family = FAMILIES[name]
    model.train(family.dropout_free)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=0.1)
    outputs = model(**inputs)
    loss = family.loss(outputs, inputs)
    loss.backward()
    result = {"loss": loss.detach()}
    for key in ("logits", "sample", "logits_per_image"):
        if getattr(outputs, key, None) is not None:
            result[key] = getattr(outputs, key).detach()
    result.update((f"grad {key}", value.grad) for key, value in owned(model) if value.grad is not None)
    optimizer.step()
    result.update((f"step {key}", value.detach()) for key, value in owned(model))
    return {key: value.cpu() for key, value in result.items()}


def owned(model):
    return [(key.replace("_orig_mod.", ""), value) for key, value in model.named_parameters()]


def generate(name, model, inputs, cache="dynamic", beams=1, new_tokens=8, **options):
    family = FAMILIES[name]
    given = {key: inputs[key] for key in family.prompt}
    return model.eval().generate(**given, max_new_tokens=new_tokens, min_new_tokens=new_tokens, do_sample=False, num_beams=beams,
                                 cache_implementation=None if cache == "dynamic" else cache, **options)
