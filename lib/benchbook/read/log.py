"""Contents of one output of sysbench as frozen values; logs of several clients as one.

Counts are added. Histograms have the same buckets, so that they are added bucket by bucket and percentiles of
the whole follow by sysbench's own rule; percentiles are never averaged. Report lines are added second by
second where every client has one; their percentiles can't be put together and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from benchbook.core.util import histogram, numeric_equality
from benchbook.read.intervals import SERIES, Intervals

Status = Literal["complete", "truncated", "failed"]
Level = Literal["fatal", "alert", "warning", "debug", "repeated"]
Concern = Literal["message", "grammar", "end", "numbers", "intervals", "sums"]


class Missing(Exception):
    """A check needs something that the folder does not have: neither passed nor failed."""


T = TypeVar("T")


def require_printed(value: T | None, what: str) -> T:
    """A value that sysbench printed; raises Missing if it was absent."""
    if value is None:
        raise Missing(f"sysbench printed no {what}")
    return value


class Problem(NamedTuple):
    """One reason that an output is not a healthy sysbench's; `line` counts from 1."""

    concern: Concern
    line: int | None
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text


@dataclass(frozen=True)
class Header:
    """Lines of sysbench before the run; None for any that it did not print."""

    version: str | None = None
    lua: str | None = None
    threads: int | None = None
    warm_up_s: int = 0
    rate: int = 0
    interval_s: int | None = None
    checkpoints_s: tuple[int, ...] = ()
    seed: int | None = None
    forced_shutdown_s: int | None = None


@dataclass(frozen=True, eq=False)
class Histogram:
    """The table of `--histogram`: buckets and their counts, in ascending order."""

    line: int
    buckets: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def events(self) -> int:
        """Number of events the table counts."""
        return int(self.counts.sum())

    def full(self) -> NDArray[np.int64]:
        """All 1024 counts."""
        full = np.zeros(histogram.BUCKETS, dtype=np.int64)
        full[self.buckets] = self.counts
        return full


@dataclass(frozen=True)
class Summary:
    """One block of totals: of a checkpoint, or of the end. Latencies in ms, times in seconds.

    After a checkpoint all counts start again, but `total_time_s` goes on: it is the time since the start.
    None for lines that were not there (tests without a database have no query counts). The last seven are of
    sysbench 0.4 and 0.5.
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
    deadlocks: int | None = None
    deadlocks_per_s: float | None = None
    read_write_requests: int | None = None
    read_write_requests_per_s: float | None = None
    other_operations: int | None = None
    other_operations_per_s: float | None = None
    taken_s: float | None = None

    def whole(self) -> Totals:
        """Values that every whole block has; raises Missing if a line of it is absent."""
        results = {name: getattr(self, name) for name in Totals._fields}
        if absent := [name for name, value in results.items() if value is None]:
            raise Missing(f"line {self.line}: the totals lack {', '.join(absent)}")
        return Totals(**results)


class Totals(NamedTuple):
    """Values of every whole block of totals, with or without a database; units as in `Summary`."""

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


RATED = ("transactions", "queries", "ignored_errors", "reconnects", "events")
ADDED = (
    *RATED,
    *(f"{name}_per_s" for name in RATED),
    *("reads", "writes", "other", "total", "latency_sum_ms", "unfinished"),
)
QUEUES = ("queue_length", "concurrency")


def merge_logs(logs: Sequence[SysbenchLog]) -> SysbenchLog:
    """Joint log of several clients; of one client its own log.

    Its window is the mean of theirs, which differ by how long each one's last transactions took: counts over
    it are the sum of the clients' rates. Where a client lacks totals or histogram the whole has none: what is
    left would be taken for all of it.
    """
    if len(logs) == 1:
        return logs[0]
    bars = _merge_histograms(logs)
    kinds = {tuple((block.is_checkpoint, block.checkpoint_s) for block in log.summaries) for log in logs}
    # Blocks of totals are put together one after the other, if all clients have the same ones.
    blocks = zip(*(log.summaries for log in logs), strict=True) if len(kinds) == 1 else ()
    threads = [log.header.threads or 0 for log in logs]
    return SysbenchLog(
        status=max((log.status for log in logs), key=get_args(Status).index),
        problems=tuple(_iter_problems(logs)),
        header=replace(
            logs[0].header,
            threads=_sum_or_none([log.header.threads for log in logs]),
            rate=sum(log.header.rate for log in logs),
        ),
        intervals=_merge_intervals(logs),
        histogram=bars,
        summaries=tuple(_merge_blocks(of_clients, threads, bars) for of_clients in blocks),
        messages=tuple(message for log in logs for message in log.messages),
    )


def _iter_problems(logs: Sequence[SysbenchLog]) -> Iterator[Problem]:
    for number, log in enumerate(logs):
        yield from (problem._replace(text=f"client {number}: {problem.text}") for problem in log.problems)


def _merge_histograms(logs: Sequence[SysbenchLog]) -> Histogram | None:
    histograms = [log.histogram for log in logs if log.histogram is not None]
    if len(histograms) < len(logs):
        return None
    counts = histogram.merge_counts(*(bars.full() for bars in histograms))
    return Histogram(0, np.flatnonzero(counts), counts[np.flatnonzero(counts)])


def _merge_blocks(blocks: Sequence[Summary], threads: Sequence[int], bars: Histogram | None) -> Summary:
    first = blocks[0]
    of_all = {name: [getattr(block, name) for block in blocks] for name in Summary.__dataclass_fields__}
    events, least, most = (of_all[name] for name in ("events", "latency_min_ms", "latency_max_ms"))
    has_percentile = len(set(of_all["percentile"])) == 1 and bars is not None and not first.is_checkpoint
    percentile = first.percentile if has_percentile else None
    value = histogram.bucket_percentile(bars.full(), percentile) if bars and percentile else None
    return Summary(
        line=0,
        is_checkpoint=first.is_checkpoint,
        checkpoint_s=first.checkpoint_s,
        total_time_s=_weighted_mean(of_all["total_time_s"], [1] * len(blocks)),
        **{name: _sum_or_none(of_all[name]) for name in ADDED},
        latency_min_ms=_apply_or_none(min, least),
        latency_avg_ms=_weighted_mean(of_all["latency_avg_ms"], events),
        latency_max_ms=_apply_or_none(max, most),
        percentile=percentile,
        latency_percentile_ms=value,
        thread_events_avg=_weighted_mean(of_all["thread_events_avg"], threads),
        thread_time_avg_s=_weighted_mean(of_all["thread_time_avg_s"], threads),
    )


def _merge_intervals(logs: Sequence[SysbenchLog]) -> Intervals:
    """Add report lines by second over the seconds with exactly one line of each client."""
    columns = [log.intervals.column("second") for log in logs]
    labels = [np.unique(column, return_index=True, return_counts=True) for column in columns]
    common = reduce(np.intersect1d, (seconds[counts == 1] for seconds, _, counts in labels))
    places = [first[np.searchsorted(seconds, common)] for seconds, first, _ in labels]
    whole = {"second": common, **dict.fromkeys(("line", "is_hook"), np.zeros(common.size))}
    for name in ("threads", *SERIES, *QUEUES):
        parts = [log.intervals.column(name)[at] for log, at in zip(logs, places, strict=True)]
        # Sums of numbers with two decimals have two decimals.
        whole[name] = np.round(np.sum(parts, axis=0), 2)
    return Intervals([whole])


def _apply_or_none(function: Callable[[Sequence[Any]], Any], values: Sequence[Any]) -> Any:
    """Function of the values of all clients; None if one lacks it."""
    return None if None in values else function(values)


def _sum_or_none(values: Sequence[Any]) -> Any:
    has_floats = any(isinstance(value, float) for value in values)
    return _apply_or_none(numeric_equality.exact_sum if has_floats else sum, values)


def _weighted_mean(values: Sequence[float | None], weights: Sequence[int | None]) -> float | None:
    whole = _sum_or_none(weights)
    if not whole or None in values:
        return None
    # None is in neither any more: the sum of the weights would be None too.
    pairs = zip(values, weights, strict=True)
    return numeric_equality.exact_sum((value or 0.0) * (weight or 0) for value, weight in pairs) / whole
