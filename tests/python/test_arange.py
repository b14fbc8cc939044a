# SPDX-License-Identifier: Apache-2.0
"""Ranges on tpu: sizes, values and errors are the CPU's, whatever was called before."""

import pytest
import torch


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_arange_in_any_order(dtype):
    for numbers in [(0,), (2,), (0, 0), (3, 8), (5,), (8, 3, -2), (0.5, 3, 0.25), (0,), (-4, 4, 3), (7, 8)]:
        if not dtype.is_floating_point and any(isinstance(n, float) for n in numbers):
            continue
        want = torch.arange(*numbers, dtype=dtype)
        got = torch.arange(*numbers, dtype=dtype, device="tpu")
        torch.testing.assert_close(got.cpu(), want)


def test_arange_into_wrong_size():
    out = torch.zeros(2, dtype=torch.int64, device="tpu")
    assert torch.arange(0, 2, out=out).tolist() == [0, 1]
    with pytest.warns(UserWarning, match="number of elements in the out tensor"):
        assert torch.arange(0, 3, out=out).tolist() == [0, 1, 2]


@pytest.mark.parametrize("numbers", [(0, 3, 0), (0, 3, -1), (0, float("inf")), (float("nan"), 2)])
def test_arange_refuses(numbers):
    with pytest.raises(RuntimeError) as on_cpu:
        torch.arange(*numbers)
    with pytest.raises(RuntimeError) as on_tpu:
        torch.arange(*numbers, device="tpu")
    assert str(on_tpu.value).split("\n")[0] == str(on_cpu.value).split("\n")[0]


@pytest.mark.parametrize("make", [torch.tril_indices, torch.triu_indices])
def test_triangle_indices(make):
    for rows, columns in [(5, 5), (3, 7), (7, 3), (1, 1), (0, 4), (4, 0), (40, 5), (5, 40)]:
        for offset in range(-8, 9):
            got = make(rows, columns, offset, device="tpu").cpu()
            assert torch.equal(got, make(rows, columns, offset)), (rows, columns, offset)


def test_number_in_parts():
    z = torch.tensor([1 + 2j, 3 - 4j], device="tpu")
    z.real.fill_(5)
    z.imag.mul_(2)
    assert z.tolist() == [5 + 4j, 5 - 8j]
    assert torch.view_as_real(z).tolist() == [[5.0, 4.0], [5.0, -8.0]]
    assert torch.view_as_complex(torch.tensor([[1.0, 2.0]], device="tpu")).tolist() == [1 + 2j]
    assert z.conj().tolist() == [5 - 4j, 5 + 8j]
