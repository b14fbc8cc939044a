# SPDX-License-Identifier: Apache-2.0
"""`torch.tpu.amp`: mixed precision under the names of torch.cuda.amp, for programs that write them. PyTorch's own way is
`torch.amp.autocast("tpu")`, which these are, with a warning that says so."""

import torch
from typing_extensions import deprecated

__all__ = ["autocast", "custom_bwd", "custom_fwd", "GradScaler"]


def _old(name, call):
    text = f"`torch.tpu.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}({call})` instead."
    return deprecated(text, category=FutureWarning)


class autocast(torch.amp.autocast_mode.autocast):
    """torch.amp.autocast("tpu", ...)."""

    @_old("autocast", "'tpu', args...")
    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        super().__init__("tpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """torch.amp.GradScaler("tpu", ...)."""

    @_old("GradScaler", "'tpu', args...")
    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        super().__init__("tpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


@_old("custom_fwd", "args..., device_type='tpu'")
def custom_fwd(fwd=None, *, cast_inputs=None):
    """torch.amp.custom_fwd with device_type="tpu"; with or without parentheses."""
    return torch.amp.custom_fwd(fwd, device_type="tpu", cast_inputs=cast_inputs)


@_old("custom_bwd", "args..., device_type='tpu'")
def custom_bwd(bwd):
    """torch.amp.custom_bwd with device_type="tpu"."""
    return torch.amp.custom_bwd(bwd, device_type="tpu")
