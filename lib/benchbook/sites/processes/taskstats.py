"""Resource usage of processes so far, ended threads included, by the kernel's own accounts.

Taskstats (Documentation/accounting/taskstats.rst in Linux) tells switches, waits and processor time of a
whole process in 7 µs, however many threads it has. It answers only who may administer the network. Others
get these sums from each living thread, which takes long, so only where it is asked for. Python's own library
alone: this file is also carried to hosts and pods, and read by the clock of turns.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import math
import os
import platform
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Mapping

CPU, USER, SYSTEM, VOLUNTARY, INVOLUNTARY, WAIT, READ, WRITTEN, FAULTS, THREADS = range(10)
FIELDS = (
    "cpu_s", "user_s", "system_s", "voluntary", "involuntary", "wait_s", "read_bytes", "written_bytes",
    "major_faults", "threads",
)  # fmt: skip
Counts = list[float]
NONE = math.nan
TICKS = os.sysconf("SC_CLK_TCK")
# More threads than this would take too long one by one.
MOST_TASKS, MOST_CHILDREN = 64, 64
# What <linux/netlink.h>, <linux/genetlink.h> and <linux/taskstats.h> number.
GENERIC, CONTROL, ERROR = 16, 16, 2
GET_FAMILY, FAMILY_ID, FAMILY_NAME = 3, 1, 2
GET, OF_PROCESS, STATS = 1, 2, 3
HEAD, BODY = struct.Struct("IHHII"), struct.Struct("BBH")
# Offsets in struct taskstats: waits and run time in ns; user and system in us; both kinds of switches.
WAIT_AT, RUN_AT, USER_AT, SWITCHES_AT = 24, 72, 152, 272
# What <linux/perf_event.h> numbers: kinds and events, the times of a reading, threads to come.
HARDWARE, SOFTWARE = 0, 1
EVENTS = {"instructions": (HARDWARE, 1), "cycles": (HARDWARE, 0), "llc_misses": (HARDWARE, 3)}
ATTRIBUTES, TIMES, INHERITED, CLOSED_ON_EXEC = 64, 3, 2, 8
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}.get(platform.machine())


class Taskstats:
    """The kernel's interface for accounts of whole processes; `is_open` if it answers this user."""

    def __init__(self) -> None:
        self._family, self.is_open = 0, False
        try:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, GENERIC)
            self._socket.bind((0, 0))
            results = self._ask(CONTROL, GET_FAMILY, FAMILY_NAME, b"TASKSTATS\0")
            self._family = struct.unpack("H", results[FAMILY_ID])[0]
            self.is_open = self.of(os.getpid()) is not None
        except (OSError, KeyError, struct.error):
            return

    def of(self, pid: int) -> Counts | None:
        """CPU to WAIT of a process, children not among them; None if it is gone or can't be asked."""
        try:
            messages = self._ask(self._family, GET, OF_PROCESS, struct.pack("I", pid))
            # The answer for a process is an attribute that holds its number and its books.
            books = next(iter(messages.values()))
            stats = dict(iter_attributes(books))[STATS]
            (wait,) = struct.unpack_from("Q", stats, WAIT_AT)
            (run,) = struct.unpack_from("Q", stats, RUN_AT)
            user, system = struct.unpack_from("QQ", stats, USER_AT)
            voluntary, involuntary = struct.unpack_from("QQ", stats, SWITCHES_AT)
        except (OSError, KeyError, StopIteration, struct.error):
            return None
        return [run / 1e9, user / 1e6, system / 1e6, voluntary, involuntary, wait / 1e9]

    def close(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            self._socket.close()

    def _ask(self, family: int, command: int, attribute: int, value: bytes) -> dict[int, bytes]:
        padded = value + bytes(-len(value) % 4)
        body = BODY.pack(command, 1, 0) + struct.pack("HH", 4 + len(value), attribute) + padded
        self._socket.send(HEAD.pack(HEAD.size + len(body), family, 1, 0, 0) + body)
        reply = self._socket.recv(1 << 16)
        if HEAD.unpack_from(reply)[1] == ERROR:
            raise OSError("the kernel does not say")
        return dict(iter_attributes(reply[HEAD.size + BODY.size :]))


class Usage:
    """Usage of some processes since this was created; children of `families` count too."""

    def __init__(self, pids: Iterable[int], families: Iterable[int] = (), is_thorough: bool = False) -> None:
        self.pids, self.families, self.is_thorough = list(pids), frozenset(families), is_thorough
        self._taskstats = Taskstats()
        self._files: dict[str, int] = {}
        self._tasks: dict[str, Counts] = {}
        self._last: dict[int, Counts] = {}
        self._sum = [0.0] * len(FIELDS)
        self._is_new = True
        self.read()

    def read(self) -> Counts:
        """FIELDS so far, NaN for one that can't be read; threads are those there are now."""
        threads = 0.0
        for pid in self.living():
            now = self._of(pid)
            if now is None:
                continue
            threads += now[THREADS]
            # A child that came later counts from its beginning.
            was = self._last.get(pid) or (now if self._is_new else [0.0] * len(FIELDS))
            self._sum = [whole + max(new - old, 0.0) for whole, new, old in zip(self._sum, now, was)]  # noqa: B905
            self._last[pid] = now
        self._is_new = False
        return [*self._sum[:THREADS], threads]

    def close(self) -> None:
        """Close the files and the socket that were opened for reading."""
        self._taskstats.close()
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def living(self) -> list[int]:
        """Processes that count, children of families among them."""
        pids = list(self.pids)
        for pid in self.pids:
            children = children_of(pid) if pid in self.families else []
            pids += children[: None if self.is_thorough else MOST_CHILDREN]
        return pids

    def _of(self, pid: int) -> Counts | None:
        results = [NONE] * len(FIELDS)
        messages = self._taskstats.of(pid) if self._taskstats.is_open else None
        if messages is not None:
            results[: len(messages)] = messages
        if self.is_thorough or pid in self.pids or messages is None:
            stat = self._text(pid, "stat").rpartition(b")")[2].split()
            if len(stat) < 18 or stat[0] in b"ZX":
                return None
            # Fields 12, 14, 15 and 20 of proc(5); the third comes first here.
            results[FAULTS], results[THREADS] = float(stat[9]), float(stat[17])
            with contextlib.suppress(IndexError, ValueError):
                words = self._text(pid, "io").split()
                results[READ], results[WRITTEN] = float(words[9]), float(words[11])
            if messages is None:
                self._without(pid, int(stat[11]), int(stat[12]), results)
        return results

    def _without(self, pid: int, user: int, system: int, results: Counts) -> None:
        """Fill in the fields of taskstats from other accounts, as far as those have them."""
        with contextlib.suppress(OSError):
            results[CPU] = time.clock_gettime((~pid << 3) | 2)
            results[USER], results[SYSTEM] = user / TICKS, system / TICKS
        if self.is_thorough and results[THREADS] <= MOST_TASKS:
            results[VOLUNTARY], results[INVOLUNTARY], results[WAIT] = self._of_tasks(pid)

    def _of_tasks(self, pid: int) -> Counts:
        """Switches and waits of all threads of a process, those of ended threads included."""
        place = f"/proc/{pid}/task"
        for task in _list_tasks(pid):
            key = f"{place}/{task}"
            with contextlib.suppress(OSError, ValueError, IndexError):
                waited = int(_read_file(f"{key}/schedstat").split()[1]) / 1e9
                status = _read_file(f"{key}/status").split()
                self._tasks[key] = [float(status[-3]), float(status[-1]), waited]
        mine = [counts for key, counts in self._tasks.items() if key.startswith(f"{place}/")]
        return [sum(column) for column in zip(*mine)] if mine else [NONE] * 3  # noqa: B905

    def _text(self, pid: int, name: str) -> bytes:
        # An open file of /proc is made again at each reading from its beginning, and costs half.
        key = f"/proc/{pid}/{name}"
        try:
            if key not in self._files:
                self._files[key] = os.open(key, os.O_RDONLY | os.O_CLOEXEC)
            return os.pread(self._files[key], 4096, 0)
        except OSError:
            return b""


class Counters:
    """Events of the processor in some processes and their children, counted from now on."""

    def __init__(
        self,
        pids: Iterable[int],
        families: Iterable[int] = (),
        events: Mapping[str, tuple[int, int]] = EVENTS,
    ) -> None:
        self._files: dict[str, list[int]] = {}
        self._books, self._events = Usage(pids, families), tuple(events)
        tasks = [task for pid in self._books.living() for task in _list_tasks(pid)]
        for name, event in events.items() if PERF_EVENT_OPEN and len(tasks) <= MOST_TASKS else ():
            try:
                for task in tasks:
                    self._open(name, task, *event)
            except OSError:
                self._close(name)

    def read(self) -> Counts:
        """Processor time meanwhile and each event's number; NaN for one that is not counted."""
        results = [self._read(name) for name in self._events]
        # What a reading calls enabled has time in it that the machine's host took.
        return [self._books.read()[CPU], *results]

    def close(self) -> None:
        """Count no more."""
        self._books.close()
        for name in list(self._files):
            self._close(name)

    def _read(self, name: str) -> float:
        messages = [struct.unpack("QQQ", os.read(file, 24)) for file in self._files.get(name, ())]
        # Where other events have the processor's counters, ours wait for their turn.
        if not messages or any(enabled and not running for _, enabled, running in messages):
            return NONE
        return float(sum(value * enabled / running for value, enabled, running in messages if running))

    def _open(self, name: str, task: int, kind: int, number: int) -> None:
        attributes = bytearray(ATTRIBUTES)
        struct.pack_into("IIQ", attributes, 0, kind, ATTRIBUTES, number)
        struct.pack_into("QQ", attributes, 32, TIMES, INHERITED)
        libc = ctypes.CDLL(None, use_errno=True)
        input_array = (ctypes.c_char * ATTRIBUTES).from_buffer(attributes)
        file = libc.syscall(PERF_EVENT_OPEN, input_array, task, -1, -1, ctypes.c_ulong(CLOSED_ON_EXEC))
        if file >= 0:
            self._files.setdefault(name, []).append(file)
        elif ctypes.get_errno() != errno.ESRCH:
            raise OSError(ctypes.get_errno(), "the kernel does not count it")

    def _close(self, name: str) -> None:
        for file in self._files.pop(name, ()):
            os.close(file)


def split_modes(counts: Counts) -> tuple[float, float]:
    """Parts of CPU in user and system mode; the kernel samples modes, and times CPU itself."""
    sampled = counts[USER] + counts[SYSTEM]
    share = counts[USER] / sampled if sampled else 1.0
    return counts[CPU] * share, counts[CPU] * (1 - share)


def name_events(counts: Counts) -> dict[str, float]:
    """Figures of Counters by name; empty if no event was counted."""
    results = {name: value for name, value in zip(("cpu_s", *EVENTS), counts) if value > 0}  # noqa: B905
    return results if len(results) > 1 and "cpu_s" in results else {}


def name_counts(counts: Counts) -> dict[str, float | None]:
    """Counts by name, rounded as files hold them; None for one that can't be read."""
    user, system = split_modes(counts)
    counts = [counts[CPU], user, system, *counts[VOLUNTARY:]]
    return {name: None if math.isnan(value) else round(value, 6) for name, value in zip(FIELDS, counts)}  # noqa: B905


def children_of(pid: int) -> list[int]:
    """Living children of a process, those of its first thread."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb", buffering=0) as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def _list_tasks(pid: int) -> list[int]:
    try:
        return [int(task) for task in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def _read_file(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(8192)


def iter_attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Netlink attributes, each as its type and its content."""
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("HH", data, at)
        if length < 4:
            return
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += (length + 3) & ~3
