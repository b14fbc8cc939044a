# SPDX-License-Identifier: Apache-2.0
"""Which device is meant: None, an index, a string or a torch.device, as torch.cuda's functions take them."""

import torch

from torch_tpu import _C


def index_of(device=None):
    """The index that is meant; the current device's for None and for "tpu" without an index."""
    if device is None:
        return _C.get_device()
    if isinstance(device, bool):
        raise TypeError(f"expected a device, got {device!r}")
    if isinstance(device, int):
        return device if device >= 0 else _C.get_device()
    if isinstance(device, str):
        device = torch.device(device)
    if not isinstance(device, torch.device):
        raise TypeError(f"expected a device, got {device!r}")
    if device.type != "tpu":
        raise ValueError(f"expected a tpu device, got {device}")
    return _C.get_device() if device.index is None else device.index
