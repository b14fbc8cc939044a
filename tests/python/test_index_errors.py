# SPDX-License-Identifier: Apache-2.0
"""A write whose index is out of range raises at the next read and overwrites nothing."""
import pytest
import torch

FAR = 7


def put(x, i, v):
    x[i] = v


WRITES = {
    "index_put": lambda x, i, v: x.index_put_((i,), v),
    "index_put_accumulate": lambda x, i, v: x.index_put_((i,), v, accumulate=True),
    "setitem": put,
    "index_copy": lambda x, i, v: x.index_copy_(0, i, v),
    "index_add": lambda x, i, v: x.index_add_(0, i, v),
    "index_fill": lambda x, i, v: x.index_fill_(0, i, 9.0),
    "index_reduce": lambda x, i, v: x.index_reduce_(0, i, v, "amax"),
    "put": lambda x, i, v: x.put_(i, v),
    "scatter": lambda x, i, v: x.scatter_(0, i, v),
    "scatter_value": lambda x, i, v: x.scatter_(0, i, 9.0),
    "scatter_add": lambda x, i, v: x.scatter_add_(0, i, v),
    "scatter_reduce": lambda x, i, v: x.scatter_reduce_(0, i, v, "prod", include_self=False),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("bad", [FAR, -FAR, 2**32 + 1], ids=["above", "below", "beyond 32 bits"])
def test_only_good_places_are_written(name, bad, dtype):
    write = WRITES[name]
    x = torch.arange(1, 6).to(dtype)
    values = torch.tensor([20, 30]).to(dtype)
    got = x.to("tpu")
    write(got, torch.tensor([bad, 2], device="tpu"), values.to("tpu"))
    with pytest.raises(IndexError):
        torch.tpu.synchronize()
    want = x.clone()
    write(want, torch.tensor([2]), values[1:])
    torch.testing.assert_close(got.cpu(), want)


def test_one_bad_column_leaves_the_element_out():
    x = torch.zeros(3, 4)
    got = x.to("tpu")
    got[torch.tensor([0, 1], device="tpu"), torch.tensor([FAR, 2], device="tpu")] = 1.0
    with pytest.raises(IndexError):
        torch.tpu.synchronize()
    x[1, 2] = 1.0
    torch.testing.assert_close(got.cpu(), x)
