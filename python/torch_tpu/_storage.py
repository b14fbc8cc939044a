# SPDX-License-Identifier: Apache-2.0
"""The typed storages of old, `torch.tpu.FloatStorage` and so on. PyTorch asks the device's module for them by these names."""

import torch
from torch.storage import _dtype_to_storage_type_map, _LegacyStorage


class _TpuLegacyStorage(_LegacyStorage):
    @classmethod
    def from_buffer(cls, *args, **kwargs):
        raise RuntimeError("from_buffer: Not available for tpu storage")

    @classmethod
    def _new_with_weak_ptr(cls, *args, **kwargs):
        raise RuntimeError("_new_with_weak_ptr: Not available for tpu storage")

    @classmethod
    def _new_shared_filename(cls, manager, obj, size, *, device=None, dtype=None):
        raise RuntimeError("_new_shared_filename: Not available for tpu storage")


def _make(name, dtype):
    made = type(name, (_TpuLegacyStorage,), {"__module__": "torch.tpu", "dtype": dtype, "_dtype": dtype})
    torch._storage_classes.add(made)
    return made


CLASSES = {name: _make(name, dtype) for dtype, name in _dtype_to_storage_type_map().items() if not name.startswith("Q")}
