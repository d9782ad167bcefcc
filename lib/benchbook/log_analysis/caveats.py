"""Caveats of a run or of a set of runs, each in one line with its file and line."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    for kind, line, text in (*_of_totals(log, log.final, options), *_of_series(log, options)):
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
    events, errors = total.events or 0, total.ignored_errors or 0
    if errors > ERROR_SHARE * max(events, 1):
        share = 100 * errors / max(events + errors, 1)
        what = "deadlocks" if total.deadlocks is not None else "ignored errors"
        yield "errors", total.line, f"{errors:,} {what}, {share:.2g} % of all transactions"
        # Of each transaction that failed, BEGIN at least was counted as a query.
        other = (total.other or 0) - 2 * events
        if other > 0.5 * errors and total.total:
            text = f"queries of failed transactions are in its qps: {other:,} of {total.total:,} at least"
            yield "failed BEGIN", total.line, text
    if total.reconnects:
        yield "reconnects", total.line, f"{total.reconnects:,} reconnects"
    if total.latency_percentile_ms is not None and total.latency_percentile_ms >= CAP_MS:
        text = "its percentile is the histogram's last bucket (100 s): it may be longer"
        yield "percentile", total.line, text
    planned_s = _planned_seconds(options)
    if planned_s and total.total_time_s and total.total_time_s > planned_s + LATE_S:
        text = f"it ended {total.total_time_s - planned_s:.1f} s after its --time of {planned_s:g} s"
        yield "late end", total.line, text
    if log.header.rate and total.total_time_s and not log.header.warm_up_s:
        reached = events / total.total_time_s
        # The arrivals are random: as many more or fewer are chance.
        slack = max(RATE_SHARE, 3 / math.sqrt(max(log.header.rate * total.total_time_s, 1)))
        if reached < (1 - slack) * log.header.rate:
            text = f"{reached:,.1f} of the {log.header.rate:,} transactions a second asked for"
            yield "rate", total.line, text
    threads, average = log.header.threads or 0, total.latency_avg_ms
    if average and events and total.total_time_s and not log.header.rate and not log.header.warm_up_s:
        window, spent_s = log.measured_s or total.total_time_s, events * average / 1000
        busy = spent_s / window
        if abs(busy / threads - 1) > LITTLE and abs(spent_s - threads * window) > 0.5 * threads:
            text = f"Little's law: {busy:.1f} transactions at once by rate and latency, {threads} threads"
            yield "Little", total.line, f"{text}; threads waited outside of transactions, or left"


def _planned_seconds(options: Mapping[str, str]) -> float | None:
    return float(options["time_s"]) if options.get("time_s", "").isdigit() else None


def _of_series(log: SysbenchLog, options: Mapping[str, str]) -> Iterator[Found]:
    whole, column = log.header.threads or 0, log.intervals.column
    rate = "tps" if np.isnan(column("qps")).all() else "qps"
    is_run = column("threads") > 0
    seconds, threads, rates, lines = (column(name)[is_run] for name in ("second", "threads", rate, "line"))
    if not seconds.size:
        return
    full = threads == whole
    if (planned_s := _planned_seconds(options)) is not None:
        full &= seconds <= planned_s
    last_full = int(np.flatnonzero(full)[-1]) if full.any() else -1
    at = last_full + 1
    if (threads[at:] < whole).any():
        ended = log.final.total_time_s if log.final and log.final.total_time_s else float(seconds[-1])
        tail = ended - (seconds[last_full] if at else 0)
        mean = float(rates[:at].mean()) if at else 0.0
        text = f"{whole - threads[at]:.0f} of {whole} threads left at {seconds[at]:g} s"
        text += f" while others were in a last transaction for up to {tail:.1f} s; {mean:,.0f} qps before"
        if at < seconds.size - 1 or tail > 2 * (log.header.interval_s or 1):
            yield "threads leave", int(lines[at]), text
    rates, seconds, lines = rates[:at], seconds[:at], lines[:at]
    idle = _idle_end(rates)
    if idle > 1 and idle < rates.size:
        mean = float(rates[:-idle].mean())
        text = f"almost nothing from {seconds[-idle]:g} s to the end at {seconds[-1]:g} s"
        text += f", as when threads hang in a last transaction; {mean:,.0f} qps before"
        yield "late end", int(lines[-idle]), text
        rates, seconds, lines = rates[:-idle], seconds[:-idle], lines[:-idle]
    if rates.size < FEWEST_INTERVALS:
        return
    usual = float(np.median(rates))
    if usual <= 0:
        return
    stalled = np.flatnonzero(rates < STALL_SHARE * usual)
    if stalled.size and not log.header.rate:
        first = stalled[0]
        text = f"{stalled.size} of {rates.size} intervals below a tenth of the median"
        yield "stalls", int(lines[first]), f"{text}, first {seconds[first]:g} s ({rates[first]:,.0f} qps)"
    dips = np.flatnonzero((rates < 0.5 * usual) & (rates >= STALL_SHARE * usual))
    if dips.size and not log.header.rate:
        text = f"{dips.size} of {rates.size} intervals below half of the median, first {seconds[dips[0]]:g} s"
        yield "dips", int(lines[dips[0]]), text
    third, tenth = max(rates.size // 3, 1), max(rates.size // 10, 1)
    begin, middle, end = rates[:third], rates[third:-third], rates[-third:]
    share = float(np.mean(rates[:tenth])) / float(np.mean(rates[tenth:])) - 1
    if abs(share) > DRIFT:
        text = f"no steady beginning: the first tenth is {format_percent(share, 0)} off the rest"
        yield "beginning", int(lines[0]), text
    change = float(end.mean() / begin.mean()) - 1
    # A drift goes on; a slow beginning does not.
    is_one_way = middle.size and (middle.mean() - begin.mean()) * (end.mean() - middle.mean()) > 0
    if abs(change) > DRIFT and is_one_way:
        text = f"it drifts: the last third is {format_percent(change, 0)} off the first"
        yield "drift", int(lines[-1]), text
    spread = float(np.std(rates, ddof=1)) / float(np.mean(rates))
    if spread > UNSTEADY:
        yield "unsteady", int(lines[0]), f"intervals vary by {format_percent(spread, 0, False)} (CV)"


def _idle_end(rates: NDArray[np.float64]) -> int:
    """Number of last intervals with less than a tenth of the usual throughput."""
    if not (rates > 0).any():
        return 0
    busy = np.flatnonzero(rates >= STALL_SHARE * np.median(rates[rates > 0]))
    return int(rates.size - 1 - busy[-1])


def caveats_of_set(runs: Sequence[Any], arms: Sequence[str]) -> list[Caveat]:
    """Caveats about runs beside each other: differences that should not be, and their order."""
    caveats: list[Caveat] = []
    for workload in dict.fromkeys(run.workload for run in runs):
        of_workload = [run for run in runs if run.workload == workload]
        levels = {
            arm: level for arm in arms if (level := {run.level for run in of_workload if run.arm == arm})
        }
        common = set.intersection(*levels.values()) if levels else set()
        for arm, level in levels.items():
            if level != common and len(levels) > 1:
                only = ", ".join(map(str, sorted(level - common)))
                run = next(run for run in of_workload if run.arm == arm and run.level in level - common)
                text = f"{arm} alone, or not all arms, has {only} threads of {workload}"
                caveats.append(Caveat(run.path, run.line, "levels", text))
        lengths = [run.time_s for run in of_workload]
        if max(lengths) > 1.1 * min(lengths) + 1:
            run = min(of_workload, key=lambda run: run.time_s)
            text = f"runs of {workload} last {min(lengths):,.0f} to {max(lengths):,.0f} s"
            caveats.append(Caveat(run.path, run.line, "lengths", text))
    if len(versions := sorted({run.version for run in runs})) > 1:
        run = next(run for run in runs if run.version == versions[-1])
        text = f"sysbench {' and '.join(versions)} are compared with each other"
        caveats.append(Caveat(run.path, run.line, "versions", text))
    caveats += _of_order(runs, arms)
    return caveats


def _of_order(runs: Sequence[Any], arms: Sequence[str]) -> list[Caveat]:
    timed = [run for run in runs if run.ended_at is not None]
    if len(arms) < 2 or len(timed) < 4:
        return []
    ends, times_s = [run.ended_at for run in timed], [run.time_s for run in timed]
    least_s = 0.5 * (sum(times_s) - max(times_s)) / max(1, max(run.processes for run in timed))
    # Copies and checkouts have the time at which they were copied.
    if max(ends) - min(ends) < least_s:
        return []
    spans = {arm: [run.ended_at for run in timed if run.arm == arm] for arm in arms}
    spans = {arm: span for arm, span in spans.items() if len(span) > 1}
    order = sorted(spans, key=lambda arm: min(spans[arm]))
    if len(order) > 1 and all(max(spans[first]) < min(spans[second]) for first, second in pairwise(order)):
        run = next(run for run in timed if run.arm == order[1])
        text = f"not interleaved: by the files' times all runs of {order[0]} came before those of {order[1]}"
        return [Caveat(run.path, None, "order", f"{text}, so that drift looks like an effect")]
    return []
