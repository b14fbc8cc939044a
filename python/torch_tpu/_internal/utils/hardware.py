# SPDX-License-Identifier: Apache-2.0
"""Which TPU is there (Helion and vLLM ask here)."""

import torch


def get_tpu_device_name():
    """ "TPU v6e", "TPU v7"; says so where the CPU stands in."""
    return torch.tpu.get_device_name()


def get_tpu_topology(world_size):
    """The mesh of chips for a job."""
    raise NotImplementedError(
        f"a topology for {world_size} processes cannot be chosen yet; set TORCH_TPU_TOPOLOGY (for example 2,2,1) in the launcher"
    )
