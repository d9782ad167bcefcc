"""Watch a machine during a run: CPU of each part every second, pauses, steal, killed processes."""

from __future__ import annotations

import csv
import math
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchbook.sites.agent import facts
from benchbook.sites.agent.interference_probe import InterferenceProbe
from benchbook.sites.processes import procfs, taskstats
from benchbook.sites.processes.tcp_bytes import Counter, Hop

# Finer ticks take more of the core that is being measured: 10 ms took 0.8 % of one, 25 ms takes 0.4 %.
TICK_S, LOOK_S = 0.025, 0.2
COSTS = 8
"""How many columns `_format_costs` gives."""


class WatchResult(NamedTuple):
    """Results of a watch beside its table; `runqueue_waits_s` are by the clients' ids."""

    longest_pause_ms: float
    steal_pct: float
    runqueue_waits_s: dict[Any, float]
    oom_kills: int
    clock_step_s: float
    cores: int
    counted: dict[str, dict[str, float]]
    strangers: dict[str, Any]


class HostWatch:
    """Sample processes and host once a second, between `start` and `stop`, and look for pauses of the host.

    `parts` maps a part (client, proxy, server) to its process ids; `machine` is what the host's own rows are
    called. `clients` are the load clients' ids on their host, `hops` the connections whose bytes are counted,
    `families` the processes whose children, living and ended, do their work for them. Without `has_pauses`
    none are looked for, which would take time of who shares our limits. In the first `counts_s` the
    processor's events are counted, as far as the kernel lets us; later it would slow what is measured.
    """

    def __init__(
        self,
        parts: dict[str, list[int]],
        machine: str,
        clients: list[int],
        path: Path,
        hops: list[Hop],
        families: Sequence[int] = (),
        has_pauses: bool = True,
        counts_s: float = 0.0,
    ) -> None:
        self.parts, self.machine, self.clients, self.path = parts, machine, clients, path
        self.families = frozenset(families)
        self.longest_pause_ms = 0.0
        self.runqueue_waits_s = dict.fromkeys(clients, 0.0)
        self._rows: list[list[Any]] = []
        self._strangers, self._carried = InterferenceProbe(parts), Counter(hops)
        self._over = threading.Event()
        self._began, self._wall = time.monotonic(), time.time()
        self._books, self._kills = procfs.machine_times(), procfs.oom_kills()
        does = (self._sample, self._tick) if has_pauses else (self._sample,)
        self._threads = [threading.Thread(target=function, daemon=True) for function in does]
        for thread in self._threads:
            thread.start()
        counted = parts if counts_s else {}
        self._counters = {part: taskstats.Counters(pids, families) for part, pids in counted.items()}
        self._counted: dict[str, dict[str, float]] = {}
        self._counting = threading.Timer(counts_s, self._count)
        self._counting.daemon = True
        self._counting.start()

    def stop(self) -> WatchResult:
        """End watching, write the table and return the results."""
        self._over.set()
        self._counting.cancel()
        for thread in (*self._threads, self._counting):
            thread.join(timeout=5)
        for counter in self._counters.values():
            counter.close()
        before, after = self._books, procfs.machine_times()
        stolen, whole = after[procfs.STEAL] - before[procfs.STEAL], sum(after) - sum(before)
        with self.path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows(self._rows)
        return WatchResult(
            longest_pause_ms=self.longest_pause_ms,
            steal_pct=100 * stolen / whole if whole > 0 else 0.0,
            runqueue_waits_s=self.runqueue_waits_s,
            oom_kills=procfs.oom_kills() - self._kills,
            clock_step_s=(time.time() - self._wall) - (time.monotonic() - self._began),
            cores=os.cpu_count() or 1,
            counted=self._counted,
            strangers={**self._strangers.end(), "connections": self._carried.segments()},
        )

    def _count(self) -> None:
        for part, counter in self._counters.items():
            if events := taskstats.name_events(counter.read()):
                self._counted[part] = events
            counter.close()

    def _sample(self) -> None:
        last = self._began
        before = {part: procfs.cpu_s(pids, self.families) for part, pids in self.parts.items()}
        books = {part: taskstats.Usage(pids, self.families, True) for part, pids in self.parts.items()}
        spent = {part: usage.read() for part, usage in books.items()}
        times = procfs.machine_times()
        while not self._over.wait(max(0.0, 1.0 - (time.monotonic() - last) % 1.0)):
            now = time.monotonic()
            span, second = now - last, round(now - self._began, 3)
            if span < 0.2:
                continue
            bytes_of = self._carried.look(span)
            self._strangers.look()
            for part, pids in self.parts.items():
                cpu, was = procfs.cpu_s(pids, self.families), before[part]
                # A part whose process has just ended has nothing to say about this second.
                if cpu is not None and was is not None:
                    used = round(max(0.0, (cpu - was) / span), 4)
                    rss_mib = round(procfs.rss_mib(books[part].living()), 2)
                    row = [second, part, used, rss_mib, "", "", "", ""]
                    now_spent = books[part].read()
                    costs = _format_costs(spent[part], now_spent, used, span)
                    spent[part] = now_spent
                    self._rows.append([*row, *(bytes_of.get(part) or ("", "")), *costs])
                before[part] = was if cpu is None else cpu
            machine = procfs.machine_times()
            row = [second, self.machine, *_format_machine(times, machine, span), *_read_pressure()]
            self._rows.append([*row, *[""] * (2 + COSTS)])
            times, last = machine, now
        for book in books.values():
            book.close()

    def _tick(self) -> None:
        last = looked = time.monotonic()
        while not self._over.is_set():
            time.sleep(TICK_S)
            now = time.monotonic()
            self.longest_pause_ms = max(self.longest_pause_ms, (now - last - TICK_S) * 1000)
            last = now
            # The books of a process go with it, so what it waited since the last look is lost.
            if now - looked > LOOK_S and self.clients:
                for pid, was in self.runqueue_waits_s.items():
                    self.runqueue_waits_s[pid] = max(was, procfs.runqueue_wait_s(pid))
                last = looked = time.monotonic()


def _format_machine(before: list[float], after: list[float], span: float) -> list[Any]:
    grown = [now - was for was, now in zip(before, after)]  # noqa: B905 (Python 3.9 knows no `strict`)
    whole = sum(grown)
    busy = max(0.0, whole - grown[procfs.IDLE] - grown[procfs.IOWAIT]) / span
    stolen = round(100 * grown[procfs.STEAL] / whole, 3) if whole > 0 else ""
    kib = facts.read_meminfo()
    used_mib = (kib["MemTotal"] - kib.get("MemAvailable", kib["MemFree"])) / 1024
    return [round(busy, 4), round(used_mib, 2), stolen]


def _format_costs(before: list[float], after: list[float], used: float, span: float) -> list[Any]:
    """Costs of a part's second beside its cores; empty for those that the kernel doesn't tell us."""
    grown = [(now - was) / span for was, now in zip(before, after)]  # noqa: B905
    system = taskstats.split_modes([used, *grown[taskstats.USER :]])[1]
    disk = [grown[place] / 1024 for place in (taskstats.READ, taskstats.WRITTEN)]
    switches = [grown[taskstats.VOLUNTARY], grown[taskstats.INVOLUNTARY]]
    row = [system, *switches, grown[taskstats.WAIT], *disk, grown[taskstats.FAULTS], after[taskstats.THREADS]]
    return ["" if math.isnan(value) else round(value, 4) for value in row]


def _read_pressure() -> list[Any]:
    texts = (facts.read_stripped(procfs.PROC / "pressure" / kind) for kind in ("cpu", "io", "memory"))
    shares = (facts.find_first_group(facts.SOME, text) for text in texts)
    return [float(share) if share else "" for share in shares]
