# SPDX-License-Identifier: Apache-2.0
"""`torch.tpu.memory`: device memory in the words of torch.cuda.memory. Counted by us, for each
device, where memory is taken and given back."""

import collections

import torch

from torch_tpu import _C
from torch_tpu._index import index_of

__all__ = [
    "empty_cache",
    "host_memory_stats",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
]


def memory_stats_as_nested_dict(device=None):
    """The allocator's figures as nested dictionaries; empty before the runtime has started."""
    index = index_of(device)
    return torch._C._accelerator_getDeviceStats(index) if _C.started() else {}


def memory_stats(device=None):
    """The allocator's figures under torch.cuda's keys ("allocated_bytes.all.current"); empty before the runtime has started."""
    flat = []

    def flatten(prefix, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                flatten(f"{prefix}.{key}" if prefix else str(key), inner)
        else:
            flat.append((prefix, value))

    flatten("", memory_stats_as_nested_dict(device))
    return collections.OrderedDict(sorted(flat))


def memory_allocated(device=None):
    """Bytes of device memory held by tensors."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device=None):
    """The most bytes held at once since the start or the last reset_peak_memory_stats."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device=None):
    """Bytes taken from the device. Nothing is kept back, so these are the bytes held by tensors."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device=None):
    """The most bytes taken at once."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def mem_get_info(device=None):
    """(free, total) bytes of the device; host memory where the CPU stands in. Starts the runtime."""
    return _C.mem_get_info(index_of(device))


def reset_peak_memory_stats(device=None):
    """The peaks start again from what is held now."""
    index = index_of(device)
    if _C.started():
        torch._C._accelerator_resetPeakStats(index)


def reset_accumulated_memory_stats(device=None):
    """The sums of what was taken and given back start again from zero."""
    index = index_of(device)
    if _C.started():
        torch._C._accelerator_resetAccumulatedStats(index)


def empty_cache():
    """Gives cached memory back. There is none: memory goes back as soon as its last holder is gone."""
    if _C.started():
        torch._C._accelerator_emptyCache()


def host_memory_stats():
    """The pinned-memory allocator's figures are not readable from Python in this version of PyTorch."""
    raise NotImplementedError("statistics of pinned host memory are not implemented for tpu")


def memory_summary(device=None, abbreviated=False):
    """A few lines of text: what is held, the peak, what is free."""
    stats = memory_stats(device)
    free, total = mem_get_info(device)
    rows = [
        ("allocated", stats.get("allocated_bytes.all.current", 0)),
        ("peak", stats.get("allocated_bytes.all.peak", 0)),
        ("free", free),
        ("total", total),
    ]
    return "\n".join(f"{name:<10}{size / 2**20:>14.1f} MiB" for name, size in rows)


def _snapshot(device=None, augment_with_fx_traces=False):
    raise NotImplementedError("memory snapshots are not implemented for tpu; memory_stats() and memory_summary() are")


def _record_memory_history(enabled="all", *args, **kwargs):
    if enabled is None:  # switching it off is always fine
        return
    raise NotImplementedError("recording the history of device memory is not implemented for tpu")


def _dump_snapshot(filename="dump_snapshot.pickle"):
    _snapshot()
