# SPDX-License-Identifier: Apache-2.0
"""Registers the device "tpu" with PyTorch. PyTorch calls `load` at the end of `import torch` (entry-point group
`torch.backends`); whoever calls it again gets the same result at no cost.

Nothing is started here, and nothing is raised: an exception would break `import torch` for everybody."""

import atexit
import functools
import os
import sys
import warnings

_done = False
error = None  # why the device is not there, if loading failed


def load():
    """Registers the device, once. With TORCH_TPU_PLUGIN=none PyTorch stays as it is without us."""
    global _done, error
    if _done:
        return
    _done = True
    if os.environ.get("TORCH_TPU_PLUGIN") == "none":
        return
    try:
        _register()
    except Exception as failure:
        error = failure
        warnings.warn(f"torch_tpu could not be loaded, there is no device tpu: {failure!r}", RuntimeWarning, stacklevel=2)


def _register():
    import torch

    from torch_tpu import _C, _plugin

    def find():
        _answer_dlpack()
        return _plugin.find()

    _C.set_finder(find)
    atexit.register(_C.await_backward)
    torch.utils.rename_privateuse1_backend("tpu")

    from torch_tpu import _backends, _device

    torch._register_device_module("tpu", _device)
    sys.modules["torch.tpu.memory"] = _device.memory
    sys.modules["torch.tpu.amp"] = _device.amp
    torch.backends.tpu = _backends
    sys.modules["torch.backends.tpu"] = _backends
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    if os.environ.get("TORCH_TPU_PLUGIN"):  # nobody will ask for a plugin
        _answer_dlpack()
    if _C.mode_get() == 2:  # started in fused mode by the environment: its cuts are set up in Python
        _device.set_eager_mode("fused")
    if torch.distributed.is_available():  # `import torch` has imported it already
        from torch_tpu import _distributed

        _distributed.register()
    for name, action in _AFTER_IMPORT.items():
        if name in sys.modules:
            action(sys.modules[name])
    sys.meta_path.insert(0, _Watcher([name for name in _AFTER_IMPORT if name not in sys.modules]))


@functools.cache
def _answer_dlpack():
    """`Tensor.__dlpack_device__` of PyTorch 2.13 knows "privateuse1" by that name only, so `torch.from_dlpack` refuses tpu. The method is
    changed when the device is first asked for: `import torch` alone changes nothing."""
    import torch

    others = torch.Tensor.__dlpack_device__

    @functools.wraps(others)
    def __dlpack_device__(self):
        if self.device.type != "tpu":
            return others(self)
        from torch.utils.dlpack import DLDeviceType

        return DLDeviceType.kDLExtDev, self.device.index

    torch.Tensor.__dlpack_device__ = __dlpack_device__


class _Watcher:
    """Changes to PyTorch's modules that can only be made once they are there, made right after their import. Importing them here would cost
    seconds in programs that never use them."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in self.names:
            return None
        import importlib.util

        self.names.remove(fullname)
        if not self.names:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _AfterImport(spec.loader)
        return spec


class _AfterImport:
    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        module.__spec__.loader = module.__loader__ = self.loader
        _AFTER_IMPORT[module.__name__](module)


def _register_dynamo_interface(module):
    """Makes `torch._dynamo.device_interface` use torch.tpu for "tpu" whenever it sets up its table: PyTorch has an interface for "tpu" of its
    own, and sets it up after any that was registered before."""
    from torch_tpu import _dynamo_interface

    _dynamo_interface.install(module)


def _choose_nested_attention(module):
    """Jagged nested tensors on tpu call one operator for attention. PyTorch pads other numbers of features than eights outside of it, which it
    cannot do for jagged tensors that need gradients: those go its way by strided nested tensors."""
    choose = module._select_sdp_backend

    def select(query, key, value, attn_mask, dropout, is_causal, enable_gqa):
        if query.device.type == "tpu" and attn_mask is None and dropout == 0.0 and query.size(-1) % 8 == 0 and value.size(-1) == query.size(-1):
            return module.SDPBackend.FLASH_ATTENTION
        return choose(query, key, value, attn_mask, dropout, is_causal, enable_gqa)

    module._select_sdp_backend = select


def _register_inductor_hook(module):
    """Sends graphs on the device from Inductor to backend "tpu"."""
    from torch_tpu import _inductor_hook

    _inductor_hook.install(module)


_AFTER_IMPORT = {
    "torch._dynamo.device_interface": _register_dynamo_interface,
    "torch._inductor.compile_fx": _register_inductor_hook,
    "torch.nested._internal.sdpa": _choose_nested_attention,
}
