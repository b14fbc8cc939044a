# SPDX-License-Identifier: Apache-2.0
"""Measures one PyTorch device in a process of its own: `torch_cases.py DEVICE [CASE...]` prints one JSON object.
Started by bench.py. Times are medians, in microseconds a call unless the name says otherwise."""

import json
import os
import statistics
import sys
import time
import traceback

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples"))

REPEATS, CALLS = 15, 2000


def synchronize(device):
    if device.type != "cpu":
        torch.accelerator.synchronize()


def host_cost(device, step, calls=CALLS):
    """Microseconds that a call keeps the host, launches included; waiting for the last results is not."""
    times = []
    for _ in range(REPEATS):
        synchronize(device)
        start = time.perf_counter()
        for _ in range(calls):
            step()
        times.append((time.perf_counter() - start) / calls * 1e6)
    synchronize(device)
    return statistics.median(times)


def square(device):
    return torch.rand(16, 16, device=device), torch.rand(16, 16, device=device)


def add(device):
    x, y = square(device)
    return host_cost(device, lambda: x + y)


def add_in_place(device):
    x, y = square(device)
    return host_cost(device, lambda: x.add_(y))


def times_number(device):
    x, _ = square(device)
    return host_cost(device, lambda: x * 0.3)


def view(device):
    x, _ = square(device)
    return host_cost(device, lambda: x[3:9, 2:7].t() + 1)


def index(device):
    """16 rows of 64 by a tensor of indexes: on tpu each call also checks that they are in range."""
    x = torch.rand(64, 16, device=device)
    rows = torch.arange(0, 64, 4, device=device)
    return host_cost(device, lambda: torch.index_select(x, 0, rows))


def chain(device):
    """60 ops, each on the one before; microseconds an op."""
    x, y = square(device)

    def step():
        z = x
        for _ in range(20):
            z = z + y
            z = z * 0.5
            z = z - y
        return z

    return host_cost(device, step, CALLS // 40) / 60


def compiled():
    stats = torch.tpu.stats()
    return stats["compiled"] + stats["loaded"]


def new_programs(device):
    """Programs made, after a first round, when a number, an offset and a random seed change."""
    if device.type != "tpu":
        return None
    x, _ = square(device)

    def round_of(i):
        x * (0.1 + i)
        x.add_(1.0 / (i + 1))
        x[i % 8 : i % 8 + 4] + 1
        torch.manual_seed(i)
        torch.rand(16, 16, device=device)
        torch.nn.functional.dropout(x, 0.1 + 0.01 * i, training=True)

    round_of(0)
    synchronize(device)
    before = compiled()
    for i in range(1, 9):
        round_of(i)
    synchronize(device)
    return compiled() - before


def resident_mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def growth(device):
    """MiB of resident memory that 100,000 calls add (50,000 rounds of two)."""
    x, y = square(device)

    def calls(count):
        for i in range(count):
            z = x + y
            z.mul_(0.5)
            if i % 1000 == 0:
                synchronize(device)
        synchronize(device)

    calls(5000)
    before = resident_mib()
    calls(50000)
    return round(resident_mib() - before, 2)


_model = None


def model(device):
    global _model
    if _model is None:
        from chat import GGUF, weights
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        _model = AutoModelForCausalLM.from_pretrained(weights(), gguf_file=GGUF, dtype=torch.float32).to(device).eval()
    return _model


def prompt_ms(device):
    """Milliseconds for 256 tokens of SmolLM2-135M in f32."""
    tokens = torch.randint(100, 40000, (1, 256), generator=torch.Generator().manual_seed(0)).to(device)
    network = model(device)
    times = []
    with torch.inference_mode():
        for _ in range(2):
            network(input_ids=tokens, use_cache=False).logits[0, -1].argmax().item()
        for _ in range(5):
            start = time.perf_counter()
            network(input_ids=tokens, use_cache=False).logits[0, -1].argmax().item()
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def decode_ms(device):
    """Milliseconds a token with a fixed-size cache of 256, SmolLM2-135M in f32."""
    from transformers import StaticCache

    network = model(device)
    cache = StaticCache(config=network.config, max_cache_len=256)
    token = torch.tensor([[1]], device=device)
    times = []
    with torch.inference_mode():
        for i in range(24):
            start = time.perf_counter()
            position = torch.tensor([[i]], device=device)
            logits = network(input_ids=token, position_ids=position, past_key_values=cache, use_cache=True).logits
            token = logits[:, -1:].argmax(-1)
            token.item()
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times[8:])


CASES = [add, add_in_place, times_number, view, index, chain, new_programs, growth, prompt_ms, decode_ms]


def main():
    device = torch.device(sys.argv[1])
    chosen = sys.argv[2:]
    results = {"threads": torch.get_num_threads()}
    for case in CASES:
        if chosen and case.__name__ not in chosen:
            continue
        try:
            results[case.__name__] = case(device)
        except Exception:
            traceback.print_exc()
            results[case.__name__] = "error"
    print(json.dumps(results))


if __name__ == "__main__":
    main()
