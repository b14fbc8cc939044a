# SPDX-License-Identifier: Apache-2.0
"""Quantised arithmetic on plain tensors against the CPU: fake quantisation and its observers, 8-bit float, int8 and int4 products, and the
operators that PyTorch's quantised graphs are made of. Where the CPU has no kernel, a formula."""

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  (defines torch.ops.quantized_decomposed)

aten, decomposed = torch.ops.aten, torch.ops.quantized_decomposed
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def move(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone().to("tpu").requires_grad_(value.requires_grad)
    return value


def leaves(value):
    return [t for v in value for t in leaves(v)] if isinstance(value, (tuple, list)) else [value]


def check(function, *args, launches=1, **tolerance):
    """The same as on the CPU, in one launch a call, none of them on the CPU."""
    want = leaves(function(*[a.clone() if isinstance(a, torch.Tensor) else a for a in args]))
    function(*[move(a) for a in args])
    moved = [move(a) for a in args]
    torch.tpu.synchronize()
    before, fallbacks = torch.tpu.stats()["launches"], torch.tpu.fallbacks()
    got = leaves(function(*moved))
    assert torch.tpu.fallbacks() == fallbacks
    assert launches is None or torch.tpu.stats()["launches"] == before + launches
    for g, w in zip(got, want, strict=True):
        if isinstance(w, torch.Tensor):
            assert g.device.type == "tpu"
            torch.testing.assert_close(g.cpu(), w, equal_nan=True, **tolerance)
        else:
            assert g == w


def sample(*shape):
    torch.manual_seed(0)
    return torch.randn(shape) * 2


SCALES, ZEROS = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 0, 2], dtype=torch.int32)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_per_tensor(dtype):
    x = sample(4, 3).to(dtype)
    x[0, 0] = float("nan")
    x[1, 1] = 0.05
    check(lambda t: aten.fake_quantize_per_tensor_affine_cachemask(t, 0.1, 3, 0, 255), x)
    check(lambda t: torch.fake_quantize_per_tensor_affine(t, 0.1, 3, -8, 7), x)


@pytest.mark.parametrize("on", [0, 1])
def test_per_tensor_with_parameters_in_tensors(on):
    function = aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
    check(lambda t, s, z, e: function(t, s, z, e, 0, 255), sample(4, 3), torch.tensor([0.1]), torch.tensor([3], dtype=torch.int32), torch.tensor([on]))


@pytest.mark.parametrize("zeros", [ZEROS, torch.tensor([1.25, 0.5, 2.75])], ids=["int", "float"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_per_channel(dtype, zeros):
    check(lambda t, s, z: aten.fake_quantize_per_channel_affine_cachemask(t, s, z, 1, -8, 7), sample(4, 3, 2).to(dtype), SCALES, zeros)


def test_a_new_scale_needs_no_new_program():
    x = sample(4, 3).to("tpu")
    torch.fake_quantize_per_tensor_affine(x, 0.5, 0, -8, 7)
    before = torch.tpu.stats()["plans"]
    torch.fake_quantize_per_tensor_affine(x, 0.25, 0, -8, 7)
    assert torch.tpu.stats()["plans"] == before


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_learnable(factor):
    x, grad = sample(4, 3), torch.linspace(-1, 1, 12).reshape(4, 3)
    scale, zero, zeros = torch.tensor([0.3]), torch.tensor([1.6]), torch.tensor([1.3, 0.5, 2.6])
    check(lambda t, s, z: torch._fake_quantize_learnable_per_tensor_affine(t, s, z, -8, 7, factor), x, scale, zero)
    check(lambda t, s, z: torch._fake_quantize_learnable_per_channel_affine(t, s, z, 1, -8, 7, factor), x, SCALES, zeros)
    check(lambda g, t, s, z: aten._fake_quantize_learnable_per_tensor_affine_backward(g, t, s, z, -8, 7, factor), grad, x, scale, zero)
    check(lambda g, t, s, z: aten._fake_quantize_learnable_per_channel_affine_backward(g, t, s, z, 1, -8, 7, factor), grad, x, SCALES, zeros)


def test_gradients():
    def run(x, scale, zero):
        x, scale, zero = (t.detach().requires_grad_() for t in (x, scale, zero))
        y = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -12, 12)
        y = y + torch._fake_quantize_learnable_per_channel_affine(x, scale, zero, 1, -8, 7, 0.5)
        return torch.autograd.grad((y * y).sum(), [x, scale, zero])

    check(run, sample(4, 3), SCALES, torch.tensor([1.3, 0.5, 2.6]), launches=None)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("observe,fake", [(1, 1), (0, 1), (1, 0), (0, 0)])
def test_observer(observe, fake, rows, symmetric):
    n = 4 if rows else 1

    def run(x, observing, faking, low, high, scale, zero):
        out = []
        for k in range(3):
            out.append(aten._fused_moving_avg_obs_fq_helper(x * (k + 1) - k, observing, faking, low, high, scale, zero, 0.01, -128, 127, 0, rows, symmetric))
        return out, low, high, scale, zero

    state = [torch.full((n,), -1.0), torch.full((n,), 2.0), torch.full((n,), 0.5), torch.zeros(n, dtype=torch.int32)]
    check(run, sample(4, 3), torch.tensor([observe]), torch.tensor([fake]), *state, launches=None)


def test_observer_starts_empty():
    def run(x, on, low, high, scale, zero):
        out = torch.fused_moving_avg_obs_fake_quant(x, on, on, low, high, scale, zero, 0.01, -128, 127, 0, True, False)
        return out, low, high, scale, zero

    check(run, sample(4, 3), torch.tensor([1]), torch.empty(0), torch.empty(0), torch.ones(1), torch.zeros(1, dtype=torch.int32), launches=None)


def test_module_of_quantisation_aware_training():
    from torch.ao.quantization import FusedMovingAvgObsFakeQuantize

    results = []
    for device in ("cpu", "tpu"):
        module = FusedMovingAvgObsFakeQuantize().to(device)
        x = sample(4, 3).to(device).requires_grad_()
        (module(x) * torch.arange(3.0, device=device)).sum().backward()
        results.append([x.grad.cpu(), module.scale.cpu(), module.zero_point.cpu()])
    torch.testing.assert_close(results[1], results[0])


@pytest.mark.parametrize(
    "call,text",
    [
        (lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 300, 0, 255), "zero_point"),
        (lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 255, 0), "quant_min"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8), "QUInt8 is not supported on tpu"),
    ],
)
def test_bad_arguments(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(torch.ones(3, device="tpu"))


# ---- the operators of quantised graphs ---------------------------------------------------------------------------------------------


def test_decomposed_per_tensor():
    q = torch.randint(-128, 127, (4, 3), dtype=torch.int8)
    tensors = [torch.tensor(0.1), torch.tensor(3, dtype=torch.int64)]
    limits = [torch.tensor(-128), torch.tensor(127)]
    check(lambda x: decomposed.quantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8), sample(4, 3))
    check(lambda x: decomposed.dequantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8), q)
    check(lambda x, s, z: decomposed.quantize_per_tensor.tensor(x, s, z, -128, 127, torch.int8), sample(4, 3), *tensors)
    check(lambda x, s, z: decomposed.dequantize_per_tensor.tensor(x, s, z, -128, 127, torch.int8), q, *tensors)
    check(lambda x, *a: decomposed.quantize_per_tensor.tensor2(x, *a, torch.int8), sample(4, 3), *tensors, *limits)
    check(lambda x, *a: decomposed.dequantize_per_tensor.tensor2(x, *a, torch.int8), q, *tensors, *limits)


def test_decomposed_per_channel_and_token():
    q = torch.randint(-8, 7, (4, 3), dtype=torch.int8)
    check(lambda x, s, z: decomposed.quantize_per_channel(x, s, z, 1, -8, 7, torch.int8), sample(4, 3), SCALES, ZEROS)
    check(lambda x, s, z: decomposed.dequantize_per_channel(x, s, z, 1, -8, 7, torch.int8), q, SCALES, ZEROS)
    rows, zeros = torch.rand(4, 1) + 0.1, torch.randint(-3, 3, (4, 1))
    check(lambda x, s, z: decomposed.quantize_per_token(x, s, z, -128, 127, torch.int8), sample(4, 3), rows, zeros)
    check(lambda x, s, z: decomposed.dequantize_per_token(x, s, z, -128, 127, torch.int8, torch.float32), q, rows, zeros)
    check(lambda x: decomposed.choose_qparams_per_token(x, torch.int8), sample(4, 3))
    check(lambda x: decomposed.choose_qparams_per_token_asymmetric(x, torch.int8), sample(4, 3))
    group, none = torch.rand(4, 2) + 0.1, torch.zeros(4, 2, dtype=torch.int32)
    check(lambda x, s, z: decomposed.quantize_per_channel_group(x, s, z, -8, 7, torch.int8, 3), sample(4, 6), group, none)
    packed = torch.randint(-8, 7, (4, 6), dtype=torch.int8)
    check(lambda x, s, z: decomposed.dequantize_per_channel_group(x, s, z, -8, 7, torch.int8, 3, torch.float32), packed, group, none)


def test_decomposed_choose_qparams():
    check(lambda x: decomposed.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8), sample(4, 3))
    check(lambda x: decomposed.choose_qparams_symmetric.tensor(x, -128, 127, 1e-5, torch.int8), sample(4, 3))


# ---- products ----------------------------------------------------------------------------------------------------------------------

E4, E5 = torch.float8_e4m3fn, torch.float8_e5m2


@pytest.mark.parametrize("left,right", [(E4, E4), (E4, E5), (E5, E4)], ids=str)
@pytest.mark.parametrize("out", [torch.bfloat16, torch.float32], ids=str)
def test_scaled_mm(left, right, out):
    a, c, bias = sample(16, 32).to(left), sample(48, 32).to(right), sample(48).to(out)
    one = [torch.tensor(0.5), torch.tensor(2.5)]
    close = {"rtol": 1e-2, "atol": 1e-1} if out == torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-4}
    check(lambda a, c, s, t, v: torch._scaled_mm(a, c.t(), scale_a=s, scale_b=t, bias=v, out_dtype=out), a, c, *one, bias, **close)
    check(lambda a, c, s, t: torch._scaled_mm(a, c.t(), scale_a=s, scale_b=t, out_dtype=out), a, c, torch.rand(16, 1), torch.rand(1, 48), **close)


def test_scaled_mm_with_narrow_result():
    """Products that the narrow dtype holds: rounding from f32 to 8 bits is the plugin's (it goes by f16)."""

    def run(a, c, s, t, r):
        return torch._scaled_mm(a, c.t(), scale_a=s, scale_b=t, scale_result=r, out_dtype=E4).float()

    check(run, torch.eye(16, 32).to(E4), sample(48, 32).to(E4), torch.tensor(0.5), torch.tensor(2.0), torch.tensor(4.0), launches=2)


def test_functional_scaled_mm():
    from torch.nn.functional import ScalingType, scaled_mm

    a, c = sample(16, 32).to(E4), sample(48, 32).to(E4)
    for kind, s, t in ((ScalingType.TensorWise, torch.tensor(0.5), torch.tensor(2.5)), (ScalingType.RowWise, torch.rand(16, 1), torch.rand(1, 48))):
        check(lambda a, c, s, t, k=kind: scaled_mm(a, c.t(), s, k, t, k, output_dtype=torch.bfloat16), a, c, s, t, rtol=1e-2, atol=1e-1)


def test_int_mm_is_exact():
    check(torch._int_mm, torch.randint(-128, 127, (17, 64), dtype=torch.int8), torch.randint(-128, 127, (64, 8), dtype=torch.int8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_int8_weights(dtype):
    close = {"rtol": 1e-5, "atol": 1e-3} if dtype == torch.float32 else {"rtol": 1e-2, "atol": 1.0}
    weight = torch.randint(-128, 127, (24, 64), dtype=torch.int8)
    check(torch._weight_int8pack_mm, sample(5, 64).to(dtype), weight, torch.rand(24).to(dtype), **close)


@pytest.mark.parametrize("tiles", [2, 4, 8])
@pytest.mark.parametrize("group", [32, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_int4_weights(dtype, group, tiles):
    n, k = 16, 128
    torch.manual_seed(0)
    q = torch.randint(0, 16, (n, k), dtype=torch.uint8)
    x, parameters = torch.randn(3, k).to(dtype), torch.randn(k // group, n, 2).to(dtype)
    packed = torch._convert_weight_to_int4pack((q[:, ::2] << 4 | q[:, 1::2]).to("tpu"), tiles)
    assert packed.shape == (n // 8, k // (tiles * 16), 32, tiles // 2) and packed.dtype == torch.int32
    # CUDA's order: lane 5 of the first word holds row 1, columns 2 and 3, 10 and 11, and 16 further on.
    word = packed.cpu()[0, 0, 5, 0].item() & 0xFFFFFFFF
    assert [word >> 4 * i & 15 for i in range(8)] == q[1, [2, 10, 18, 26, 3, 11, 19, 27]].tolist()
    got = torch._weight_int4pack_mm(x.to("tpu"), packed, group, parameters.to("tpu")).cpu()
    scale, zero = parameters.float().permute(2, 1, 0).unsqueeze(-1)
    weight = (q.float() - 8).reshape(n, k // group, group) * scale + zero
    close = {"rtol": 1e-4, "atol": 1e-3} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 2.0}
    torch.testing.assert_close(got.float(), x.float() @ weight.reshape(n, k).t(), **close)


@pytest.mark.parametrize("dtype", [E4, E5, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz], ids=str)
def test_rounding_to_8_bits(dtype):
    torch.manual_seed(0)
    edges = [float("nan"), float("inf"), -float("inf"), 1e6, -1e6, 0.0, -0.0, 240.0, 247.0, 249.0, 448.0, 464.0, 465.0, 57344.0, 61439.0, 61441.0]
    x = torch.cat([torch.randn(40000) * 4, torch.randn(40000) * 1e-2, torch.randn(20000) * 1e-5, torch.tensor(edges)])
    for source in (torch.float32, torch.bfloat16, torch.float16):
        y = x.to(source)
        got, want = y.to("tpu").to(dtype).cpu(), y.to(dtype)
        torch.testing.assert_close(got.float(), want.float(), rtol=0, atol=0, equal_nan=True)
        assert (got.float().signbit() == want.float().signbit())[~want.float().isnan()].all()
