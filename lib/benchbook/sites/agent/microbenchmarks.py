"""Microbenchmarks of a machine, in five seconds: wake-ups, system calls, memory and disk.

    python -I -S -c SOURCE FOLDER     print the figures as one line of JSON; the disk is the folder's

A program of its own with one thread, in Python's own library alone, so that it is carried as its text. What
Python itself takes is measured in the same way without the thing in question, and subtracted.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

Figures = dict[str, Any]
TIMEOUT_S = 30.0
WAKE_S, MOST_WAKES, FIRST_WAKES, LEAST_WAKES = 0.8, 20_000, 200, 100
FLUSH_S, MOST_FLUSHES = 1.0, 200
MEMORY, SMALL = 1 << 26, 1 << 14
STEPS, CALLS, REPEATS, MOST_S = 100_000, 50_000, 5, 0.5
ECHO = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
file = int(sys.argv[2])
while os.read(file, 1):
    os.write(file, b"x")
"""


def build_command(folder: str, python: str = sys.executable) -> list[str]:
    """Command line that measures a machine with any Python."""
    return [python, "-I", "-S", "-c", Path(__file__).read_text(encoding="utf-8"), folder]


def measure_here(folder: Path) -> Figures:
    """Figures of this machine; empty if they can't be measured."""
    try:
        result = subprocess.run(build_command(str(folder)), capture_output=True, text=True, timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return parse_figures(result.stdout)


def parse_figures(statement: str) -> Figures:
    """Figures that the program printed as its first line; empty if it printed none."""
    with contextlib.suppress(ValueError, IndexError):
        result = json.loads(statement.splitlines()[0])
        return result if isinstance(result, dict) else {}
    return {}


def describe_figures(results: Figures, recorded: list[Figures] | None = None) -> list[str]:
    """Measured figures in words, with their range on `recorded` machines; missing ones left out."""
    statements = {
        "wake_other_core_us": "waking another core {:.1f} µs",
        "wake_same_core_us": "the same core {:.1f} µs",
        "system_call_ns": "a system call {:.0f} ns",
        "clock_read_ns": "reading the clock {:.0f} ns",
        "memory_latency_ns": "memory {:.0f} ns",
        "copy_gb_per_s": "copying {:.1f} GB/s",
        "flush_ms": "a flush of the disk {:.2f} ms",
        "steal_pct": "steal meanwhile {:.1f} %",
    }
    figures = []
    for name, text in statements.items():
        if results.get(name) is not None:
            others = [values[name] for values in recorded or () if values.get(name) is not None]
            number = text[text.index("{") : text.index("}") + 1]
            ends = [number.format(end) for end in (min(others), max(others))] if others else []
            observed = f" (recorded: {' to '.join(dict.fromkeys(ends))})" if others else ""
            figures.append(text.format(results[name]) + observed)
    return figures


def measure_machine(folder: Path) -> Figures:
    """Measure the machine and a folder's disk; None for what can't be, or where Python itself took longer."""
    began, before = time.monotonic(), _read_times()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[0]})
    gc.disable()
    idle = _each_ns(gc.isenabled)
    results: Figures = {
        **_measure_wake("wake_same_core", cores[0]),
        **_measure_wake("wake_other_core", cores[1] if len(cores) > 1 else None),
        "system_call_ns": round(_each_ns(os.getppid) - idle, 1),
        "clock_read_ns": round(_each_ns(time.perf_counter_ns) - idle, 1),
        **_measure_memory(),
        "flush_ms": _measure_flush(folder),
    }
    figures = {name: value if value and value > 0 else None for name, value in results.items()}
    spent = [now - was for was, now in zip(before, _read_times())]  # noqa: B905 (Python 3.9 knows no `strict`)
    figures["steal_pct"] = round(100 * spent[7] / sum(spent), 2) if sum(spent) > 0 else None
    return {**figures, "took_s": round(time.monotonic() - began, 2)}


def _measure_wake(name: str, core: int | None) -> Figures:
    """Median and 99th percentile of waking a program that waits on a core for our word, in us."""
    names = (f"{name}_us", f"{name}_p99_us")
    if core is None:
        return dict.fromkeys(names)
    mine, theirs = socket.socketpair()
    socketpair, other = socket.socketpair()
    with mine, theirs, socketpair, other:
        alone = _time_rounds(socketpair.fileno(), other.fileno(), WAKE_S / 8)
        command = [sys.executable, "-I", "-S", "-c", ECHO, str(core), str(theirs.fileno())]
        with subprocess.Popen(command, pass_fds=[theirs.fileno()]) as echo:
            # Once it answers: on a busy machine its start takes as long as all that is timed.
            os.write(mine.fileno(), b"x")
            os.read(mine.fileno(), 1)
            taken = _time_rounds(mine.fileno(), mine.fileno(), WAKE_S)
            echo.kill()
    if len(taken) < LEAST_WAKES:
        return dict.fromkeys(names)
    overhead = statistics.median(alone)
    waking = sorted(each / 2 - overhead for each in taken)
    # The values below which half and 99 in 100 of them lie (nearest rank).
    return dict(zip(names, (round(waking[int(share * len(waking))] / 1000, 2) for share in (0.5, 0.99))))  # noqa: B905


def _time_rounds(reads: int, writes: int, seconds: float) -> list[int]:
    """Nanoseconds of each word until it came back, after the first ones."""
    taken: list[int] = []
    clock, ask, hear = time.perf_counter_ns, os.write, os.read
    until = clock() + int(seconds * 1e9)
    while len(taken) < MOST_WAKES + FIRST_WAKES and (began := clock()) < until:
        ask(writes, b"x")
        hear(reads, 1)
        taken.append(clock() - began)
    return taken[FIRST_WAKES:]


def _each_ns(call: Callable[[], Any], calls: int = CALLS) -> float:
    """Time of one call in ns: the least of some rows, as nothing makes one faster; fewer if they last."""
    timer, until = timeit.Timer(call), time.monotonic() + MOST_S
    rows = [timer.timeit(calls)]
    while len(rows) <= REPEATS and time.monotonic() <= until:
        rows.append(timer.timeit(calls))
    return min(rows) * 1e9 / calls


def _measure_memory() -> Figures:
    """GB copied a second, and ns of each dependent read over 64 MiB."""
    place, source = bytearray(MEMORY), bytes(MEMORY)
    copy = partial(place.__setitem__, slice(None), source)
    # The first copy also has the kernel give the pages.
    copy()
    copying = _each_ns(copy, 1)
    far, near = (_each_ns(partial(_chase_pointers, place, size), 1) for size in (MEMORY, SMALL))
    return {"copy_gb_per_s": round(MEMORY / copying, 2), "memory_latency_ns": round((far - near) / STEPS, 1)}


def _chase_pointers(place: bytearray, size: int) -> None:
    """Many dependent reads: all bytes are 0, but the processor can't know that."""
    at, mask = 1, size - 1
    for _ in range(STEPS):
        # A linear congruential generator of full period (Hull and Dobell 1962).
        at = (5 * at + 12_345 + place[at]) & mask


def _measure_flush(folder: Path) -> float | None:
    """Median time until a written block of 4 KiB is on the disk, in ms."""
    path = folder / f".flush-{os.getpid()}"
    taken: list[int] = []
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None
    try:
        until = time.monotonic() + FLUSH_S
        while len(taken) < MOST_FLUSHES and time.monotonic() < until:
            began = time.perf_counter_ns()
            os.pwrite(file, b"x" * 4096, 4096 * (len(taken) % 16))
            os.fdatasync(file)
            taken.append(time.perf_counter_ns() - began)
    except OSError:
        return None
    finally:
        os.close(file)
        path.unlink()
    return round(statistics.median(taken) / 1e6, 3)


def _read_times() -> list[int]:
    with open("/proc/stat", encoding="ascii") as file:
        return [int(word) for word in file.readline().split()[1:9]]


if __name__ == "__main__":
    print(json.dumps(measure_machine(Path(sys.argv[1]))))
