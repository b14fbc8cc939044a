# SPDX-License-Identifier: Apache-2.0
"""Runs Whisper on a made tone: features from sound, encoder, and tokens by greedy search.

No weights come with this repository, so the model is small and random and its tokens mean nothing; give --model the folder of a real one.

    ./dev run examples/whisper.py
    ./dev run examples/whisper.py --model whisper-tiny/ --seconds 5
"""

import argparse
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is downloaded

import numpy
import torch
from transformers import AutoTokenizer, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration
from transformers.utils import logging

RATE = 16000


def tone(seconds):
    """Two notes, one fading into the other."""
    time = numpy.arange(int(seconds * RATE)) / RATE
    blend = time / seconds
    return ((1 - blend) * numpy.sin(2 * numpy.pi * 440 * time) + blend * numpy.sin(2 * numpy.pi * 660 * time)).astype(numpy.float32) * 0.3


def small(mels):
    torch.manual_seed(0)
    return WhisperForConditionalGeneration(WhisperConfig(
        vocab_size=128, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=128, decoder_ffn_dim=128, num_mel_bins=mels, max_source_positions=1500, max_target_positions=64,
        decoder_start_token_id=1, pad_token_id=0, bos_token_id=1, eos_token_id=2, init_std=0.2, suppress_tokens=None,
        begin_suppress_tokens=None))


def main():
    parser = argparse.ArgumentParser(description="Runs Whisper on a made tone.")
    parser.add_argument("--model", help="folder of a real model; default: a small random one")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--max-new-tokens", type=int, default=16)
    parser.add_argument("--device", help="default: the accelerator of this machine, else cpu")
    arguments = parser.parse_args()
    device = torch.accelerator.current_accelerator()
    device = torch.device(arguments.device or device or "cpu")
    logging.set_verbosity_error()
    logging.disable_progress_bar()

    if arguments.model:
        extractor = WhisperFeatureExtractor.from_pretrained(arguments.model)
        model = WhisperForConditionalGeneration.from_pretrained(arguments.model, device_map=device).eval()
    else:
        extractor = WhisperFeatureExtractor()
        model = small(extractor.feature_size).to(device).eval()
    features = extractor(tone(arguments.seconds), sampling_rate=RATE, return_tensors="pt").input_features.to(device)
    with torch.inference_mode():
        tokens = model.generate(features, max_new_tokens=arguments.max_new_tokens, do_sample=False)[0].tolist()

    if arguments.model:
        print(AutoTokenizer.from_pretrained(arguments.model).decode(tokens, skip_special_tokens=True))
    else:
        print("tokens:", *tokens)
    print(f"{device}: {arguments.seconds:g} s of sound, {features.shape[-1]} frames")


if __name__ == "__main__":
    main()
