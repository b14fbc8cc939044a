# SPDX-License-Identifier: Apache-2.0
"""out= tensors of the wrong size, and overloads that have an out= form only through their functional one: none runs on the CPU."""
import warnings

import pytest
import torch

A = torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
CALLS = {
    "cross": lambda x, **kw: torch.linalg.cross(x, x.flip(0), **kw),
    "narrow_copy": lambda x, **kw: torch.narrow_copy(x, 1, 0, 2, **kw),
    "cholesky": lambda x, **kw: torch.cholesky(x, **kw),
    "cholesky_upper": lambda x, **kw: torch.cholesky(x, upper=True, **kw),
    "geqrf": lambda x, **kw: torch.geqrf(x, **kw),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("fits", [False, True])
def test_out_is_filled_on_the_device(name, fits):
    call = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = call(A)
        outs = [torch.empty(w.shape if fits else 0, device="tpu") for w in (want if isinstance(want, tuple) else (want,))]
        before = dict(torch.tpu.fallbacks())
        call(A.to("tpu"), out=tuple(outs) if len(outs) > 1 else outs[0])
    assert torch.tpu.fallbacks() == before
    torch.testing.assert_close([o.cpu() for o in outs], list(want) if isinstance(want, tuple) else [want])


def test_equal_reads_one_answer():
    x = torch.arange(6.0).reshape(2, 3)
    y, before = x.to("tpu"), dict(torch.tpu.fallbacks())
    assert torch.equal(y, x.to("tpu"))
    assert not torch.equal(y, (x + 1).to("tpu"))
    assert not torch.equal(y, x.reshape(3, 2).to("tpu"))
    assert torch.equal(y, x.long().to("tpu"))  # as on the CPU
    nan = torch.full((2,), float("nan"), device="tpu")
    assert not torch.equal(nan, nan)
    assert torch.equal(torch.empty(0, device="tpu"), torch.empty(0, device="tpu"))
    assert torch.tpu.fallbacks() == before


def test_cholesky_of_no_positive_matrix():
    for x in (-torch.eye(3), torch.stack([torch.eye(3), -torch.eye(3)])):
        with pytest.raises(torch.linalg.LinAlgError) as on_cpu:
            torch.cholesky(x)
        with pytest.raises(torch.linalg.LinAlgError) as on_tpu:
            torch.cholesky(x.to("tpu"))
        assert str(on_tpu.value) == str(on_cpu.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_multinomial_wants_int64(dtype):
    with pytest.raises(RuntimeError, match="multinomial expects Long tensor out"):
        torch.multinomial(torch.ones(3, device="tpu"), 2, out=torch.empty(2, dtype=dtype, device="tpu"))


SEGMENTS = {"lengths": torch.tensor([2, 0, 3, 1]), "offsets": torch.tensor([0, 2, 2, 5, 6])}


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("by", SEGMENTS)
@pytest.mark.parametrize("initial", [None, 3.0])
def test_segment_reduce(reduce, by, initial):
    data = torch.tensor([1.0, -2.0, 0.0, 4.0, 0.0, 5.0])
    data = torch.stack([data, data.flip(0), torch.arange(1.0, 7.0)], 1)
    results = []
    before = dict(torch.tpu.fallbacks())
    for device in ("cpu", "tpu"):
        x = data.detach().to(device, copy=True).requires_grad_()
        out = torch.segment_reduce(x, reduce, **{by: SEGMENTS[by].to(device)}, initial=initial)
        keep = ~out.isnan() & out.isfinite()
        out[keep].sum().backward()
        results.append((out.detach().cpu(), x.grad.cpu()))
    torch.testing.assert_close(results[1], results[0], equal_nan=True)
    assert torch.tpu.fallbacks() == before


def test_segment_reduce_checks_lengths():
    x = torch.ones(3, device="tpu")
    with pytest.raises(RuntimeError, match="Expected all rows of lengths along axis to sum to"):
        torch.segment_reduce(x, "sum", lengths=torch.tensor([1, 1], device="tpu"))
    with pytest.raises(RuntimeError, match="lengths contains negative value"):
        torch.segment_reduce(x, "sum", lengths=torch.tensor([4, -1], device="tpu"))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int64])
@pytest.mark.parametrize("ends", [(50, 1), (4.3, 0), (4.3, 50), (0, 1.2), (0, 4)])
def test_whole_lines(ends, dtype):
    for make in (lambda **kw: torch.linspace(*ends, 50, dtype=dtype, **kw), lambda **kw: torch.linspace(*ends, 4, dtype=dtype, **kw)):
        assert torch.equal(make(device="tpu").cpu(), make())
    if max(ends) < 7:
        assert torch.equal(torch.logspace(*ends, 9, base=2.0, dtype=dtype, device="tpu").cpu(), torch.logspace(*ends, 9, base=2.0, dtype=dtype))
