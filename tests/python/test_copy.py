# SPDX-License-Identifier: Apache-2.0
"""Making tensors and moving them: empty, resize_, set_, and copies in all directions."""

import itertools
import warnings

import pytest
import torch

REAL = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]
ALL = [torch.bool, *REAL, torch.complex64, torch.complex128]


def values(dtype, shape=(3, 4)):
    count = torch.Size(shape).numel()
    x = torch.arange(count).reshape(shape) % 5
    if dtype.is_complex:
        return torch.complex(x.double(), 1 - x.double()).to(dtype)
    return x.to(dtype)


def same(actual, expected):
    assert actual.device.type == "cpu" or actual.device.type == "tpu"
    actual = actual.cpu()
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_round_trip(dtype):
    x = values(dtype)
    same(x.to("tpu"), x)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(ALL, [torch.bool, torch.int32, torch.bfloat16, torch.float64, torch.complex64])), ids=str)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_dtype_conversion_in_every_direction(source, target):
    x = values(source)
    expected = x.to(target)
    same(x.to("tpu").to(target), expected)  # on the device
    same(torch.empty(3, 4, dtype=target, device="tpu").copy_(x), expected)  # on the way up
    same(torch.empty(3, 4, dtype=target).copy_(x.to("tpu")), expected)  # on the way down
    same(x.to("tpu", target), expected)


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, 1),
    "sliced": lambda x: x[1:, ::2],
    "expanded": lambda x: x[:1].expand(5, -1, -1) if x.dim() == 3 else x[:1].expand(5, -1),
    "reversed by flip": lambda x: x.flip(0),
    "one element": lambda x: x[1:2, 1:2],
    "empty": lambda x: x[:0],
    "diagonal": lambda x: x.diagonal(),
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_layouts_up_and_down(layout):
    x = values(torch.float32, (4, 6))
    expected = LAYOUTS[layout](x)
    same(expected.to("tpu"), expected)
    same(LAYOUTS[layout](x.to("tpu")), expected)


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced", "one element", "empty", "diagonal"], ids=str)
@pytest.mark.parametrize("source", ["cpu", "tpu"])
@pytest.mark.parametrize("target", ["cpu", "tpu"])
def test_writing_into_views(layout, source, target):
    base = values(torch.float32, (4, 6))
    expected = base.clone()
    view = LAYOUTS[layout](expected)
    news = torch.arange(view.numel(), dtype=torch.float32).reshape(view.shape) + 100
    view.copy_(news)
    actual = base.to(target)
    if target == "cpu":
        actual = actual.clone()
    LAYOUTS[layout](actual).copy_(news.to(source))
    same(actual, expected)


@pytest.mark.parametrize("source", ["cpu", "tpu"])
@pytest.mark.parametrize("target", ["cpu", "tpu"])
@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 1), (1, 1, 4)])
def test_broadcasting_copy(source, target, shape):
    small = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    expected = torch.zeros(2, 3, 4).copy_(small)
    same(torch.zeros(2, 3, 4, device=target).copy_(small.to(source)), expected)


def test_sizes_that_do_not_broadcast_are_refused():
    with pytest.raises(RuntimeError, match="size|shape|broadcast"):
        torch.zeros(3, device="tpu").copy_(torch.zeros(4))
    with pytest.raises(RuntimeError, match="size|shape|broadcast"):
        torch.zeros(3).copy_(torch.zeros(4, device="tpu"))
    with pytest.raises(RuntimeError, match="size|shape|broadcast"):
        torch.zeros(3, device="tpu").copy_(torch.zeros(4, device="tpu"))


def test_conjugate_and_negative_views():
    z = values(torch.complex64)
    up = z.to("tpu")
    same(z.conj().to("tpu"), z.conj().resolve_conj())
    same(up.conj().cpu(), z.conj().resolve_conj())
    same(up.conj().imag.cpu(), z.conj().imag.resolve_neg())
    target = torch.zeros(3, 4, dtype=torch.complex64, device="tpu")
    target.conj().copy_(z)
    same(target, z.conj().resolve_conj())
    target.conj().copy_(up.conj())
    same(target, z)
    down = torch.zeros(3, 4, dtype=torch.complex64)
    down.conj().copy_(up)
    same(down, z.conj().resolve_conj())


def test_copy_to_the_same_device_returns_self():
    x = torch.ones(2, device="tpu")
    assert x.to("tpu") is x
    assert x.to("tpu:0") is x
    assert x.to("tpu", copy=True) is not x


def test_copies_are_independent():
    x = torch.ones(4, device="tpu")
    y, z = x.clone(), torch.empty(4, device="tpu").copy_(x)
    x.add_(1)
    assert (x.tolist(), y.tolist(), z.tolist()) == ([2] * 4, [1] * 4, [1] * 4)
    y.mul_(5)
    assert (x.tolist(), y.tolist(), z.tolist()) == ([2] * 4, [5] * 4, [1] * 4)


def test_overlapping_parts_of_one_tensor():
    x = torch.arange(6.0, device="tpu")
    x[2:] = x[:-2].clone()
    assert x.tolist() == [0, 1, 0, 1, 2, 3]


def test_item_of_every_dtype():
    for dtype in ALL:
        x = values(dtype)
        assert x.to("tpu")[1, 2].item() == x[1, 2].item()
    assert torch.tensor(True, device="tpu").item() is True
    assert isinstance(torch.tensor(3, device="tpu").item(), int)
    assert torch.tensor(2**62 + 1, device="tpu").item() == 2**62 + 1
    with pytest.raises(RuntimeError, match="Scalar|scalar"):
        torch.ones(2, device="tpu").item()
    assert bool(torch.tensor(1.0, device="tpu"))
    assert int(torch.tensor(4.0, device="tpu")) == 4
    assert [10, 11, 12][torch.tensor(1, device="tpu")] == 11


def test_values_beyond_32_bits_survive():
    x = torch.tensor([2**40 + 1, -(2**62) - 3, 2**63 - 1], dtype=torch.int64)
    same(x.to("tpu"), x)
    y = torch.tensor([1 + 2**-40, 1e300], dtype=torch.float64)
    same(y.to("tpu"), y)


def test_special_values_survive_bit_for_bit():
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-45], dtype=torch.float32)
    assert torch.equal(x.to("tpu").cpu().view(torch.int32), x.view(torch.int32))


def test_unsupported_dtypes_say_so():
    with pytest.raises((NotImplementedError, RuntimeError)):
        torch.empty(2, dtype=torch.complex32, device="tpu")


def test_large_copy():
    x = torch.randn(1 << 20)
    same(x.to("tpu"), x)


# ---- making tensors -------------------------------------------------------------------------------------------------------------
def test_empty_shapes_and_strides():
    assert torch.empty(2, 3, device="tpu").stride() == (3, 1)
    assert torch.empty(0, 3, device="tpu").stride() == torch.empty(0, 3).stride()
    assert torch.empty((), device="tpu").shape == ()
    x = torch.empty(2, 3, 4, 5, device="tpu", memory_format=torch.channels_last)
    assert x.stride() == torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()
    y = torch.empty_strided((2, 3), (1, 5), device="tpu")
    assert y.stride() == (1, 5) and y.untyped_storage().nbytes() == 4 * 12
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.empty(-1, device="tpu")
    z = torch.empty_like(x)
    assert z.stride() == x.stride() and z.is_tpu


def test_channels_last_round_trip():
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    up = x.to("tpu")
    assert up.stride() == x.stride()
    same(up, x)
    same(up.contiguous(), x.contiguous())


def test_tensor_constructors():
    assert torch.tensor([[1, 2], [3, 4]], device="tpu").tolist() == [[1, 2], [3, 4]]
    assert torch.as_tensor([1.5], device="tpu").item() == 1.5
    assert torch.from_numpy(torch.arange(3).numpy()).to("tpu").tolist() == [0, 1, 2]
    assert torch.ones(2, device="tpu").new_tensor([5.0, 6.0]).tolist() == [5, 6]
    assert torch.zeros(2, 2, device="tpu").new_full((2,), 3).tolist() == [3, 3]
    assert torch.full((2,), 7, device="tpu", dtype=torch.int8).tolist() == [7, 7]


def test_deterministic_mode_fills_new_memory():
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(3, device="tpu").isnan().all().item()
        assert torch.empty(2, dtype=torch.int32, device="tpu").tolist() == [2**31 - 1] * 2
        x = torch.ones(2, device="tpu").resize_(4)
        assert x[:2].tolist() == [1, 1] and x[2:].isnan().all().item()
    finally:
        torch.use_deterministic_algorithms(False)


def test_resize_keeps_contents():
    x = torch.arange(6.0, device="tpu").view(2, 3)
    x.resize_(4)
    assert x.tolist() == [0, 1, 2, 3]
    x.resize_(2, 4)
    assert x.shape == (2, 4) and x.flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]
    x.resize_(0)
    assert x.numel() == 0
    y = torch.empty(0, device="tpu")
    torch.add(torch.ones(3, device="tpu"), 1, out=y)
    assert y.tolist() == [2, 2, 2]


def test_set_():
    x = torch.arange(6.0, device="tpu")
    y = torch.empty(0, device="tpu").set_(x)
    assert y.is_set_to(x)
    y.zero_()
    assert x.sum().item() == 0
    z = torch.empty(0, device="tpu").set_(x.untyped_storage(), 2, (2, 2), (2, 1))
    z.copy_(torch.tensor([[1.0, 2], [3, 4]]))
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    assert not z.is_set_to(x)
    z.set_()
    assert z.shape == (0,) and z.is_tpu
    w = torch.empty(0, device="tpu").set_(x.untyped_storage())
    assert w.tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="device"):
        torch.empty(0, device="tpu").set_(torch.ones(2).untyped_storage())


def test_views_by_stride():
    x = torch.arange(24.0)
    t = x.to("tpu")
    for f in (
        lambda v: v.as_strided((3, 2), (4, 1), 5),
        lambda v: v.view(2, 3, 4).permute(2, 0, 1),
        lambda v: v.unfold(0, 4, 3),
        lambda v: v.view(4, 6).narrow(1, 2, 3),
        lambda v: v.view(4, 6).select(0, 2),
        lambda v: v.view(torch.int32).view(2, 12),
        lambda v: v.reshape(2, 12).t().reshape(3, 8),
        lambda v: v.unsqueeze(0).expand(3, 24)[1],
        lambda v: v.view(4, 6)[1:3, 1::2].t(),
    ):
        same(f(t), f(x))
    assert t[3:].storage_offset() == 3
    assert t[3:].data_ptr() == t.data_ptr() + 12


def test_addresses_are_different():
    tensors = [torch.empty(100, device="tpu") for _ in range(50)]
    spans = sorted((t.data_ptr(), t.data_ptr() + 400) for t in tensors)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


def test_data_assignment_and_swap():
    p = torch.nn.Parameter(torch.zeros(3, device="tpu"))
    p.data = torch.ones(3, device="tpu")
    assert p.tolist() == [1, 1, 1]
    p.data = torch.ones(2)
    assert p.device.type == "cpu"
    a, b = torch.ones(1, device="tpu"), torch.zeros(2, device="tpu")
    torch.utils.swap_tensors(a, b)
    assert a.tolist() == [0, 0] and b.tolist() == [1]


def test_warnings_become_pythons():
    z = torch.ones(2, dtype=torch.complex64, device="tpu")
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="imaginary part"):
            z.to(torch.float32)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="imaginary part"):
                z.to(torch.float32)
    finally:
        torch.set_warn_always(before)


def test_module_keeps_its_parameters_when_it_moves():
    model = torch.nn.Linear(3, 2)
    weight = model.weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model.to("tpu")
    assert model.weight is weight and weight.is_tpu
    model(torch.ones(1, 3, device="tpu")).sum().backward()
    before = weight.detach().cpu().clone()
    optimizer.step()
    assert torch.allclose(weight.detach().cpu(), before - 0.5)
    model.to("cpu")
    assert model.weight is weight and weight.device.type == "cpu"


def test_gradients_flow_through_copies():
    x = torch.ones(3, requires_grad=True)
    (x.to("tpu") * 2).cpu().sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
