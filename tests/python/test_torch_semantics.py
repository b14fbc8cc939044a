# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's own device-generic tests ask of a device, kind by kind: errors at the call, and in PyTorch's words."""

import pytest
import torch


def outcome(call, device):
    """The result's dtype and values, or the error's class and text."""
    try:
        result = call(device)
    except Exception as e:
        return type(e), str(e)
    return result.dtype, result.tolist()


@pytest.mark.parametrize("out", [torch.int64, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("dtype", [torch.int64, torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("op", [torch.neg, torch.floor, torch.exp, torch.abs], ids=lambda op: op.__name__)
def test_out_of_another_dtype(op, dtype, out):
    def call(device):
        return op(torch.ones(3, dtype=dtype, device=device), out=torch.zeros(3, dtype=out, device=device))

    assert outcome(call, "tpu")[0] == outcome(call, "cpu")[0]
    if op is not torch.exp:
        assert outcome(call, "tpu") == outcome(call, "cpu")


@pytest.mark.parametrize("values", [(3,), (2, 2), (0,)], ids=str)
def test_index_put_of_a_wrong_shape(values):
    def call(device):
        x = torch.zeros(5, device=device)
        x[torch.tensor([0, 1], device=device)] = torch.ones(values, device=device)
        return x

    kind, text = outcome(call, "cpu")
    assert kind is RuntimeError and "shape mismatch" in text
    assert outcome(call, "tpu") == (kind, text)


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_tensors_without_a_common_shape(accumulate):
    def call(device):
        rows, columns = torch.tensor([0, 1, 2], device=device), torch.tensor([0, 1], device=device)
        return torch.zeros(4, 4, device=device).index_put_((rows, columns), torch.ones(1, device=device), accumulate=accumulate)

    kind, text = outcome(call, "cpu")
    assert kind is IndexError
    assert outcome(call, "tpu") == (kind, text)


@pytest.mark.parametrize("op", [torch.nonzero, lambda x, out: torch.masked_select(x, x > 0, out=out)], ids=["nonzero", "masked_select"])
def test_out_on_another_device(op):
    x = torch.tensor([1, 0, 2], device="tpu")
    with pytest.raises(RuntimeError, match="on the same device"):
        op(x, out=torch.empty(0, dtype=torch.int64))


def test_equal_is_worked_out_on_the_device():
    before = dict(torch.tpu.fallbacks())
    pairs = [([1.0, 2.0], [1.0, 2.0]), ([1.0, 2.0], [1.0, 3.0]), ([1.0], [1.0, 1.0]), ([], []), ([float("nan")], [float("nan")]), ([1.0], [1])]
    for left, right in pairs:
        a, b = torch.tensor(left), torch.tensor(right)
        assert torch.equal(a.to("tpu"), b.to("tpu")) is torch.equal(a, b), (left, right)
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(x.to("tpu").t(), x.t().to("tpu")) and torch.equal(torch.tensor(2, device="tpu"), torch.tensor(2, device="tpu"))
    with pytest.raises(RuntimeError, match="different devices"):
        torch.equal(x.to("tpu"), x)
    assert torch.tpu.fallbacks() == before
