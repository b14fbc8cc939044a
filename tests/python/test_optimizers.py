# SPDX-License-Identifier: Apache-2.0
"""Optimizers on tpu against the CPU: fused and foreach forms, a few steps each. tests/opdb.py has PyTorch's databases of optimizers
and lists."""

import pytest
import torch

OPTIMIZERS = [
    (torch.optim.AdamW, {"lr": 1e-2, "weight_decay": 0.1}),
    (torch.optim.AdamW, {"lr": 1e-2, "amsgrad": True, "maximize": True}),
    (torch.optim.Adam, {"lr": 1e-2, "weight_decay": 0.01}),
    (torch.optim.SGD, {"lr": 1e-2}),
    (torch.optim.SGD, {"lr": 1e-2, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (torch.optim.SGD, {"lr": 1e-2, "momentum": 0.9, "dampening": 0.1}),
    (torch.optim.Adagrad, {"lr": 1e-2, "lr_decay": 0.1, "weight_decay": 0.1}),
]


def steps(kind, options, device, form, dtype=torch.float32, count=4):
    torch.manual_seed(0)
    params = [torch.randn(s).to(dtype).to(device).requires_grad_() for s in [(3, 4), (5,), ()]]
    options = dict(options)
    optimizer = kind(params, **options, **{form: True})
    for step in range(count):
        for i, p in enumerate(params):
            p.grad = (torch.sin(torch.arange(p.numel()) + step + i).reshape(p.shape)).to(dtype).to(device)
        if step == 2:
            optimizer.param_groups[0]["lr"] = 3e-3
        optimizer.step()
    return [p.detach().cpu() for p in params], [
        v.cpu() for p in params for v in optimizer.state[p].values() if isinstance(v, torch.Tensor)
    ]


@pytest.mark.parametrize("form", ["fused", "foreach"])
@pytest.mark.parametrize("kind,options", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_optimizer(kind, options, form, dtype):
    got = steps(kind, options, "tpu", form, dtype)
    want = steps(kind, options, "cpu", form, dtype)
    # The CPU rounds alpha to bf16, we compute in f32.
    close = {} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 2e-2}
    torch.testing.assert_close(got, want, **close)


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_rate_in_tensor(kind):
    got = steps(kind, {"lr": torch.tensor(1e-2, device="tpu")}, "tpu", "fused", count=2)
    want = steps(kind, {"lr": torch.tensor(1e-2)}, "cpu", "fused", count=2)
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("bad", [False, True])
def test_gradient_scaler(bad):
    """One overflow skips the step and halves the scale; every second good step doubles it."""

    def run(device):
        p = torch.ones(3, device=device, requires_grad=True)
        optimizer = torch.optim.SGD([p], lr=0.1, fused=True)
        scaler = torch.amp.GradScaler(device, init_scale=8.0, growth_interval=2)
        for step in range(4):
            optimizer.zero_grad()
            loss = (p * (float("inf") if bad and step == 1 else step + 1)).sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        return p.detach().cpu(), scaler.get_scale()

    got, want = run("tpu"), run("cpu")
    torch.testing.assert_close(got[0], want[0])
    assert got[1] == want[1]
