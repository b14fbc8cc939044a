# SPDX-License-Identifier: Apache-2.0
"""Grouped matrix products (mixtures of experts) against one product a group."""

import pytest
import torch

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
OFFSETS = [[16, 24, 40], [0, 0, 296], [8, 8, 40], [40, 40, 40], [128, 256, 384]]


def close(got, want):
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if want.dtype == torch.float32 else {"rtol": 2e-2, "atol": 2e-2 * float(want.float().abs().max())}
    torch.testing.assert_close(got, want, **tolerance)


def ends(offsets):
    return torch.tensor(offsets, dtype=torch.int32)


def groups(offsets):
    return list(zip([0] + offsets[:-1], offsets, strict=True))


def rows_by_matrix(a, w, offsets):
    out = torch.zeros(a.shape[0], w.shape[2])
    for g, (start, end) in enumerate(groups(offsets)):
        out[start:end] = a[start:end].float() @ w[g].float()
    return out.to(a.dtype)


def one_launch(function, *args, **kwargs):
    function(*args, **kwargs)
    torch.tpu.synchronize()
    before = torch.tpu.stats()["launches"]
    result = function(*args, **kwargs)
    assert torch.tpu.stats()["launches"] == before + 1
    return result


@pytest.mark.parametrize("offsets", OFFSETS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_times_matrices(dtype, offsets):
    torch.manual_seed(0)
    a, w = torch.randn(offsets[-1], 32).to(dtype), torch.randn(3, 32, 24).to(dtype)
    got = one_launch(torch._grouped_mm, a.to("tpu"), w.to("tpu"), offs=ends(offsets).to("tpu"))
    close(got.cpu(), rows_by_matrix(a, w, offsets))


@pytest.mark.parametrize("offsets", OFFSETS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_matrices_times_columns(dtype, offsets):
    torch.manual_seed(0)
    a, w = torch.randn(offsets[-1], 32).to(dtype), torch.randn(3, 24, 32).to(dtype)
    got = one_launch(torch._grouped_mm, w.to("tpu"), a.to("tpu").t(), offs=ends(offsets).to("tpu"))
    close(got.cpu(), rows_by_matrix(a, w.transpose(1, 2), offsets).t())


@pytest.mark.parametrize("offsets", OFFSETS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_terms_in_groups(dtype, offsets):
    torch.manual_seed(0)
    a, c = torch.randn(16, offsets[-1]).to(dtype), torch.randn(offsets[-1], 24).to(dtype)
    got = one_launch(torch._grouped_mm, a.to("tpu"), c.to("tpu"), offs=ends(offsets).to("tpu"))
    want = torch.stack([a[:, s:e].float() @ c[s:e].float() for s, e in groups(offsets)]).to(dtype)
    close(got.cpu(), want)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_batch(dtype):
    torch.manual_seed(0)
    a, w = torch.randn(3, 8, 32).to(dtype), torch.randn(3, 32, 24).to(dtype)
    got = one_launch(torch._grouped_mm, a.to("tpu"), w.to("tpu"))
    close(got.cpu(), (a.float() @ w.float()).to(dtype))


def test_rows_behind_the_last_group_are_zero():
    a, w = torch.randn(40, 32, device="tpu"), torch.randn(2, 32, 24, device="tpu")
    got = torch._grouped_mm(a, w, offs=ends([8, 16]).to("tpu")).cpu()
    assert (got[16:] == 0).all() and (got[:16] != 0).any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients(dtype):
    torch.manual_seed(0)
    offsets = [16, 16, 40]
    a, w = torch.randn(40, 32).to(dtype), torch.randn(3, 32, 24).to(dtype)
    weight = torch.randn(40, 24).to(dtype)
    results = []
    for device in ("cpu", "tpu"):
        x, y = a.to(device).requires_grad_(), w.to(device).requires_grad_()
        if device == "cpu":
            out = torch.cat([x[s:e].float() @ y[g].float() for g, (s, e) in enumerate(groups(offsets))]).to(dtype)
        else:
            out = torch.nn.functional.grouped_mm(x, y, offs=ends(offsets).to(device))
        results.append([t.cpu() for t in torch.autograd.grad(out, [x, y], weight.to(device))])
    for want, got in zip(*results, strict=True):
        close(got, want)


def test_new_offsets_need_no_new_program():
    a, w = torch.randn(40, 32, device="tpu"), torch.randn(3, 32, 24, device="tpu")
    torch._grouped_mm(a, w, offs=ends([8, 16, 40]).to("tpu"))
    before = torch.tpu.stats()["plans"]
    got = torch._grouped_mm(a, w, offs=ends([24, 32, 40]).to("tpu"))
    assert torch.tpu.stats()["plans"] == before
    close(got.cpu(), rows_by_matrix(a.cpu(), w.cpu(), [24, 32, 40]))


@pytest.mark.parametrize(
    "a,w,offs,text",
    [
        ((8, 32), (3, 16, 24), [2, 4, 8], "contraction dimension"),
        ((8, 32), (3, 32, 24), [2, 8], "matrix batch sizes"),
        ((8, 32), (3, 32, 24), None, "offsets"),
        ((3, 8, 32), (3, 32, 24), [2, 4, 8], "offset"),
    ],
)
def test_bad_arguments(a, w, offs, text):
    with pytest.raises(RuntimeError, match=text):
        torch._grouped_mm(torch.ones(a, device="tpu"), torch.ones(w, device="tpu"), offs=None if offs is None else ends(offs).to("tpu"))
