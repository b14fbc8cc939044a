# SPDX-License-Identifier: Apache-2.0
"""PyTorch's lists of tensors (the _foreach_ databases) on tpu against the CPU, for opdb.py.

Kinds: forward, inplace, grad, each on PyTorch's samples. Every list has a tensor of another shape, as PyTorch's samples make them."""
import functools

import torch
from torch.testing._internal import common_methods_invocations as database
from torch.utils import _pytree as pytree

import opcheck

LISTS = ("foreach_unary_op_db", "foreach_binary_op_db", "foreach_pointwise_op_db", "foreach_reduce_op_db", "foreach_other_op_db")


@functools.cache
def entries():
    return {op.name: op for name in LISTS for op in getattr(database, name)}


def serves(op, dtype, kind):
    if kind == "grad":
        return op.supports_autograd and dtype in op.supported_backward_dtypes("cpu") and op.method_variant is not None
    return dtype in op.dtypes and (op.inplace_variant if kind == "inplace" else op.method_variant) is not None


def calls(op, dtype, limit, grad):
    """(input, args, kwargs) of the samples."""
    torch.manual_seed(0)
    found = list(op.sample_inputs("cpu", dtype, num_input_tensors=[3], allow_higher_dtype_scalars=True, requires_grad=grad))
    found += list(op.sample_zero_size_inputs("cpu", dtype))[:1]
    step = max(1, len(found) // limit) if limit else 1
    for s in found[::step]:
        if dtype == torch.float16 and any(isinstance(v, complex) for v in pytree.tree_leaves((s.args, s.kwargs))):
            continue  # complex32, which is no type of StableHLO
        yield s.input, s.args, {k: v for k, v in s.kwargs.items() if k not in ("is_fastpath", "disable_fastpath", "zero_size")}


def lacking(error):
    """The CPU has no kernel of this dtype: nothing to compare with."""
    return any(text in str(error) for text in ("not implemented for", "not supported for", "does not support"))


def compare(op, dtype, function, inputs, results):
    """Both devices' results, or the same class of error from both."""
    moved = opcheck.move(inputs)
    wide = opcheck.wider(inputs) if dtype in opcheck.HALF else None
    inputs = opcheck.copy_tree(inputs)
    try:
        want = results(inputs, function(inputs[0], *inputs[1], **inputs[2]))
    except Exception as error:  # noqa: BLE001
        if lacking(error):
            return
        try:
            results(moved, function(moved[0], *moved[1], **moved[2]))
        except type(error):
            return
        raise AssertionError(f"CPU raises {error!r}, tpu does not") from error
    got = function(moved[0], *moved[1], **moved[2])

    def exact():
        return results(wide, function(wide[0], *wide[1], **wide[2]))

    opcheck.same_or_truer(results(moved, got), want, exact, op, dtype)


def check_forward(op, dtype, limit):
    for inputs in calls(op, dtype, limit, False):
        compare(op, dtype, op.method_variant, inputs, lambda _, out: out)


def check_inplace(op, dtype, limit):
    for inputs in calls(op, dtype, limit, False):
        compare(op, dtype, op.inplace_variant, inputs, lambda given, _: given[0])


def check_grad(op, dtype, limit):
    def results(given, out):
        outs = [o for o in out if o.requires_grad]
        leaves = [t for t in pytree.tree_leaves(given) if isinstance(t, torch.Tensor) and t.requires_grad]
        if not outs:
            return []
        return [g for g in torch.autograd.grad(outs, leaves, [torch.ones_like(o) for o in outs], allow_unused=True) if g is not None]

    for inputs in calls(op, dtype, limit, True):
        compare(op, dtype, op.method_variant, inputs, results)


KINDS = {"forward": check_forward, "inplace": check_inplace, "grad": check_grad}
