# SPDX-License-Identifier: Apache-2.0
"""torch.histc of integers, which PyTorch counts on accelerators only (routers of expert models use it): exact counts in the input's dtype."""

import pytest
import torch


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("options", [dict(bins=4, min=0, max=3), dict(bins=3, min=1, max=7), dict(bins=5), dict(bins=4, min=0, max=4)])
def test_integers_are_counted_on_the_device(dtype, options):
    x = torch.tensor([[0, 1, 1, 3], [7, 2, 2, 100]], dtype=dtype)
    before = dict(torch.tpu.fallbacks())
    got = torch.histc(x.to("tpu").t(), **options)
    assert got.dtype == dtype and torch.tpu.fallbacks() == before
    assert got.tolist() == torch.histc(x.double(), **options).tolist()


def test_large_integers_do_not_lose_their_last_digits():
    base = 2**40
    x = torch.tensor([base, base + 1, base + 1, base + 3], device="tpu")
    assert torch.histc(x, bins=4, min=base, max=base + 3).tolist() == [1, 2, 0, 1]
    assert torch.histc(x, bins=4).tolist() == [1, 2, 0, 1]


def test_empty_and_equal_values():
    assert torch.histc(torch.empty(0, dtype=torch.int32, device="tpu"), bins=3).tolist() == [0, 0, 0]
    assert torch.histc(torch.tensor([4, 4], device="tpu"), bins=3).tolist() == [0, 2, 0]


def test_truth_values_are_refused_as_by_pytorch():
    with pytest.raises(RuntimeError, match="not implemented for 'Bool'"):
        torch.histc(torch.tensor([True]).to("tpu"), bins=2)
