# SPDX-License-Identifier: Apache-2.0
"""Nested tensors of the jagged layout on tpu against the CPU: construction, pointwise, products, attention, padding, gradients."""

import pytest
import torch
import torch.nn.functional as F

LENGTHS = [2, 3, 1]


def parts(device, width=8):
    torch.manual_seed(0)
    return [torch.randn(n, width).to(device) for n in LENGTHS]


def jagged(device, width=8, **options):
    return torch.nested.nested_tensor(parts("cpu", width), layout=torch.jagged, device=device, **options)


def same(function, **tolerance):
    """The same values on both devices, nothing computed on the CPU."""
    want, fallbacks = function("cpu"), torch.tpu.fallbacks()
    got = function("tpu")
    assert torch.tpu.fallbacks() == fallbacks
    for g, w in zip(*[t if isinstance(t, (tuple, list)) else [t] for t in (got, want)], strict=True):
        assert g.device.type == "tpu" and g.is_nested == w.is_nested
        if w.is_nested:
            torch.testing.assert_close(g.offsets().cpu(), w.offsets())
            g, w = g.values(), w.values()
        torch.testing.assert_close(g.detach().cpu(), w.detach(), **tolerance)


CASES = {
    "from_list": jagged,
    "as_nested": lambda d: torch.nested.as_nested_tensor(parts(d), layout=torch.jagged),
    "from_offsets": lambda d: torch.nested.nested_tensor_from_jagged(torch.arange(24.0, device=d).reshape(6, 4), torch.tensor([0, 2, 5, 6], device=d)),
    "moved": lambda d: jagged("cpu").to(d),
    "pointwise": lambda d: (lambda x: (x * 2 + x.cos()).sin().relu())(jagged(d)),
    "gelu": lambda d: F.gelu(jagged(d)),
    "dtype": lambda d: jagged(d).double(),
    "compare": lambda d: (lambda x: torch.where(x > 0, x, -x))(jagged(d)),
    "matmul": lambda d: jagged(d) @ torch.linspace(-1, 1, 40, device=d).reshape(8, 5),
    "linear": lambda d: F.linear(jagged(d), torch.linspace(-1, 1, 40, device=d).reshape(5, 8), torch.ones(5, device=d)),
    "layer_norm": lambda d: F.layer_norm(jagged(d), (8,), torch.full((8,), 2.0, device=d), torch.ones(8, device=d)),
    "softmax": lambda d: jagged(d).softmax(-1),
    "softmax_of_ragged_dim": lambda d: jagged(d).softmax(1),
    "sum_of_features": lambda d: jagged(d).sum(-1),
    "sum_of_ragged_dim": lambda d: jagged(d).sum(1),
    "mean_of_ragged_dim": lambda d: jagged(d).mean(1),
    "padded": lambda d: jagged(d).to_padded_tensor(-1.0),
    "padded_further": lambda d: torch.nested.to_padded_tensor(jagged(d), 0.5, (3, 5, 8)),
    "unbound": lambda d: list(jagged(d).unbind()),
    "split_heads": lambda d: jagged(d).unflatten(-1, [2, 4]).transpose(1, 2).transpose(1, 2).flatten(2),
    "embedding": lambda d: F.embedding(
        torch.nested.nested_tensor([torch.tensor([1, 0]), torch.tensor([2])], layout=torch.jagged, device=d),
        torch.arange(12.0, device=d).reshape(3, 4),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_jagged(name):
    same(CASES[name])


def attention(device, causal, heads=2, width=16, cross=False):
    query = jagged(device, width, requires_grad=True)
    other = torch.nested.nested_tensor([t[:1] * 2 for t in parts("cpu", width)] if cross else parts("cpu", width), layout=torch.jagged, device=device)
    other.requires_grad_()
    q, k = (t.unflatten(-1, [heads, width // heads]).transpose(1, 2) for t in (query, other))
    out = F.scaled_dot_product_attention(q, k, k * 0.5, is_causal=causal)
    out.values().square().sum().backward()
    return out.transpose(1, 2).values(), query.grad, other.grad


@pytest.mark.parametrize("cross", [False, True])
def test_attention(cross):
    same(lambda d: attention(d, False, cross=cross), rtol=1e-4, atol=1e-5)


def test_attention_with_features_not_in_eights():
    """PyTorch goes by strided nested tensors."""

    def run(device):
        x = jagged(device).unflatten(-1, [2, 4]).transpose(1, 2)
        return F.scaled_dot_product_attention(x, x, x * 0.5).transpose(1, 2).values()

    same(run, rtol=1e-4, atol=1e-5)


def test_causal_attention_is_that_of_each_part():
    got = attention("tpu", True)
    out, grads = [], []
    for part in parts("cpu", 16):
        x, y = part.clone().requires_grad_(), part.clone().requires_grad_()
        q, k = (t.unflatten(-1, [2, 8]).transpose(0, 1).unsqueeze(0) for t in (x, y))
        o = F.scaled_dot_product_attention(q, k, k * 0.5, is_causal=True)
        o.square().sum().backward()
        out.append(o.squeeze(0).transpose(0, 1))
        grads.append((x.grad, y.grad))
    for g, w in zip([got[0], got[1].values(), got[2].values()], [out, *zip(*grads, strict=True)], strict=True):
        torch.testing.assert_close(g.detach().cpu(), torch.cat(list(w)).detach(), rtol=1e-4, atol=1e-5)


def test_attention_reads_no_length():
    """Forward and backward of attention are a launch each: no part of it runs by sequence."""
    q = torch.randn(6, 2, 4, device="tpu").requires_grad_()
    starts = torch.tensor([0, 2, 5, 6], dtype=torch.int32, device="tpu")
    call = lambda: torch.ops.aten._flash_attention_forward(q.detach(), q.detach(), q.detach(), starts, starts, 3, 3, 0.0, False, False)  # noqa: E731
    call()
    torch.tpu.synchronize()
    before = torch.tpu.stats()["launches"]
    call()
    assert torch.tpu.stats()["launches"] == before + 1


@pytest.mark.parametrize("window", [(-1, -1), (1, 0), (0, 2)])
def test_varlen_attention_with_windows_and_shared_heads(window):
    torch.manual_seed(0)
    q, k, v = torch.randn(6, 4, 8), torch.randn(7, 2, 8), torch.randn(7, 2, 8)
    q_starts, k_starts = [0, 2, 5, 6], [0, 4, 5, 7]
    weight = torch.randn(6, 4, 8)
    want, leaves = [], [t.clone().requires_grad_() for t in (q, k, v)]
    for s, e, ks, ke in zip(q_starts, q_starts[1:], k_starts, k_starts[1:], strict=False):
        place = torch.arange(e - s).unsqueeze(1) + (ke - ks) - (e - s)
        column = torch.arange(ke - ks).unsqueeze(0)
        seen = torch.ones(e - s, ke - ks, dtype=torch.bool)
        if window[0] >= 0:
            seen &= column >= place - window[0]
        if window[1] >= 0:
            seen &= column <= place + window[1]
        a, c, d = leaves[0][s:e].transpose(0, 1), *(t[ks:ke].transpose(0, 1).repeat_interleave(2, 0) for t in leaves[1:])
        p = (a @ c.mT / 8**0.5).masked_fill(~seen, -torch.inf)
        p = torch.where(seen.any(1, keepdim=True), p.softmax(-1), 0.0)
        want.append((p @ d).transpose(0, 1))
    want = torch.cat(want)
    grads = torch.autograd.grad(want, leaves, weight)
    on_tpu = [t.to("tpu").requires_grad_() for t in (q, k, v)]
    starts = [torch.tensor(t, dtype=torch.int32, device="tpu") for t in (q_starts, k_starts)]
    limits = dict(zip(("window_size_left", "window_size_right"), window, strict=True))
    got = torch.ops.aten._flash_attention_forward(*on_tpu, *starts, 3, 4, 0.0, False, False, **limits)[0]
    torch.testing.assert_close(got.detach().cpu(), want.detach(), rtol=1e-4, atol=1e-5)
    for g, w in zip(torch.autograd.grad(got, on_tpu, weight.to("tpu")), grads, strict=True):
        torch.testing.assert_close(g.cpu(), w, rtol=1e-4, atol=1e-5)


def test_gradients():
    def run(device):
        x = jagged(device, requires_grad=True)
        w = torch.linspace(-1, 1, 40, device=device).reshape(8, 5).requires_grad_()
        y = F.gelu(x @ w).to_padded_tensor(0.0)
        (y.sum(1) * torch.arange(5.0, device=device)).sum().backward()
        return x.grad, w.grad

    same(run, rtol=1e-5, atol=1e-5)


def test_module():
    def run(device):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)).to(device)
        model(jagged(device)).values().square().sum().backward()
        return [p.grad for p in model.parameters()]

    same(run, rtol=1e-4, atol=1e-5)


def test_strided_layout():
    """The older layout, through PyTorch's own kernels on the parts."""
    nested = torch.nested.nested_tensor(parts("cpu"), device="tpu")
    result = F.linear((nested * 2).relu(), torch.full((2, 8), 0.5, device="tpu"))
    for got, part in zip(result.unbind(), parts("cpu"), strict=True):
        torch.testing.assert_close(got.cpu(), (part * 2).relu() @ torch.full((8, 2), 0.5))
    with pytest.raises(NotImplementedError, match="use layout=torch.jagged"):
        nested.cumsum(1)
