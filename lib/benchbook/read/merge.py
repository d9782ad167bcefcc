"""The logs of several clients of one run → one log: sums, and percentiles of the added histograms.

Counts are added. Histograms have the same buckets, so that they are added bucket by bucket and percentiles of
the whole follow by sysbench's own rule; percentiles are never averaged. Report lines are added second by
second where every client has one; their percentiles can't be put together and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchbook.core import canonical, histogram
from benchbook.read.intervals import Columns, Intervals
from benchbook.read.log import Histogram, Problem, Summary, SysbenchLog

RATED = ("transactions", "queries", "ignored_errors", "reconnects", "events")
COUNTS = (*RATED, "reads", "writes", "other", "total")
RATES = tuple(f"{name}_per_s" for name in RATED)
SERIES = ("tps", "qps", "reads_per_s", "writes_per_s", "other_per_s", "errors_per_s", "reconnects_per_s")
QUEUES = ("queue_length", "concurrency")


def merged(logs: Sequence[SysbenchLog]) -> SysbenchLog:
    """Return what several clients did together; of one client its own log.

    Its window is the mean of theirs, which differ by how long each one's last transactions took: counts over
    it are the sum of the clients' rates. Where a client lacks totals or histogram the whole has none: what is
    left would be taken for all of it.
    """
    if len(logs) == 1:
        return logs[0]
    bars = _histogram(logs)
    problems = tuple(
        Problem(problem.concern, problem.line, f"client {number}: {problem.text}")
        for number, log in enumerate(logs)
        for problem in log.problems
    )
    worst = next((log for log in logs if log.status == "failed"), None)
    worst = worst or next((log for log in logs if log.status != "complete"), logs[0])
    return SysbenchLog(
        status=worst.status,
        problems=problems,
        header=replace(
            logs[0].header,
            threads=_sum([log.header.threads for log in logs]),
            rate=sum(log.header.rate for log in logs),
        ),
        intervals=_intervals(logs),
        histogram=bars,
        summaries=_summaries(logs, bars),
        messages=tuple(message for log in logs for message in log.messages),
        commands=(),
    )


def _histogram(logs: Sequence[SysbenchLog]) -> Histogram | None:
    found = [log.histogram for log in logs]
    if any(one is None for one in found):
        return None
    counts = histogram.merge(*(one.full() for one in found if one is not None))
    buckets = np.flatnonzero(counts)
    return Histogram(0, buckets, counts[buckets])


def _summaries(logs: Sequence[SysbenchLog], bars: Histogram | None) -> tuple[Summary, ...]:
    """Put the blocks of totals together, one after the other, if all clients have the same ones."""
    kinds = {tuple((one.is_checkpoint, one.checkpoint_s) for one in log.summaries) for log in logs}
    if len(kinds) > 1:
        return ()
    threads = [log.header.threads or 0 for log in logs]
    return tuple(
        _summary(blocks, threads, bars) for blocks in zip(*(log.summaries for log in logs), strict=True)
    )


def _summary(blocks: Sequence[Summary], threads: Sequence[int], bars: Histogram | None) -> Summary:
    first = blocks[0]
    of_all = {name: [getattr(block, name) for block in blocks] for name in Summary.__dataclass_fields__}
    events = of_all["events"]
    percentile, value = None, None
    if len(set(of_all["percentile"])) == 1 and bars is not None and not first.is_checkpoint:
        percentile = first.percentile
        value = histogram.percentile(bars.full(), percentile) if percentile else None
    return Summary(
        line=0,
        is_checkpoint=first.is_checkpoint,
        checkpoint_s=first.checkpoint_s,
        total_time_s=_weighted(of_all["total_time_s"], [1] * len(blocks)),
        **{name: _sum(of_all[name]) for name in COUNTS},
        **{name: _sum(of_all[name]) for name in RATES},
        latency_min_ms=_known(min, of_all["latency_min_ms"]),
        latency_avg_ms=_weighted(of_all["latency_avg_ms"], events),
        latency_max_ms=_known(max, of_all["latency_max_ms"]),
        latency_sum_ms=_sum(of_all["latency_sum_ms"]),
        percentile=percentile,
        latency_percentile_ms=value,
        thread_events_avg=_weighted(of_all["thread_events_avg"], threads),
        thread_time_avg_s=_weighted(of_all["thread_time_avg_s"], threads),
        unfinished=_sum(of_all["unfinished"]),
    )


def _intervals(logs: Sequence[SysbenchLog]) -> Intervals:
    """Add report lines by second over the seconds of which each client has exactly one."""
    found = Intervals()
    labels = [
        np.unique(log.intervals.column("second"), return_index=True, return_counts=True) for log in logs
    ]
    common = labels[0][0]
    for seconds, _, counts in labels:
        common = np.intersect1d(common, seconds[counts == 1])
    if not common.size:
        return found
    places = [first[np.searchsorted(seconds, common)] for seconds, first, _ in labels]
    columns: Columns = {"second": common, "line": np.zeros(common.size), "is_hook": np.zeros(common.size)}
    for name in ("threads", *SERIES, *QUEUES):
        parts = [log.intervals.column(name)[at] for log, at in zip(logs, places, strict=True)]
        # Sums of numbers with two decimals have two decimals.
        columns[name] = np.round(np.sum(parts, axis=0), 2)
    found.add(columns)
    return found


def _sum(values: Sequence[Any]) -> Any:
    """Add what all clients have; None if one lacks it."""
    if None in values:
        return None
    return canonical.total(values) if any(isinstance(one, float) for one in values) else sum(values)


def _known(choose: Callable[[Sequence[Any]], Any], values: Sequence[Any]) -> Any:
    return None if None in values else choose(values)


def _weighted(values: Sequence[float | None], weights: Sequence[int | None]) -> float | None:
    whole = _sum(weights)
    if not whole or None in values:
        return None
    # None is in neither any more: the sum of the weights would be None too.
    pairs = zip(values, weights, strict=True)
    return canonical.total((value or 0.0) * (weight or 0) for value, weight in pairs) / whole
