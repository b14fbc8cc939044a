# SPDX-License-Identifier: Apache-2.0
"""The process group "tpu_dist". Between processes gloo carries the tensors (shim/process_group.cpp), whatever the plugin."""

import datetime

import torch.distributed as dist

from torch_tpu import _C


def register():
    """Makes "tpu_dist" a backend of torch.distributed, and the default one for tensors on tpu."""
    if "tpu_dist" not in dist.Backend.backend_list:
        dist.Backend.register_backend("tpu_dist", _create, extended_api=True, devices=["tpu"])


def _create(options, backend_options=None):
    if not dist.is_gloo_available():
        raise RuntimeError("expected a PyTorch that was built with gloo for tpu_dist, got one without it")
    timeout = options.timeout
    if not isinstance(timeout, datetime.timedelta):
        timeout = datetime.timedelta(seconds=timeout)
    gloo = dist.ProcessGroupGloo(options.store, options.group_rank, options.group_size, timeout=timeout)
    return _C.process_group(gloo, round(timeout / datetime.timedelta(milliseconds=1)))
