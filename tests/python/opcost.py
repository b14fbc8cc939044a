# SPDX-License-Identifier: Apache-2.0
"""What a warm call of each entry of the operator database costs the host, and its launches: figures for the report of opdb.py.

Kind: cost. Nothing is asserted about time; a call whose launches outnumber its operators fails."""
import time

import torch
from torch.utils import _pytree as pytree

import opcheck
import opgrad

entries = opcheck.entries


def serves(op, dtype, kind):
    return opcheck.serves(op, dtype, "forward")


def fastest(call, rounds=7, calls=8):
    """Microseconds of a call, the least of a few rounds; the device is left to finish in between."""
    best = float("inf")
    for _ in range(rounds):
        torch.tpu.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    torch.tpu.synchronize()
    return best * 1e6


def check_cost(op, dtype, limit):
    found = opgrad.smallest(op, dtype, 1, requires_grad=False)
    if not found:
        return None
    first, args, kwargs = opcheck.move((found[0].input, found[0].args, found[0].kwargs), op)

    function = op.get_op()

    def call():
        return function(first, *args, **kwargs)

    with torch.no_grad():
        for _ in range(3):
            result = call()
        torch.tpu.synchronize()
        before, fallbacks = torch.tpu.stats(), sum(torch.tpu.fallbacks().values())
        call()
        after = torch.tpu.stats()
        launches, calls = (after[k] - before[k] for k in ("launches", "calls"))
        on_cpu = sum(torch.tpu.fallbacks().values()) - fallbacks
        assert launches <= calls + on_cpu, f"{launches} launches for {calls} operators"
        x, y = torch.ones(4, 4, device=opcheck.DEVICE), torch.ones(4, 4, device=opcheck.DEVICE)
        cost, plain = fastest(call), fastest(lambda: x + y)
    single = sum(isinstance(t, torch.Tensor) for t in pytree.tree_leaves(result)) == 1
    return {"us": round(cost, 1), "plain_us": round(plain, 1), "launches": launches, "calls": calls, "on_cpu": on_cpu, "single": single}


KINDS = {"cost": check_cost}
