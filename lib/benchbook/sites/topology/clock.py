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
- `usage`: the file of `processes.taskstats`; `families`: pids whose children do their work; `unread`: arms
  whose costs are not read, to see what reading them changes.

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


class TurnScheduler:
    """One group's turns."""

    def __init__(self, requests: dict) -> None:
        self.asked = requests
        self.arms = {arm["name"]: arm for arm in requests["arms"]}
        self.stops = {int(pid): set(names) for pid, names in requests["stops"].items()}
        self.clients = {name: list(arm["clients"]) for name, arm in self.arms.items()}
        families = set(requests.get("families") or ())
        self.parents = families & set(self.stops)
        self.children: dict[str, list[int]] = {}
        # What a parent's children use is in its books alone.
        self.watched = {
            name: [(part, pid) for part, pids in arm["parts"].items() for pid in pids if pid not in families]
            for name, arm in self.arms.items()
        }
        every = {pid for pids in self.clients.values() for pid in pids} | set(self.stops)
        self.processes = Processes(sorted(every))
        self.turns: list[tuple[str, int, int]] = []
        self.cpu = {name: dict.fromkeys(arm["parts"], 0.0) for name, arm in self.arms.items()}
        self.outside = dict.fromkeys(self.arms, 0.0)
        self.longest_outside, self.longest_stop = dict(self.outside), dict(self.outside)
        self.idle, self.halted = dict.fromkeys(self.arms, 0), dict.fromkeys(self.arms, 0)
        self.slowest_s, self.switching_s, self.own_cores = 0.0, 0.0, os.sched_getaffinity(0)
        self.running = set(self.arms)
        self.seen: dict[str, float] = {}
        self.loops: dict[str, list[float]] = {name: [] for name in self.arms}
        self.usage = _load_module(requests.get("usage"))
        unread = requests.get("unread") or ()
        self.books = {
            name: {} if name in unread else self._books(arm["parts"]) for name, arm in self.arms.items()
        }
        self.costs: dict[str, dict[str, list[float]]] = {name: {} for name in self.arms}
        self.counters: dict[str, dict[str, Any]] = {name: {} for name in self.arms}
        self.counted: dict[str, dict[str, list[float]]] = {name: {} for name in self.arms}
        self.reading_s = 0.0

    def _books(self, parts: dict[str, list[int]]) -> dict[str, Any]:
        """Reader of each part's costs, if it can be had here."""
        families = self.asked.get("families") or ()
        return {part: self.usage.Usage(pids, families) for part, pids in parts.items()} if self.usage else {}

    def with_client(self, name: str) -> list[int]:
        """Processes that run only in this arm's turns, beside its client: from the server outwards."""
        return [pid for pid, names in self.stops.items() if name in names]

    def stop(self, name: str) -> float:
        """Stop an arm, its client first; return the seconds until the last thread of it stands still."""
        clients, others = self.clients[name], self.with_client(name)
        self.processes.send(clients, signal.SIGSTOP)
        self.processes.send(others, signal.SIGSTOP)
        # A parent that stands still makes no more of them.
        children = [child for pid in others if pid in self.parents for child in _list_children(pid)]
        self.children[name] = children
        _send_signal(children, signal.SIGSTOP)
        # A process stands still when its last thread does, which on a busy machine waits for a core first.
        return _stand_still([*clients, *others, *children])

    def go_on(self) -> None:
        """Let every process go on, whatever has become of the others."""
        for children in self.children.values():
            _send_signal(children, signal.SIGCONT)
        self.processes.go_on()

    def wait_until_started(self) -> tuple[float, float]:
        """Moments that bound the start of the clients' own clocks: none starts before or after them."""
        logs = {log: name for name, arm in self.arms.items() for log in arm["logs"]}
        deadline, count = time.monotonic() + self.asked["ready_s"], len(logs)
        first = last = time.monotonic()
        while logs:
            looked = time.monotonic()
            for name, clients in self.clients.items():
                # Who has started leaves the cores to those that have not. These are let go on more than
                # once: one that was slow to stand still would stand still for good.
                has_to_start = name in logs.values()
                self.processes.send(clients, signal.SIGCONT if has_to_start else signal.SIGSTOP)
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
        processes, clients, others = self.processes, self.clients[name], self.with_client(name)
        processes.must_live()
        if is_counted:
            self.look_outside(name)
        costs = self.read(name, is_counted)
        before = [cpu_s(pid) for _, pid in self.watched[name]] if is_counted else []
        if is_counted and (cores := self.asked.get("cores")):
            self.loops[name].append(sum(map(_loop_us, cores)) / len(cores))
            os.sched_setaffinity(0, self.own_cores)
        self.running = {name}
        _send_signal(self.children.get(name, ()), signal.SIGCONT)
        processes.send(others, signal.SIGCONT)
        begin = time.monotonic_ns()
        processes.send(clients, signal.SIGCONT)
        time.sleep(max(0.0, turn_s - (time.monotonic_ns() - begin) / 1e9))
        # This program alone stops processes, and it let all of them go on.
        states = [_read_state(f"/proc/{pid}/stat") for _, pid in self.watched[name]] if is_counted else []
        end = time.monotonic_ns()
        stopping_s = self.stop(name)
        self.running = set()
        self.slowest_s = max(self.slowest_s, stopping_s)
        if not is_counted:
            _add_usage(self.counted[name], costs, self.read(name, is_counted))
            return
        self.longest_stop[name] = max(self.longest_stop[name], stopping_s)
        self.turns.append((name, begin // 1000, end // 1000))
        of_client = self.cpu[name]["client"]
        for (part, pid), was in zip(self.watched[name], before):  # noqa: B905 (Python 3.9 knows no `strict`)
            self.cpu[name][part] += cpu_s(pid) - was
        self.idle[name] += self.cpu[name]["client"] <= of_client
        self.halted[name] += any(state in HALTED for state in states)
        self.seen[name] = self.client_cpu_s(name)
        now = self.read(name, is_counted)
        _add_usage(self.costs[name], costs, now)
        for part, counts in now.items():
            self.costs[name][part][self.usage.THREADS] = counts[self.usage.THREADS]

    def read(self, name: str, is_counted: bool) -> dict[str, list[float]]:
        """Usage of each part of an arm so far; during the discard, its counted events."""
        began = time.monotonic()
        books = self.books if is_counted else self.counters
        results = {part: book.read() for part, book in books[name].items()}
        self.reading_s += time.monotonic() - began if is_counted else 0.0
        return results

    def client_cpu_s(self, name: str) -> float:
        return sum(cpu_s(pid) for pid in self.clients[name])

    def look_outside(self, name: str) -> None:
        """Add up a client's processor time since its last turn ended."""
        if name in self.seen:
            out = self.client_cpu_s(name) - self.seen[name]
            self.outside[name] += out
            self.longest_outside[name] = max(self.longest_outside[name], out)

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
        for name in self.arms:
            self.stop(name)
        self.running = set()
        families, counters = requests.get("families") or (), {}
        # Arms with one server share its counts.
        for name, books in self.books.items():
            for part in books:
                pids = tuple(self.arms[name]["parts"][part])
                if pids not in counters:
                    counters[pids] = self.usage.Counters(pids, families)
                self.counters[name][part] = counters[pids]
        self.fill(first + requests["discard_s"] - GUARD_S, is_counted=False)
        for counter in counters.values():
            counter.close()
        discarded = time.monotonic()
        _sleep_until(last + requests["discard_s"] + GUARD_S)
        begun = time.monotonic()
        self.fill(first + requests["whole_s"] - GUARD_S, is_counted=True)
        ended = time.monotonic()
        _sleep_until(last + requests["whole_s"] + GUARD_S)
        for name in self.arms:
            self.look_outside(name)
        self.go_on()
        return {"window": [begun, ended], "started": [first, last], "discarded": discarded}

    def seen_so_far(self) -> dict:
        """Observations so far, each by arm."""
        return {
            "turns": self.turns,
            "cpu_s": self.cpu,
            "costs": {
                name: {part: self.usage.name_counts(counts) for part, counts in parts.items()}
                for name, parts in self.costs.items()
            },
            "counted": {
                name: {
                    part: events
                    for part, counts in parts.items()
                    if (events := self.usage.name_events(counts))
                }
                for name, parts in self.counted.items()
            },
            "loop_us": {
                name: math.exp(sum(map(math.log, taken)) / len(taken))
                for name, taken in self.loops.items()
                if taken
            },
            "reading_s": self.reading_s,
            "outside_s": self.outside,
            "longest_outside_s": self.longest_outside,
            "idle_turns": self.idle,
            "halted": self.halted,
            "longest_stop_s": self.longest_stop,
        }


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
            gone.args[0] in pids for name, pids in clock.clients.items() if name not in clock.running
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
