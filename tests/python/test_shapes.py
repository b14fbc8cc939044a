# SPDX-License-Identifier: Apache-2.0
"""Sizes that change (TORCH_TPU_DYNAMIC_SHAPES=1): values as on the CPU at every size past two bounds, and no program a size."""

import os
import subprocess
import sys

import pytest
import torch

F = torch.nn.functional
SIZES = [5, 7, 9, 10, 11, 13, 15, 1, 2, 3, 16, 17, 19, 21, 23, 24, 25, 30]


def gradients(function):
    def run(*tensors):
        leaves = [t.detach().requires_grad_(t.is_floating_point()) for t in tensors]
        function(*leaves).backward()
        return torch.cat([t.grad.reshape(-1) for t in leaves if t.grad is not None])

    return run


def written(a):
    b = a * 2
    b[:, 1:].add_(1)
    b[-1].mul_(3)
    return b


def scattered(a, i):
    z = torch.zeros(a.shape[0] + 1, 4, device=a.device)
    z.index_add_(0, i, a)
    return z.gather(0, i[:, None].expand(-1, 4))


rand = torch.randn
CASES = {
    "pointwise and sum": (lambda a: (a.exp() + 1).sum(-1) * 2, lambda n: (rand(n, 4),)),
    "softmax of products": (lambda a: torch.softmax((a @ a.T) @ a, -1).sum(), lambda n: (rand(n, 6),)),
    "layer norm": (lambda a: F.layer_norm(a + 1, (6,)).mean(0), lambda n: (rand(n, 6),)),
    "cat and slice": (lambda a: torch.cat([a * 2, a + 1], 0)[1:].sum(0), lambda n: (rand(n, 6),)),
    "linear": (lambda a, w: F.linear(a + 1, w).relu().mean(1), lambda n: (rand(2, n, 6), rand(5, 6))),
    "embedding": (lambda i, w: F.embedding(i + 1, w).sum(1), lambda n: (torch.randint(0, 7, (2, n)), rand(9, 3))),
    "writes to views": (written, lambda n: (rand(n, 4),)),
    "scatter and gather": (scattered, lambda n: (rand(n, 4), torch.randint(0, n, (n,)))),
    "flip and step": (lambda a: a.exp().flip(0)[::2], lambda n: (rand(n, 4),)),
    "extremes": (lambda a: (a * 2).argmax(0).float() + a.max(0)[0], lambda n: (rand(n, 4),)),
    "moments": (lambda a: torch.cat([(a + 1).var(0, correction=0), a.mean(0)]), lambda n: (rand(n, 4),)),
    "mlp, gradients": (
        gradients(lambda a, w: F.linear(F.gelu(F.linear(a, w)), w.T).pow(2).mean()),
        lambda n: (rand(n, 4), rand(6, 4)),
    ),
    "softmax, gradients": (gradients(lambda a: torch.softmax(a @ a.T, -1).square().sum()), lambda n: (rand(n, 4),)),
    "cross entropy, gradients": (
        gradients(lambda a: F.cross_entropy(a, torch.arange(a.shape[0], device=a.device) % 5)),
        lambda n: (rand(n, 5),),
    ),
    "attention over a growing cache": (
        lambda q, k: F.scaled_dot_product_attention(q * 1, k * 2, k * 3),
        lambda n: (rand(2, 2, 1, 4), rand(2, 2, n, 4)),
    ),
    "merged dimensions": (
        lambda k: torch.cat([k + 1, k[:, :, -1:]], 2).transpose(1, 2).reshape(1, -1, 8).sum(2),
        lambda n: (rand(1, 2, n, 4),),
    ),
    "pad and sums": (lambda a: F.pad(a + 1, (0, 0, 1, 2)).cumsum(0), lambda n: (rand(n, 4),)),
    "triangles": (lambda a: (a + 1).tril().T.contiguous().view(-1)[1:], lambda n: (rand(n, n),)),
}


@pytest.fixture(scope="module")
def answers():
    """This file runs itself with the knob on: name -> its line."""
    environment = {**os.environ, "TORCH_TPU_DYNAMIC_SHAPES": "1"}
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", CASES)
def test_values_at_every_size(answers, name):
    assert answers[name] == "equal"


def test_growing_lengths_compile_by_bound_and_not_by_size(answers):
    # 60 lengths from 3 to 62 cross the bounds 4 6 8 12 16 24 32 48 64.
    compiled, launches = map(int, answers["growing"].split())
    assert compiled <= 4 * 2 * 9  # 4 ops a step, at most 2 programs an op and bound; one a size would be 240
    assert launches == 4 * 60


def check(name, function, make):
    torch.manual_seed(0)
    for n in SIZES:
        inputs = make(n)
        want = function(*inputs)
        got = function(*[t.to("tpu") for t in inputs]).cpu()
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5, msg=lambda text, n=n: f"size {n}: {text}")
    print(f"{name}: equal")


def grow():
    before = torch.tpu.stats()
    for n in range(3, 63):
        a = rand(n, 8)
        want = (torch.softmax(a @ a.T, -1) @ a).sum()
        on_tpu = a.to("tpu")
        torch.testing.assert_close((torch.softmax(on_tpu @ on_tpu.T, -1) @ on_tpu).sum().cpu(), want, rtol=1e-4, atol=1e-4)
    after = torch.tpu.stats()
    print(f"growing: {after['compiled'] + after['loaded'] - before['compiled'] - before['loaded']} {after['launches'] - before['launches']}")


if __name__ == "__main__":
    grow()
    for case_name, (case, inputs_of) in CASES.items():
        try:
            check(case_name, case, inputs_of)
        except Exception as error:
            print(f"{case_name}: {str(error).splitlines()[0]}")
