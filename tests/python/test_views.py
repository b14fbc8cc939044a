# SPDX-License-Identifier: Apache-2.0
"""Views on tpu against the CPU: the first seeds of tests/fuzz/fuzz_view.py, and bad indices that must not pass in silence."""

import importlib.util
import pathlib

import pytest
import torch

import torch_tpu  # noqa: F401

_path = pathlib.Path(__file__).parents[1] / "fuzz" / "fuzz_view.py"
_spec = importlib.util.spec_from_file_location("fuzz_view", _path)
fuzz_view = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fuzz_view)


@pytest.mark.parametrize("first", range(0, 300, 25))
def test_random_chains(first):
    for seed in range(first, first + 25):
        try:
            fuzz_view.run(seed)
        except Exception as e:
            raise AssertionError(f"seed {seed} (replay: python tests/fuzz/fuzz_view.py {seed})") from e


BAD = {
    "index": lambda x, i: x[i],
    "index_put": lambda x, i: x.index_put((i,), torch.ones(1, 3, device="tpu")),
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "take": lambda x, i: x.take(i + 100),
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x),
    "index_add": lambda x, i: x.index_add(0, i, torch.ones(1, 3, device="tpu")),
    "scatter": lambda x, i: x.scatter(0, i[:, None], 1.0),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_index_raises_at_the_next_read(name):
    x = torch.ones(4, 3, device="tpu")
    result = BAD[name](x, torch.tensor([7], device="tpu"))
    with pytest.raises(IndexError, match="out of bounds.*test_views.py"):
        result.cpu()
    assert torch.equal(x.cpu(), torch.ones(4, 3))  # the error is told once


@pytest.mark.parametrize("name", BAD)
def test_bad_index_raises_at_once_in_debug_mode(name):
    x = torch.ones(4, 3, device="tpu")
    bad = torch.tensor([7], device="tpu")
    torch.tpu.set_eager_mode("debug")
    try:
        with pytest.raises(IndexError, match="out of bounds"):
            BAD[name](x, bad)
    finally:
        torch.tpu.set_eager_mode("strict")


def test_duplicate_indices_add_exactly():
    rows = torch.arange(4096, dtype=torch.int64) % 7
    for dtype in (torch.int64, torch.int32, torch.float32, torch.uint8):
        source = torch.ones(4096, dtype=dtype)
        want = torch.zeros(7, dtype=dtype).index_add(0, rows, source)
        got = torch.zeros(7, dtype=dtype, device="tpu").index_add(0, rows.to("tpu"), source.to("tpu"))
        assert torch.equal(got.cpu(), want)
    flags = torch.tensor([True, False, False])
    got = torch.zeros(2, dtype=torch.bool, device="tpu").index_add(0, torch.tensor([0, 0, 1], device="tpu"), flags.to("tpu"))
    assert got.tolist() == [True, False]


def test_masks_among_indices():
    x = torch.arange(24.0).reshape(2, 3, 4)
    mask = torch.tensor([[True, False, True], [False, True, False]])
    t, m = x.to("tpu"), mask.to("tpu")
    assert torch.equal(t[m].cpu(), x[mask])
    assert torch.equal(t[:, m[0]].cpu(), x[:, mask[0]])
    assert torch.equal(t[m[:, 0], :, torch.tensor([1], device="tpu")].cpu(), x[mask[:, 0], :, torch.tensor([1])])
    t[m] = 5.0
    x[mask] = 5.0
    assert torch.equal(t.cpu(), x)
    t[m] = torch.tensor([1.0, 2.0, 3.0, 4.0], device="tpu")
    x[mask] = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert torch.equal(t.cpu(), x)
