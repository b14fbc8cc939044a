# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(backend="tpu")`: AOTAutograd's graphs, each captured as one program.

The graph's code runs once on tensors that hold no data; its calls go through the same op entries as eager ones. Afterwards a call is C only.
What a graph computes on the CPU before the device needs it (an optimizer's step count) runs there first, see _host_part.py. A graph in which
the CPU waits for the device, or that cannot be captured, runs call by call, as eager code does."""

import functools
import itertools
import logging
import warnings

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from torch_tpu import _C, _fake, _graph, _host_part

_fake.register()
log = logging.getLogger(__name__)
_numbers = itertools.count()


def _on_cpu(graph_module):
    """True if a tensor lives or is computed on the CPU."""
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


def compile_graph(graph_module, example_inputs, xla_options=""):
    """One program for an ATen graph. Returns a function of a list of inputs, in AOTAutograd's boxed convention."""
    constants = _graph.lift_constants(graph_module)
    if not constants:
        return _compile_graph(graph_module, example_inputs, xla_options)
    run = _compile_graph(graph_module, [*example_inputs, *constants], xla_options)

    def call(inputs):
        return run([*inputs, *constants])

    return _boxed(call)


def _compile_graph(graph_module, example_inputs, xla_options):
    name = f"graph_{next(_numbers)}"
    if _on_cpu(graph_module):
        parts = _host_part.cut(graph_module)
        if parts is not None:
            sent = [torch.empty(0)] * (len(parts.numbers) + len(parts.arrays))  # only which inputs are tensors matters
            examples = [example_inputs[i] for i in parts.device_inputs] + sent
            device_call = _compile_graph(parts.device_module, examples, xla_options)
            return _boxed(lambda inputs: parts.run(device_call, inputs))
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

    graph = _C.graph_create(name, code, xla_options)
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


MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def _xla_options(options):
    """{"xla_name": value} as the text that the compiler is given."""
    wrong = [name for name in options if not str(name).startswith("xla_")]
    if wrong:
        raise ValueError(f"expected XLA options, whose names start with 'xla_', for backend 'tpu', got {', '.join(map(repr, wrong))}")
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    for name, text in texts.items():
        if not text or any(c.isspace() for c in text):
            raise ValueError(f"expected a number, a word or a bool for option {name!r}, got {options[name]!r}")
    return " ".join(f"{name}={text}" for name, text in sorted(texts.items()))


class TpuBackend:
    """The Dynamo backend as an object: `torch.compile(model, backend=TpuBackend())`. `options` are XLA's by name, a dictionary; those that
    `torch.compile(options=...)` gives go before them. All modes compile the same way: XLA does not time variants."""

    def __init__(self, options=None):
        self._options = dict(options or {})
        _xla_options(self._options)  # raises at once

    def __call__(self, graph_module, example_inputs, options=None, mode=None, **unknown):
        if unknown:
            raise ValueError(f"expected options= and mode= only for backend 'tpu', got {sorted(unknown)}")
        if mode not in MODES:
            raise ValueError(f"expected one of torch.compile's modes {MODES[1:]}, got {mode!r}")
        return _aot(_xla_options({**self._options, **(options or {})}))(graph_module, example_inputs)


@functools.cache
def _aot(xla_options):
    compiler = functools.partial(compile_graph, xla_options=xla_options)
    return aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=compiler,
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )


_backend = TpuBackend()


def tpu(graph_module, example_inputs, **kwargs):
    """Dynamo backend "tpu" (entry point group torch_dynamo_backends)."""
    return _backend(graph_module, example_inputs, **kwargs)
