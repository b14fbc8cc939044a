# SPDX-License-Identifier: Apache-2.0
"""Eager modes and the precision of products.

strict  each op is launched at once and runs while Python goes on, as on CUDA; the default
debug   the same, and waits for each op: a failure names the op and the line of Python
fused   ops are recorded and run many as one program, at the latest when a value is read or an optimizer's step ends"""

import atexit
import contextlib
import enum

import torch

from torch_tpu import _C

_MODES = {"strict": 0, "debug": 1, "fused": 2}
_cuts = None


def _code(mode):
    if mode not in _MODES:
        raise ValueError(f'expected eager mode "strict", "debug" or "fused", got {mode!r}')
    return _MODES[mode]


def _cut(optimizer, args, kwargs):
    if not torch.compiler.is_compiling():
        _C.flush()


def _set(code):
    global _cuts
    if code == _MODES["fused"] and _cuts is None:
        # The end of an optimizer's step is a cut: by PyTorch's own hook for all optimizers.
        from torch.optim.optimizer import register_optimizer_step_post_hook

        _cuts = register_optimizer_step_post_hook(_cut)
        # A worker may be compiling when Python ends; the plugin must not go under its feet.
        atexit.register(_C.memory_cache_clear)
    _C.mode_set(code)


def get_eager_mode():
    """The mode in force: "strict", "debug" or "fused"."""
    return next(name for name, code in _MODES.items() if code == _C.mode_get())


def set_eager_mode(mode):
    """Sets the mode for the whole process. What fused mode has recorded runs first."""
    _set(_code(mode))


@contextlib.contextmanager
def eager_mode(mode):
    """The mode within a `with` block. It is the whole process's: other threads see it too."""
    code, before = _code(mode), _C.mode_get()
    _set(code)
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
