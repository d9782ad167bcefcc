"""What processes have used is what the kernel tells the processes themselves, ended threads and all."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchbook.sites.processes import taskstats

# Waits for a word, works in threads that end, tells what getrusage(2) says of it, and stays.
WORKER = """
import json, os, resource, sys, threading, time
def work():
    for _ in range(40): time.sleep(0.001)
    end = time.thread_time() + 0.05
    while time.thread_time() < end: pass
def told():
    found = resource.getrusage(resource.RUSAGE_SELF)
    return [found.ru_utime + found.ru_stime, found.ru_nvcsw, found.ru_nivcsw]
for line in sys.stdin:
    before = told()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    with open(sys.argv[1], 'wb') as file:
        file.write(os.urandom(1 << 20)); file.flush(); os.fsync(file.fileno())
    print(json.dumps([after - was for was, after in zip(before, told())]), flush=True)
"""
# In each of three new threads touches 500 pages that it did not have before.
TOUCHER = """
import mmap, sys, threading
def touch():
    memory = mmap.mmap(-1, 500 * mmap.PAGESIZE)
    for page in range(500): memory[page * mmap.PAGESIZE] = 1
for line in sys.stdin:
    threads = [threading.Thread(target=touch) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print('[]', flush=True)
"""
CLOCK, FAULTS = (taskstats.SOFTWARE, 1), (taskstats.SOFTWARE, 2)
NO_EVENT = (taskstats.HARDWARE, 999)
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, '-c', 'import time; end = time.process_time() + 0.2\\n'
    'while time.process_time() < end: pass\\nprint(1, flush=True); time.sleep(60)'], stdout=subprocess.PIPE)
child.stdout.readline(); print(child.pid, flush=True); sys.stdin.readline(); child.kill()
"""


class Worker:
    """A process that works when it is told to, and says what it cost by its own account."""

    def __init__(self, program: str, *argv: str) -> None:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
        self.popen = subprocess.Popen([sys.executable, "-c", program, *argv], text=True, **pipes)

    def work(self) -> list[float]:
        print(file=self.popen.stdin, flush=True)
        return json.loads(self.popen.stdout.readline())

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.popen.kill()
        self.popen.communicate()


@pytest.mark.parametrize("is_told", [True, False], ids=["taskstats", "by threads"])
def test_a_process_has_used_what_it_says_itself(tmp_path: Path, is_told: bool):
    with Worker(WORKER, str(tmp_path / "file")) as worker:
        worker.work()
        books = taskstats.Usage([worker.popen.pid], is_thorough=True)
        if is_told and not books._taskstats.is_open:
            pytest.skip("this account may not ask for taskstats")
        if not is_told:
            books._taskstats.is_open = False
            books._last.clear()
            books._is_new = True
        before = books.read()
        cpu_s, voluntary, involuntary = worker.work()
        spent = [now - was for now, was in zip(books.read(), before, strict=True)]
        books.close()
    # Between the two looks it also reads a word and prints one.
    assert spent[taskstats.CPU] == pytest.approx(cpu_s, abs=0.01)
    assert sum(taskstats.split_modes(spent)) == pytest.approx(spent[taskstats.CPU], abs=1e-6)
    assert spent[taskstats.WRITTEN] >= 1 << 20
    if is_told:
        # Three threads that sleep forty times; all have ended when the kernel is asked.
        assert voluntary > 100
        assert spent[taskstats.VOLUNTARY] == pytest.approx(voluntary, abs=5)
        assert spent[taskstats.INVOLUNTARY] == pytest.approx(involuntary, abs=5)
        assert spent[taskstats.WAIT] >= 0


def test_children_count_where_they_do_the_work_and_only_there():
    with Worker(PARENT) as worker:
        worker.popen.stdout.readline()
        alone, whole = (
            taskstats.Usage([worker.popen.pid], families) for families in ((), [worker.popen.pid])
        )
        for books in (alone, whole):
            books._last.clear()
            books.read()
        assert whole.read()[taskstats.CPU] - alone.read()[taskstats.CPU] >= 0.2
        alone.close()
        whole.close()
        print(file=worker.popen.stdin, flush=True)


def test_what_has_ended_adds_nothing_and_what_was_counted_stays():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    books = taskstats.Usage([process.pid])
    was = books.read()
    process.kill()
    process.wait()
    assert books.read()[: taskstats.THREADS] == pytest.approx(was[: taskstats.THREADS], nan_ok=True)
    assert books.read()[taskstats.THREADS] == 0
    books.close()


def test_a_look_is_cheap():
    """Both ends of each turn are looked at, and a turn has 50 ms: each look is to be below 0.5 ms."""
    books = taskstats.Usage([os.getpid()])
    taken = []
    for _ in range(50):
        began = time.perf_counter()
        books.read()
        taken.append(time.perf_counter() - began)
    books.close()
    assert sorted(taken)[25] < 0.0005


def counted_in(events: dict[str, tuple[int, int]]) -> list[float]:
    """Return what is counted in a process while it touches 1,500 pages."""
    with Worker(TOUCHER) as worker:
        worker.work()
        counters = taskstats.Counters([worker.popen.pid], events=events)
        worker.work()
        told = counters.read()
        counters.close()
    return told


def test_the_kernel_counts_in_threads_that_come_later():
    cpu_s, clock_ns, faults = counted_in({"clock": CLOCK, "faults": FAULTS})
    # New threads also touch pages of their stacks.
    assert 1500 <= faults < 1700
    # The kernel's own clock of a task goes on while the machine's host takes it away.
    assert 0 < cpu_s < 1.05 * clock_ns / 1e9 + 0.005


def test_an_event_that_is_not_counted_here_is_not_there_and_the_others_are():
    _, lacking, faults = counted_in({"lacking": NO_EVENT, "faults": FAULTS})
    assert math.isnan(lacking) and faults >= 1500


def test_where_nothing_is_counted_nothing_is_told(monkeypatch: pytest.MonkeyPatch):
    for name in taskstats.EVENTS:
        monkeypatch.setitem(taskstats.EVENTS, name, NO_EVENT)
    assert taskstats.name_events(counted_in(taskstats.EVENTS)) == {}
    monkeypatch.setitem(taskstats.EVENTS, "cycles", FAULTS)
    assert set(taskstats.name_events(counted_in(taskstats.EVENTS))) == {"cpu_s", "cycles"}


def test_a_processor_that_can_be_counted_tells_what_a_core_can_do():
    told = taskstats.name_events(counted_in(taskstats.EVENTS))
    # Most virtual machines count nothing; any core has between a tenth of a cycle and ten in a nanosecond.
    assert not told or 1e8 < told["cycles"] / told["cpu_s"] < 1e10


def test_what_cannot_be_seen_is_null_in_a_file():
    assert taskstats.name_counts([1.0, *[math.nan] * 9])["user_s"] is None
    assert list(taskstats.name_counts([0.0] * 10)) == list(taskstats.FIELDS)
