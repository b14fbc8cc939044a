# SPDX-License-Identifier: Apache-2.0
"""Saving, loading, copying, handing over: pickle, torch.save, deepcopy, DLPack."""

import copy
import io
import pickle

import pytest
import torch

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64, torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip


def sample(dtype):
    return torch.tensor([[0, 1, 2], [3, 4, 1]]).to(dtype)


def bits(x):
    return x.cpu().contiguous().view(torch.uint8)


def save_load(obj, **kwargs):
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return torch.load(file, **kwargs)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_save_and_load(dtype):
    x = sample(dtype).to("tpu")
    y = save_load(x)
    assert (y.device, y.dtype, y.shape) == (x.device, dtype, x.shape)
    assert torch.equal(bits(y), bits(x))


@pytest.mark.parametrize("weights_only", [True, False])
def test_map_location_both_ways(weights_only):
    x = torch.arange(6.0).view(2, 3)
    down = save_load(x.to("tpu"), map_location="cpu", weights_only=weights_only)
    assert down.device.type == "cpu" and torch.equal(down, x)
    for target in ("tpu", "tpu:0", torch.device("tpu", 0), {"cpu": "tpu:0"}, lambda storage, _: storage.tpu()):
        up = save_load(x, map_location=target, weights_only=weights_only)
        assert up.device == torch.device("tpu:0") and torch.equal(up.cpu(), x)


def test_views_that_share_a_storage_still_share_it():
    x = torch.arange(12.0, device="tpu")
    a, b, c = save_load([x, x[3:6], x.view(3, 4).t()])
    assert torch.equal(c.cpu(), torch.arange(12.0).view(3, 4).t())
    assert not c.is_contiguous()
    b.fill_(-1)
    assert a.tolist() == [0, 1, 2, -1, -1, -1, 6, 7, 8, 9, 10, 11]
    assert a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def test_module_and_optimizer_round_trip():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)).to("tpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(2, 4, device="tpu")).sum().backward()
    optimizer.step()
    state = save_load({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    twin = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)).to("tpu")
    twin.load_state_dict(state["model"])
    other = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9)
    other.load_state_dict(state["optimizer"])
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        assert b.is_tpu and torch.equal(a.cpu(), b.cpu())
    assert other.state_dict()["state"][0]["momentum_buffer"].is_tpu
    on_cpu = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    on_cpu.load_state_dict(state["model"])
    assert torch.equal(on_cpu[0].weight, model[0].weight.cpu())


def test_parameter_keeps_requires_grad():
    p = torch.nn.Parameter(torch.ones(2, device="tpu"))
    q = save_load(p, weights_only=False)
    assert isinstance(q, torch.nn.Parameter) and q.requires_grad and q.is_tpu


def test_pickle():
    x = torch.arange(4, device="tpu")[1:]
    y = pickle.loads(pickle.dumps(x))
    assert y.is_tpu and y.tolist() == [1, 2, 3]
    assert pickle.loads(pickle.dumps(torch.device("tpu:0"))) == torch.device("tpu:0")


def test_mmap_load(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.arange(1000.0), path)
    x = torch.load(path, mmap=True, map_location="cpu").to("tpu")
    assert x.sum().item() == 499500


def test_deepcopy_is_independent():
    x = torch.arange(6.0, device="tpu")
    pair = {"x": x, "view": x[2:4]}
    twin = copy.deepcopy(pair)
    twin["view"].fill_(9)
    assert twin["x"].tolist() == [0, 1, 9, 9, 4, 5], "views of one storage stay views of one copy"
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    model = torch.nn.Linear(2, 2).tpu()
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.weight.zero_()
    assert model.weight.abs().sum().item() > 0
    shallow = copy.copy(x)
    assert shallow.data_ptr() == x.data_ptr()


def through_dlpack(x):
    # torch.from_dlpack(x) asks x.__dlpack_device__, which PyTorch 2.13 answers for no renamed device.
    return torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))


def test_dlpack_round_trip_shares_memory():
    x = torch.arange(6.0, device="tpu")
    y = through_dlpack(x)
    assert y.device == x.device and y.tolist() == x.tolist()
    y.fill_(7)
    assert x.tolist() == [7] * 6
    x[1:3] = 0
    assert y.tolist() == [7, 0, 0, 7, 7, 7]


def test_dlpack_of_a_view_outlives_its_source():
    x = torch.arange(12.0, device="tpu").view(3, 4)
    y = through_dlpack(x.t()[1:])
    assert y.shape == (3, 3) and y.tolist() == x.t()[1:].tolist()
    z = through_dlpack(x[1:])
    assert z.tolist() == x[1:].tolist()
    del x
    assert z.tolist() == [[4, 5, 6, 7], [8, 9, 10, 11]]
    assert (z + y[0, 0]).tolist() == [[5, 6, 7, 8], [9, 10, 11, 12]]
    z[0, 1:3].fill_(-1)
    assert y[:2].tolist() == [[1, -1, 9], [2, -1, 10]]


def test_numpy_refuses_and_cpu_helps():
    x = torch.arange(3.0, device="tpu")
    with pytest.raises(TypeError, match="cpu"):
        x.numpy()
    assert x.cpu().numpy().tolist() == [0, 1, 2]
    assert x.tolist() == [0, 1, 2]


def test_storage_objects():
    x = torch.arange(4.0, device="tpu")
    storage = x.untyped_storage()
    assert storage.nbytes() == 16 and storage.device == torch.device("tpu:0")
    assert torch.frombuffer(bytes(storage.cpu().tolist()), dtype=torch.float32).tolist() == [0, 1, 2, 3]
    fresh = torch.UntypedStorage(16, device="tpu")
    fresh.copy_(storage)
    assert torch.empty(0, device="tpu").set_(fresh, 0, (4,), (1,)).tolist() == [0, 1, 2, 3]
    clone = storage.clone()
    assert clone.data_ptr() != storage.data_ptr()
    assert torch.empty(0, device="tpu").set_(clone, 0, (4,), (1,)).tolist() == [0, 1, 2, 3]
