# SPDX-License-Identifier: Apache-2.0
"""Fused eager mode: values as in strict mode, one program a cut, nothing compiled when only numbers change."""

import threading

import pytest
import torch


@pytest.fixture(autouse=True)
def fused():
    torch.tpu.synchronize()
    with torch.tpu.eager_mode("fused"):
        yield


def delta(before):
    after = torch.tpu.stats()
    return {key: after[key] - before[key] for key in after}


def settle(run):
    """Runs a trace until a worker has compiled it."""
    import time

    for _ in range(200):
        before = torch.tpu.stats()
        result = run()
        if delta(before)["fused_runs"]:
            return result
        time.sleep(0.02)
    raise AssertionError("the trace never ran as one program")


def chain(x, y, k):
    for i in range(20):
        x = x * (0.5 + 0.01 * k) + y
    return x


def test_a_trace_is_one_program():
    x, y = torch.ones(8, 8).to("tpu"), torch.ones(8, 8).to("tpu")
    settle(lambda: chain(x, y, 1).cpu())
    before = torch.tpu.stats()
    got = chain(x, y, 7).cpu()
    d = delta(before)
    assert d["launches"] == 1 and d["compiled"] == 0 and d["cuts"] == 1 and d["recorded"] == 40
    torch.testing.assert_close(got, chain(x.cpu(), y.cpu(), 7))


def test_the_first_run_of_a_trace_is_right_too():
    x = torch.arange(12.0).reshape(3, 4).to("tpu")
    got = ((x + 1.25) * x).t().contiguous().cpu()
    torch.testing.assert_close(got, ((x.cpu() + 1.25) * x.cpu()).t())


def test_writes_through_views_and_aliases():
    def work(x):
        y = x.clone()
        v = y[1:, ::2]
        v.mul_(3)
        y.add_(1)
        w = v + 1
        y.t()[0].fill_(-2)
        return y, v, w, y.sum()

    x = torch.arange(12.0).reshape(3, 4)
    t = x.to("tpu")
    for _ in range(4):
        for got, want in zip(work(t), work(x), strict=True):
            torch.testing.assert_close(got.cpu(), want)


def test_dead_values_are_not_outputs():
    x = torch.ones(4).to("tpu")

    def work():
        a = x + 1
        b = a * 2
        del a
        return b

    settle(lambda: work().cpu())
    kept = torch.tpu.memory_allocated()
    b = work()
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() - kept == 16
    assert b.cpu().tolist() == [4.0] * 4


def test_an_input_that_is_overwritten_keeps_its_old_value_for_earlier_readers():
    x = torch.ones(4).to("tpu")
    y = x * 2
    x.fill_(5)
    z = x + y
    assert y.cpu().tolist() == [2.0] * 4 and z.cpu().tolist() == [7.0] * 4


def test_random_numbers_are_those_of_strict_mode():
    def draw():
        torch.tpu.manual_seed(3)
        return torch.rand(5, device="tpu") + torch.rand(5, device="tpu")

    got = draw().cpu()
    with torch.tpu.eager_mode("strict"):
        assert torch.equal(draw().cpu(), got)


def test_training_steps_match_the_cpu():
    def train(device):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        losses = []
        for step in range(6):
            x = torch.linspace(-1, 1, 32).reshape(4, 8).to(device) * (step + 1)
            optimizer.zero_grad()
            loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return [float(loss) for loss in losses]

    assert train("tpu") == pytest.approx(train("cpu"), rel=1e-4)


def test_argument_errors_raise_at_the_call():
    x = torch.ones(3, device="tpu")
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        x + torch.ones(4, device="tpu")
    assert (x + 1).cpu().tolist() == [2.0] * 3


def test_an_index_out_of_range_is_reported_when_read():
    x = torch.arange(4.0).to("tpu")
    y = x[torch.tensor([9]).to("tpu")]
    with pytest.raises(IndexError, match="test_fused.py"):
        y.cpu()
    assert (x + 1).cpu().tolist() == [1.0, 2.0, 3.0, 4.0]


def test_several_threads_record_at_once():
    shared = torch.ones(16, device="tpu")
    wrong = []

    def work(k):
        for _ in range(30):
            if chain(shared, shared, k).cpu().tolist() != wanted[k]:
                wrong.append(k)

    wanted = [chain(shared, shared, k).cpu().tolist() for k in range(4)]
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_changing_the_mode_runs_what_is_recorded():
    x = torch.ones(4, device="tpu") + 1
    before = torch.tpu.stats()["cuts"]
    torch.tpu.set_eager_mode("strict")
    assert torch.tpu.stats()["cuts"] == before + 1 and x.cpu().tolist() == [2.0] * 4


def test_making_a_tensor_of_unknown_size_cuts_nothing():
    x = torch.ones(4, device="tpu") + 1
    before = torch.tpu.stats()["cuts"]
    y = torch.arange(4, device="tpu") + x
    assert torch.tpu.stats()["cuts"] == before
    assert y.cpu().tolist() == [2.0, 3.0, 4.0, 5.0]


def test_resizing_keeps_what_is_recorded():
    x = torch.arange(4.0).to("tpu") + 1
    x.resize_(6)
    assert x[:4].cpu().tolist() == [1.0, 2.0, 3.0, 4.0]


def test_numbers_of_all_kinds_in_one_trace():
    def work(k):
        x = torch.arange(6, device="tpu")
        y = x * 2.5 + k
        z = (x + k).double() * 0.1
        w = y[k : k + 2] * (1 + 2j)
        torch.tpu.manual_seed(k)
        return y, z, w, torch.rand(3, device="tpu") + torch.rand(3, device="tpu"), x.masked_fill(x > k, k)

    for k in (1, 2, 3, 4):
        got = [t.cpu() for t in work(k)]
        with torch.tpu.eager_mode("strict"):
            wanted = [t.cpu() for t in work(k)]
        for a, b in zip(got, wanted, strict=True):
            torch.testing.assert_close(a, b)
