"""Watch the machine while a run goes on: CPU of each part every second, pauses, steal, killed processes."""

from __future__ import annotations

import csv
import os
import resource
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from benchbook.sites import machine
from benchbook.sites.tcp_bytes import Counter, Hop

COLUMNS = (
    "second",
    "part",
    "cpu_cores",
    "rss_mib",
    "steal_pct",
    "psi_cpu_pct",
    "psi_io_pct",
    "psi_memory_pct",
    "received_mib_s",
    "sent_mib_s",
)
# Finer ticks take more of the core that is being measured: 10 ms took 0.8 % of one, 25 ms takes 0.4 %.
TICK_S = 0.025
LOOK_S = 0.2
MIB = 1024 * 1024


class Monitor:
    """Sample processes and machine once a second from a thread of its own, between `start` and `stop`.

    `parts` maps a part (client, proxy, server, driver) to its process ids, `clients` are those of the load
    clients in their order, `hops` say what connections are counted for their bytes. A process that ends is no
    error: its last second is simply the last one seen.
    Stop it when the client has ended and been waited for: only then has the kernel its CPU seconds in the
    books.
    """

    def __init__(
        self, parts: Mapping[str, Sequence[int]], path: Path, *clients: int, hops: Sequence[Hop] = ()
    ) -> None:
        self.parts = {
            part: [process for pid in pids if (process := _process(pid))] for part, pids in parts.items()
        }
        self.path = path
        self.clients = clients
        self.longest_pause_ms = 0.0
        self.steal_pct = 0.0
        self.runqueue_waits_s = [0.0 for _ in clients]
        self.client_cpu_s = 0.0
        self.oom_kills = 0
        self.clock_step_s = 0.0
        self.cores = psutil.cpu_count() or 1
        self._hops = tuple(hops)
        self._rows: list[list[object]] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._sample, daemon=True),
            threading.Thread(target=self._tick, daemon=True),
        ]
        self._steal_before = _steal()

    def start(self) -> None:
        """Begin to watch."""
        self._began, self._wall = time.monotonic(), time.time()
        self._cpu_before, self._oom_before = _children_cpu_s(), machine.counters()["oom_kills"]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End watching and write what was seen to `monitor.csv`."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=5)
        self.client_cpu_s = _children_cpu_s() - self._cpu_before
        self.oom_kills = int(machine.counters()["oom_kills"] - self._oom_before)
        self.clock_step_s = (time.time() - self._wall) - (time.monotonic() - self._began)
        stolen, whole = (after - before for after, before in zip(_steal(), self._steal_before, strict=True))
        self.steal_pct = 100 * stolen / whole if whole > 0 else 0.0
        with self.path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(self._rows)

    def _sample(self) -> None:
        before = {part: _cpu_s(processes) for part, processes in self.parts.items()}
        whole = psutil.cpu_times()
        carried = Counter(self._hops)
        last = time.monotonic()
        while not self._stop.wait(max(0.0, 1.0 - (time.monotonic() - last) % 1.0)):
            now = time.monotonic()
            span, second = now - last, round(now - self._began, 3)
            if span < 0.2:
                continue
            bytes_of = carried.look(span)
            for part, processes in self.parts.items():
                cpu = _cpu_s(processes)
                # A part whose process has just ended has nothing to say about this second.
                if cpu is not None and before[part] is not None:
                    used = (cpu - before[part]) / span
                    self._rows.append(
                        [
                            second,
                            part,
                            round(max(0.0, used), 4),
                            round(_rss_mib(processes), 2),
                            *("", "", "", ""),
                            *(bytes_of.get(part) or ("", "")),
                        ]
                    )
                before[part] = cpu if cpu is not None else before[part]
            times = psutil.cpu_times()
            self._rows.append([second, "machine", *_machine(whole, times, span), *_pressure(), "", ""])
            whole, last = times, now

    @property
    def runqueue_wait_s(self) -> float:
        """Seconds that the threads of all clients have waited for a core."""
        return sum(self.runqueue_waits_s)

    def _waited(self) -> None:
        for place, client in enumerate(self.clients):
            waited = _runqueue_wait_s(client)
            if waited is not None:
                self.runqueue_waits_s[place] = max(self.runqueue_waits_s[place], waited)

    def _tick(self) -> None:
        last = looked = time.monotonic()
        while not self._stop.is_set():
            time.sleep(TICK_S)
            now = time.monotonic()
            self.longest_pause_ms = max(self.longest_pause_ms, (now - last - TICK_S) * 1000)
            last = now
            # The books of a process go with it, so what it waited since the last look is lost.
            if now - looked > LOOK_S:
                self._waited()
                last = looked = time.monotonic()


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _cpu_s(processes: Sequence[psutil.Process]) -> float | None:
    try:
        return sum(sum(process.cpu_times()[:2]) for process in processes) if processes else None
    except psutil.Error:
        return None


def _rss_mib(processes: Sequence[psutil.Process]) -> float:
    try:
        return sum(process.memory_info().rss for process in processes) / MIB
    except psutil.Error:
        return 0.0


def _machine(before: object, after: object, span: float) -> list[object]:
    idle = sum(getattr(after, name) - getattr(before, name) for name in ("idle", "iowait"))
    whole = sum(after) - sum(before)  # type: ignore[call-overload, arg-type]
    used = psutil.virtual_memory().used / MIB
    steal = getattr(after, "steal", 0.0) - getattr(before, "steal", 0.0)
    busy = (whole - idle) / span if span > 0 else 0.0
    return [round(max(0.0, busy), 4), round(used, 2), round(100 * steal / whole, 3) if whole > 0 else ""]


def _steal() -> tuple[float, float]:
    times = psutil.cpu_times()
    return getattr(times, "steal", 0.0), sum(times)


def _pressure() -> list[object]:
    values: list[object] = []
    for kind in ("cpu", "io", "memory"):
        try:
            some = Path(f"/proc/pressure/{kind}").read_text(encoding="ascii").split()[1]
            values.append(float(some.partition("=")[2]))
        except (OSError, ValueError, IndexError):
            values.append("")
    return values


def _runqueue_wait_s(pid: int) -> float | None:
    """Return the seconds all threads of a process have waited for a core, from the scheduler's own books."""
    total = 0
    tasks = f"/proc/{pid}/task"
    try:
        for task in os.listdir(tasks):
            # A path object for each of some hundred threads would cost as much again as reading it.
            with open(f"{tasks}/{task}/schedstat", "rb", buffering=0) as books:
                total += int(books.read(100).split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return total / 1e9


def _children_cpu_s() -> float:
    """Return the CPU seconds of all children that have ended; servers go on, so the client's is left."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
