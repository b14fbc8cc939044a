# SPDX-License-Identifier: Apache-2.0
"""Distributions: what is drawn on tpu has the right statistics, range and dtype. Seeds and generators: test_rng.py."""

import math

import pytest
import torch

N = 40000


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1234)


def empty(dtype=torch.float32, n=N):
    return torch.empty(n, dtype=dtype, device="tpu")


def moments(t):
    t = t.cpu().double()
    return t.mean().item(), t.std().item()


def near(got, want, spread, n=N):
    """Within five standard errors."""
    assert abs(got - want) < 5 * spread / math.sqrt(n), f"{got} instead of {want}"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_uniform(dtype):
    x = empty(dtype).uniform_(-2, 3)
    assert x.dtype == dtype
    y = x.cpu().double()
    assert y.min() >= -2
    assert y.max() < 3
    near(y.mean().item(), 0.5, 5 / math.sqrt(12))
    near(y.std().item(), 5 / math.sqrt(12), 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_normal(dtype):
    mean, std = moments(empty(dtype).normal_(2, 3))
    near(mean, 2, 3)
    near(std, 3, 3)
    z = torch.randn(N, device="tpu").cpu()
    near((z.abs() < 1).double().mean().item(), 0.682689, 0.5)
    near((z.abs() > 2).double().mean().item(), 0.0455, 0.25)


def test_complex_normal_has_variance_one():
    z = torch.randn(N, dtype=torch.complex64, device="tpu").cpu()
    near((z.abs() ** 2).double().mean().item(), 1, 1)
    near(z.real.double().std().item(), math.sqrt(0.5), 1)


def test_normal_of_tensors():
    mean = torch.arange(4.0, device="tpu").repeat(N)
    near(torch.normal(mean, 0.5).sub(mean).cpu().double().std().item(), 0.5, 0.5)
    std = torch.full((N,), 2.0, device="tpu")
    near(torch.normal(1.0, std).cpu().double().mean().item(), 1, 2)
    near(torch.normal(mean[:N], std).sub(mean[:N]).cpu().double().std().item(), 2, 2)


def test_exponential_cauchy_log_normal_geometric():
    x = empty().exponential_(2).cpu().double()
    assert x.min() > 0
    near(x.mean().item(), 0.5, 0.5)
    c = empty().cauchy_(1, 2).cpu().double()
    near((c < 1).double().mean().item(), 0.5, 0.5)
    near((c < 3).double().mean().item(), 0.75, 0.5)
    near(empty().log_normal_(0.5, 0.25).cpu().double().log().mean().item(), 0.5, 0.25)
    g = empty().geometric_(0.25).cpu().double()
    assert g.min() == 1
    near(g.mean().item(), 4, math.sqrt(12))
    near((g == 1).double().mean().item(), 0.25, 0.5)


def test_bernoulli_in_all_forms():
    near(empty().bernoulli_(0.3).cpu().double().mean().item(), 0.3, 0.5)
    p = torch.tensor([0.0, 1.0, 0.25, 0.75], device="tpu").repeat(N // 4)
    for drawn in (torch.bernoulli(p), empty().bernoulli_(p)):
        rows = drawn.cpu().double().reshape(-1, 4).mean(0)
        assert rows[0] == 0
        assert rows[1] == 1
        near(rows[2].item(), 0.25, 0.5, N // 4)
    assert empty(torch.int64).bernoulli_(1.0).sum().item() == N
    assert torch.bernoulli(torch.rand(5, device="tpu"), 0.0).sum().item() == 0


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.float32])
def test_randint(dtype):
    x = torch.randint(3, 11, (N,), dtype=dtype, device="tpu")
    assert x.dtype == dtype
    counts = torch.bincount(x.cpu().long(), minlength=11)
    assert counts[:3].sum() == 0
    assert len(counts) == 11
    for c in counts[3:].tolist():
        near(c / N, 1 / 8, 0.331)


def test_random_covers_the_dtype():
    assert set(empty(torch.bool).random_().cpu().tolist()) == {False, True}
    x = empty(torch.uint8).random_().cpu()
    assert (x.min(), x.max()) == (0, 255)
    assert empty(torch.int8).random_().cpu().min() >= 0
    f = empty(torch.float16).random_().cpu().double()
    assert f.max() > 2000
    assert f.max() <= 2**11
    w = empty(torch.int64).random_(-(2**63), None).cpu()
    assert w.min() < -(2**62)
    assert w.max() > 2**62
    with pytest.raises(RuntimeError, match="expects 'from' to be less than 'to'"):
        torch.randint(5, 5, (3,), device="tpu")


def test_randperm():
    for n in (0, 1, 7, 1000):
        p = torch.randperm(n, device="tpu")
        assert p.dtype == torch.int64
        assert sorted(p.cpu().tolist()) == list(range(n))
    firsts = torch.stack([torch.randperm(4, device="tpu") for _ in range(400)]).cpu()
    for column in range(4):
        for c in torch.bincount(firsts[:, column], minlength=4).tolist():
            near(c / 400, 0.25, 0.433, 400)


def test_multinomial():
    p = torch.tensor([0.0, 1, 2, 0, 5], device="tpu")
    counts = torch.bincount(torch.multinomial(p, N, replacement=True).cpu(), minlength=5)
    assert counts[0] == counts[3] == 0
    near(counts[4].item() / N, 0.625, 0.5)
    assert sorted(torch.multinomial(p, 3).cpu().tolist()) == [1, 2, 4]
    one = torch.multinomial(p.expand(2000, 5), 1).cpu().flatten()
    near((one == 4).double().mean().item(), 0.625, 0.5, 2000)
    first = torch.multinomial(p.expand(2000, 5), 2).cpu()[:, 0]
    near((first == 2).double().mean().item(), 0.25, 0.5, 2000)


@pytest.mark.parametrize("rate", [0.5, 4.0, 9.5, 30.0, 500.0])
def test_poisson(rate):
    x = torch.poisson(torch.full((N,), rate, device="tpu")).cpu().double()
    assert torch.equal(x, x.round())
    near(x.mean().item(), rate, math.sqrt(rate))
    near(x.var().item(), rate, math.sqrt(2 * rate**2 + rate))


@pytest.mark.parametrize(("count", "p"), [(5.0, 0.3), (40.0, 0.9), (200.0, 0.4), (10.0, 0.0), (10.0, 1.0)])
def test_binomial(count, p):
    x = torch.binomial(torch.full((N,), count, device="tpu"), torch.full((N,), p, device="tpu")).cpu().double()
    assert x.min() >= 0
    assert x.max() <= count
    if p in (0, 1):
        assert torch.equal(x, torch.full((N,), count * p, dtype=torch.float64))
        return
    variance = count * p * (1 - p)
    near(x.mean().item(), count * p, math.sqrt(variance))
    near(x.var().item(), variance, math.sqrt(2) * variance + 1)


@pytest.mark.parametrize("shape", [0.3, 1.0, 4.5])
def test_gamma_and_dirichlet(shape):
    x = torch._standard_gamma(torch.full((N,), shape, device="tpu")).cpu().double()
    assert x.min() >= 0
    near(x.mean().item(), shape, math.sqrt(shape))
    near(x.var().item(), shape, math.sqrt(2 * shape**2 + 6 * shape))
    d = torch._sample_dirichlet(torch.tensor([[shape, 2 * shape, shape]], device="tpu").repeat(N, 1)).cpu().double()
    torch.testing.assert_close(d.sum(1), torch.ones(N, dtype=torch.float64), atol=1e-5, rtol=0)
    near(d[:, 1].mean().item(), 0.5, 0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_scales_what_it_keeps(dtype):
    x = torch.ones(N, dtype=dtype, device="tpu", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.2)
    kept = y.detach().cpu() != 0
    near(kept.double().mean().item(), 0.8, 0.4)
    assert set(y.detach().cpu()[kept].tolist()) == {torch.tensor(1.25, dtype=dtype).item()}
    y.backward(torch.ones_like(y))
    assert torch.equal(x.grad.cpu() != 0, kept)
    assert torch.equal(torch.nn.functional.dropout(x, 0.2, training=False), x)
    assert torch.nn.functional.dropout(x, 1.0).abs().sum().item() == 0


def test_rrelu():
    x = -torch.ones(N, device="tpu")
    y = torch.nn.functional.rrelu(x, 0.1, 0.3, training=True).cpu().double()
    assert y.max() <= -0.1
    assert y.min() >= -0.3
    near(y.mean().item(), -0.2, 0.2 / math.sqrt(12))


def test_initialisers():
    w = torch.nn.init.trunc_normal_(torch.empty(N, device="tpu"), 1.0, 2.0, 0.0, 2.0).cpu().double()
    assert w.min() >= 0
    assert w.max() <= 2
    near(w.mean().item(), 1, 0.57)
    q = torch.nn.init.orthogonal_(torch.empty(6, 4, device="tpu"))
    torch.testing.assert_close((q.T @ q).cpu(), torch.eye(4), atol=1e-5, rtol=0)
    k = torch.nn.init.kaiming_uniform_(torch.empty(100, 400, device="tpu"), a=math.sqrt(5)).cpu()
    assert k.abs().max() <= 1 / math.sqrt(400)


def test_attention_dropout_is_undone_in_the_backward_pass():
    q, k, v = (torch.randn(2, 3, 16, 8, device="tpu", requires_grad=True) for _ in range(3))

    def run(value):
        torch.manual_seed(3)
        return torch.nn.functional.scaled_dot_product_attention(q, k, value, dropout_p=0.4)

    # Attention is linear in the values: with the same mask, its derivative along `step` is the result for `step`.
    step = torch.randn(2, 3, 16, 8, device="tpu")
    weights = torch.randn(2, 3, 16, 8, device="tpu")
    (grad,) = torch.autograd.grad(run(v), v, weights)
    with torch.no_grad():
        along = (run(step) * weights).sum().item()
    assert abs((grad * step).sum().item() - along) < 1e-3 * (1 + abs(along))


def test_errors_are_pytorchs():
    for draw, text in [
        (lambda x: x.uniform_(3, -1), "uniform_ expects to return a \\[from, to\\) range, but found from=3 > to=-1"),
        (lambda x: x.exponential_(0), "exponential_ expects lambda > 0.0, but found lambda=0"),
        (lambda x: x.cauchy_(0, 0), "cauchy_ expects sigma > 0.0, but found sigma=0"),
        (lambda x: x.geometric_(-1), "geometric_ expects p to be in \\(0, 1\\), but got p=-1"),
        (lambda x: x.log_normal_(0, 0), "log_normal_ expects std > 0.0, but found std=0"),
        (lambda x: x.normal_(0, -1), "normal expects std >= 0.0, but found std -1"),
        (lambda x: x.bernoulli_(2.0), "bernoulli_ expects p to be in \\[0, 1\\], but got p=2"),
    ]:
        for n in (10, 10):  # the second call finds its program made
            with pytest.raises(RuntimeError, match=text):
                draw(empty(n=n))
