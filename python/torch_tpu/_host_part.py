# SPDX-License-Identifier: Apache-2.0
"""Cuts what a graph computes on the CPU from what it computes on the device: the step count of an optimizer without `capturable`, a learning
rate kept as a tensor. The CPU's part runs first; its results are run-time inputs of the program, numbers sent together, one transfer a dtype."""

import torch
from torch import fx


def _tensors(node):
    value = node.meta.get("val")
    return [v for v in (value if isinstance(value, (tuple, list)) else (value,)) if isinstance(v, torch.Tensor)]


def _place(node, places):
    """Where a node is computed: "cpu", "tpu" or, for sizes, "both". None if the CPU would have to wait for the device."""
    before = {places.get(n) for n in node.all_input_nodes}
    devices = {t.device.type for t in _tensors(node)}
    if not devices and node.op != "placeholder" and before:
        return "both" if before == {"both"} else "cpu" if before <= {"cpu", "both"} else "tpu"
    if devices == {"cpu"}:
        return "cpu" if before <= {"cpu", "both"} else None
    return "cpu" if devices and "cpu" in devices else "tpu" if devices else "both"


def _places(graph):
    places = {}
    for node in graph.nodes:
        if node.op == "output":
            continue
        places[node] = _place(node, places)
        mixed = len({t.device.type for t in _tensors(node)}) > 1
        # a written tensor of the CPU whose new value comes from the device has no place either: its `copy_` reads the device
        if places[node] is None or mixed:
            return None
    return places


def _copy_part(graph, places, wanted):
    part, made = fx.Graph(), {}
    for node in graph.nodes:
        if places.get(node) in (wanted, "both"):
            made[node] = part.node_copy(node, lambda n: made[n])
    return part, made


def _crossing(graph, places):
    """Tensors of the CPU that the device's part reads."""
    found = {}
    for node in graph.nodes:
        if places.get(node) == "tpu":
            for n in node.all_input_nodes:
                if places[n] == "cpu":
                    found[n] = None
    return list(found)


class Cut:
    """A graph in two parts. `device_module` takes the device's inputs, then what `send` makes of the CPU's results."""

    def __init__(self, graph_module, places, crossing):
        graph = graph_module.graph
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        (output,) = (n for n in graph.nodes if n.op == "output")
        outputs = list(output.args[0]) if isinstance(output.args[0], (tuple, list)) else [output.args[0]]
        tensors = [t for n in places if places[n] == "tpu" for t in _tensors(n)]
        self.device = tensors[0].device
        self.numbers = {}  # by dtype: positions in `crossing`
        self.arrays = []
        for k, node in enumerate(crossing):
            if node.meta["val"].dim() == 0:
                self.numbers.setdefault(node.meta["val"].dtype, []).append(k)
            else:
                self.arrays.append(k)
        self.host_inputs = [i for i, n in enumerate(placeholders) if places[n] in ("cpu", "both")]
        self.device_inputs = [i for i, n in enumerate(placeholders) if places[n] in ("tpu", "both")]
        self.from_host = [i for i, n in enumerate(outputs) if isinstance(n, fx.Node) and places[n] == "cpu"]
        self.from_device = [i for i in range(len(outputs)) if i not in set(self.from_host)]
        self.crossing = len(crossing)
        self.host_module = self._host(graph_module, places, crossing, [outputs[i] for i in self.from_host])
        self.device_module = self._device(graph_module, places, crossing, [outputs[i] for i in self.from_device])

    def _host(self, graph_module, places, crossing, outputs):
        part, made = _copy_part(graph_module.graph, places, "cpu")
        sent = {}
        inputs = [n for n in part.nodes if n.op == "placeholder"]
        for node in crossing:  # an input may be written to later on: the device is to see it as it was
            sent[node] = made[node]
            if node.op == "placeholder":
                with part.inserting_after(inputs[-1]):
                    sent[node] = part.call_function(torch.ops.aten.clone.default, (made[node],))
        part.output(([sent[n] for n in crossing] + [made[n] for n in outputs],))
        part.lint()
        return fx.GraphModule(graph_module, part)

    def _device(self, graph_module, places, crossing, outputs):
        part, made = fx.Graph(), {}
        graph = graph_module.graph
        for node in graph.nodes:
            if node.op == "placeholder" and places[node] in ("tpu", "both"):
                made[node] = part.node_copy(node)
        packs = [part.placeholder(f"numbers_{i}") for i in range(len(self.numbers))]
        for k in self.arrays:
            made[crossing[k]] = part.placeholder(f"from_cpu_{k}")
        for pack, members in zip(packs, self.numbers.values(), strict=True):
            for row, k in enumerate(members):
                made[crossing[k]] = part.call_function(torch.ops.aten.select.int, (pack, 0, row))
        for node in graph.nodes:
            if node.op not in ("placeholder", "output") and places[node] in ("tpu", "both"):
                made[node] = part.node_copy(node, lambda n: made[n])
        part.output(tuple(made[n] if isinstance(n, fx.Node) else n for n in outputs))
        part.lint()
        return fx.GraphModule(graph_module, part)

    def send(self, values):
        packs = [torch.stack([values[k] for k in members]) for members in self.numbers.values()]
        return [t.to(self.device) for t in (*packs, *(values[k] for k in self.arrays))]

    def run(self, device_call, inputs):
        """One call, given a boxed function for the device's part."""
        host = self.host_module(*[inputs[i] for i in self.host_inputs])
        (results,) = host if isinstance(host, tuple) else (host,)
        sent = self.send(results[: self.crossing])
        merged = [None] * (len(self.from_host) + len(self.from_device))
        for i, value in zip(self.from_device, device_call([inputs[i] for i in self.device_inputs] + sent), strict=True):
            merged[i] = value
        for i, value in zip(self.from_host, results[self.crossing :], strict=True):
            merged[i] = value
        return merged


def cut(graph_module):
    """The graph in two parts, or None if it is of one device or cannot be cut."""
    places = _places(graph_module.graph)
    if places is None or not {"cpu", "tpu"} <= set(places.values()):
        return None
    return Cut(graph_module, places, _crossing(graph_module.graph, places))
