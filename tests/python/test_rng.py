# SPDX-License-Identifier: Apache-2.0
"""Random numbers: seeds, states, generators."""

import pytest
import torch
import torch.utils.checkpoint


def draw(**kwargs):
    return torch.rand(100, device="tpu", **kwargs).cpu()


def test_same_seed_same_numbers():
    torch.manual_seed(11)
    a, b = draw(), draw()
    torch.manual_seed(11)
    assert torch.equal(draw(), a)
    assert torch.equal(draw(), b)
    assert not torch.equal(a, b)
    torch.manual_seed(12)
    assert not torch.equal(draw(), a)


@pytest.mark.parametrize("seeder", [torch.tpu.manual_seed, torch.tpu.manual_seed_all])
def test_device_seeds_leave_the_cpu_alone(seeder):
    torch.manual_seed(1)
    expected = torch.rand(4)
    torch.manual_seed(1)
    seeder(99)
    assert torch.equal(torch.rand(4), expected)
    a = draw()
    seeder(99)
    assert torch.equal(draw(), a)
    assert torch.tpu.initial_seed() == 99


@pytest.mark.parametrize("seed", [0, -1, 2**63, 2**64 - 1])
def test_all_seeds_that_pytorch_takes(seed):
    torch.manual_seed(seed)
    a = draw()
    torch.manual_seed(seed)
    assert torch.equal(draw(), a)


def test_state_is_sixteen_bytes_of_seed_and_offset():
    torch.tpu.manual_seed(0x0102030405060708)
    state = torch.tpu.get_rng_state()
    assert (state.dtype, state.shape, state.device.type) == (torch.uint8, (16,), "cpu")
    assert bytes(state[:8].tolist()) == (0x0102030405060708).to_bytes(8, "little")
    assert state[8:].tolist() == [0] * 8
    draw()
    assert torch.tpu.get_rng_state()[8:].tolist() != [0] * 8


def test_state_round_trip():
    draw()
    state = torch.tpu.get_rng_state()
    a = draw()
    torch.tpu.set_rng_state(state)
    assert torch.equal(draw(), a)
    torch.tpu.set_rng_state(state, "tpu:0")
    assert torch.equal(draw(), a)
    states = torch.tpu.get_rng_state_all()
    b = draw()
    torch.tpu.set_rng_state_all(states)
    assert torch.equal(draw(), b)


@pytest.mark.parametrize(
    ("state", "error"),
    [
        (torch.zeros(8, dtype=torch.uint8), "16 bytes, got 8"),
        (torch.zeros(16, dtype=torch.int32), "ByteTensor"),
    ],
)
def test_wrong_states_are_refused(state, error):
    with pytest.raises((RuntimeError, TypeError), match=error):
        torch.tpu.set_rng_state(state)


def test_generators_of_ones_own():
    g = torch.Generator("tpu")
    assert g.device == torch.device("tpu:0")
    g.manual_seed(5)
    torch.manual_seed(6)
    expected = draw()
    torch.manual_seed(6)
    a = draw(generator=g)
    assert torch.equal(draw(), expected), "a generator's draws must not move the default one"
    h = torch.Generator("tpu").manual_seed(5)
    assert torch.equal(draw(generator=h), a)
    torch.manual_seed(5)
    assert torch.equal(draw(), a)


def test_generator_state_offset_and_clone():
    g = torch.Generator("tpu").manual_seed(3)
    draw(generator=g)
    state, offset = g.get_state(), g.get_offset()
    assert offset > 0
    twin = torch.Generator("tpu")
    twin.set_state(state)
    assert (twin.initial_seed(), twin.get_offset()) == (3, offset)
    clone = g.clone_state()
    a = draw(generator=g)
    assert torch.equal(draw(generator=twin), a)
    assert torch.equal(draw(generator=clone), a)
    g.set_offset(offset)
    assert torch.equal(draw(generator=g), a)


def test_a_cpu_generator_is_refused():
    with pytest.raises(RuntimeError, match="device type"):
        draw(generator=torch.Generator("cpu"))


def test_default_generators():
    assert len(torch.tpu.default_generators) == torch.tpu.device_count()
    g = torch.tpu.default_generators[0]
    assert g is torch.tpu.default_generators[0]
    g.manual_seed(77)
    assert torch.tpu.initial_seed() == 77
    with pytest.raises(IndexError):
        torch.tpu.default_generators[99]


def test_seed_takes_a_new_one_each_time():
    torch.tpu.seed()
    a = torch.tpu.initial_seed()
    torch.tpu.seed_all()
    assert torch.tpu.initial_seed() != a


def test_fork_rng_restores_the_device():
    torch.manual_seed(1)
    before = torch.tpu.get_rng_state()
    with torch.random.fork_rng(devices=[0], device_type="tpu"):
        torch.manual_seed(2)
        draw()
    assert torch.equal(torch.tpu.get_rng_state(), before)


def test_checkpoint_replays_dropout():
    torch.manual_seed(4)
    x = torch.ones(64, device="tpu", requires_grad=True)
    seen = []

    def block(value):
        out = torch.nn.functional.dropout(value, 0.5, training=True)
        seen.append(out.detach().cpu())
        return out

    with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False).sum().backward()
    assert len(seen) == 2
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(x.grad.cpu(), seen[0])


def test_same_numbers_in_every_mode():
    torch.manual_seed(8)
    a = draw()
    with torch.tpu.eager_mode("debug"):
        torch.manual_seed(8)
        assert torch.equal(draw(), a)


def test_numbers_look_random():
    torch.manual_seed(0)
    x = torch.rand(20000, device="tpu").cpu()
    assert 0 <= x.min() and x.max() < 1
    assert abs(x.mean().item() - 0.5) < 0.01
    y = torch.randn(20000, device="tpu").cpu()
    assert abs(y.mean().item()) < 0.03 and abs(y.std().item() - 1) < 0.03
