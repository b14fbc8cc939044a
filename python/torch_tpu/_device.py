# SPDX-License-Identifier: Apache-2.0
"""`torch.tpu`: the device module, in the words of torch.cuda. Nothing starts the runtime but what needs a device."""

import collections
import dataclasses

import torch

from torch_tpu import _C
from torch_tpu import _amp as amp
from torch_tpu import _memory as memory
from torch_tpu._explain import explain  # noqa: F401
from torch_tpu._index import index_of as _index_of
from torch_tpu._memory import (  # noqa: F401
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)
from torch_tpu._modes import Precision, eager_mode, get_eager_mode, precision, set_eager_mode  # noqa: F401
from torch_tpu._random import (  # noqa: F401
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)

# A device runs what it is given in one order, so PyTorch's own classes are all there is to streams and events.
Stream = torch.Stream
Event = torch.Event


def __getattr__(name):
    if name == "_initialized":  # torch.utils.checkpoint reads it
        return _C.started()
    if name.endswith("Storage"):
        from torch_tpu import _storage

        if name in _storage.CLASSES:
            return _storage.CLASSES[name]
    raise AttributeError(f"module 'torch.tpu' has no attribute {name!r}")


# ---- the runtime ------------------------------------------------------------------------------------------------------------
def is_available():
    """A plugin can be found: libtpu, or one that lets the CPU stand in. Does not start the runtime."""
    return _C.available()


def is_initialized():
    """The runtime has started."""
    return _C.started()


def init():
    """Starts the runtime (otherwise the first use of the device does)."""
    _lazy_init()


def _lazy_init():
    if _is_in_bad_fork():
        raise RuntimeError(
            "expected a process of its own, got a fork of one that had used tpu: the runtime does not survive a fork. "
            'Start processes with multiprocessing\'s method "spawn", or fork before the first use of tpu'
        )
    _C.start()


def _is_in_bad_fork():
    return _C.in_bad_fork()


def _is_compiled():
    return True


# ---- devices ----------------------------------------------------------------------------------------------------------------
def device_count():
    """Devices of this process; 0 if the runtime cannot start."""
    return _C.device_count()


def current_device():
    """The current device's index."""
    return _C.get_device()


def set_device(device):
    """Makes a device the current one (of this thread)."""
    _C.exchange_device(_index_of(device))


def _exchange_device(device):
    return _C.exchange_device(device)


def _maybe_exchange_device(device):
    return _C.exchange_device(device)


class device:
    """The current device within a `with` block; None and negative indexes change nothing."""

    def __init__(self, device):
        self.idx = -1 if device is None else device if isinstance(device, int) else _index_of(device)
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = _C.exchange_device(self.idx)
        return self

    def __exit__(self, *exc):
        _C.exchange_device(self.prev_idx)
        return False


class device_of(device):
    """The device of a tensor or storage within a `with` block; other devices' change nothing."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.device.type == "tpu" else -1)


_NAMES = {
    "TPU v5 lite": "TPU v5e",
    "TPU v5": "TPU v5p",
    "TPU v6 lite": "TPU v6e",
    "TPU7x": "TPU v7",
}


def get_device_name(device=None):
    """What the device is ("TPU v6e"). Starts the runtime."""
    info = _describe(device)
    if info["stand_in"]:
        return f"{info['device_kind']} (standing in for a TPU)"
    return _NAMES.get(info["device_kind"], info["device_kind"])


@dataclasses.dataclass(frozen=True)
class TpuProperties:
    """What is known of a device."""

    name: str
    total_memory: int
    multi_processor_count: int
    platform: str
    platform_version: str
    stand_in: bool


def get_device_properties(device=None):
    """Name, memory and platform of a device. Starts the runtime."""
    info = _describe(device)
    _, total = _C.mem_get_info(_index_of(device))
    return TpuProperties(
        name=get_device_name(device),
        total_memory=total,
        multi_processor_count=1,
        platform=info["platform"],
        platform_version=info["platform_version"],
        stand_in=info["stand_in"],
    )


def _describe(device):
    index, info = _index_of(device), _C.describe()
    if not 0 <= index < info["device_count"]:
        raise RuntimeError(f"expected a device index below {info['device_count']}, got {index}")
    return info


def get_device_capability(device=None):
    """What the device can do: {"supported_dtypes": set of dtypes}, as torch.accelerator says it."""
    return torch.accelerator.get_device_capability(_index_of(device))


def get_compute_capability(device=None):
    """An empty string: TPUs have no such number."""
    return ""


def synchronize(device=None):
    """Waits until everything launched on the device has run. Reports what failed meanwhile."""
    index = _index_of(device)
    if _C.started() or _C.in_bad_fork():
        _C.synchronize(index)


# ---- dtypes -----------------------------------------------------------------------------------------------------------------
def get_amp_supported_dtype():
    """Dtypes that torch.autocast("tpu") takes."""
    return [torch.bfloat16, torch.float16, torch.float32]


def is_bf16_supported(including_emulation=True):
    """bf16 is what TPUs compute in."""
    return True


def _dtypes():
    return torch.accelerator.get_device_capability(0)["supported_dtypes"]


# ---- streams ----------------------------------------------------------------------------------------------------------------
class StreamContext:
    """The current stream within a `with` block; None changes nothing."""

    def __init__(self, stream):
        self.stream = stream
        self._before = None

    def __enter__(self):
        if self.stream is not None:
            self._before = (torch.accelerator.current_stream(self.stream.device), _C.get_device())
            set_stream(self.stream)
        return self

    def __exit__(self, *exc):
        if self._before is not None:
            stream, index = self._before
            torch.accelerator.set_stream(stream)
            _C.exchange_device(index)
        return False


def stream(stream):
    """A `with` block in which `stream` is the current one."""
    return StreamContext(stream)


def set_stream(stream):
    """Makes a stream, and its device, the current one."""
    if stream is not None:
        torch.accelerator.set_stream(stream)


def current_stream(device=None):
    """The current stream of a device."""
    return torch.accelerator.current_stream(_index_of(device))


def default_stream(device=None):
    """The default stream of a device."""
    return torch.Stream(stream_id=0, device_index=_index_of(device), device_type=int(torch._C._autograd.DeviceType.PrivateUse1))


def is_current_stream_capturing():
    """There is no capturing of streams on this device."""
    return False


# ---- figures ----------------------------------------------------------------------------------------------------------------
def stats():
    """Counters since the start: calls, hits, compiled, loaded, launches, bytes moved, and so on."""
    return _C.stats()


def fallbacks():
    """Calls that ran on the CPU for want of a TPU form: {op: count}."""
    return _C.fallbacks()


CacheStats = collections.namedtuple("CacheStats", "num_cache_reqs num_cache_hits num_compiled num_loaded compile_seconds")


def _get_cache_stats():
    now = _C.stats()
    return CacheStats(now["calls"], now["hits"], now["compiled"], now["loaded"], now["compile_ns"] / 1e9)


def _get_cache_requests():
    return _C.stats()["calls"]


def _get_cache_hits():
    return _C.stats()["hits"]


def _get_cache_misses():
    now = _C.stats()
    return now["calls"] - now["hits"]


def _clear_cache():
    _C.memory_cache_clear()


def _hbm_usage_summary():
    return memory_summary()


def get_local_device_attributes(device=None):
    """PJRT's attributes of a device."""
    raise NotImplementedError("PJRT device attributes are not implemented; get_device_properties() is")
