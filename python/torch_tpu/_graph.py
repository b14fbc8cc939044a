# SPDX-License-Identifier: Apache-2.0
"""Passes over AOTAutograd's ATen graphs, before they are captured."""

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

_aten = torch.ops.aten
_COPIES = (_aten.lift_fresh_copy.default, _aten.clone.default, _aten.detach.default, _aten.alias.default)


def _device(node):
    value = node.meta.get("val")
    return value.device if isinstance(value, torch.Tensor) else None


def _devices_asked(node, value, copies):
    """The devices on which a constant of the CPU is really wanted: where it is copied to, or where a number of it is worked with. `copies`
    collects the nodes in between."""
    found = set()
    for user in node.users:
        if user.target in _COPIES:
            copies.append(user)
            found |= _devices_asked(user, value, copies)
        elif user.target is _aten._to_copy.default or value.dim() == 0:
            found.add(_device(user))
        else:
            found.add(value.device)
    return found


def _move(graph, node, value):
    """A constant made on the CPU and used on one device only, `torch.tensor(4).to(x.device)`, is moved there once."""
    copies = []
    asked = _devices_asked(node, value, copies)
    device = asked.pop() if len(asked) == 1 else None
    if device is None or device == value.device:
        return value
    for copy in reversed(copies):
        copy.replace_all_uses_with(node)
        graph.erase_node(copy)
    node.meta.pop("val", None)
    with unset_fake_temporarily():  # graphs are compiled under a fake mode
        return value.to(device)


def lift_constants(graph_module):
    """Makes the graph's constant tensors, `torch.tensor([-1])` in a model's code, its last inputs. Returns their values."""
    graph = graph_module.graph
    found = {}
    for node in list(graph.nodes):
        if node.op == "get_attr" and isinstance(getattr(graph_module, node.target, None), torch.Tensor):
            found.setdefault(node.target, []).append(node)
    last = next(reversed([n for n in graph.nodes if n.op == "placeholder"]), None)
    values = []
    for target, nodes in found.items():
        for other in nodes[1:]:
            other.replace_all_uses_with(nodes[0])
            graph.erase_node(other)
        values.append(_move(graph, nodes[0], getattr(graph_module, target)))
        with graph.inserting_after(last) if last is not None else graph.inserting_before(next(iter(graph.nodes))):
            last = graph.placeholder(f"constant_{target}")
        last.meta = dict(nodes[0].meta)
        nodes[0].replace_all_uses_with(last)
        graph.erase_node(nodes[0])
    if found:
        graph_module.recompile()
    return values
