"""The clock of turns with real processes: one runs at a time, and whatever ends the clock leaves nobody
stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchbook.sites.processes import process, procfs, taskstats
from benchbook.sites.topology import clock, turns
from tests import beside, rooms

MANY = """import sys, threading, hashlib
def burn():
    while True: hashlib.sha256(bytes(100_000)).digest()
print('Threads started!', flush=True)
for _ in range(12): threading.Thread(target=burn, daemon=True).start()
burn()"""
BURN = "import sys\nprint('Threads started!', flush=True)\nwhile True: pass"
# For what is about who stands still, which a core's time tells nothing of.
WAKE = "import time\nprint('Threads started!', flush=True)\nwhile True: time.sleep(0.001)"
LATE = "import os, time\nwhile not os.path.exists({!r}): time.sleep(0.01)\n" + WAKE
DIE_AFTER = "import sys, time\nprint('Threads started!', flush=True)\ntime.sleep(0.6)"
TURN_S = 0.05


class Group:
    """Two arms, each a process that burns a core, and the clock that lets them take turns."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.request, self.result = folder, folder / "asked.json", folder / "result.json"
        self.burners: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, **programs: str) -> None:
        for name, program in programs.items():
            with (self.folder / f"{name}.log").open("wb") as log:
                begun = self.folder / f"{name}.begun"
                argv = process.defer_command([sys.executable, "-c", program], None, begun)
                self.burners[name] = subprocess.Popen(argv, stdout=log)

    def clock(
        self,
        whole_s: float = 3.0,
        stops: dict[int, list[str]] | None = None,
        books: str = taskstats.__file__,
        families: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        arms = [
            {
                "name": name,
                "clients": [one.pid],
                "logs": [str(self.folder / f"{name}.log")],
                "parts": {"client": [one.pid]},
            }
            for name, one in self.burners.items()
        ]
        first, second = self.burners
        asked = {"arms": arms, "stops": stops or {}, "rounds": [[first, second, second, first]]}
        asked |= {"turn_s": TURN_S, "turns": 1000, "discard_s": 1, "whole_s": whole_s}
        asked |= {"ready_s": 10, "usage": books, "families": families}
        self.request.write_text(json.dumps(asked))
        argv = [sys.executable, "-I", "-S", clock.__file__, str(self.request), str(self.result)]
        return subprocess.Popen(argv)

    def take_turns(self, a: str, b: str, **how: Any) -> int:
        """Take all turns of two programs with the machine alone, and return the clock's exit code.

        Both end before other tests are let in, for which this one may wait for minutes.
        """
        with rooms.alone():
            self.start(a=a, b=b)
            code = self.clock(**how).wait(60)
            assert self.nobody_is_stopped()
            self.end()
            return code

    def end(self) -> None:
        for one in self.burners.values():
            one.kill()
            one.wait()

    def told(self) -> dict[str, Any]:
        return json.loads(self.result.read_text())

    def state(self, name: str) -> str:
        found = procfs.read_stat(self.burners[name].pid)
        return str(found.state) if found else "gone"

    def nobody_is_stopped(self) -> bool:
        return not any(self.state(name) in "Tt" for name in self.burners)


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    made = Group(tmp_path)
    yield made
    made.end()


@pytest.mark.alone
def test_one_arm_runs_at_a_time_for_equal_seconds_and_all_go_on_at_the_end(group: Group):
    assert group.take_turns(BURN, BURN) == 0
    told = group.told()
    taken = told["turns"]
    active = {name: sum(end - begin for arm, begin, end in taken if arm == name) / 1e6 for name in "ab"}
    # Of 2 s on the clients' clocks 0.2 s are kept at both ends: some 0.8 s each, whole rounds of 0.2 s.
    assert 0.3 < active["a"] < 1.0 and active["b"] == pytest.approx(active["a"], rel=0.2)
    assert all(later[1] >= turn[2] for turn, later in pairwise(taken))
    assert [turn[0] for turn in taken[:4]] == list("abba")
    for name in "ab":
        assert told["cpu_s"][name]["client"] <= active[name] * 1.05
        assert told["longest_outside_s"][name] < 0.005
        costs = told["costs"][name]["client"]
        # Two ways to ask the kernel, and one of them a moment later.
        assert costs["cpu_s"] == pytest.approx(told["cpu_s"][name]["client"], rel=0.02, abs=0.01)
        assert costs["user_s"] + costs["system_s"] == pytest.approx(costs["cpu_s"], abs=1e-5)
        assert costs["threads"] == 1
    # The looks are no part of a turn; all of them together take less than 1 % of the time.
    assert told["reading_s"] < 0.01 * (told["window"][1] - told["window"][0])


def test_who_has_started_leaves_the_cores_to_those_that_have_not(group: Group):
    """Three arms of eight threads on two cores: the last would start seconds after the first."""
    may_start = group.folder / "may_start"
    group.start(a=WAKE, b=LATE.format(str(may_start)))
    running = group.clock(whole_s=5.0)
    assert beside.until(lambda: (group.folder / "a.log").read_bytes() != b"" and group.state("a") in "Tt")
    assert (group.folder / "b.log").read_bytes() == b"" and group.state("b") not in "Tt"
    may_start.touch()
    assert running.wait(60) == 0
    assert {arm for arm, *_ in group.told()["turns"]} == {"a", "b"}
    assert group.nobody_is_stopped()


@pytest.mark.alone
def test_events_are_counted_by_arm_in_what_is_discarded(group: Group):
    books = group.folder / "books.py"
    # The kernel's clock of a task stands in for what few virtual machines count.
    in_place = "EVENTS.update(dict.fromkeys(EVENTS, (SOFTWARE, 1)))\n"
    books.write_text(Path(taskstats.__file__).read_text(encoding="utf-8") + in_place, encoding="utf-8")
    assert group.take_turns(BURN, BURN, books=str(books)) == 0
    told = group.told()
    for name in "ab":
        seen = told["counted"][name]["client"]
        # Of the first second each arm has less than a half, and 2 s follow that are not counted.
        assert 0.005 < seen["cpu_s"] < 0.5
        assert seen["cpu_s"] <= 1.05 * seen["instructions"] / 1e9 < 0.6


@pytest.mark.alone
def test_a_turn_begins_when_the_last_thread_of_the_one_before_stands_still(group: Group):
    # On a busy machine thirteen threads need more than a second to start; what is counted begins after it.
    assert group.take_turns(MANY, MANY, whole_s=4.0) == 0
    told = group.told()
    assert {turn[0] for turn in told["turns"]} == {"a", "b"}
    for name in "ab":
        # A dozen threads take some milliseconds to stop: within them nobody's turn goes on.
        assert 0.0 < told["longest_stop_s"][name] < clock.STILL_S + 0.2
        # On a machine without a free core it may go on before the last of them had one.
        assert told["longest_outside_s"][name] < 0.005 or max(told["longest_stop_s"].values()) > clock.STILL_S


PARENT = """import subprocess, sys
child = subprocess.Popen([sys.executable, '-c', 'while True: pass'])
print('Threads started!', child.pid, flush=True)
child.wait()"""


def test_what_a_server_of_one_arm_has_started_stands_still_with_it_and_goes_on_at_the_end(group: Group):
    """As a PostgreSQL does for each session: its child works, and itself waits."""
    group.start(a=WAKE, b=WAKE)
    server = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE)
    assert server.stdout is not None
    child = psutil.Process(int(server.stdout.readline().split()[-1]))
    try:
        running = group.clock(whole_s=3.0, stops={server.pid: ["a"]}, families=[server.pid])
        states = ""
        while running.poll() is None:
            states += "T" if child.status() == psutil.STATUS_STOPPED else "R"
            time.sleep(0.005)
        assert running.returncode == 0
        # In the turns of b, half of the time, it stands still.
        inside = states[states.index("T") :] if "T" in states else ""
        assert inside.count("T") > len(inside) / 5, states
        used_s = child.cpu_times().user
        assert beside.until(lambda: child.cpu_times().user > used_s)
        assert group.nobody_is_stopped()
    finally:
        child.kill()
        server.kill()
        server.wait()


def test_each_thread_of_a_process_is_asked_to_stop_it_for_the_first_one_may_wait_for_a_core(monkeypatch):
    late = subprocess.Popen([sys.executable, "-c", MANY], stdout=subprocess.PIPE)
    tell, asked = clock.TGKILL, []

    def asks(pid: int, task: int, signum: int) -> None:
        asked.append((pid, task, signum))
        tell(pid, task, signum)

    monkeypatch.setattr(clock, "TGKILL", asks)
    try:
        assert late.stdout is not None and late.stdout.readline()
        assert beside.until(lambda: len(os.listdir(f"/proc/{late.pid}/task")) == 13)
        tasks = {int(task) for task in os.listdir(f"/proc/{late.pid}/task")}
        # Nobody else tells it to stop: whichever of them runs has to.
        clock._stand_still([late.pid])
        assert {procfs.read_stat(late.pid).state} == {"T"}
    finally:
        late.kill()
        late.wait()
    assert set(asked) == {(late.pid, task, signal.SIGSTOP) for task in tasks}


def test_what_serves_one_arm_alone_stands_still_in_the_turns_of_others(group: Group):
    group.start(a=BURN, b=WAKE)
    server = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        running = group.clock(whole_s=2.0, stops={server.pid: ["a"]})
        seen = set()
        while running.poll() is None:
            states = [procfs.read_stat(pid) for pid in (server.pid, group.burners["a"].pid)]
            seen.add(tuple(str(one.state) for one in states if one))
            time.sleep(0.003)
        assert running.returncode == 0
        # Both are looked at within moments of each other, so a few looks fall on the change.
        assert ("T", "T") in seen and ("R", "R") in seen
        assert procfs.read_stat(server.pid).state != "T"
    finally:
        server.kill()
        server.wait()


def test_a_client_that_is_continued_by_a_stranger_is_seen(group: Group):
    group.start(a=BURN, b=WAKE)
    # The clock waits half a second for one that never stands still, and then goes on: 2.2 s for an ABBA.
    running = group.clock(whole_s=5.0)
    assert beside.until(lambda: group.state("a") == "T")
    while running.poll() is None:
        os.kill(group.burners["a"].pid, signal.SIGCONT)
        time.sleep(0.01)
    assert group.told()["longest_outside_s"]["a"] > 0.005


def test_a_client_that_ends_ends_the_turns_and_the_others_go_on(group: Group):
    group.start(a=WAKE, b=DIE_AFTER)
    running = group.clock()
    assert running.wait(60) == 3
    assert group.told()["gone"] == group.burners["b"].pid
    assert beside.until(group.nobody_is_stopped)


@pytest.mark.parametrize("after_s", [0.3, 1.3, 2.0])
def test_a_clock_that_is_asked_to_end_lets_all_go_on(group: Group, after_s: float):
    group.start(a=WAKE, b=WAKE)
    running = group.clock()
    time.sleep(after_s)
    running.terminate()
    # It may not have come so far as to answer the signal itself.
    assert running.wait(60) in (1, -signal.SIGTERM)
    # A client that a busy machine had not started yet waits for its beginning, which its owner gives or ends.
    begun = [name for name in group.burners if (group.folder / f"{name}.begun").read_text() != ""]
    assert beside.until(lambda: not any(group.state(name) in "Tt" for name in begun))
    assert begun == ["a", "b"] or after_s < 1


def test_parts_that_serve_every_arm_are_never_stopped():
    parts = {"a": {"server": [1]}, "a_again": {"server": [1]}, "b": {"server": [1], "proxy": [2]}}
    assert turns.list_stops(parts) == {2: ["b"]}
    assert turns.stopped_with(parts, "a") == ["client"]
    assert turns.stopped_with(parts, "b") == ["client", "proxy"]
    own = {"a": {"server": [1]}, "a_again": {"server": [1]}, "b": {"server": [2]}}
    assert turns.list_stops(own) == {1: ["a", "a_again"], 2: ["b"]}
