# SPDX-License-Identifier: Apache-2.0
"""Kinds of fault that PyTorch's device test files found (docs/pytorch_tests.md): the default dtype, whole ranges, writing through
expanded views, errors in PyTorch's words, many dimensions, old names of the device module."""

import warnings

import pytest
import torch
import torch.nn.functional as F


def outcome(call, device):
    """dtype, sizes and values of the result, or the error's class and text; then the warnings' first words."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = call(device)
            found = result.dtype, tuple(result.shape), result.tolist()
        except Exception as e:
            found = type(e), str(e).splitlines()[0]
    return found, [str(w.message)[:45] for w in seen if "runs on the CPU" not in str(w.message)]


def same(call):
    assert outcome(call, "tpu") == outcome(call, "cpu")


def refuses(call):
    """The CPU raises, and we raise the same."""
    assert issubclass(outcome(call, "cpu")[0][0], Exception)
    same(call)


# ---- the default dtype ----------------------------------------------------------------------------------------------------------
@pytest.fixture
def any_default():
    yield
    torch.set_default_dtype(torch.float32)


DEFAULTS = [lambda a: a / a, lambda a: a / 3, torch.sqrt, lambda a: a * 0.1, lambda a: a + 1j, torch.rsqrt]


@pytest.mark.parametrize("op", DEFAULTS, ids=range(len(DEFAULTS)))
def test_a_call_follows_the_default_dtype_of_its_time(op, any_default):
    a = torch.arange(1, 6, dtype=torch.int16)
    for default in (torch.float32, torch.float64, torch.float32, torch.float64):
        torch.set_default_dtype(default)
        torch.testing.assert_close(op(a.to("tpu")).cpu(), op(a))


# ---- ranges ---------------------------------------------------------------------------------------------------------------------
LOGS = [(0, 6, 49, 2.0), (0.5, 6.7, 13, 2.5), (0, 5, 6, 2.9), (5, 0, 11, 2.0), (1, 3, 2, 2.5), (2, 2, 1, 3.0), (0, 1, 0, 2.0)]
LINES = [(1, 127, 50), (1, 127, 25), (-10, 100, 50), (1, -1000, 64), (0, 7, 33), (-2.7, 9.9, 12)]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8], ids=str)
@pytest.mark.parametrize("ends", LOGS, ids=str)
def test_logspace_of_integers(ends, dtype):
    same(lambda device: torch.logspace(*ends, dtype=dtype, device=device))


@pytest.mark.parametrize("ends", LINES, ids=str)
def test_linspace_of_integers_is_never_one_short(ends):
    same(lambda device: torch.linspace(*ends, dtype=torch.int32, device=device))


# ---- random numbers' ranges -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.uint8, torch.float16, torch.int64], ids=str)
@pytest.mark.parametrize("ends", [(-(2**40), 2), (0, 2**40), (5, 5), (300, 400)], ids=str)
def test_random_refuses_what_the_dtype_cannot_hold(ends, dtype):
    expected, got = (outcome(lambda device: torch.empty(3, dtype=dtype, device=device).random_(*ends), where) for where in ("cpu", "tpu"))
    assert got[1] == expected[1]
    assert got[0][:2] == expected[0][:2]  # class and text, or dtype and sizes: the numbers are others


@pytest.mark.parametrize(("n", "dtype"), [(300, torch.int8), (5000, torch.float16), (-1, torch.int64)], ids=str)
def test_randperm_refuses_what_the_dtype_cannot_hold(n, dtype):
    refuses(lambda device: torch.randperm(n, out=torch.empty(0, dtype=dtype, device=device), device=device))


# ---- writing through views whose elements share memory --------------------------------------------------------------------------
def set_item(x, i, v, m):
    x[m] = 4.0


SPREADING = {
    "index_put": lambda x, i, v, m: x.index_put_((i,), v),
    "index_put_sum": lambda x, i, v, m: x.index_put_((i,), v, accumulate=True),
    "setitem": set_item,
    "masked_fill": lambda x, i, v, m: x.masked_fill_(m, 5.0),
    "index_fill": lambda x, i, v, m: x.index_fill_(0, i, 2.0),
    "fill": lambda x, i, v, m: x.fill_(3.0),
    "zero": lambda x, i, v, m: x.zero_(),
}


@pytest.mark.parametrize("name", SPREADING)
def test_one_element_written_through_an_expanded_view(name):
    def call(device):
        base = torch.tensor([1.0, 2.0], device=device)
        i, v = torch.tensor([2, 0], device=device), torch.tensor([7.0, 7.0], device=device)
        SPREADING[name](base[1:].expand(4), i, v, torch.tensor([False, True, True, False], device=device))
        return base

    (expected, warned), (got, also) = outcome(call, "cpu"), outcome(call, "tpu")
    assert got == expected
    assert set(also) <= set(warned) and bool(also) == bool(warned)


def test_rows_written_through_an_expanded_view():
    def call(device):
        x = torch.zeros(1, 3, device=device).expand(2, 3)
        return x.index_put_((torch.tensor([1], device=device),), torch.tensor([[1.0, 2.0, 3.0]], device=device))

    same(call)


OVERLAPS = [
    lambda i, y: i.index_put_((i,), i.clone()),
    lambda i, y: i.index_put_((i.clone(),), i),
    lambda i, y: i.index_fill_(0, i, 0),
    lambda i, y: i.put_(i, i.clone()),
    lambda i, y: y[:1].expand(6).copy_(y),
    lambda i, y: y[1:].copy_(y[:-1]),
    lambda i, y: y[:1].expand(6).add_(1),
]


@pytest.mark.parametrize("write", OVERLAPS, ids=range(len(OVERLAPS)))
def test_reading_what_is_written_is_refused(write):
    refuses(lambda device: write(torch.tensor([2, 1, 0], device=device), torch.arange(6.0, device=device)))


# ---- errors in PyTorch's words --------------------------------------------------------------------------------------------------
def wrong_dtype(kind, device):
    x, byte = torch.arange(3, device=device), torch.tensor([1, 0, 1], dtype=torch.uint8, device=device)
    doubles, ints = torch.ones(5, 2, dtype=torch.float64, device=device), torch.zeros(5, dtype=torch.int32, device=device)
    if kind == "mask":
        return torch.masked_select(x, byte)
    if kind == "mask_out":
        return torch.masked_select(x, byte, out=torch.empty(0, dtype=torch.int64, device=device))
    if kind == "index_put":
        doubles[:, [1]] = ints.unsqueeze(-1)
    if kind == "all":
        return torch.all(doubles, 0, out=torch.empty(2, dtype=torch.float64, device=device))
    if kind == "any":
        return torch.any(doubles, out=torch.empty((), dtype=torch.int64, device=device))
    return doubles


@pytest.mark.parametrize("kind", ["mask", "mask_out", "index_put", "all", "any"])
def test_a_wrong_dtype_is_refused(kind):
    refuses(lambda device: wrong_dtype(kind, device))


def test_all_into_bytes():
    same(lambda device: torch.all(torch.ones(2, 2, device=device), 0, out=torch.empty(0, dtype=torch.uint8, device=device)))


def test_one_value_fills_a_mask_in_any_dtype():
    def call(device):
        x = torch.zeros(3, dtype=torch.float64, device=device)
        return x.index_put_((torch.tensor([True, False, True], device=device),), torch.tensor(2, device=device))

    same(call)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.bool], ids=str)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_resizing_integers(mode, dtype):
    def call(device):
        return F.interpolate(torch.ones(1, 2, 4, 4, device=device).to(dtype), size=(2, 2), mode=mode)

    same(call)


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("tests", [[1.0, 5.0], []], ids=str)
def test_isin_of_a_number_has_no_dimensions(tests, invert):
    same(lambda device: torch.isin(5, torch.tensor(tests, device=device), invert=invert))


@pytest.mark.parametrize("op", ["inv_ex", "cholesky_ex", "lu_factor_ex", "solve_ex"])
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
def test_check_errors_raises(op, batch):
    def call(device):
        matrices = torch.eye(3, device=device).expand(*batch, 3, 3).clone()
        matrices[..., 1, 1] = 0
        more = (torch.ones(*batch, 3, 1, device=device),) if op == "solve_ex" else ()
        return getattr(torch.linalg, op)(matrices, *more, check_errors=True)[0]

    refuses(call)


# ---- shapes ---------------------------------------------------------------------------------------------------------------------
def test_more_dimensions_than_programs_have():
    x = torch.arange(6.0, device="tpu").reshape([2] + [1] * 40 + [3])
    y = x.transpose(0, 41)
    assert y.flatten().tolist() == [0, 3, 1, 4, 2, 5]
    assert (y * 2).flatten().tolist() == [0, 6, 2, 8, 4, 10]
    y.add_(1)
    assert x.flatten().tolist() == [1, 2, 3, 4, 5, 6]
    assert torch.zeros_like(y).copy_(x[:1].transpose(0, 41)).flatten().tolist() == [1, 1, 2, 2, 3, 3]
    refuses(lambda device: torch.ones([1] * 65, device=device).sum(dim=0))


PADS = [((3, 4, 5, 6), [1, 2, 1, 1]), ((2, 3, 4, 5), [1, 1, 1, 2, 1, 1]), ((2, 3, 4, 5, 6), [1, 2, 1, 1, 1, 1])]


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize(("shape", "pad"), PADS, ids=str)
def test_padding_keeps_the_memory_format(shape, pad, mode):
    x = torch.randn(shape).to(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d)
    expected, got = F.pad(x, pad, mode=mode), F.pad(x.to("tpu"), pad, mode=mode)
    assert got.stride() == expected.stride()
    assert torch.equal(got.cpu(), expected)


@pytest.mark.parametrize("spatial", [2, 3])
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
@pytest.mark.parametrize("samples", [1, 2, 3])
def test_fractional_pooling_takes_more_samples_than_it_needs(samples, batch, spatial):
    pool = F.fractional_max_pool2d if spatial == 2 else F.fractional_max_pool3d
    x = torch.randn(*batch, 4, *[6] * spatial)
    same(lambda device: pool(x.to(device), 2, output_size=3, _random_samples=torch.full((samples, 4, spatial), 0.3, device=device)))


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)], ids=str)
@pytest.mark.parametrize("batch", [(1,), (1, 1), (2, 1), (1, 2)], ids=str)
def test_products_of_one_matrix_as_a_batch(batch, transposed):
    x, y = torch.randn(*batch, 7, 5, dtype=torch.bfloat16), torch.randn(*batch, 5, 3, dtype=torch.bfloat16)
    a = x.mT.contiguous().to("tpu").mT if transposed[0] else x.to("tpu")
    c = y.mT.contiguous().to("tpu").mT if transposed[1] else y.to("tpu")
    torch.testing.assert_close((a @ c).cpu(), x @ y)


# ---- names ----------------------------------------------------------------------------------------------------------------------
def test_from_dlpack_takes_a_tensor():
    x = torch.arange(6.0, device="tpu").reshape(2, 3)
    y = torch.from_dlpack(x)
    y[0, 0] = 9
    assert y.device == x.device and x[0, 0].item() == 9
    assert x.__dlpack_device__()[1] == x.device.index
    assert torch.from_dlpack(torch.ones(2)).device.type == "cpu"


def test_amp_under_its_old_name():
    from torch.tpu.amp import GradScaler, autocast, custom_bwd, custom_fwd

    with pytest.warns(FutureWarning, match=r"torch\.amp\.GradScaler\('tpu', args\.\.\.\)"):
        assert GradScaler()._device == "tpu"
    with pytest.warns(FutureWarning), autocast(dtype=torch.bfloat16):
        assert (torch.ones(2, 2, device="tpu") @ torch.ones(2, 2, device="tpu")).dtype is torch.bfloat16
    with pytest.warns(FutureWarning):

        class Double(torch.autograd.Function):
            @staticmethod
            @custom_fwd(cast_inputs=torch.float32)
            def forward(ctx, x):
                return x * 2

            @staticmethod
            @custom_bwd
            def backward(ctx, g):
                return g * 2

    x = torch.ones(2, device="tpu", requires_grad=True)
    with torch.autocast("tpu", dtype=torch.bfloat16):
        y = Double.apply(x)
    y.sum().backward()
    assert y.dtype is torch.float32 and x.grad.tolist() == [2, 2]


def test_typed_storages():
    x = torch.arange(4, device="tpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert x.storage().type() == "torch.tpu.LongStorage"
        assert isinstance(x.storage(), torch.tpu.LongStorage) and not isinstance(x.storage(), torch.LongStorage)
        assert torch.tpu.FloatStorage(3).device.type == "tpu"
    with pytest.raises(AttributeError, match="NoStorage"):
        torch.tpu.NoStorage  # noqa: B018
