# SPDX-License-Identifier: Apache-2.0
"""Many mixed calls: memory, file handles and device memory stay as they are. TORCH_TPU_TEST_SOAK_CALLS=200000 for the long run."""

import os

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


@pytest.mark.parametrize("mode", ["strict", "fused"])
def test_many_calls_leave_nothing_behind(mode):
    with torch.tpu.eager_mode(mode):
        x, index = torch.rand(16, 16, device="tpu"), torch.arange(8, device="tpu")
        work(x, index, 10000)
        torch.tpu.synchronize()
        before = resident_mib(), len(os.listdir("/proc/self/fd")), torch.tpu.memory_allocated()
        work(x, index, CALLS)
        torch.tpu.synchronize()
        after = resident_mib(), len(os.listdir("/proc/self/fd")), torch.tpu.memory_allocated()
    assert after[0] - before[0] < 12
    assert after[1] == before[1]
    # The device keeps numbers that calls have used, 4096 of them at most, of 8 bytes; a tensor left behind in each round is a megabyte.
    assert after[2] - before[2] <= 4096 * 8
