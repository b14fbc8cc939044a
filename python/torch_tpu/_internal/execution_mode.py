# SPDX-License-Identifier: Apache-2.0
"""Eager modes by the names that other packages use; torch.tpu.set_eager_mode and torch.tpu.eager_mode are the plain ones.

`eager_mode` can be read, assigned, and called: reading gives the mode in force, calling it gives a `with` block."""

import enum
import sys
import types

from torch_tpu import _modes


class EagerMode(enum.Enum):
    DEFER_NEVER = "strict"
    DEFER_NEVER_AND_LAUNCH_BLOCKING = "debug"
    DEFER_AND_FUSE = "fused"

    def __call__(self, mode):
        return _modes.eager_mode(_name(mode))


def _name(mode):
    return EagerMode(mode).value


def get_eager_mode():
    """The mode in force."""
    return EagerMode(_modes.get_eager_mode())


class set_eager_mode:
    """Sets the mode at once; as a `with` block it restores the one before."""

    def __init__(self, mode):
        name = _name(mode)
        self._before = _modes.get_eager_mode()
        _modes.set_eager_mode(name)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        _modes.set_eager_mode(self._before)
        return False


def cpu_fallback_mode(enabled):
    """Whether ops without a TPU form run on the CPU is settled when the runtime starts."""
    raise NotImplementedError("set TORCH_TPU_FALLBACK to warn, silent or error before the first use of tpu")


class _Module(types.ModuleType):
    @property
    def eager_mode(self):
        return get_eager_mode()

    @eager_mode.setter
    def eager_mode(self, mode):
        _modes.set_eager_mode(_name(mode))


sys.modules[__name__].__class__ = _Module
