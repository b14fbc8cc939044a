# SPDX-License-Identifier: Apache-2.0
"""Many mixed calls: memory, file handles and device memory stay as they are. TORCH_TPU_TEST_SOAK_CALLS=200000 for the long run."""

import os
import time

import pytest
import torch

CALLS = int(os.environ.get("TORCH_TPU_TEST_SOAK_CALLS", "20000"))


def resident_mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def work(x, index, calls):
    end = torch.tpu.stats()["calls"] + calls
    while torch.tpu.stats()["calls"] < end:
        for i in range(20):
            z = x + x
            z.mul_(0.5 + i)
            z[i % 8 : i % 8 + 4].t().contiguous()
            x[index]
            product = torch.softmax(z, -1) @ torch.rand(16, 16, device="tpu")
            z.t()[1].fill_(i)
            total = product.sum()
        total.item()


def warm_up(x, index):
    """Until a round makes no program and runs no trace call by call: in fused mode a worker compiles new traces meanwhile."""
    for _ in range(100):
        before = torch.tpu.stats()
        work(x, index, 2000)
        torch.tpu.synchronize()
        made = {name: count - before[name] for name, count in torch.tpu.stats().items()}
        if made["compiled"] + made["loaded"] == 0 and made["cuts"] == made["fused_runs"]:
            return
        time.sleep(0.05)
    pytest.fail(f"expected calls that repeat to settle, got this in the last of 100 rounds: {made}")


@pytest.mark.parametrize("mode", ["strict", "fused"])
def test_many_calls_leave_nothing_behind(mode):
    with torch.tpu.eager_mode(mode):
        x, index = torch.rand(16, 16, device="tpu"), torch.arange(8, device="tpu")
        warm_up(x, index)
        before = resident_mib(), len(os.listdir("/proc/self/fd")), torch.tpu.memory_allocated()
        work(x, index, CALLS)
        torch.tpu.synchronize()
        after = resident_mib(), len(os.listdir("/proc/self/fd")), torch.tpu.memory_allocated()
    assert after[0] - before[0] < 12
    assert after[1:] == before[1:]
