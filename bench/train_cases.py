# SPDX-License-Identifier: Apache-2.0
"""Whole training steps, and a chain of small ops that is then read: `train_cases.py cpu|strict|fused [CASE...]` prints one JSON
object of milliseconds. jax_train.py does the same arithmetic in one jit. Started by bench.py."""

import json
import statistics
import sys
import time
import traceback

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, layers, width, heads, length, vocabulary):
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def gpt(device, layers, width, heads, length, batch, vocabulary):
    model = GPT(layers, width, heads, length, vocabulary)
    tokens = torch.randint(0, vocabulary, (batch, length + 1)).to(device)

    def loss(model):
        return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return model, loss


def mlp(device):
    x, y = torch.rand(32, 256).to(device), torch.rand(32, 256).to(device)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    return model, lambda model: F.mse_loss(model(x), y)


def cnn(device, layout):
    x = torch.rand(8, 3, 32, 32).to(device=device, memory_format=layout)
    y = torch.randint(0, 10, (8,)).to(device)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
                          nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(32, 10))
    return model.to(memory_format=layout), lambda model: F.cross_entropy(model(x), y)


MODELS = {
    "small_gpt": lambda device: gpt(device, 2, 64, 4, 16, 1, 512),
    "mlp": mlp,
    "gpt": lambda device: gpt(device, 4, 128, 4, 64, 4, 512),
    "cnn": lambda device: cnn(device, torch.contiguous_format),
    "cnn_last": lambda device: cnn(device, torch.channels_last),
}


def stepper(device, name):
    """A function that does one training step and returns the loss as a number."""
    torch.manual_seed(0)
    if name == "small_ops":
        return chain_stepper(device)
    model, loss_of = MODELS[name](device)
    model.to(device)
    # The CNN's forward and backward are measured without an optimizer.
    optimizer = None if name.startswith("cnn") else torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step():
        model.zero_grad()
        loss = loss_of(model)
        loss.backward()
        if optimizer is not None:
            optimizer.step()
        return loss.detach()

    return step


def warm(step):
    """Until nothing is compiled any more."""
    for _ in range(3):
        step().item()
    deadline, quiet = time.monotonic() + 120, 0
    while quiet < 3 and time.monotonic() < deadline:
        before = torch.tpu.stats()
        step().item()
        after = torch.tpu.stats()
        fresh = after["compiled"] + after["loaded"] - before["compiled"] - before["loaded"]
        waits = torch.tpu.get_eager_mode() == "fused" and after["fused_runs"] - before["fused_runs"] < 1
        quiet = 0 if fresh or waits else quiet + 1
        time.sleep(0.02 if waits else 0)


def step_ms(device, name, steps=20, rounds=7):
    """Milliseconds a training step, its loss read."""
    step = stepper(device, name)
    warm(step)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(steps):
            step().item()
        times.append((time.perf_counter() - start) / steps * 1e3)
    return statistics.median(times)


def chain_stepper(device):
    x, y = torch.rand(16, 16).to(device), torch.rand(16, 16).to(device)

    def step():
        z = x
        for _ in range(20):
            z = z + y
            z = z * 0.5
            z = z - y
        return z.sum()

    return step


def main():
    mode = sys.argv[1]
    device = torch.device("cpu" if mode == "cpu" else "tpu")
    if mode != "cpu":
        torch.tpu.set_eager_mode(mode)
    results = {}
    for name in sys.argv[2:] or ["small_ops", *MODELS]:
        try:
            results[name] = step_ms(device, name, steps=200 if name == "small_ops" else 20)
        except Exception:
            traceback.print_exc()
            results[name] = "error"
    print(json.dumps(results))


if __name__ == "__main__":
    main()
