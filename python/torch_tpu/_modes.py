# SPDX-License-Identifier: Apache-2.0
"""Eager modes and the precision of products.

strict  each op is launched at once and runs while Python goes on, as on CUDA; the default
debug   the same, and waits for each op: a failure names the op and the line of Python"""

import contextlib
import enum

import torch

from torch_tpu import _C

_MODES = {"strict": 0, "debug": 1}


def _code(mode):
    if mode == "fused":
        raise NotImplementedError(
            'eager mode "fused" is not implemented yet (open issue: "fused eager mode"); use "strict", or torch.compile'
        )
    if mode not in _MODES:
        raise ValueError(f'expected eager mode "strict" or "debug", got {mode!r}')
    return _MODES[mode]


def get_eager_mode():
    """The mode in force: "strict" or "debug"."""
    return "debug" if _C.mode_get() == _MODES["debug"] else "strict"


def set_eager_mode(mode):
    """Sets the mode for the whole process."""
    _C.mode_set(_code(mode))


@contextlib.contextmanager
def eager_mode(mode):
    """The mode within a `with` block. It is the whole process's: other threads see it too."""
    code, before = _code(mode), _C.mode_get()
    _C.mode_set(code)
    try:
        yield
    finally:
        _C.mode_set(before)


class Precision(enum.Enum):
    """How f32 products are computed on the matrix units, by the name of torch.set_float32_matmul_precision."""

    DEFAULT = "medium"  # one pass: inputs rounded to bf16, sums in f32
    HIGH = "high"  # three passes
    HIGHEST = "highest"  # six passes: f32 throughout


@contextlib.contextmanager
def precision(mode):
    """The precision of f32 products within a `with` block: a Precision or its name. It is PyTorch's own setting,
    torch.set_float32_matmul_precision, for the time of the block."""
    if isinstance(mode, str):
        try:
            mode = Precision[mode.upper()]
        except KeyError:
            raise ValueError(f"expected a precision of {[p.name for p in Precision]}, got {mode!r}") from None
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(mode.value)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
