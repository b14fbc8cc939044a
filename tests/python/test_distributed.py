# SPDX-License-Identifier: Apache-2.0
"""The process group tpu_dist. Checks marked @both run on two ranks at once: two processes that live as long as this module."""

import datetime
import faulthandler
import multiprocessing
import os
import queue
import subprocess
import sys
import time
import traceback
import warnings

import pytest
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed import ReduceOp

LIMIT = 120  # seconds that one check may take
CHECKS = {}


def both(function):
    CHECKS[function.__name__] = function
    return function


def serve(rank, store, tasks, results):
    torch.set_num_threads(1)
    try:
        dist.init_process_group("tpu_dist", init_method=f"file://{store}", rank=rank, world_size=2, device_id=torch.device("tpu:0"))
    except Exception:
        results.put(traceback.format_exc())
        return
    for name in iter(tasks.get, None):
        faulthandler.dump_traceback_later(LIMIT - 5)
        try:
            CHECKS[name](rank)
            results.put(None)
        except BaseException:
            results.put(traceback.format_exc())
        faulthandler.cancel_dump_traceback_later()
    dist.destroy_process_group()


class Pair:
    """Two ranks; new ones take the place of a pair in which a check hung."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0
        self.processes = []

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.count += 1
        store = self.folder / f"store{self.count}"
        self.tasks = [context.Queue() for _ in range(2)]
        self.results = [context.Queue() for _ in range(2)]
        self.processes = [
            context.Process(target=serve, args=(rank, store, self.tasks[rank], self.results[rank]), daemon=True)
            for rank in range(2)
        ]
        for process in self.processes:
            process.start()

    def run(self, name):
        if not self.processes:
            self.start()
        for tasks in self.tasks:
            tasks.put(name)
        errors = []
        deadline = time.monotonic() + LIMIT
        for rank, results in enumerate(self.results):
            try:
                error = results.get(timeout=max(1, deadline - time.monotonic()))
            except queue.Empty:
                error = f"no answer in {LIMIT} s"
            if error is not None:
                errors.append(f"rank {rank}: {error}")
        if errors:
            self.kill()
            pytest.fail("\n".join(errors), pytrace=False)

    def stop(self):
        if self.processes:
            for tasks in self.tasks:
                tasks.put(None)
            for process in self.processes:
                process.join(30)
            codes = [process.exitcode for process in self.processes]
            self.kill()
            assert codes == [0, 0], codes

    def kill(self):
        for process in self.processes:
            process.kill()
            process.join()
        self.processes = []


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    ranks = Pair(tmp_path_factory.mktemp("dist"))
    yield ranks
    ranks.stop()


def expect(tensor, values):
    assert tensor.device.type == "tpu", tensor.device
    want = torch.as_tensor(values).to(tensor.dtype)
    assert torch.equal(tensor.cpu(), want), f"expected {want}, got {tensor.cpu()}"


def tpu(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype).to("tpu")


# ---- collectives ------------------------------------------------------------------------------------------------------------
@both
def all_reduce(rank):
    for op, want in [
        (ReduceOp.SUM, [3, 7]), (ReduceOp.AVG, [1.5, 3.5]), (ReduceOp.PRODUCT, [2, 12]),
        (ReduceOp.MIN, [1, 3]), (ReduceOp.MAX, [2, 4]), (dist._make_nccl_premul_sum(0.5), [1.5, 3.5]),
    ]:  # fmt: skip
        x = tpu([1.0 + rank, 3 + rank])
        dist.all_reduce(x, op)
        expect(x, want)
    for op, want in [(ReduceOp.BAND, [2]), (ReduceOp.BOR, [7]), (ReduceOp.BXOR, [5]), (ReduceOp.AVG, [4])]:
        x = tpu([3 if rank else 6], torch.int32)
        dist.all_reduce(x, op)
        expect(x, want)


@both
def all_reduce_of_every_dtype(rank):
    small = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]
    for dtype in small:
        x = tpu([1, 100 if rank else 20], dtype)
        dist.all_reduce(x)
        expect(x, [2, 120])
    flags = tpu([True, False, rank == 1], torch.bool)
    dist.all_reduce(flags)
    expect(flags, [True, False, True])
    z = tpu([1 + 2j * rank], torch.complex64)
    dist.all_reduce(z)
    expect(z, [2 + 2j])
    half = tpu([2048.0 if rank else 1.0, 30000.0], torch.float16)
    dist.all_reduce(half, ReduceOp.AVG)  # the sum is computed in float32
    expect(half, [1024.5, 30000.0])


@both
def moving_every_dtype(rank):
    dtypes = [torch.bool, torch.int16, torch.uint16, torch.int64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.complex64]
    for dtype in dtypes:
        want = torch.tensor([[0, 1], [1, 0]]).to(dtype)
        x = want.to("tpu") if rank == 1 else torch.zeros(2, 2).to(dtype).to("tpu")
        dist.broadcast(x, 1)
        assert torch.equal(x.cpu().view(torch.uint8), want.view(torch.uint8)), dtype


@both
def strides_scalars_and_empty_tensors(rank):
    base = torch.zeros(2, 3, device="tpu")
    column = base.t()[1]
    column += rank + 1
    dist.all_reduce(column)
    expect(base, [[0, 3, 0], [0, 3, 0]])
    scalar = tpu(1.0 + rank)
    dist.all_reduce(scalar)
    expect(scalar, 3.0)
    empty = torch.empty(0, 4, device="tpu")
    dist.all_reduce(empty)
    dist.broadcast(empty, 0)
    dist.all_gather_into_tensor(torch.empty(0, 4, device="tpu"), empty)
    assert empty.shape == (0, 4)
    leaf = torch.ones(2, device="tpu", requires_grad=True)
    version = leaf._version
    dist.all_reduce(leaf)
    expect(leaf.detach(), [2, 2])
    assert leaf._version == version


@both
def broadcast_and_reduce(rank):
    x = tpu([5.0, 6]) if rank == 0 else torch.zeros(2, device="tpu")
    dist.broadcast(x, 0)
    expect(x, [5, 6])
    y = tpu([1.0 + rank])
    dist.reduce(y, 1, ReduceOp.AVG)
    expect(y, [1.5] if rank == 1 else [1])


@both
def gathering(rank):
    mine = tpu([rank, rank + 10], torch.int64)
    outs = [torch.zeros_like(mine) for _ in range(2)]
    dist.all_gather(outs, mine)
    expect(torch.cat(outs), [0, 10, 1, 11])
    uneven = [torch.zeros(1, device="tpu"), torch.zeros(3, device="tpu")]
    dist.all_gather(uneven, torch.full((3 if rank else 1,), rank + 1.0).to("tpu"))
    expect(uneven[0], [1])
    expect(uneven[1], [2, 2, 2])
    flat = torch.zeros(4, dtype=torch.int64, device="tpu")
    dist.all_gather_into_tensor(flat, mine)
    expect(flat, [0, 10, 1, 11])
    stacked = torch.zeros(2, 2, dtype=torch.int64, device="tpu")
    dist.all_gather_into_tensor(stacked, mine)
    expect(stacked, [[0, 10], [1, 11]])
    lists = [torch.zeros_like(mine) for _ in range(2)] if rank == 0 else None
    dist.gather(mine, lists, dst=0)
    if rank == 0:
        expect(torch.cat(lists), [0, 10, 1, 11])


@both
def scattering(rank):
    out = torch.zeros(2, device="tpu")
    dist.scatter(out, [tpu([1.0, 2]), tpu([3.0, 4])] if rank == 1 else None, src=1)
    expect(out, [3, 4] if rank else [1, 2])
    dist.reduce_scatter(out, [tpu([1.0, 2]), tpu([3.0, 4 + rank])])
    expect(out, [6, 9] if rank else [2, 4])
    sizes = [1, 3]
    uneven = torch.zeros(sizes[rank], device="tpu")
    dist.reduce_scatter(uneven, [torch.full((n,), n + rank + 0.0).to("tpu") for n in sizes])
    expect(uneven, [7, 7, 7] if rank else [3])
    dist.reduce_scatter_tensor(out, tpu([1.0, 2, 3, 4]), ReduceOp.AVG)
    expect(out, [3, 4] if rank else [1, 2])
    low = torch.zeros(1, 2, dtype=torch.bfloat16, device="tpu")
    dist.reduce_scatter_tensor(low, tpu([[1, 2], [3, 4]], torch.bfloat16))
    expect(low, [[6, 8]] if rank else [[2, 4]])


@both
def all_to_all(rank):
    out = torch.zeros(2, device="tpu")
    dist.all_to_all_single(out, tpu([rank * 2.0, rank * 2 + 1]))
    expect(out, [1, 3] if rank else [0, 2])
    # rank 0 sends rows 1 + 2, rank 1 sends 0 + 1
    rows = tpu([[0, 1], [2, 3], [4, 5]], torch.int32) if rank == 0 else tpu([[9, 9]], torch.int32)
    got = torch.zeros(3 if rank else 1, 2, dtype=torch.int32, device="tpu")
    dist.all_to_all_single(got, rows, output_split_sizes=[2, 1] if rank else [1, 0], input_split_sizes=[0, 1] if rank else [1, 2])
    expect(got, [[2, 3], [4, 5], [9, 9]] if rank else [[0, 1]])
    outs = [torch.zeros(1 + rank, device="tpu"), torch.zeros(1 + rank, device="tpu")]
    dist.all_to_all(outs, [torch.full((1,), rank + 1.0).to("tpu"), torch.full((2,), rank + 5.0).to("tpu")])
    expect(torch.cat(outs), [5, 5, 6, 6] if rank else [1, 2])


@both
def sending(rank):
    x = tpu([rank + 1.0, 7])
    y = torch.zeros(2, device="tpu")
    if rank == 0:
        dist.send(x, 1)
        assert dist.recv(y, tag=3) == 1  # from anybody
        expect(y, [2, 7])
    else:
        assert dist.recv(y, 0) == 0
        expect(y, [1, 7])
        dist.send(x, 0, tag=3)
    ops = [dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, y.zero_(), 1 - rank)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    expect(y, [1 if rank else 2, 7])
    work = dist.irecv(y, 1 - rank)
    dist.isend(x * 3, 1 - rank).get_future().wait()
    (got,) = work.get_future().wait()
    expect(got, [3 if rank else 6, 21])
    assert work.is_completed()


@both
def works_and_futures(rank):
    x = tpu([1.0 + rank])
    work = dist.all_reduce(x, async_op=True)
    doubled = work.get_future().then(lambda future: future.value()[0] * 2).wait()
    expect(doubled, [6])
    assert work.is_completed() and work.is_success()
    assert work.result()[0].data_ptr() == x.data_ptr()
    # A device runs collectives in order, so a second one may follow with no wait between.
    works = [dist.all_reduce(x, async_op=True) for _ in range(3)]
    for work in works:
        assert work.wait(datetime.timedelta(seconds=60))
    expect(x, [24])
    assert dist.barrier(async_op=True).wait()


@both
def coalesced(rank):
    a, b = tpu([1.0 + rank]), tpu([[2, 3]], torch.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dist.all_reduce_coalesced([a, b.float()])
    expect(a, [3])
    with dist._coalescing_manager(device=torch.device("tpu"), async_ops=True) as manager:
        dist.all_reduce(a)
        dist.all_reduce(b)
    manager.wait()
    expect(a, [6])
    expect(b, [[4, 6]])
    outs = [torch.zeros(2, device="tpu"), torch.zeros(4, device="tpu")]
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_gather_into_tensor(outs[0], tpu([rank + 1.0]))
        dist.all_gather_into_tensor(outs[1], tpu([rank + 3.0, 0]))
    manager.wait()
    expect(torch.cat(outs), [1, 2, 3, 0, 4, 0])
    outs = [torch.zeros(1, device="tpu"), torch.zeros(1, device="tpu")]
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.reduce_scatter_tensor(outs[0], tpu([1.0, 2]))
        dist.reduce_scatter_tensor(outs[1], tpu([3.0, 4]))
    manager.wait()
    expect(torch.cat(outs), [4, 8] if rank else [2, 6])


@both
def objects(rank):
    got = [None, None]
    dist.all_gather_object(got, {"rank": rank, "text": "x" * (rank + 1)})
    assert got == [{"rank": 0, "text": "x"}, {"rank": 1, "text": "xx"}]
    box = [("from", rank)]
    dist.broadcast_object_list(box, src=1)
    assert box == [("from", 1)]
    box = [None]
    dist.scatter_object_list(box, ["a", "b"] if rank == 0 else None, src=0)
    assert box == ["ab"[rank]]
    got = [None, None] if rank == 0 else None
    dist.gather_object(rank, got, dst=0)
    assert rank == 1 or got == [0, 1]


@both
def functional_collectives(rank):
    import torch.distributed._functional_collectives as funcol

    group = dist.group.WORLD
    expect(funcol.all_reduce(tpu([1.0 + rank]), "sum", group) + 0, [3])
    expect(funcol.all_gather_tensor(tpu([1.0 + rank]), 0, group) + 0, [1, 2])
    expect(funcol.reduce_scatter_tensor(tpu([1.0, 2]), "avg", 0, group) + 0, [2] if rank else [1])
    expect(funcol.broadcast(tpu([1.0 + rank]), 1, group) + 0, [2])
    expect(funcol.all_to_all_single(tpu([rank * 2.0, rank * 2 + 1]), None, None, group) + 0, [1, 3] if rank else [0, 2])
    a, b = funcol.all_reduce_coalesced([tpu([1.0]), tpu([2.0, rank])], "sum", group)
    expect(torch.cat([a + 0, b + 0]), [2, 4, 1])


@both
def refusals(rank):
    x = torch.ones(2, device="tpu")
    for call, message in [
        (lambda: dist.all_gather_into_tensor(torch.ones(3, device="tpu"), x), "output of 4 elements, got 3"),
        (lambda: dist.reduce_scatter_tensor(x, torch.ones(3, device="tpu")), "input of 4 elements, got 3"),
        (lambda: dist.all_to_all_single(x, x, [1, 2], [1, 1]), "add up to 2"),
        (lambda: dist.all_reduce(tpu([True], torch.bool), ReduceOp.AVG), "numeric"),
        (lambda: dist.all_reduce(tpu([1.0]).to(torch.float8_e5m2)), "cannot reduce"),
        (lambda: dist.all_reduce(torch.ones(2)), "cpu"),
    ]:
        with pytest.raises((RuntimeError, NotImplementedError), match=message):
            call()
    dist.barrier()


@both
def other_groups(rank):
    group = dist.new_group([1])
    if rank == 1:
        x = tpu([4.0])
        dist.all_reduce(x, group=group)
        expect(x, [4])
    backend = dist.group.WORLD._get_backend(torch.device("tpu"))
    assert backend.name() == "tpu_dist" and not backend.supports_splitting
    assert dist.get_backend() == "tpu_dist"
    mixed = dist.new_group(backend="cpu:gloo,tpu:tpu_dist")
    for device in "cpu", "tpu":
        x = torch.ones(1, device=device)
        dist.all_reduce(x, group=mixed)
        assert x.item() == 2


@both
def mismatch_times_out(rank):
    group = dist.new_group(timeout=datetime.timedelta(seconds=2))
    dist.barrier(group)
    if rank == 0:
        x = torch.ones(1, device="tpu")
        with pytest.raises(RuntimeError, match="(?i)tim(ed|eout)"):
            dist.all_reduce(x, group=group)
        expect(x, [1])
    dist.barrier()
    other = dist.new_group(timeout=datetime.timedelta(seconds=2))
    if rank == 0:
        with pytest.raises(RuntimeError, match="(?i)tim(ed|eout)"):
            dist.recv(torch.ones(1, device="tpu"), 1, group=other)
    dist.barrier()
    third = dist.new_group()
    if rank == 0:
        work = dist.irecv(torch.ones(1, device="tpu"), 1, group=third)
        third._get_backend(torch.device("tpu")).abort()
        with pytest.raises(RuntimeError):
            work.wait()
    dist.barrier()


# ---- what is built on them --------------------------------------------------------------------------------------------------
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).to("tpu")


def batch():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(4, 4, generator=generator).to("tpu"), torch.randn(4, 3, generator=generator).to("tpu")


def reference():
    """Gradients of one process on the joined batch."""
    net = model()
    x, y = batch()
    nn.functional.mse_loss(net(x), y).backward()
    return [parameter.grad.cpu() for parameter in net.parameters()]


def train(net, rank):
    x, y = batch()
    part = slice(rank * 2, rank * 2 + 2)
    nn.functional.mse_loss(net(x[part]), y[part]).backward()


@both
def distributed_data_parallel(rank):
    want = reference()
    for kind in "plain", "hook", "fp16 hook":
        net = nn.parallel.DistributedDataParallel(model())
        if kind == "hook":
            from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

            net.register_comm_hook(None, allreduce_hook)
        if kind == "fp16 hook":
            from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

            net.register_comm_hook(None, fp16_compress_hook)
        for _ in range(2):
            net.zero_grad()
            train(net, rank)
            for parameter, grad in zip(net.parameters(), want, strict=True):
                near = {"rtol": 2e-2, "atol": 2e-2} if kind == "fp16 hook" else {}
                torch.testing.assert_close(parameter.grad.cpu(), grad, **near)


@both
def fully_sharded(rank):
    from torch.distributed.fsdp import fully_shard

    want = reference()
    net = model()
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    train(net, rank)
    for parameter, grad in zip(net.parameters(), want, strict=True):
        assert parameter.grad.to_local().device.type == "tpu"
        torch.testing.assert_close(parameter.grad.full_tensor().cpu(), grad)
    optimizer.step()
    for parameter, start, grad in zip(net.parameters(), model().parameters(), want, strict=True):
        torch.testing.assert_close(parameter.full_tensor().cpu(), start.detach().cpu() - 0.1 * grad)


@both
def dtensors(rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("tpu", (2,))
    full = torch.arange(8.0).reshape(4, 2)
    x = distribute_tensor(full.to("tpu"), mesh, [Shard(0)])
    assert x.to_local().shape == (2, 2)
    expect((x @ x.t()).full_tensor(), full @ full.t())
    expect(x.redistribute(mesh, [Shard(1)]).to_local(), full[:, rank : rank + 1])
    expect(x.sum().full_tensor(), 28)
    expect(x.redistribute(mesh, [Replicate()]).to_local() + 0, full)
    uneven = distribute_tensor(torch.arange(3.0).to("tpu"), mesh, [Shard(0)])
    expect((uneven * 2).full_tensor(), [0, 2, 4])


@both
def dtensor_random(rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, rand

    mesh = init_device_mesh("tpu", (2,))
    torch.manual_seed(3)
    assert torch.tpu.get_rng_state().numel() == 16
    sharded = rand(64, device_mesh=mesh, placements=[Shard(0)])
    whole = sharded.full_tensor().cpu()
    assert not torch.equal(whole[:32], whole[32:])
    assert 0 <= whole.min() and whole.max() < 1
    same = rand(8, device_mesh=mesh, placements=[Replicate()]).to_local()
    both_ranks = [torch.zeros(8, device="tpu") for _ in range(2)]
    dist.all_gather(both_ranks, same.contiguous())
    assert torch.equal(both_ranks[0].cpu(), both_ranks[1].cpu())
    after = torch.tpu.get_rng_state().to("tpu")
    states = [torch.zeros_like(after) for _ in range(2)]
    dist.all_gather(states, after)
    assert torch.equal(states[0].cpu(), states[1].cpu())


@pytest.mark.parametrize("name", list(CHECKS))
def test_on_two_ranks(pair, name):
    pair.run(name)


# ---- one process ------------------------------------------------------------------------------------------------------------
def run_python(code, **environment):
    env = {**os.environ, **environment}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=240)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_import_torch_registers_it_and_starts_nothing():
    code = (
        "import torch; import torch.distributed as dist;"
        "print(dist.get_default_backend_for_device('tpu'), dist.Backend.default_device_backend_map['tpu'], torch.tpu.is_initialized())"
    )
    assert run_python(code) == "tpu_dist tpu_dist False"


def test_one_process_without_naming_a_backend():
    code = """
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
mesh = init_device_mesh("tpu", (1,))
x = torch.ones(2, device="tpu")
dist.all_reduce(x)
print(x.tolist(), dist.get_backend(mesh.get_group()), dist.get_backend_config())
dist.destroy_process_group()
"""
    alone = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "0"}
    out = run_python(code, **alone)
    assert out.startswith("[1.0, 1.0] ") and "tpu:tpu_dist" in out


def test_registering_again_changes_nothing():
    from torch_tpu import _distributed

    _distributed.register()
    assert dist.Backend.backend_list.count("tpu_dist") == 1
