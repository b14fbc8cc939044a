# SPDX-License-Identifier: Apache-2.0
"""Streams and events."""

import threading

import pytest
import torch


def work(n=300):
    x = torch.ones(n, n, device="tpu")
    for _ in range(5):
        x = x @ x / n
    return x


def test_default_stream_is_current():
    assert torch.tpu.current_stream() == torch.tpu.default_stream()
    assert torch.tpu.current_stream().device == torch.device("tpu:0")
    assert torch.tpu.current_stream(0) == torch.accelerator.current_stream()


def test_stream_context_restores():
    default = torch.tpu.current_stream()
    a, b = torch.tpu.Stream(), torch.tpu.Stream(priority=-1)
    assert len({default.stream_id, a.stream_id, b.stream_id}) == 3
    with torch.tpu.stream(a):
        assert torch.tpu.current_stream() == a
        with torch.tpu.stream(b):
            assert torch.tpu.current_stream() == b
        assert torch.tpu.current_stream() == a
        with torch.tpu.stream(None):
            assert torch.tpu.current_stream() == a
    with a:
        assert torch.tpu.current_stream() == a
    assert torch.tpu.current_stream() == default


def test_context_restores_after_an_exception():
    default = torch.tpu.current_stream()
    with pytest.raises(ZeroDivisionError), torch.tpu.stream(torch.tpu.Stream()):
        raise ZeroDivisionError
    assert torch.tpu.current_stream() == default


def test_set_stream():
    default, other = torch.tpu.default_stream(), torch.tpu.Stream()
    torch.tpu.set_stream(other)
    try:
        assert torch.tpu.current_stream() == other
        assert (torch.ones(2, device="tpu") + 1).tolist() == [2, 2]
    finally:
        torch.tpu.set_stream(default)


def test_current_stream_is_a_threads_own():
    seen = []
    with torch.tpu.stream(torch.tpu.Stream()):
        thread = threading.Thread(target=lambda: seen.append(torch.tpu.current_stream()))
        thread.start()
        thread.join()
    assert seen == [torch.tpu.default_stream()]


def test_streams_see_each_others_results():
    a, b = torch.tpu.Stream(), torch.tpu.Stream()
    with torch.tpu.stream(a):
        x = work()
        done = a.record_event()
    b.wait_event(done)
    b.wait_stream(a)
    with torch.tpu.stream(b):
        y = x + 1
    assert y[0, 0].item() == 2


def test_stream_query_and_synchronize():
    stream = torch.tpu.current_stream()
    x = work()
    stream.synchronize()
    assert stream.query()
    assert x[0, 0].item() == 1


def test_events_wait():
    event = torch.tpu.Event()
    assert event.query(), "an event that was never recorded is done"
    event.synchronize()
    x = work()
    event.record()
    event.synchronize()
    assert event.query()
    event.wait()
    assert x[0, 0].item() == 1


def test_event_of_a_stream_and_recorded_twice():
    stream = torch.tpu.Stream()
    event = stream.record_event()
    event.synchronize()
    event.record(stream)
    event.wait(stream)
    event.synchronize()
    assert event.query()


def test_elapsed_time_grows():
    start, middle, end = (torch.tpu.Event(enable_timing=True) for _ in range(3))
    start.record()
    x = work(400)
    middle.record()
    for _ in range(4):
        x = work(400)
    end.record()
    torch.tpu.synchronize()
    first, whole = start.elapsed_time(middle), start.elapsed_time(end)
    assert 0 < first < whole < 120_000
    assert end.elapsed_time(start) == -whole
    assert x[0, 0].item() == 1


def test_elapsed_time_asks_for_timing_and_recording():
    plain, timed, late = torch.tpu.Event(), torch.tpu.Event(enable_timing=True), torch.tpu.Event(enable_timing=True)
    plain.record()
    timed.record()
    torch.tpu.synchronize()
    with pytest.raises((RuntimeError, ValueError), match="enable_timing=True"):
        timed.elapsed_time(plain)
    with pytest.raises((RuntimeError, ValueError), match="recorded"):
        timed.elapsed_time(late)


def test_no_native_handle():
    with pytest.raises((NotImplementedError, RuntimeError, AttributeError)):
        torch.tpu.Stream().native_handle  # noqa: B018


def test_synchronize_takes_all_spellings():
    for device in (None, 0, "tpu", "tpu:0", torch.device("tpu")):
        torch.tpu.synchronize(device)
    torch.accelerator.synchronize()
    torch.accelerator.synchronize("tpu:0")


def test_threads_share_the_device():
    results = {}

    def job(i):
        x = torch.full((50, 50), float(i), device="tpu")
        for _ in range(10):
            x = x + 1
        results[i] = x.sum().item()

    threads = [threading.Thread(target=job, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: 2500.0 * (i + 10) for i in range(6)}


def test_capture_is_never_on():
    assert not torch.tpu.is_current_stream_capturing()
