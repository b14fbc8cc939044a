# SPDX-License-Identifier: Apache-2.0
"""PyTorch's decompositions, for ops that have no entry in the table. C++ calls `has` and `run` on a miss: `run` makes the
decomposition's calls on tensors without data, and they become one program.

torch._decomp and torch._refs are imported at first use: they take a second."""

import functools
import threading

import torch

_active = threading.local()


def _overload(op_name, overload):
    namespace, _, name = op_name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), name)
    return getattr(packet, overload or "default")


@functools.cache
def _tables():
    import torch._decomp
    import torch._refs  # noqa: F401  (adds itself to the table)

    return torch._decomp.decomposition_table, torch._decomp.core_aten_decompositions()


def _direct(op):
    for table in _tables():
        found = table.get(op)
        if found is not None:
            return found
    if torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd"):
        return op.decompose
    return None


def _functional(op):
    """The functional overload that an in-place or out= overload stands for, and the names of its out arguments."""
    schema = op._schema
    name = schema.name.partition("::")[2]
    outs = [a.name for a in schema.arguments if a.is_out]
    packet_name = name if outs else name.removesuffix("_")
    if not outs and packet_name == name:
        return None, outs
    packet = getattr(getattr(torch.ops, op.namespace), packet_name, None)
    if packet is None:
        return None, outs
    inputs = [(a.name, str(a.type)) for a in schema.arguments if not a.is_out]
    for candidate in packet.overloads():
        other = getattr(packet, candidate)
        if not other._schema.is_mutable and [(a.name, str(a.type)) for a in other._schema.arguments] == inputs:
            return other, outs
    return None, outs


@functools.cache
def _find(op_name, overload):
    op = _overload(op_name, overload)
    direct = _direct(op)
    if direct is not None:
        return direct
    functional, outs = _functional(op)
    inner = None if functional is None else _direct(functional)
    if inner is None:
        return None

    def into(targets, result):
        results = result if isinstance(result, (tuple, list)) else (result,)
        for target, value in zip(targets, results, strict=True):
            if target.shape != value.shape:
                target.resize_(value.shape)
            target.copy_(value)
        return targets[0] if len(targets) == 1 else tuple(targets)

    if outs:

        def with_out(*args, **kwargs):
            targets = [kwargs.pop(name) for name in outs]
            return into(targets, inner(*args, **kwargs))

        return with_out

    def in_place(self, *args, **kwargs):
        return into([self], inner(self, *args, **kwargs))

    return in_place


def has(op_name, overload):
    """PyTorch has a decomposition of the op ("aten::frac", "")."""
    return _find(op_name, overload) is not None


def _split(op, args):
    """Positional and keyword arguments, without those that have their defaults: decompositions often know fewer."""
    positional, keywords = [], {}
    for argument, value in zip(op._schema.arguments, args, strict=True):
        if argument.kwarg_only:
            if argument.is_out or not argument.has_default_value() or value != argument.default_value:
                keywords[argument.name] = value
        else:
            positional.append((argument, value))
    while positional:
        argument, value = positional[-1]
        if not argument.has_default_value() or isinstance(value, torch.Tensor) or value != argument.default_value:
            break
        positional.pop()
    return [value for _, value in positional], keywords


def run(op_name, overload, args, kwargs=None):
    """Calls the decomposition below autograd. `args` are all of the schema's arguments in order, if `kwargs` is None."""
    found = _find(op_name, overload)
    if found is None:
        raise NotImplementedError(f"PyTorch has no decomposition of {op_name}.{overload or 'default'}")
    if kwargs is None:
        args, kwargs = _split(_overload(op_name, overload), args)
    running = _active.__dict__.setdefault("ops", set())
    key = (op_name, overload)
    if key in running:
        raise NotImplementedError(f"PyTorch's decomposition of {op_name}.{overload or 'default'} calls itself")
    running.add(key)
    try:
        with torch.no_grad(), torch._C._AutoDispatchBelowAutograd():
            return found(*args, **kwargs)
    finally:
        running.discard(key)
