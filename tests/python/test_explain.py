# SPDX-License-Identifier: Apache-2.0
"""torch.tpu.explain(): what is new and why, cuts, runs on the CPU, each with its line."""

import re

import pytest
import torch


def texts(notes):
    return [note.text for note in notes]


def test_a_known_call_is_not_new():
    x = torch.ones(3, 5, device="tpu")
    x + x
    with torch.tpu.explain() as report:
        x + x
    assert report.new == [] and report.cuts == [] and report.cpu == []
    assert "Nothing was new" in str(report)


def test_a_new_shape_is_told_with_the_one_before():
    torch.ones(3, 41, device="tpu").atan2(torch.ones(3, 41, device="tpu"))
    x = torch.ones(5, 41, device="tpu")
    with torch.tpu.explain() as report:
        x.atan2(x)
    [note] = report.new
    assert "test_explain.py:" in note.where
    assert note.text.startswith("atan2")
    assert "shape of argument 0: [3,41] before, [5,41] now" in note.text


def test_a_new_dtype_and_a_baked_number():
    x = torch.ones(3, 7, device="tpu")
    torch.cumsum(x, 0)
    with torch.tpu.explain() as report:
        torch.cumsum(x, 1)
        torch.cumsum(x.half(), 1)
    joined = "\n".join(texts(report.new))
    assert "argument 1: 0 before, 1 now" in joined
    assert "dtype of argument 0: f32 before, f16 now" in joined


def test_precision():
    x = torch.ones(4, 11, device="tpu")
    with torch.tpu.precision("HIGHEST"):
        x @ x.t()
    with torch.tpu.explain() as report, torch.tpu.precision("DEFAULT"):
        x @ x.t()
    assert any("precision: highest before, medium now" in text for text in texts(report.new))


def test_default_dtype():
    x = torch.arange(13, device="tpu")
    x / 3
    torch.set_default_dtype(torch.float64)
    try:
        with torch.tpu.explain() as report:
            x / 3
    finally:
        torch.set_default_dtype(torch.float32)
    assert any("default dtype: f32 before, f64 now" in text for text in texts(report.new))


def test_cuts_say_why_and_where():
    x = torch.ones(6, device="tpu")
    with torch.tpu.eager_mode("fused"), torch.tpu.explain() as report:
        y = x * 2 + 1
        y.cpu()
        z = y - 3
        torch.tpu.synchronize()
    assert [text.split(":")[0] for text in texts(report.cuts)] == ["a value is read", "synchronize"]
    assert all("test_explain.py:" in note.where for note in report.cuts)
    assert "2 calls recorded, 1 results kept" in report.cuts[0].text
    assert z.cpu().tolist() == [0.0] * 6


def test_the_end_of_an_optimizers_step_is_a_cut():
    w = torch.nn.Parameter(torch.ones(3).to("tpu"))
    optimizer = torch.optim.SGD([w], lr=0.1)
    with torch.tpu.eager_mode("fused"), torch.tpu.explain() as report:
        (w * 2).sum().backward()
        optimizer.step()
    assert any(text.startswith("an optimizer's step ends") for text in texts(report.cuts))


def test_what_differs_between_traces():
    x, y = torch.ones(9, device="tpu"), torch.ones(13, device="tpu")

    def work(t):
        return (t * 2 + 1 - t).cpu()

    with torch.tpu.eager_mode("fused"):
        work(x)
        with torch.tpu.explain() as report:
            work(y)
    traces = [text for text in texts(report.new) if text.startswith("a trace of")]
    # Which of the traces that are as near it names (this test's, or an earlier one's) is not said.
    assert len(traces) == 1 and re.search(r"shape of argument 0: \[\d+\] before, \[13\] now", traces[0])


def test_a_run_on_the_cpu_is_told():
    counts = torch.tpu.fallbacks()
    x = torch.ones(2, 2).to("tpu")
    with torch.tpu.explain() as report:
        torch.linalg.eigvals(x)
    if torch.tpu.fallbacks() == counts:
        pytest.skip("eigvals has a form for tpu")
    assert any("linalg_eig" in text for text in texts(report.cpu))


def test_compiled_graphs_are_told():
    compiled = torch.compile(lambda t: (t * 2).sin(), backend="tpu")
    x = torch.ones(17, device="tpu")
    with torch.tpu.explain() as report:
        compiled(x)
    assert any(text.startswith("graph_") for text in texts(report.new))


def test_blocks_nest():
    x = torch.ones(19, device="tpu")
    with torch.tpu.explain() as outer:
        x.atanh()
        with torch.tpu.explain() as inner:
            x.asinh()
    assert len(inner.new) == 1 and len(outer.new) == 2
