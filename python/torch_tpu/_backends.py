# SPDX-License-Identifier: Apache-2.0
"""`torch.backends.tpu`: present even on machines with no TPU (Hugging Face kernels looks for it)."""

import sys
import types

from torch_tpu import _C

version = None


def is_built():
    """This build of PyTorch has the device: always true here."""
    return True


def is_available():
    """A plugin can be found. Does not start the runtime."""
    return _C.available()


class _Module(types.ModuleType):
    @property
    def allow_excess_precision(self):
        """Whether XLA may keep more precision than the program's types ask for. It may not."""
        return False

    @allow_excess_precision.setter
    def allow_excess_precision(self, value):
        if value:
            raise NotImplementedError(
                "allow_excess_precision=True is not implemented; set TORCH_TPU_INTERNAL_XLA_OPTIONS="
                "xla_allow_excess_precision=true before the first use of the device"
            )


sys.modules[__name__].__class__ = _Module
