"""The clock of turns: lets one arm of a group run at a time, and writes down when each did.

    python -I -S clock.py REQUEST RESULT

It is a program of its own with nothing else to do, so that nothing delays it. It stops and continues
processes through handles that name one process for ever, and lets all go on before it ends. If it is killed,
its owner lets them go on or ends them; if the owner is killed too, the kernel ends them all.

The request is a JSON object:

- `arms`: a list, each with `name`, `clients` (pids), `logs` of the clients, and `parts` (pids by part);
- `stops`: pid to the names of the arms that it serves; it stands still in the turns of others, with its
  children if it is one of `families`;
- `rounds`: lists of arms, repeated; `turn_s`;
- `discard_s`, `whole_s` on sysbench's clock; `ready_s`, in which the clients, which stand still until this
  program lets all of them begin at once, are to have started;
- `cores`: those on which a short loop tells how fast the machine is, before each turn that counts;
- `usage`: the file of `processes.taskstats`; `families`: pids whose children do their work.

The result has `turns` (arm, begin and end in microseconds of the monotonic clock), `window`, `cpu_s` and
`costs` by arm and part, `loop_us` by arm, `counted` of what was discarded, `reading_s`, the longest time that
an arm took to stand still, and what clients did out of turn. Exit 0: all as asked. 3: a process of the group
ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.util
import json
import math
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

STARTED = b"Threads started!"
TGKILL: Any = getattr(ctypes.CDLL(None), "tgkill", None)
"""Signals one thread of a process (tgkill(2)); None with an old C library."""
LOOP = 2000
"""Rounds of the loop, some tenths of a millisecond: changing it changes what `loop_us` is compared with."""
LOOK_S, STILL_LOOK_S = 0.002, 0.0002
HALTED = (b"T", b"t")
STILL = (*HALTED, b"Z", b"X")
"""States of a thread that runs no more: stopped, traced, ended (proc_pid_stat(5))."""
LEAST_TURN_S, ROOM = 0.02, 1.3
"""Shortest turn of a discard, and what there is of it beside the turns of a round, as a factor."""
SLOWER = 1.01
"""Factor by which a round's turns may last longer than they were asked to."""
STILL_S, GUARD_S = 0.5, 0.1
"""Longest wait for threads to stand still, and seconds that all of them do so around the moment at which
sysbench begins or ends its window."""


class Ended(Exception):
    """A process that the turns need is gone."""


class Processes:
    """Handles of all processes that are stopped or watched."""

    def __init__(self, pids: list[int]) -> None:
        self.handles, self.ends = dict[int, int](), select.poll()
        for pid in pids:
            try:
                self.handles[pid] = os.pidfd_open(pid)
            except OSError:
                raise Ended(pid) from None
            self.ends.register(self.handles[pid], select.POLLIN)

    def must_live(self) -> None:
        """Raise Ended if a process has ended, also one that is not yet collected."""
        for handle, _ in self.ends.poll(0):
            raise Ended(next(pid for pid, other in self.handles.items() if other == handle))

    def send(self, pids: list[int], signum: signal.Signals) -> None:
        """Signal some processes; Ended if one of them is gone."""
        for pid in pids:
            try:
                signal.pidfd_send_signal(self.handles[pid], signum)
            except ProcessLookupError:
                raise Ended(pid) from None

    def go_on(self) -> None:
        """Let every process go on, whatever has become of the others."""
        for handle in self.handles.values():
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(handle, signal.SIGCONT)


def cpu_s(pid: int) -> float:
    """Processor time of a process in seconds, to the nanosecond (clock_getcpuclockid(3))."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        raise Ended(pid) from None


class ArmInTurns:
    """One that takes turns: its processes, and what was measured of them so far."""

    def __init__(self, asked: dict, others: list[int], families: Sequence[int], usage: Any) -> None:
        self.clients, self.logs, self.parts = list(asked["clients"]), asked["logs"], asked["parts"]
        self.others, self.children = others, list[int]()
        """Processes that run only in its turns, beside its clients, from the server outwards."""
        # What a parent's children use is in its books alone.
        self.watched = [
            (part, pid) for part, pids in self.parts.items() for pid in pids if pid not in families
        ]
        self.books = {part: usage.Usage(pids, families) for part, pids in self.parts.items()} if usage else {}
        self.counters: dict[str, Any] = {}
        self.costs, self.counted = dict[str, list[float]](), dict[str, list[float]]()
        self.cpu_s, self.loops = dict.fromkeys(self.parts, 0.0), list[float]()
        self.outside_s = self.longest_outside_s = self.longest_stop_s = 0.0
        self.idle_turns = self.halted = 0
        self.seen_s: float | None = None

    def client_cpu_s(self) -> float:
        return sum(map(cpu_s, self.clients))

    def look_outside(self) -> None:
        """Add up its clients' processor time since its last turn ended."""
        if self.seen_s is not None:
            out = self.client_cpu_s() - self.seen_s
            self.outside_s += out
            self.longest_outside_s = max(self.longest_outside_s, out)


class TurnScheduler:
    """One group's turns."""

    def __init__(self, requests: dict) -> None:
        self.asked, self.usage = requests, _load_module(requests.get("usage"))
        self.families = requests.get("families") or ()
        stops = {int(pid): names for pid, names in requests["stops"].items()}
        self.parents = {*self.families} & {*stops}
        self.arms: dict[str, ArmInTurns] = {}
        for asked in requests["arms"]:
            others = [pid for pid, names in stops.items() if asked["name"] in names]
            self.arms[asked["name"]] = ArmInTurns(asked, others, self.families, self.usage)
        self.processes = Processes(sorted({*stops}.union(*(arm.clients for arm in self.arms.values()))))
        self.turns: list[tuple[str, int, int]] = []
        self.slowest_s, self.switching_s, self.reading_s = 0.0, 0.0, 0.0
        self.own_cores, self.running = os.sched_getaffinity(0), set(self.arms)

    def stop(self, arm: ArmInTurns) -> float:
        """Stop an arm, its client first; return the seconds until the last thread of it stands still."""
        self.processes.send(arm.clients, signal.SIGSTOP)
        self.processes.send(arm.others, signal.SIGSTOP)
        # A parent that stands still makes no more of them.
        arm.children = [child for pid in arm.others if pid in self.parents for child in _list_children(pid)]
        _send_signal(arm.children, signal.SIGSTOP)
        # A process stands still when its last thread does, which on a busy machine waits for a core first.
        return _stand_still([*arm.clients, *arm.others, *arm.children])

    def go_on(self) -> None:
        """Let every process go on, whatever has become of the others."""
        for arm in self.arms.values():
            _send_signal(arm.children, signal.SIGCONT)
        self.processes.go_on()

    def wait_until_started(self) -> tuple[float, float]:
        """Moments that bound the start of the clients' own clocks: none starts before or after them."""
        logs = {log: name for name, arm in self.arms.items() for log in arm.logs}
        deadline, count = time.monotonic() + self.asked["ready_s"], len(logs)
        first = last = time.monotonic()
        while logs:
            looked = time.monotonic()
            for name, arm in self.arms.items():
                # Who has started leaves the cores to those that have not. These are let go on more than
                # once: one that was slow to stand still would stand still for good.
                has_to_start = name in logs.values()
                self.processes.send(arm.clients, signal.SIGCONT if has_to_start else signal.SIGSTOP)
            logs = {log: name for log, name in logs.items() if not _has_started(log)}
            if len(logs) == count:
                first = looked
            last = time.monotonic()
            self.processes.must_live()
            if looked > deadline:
                raise TimeoutError
            time.sleep(LOOK_S)
        return first, last

    def take(self, name: str, is_counted: bool, turn_s: float) -> None:
        """Let one arm run for one turn."""
        processes, arm = self.processes, self.arms[name]
        processes.must_live()
        if is_counted:
            arm.look_outside()
        costs = self.read(arm, is_counted)
        before = [cpu_s(pid) for _, pid in arm.watched] if is_counted else []
        if is_counted and (cores := self.asked.get("cores")):
            arm.loops.append(sum(map(_loop_us, cores)) / len(cores))
            os.sched_setaffinity(0, self.own_cores)
        self.running = {name}
        _send_signal(arm.children, signal.SIGCONT)
        processes.send(arm.others, signal.SIGCONT)
        begin = time.monotonic_ns()
        processes.send(arm.clients, signal.SIGCONT)
        time.sleep(max(0.0, turn_s - (time.monotonic_ns() - begin) / 1e9))
        # This program alone stops processes, and it let all of them go on.
        states = [_read_state(f"/proc/{pid}/stat") for _, pid in arm.watched] if is_counted else []
        end = time.monotonic_ns()
        stopping_s = self.stop(arm)
        self.running = set()
        self.slowest_s = max(self.slowest_s, stopping_s)
        if not is_counted:
            _add_usage(arm.counted, costs, self.read(arm, is_counted))
            return
        arm.longest_stop_s = max(arm.longest_stop_s, stopping_s)
        self.turns.append((name, begin // 1000, end // 1000))
        of_client = arm.cpu_s["client"]
        for (part, pid), was in zip(arm.watched, before):  # noqa: B905 (Python 3.9 knows no `strict`)
            arm.cpu_s[part] += cpu_s(pid) - was
        arm.idle_turns += arm.cpu_s["client"] <= of_client
        arm.halted += any(state in HALTED for state in states)
        arm.seen_s = arm.client_cpu_s()
        now = self.read(arm, is_counted)
        _add_usage(arm.costs, costs, now)
        for part, counts in now.items():
            arm.costs[part][self.usage.THREADS] = counts[self.usage.THREADS]

    def read(self, arm: ArmInTurns, is_counted: bool) -> dict[str, list[float]]:
        """Usage of each part of an arm so far; during the discard, its counted events."""
        began = time.monotonic()
        books = arm.books if is_counted else arm.counters
        results = {part: book.read() for part, book in books.items()}
        self.reading_s += time.monotonic() - began if is_counted else 0.0
        return results

    def fill(self, until: float, is_counted: bool) -> None:
        """Take whole rounds of turns until a moment: sysbench's whole seconds leave room for some more."""
        turn_s = self.asked["turn_s"]
        if not is_counted:
            # A round of slow turns may be longer than the discard, in which each arm is to have its turns.
            longest = max(map(len, self.asked["rounds"]))
            turn_s = max(LEAST_TURN_S, min(turn_s, (until - time.monotonic()) / (ROOM * longest)))
        while True:
            for item in self.asked["rounds"]:
                began = time.monotonic()
                # As long as the slowest round so far, with one more turn that is slow to end.
                if began + len(item) * (turn_s * SLOWER + self.switching_s) + self.slowest_s > until:
                    return
                for name in item:
                    # After a turn that was held up the rest of its round may not fit any more.
                    if time.monotonic() > until:
                        return
                    self.take(name, is_counted, turn_s)
                took_s = (time.monotonic() - began) / len(item)
                self.switching_s = max(self.switching_s, took_s - turn_s)

    def run(self) -> dict:
        """Take all turns of the group; its window and moments."""
        requests = self.asked
        first, last = self.wait_until_started()
        for arm in self.arms.values():
            self.stop(arm)
        self.running = set()
        # Arms with one server share its counts.
        counters: dict[tuple[int, ...], Any] = {}
        for arm in self.arms.values():
            for part in arm.books:
                pids = tuple(arm.parts[part])
                if pids not in counters:
                    counters[pids] = self.usage.Counters(pids, self.families)
                arm.counters[part] = counters[pids]
        self.fill(first + requests["discard_s"] - GUARD_S, is_counted=False)
        for counter in counters.values():
            counter.close()
        discarded = time.monotonic()
        _sleep_until(last + requests["discard_s"] + GUARD_S)
        begun = time.monotonic()
        self.fill(first + requests["whole_s"] - GUARD_S, is_counted=True)
        ended = time.monotonic()
        _sleep_until(last + requests["whole_s"] + GUARD_S)
        for arm in self.arms.values():
            arm.look_outside()
        self.go_on()
        return {"window": [begun, ended], "started": [first, last], "discarded": discarded}

    def seen_so_far(self) -> dict:
        """Observations so far, each by arm."""
        arms, costs, counted = self.arms.items(), dict[str, dict](), dict[str, dict]()
        for name, arm in arms:
            costs[name] = {part: self.usage.name_counts(counts) for part, counts in arm.costs.items()}
            events = {part: self.usage.name_events(counts) for part, counts in arm.counted.items()}
            counted[name] = {part: figures for part, figures in events.items() if figures}
        results: dict[str, Any] = {"turns": self.turns, "costs": costs, "counted": counted}
        for key in ("cpu_s", "outside_s", "longest_outside_s", "idle_turns", "halted", "longest_stop_s"):
            results[key] = {name: getattr(arm, key) for name, arm in arms}
        results["loop_us"] = {
            name: math.exp(sum(map(math.log, arm.loops)) / len(arm.loops)) for name, arm in arms if arm.loops
        }
        return results | {"reading_s": self.reading_s}


def _loop_us(core: int) -> float:
    """Microseconds of the loop on a core, while every arm stands still."""
    os.sched_setaffinity(0, {core})
    began, value = time.perf_counter_ns(), 1
    for number in range(LOOP):
        value = (value * 5 + number) & 0xFFFF
    return (time.perf_counter_ns() - began) / 1000


def _add_usage(
    whole: dict[str, list[float]], before: dict[str, list[float]], now: dict[str, list[float]]
) -> None:
    """Add to sums by part the usage since `before`."""
    for part, counts in now.items():
        sums = whole.get(part, [0.0] * len(counts))
        whole[part] = [value + new - old for value, new, old in zip(sums, counts, before[part])]  # noqa: B905


def _load_module(path: str | None) -> Any:
    """A module by its file, for this program runs without paths; None without one."""
    spec = importlib.util.spec_from_file_location("usage", path) if path else None
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _has_started(log: str) -> bool:
    with contextlib.suppress(OSError), open(log, "rb") as file:
        return STARTED in file.read(8192)
    return False


def _stand_still(pids: list[int]) -> float:
    """Wait until every thread of some stopped processes stands still; return the seconds that it took."""
    began, tasks = time.monotonic(), [(pid, task) for pid in pids for task in _list_tasks(pid)]
    # A process is stopped by its first thread, for which threads that purge rows may leave no core for 0.2 s.
    for pid, task in tasks if TGKILL else ():
        TGKILL(pid, int(task), signal.SIGSTOP)
    moving = [f"/proc/{pid}/task/{task}/stat" for pid, task in tasks]
    while moving := [task for task in moving if _read_state(task) not in STILL]:
        if time.monotonic() - began > STILL_S:
            break
        time.sleep(STILL_LOOK_S)
    return time.monotonic() - began


def _list_children(pid: int) -> list[int]:
    """Pids of the processes that one has started, whichever of its threads did."""
    children: list[int] = []
    for task in _list_tasks(pid):
        with (
            contextlib.suppress(OSError),
            open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file,
        ):
            children += map(int, file.read().split())
    return children


def _send_signal(pids: Sequence[int], signum: signal.Signals) -> None:
    """Signal processes that may have ended; their parent stands still, so no pid is another's meanwhile."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)


def _list_tasks(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(f"/proc/{pid}/task")
    return []


def _read_state(stat: str) -> bytes:
    """State of a process or thread, as ended if there is none."""
    with contextlib.suppress(OSError, IndexError), open(stat, "rb", buffering=0) as file:
        # Its name stands in brackets, and may hold any character.
        return file.read(512).rpartition(b")")[2].split()[0]
    return b"X"


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _must_not_wait() -> str:
    """Ask the kernel to run this program as soon as it is ready; the priority that it got."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        return "fifo"
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)
        return "nice -15"
    return "none"


def main() -> int:
    """Take the turns of a request; write the result whatever happens, and leave no process stopped."""
    request, result = sys.argv[1:3]
    with open(request, encoding="utf-8") as file:
        requested = json.load(file)
    results: dict = {"priority": _must_not_wait(), "gone": None}
    gc.disable()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    clock, code = None, 1
    try:
        clock = TurnScheduler(requested)
        results |= clock.run()
        code = 0
    except Ended as gone:
        results["gone"], code = gone.args[0], 3
        results["gone_out_of_turn"] = clock is not None and any(
            gone.args[0] in arm.clients for name, arm in clock.arms.items() if name not in clock.running
        )
    except TimeoutError:
        results["gone"], code = "start", 4
    finally:
        if clock is not None:
            clock.go_on()
            results |= clock.seen_so_far()
        with open(result + ".tmp", "w", encoding="utf-8") as file:
            json.dump(results, file)
        os.rename(result + ".tmp", result)
    return code


if __name__ == "__main__":
    sys.exit(main())
