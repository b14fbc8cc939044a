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


def _trained(optimizer_class, steps=5, compile_step=True, **options):
    """(weights on tpu, weights on cpu, counters of the last step)"""
    torch.manual_seed(0)
    cpu = torch.nn.Linear(4, 3)
    tpu = copy.deepcopy(cpu).to("tpu")
    ours, theirs = optimizer_class(tpu.parameters(), **options), optimizer_class(cpu.parameters(), **options)
    step = compiled(lambda: ours.step()) if compile_step else ours.step
    for _ in range(steps):
        x = torch.randn(5, 4)
        for model, optimizer in ((tpu, ours), (cpu, theirs)):
            optimizer.zero_grad()
            model(x.to(model.weight.device)).square().sum().backward()
        _, counted = counters(step)
        theirs.step()
    return tpu.weight.detach().cpu(), cpu.weight.detach(), counted


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "NAdam", "RAdam", "Adagrad", "RMSprop", "Adadelta", "Adamax"])
def test_an_optimizer_is_one_program_without_capturable(name):
    options = {"momentum": 0.9, "lr": 0.01} if name == "SGD" else {"lr": 0.01}
    mine, other, counted = _trained(getattr(torch.optim, name), **options)
    torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)
    assert counted == {"launches": 1, "compiled": 0, "loaded": 0}


def test_a_graph_that_ends_on_the_cpu():
    f = compiled(lambda a, n: ((a * n).sum().cpu() + 1, a + n, n * 2))
    a, n = torch.randn(3), torch.tensor(2.0)
    for n in (torch.tensor(2.0), torch.tensor(3.0)):
        (total, moved, doubled), counted = counters(lambda n=n: f(a.to("tpu"), n))
        torch.testing.assert_close(total, (a * n).sum() + 1)
        torch.testing.assert_close(moved.cpu(), a + n)
        torch.testing.assert_close(doubled, n * 2)
        assert (total.device.type, moved.device.type, doubled.device.type) == ("cpu", "tpu", "cpu")
    assert counted["compiled"] == counted["loaded"] == 0


def test_a_graph_that_needs_cpu_and_device_in_turn_is_still_right():
    f = compiled(lambda a: a + a.sum().cpu().sqrt().to("tpu"))
    a = torch.rand(3)
    torch.testing.assert_close(f(a.to("tpu")).cpu(), a + a.sum().sqrt())


def test_a_number_on_the_cpu_that_is_written():
    def f(x, count):
        count.add_(1)
        return x / count

    g = compiled(f)
    x, count, other = torch.rand(3), torch.tensor(0.0), torch.tensor(0.0)
    for _ in range(3):
        torch.testing.assert_close(g(x.to("tpu"), count).cpu(), f(x, other))
        assert count == other


def test_xla_options():
    f = torch.compile(lambda x: x.exp() + 1, backend="tpu", options={"xla_cpu_enable_fast_math": True})
    x = torch.rand(3)
    torch.testing.assert_close(f(x.to("tpu")).cpu(), x.exp() + 1)
    with torch.tpu.eager_mode("fused"):
        torch.testing.assert_close(f(x.to("tpu") + 1).cpu(), (x + 1).exp() + 1)


def test_an_option_that_xla_does_not_know():
    f = torch.compile(lambda x: x.exp() - 1, backend="tpu", options={"xla_no_such_option": 1})
    with pytest.raises(Exception, match="xla_no_such_option"):
        f(torch.rand(3, device="tpu"))


def test_unknown_options_are_refused():
    with pytest.raises(Exception, match="start with .xla_"):
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


def test_with_no_backend_the_graphs_device_decides():
    f = torch.compile(lambda t: (t * 2 + 1).sum())
    x = torch.arange(4.0)
    tx = x.to("tpu")
    f(tx)
    got, d = counters(lambda: f(tx))
    assert d == {"launches": 1, "compiled": 0, "loaded": 0} and got.item() == 16.0
    made_here = torch.compile(lambda n: torch.arange(n, device="tpu") * 2, dynamic=False)
    assert made_here(3).cpu().tolist() == [0, 2, 4]
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    assert f(x).item() == 16.0
    assert torch._dynamo.utils.counters["inductor"], "a model on the CPU is Inductor's"


def test_an_optimizer_whose_step_count_is_on_the_cpu_is_one_launch():
    def make(device):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2).to(device)
        return model, torch.optim.AdamW(model.parameters(), lr=1e-2)

    model, optimizer = make("tpu")
    other, reference = make("cpu")
    step = compiled(optimizer.step)
    for n in range(4):
        for parameters in (model.parameters(), other.parameters()):
            for p in parameters:
                p.grad = torch.full(p.shape, 0.5 + n).to(p.device)
        _, d = counters(step)
        reference.step()
    assert d["compiled"] == 0 and d["launches"] <= 2  # the program, and the numbers' way to the device
    for mine, wanted in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine.cpu(), wanted, rtol=1e-4, atol=1e-6)
    assert {float(s["step"]) for s in optimizer.state.values()} == {4.0}
    assert {s["step"].device.type for s in optimizer.state.values()} == {"cpu"}


def test_a_number_of_the_cpu_is_seen_as_it_was_before_it_is_written():
    def f(t, n):
        y = t * n
        n.add_(1)
        return y, n * 2

    g = compiled(f)
    t, n = torch.ones(2, device="tpu"), torch.tensor(3.0)
    for want in (3.0, 4.0, 5.0):
        (y, m), d = counters(lambda: g(t, n))
        assert y.cpu().tolist() == [want] * 2 and n.item() == want + 1 and m.item() == 2 * (want + 1)
        assert m.device.type == "cpu" and y.device.type == "tpu"
    assert d["compiled"] == 0


def test_an_array_of_the_cpu_and_a_cpu_that_waits_for_the_device():
    x = torch.arange(6.0)
    f = compiled(lambda t, c: t + (c * 2).to("tpu"))
    torch.testing.assert_close(f(x.to("tpu"), x).cpu(), x * 3)
    g = compiled(lambda t, c: (t.cpu() + c, t * 2))
    a, b = g(x.to("tpu"), x)
    torch.testing.assert_close(a, x * 2)
    torch.testing.assert_close(b.cpu(), x * 2)
    empty = torch.empty(0)
    assert f(empty.to("tpu"), empty).shape == (0,)
