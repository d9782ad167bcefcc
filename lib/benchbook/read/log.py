"""What one output of sysbench holds, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchbook.core.histogram import BUCKETS
from benchbook.read.intervals import Intervals

Status = Literal["complete", "truncated", "failed"]
Level = Literal["fatal", "alert", "warning", "debug", "repeated"]
Concern = Literal["message", "grammar", "end", "numbers", "intervals", "sums"]


class Missing(Exception):
    """A check needs something that the folder does not have: neither passed nor failed."""


T = TypeVar("T")


def printed(value: T | None, what: str) -> T:
    """Return what sysbench printed; raise Missing where it was not there."""
    if value is None:
        raise Missing(f"sysbench printed no {what}")
    return value


class Problem(NamedTuple):
    """One reason why an output is not what a healthy sysbench prints; `line` counts from 1."""

    concern: Concern
    line: int | None
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text


@dataclass(frozen=True)
class Header:
    """What sysbench says before the run; None for what it did not print."""

    version: str | None = None
    lua: str | None = None
    threads: int | None = None
    warm_up_s: int = 0
    rate: int = 0
    interval_s: int | None = None
    checkpoints_s: tuple[int, ...] = ()
    seed: int | None = None
    forced_shutdown_s: int | None = None
    is_debug: bool = False


@dataclass(frozen=True, eq=False)
class Histogram:
    """The table of `--histogram`: buckets and their counts, in ascending order."""

    line: int
    buckets: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def events(self) -> int:
        """How many events the table counts."""
        return int(self.counts.sum())

    def full(self) -> NDArray[np.int64]:
        """Return all 1024 counts."""
        full = np.zeros(BUCKETS, dtype=np.int64)
        full[self.buckets] = self.counts
        return full


class ThreadStats(NamedTuple):
    """What `--debug` says of one thread: event times in seconds."""

    thread: int
    min_s: float
    avg_s: float
    max_s: float
    events: int
    total_s: float


@dataclass(frozen=True)
class Summary:
    """One block of totals: of a checkpoint, or of the end. Latencies in ms, times in seconds.

    After a checkpoint all counts start again, but `total_time_s` goes on: it is the time since the start.
    None for lines that were not there (tests without a database have no query counts).
    """

    line: int
    is_checkpoint: bool
    checkpoint_s: int | None = None
    reads: int | None = None
    writes: int | None = None
    other: int | None = None
    total: int | None = None
    transactions: int | None = None
    transactions_per_s: float | None = None
    queries: int | None = None
    queries_per_s: float | None = None
    ignored_errors: int | None = None
    ignored_errors_per_s: float | None = None
    reconnects: int | None = None
    reconnects_per_s: float | None = None
    events_per_s: float | None = None
    total_time_s: float | None = None
    events: int | None = None
    latency_min_ms: float | None = None
    latency_avg_ms: float | None = None
    latency_max_ms: float | None = None
    percentile: int | None = None
    latency_percentile_ms: float | None = None
    latency_sum_ms: float | None = None
    thread_events_avg: float | None = None
    thread_events_stddev: float | None = None
    thread_time_avg_s: float | None = None
    thread_time_stddev_s: float | None = None
    unfinished: int | None = None
    thread_stats: tuple[ThreadStats, ...] = ()

    def whole(self) -> Totals:
        """Return what every whole block has; raise Missing if a line of it was not there."""
        found = {name: getattr(self, name) for name in Totals._fields}
        if absent := [name for name, value in found.items() if value is None]:
            raise Missing(f"line {self.line}: the totals lack {', '.join(absent)}")
        return Totals(**found)


class Totals(NamedTuple):
    """What every whole block of totals has, with or without a database; units as in `Summary`."""

    total_time_s: float
    events: int
    latency_min_ms: float
    latency_avg_ms: float
    latency_max_ms: float
    latency_sum_ms: float
    thread_events_avg: float
    thread_time_avg_s: float


class Message(NamedTuple):
    """A line sysbench marked FATAL, ALERT, WARNING or DEBUG, or its note that it repeated a line."""

    line: int
    level: Level
    text: str


class Command(NamedTuple):
    """One step of prepare, prewarm or cleanup: `action` is create, insert, index, prewarm or drop."""

    line: int
    action: str
    table: str
    rows: int | None = None


@dataclass(frozen=True)
class SysbenchLog:
    """One output, taken apart. Whatever could be read is here, whatever the status.

    `complete`: every line known, each in its place, to the end, and the numbers agree with each other.
    `failed`: sysbench itself reported it (FATAL or ALERT). `truncated`: anything else: cut, damaged, no run.
    """

    status: Status
    problems: tuple[Problem, ...]
    header: Header
    intervals: Intervals
    histogram: Histogram | None
    summaries: tuple[Summary, ...]
    messages: tuple[Message, ...]
    commands: tuple[Command, ...]

    @property
    def why(self) -> tuple[str, ...]:
        """The problems as sentences that name line and text."""
        return tuple(str(problem) for problem in self.problems)

    @property
    def final(self) -> Summary | None:
        """The last block of totals, or None if there is none but checkpoints."""
        last = self.summaries[-1] if self.summaries else None
        return None if last is None or last.is_checkpoint else last

    @property
    def checkpoints(self) -> tuple[Summary, ...]:
        """The blocks of checkpoints."""
        return tuple(summary for summary in self.summaries if summary.is_checkpoint)

    @property
    def measured_s(self) -> float | None:
        """Seconds the last block covers: from the last checkpoint, or from the start, to the end."""
        if self.final is None or self.final.total_time_s is None:
            return None
        before = self.checkpoints[-1].total_time_s if self.checkpoints else 0.0
        return None if before is None else self.final.total_time_s - before
