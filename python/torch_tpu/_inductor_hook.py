# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(model)` with no backend named: graphs with a tensor on the device go to backend "tpu", all others to Inductor.

PyTorch has no means for it. Its default backend is one for all devices (`torch.compiler.set_default_backend`; to set another than Inductor would
change `mode` and `options` of models on the CPU too), and Inductor's table of devices takes code generators, not compilers. So the one function
through which every graph enters Inductor, `torch._inductor.compile_fx.compile_fx`, is wrapped, when that module is first imported. This is the
only place. A caller that brings its own `inner_compile` (AOTInductor) is left alone. Inductor's `mode` and `options` change nothing here."""

import functools

import torch


def _on_device(graph_module, example_inputs):
    if any(isinstance(x, torch.Tensor) and x.device.type == "tpu" for x in example_inputs):
        return True
    for node in graph_module.graph.nodes:
        value = node.meta.get("val", node.meta.get("example_value"))
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, torch.Tensor) and item.device.type == "tpu":
                return True
    return False


def install(module):
    """Wraps `module.compile_fx`; `module` is torch._inductor.compile_fx."""
    original = module.compile_fx

    @functools.wraps(original)
    def compile_fx(model_, example_inputs_, *args, **kwargs):
        own_compiler = bool(args) or "inner_compile" in kwargs or kwargs.get("decompositions") is not None
        if not own_compiler and isinstance(model_, torch.fx.GraphModule) and _on_device(model_, example_inputs_):
            from torch_tpu._compile import tpu

            return tpu(model_, example_inputs_)
        return original(model_, example_inputs_, *args, **kwargs)

    module.compile_fx = compile_fx
