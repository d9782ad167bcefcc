"""Caveats of a run or of a set of runs, each in one line with its file and line."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchbook.core.util.grouping import group_by
from benchbook.core.util.number_format import format_percent
from benchbook.core.util.plural import count
from benchbook.read.log import Summary, SysbenchLog
from benchbook.read.log_extraction import Output

CAP_MS = 100_000.0
LATE_S = 1.0
DRIFT = 0.10
FEWEST_INTERVALS = 6
UNSTEADY = 0.25
STALL_SHARE = 0.1
ERROR_SHARE = 0.001
LITTLE = 0.02
RATE_SHARE = 0.01


@dataclass(frozen=True)
class Caveat:
    """One doubt: the file and line it is about, its kind, and the text."""

    path: str
    line: int | None
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}" if self.line else f"{self.path}: {self.text}"


def caveats_of_log(
    path: str, output: Output, log: SysbenchLog, foreign: Sequence[int], options: Mapping[str, str]
) -> Iterator[Caveat]:
    """Doubts about one whole run."""
    if log.final is None:
        return
    for kind, line, text in (*_of_totals(log, log.final, options), *_of_series(log, log.final, options)):
        yield Caveat(path, output.line_of(line), kind, text)
    if foreign:
        lines = f"{len(foreign)} lines of others" if len(foreign) > 1 else "a line of another program"
        yield Caveat(path, foreign[0], "foreign lines", f"{lines} between sysbench's, none among the totals")
    messages = [message for message in log.messages if message.level in ("alert", "warning", "repeated")]
    if messages:
        text = f"{count(len(messages), 'message')}, first {' '.join(messages[0].text.split())[:120]!r}"
        yield Caveat(path, output.line_of(messages[0].line), "messages", text)


Found = tuple[str, int | None, str]


def _of_totals(log: SysbenchLog, total: Summary, options: Mapping[str, str]) -> Iterator[Found]:
    yield from _of_errors(total)
    if total.reconnects:
        yield "reconnects", total.line, f"{total.reconnects:,} reconnects"
    if (total.latency_percentile_ms or 0.0) >= CAP_MS:
        text = "its percentile is the histogram's last bucket (100 s): it may be longer"
        yield "percentile", total.line, text
    planned_s, lasted_s = _planned_seconds(options), total.total_time_s or 0.0
    if planned_s and lasted_s > planned_s + LATE_S:
        text = f"it ended {lasted_s - planned_s:.1f} s after its --time of {planned_s:g} s"
        yield "late end", total.line, text
    if lasted_s and not log.header.warm_up_s:
        yield from _of_rate(log, total, lasted_s) if log.header.rate else _of_concurrency(log, total)


def _of_errors(total: Summary) -> Iterator[Found]:
    events, errors = total.events or 0, total.ignored_errors or 0
    if errors <= ERROR_SHARE * max(events, 1):
        return
    share = 100 * errors / max(events + errors, 1)
    what = "deadlocks" if total.deadlocks is not None else "ignored errors"
    yield "errors", total.line, f"{errors:,} {what}, {share:.2g} % of all transactions"
    # Of each transaction that failed, BEGIN at least was counted as a query.
    other = (total.other or 0) - 2 * events
    if other > 0.5 * errors and total.total:
        text = f"queries of failed transactions are in its qps: {other:,} of {total.total:,} at least"
        yield "failed BEGIN", total.line, text


def _of_rate(log: SysbenchLog, total: Summary, lasted_s: float) -> Iterator[Found]:
    reached, rate = (total.events or 0) / lasted_s, log.header.rate
    # The arrivals are random: as many more or fewer are chance.
    if reached < (1 - max(RATE_SHARE, 3 / math.sqrt(max(rate * lasted_s, 1)))) * rate:
        yield "rate", total.line, f"{reached:,.1f} of the {rate:,} transactions a second asked for"


def _of_concurrency(log: SysbenchLog, total: Summary) -> Iterator[Found]:
    threads, spent_s = log.header.threads or 0, (total.events or 0) * (total.latency_avg_ms or 0.0) / 1000
    window = log.measured_s or total.total_time_s
    if not spent_s or not window:
        return
    busy = spent_s / window
    if abs(busy / threads - 1) > LITTLE and abs(spent_s - threads * window) > 0.5 * threads:
        text = f"Little's law: {busy:.1f} transactions at once by rate and latency, {threads} threads"
        yield "Little", total.line, f"{text}; threads waited outside of transactions, or left"


def _planned_seconds(options: Mapping[str, str]) -> float | None:
    return float(options["time_s"]) if options.get("time_s", "").isdigit() else None


Series = NDArray[np.float64]
"""Report lines of a run: rows of second, threads, throughput and line."""


def _of_series(log: SysbenchLog, total: Summary, options: Mapping[str, str]) -> Iterator[Found]:
    column = log.intervals.column
    rate = "tps" if np.isnan(column("qps")).all() else "qps"
    names = ("second", "threads", rate, "line")
    series = np.array([column(name) for name in names])[:, column("threads") > 0]
    if not series.size:
        return
    planned_s = _planned_seconds(options)
    is_full = (series[1] == (log.header.threads or 0)) & (planned_s is None or series[0] <= planned_s)
    at = int(np.max(np.flatnonzero(is_full) + 1, initial=0))
    yield from _of_leaving(log, total, series, at)
    series = series[:, :at]
    seconds, _, rates, lines = series
    idle = _idle_end(rates)
    if 1 < idle < rates.size:
        text = f"almost nothing from {seconds[-idle]:g} s to the end at {seconds[-1]:g} s"
        text += f", as when threads hang in a last transaction; {float(rates[:-idle].mean()):,.0f} qps before"
        yield "late end", int(lines[-idle]), text
        series = series[:, :-idle]
    if series[2].size < FEWEST_INTERVALS or np.median(series[2]) <= 0:
        return
    if not log.header.rate:
        yield from _of_dips(series)
    yield from _of_drift(series)


def _of_leaving(log: SysbenchLog, total: Summary, series: Series, at: int) -> Iterator[Found]:
    """Threads that left, from a position on, before others had ended their last transaction."""
    whole, (seconds, threads, rates, lines) = log.header.threads or 0, series
    if not (threads[at:] < whole).any():
        return
    tail = (total.total_time_s or float(seconds[-1])) - (seconds[at - 1] if at else 0)
    mean = float(rates[:at].mean()) if at else 0.0
    text = f"{whole - threads[at]:.0f} of {whole} threads left at {seconds[at]:g} s"
    text += f" while others were in a last transaction for up to {tail:.1f} s; {mean:,.0f} qps before"
    if at < seconds.size - 1 or tail > 2 * (log.header.interval_s or 1):
        yield "threads leave", int(lines[at]), text


def _of_dips(series: Series) -> Iterator[Found]:
    seconds, _, rates, lines = series
    usual = float(np.median(rates))
    is_stall = rates < STALL_SHARE * usual
    is_dip = (rates < 0.5 * usual) & ~is_stall
    for kind, share, is_low in (("stalls", "a tenth", is_stall), ("dips", "half", is_dip)):
        if is_low.any():
            at = int(np.argmax(is_low))
            text = f"{is_low.sum()} of {rates.size} intervals below {share} of the median"
            shown = f" ({rates[at]:,.0f} qps)" if kind == "stalls" else ""
            yield kind, int(lines[at]), f"{text}, first {seconds[at]:g} s{shown}"


def _of_drift(series: Series) -> Iterator[Found]:
    rates, first, last = series[2], int(series[3][0]), int(series[3][-1])
    third, tenth = max(rates.size // 3, 1), max(rates.size // 10, 1)
    begin, middle, end = rates[:third], rates[third:-third], rates[-third:]
    share = float(np.mean(rates[:tenth])) / float(np.mean(rates[tenth:])) - 1
    if abs(share) > DRIFT:
        text = f"no steady beginning: the first tenth is {format_percent(share, 0)} off the rest"
        yield "beginning", first, text
    change = float(end.mean() / begin.mean()) - 1
    # A drift goes on; a slow beginning does not.
    is_one_way = middle.size and (middle.mean() - begin.mean()) * (end.mean() - middle.mean()) > 0
    if abs(change) > DRIFT and is_one_way:
        yield "drift", last, f"it drifts: the last third is {format_percent(change, 0)} off the first"
    spread = float(np.std(rates, ddof=1)) / float(np.mean(rates))
    if spread > UNSTEADY:
        yield "unsteady", first, f"intervals vary by {format_percent(spread, 0, False)} (CV)"


def _idle_end(rates: NDArray[np.float64]) -> int:
    """Number of last intervals with less than a tenth of the usual throughput."""
    if not (rates > 0).any():
        return 0
    busy = np.flatnonzero(rates >= STALL_SHARE * np.median(rates[rates > 0]))
    return int(rates.size - 1 - busy[-1])


def caveats_of_set(runs: Sequence[Any], arms: Sequence[str]) -> list[Caveat]:
    """Caveats about runs beside each other: differences that should not be, and their order."""
    caveats: list[Caveat] = []
    for members in group_by(runs, lambda run: run.workload).values():
        caveats += [*_of_levels(members, arms), *_of_lengths(members)]
    if len(versions := sorted({run.version for run in runs})) > 1:
        run = next(run for run in runs if run.version == versions[-1])
        text = f"sysbench {' and '.join(versions)} are compared with each other"
        caveats.append(Caveat(run.path, run.line, "versions", text))
    timed = [run for run in runs if run.ended_at is not None]
    return [*caveats, *_of_order(timed)] if len(arms) > 1 and len(timed) > 3 else caveats


def _of_levels(runs: Sequence[Any], arms: Sequence[str]) -> Iterator[Caveat]:
    """Levels of one workload that not all arms have."""
    by_arm = group_by(runs, lambda run: run.arm)
    levels = {arm: {run.level for run in by_arm[arm]} for arm in arms if arm in by_arm}
    common = set.intersection(*levels.values())
    for arm, each in levels.items():
        if lone := each - common:
            run = next(run for run in by_arm[arm] if run.level in lone)
            only = ", ".join(map(str, sorted(lone)))
            text = f"{arm} alone, or not all arms, has {only} threads of {run.workload}"
            yield Caveat(run.path, run.line, "levels", text)


def _of_lengths(runs: Sequence[Any]) -> Iterator[Caveat]:
    """Lengths of runs of one workload that differ."""
    shortest, longest_s = min(runs, key=lambda run: run.time_s), max(run.time_s for run in runs)
    if longest_s > 1.1 * shortest.time_s + 1:
        text = f"runs of {shortest.workload} last {shortest.time_s:,.0f} to {longest_s:,.0f} s"
        yield Caveat(shortest.path, shortest.line, "lengths", text)


def _of_order(timed: Sequence[Any]) -> Iterator[Caveat]:
    """All runs of one arm before those of the next, by the times of their files."""
    in_order, times_s = sorted(timed, key=attrgetter("ended_at")), [run.time_s for run in timed]
    least_s = 0.5 * (sum(times_s) - max(times_s)) / max(1, max(run.processes for run in timed))
    # Copies and checkouts have the time at which they were copied.
    if in_order[-1].ended_at - in_order[0].ended_at < least_s:
        return
    spans = [each for each in group_by(in_order, attrgetter("arm")).values() if len(each) > 1]
    if len(spans) < 2 or any(later[0].ended_at <= span[-1].ended_at for span, later in pairwise(spans)):
        return
    first, second = spans[0][0].arm, spans[1][0].arm
    run = next(run for run in timed if run.arm == second)
    text = f"not interleaved: by the files' times all runs of {first} came before those of {second}"
    yield Caveat(run.path, None, "order", f"{text}, so that drift looks like an effect")
