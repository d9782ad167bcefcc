"""What a machine is like: real figures with known bounds, and what Python itself takes is not among them."""

import gc
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchbook.sites.agent import microbenchmarks

SLOW_ECHO = """
import os, sys, time
while os.read(int(sys.argv[1]), 1):
    time.sleep(0.002)
    os.write(int(sys.argv[1]), b"x")
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> microbenchmarks.Figures:
    return microbenchmarks.measure_here(tmp_path_factory.mktemp("disk"))


def test_a_machine_is_measured_in_five_seconds(found: microbenchmarks.Figures):
    assert found["took_s"] < 15, "three on a quiet machine"
    known = {name: value for name, value in found.items() if name != "steal_pct" and value is not None}
    assert all(value > 0 for value in known.values()), found
    # Differences have no figure where a busy machine made what Python itself takes last longer.
    assert {"copy_gb_per_s", "flush_ms"} <= set(known)
    assert {"system_call_ns", "clock_read_ns", "memory_latency_ns"} <= set(found)
    # A processor copies at most some hundred GB/s, and enters the kernel in some 20 ns at the least.
    assert found["copy_gb_per_s"] < 500 and 15 < known.get("system_call_ns", 100) < 50_000


def test_a_difference_that_is_not_positive_is_no_figure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """On a busy machine what Python itself takes may last longer than the call that it is subtracted from."""
    times = iter((90.0, 90.0, 60.0))
    monkeypatch.setattr(microbenchmarks, "_each_ns", lambda call: next(times))
    monkeypatch.setattr(microbenchmarks, "_measure_wake", lambda name, core: {f"{name}_us": -0.4})
    monkeypatch.setattr(microbenchmarks, "_measure_memory", lambda: {"memory_latency_ns": 95.1})
    cores, is_collecting = os.sched_getaffinity(0), gc.isenabled()
    try:
        figures = microbenchmarks.measure_machine(tmp_path)
    finally:
        os.sched_setaffinity(0, cores)
        if is_collecting:
            gc.enable()
    names = ("system_call_ns", "clock_read_ns", "wake_same_core_us", "memory_latency_ns")
    assert [figures[name] for name in names] == [None, None, None, 95.1]


def test_waking_is_told_for_each_core_there_is(found: microbenchmarks.Figures):
    assert found["wake_same_core_us"] <= found["wake_same_core_p99_us"]
    has_other = len(os.sched_getaffinity(0)) > 1
    assert (found["wake_other_core_us"] is not None) == has_other
    # Two programs that take turns on one core can't wake each other faster than a core changes programs.
    assert found["wake_same_core_us"] > 0.2


def test_a_word_that_comes_back_late_takes_as_long_as_that():
    mine, theirs = socket.socketpair()
    with mine, theirs:
        argv = [sys.executable, "-c", SLOW_ECHO, str(theirs.fileno())]
        with subprocess.Popen(argv, pass_fds=[theirs.fileno()]) as echo:
            taken = microbenchmarks._time_rounds(mine.fileno(), mine.fileno(), 1.5)
            echo.kill()
    assert statistics.median(taken) > 2_000_000


def test_the_chase_through_memory_comes_to_every_place_once():
    """The generator has full period (Hull and Dobell: c odd, a - 1 divisible by 4), so nothing repeats."""
    at, seen = 1, set()
    for _ in range(microbenchmarks.SMALL):
        at = (5 * at + 12_345) & (microbenchmarks.SMALL - 1)
        seen.add(at)
    assert len(seen) == microbenchmarks.SMALL


def test_a_call_that_takes_longer_is_seen_to(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(microbenchmarks, "CALLS", 5)
    assert microbenchmarks._each_ns(lambda: time.sleep(0.001)) > 1_000_000


def test_a_disk_that_cannot_be_written_has_no_figure(tmp_path: Path):
    assert microbenchmarks._measure_flush(tmp_path / "nowhere") is None
    printed = ("Traceback (most recent call last)", "")
    assert [*map(microbenchmarks.parse_figures, printed)] == [{}, {}]
    told = microbenchmarks.describe_figures({"flush_ms": None, "system_call_ns": 90.0})
    assert "a flush of the disk" not in ", ".join(told)
