# SPDX-License-Identifier: Apache-2.0
"""Device memory: what is counted, and when it is given back. Pinned host memory."""

import gc

import pytest
import torch

MIB = 1 << 20


@pytest.fixture(autouse=True)
def started():
    make(1)  # numbers that programs take are kept on the device
    gc.collect()


def make(mib):
    x = torch.full((mib * MIB // 4,), 1.0, device="tpu")
    torch.tpu.synchronize()
    return x


def test_allocated_bytes_follow_tensors():
    before = torch.tpu.memory_allocated()
    x = make(3)
    assert torch.tpu.memory_allocated() - before == 3 * MIB
    y = make(2)
    assert torch.tpu.memory_allocated() - before == 5 * MIB
    del x
    assert torch.tpu.memory_allocated() - before == 2 * MIB
    del y
    assert torch.tpu.memory_allocated() == before


def test_empty_takes_no_device_memory():
    before = torch.tpu.stats()["launches"], torch.tpu.stats()["compiled"], torch.tpu.memory_allocated()
    x = torch.empty(64 * MIB, device="tpu")
    assert x.untyped_storage().nbytes() == 256 * MIB
    assert (torch.tpu.stats()["launches"], torch.tpu.stats()["compiled"], torch.tpu.memory_allocated()) == before


def test_peak_and_reset():
    torch.tpu.reset_peak_memory_stats()
    base = torch.tpu.memory_allocated()
    x = make(8)
    del x
    assert torch.tpu.max_memory_allocated() - base >= 8 * MIB
    torch.tpu.reset_peak_memory_stats()
    assert torch.tpu.max_memory_allocated() == torch.tpu.memory_allocated()


def test_stats_have_the_keys_of_cuda():
    stats = torch.tpu.memory_stats()
    for key in (
        "active_bytes.all.peak",
        "allocated_bytes.all.current",
        "allocation.all.allocated",
        "num_alloc_retries",
        "num_ooms",
        "reserved_bytes.all.peak",
        "segment.all.current",
        "inactive_split_bytes.all.current",
    ):
        assert isinstance(stats[key], int), key
    assert stats == torch.accelerator.memory_stats()
    assert torch.tpu.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"] == torch.tpu.memory_allocated()


def test_accumulated_counts_and_reset():
    torch.tpu.reset_accumulated_memory_stats()
    x = make(1)
    del x
    stats = torch.tpu.memory_stats()
    assert stats["allocated_bytes.all.allocated"] >= MIB
    assert stats["allocated_bytes.all.freed"] >= MIB
    torch.tpu.reset_accumulated_memory_stats()
    assert torch.tpu.memory_stats()["allocated_bytes.all.allocated"] == 0


def test_accelerator_functions_agree():
    x = make(1)
    assert torch.accelerator.memory_allocated() == torch.tpu.memory_allocated() > 0
    assert torch.accelerator.memory_reserved() == torch.tpu.memory_reserved() == torch.tpu.memory_allocated()
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.max_memory_allocated() == torch.tpu.max_memory_allocated() == torch.tpu.memory_allocated()
    torch.accelerator.empty_cache()
    torch.accelerator.empty_host_cache()
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free <= total
    assert torch.tpu.mem_get_info(0)[1] == total == torch.tpu.get_device_properties().total_memory
    assert x.sum().item() == MIB // 4


def test_free_goes_down_by_what_is_held():
    free, _ = torch.tpu.mem_get_info()
    x = make(4)
    if torch.tpu.get_device_properties().stand_in:
        assert free - torch.tpu.mem_get_info()[0] == 4 * MIB
    else:
        assert torch.tpu.mem_get_info()[0] < free
    assert x.is_tpu


def test_out_of_memory_names_sizes_and_leaves_the_device_usable():
    _, total = torch.tpu.mem_get_info()
    x = torch.empty(total // 4 + MIB, device="tpu")
    with pytest.raises(torch.OutOfMemoryError, match=r"\d"):
        x.fill_(1.0)
    assert torch.ones(3, device="tpu").sum().item() == 3


def test_views_share_memory():
    before = torch.tpu.memory_allocated()
    x = make(2)
    views = [x[i : i + 10] for i in range(50)] + [x.view(-1, 2).t()]
    assert torch.tpu.memory_allocated() - before == 2 * MIB
    del x
    assert torch.tpu.memory_allocated() - before == 2 * MIB
    del views
    assert torch.tpu.memory_allocated() == before


def test_storage_resized_to_nothing_gives_its_memory_back():
    before = torch.tpu.memory_allocated()
    x = make(2)
    x.untyped_storage().resize_(0)
    assert torch.tpu.memory_allocated() == before
    x.untyped_storage().resize_(2 * MIB)
    x.fill_(3.0)
    assert x[7].item() == 3


def test_no_objects_are_left():
    from torch_tpu import _C

    def work():
        x = torch.randn(16, 16, device="tpu")
        y = (x @ x).relu().t().contiguous()
        event = torch.tpu.Event(enable_timing=True)
        event.record()
        torch.Generator("tpu")
        return y.sum().item()

    work()
    gc.collect()
    torch.tpu.synchronize()
    before = _C.live_objects()
    for _ in range(5):
        work()
    gc.collect()
    torch.tpu.synchronize()
    after = _C.live_objects()
    for kind in ("storage", "marker", "generator"):
        assert after.get(kind, 0) == before.get(kind, 0), kind


def test_memory_functions_that_are_missing_say_so():
    with pytest.raises(NotImplementedError, match="snapshot"):
        torch.tpu.memory._snapshot()
    with pytest.raises(NotImplementedError, match="history"):
        torch.tpu.memory._record_memory_history()
    torch.tpu.memory._record_memory_history(None)
    assert "allocated" in torch.tpu.memory.memory_summary() == torch.tpu._hbm_usage_summary()


def test_record_stream_is_accepted():
    x = make(1)
    x.record_stream(torch.tpu.Stream())
    assert x[0].item() == 1


# ---- pinned memory --------------------------------------------------------------------------------------------------------------
def test_pinned_tensors_know_it():
    x = torch.arange(5.0).pin_memory()
    assert x.is_pinned()
    assert x.data_ptr() % 4096 == 0
    assert x.tolist() == [0, 1, 2, 3, 4]
    assert x[2:].is_pinned()
    assert not torch.arange(5.0).is_pinned()
    assert torch.empty(10, pin_memory=True).is_pinned()
    assert x.pin_memory() is x
    assert not x.clone().is_pinned()


def test_pinned_is_exact_at_the_ends():
    from torch_tpu import _C

    x = torch.empty(4096, dtype=torch.uint8, pin_memory=True)
    assert _C.is_pinned(x.data_ptr())
    assert _C.is_pinned(x.data_ptr() + 4095)
    address = x.data_ptr()
    del x
    assert not _C.is_pinned(address)


def test_data_loader_pins():
    dataset = torch.utils.data.TensorDataset(torch.arange(8.0).view(4, 2))
    loader = torch.utils.data.DataLoader(dataset, batch_size=2, pin_memory=True)
    batches = [batch for (batch,) in loader]
    assert all(batch.is_pinned() for batch in batches)
    assert torch.cat([b.to("tpu", non_blocking=True) for b in batches]).cpu().tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_asynchronous_copy_into_pinned_memory():
    x = torch.arange(10000.0, device="tpu") * 2
    host = torch.empty(10000, pin_memory=True)
    host.copy_(x, non_blocking=True)
    torch.tpu.synchronize()
    assert torch.equal(host, torch.arange(10000.0) * 2)
    y = x.to("cpu", non_blocking=True)
    torch.tpu.synchronize()
    assert torch.equal(y, host)


def test_asynchronous_copy_and_event():
    event = torch.tpu.Event()
    hosts = []
    for i in range(20):
        x = torch.full((1000,), float(i), device="tpu")
        host = torch.empty(1000, pin_memory=True)
        host.copy_(x, non_blocking=True)
        hosts.append(host)
    event.record()
    event.synchronize()
    assert [host[999].item() for host in hosts] == list(range(20))


def test_source_of_an_asynchronous_copy_may_change_at_once():
    host = torch.full((100000,), 1.0).pin_memory()
    x = host.to("tpu", non_blocking=True)
    host.fill_(2.0)
    assert x.sum().item() == 100000
