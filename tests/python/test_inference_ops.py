# SPDX-License-Identifier: Apache-2.0
"""Operators outside of PyTorch's operator database that modules call: the inference kernels of attention layers, segments, assertions."""

import copy

import pytest
import torch

PADDING = torch.tensor([[False] * 3 + [True] * 2, [False] * 5])
CAUSAL = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)


def quiet(function):
    """Runs it; nothing may be computed on the CPU."""
    before = torch.tpu.fallbacks()
    result = function()
    assert torch.tpu.fallbacks() == before
    return result


@pytest.mark.parametrize("masks", [{}, {"src_key_padding_mask": PADDING}, {"src_mask": CAUSAL}, {"src_mask": CAUSAL, "src_key_padding_mask": PADDING}], ids=len)
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layer_in_one_launch(norm_first, activation, masks):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation=activation, norm_first=norm_first).eval()
    x = torch.randn(2, 5, 16)
    on_tpu, y = copy.deepcopy(layer).to("tpu"), x.to("tpu")
    moved = {k: v.to("tpu") for k, v in masks.items()}
    with torch.no_grad():
        want = layer(x, **masks)
        got = quiet(lambda: on_tpu(y, **moved))
        torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-5)
        before = torch.tpu.stats()["launches"]
        on_tpu(y)
        on_tpu(y)
        assert torch.tpu.stats()["launches"] - before <= 3


def test_encoder_with_padding():
    """PyTorch makes a nested tensor of what is not padding."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2).eval()
    x = torch.randn(2, 5, 16)
    with torch.no_grad():
        want = encoder(x, src_key_padding_mask=PADDING)
        got = encoder.to("tpu")(x.to("tpu"), src_key_padding_mask=PADDING.to("tpu")).cpu()
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weights", [False, True])
def test_multi_head_attention(weights):
    torch.manual_seed(0)
    module, x = torch.nn.MultiheadAttention(16, 2, batch_first=True).eval(), torch.randn(2, 5, 16)
    with torch.no_grad():
        want = module(x, x, x, need_weights=weights)
        module, y = module.to("tpu"), x.to("tpu")
        got = quiet(lambda: module(y, y, y, need_weights=weights))
    for g, w in zip(got, want, strict=True):
        assert (g is None) == (w is None)
        if w is not None:
            torch.testing.assert_close(g.cpu(), w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("initial", [None, 1.5])
@pytest.mark.parametrize("form", ["lengths", "offsets"])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduce, form, initial):
    torch.manual_seed(0)
    data = torch.randn(6, 3)
    data[0, 0] = data[4, 1] = 0
    data[2, 1] = data[3, 1]
    segments = torch.tensor([1, 3, 2]) if form == "lengths" else torch.tensor([0, 1, 4, 6])

    def run(device):
        x = data.to(device).requires_grad_()
        y = torch.segment_reduce(x, reduce, **{form: segments.to(device)}, axis=0, initial=initial)
        y.backward(torch.linspace(-1, 1, 9).reshape(3, 3).to(device))
        return y.detach().cpu(), x.grad.cpu()

    torch.testing.assert_close(quiet(lambda: run("tpu")), run("cpu"))


def test_empty_segment():
    for reduce in ("sum", "mean", "max", "min", "prod"):
        got, want = (
            torch.segment_reduce(torch.ones(2, device=d), reduce, lengths=torch.tensor([0, 2], device=d), axis=0).cpu() for d in ("tpu", "cpu")
        )
        torch.testing.assert_close(got, want, equal_nan=True)


def test_assertions():
    quiet(lambda: torch._assert_async(torch.ones((), device="tpu")))
    for zero in (torch.zeros((), device="tpu"), torch.tensor(False, device="tpu")):
        with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value, but got zero"):
            torch._assert_async(zero)
        with pytest.raises(RuntimeError, match="sizes differ"):
            torch._assert_async(zero, "sizes differ")
    token = torch.ops.aten._make_dep_token(device="tpu")
    with pytest.raises(RuntimeError, match="sizes differ"):
        torch.ops.aten._functional_assert_async.msg(torch.zeros((), device="tpu"), "sizes differ", token)
    assert torch.ops.aten._functional_assert_async.msg(torch.ones((), device="tpu"), "", token).device.type == "tpu"


@pytest.mark.parametrize("right", [False, True])
def test_search_in_a_long_sequence(right):
    """By halves: comparing all with all would take 1.6 GB."""
    torch.manual_seed(0)
    edges, values = torch.randint(0, 9000, (20000,)).sort().values, torch.randint(-5, 9005, (20000,))
    got = torch.searchsorted(edges.to("tpu"), values.to("tpu"), right=right).cpu()
    torch.testing.assert_close(got, torch.searchsorted(edges, values, right=right))
    real = torch.cat([values.float(), torch.tensor([float("nan"), float("inf"), -float("inf")])])
    got = torch.searchsorted(edges.float().to("tpu"), real.to("tpu"), right=right).cpu()
    torch.testing.assert_close(got, torch.searchsorted(edges.float(), real, right=right))
