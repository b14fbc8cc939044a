# SPDX-License-Identifier: Apache-2.0
"""Random chains of views on tpu against the CPU: each step makes a view, reads one, or writes through one.

    python tests/fuzz/fuzz_view.py            runs until stopped, printing seeds that fail
    python tests/fuzz/fuzz_view.py SEED       one seed, with its steps
"""
import random
import sys

import torch

DTYPES = [torch.float32, torch.int64, torch.int32, torch.bool, torch.uint8, torch.bfloat16, torch.complex64, torch.float64]
REINTERPRET = {1: [torch.uint8, torch.int8], 2: [torch.int16, torch.bfloat16], 4: [torch.int32], 8: [torch.int64]}


def fresh(rng, dtype, shape):
    n = 1
    for size in shape:
        n *= size
    values = torch.tensor([rng.randrange(0, 100) for _ in range(n)], dtype=torch.int64).reshape(shape)
    return values % 2 == 0 if dtype is torch.bool else values.to(dtype)


def _slice(rng, t):
    d = rng.randrange(t.dim())
    n = t.size(d)
    start = rng.randrange(n)
    stop, step = rng.randint(start + 1, n), rng.choice([1, 1, 2, 3])
    return lambda x: x[(slice(None),) * d + (slice(start, stop, step),)], f"slice({d}, {start}, {stop}, {step})"


def _select(rng, t):
    d = rng.randrange(t.dim())
    i = rng.randrange(-t.size(d), t.size(d))
    return lambda x: x.select(d, i), f"select({d}, {i})"


def _permute(rng, t):
    order = list(range(t.dim()))
    rng.shuffle(order)
    return lambda x: x.permute(order), f"permute({order})"


def _expand(rng, t):
    sizes = [rng.choice([2, 3]) if n == 1 else n for n in t.shape]
    lead = rng.choice([[], [2]])
    return lambda x: x.expand(lead + sizes), f"expand({lead + sizes})"


def _unfold(rng, t):
    d = rng.randrange(t.dim())
    size, step = rng.randint(1, t.size(d)), rng.randint(1, 3)
    return lambda x: x.unfold(d, size, step), f"unfold({d}, {size}, {step})"


def _diagonal(rng, t):
    if t.dim() < 2:
        return None
    a, c = rng.sample(range(t.dim()), 2)
    offset = rng.randint(-t.size(a) + 1, t.size(c) - 1)
    return lambda x: x.diagonal(offset, a, c), f"diagonal({offset}, {a}, {c})"


def _squeeze(rng, t):
    d = rng.randint(0, t.dim())
    return lambda x: x.unsqueeze(d), f"unsqueeze({d})"


def _view(rng, t):
    if not t.is_contiguous():
        return None
    n = t.numel()
    a = rng.choice([k for k in range(1, n + 1) if n % k == 0])
    return lambda x: x.view(a, n // a), f"view({a}, {n // a})"


def _dtype(rng, t):
    if t.dtype is torch.bool:
        return None
    size = rng.choice(list(REINTERPRET))
    dtype = rng.choice(REINTERPRET[size])
    try:
        t.view(dtype)
    except RuntimeError:
        return None
    if size == 2 and dtype is torch.bfloat16 and t.dtype is not torch.int16:
        return None  # random bytes as floats: NaN payloads are not kept
    return lambda x: x.view(dtype), f"view({dtype})"


def _as_strided(rng, t):
    held = t.untyped_storage().nbytes() // t.element_size()
    rank = rng.randint(0, 3)
    sizes = [rng.randint(1, 4) for _ in range(rank)]
    strides = [rng.randint(0, 6) for _ in range(rank)]
    span = sum((n - 1) * s for n, s in zip(sizes, strides))
    if span >= held:
        return None
    offset = rng.randint(0, held - 1 - span)
    return lambda x: x.as_strided(sizes, strides, offset), f"as_strided({sizes}, {strides}, {offset})"


STEPS = [_slice, _slice, _select, _permute, _expand, _unfold, _diagonal, _squeeze, _view, _dtype, _as_strided]


def overlaps(t):
    """More than one element at one address, as far as it matters for a write."""
    places = torch.zeros((), dtype=torch.int64)
    for n, s in zip(t.shape, t.stride()):
        places = places.unsqueeze(-1) + torch.arange(n) * s
    return places.unique().numel() != places.numel()


def bits(t):
    """As integers of the same size: NaN and -0 count."""
    t = t.detach().cpu().contiguous()
    t = torch.view_as_real(t) if t.is_complex() else t
    return t.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()])


def run(seed, log=lambda text: None):
    """One chain. Raises AssertionError at the first difference."""
    rng = random.Random(seed)
    dtype = rng.choice(DTYPES)
    shape = [rng.randint(1, 6) for _ in range(rng.randint(1, 4))]
    base = fresh(rng, dtype, shape)
    pairs = [(base, base.to("tpu"))]
    log(f"base {dtype} {shape}")
    for _ in range(rng.randint(4, 10)):
        cpu, tpu = rng.choice(pairs[-3:])
        action = rng.random()
        if action < 0.6 and cpu.dim() > 0 and cpu.numel() > 0:
            made = rng.choice(STEPS)(rng, cpu)
            if made is None:
                continue
            step, text = made
            log(text)
            view = step(cpu)
            if view.dim() > 6 or view.numel() > 4096 or view.numel() == 0:
                continue
            pairs.append((view, step(tpu)))
            assert pairs[-1][1].stride() == view.stride() and pairs[-1][1].storage_offset() == view.storage_offset(), text
        elif action < 0.85:
            if overlaps(cpu):
                continue
            value = fresh(rng, cpu.dtype, list(cpu.shape))
            log(f"write {tuple(cpu.shape)} {cpu.stride()} {cpu.storage_offset()} {cpu.dtype}")
            cpu.copy_(value)
            tpu.copy_(value)
        else:
            log(f"read {tuple(cpu.shape)} {cpu.stride()} {cpu.storage_offset()} {cpu.dtype}")
            # An op that only moves data: arithmetic on reinterpreted bytes would compare subnormal numbers.
            assert torch.equal(bits(torch.stack([tpu, tpu])), bits(torch.stack([cpu, cpu]))), "read differs"
    for k, (cpu, tpu) in enumerate(pairs):
        assert torch.equal(bits(tpu), bits(cpu)), f"view {k} differs: {tuple(cpu.shape)} {cpu.stride()} {cpu.storage_offset()} {cpu.dtype}"


def main():
    if len(sys.argv) > 1:
        run(int(sys.argv[1]), print)
        return
    seed = 0
    while True:
        try:
            run(seed)
        except Exception as e:
            print(f"seed {seed}: {type(e).__name__}: {' '.join(str(e).split())[:200]}", flush=True)
        seed += 1


if __name__ == "__main__":
    main()
