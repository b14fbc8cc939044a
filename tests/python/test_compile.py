# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="tpu"): each graph one program, values and gradients as on the CPU."""

import copy

import pytest
import torch


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def compiled(f, **options):
    return torch.compile(f, backend="tpu", **options)


def counters(run):
    before = torch.tpu.stats()
    result = run()
    after = torch.tpu.stats()
    return result, {key: after[key] - before[key] for key in ("launches", "compiled", "loaded")}


def test_the_backend_is_listed_without_an_import_of_ours():
    assert "tpu" in torch._dynamo.list_backends(None)


def test_a_function_is_one_launch():
    f = compiled(lambda a, b: (a @ b).relu().sum(0) * 2 + 1)
    a, b = torch.randn(4, 5), torch.randn(5, 3)
    ta, tb = a.to("tpu"), b.to("tpu")
    f(ta, tb)
    got, d = counters(lambda: f(ta, tb))
    assert d == {"launches": 1, "compiled": 0, "loaded": 0}
    torch.testing.assert_close(got.cpu(), (a @ b).relu().sum(0) * 2 + 1)


def test_forward_and_backward_are_one_program_each():
    torch.manual_seed(0)
    cpu = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    model = copy.deepcopy(cpu).to("tpu")
    step = compiled(model)
    x = torch.randn(3, 6)
    tx = x.to("tpu")

    def train():
        model.zero_grad()
        loss = step(tx).pow(2).sum()
        loss.backward()
        return loss

    train()
    _, forward = counters(lambda: step(tx))
    assert forward["launches"] == 1 and forward["compiled"] == 0
    train()
    cpu(x).pow(2).sum().backward()
    for mine, other in zip(model.parameters(), cpu.parameters(), strict=True):
        torch.testing.assert_close(mine.grad.cpu(), other.grad, rtol=1e-4, atol=1e-5)


def test_inputs_that_are_written():
    def f(cache, value):
        cache[1:3] = value
        cache.t().mul_(2)
        return cache.sum()

    cache, value = torch.zeros(4, 3), torch.arange(6.0).reshape(2, 3)
    mine, given = cache.to("tpu"), value.to("tpu")
    g = compiled(f)
    for _ in range(3):
        want, got = f(cache, value), g(mine, given)
        torch.testing.assert_close(got.cpu(), want)
        torch.testing.assert_close(mine.cpu(), cache)


def test_views_as_inputs_and_outputs():
    f = compiled(lambda t: (t + t, t[1:].t()))
    base = torch.arange(24.0).reshape(6, 4)
    a, b = f(base.to("tpu")[2::2, 1:])
    torch.testing.assert_close(a.cpu(), base[2::2, 1:] * 2)
    torch.testing.assert_close(b.cpu(), base[2::2, 1:][1:].t())


def test_random_numbers_differ_from_call_to_call_and_follow_the_seed():
    f = compiled(lambda t: torch.nn.functional.dropout(t, 0.5))
    x = torch.ones(256, device="tpu")
    torch.tpu.manual_seed(1)
    a, b = f(x).cpu(), f(x).cpu()
    torch.tpu.manual_seed(1)
    assert not torch.equal(a, b) and torch.equal(f(x).cpu(), a)


def test_a_changing_size_is_right():
    f = compiled(lambda t: t.softmax(-1).sum(0), dynamic=True)
    for n in (3, 5, 9, 4):
        x = torch.randn(2, n)
        torch.testing.assert_close(f(x.to("tpu")).cpu(), x.softmax(-1).sum(0))


def test_graph_breaks_and_fullgraph():
    def f(t):
        y = t * 2
        if y.sum() > 0:
            return y + 1
        return y - 1

    assert compiled(f)(torch.ones(2, device="tpu")).cpu().tolist() == [3.0, 3.0]
    torch._dynamo.reset()  # or the broken graph would serve
    with pytest.raises(torch._dynamo.exc.Unsupported):
        compiled(f, fullgraph=True)(torch.ones(2, device="tpu"))


def test_a_whole_training_step_with_adamw():
    def train(device, wrap):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss

        run = wrap(step)
        x = torch.linspace(-1, 1, 12).reshape(3, 4).to(device)
        return [float(run(x)) for _ in range(4)]

    assert train("tpu", compiled) == pytest.approx(train("cpu", lambda f: f), rel=1e-4)


def test_unknown_options_are_refused():
    with pytest.raises(Exception, match="no options"):
        compiled(lambda t: t + 1, options={"max_fusion": 3})(torch.ones(2, device="tpu"))


def test_attention_of_a_length_that_changes():
    attend = torch.nn.functional.scaled_dot_product_attention
    f = compiled(lambda q, k, v, mask: attend(q, k, v, attn_mask=mask, enable_gqa=True), dynamic=True)
    for length in (5, 6, 9):
        q, k, v, mask = torch.randn(2, 4, 3, 8), torch.randn(2, 2, length, 8), torch.randn(2, 2, length, 8), torch.randn(2, 1, 3, length)
        got = f(*(t.to("tpu") for t in (q, k, v, mask)))
        torch.testing.assert_close(got.cpu(), attend(q, k, v, attn_mask=mask, enable_gqa=True))


def test_constants_made_in_the_code_are_inputs_of_the_program():
    f = compiled(lambda t: t.index_fill(0, torch.tensor([-1], device=t.device), 7.0) + torch.tensor([1.0, 2.0], device=t.device))
    x = torch.zeros(3, 2, device="tpu")
    f(x)
    got, d = counters(lambda: f(x))
    assert got.cpu().tolist() == [[1.0, 2.0], [1.0, 2.0], [8.0, 9.0]] and d["launches"] == 1


def test_constants_made_on_the_cpu_are_moved_once():
    f = compiled(lambda t: t * torch.tensor(3) + torch.tensor([1.0, 2.0]).to(t.device) - torch.tensor(4).clone().to(t.device))
    x = torch.ones(3, 2, device="tpu")
    f(x)
    got, d = counters(lambda: f(x))
    assert got.cpu().tolist() == [[0.0, 1.0]] * 3 and d == {"launches": 1, "compiled": 0, "loaded": 0}
