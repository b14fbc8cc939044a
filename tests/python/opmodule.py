# SPDX-License-Identifier: Apache-2.0
"""PyTorch's module database (module_db) on tpu against the CPU, for opdb.py.

Kinds: eval and train (forward and all gradients, from one state_dict), moved (.to there and back, half and bfloat16 casts, state_dict
kept)."""
import copy
import functools

import torch
from torch.testing._internal.common_modules import module_db
from torch.utils import _pytree as pytree

import opcheck

# Modules that draw in training mode: shapes only.
DRAWS = {"AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout", "RReLU", "FractionalMaxPool2d",
         "FractionalMaxPool3d"}


class Named:
    """What opcheck.same wants of an entry."""

    def __init__(self, name, decorators=()):
        self.name, self.decorators = name, decorators


@functools.cache
def entries():
    return {info.name: info for info in module_db}


def serves(info, dtype, kind):
    return dtype in info.dtypes


def pairs(info, dtype, training, limit, grad=True):
    """(module on the CPU, forward arguments, the same on tpu, arguments moved)."""
    torch.manual_seed(0)
    found = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=grad, training=training)
    for m in found[:limit or None]:
        if m.forward_input is None:
            continue
        args, kwargs = m.constructor_input.args, dict(m.constructor_input.kwargs)
        torch.manual_seed(1)
        cpu = info.module_cls(*args, **kwargs).to(dtype).train(training)
        inputs = (m.forward_input.args, m.forward_input.kwargs)
        if info.is_lazy:
            with torch.no_grad():
                cpu(*inputs[0], **inputs[1])
        tpu = copy.deepcopy(cpu).to(opcheck.DEVICE)
        yield cpu, inputs, tpu, opcheck.move(inputs)


def outcome(module, inputs):
    """Output, gradients of inputs and parameters, buffers."""
    out = module(*inputs[0], **inputs[1])
    outs = [o for o in pytree.tree_leaves(out) if isinstance(o, torch.Tensor) and o.requires_grad]
    leaves = [t for t in pytree.tree_leaves(inputs) if isinstance(t, torch.Tensor) and t.requires_grad]
    leaves += [p for p in module.parameters() if p.requires_grad]
    grads = []
    if outs and leaves:
        weights = [torch.linspace(0.1, 1, o.numel(), dtype=o.real.dtype).reshape(o.shape).to(o.device).to(o.dtype) for o in outs]
        grads = list(torch.autograd.grad(outs, leaves, weights, allow_unused=True))
    return out, [g for g in grads if g is not None], dict(module.state_dict())


def check_mode(info, dtype, limit, training):
    named = Named("empty" if training and info.module_cls.__name__ in DRAWS else info.name, info.decorators)
    for cpu, inputs, tpu, moved in pairs(info, dtype, training, limit):
        want, got = outcome(cpu, inputs), outcome(tpu, moved)
        opcheck.same(got[0], want[0], named, dtype, strides=False)
        assert len(got[1]) == len(want[1]), f"{len(got[1])} gradients instead of {len(want[1])}"
        opcheck.same(got[1], want[1], named, dtype, strides=False)
        assert list(got[2]) == list(want[2]), f"state_dict has {list(got[2])} instead of {list(want[2])}"
        opcheck.same(list(got[2].values()), list(want[2].values()), named, dtype, strides=False)


def check_moved(info, dtype, limit):
    for cpu, inputs, tpu, moved in pairs(info, dtype, True, limit, grad=False):
        before = {k: v.clone() for k, v in cpu.state_dict().items()}
        for name, value in tpu.state_dict().items():
            assert value.device.type == opcheck.DEVICE, f"{name} on {value.device}"
            assert torch.equal(value.cpu(), before[name]), f"{name} changed by .to"
        home = copy.deepcopy(tpu).to("cpu")
        for name, value in home.state_dict().items():
            assert value.device.type == "cpu" and torch.equal(value, before[name]), f"{name} changed by .to('cpu')"
        fresh = copy.deepcopy(tpu)
        for p in fresh.parameters():
            p.data.zero_()
        fresh.load_state_dict(cpu.state_dict())
        for name, value in fresh.state_dict().items():
            assert torch.equal(value.cpu(), before[name]), f"{name} changed by load_state_dict"
        for half in (torch.float16, torch.bfloat16):
            cast = copy.deepcopy(tpu).to(half)
            for name, value in cast.state_dict().items():
                want = before[name].to(half) if before[name].is_floating_point() else before[name]
                assert torch.equal(value.cpu(), want), f"{name} changed by .to({half})"


KINDS = {
    "eval": functools.partial(check_mode, training=False),
    "train": functools.partial(check_mode, training=True),
    "moved": check_moved,
}
