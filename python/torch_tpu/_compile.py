# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(backend="tpu")`: AOTAutograd's graphs, each captured as one program.

The graph's code runs once on tensors that hold no data; its calls go through the same op entries as eager ones. Afterwards a call is C only.
A graph that touches the CPU (an optimizer's step counter kept there) or that cannot be captured runs call by call, as eager code does."""

import itertools
import logging
import warnings

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from torch_tpu import _C, _fake, _graph

_fake.register()
log = logging.getLogger(__name__)
_numbers = itertools.count()


def _on_cpu(graph_module):
    """True if a tensor of more than a number lives or is computed on the CPU."""
    for node in graph_module.graph.nodes:
        value = node.meta.get("val")
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, torch.Tensor) and item.device.type == "cpu":
                return True
    return False


def _written(graph_module):
    """Positions of inputs that the graph writes to."""
    places = {node: i for i, node in enumerate(n for n in graph_module.graph.nodes if n.op == "placeholder")}
    found = set()
    for node in graph_module.graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        for argument, given in zip(node.target._schema.arguments, node.args):
            if argument.alias_info is not None and argument.alias_info.is_write:
                for item in given if isinstance(given, (tuple, list)) else (given,):
                    if item in places:
                        found.add(places[item])
    return found


def compile_graph(graph_module, example_inputs):
    """One program for an ATen graph. Returns a function of a list of inputs, in AOTAutograd's boxed convention."""
    constants = _graph.lift_constants(graph_module)
    if not constants:
        return _compile_graph(graph_module, example_inputs)
    run = _compile_graph(graph_module, [*example_inputs, *constants])

    def call(inputs):
        return run([*inputs, *constants])

    return _boxed(call)


def _compile_graph(graph_module, example_inputs):
    name = f"graph_{next(_numbers)}"
    if _on_cpu(graph_module):
        log.info("%s computes on the CPU too: it runs call by call", name)
        return _boxed(lambda inputs: graph_module(*inputs))
    kinds = ["int" if not isinstance(x, torch.Tensor) else "tensor" for x in example_inputs]
    written = _written(graph_module)
    reads = [i for i, kind in enumerate(kinds) if kind == "tensor" and i not in written]
    writes = [i for i, kind in enumerate(kinds) if kind == "tensor" and i in written]
    ints = [i for i, kind in enumerate(kinds) if kind == "int"]
    total = len(kinds)

    def code(read, wrote, numbers):
        inputs = [None] * total
        for places, values in ((reads, read), (writes, wrote), (ints, numbers)):
            for place, value in zip(places, values, strict=True):
                inputs[place] = value
        return graph_module(*inputs)

    graph = _C.graph_create(name, code)
    state = {"eager": False}

    def call(inputs):
        if not state["eager"]:
            try:
                return _C.graph_call(graph, [inputs[i] for i in reads], [inputs[i] for i in writes],
                                     tuple(int(inputs[i]) for i in ints))
            except NotImplementedError as error:
                warnings.warn(f"a compiled graph cannot be one program and runs call by call: {error}", stacklevel=2)
                state["eager"] = True
        return graph_module(*inputs)

    return _boxed(call)


def _boxed(function):
    def call(inputs):
        results = function(inputs)
        inputs.clear()
        return results

    call._boxed_call = True
    return call


class TpuBackend:
    """The Dynamo backend as an object: `torch.compile(model, backend=TpuBackend())`."""

    def __init__(self):
        self._compile = aot_autograd(
            fw_compiler=compile_graph,
            bw_compiler=compile_graph,
            inference_compiler=compile_graph,
            partition_fn=min_cut_rematerialization_partition,
            keep_inference_input_mutations=True,
        )

    def __call__(self, graph_module, example_inputs, **kwargs):
        options = kwargs.pop("options", None)
        mode = kwargs.pop("mode", None)
        if options or kwargs:
            raise ValueError(f"backend 'tpu' knows no options, got {sorted({**(options or {}), **kwargs})}")
        if mode not in (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"):
            raise ValueError(f"expected one of torch.compile's modes, got {mode!r}")
        return self._compile(graph_module, example_inputs)


_backend = None


def tpu(graph_module, example_inputs, **kwargs):
    """Dynamo backend "tpu" (entry point group torch_dynamo_backends)."""
    global _backend
    if _backend is None:
        _backend = TpuBackend()
    return _backend(graph_module, example_inputs, **kwargs)
