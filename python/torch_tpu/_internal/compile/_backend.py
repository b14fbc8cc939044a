# SPDX-License-Identifier: Apache-2.0
from torch._dynamo.backends.registry import list_backends, register_backend

from torch_tpu._compile import TpuBackend, tpu  # noqa: F401

if "tpu" not in list_backends(None):
    register_backend(name="tpu")(tpu)
