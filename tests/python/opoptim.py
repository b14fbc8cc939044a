# SPDX-License-Identifier: Apache-2.0
"""PyTorch's optimizer database (optim_db) on tpu against the CPU, for opdb.py: each of an entry's configurations, a few steps.

Kinds: single (tensor by tensor), foreach, fused, capturable (steps counted on the device), scaler (under GradScaler, one overflow)."""
import copy
import functools

import torch
from torch.testing._internal.common_optimizers import optim_db

import opcheck
import opmodule

FLAGS = {"single": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}, "capturable": {"foreach": False},
         "scaler": {}}


@functools.cache
def entries():
    return {info.optim_cls.__name__: info for info in optim_db}


def serves(info, dtype, kind):
    if kind in ("foreach", "fused"):
        return kind in info.supported_impls
    return kind != "capturable" or info.has_capturable_arg


def configurations(info, kind, limit):
    if kind != "capturable":
        found = [c.kwargs for c in info.optim_inputs_func(device="cpu")]
    else:
        found = [c.kwargs for c in info.optim_inputs_func(device="cuda") if c.kwargs.get("capturable")]
    return found[:limit or None]


def run(info, kwargs, device, dtype, kind, exact=False):
    torch.manual_seed(0)
    shapes = [(3, 4), (4, 2)] if info.optim_cls is torch.optim.Muon else [(3, 4), (5,), (), (2, 0)]
    wide = torch.float64 if exact else dtype
    params = [torch.randn(s).to(dtype).to(wide).to(device).requires_grad_() for s in shapes]
    kwargs = dict(copy.deepcopy(kwargs), **(FLAGS[kind] if set(FLAGS[kind]) <= set(info.supported_impls) else {}))
    if kind == "capturable":
        kwargs["capturable"] = device != "cpu"
        for name in ("lr", "betas"):
            if device != "cpu" and name in kwargs:
                kwargs[name] = opcheck.move(kwargs[name])
    optimizer = info.optim_cls(params, **kwargs)
    scaler = torch.amp.GradScaler(device, init_scale=8.0, growth_interval=2) if kind == "scaler" else None

    def loss(step):
        total = 0
        for i, p in enumerate(params):
            w = torch.sin(torch.arange(p.numel()) * 0.7 + step + i).reshape(p.shape).to(dtype).to(wide).to(device)
            total = total + (p * w + p * p * 0.5).sum()
        if kind == "scaler" and step == 1:
            total = total * float("inf")
        return total

    for step in range(3):
        def closure(step=step):
            optimizer.zero_grad()
            value = loss(step)
            (scaler.scale(value) if scaler else value).backward()
            if info.only_supports_sparse_grads:
                for p in params:
                    p.grad = p.grad.to_sparse()
            return value

        if info.step_requires_closure:
            optimizer.step(closure)
            continue
        closure()
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
    state = [v for p in params for v in optimizer.state[p].values() if isinstance(v, torch.Tensor) and v.dim()]
    return [p.detach() for p in params] + state + ([scaler.get_scale()] if scaler else [])


def check(info, dtype, limit, kind):
    if kind == "scaler" and info.step_requires_closure:
        return  # GradScaler refuses closures
    named = opmodule.Named(info.optim_cls.__name__)
    for kwargs in configurations(info, kind, limit):
        try:
            want = run(info, kwargs, "cpu", dtype, kind)
        except Exception as error:  # noqa: BLE001
            try:
                run(info, kwargs, opcheck.DEVICE, dtype, kind)
            except type(error):
                continue
            raise AssertionError(f"CPU raises {error!r}, tpu does not") from error
        got = run(info, kwargs, opcheck.DEVICE, dtype, kind)
        exact = functools.partial(run, info, kwargs, "cpu", dtype, kind, exact=True)
        opcheck.same_or_truer(got, want, exact, named, dtype, strides=False)


KINDS = {kind: functools.partial(check, kind=kind) for kind in FLAGS}
