# SPDX-License-Identifier: Apache-2.0
"""PyTorch on TPUs: importing torch is enough, this package is loaded by it. `torch.tpu` is torch_tpu._device."""

import torch as _torch  # noqa: F401  (loads us, unless the user turned that off)

from torch_tpu import _loader

__version__ = "0.1.0"

_loader.load()
