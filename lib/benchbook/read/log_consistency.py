"""Checks for agreement between the numbers of one sysbench output.

A line that was lost, doubled or overwritten leaves sums that no longer add up. At a checkpoint sysbench reads
its counters, then its histogram, then its timers while the threads go on, so around one these three differ by
the events of a few milliseconds; over all blocks they agree again.
"""

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from benchbook.core.util import histogram, numeric_equality
from benchbook.read.intervals import SERIES, ReportLine
from benchbook.read.log import Concern, Histogram, Problem, Summary, SysbenchLog, Totals, require_printed

RATED_COUNTS = ("transactions", "queries", "ignored_errors", "reconnects", "deadlocks", "read_write_requests",
                "other_operations")  # fmt: skip
SLACK_S = 0.5
"""Seconds a busy machine may keep sysbench from reading its timers after it has read its counters: they are
in printed rates, and in the timers around a checkpoint."""
SUM_SHARE = 0.02
SUM_SLACK_INTERVALS = 0.15
"""The interval lines of a window may differ from its total by 2 % and 0.15 of the busiest interval."""
PARTS_SLACK = 0.021
"""How far the printed rates of a line may be from their sum, a hundredth each, in queries a second."""
LABEL_SHARE = 0.25
"""Labels are rounded times, which may be off by this share of a step of several seconds."""
UNSEEN_SPEED = 3.0
"""Without a histogram, what no report line shows can have been so many times as fast as the busiest one."""
RATE_DEVIATIONS = 6.0
"""Standard deviations by which random arrivals may be more than their rate makes."""
REST_S = 0.1
"""With more seconds than this after the last interval line, what happened in them is on no line."""


def find_disagreements(log: SysbenchLog) -> tuple[Problem, ...]:
    """Every sum that does not add up in a log with all lines known and in order."""
    messages = [(None, vars(log.header)), *((block.line, vars(block)) for block in log.summaries)]
    # Whatever is held against NaN agrees with it, and sysbench counts nothing that may be below zero.
    no_numbers = tuple(
        Problem("numbers", line, f"{name} is {value}")
        for line, values in messages
        for name, value in values.items()
        if _is_no_count(value)
    )
    if no_numbers:
        return no_numbers
    parts = (_in_blocks, _over_blocks, _check_rate, _of_histogram, _in_intervals, _of_intervals)
    return tuple(problem for part in parts for problem in part(log))


def _is_no_count(value: object) -> bool:
    return isinstance(value, int | float) and not (math.isfinite(value) and value >= 0)


def _in_blocks(log: SysbenchLog) -> Iterator[Problem]:
    ends = [0.0, *(block.whole().total_time_s for block in log.summaries)]
    for block, before, ended in zip(log.summaries, ends, ends[1:], strict=False):
        window = ended - before
        checks = (*_count_checks(block, window), *_timer_checks(block, window, log))
        yield from (Problem("numbers", block.line, text) for is_right, text in checks if not is_right)


def _count_checks(block: Summary, window: float) -> Iterator[tuple[bool, str]]:
    """Checks of a block's counts against each other and their rates."""
    yield window > 0, f"a window of {window:.4f} s"
    if block.total is not None:
        parts = sum(require_printed(getattr(block, name), name) for name in ("reads", "writes", "other"))
        yield parts == block.total, f"read, write and other make {parts}, total says {block.total}"
        yield block.total == block.queries, f"total says {block.total}, queries says {block.queries}"
        is_same = block.transactions == block.events or _is_counted_at_commit(block)
        yield is_same, f"{block.transactions} transactions, {block.events} events"
        for name in RATED_COUNTS:
            count, rate = getattr(block, name), getattr(block, f"{name}_per_s")
            is_rate = _is_rate(count, rate, window)
            yield is_rate, f"{name}: {count} in {window:.4f} s is not {rate} per second"
    if block.read_write_requests is not None:
        is_same = block.read_write_requests == (block.reads or 0) + (block.writes or 0)
        yield is_same, f"read and write are not {block.read_write_requests} requests"
        text = f"other says {block.other}, other operations {block.other_operations}"
        yield block.other_operations == block.other, text
    if block.events_per_s is not None:
        is_rate = _is_rate(block.whole().events, block.events_per_s, window)
        yield is_rate, f"{block.events} events in {window:.4f} s are not {block.events_per_s} per second"


def _timer_checks(block: Summary, window: float, log: SysbenchLog) -> Iterator[tuple[bool, str]]:
    """Checks of a block's events, latencies and threads against each other."""
    threads, whole = require_printed(log.header.threads, "threads"), block.whole()
    timed = whole.thread_events_avg * threads
    is_count = abs(timed - round(timed)) <= 5e-5 * threads + 1e-6
    yield is_count, f"{whole.thread_events_avg} events a thread make no count"
    slack = threads + whole.events / max(window, 1e-3) * SLACK_S if _has_resets(log) else 0
    is_same = abs(round(timed) - whole.events) <= slack
    yield is_same, f"the threads did {timed:.0f} events, the total is {whole.events}"
    total_ms, mean_ms = whole.latency_sum_ms, whole.latency_avg_ms
    grain_ms = 0.0 if block.taken_s is None else 0.1
    # The count, not threads times their rounded mean: of long transactions a ten-thousandth is milliseconds.
    tolerance = 0.005 * timed + 0.01 + 1e-9 * total_ms + grain_ms
    is_sum = abs(mean_ms * round(timed) - total_ms) <= tolerance
    yield is_sum, f"{timed:.0f} x {mean_ms} ms is not {total_ms} ms"
    is_inside = whole.latency_min_ms <= mean_ms + 0.01 <= whole.latency_max_ms + 0.02
    yield is_inside, "the mean latency is outside min and max"
    if block.percentile is not None:
        yield from _percentile_checks(block, block.percentile, slack)
    for name in ("thread_events_{}", "thread_time_{}_s"):
        messages = [getattr(block, name.format(part)) for part in ("avg", "stddev")]
        mean, deviation = (require_printed(value, "fairness of the threads") for value in messages)
        most = mean * math.sqrt(threads) if threads > 1 else 0.0
        text = f"{threads} threads with a mean of {mean} can't deviate by {deviation}"
        yield deviation <= most + 0.011, text
    spent_ms = whole.thread_time_avg_s * threads * 1000
    is_same = abs(spent_ms - total_ms) <= 0.05 * threads + 0.01 + grain_ms
    yield is_same, f"the threads took {spent_ms:.1f} ms, the sum is {total_ms} ms"


def _is_counted_at_commit(block: Summary) -> bool:
    """True if sysbench 0.5 counted COMMITs, absent in scripts without BEGIN."""
    return block.taken_s is not None and block.transactions == 0


def _percentile_checks(block: Summary, percentile: int, slack: float) -> Iterator[tuple[bool, str]]:
    """Checks of the percentile against the maximum; `slack` events are in its histogram alone."""
    yield 0 < percentile <= 100, f"a percentile of {percentile}"
    printed_ms = require_printed(block.latency_percentile_ms, "percentile of the latencies")
    whole = block.whole()
    is_free = not whole.events or whole.events * (100 - percentile) / 100 < slack
    text = f"{percentile}th percentile {printed_ms} ms, max is {whole.latency_max_ms} ms"
    yield printed_ms <= whole.latency_max_ms * histogram.RATIO + 0.011 or is_free, text


def _over_blocks(log: SysbenchLog) -> Iterator[Problem]:
    if len(log.summaries) == 1:
        return
    last, requests = log.summaries[-1], log.header.checkpoints_s
    threads = require_printed(log.header.threads, "threads")
    blocks = [block.whole() for block in log.summaries]
    timed = sum(round(block.thread_events_avg * threads) for block in blocks)
    events = sum(block.events for block in blocks)
    if timed != events and not log.header.warm_up_s:
        text = f"over all blocks the threads did {timed} events, the totals are {events}"
        yield Problem("numbers", last.line, text)
    reached = [second for second in requests if second <= blocks[-1].total_time_s - 0.5]
    if len(log.checkpoints) not in (len(reached), len(requests)):
        yield Problem("numbers", last.line, f"{len(log.checkpoints)} checkpoints of {len(requests)}")


def _in_intervals(log: SysbenchLog) -> Iterator[Problem]:
    """Problems of report lines, found over all of them at once."""
    header, column = log.header, log.intervals.column
    places = np.flatnonzero((column("threads") > 0) | (column("is_hook") == 0))
    lines = {name: column(name)[places] for name in ReportLine._fields}
    positions, step = np.arange(places.size), header.interval_s or 0
    due = _due_labels(lines["second"].tolist(), step)
    due_on = dict(zip(lines["line"].tolist(), due, strict=True))
    off_label = abs(lines["second"] - due) > LABEL_SHARE * step
    leaving = _first_leaving(header.threads or 0, lines["threads"])
    parts = lines["reads_per_s"] + lines["writes_per_s"] + lines["other_per_s"]
    counts = np.array([lines[name] for name in (*SERIES, "latency_percentile_ms")])
    percents = {block.percentile for block in log.summaries}
    is_other = ~np.isin(lines["percentile"], [*filter(None, percents)]) & ~np.isnan(lines["percentile"])
    # sysbench may end between the last report line and its queue line.
    has_queue = ~np.isnan(lines["queue_length"])
    is_due = (header.rate > 0) & (has_queue | (positions < places.size - 1))
    rules: tuple[tuple[Concern, NDArray[np.bool_], Callable[[ReportLine], list[str]]], ...] = (
        ("intervals", np.full(places.size, step == 0),
         lambda report: ["a report line although none was asked for"]),
        ("intervals", off_label & (step > 0),
         lambda report: [f"label {report.second:g} s where {due_on[report.line]:g} s is due"]),
        ("intervals", (positions < leaving) & (lines["threads"] != header.threads),
         lambda report: [f"{report.threads} threads of {header.threads}"]),
        ("numbers", ~(abs(parts - lines["qps"]) <= PARTS_SLACK), _describe_parts),
        ("numbers", ~(np.isfinite(counts) & (counts >= 0)).all(axis=0), _describe_no_counts),
        ("intervals", is_other & (percents != {None}),
         lambda report: [f"percentile {report.percentile}, the totals have {percents}"]),
        ("intervals", (lines["is_hook"] == 0) & (is_due != has_queue),
         lambda report: ["a report line and its queue line do not go together"]),
    )  # fmt: skip
    for concern, is_wrong, describe in rules:
        for report in (log.intervals[place] for place in places[is_wrong]):
            yield from (Problem(concern, report.line, text) for text in describe(report))


def _due_labels(labels: list[float], step: int) -> list[float]:
    """Label that each line should have: a step after the one before, counted anew from a wrong one."""
    due: list[float] = []
    last = 0.0
    for label in labels:
        last += step
        due.append(last)
        if abs(label - last) > LABEL_SHARE * step:
            last = label
    return due


def _describe_parts(report: ReportLine) -> list[str]:
    if report.qps is None:
        return []
    each = (report.reads_per_s, report.writes_per_s, report.other_per_s)
    parts = sum(require_printed(item, "queries of each kind") for item in each)
    return [f"r/w/o make {parts:.2f}, qps says {report.qps}"]


def _describe_no_counts(report: ReportLine) -> list[str]:
    return [f"{name} is {value}" for name, value in report._asdict().items() if _is_no_count(value)]


def _first_leaving(whole: int, threads: NDArray[np.float64]) -> int:
    """Position with only leaving threads after it: time is over, others end a last transaction."""
    at, fewest = threads.size, 0.0
    while at and fewest <= threads[at - 1] < whole:
        at, fewest = at - 1, threads[at - 1]
    return at


def _of_intervals(log: SysbenchLog) -> Iterator[Problem]:
    step = log.header.interval_s
    if not step or log.final is None:
        return
    total = log.final.whole().total_time_s
    due, got = math.floor(total / step), len(log.intervals)
    if not due - 1 <= got <= total / step + 0.5 and log.intervals.column("threads").all():
        yield Problem("intervals", log.final.line, f"{got} report lines in {total:.4f} s, {due} are due")
        return
    if log.header.warm_up_s:
        return
    second = log.intervals.column("second")
    reached = [require_printed(block.checkpoint_s, "time of a checkpoint") for block in log.checkpoints]
    edges = [0.0, *map(float, reached), math.inf]
    for block, low, high in zip(log.summaries, edges, edges[1:], strict=False):
        inside = np.flatnonzero((low < second) & (second <= high))
        if inside.size:
            rest = (high if high < math.inf else total) - second[inside[-1]]
            yield from _of_window(log, block, inside, rest)


def _of_window(log: SysbenchLog, block: Summary, inside: NDArray[np.int64], rest: float) -> Iterator[Problem]:
    """The first series of a block's report lines unlike its total; `rest` seconds of it are on no line."""
    step = require_printed(log.header.interval_s, "interval")
    for series, total in SERIES.items():
        counts, count = log.intervals.column(series)[inside] * step, getattr(block, total)
        if count is None or np.isnan(counts).any() or _is_counted_at_commit(block):
            continue
        slack = SUM_SHARE * count + SUM_SLACK_INTERVALS * float(counts.max()) + 1
        done = float(counts.sum())
        is_known = total == "events" and rest > REST_S
        more = _unreported_transactions(log, block, rest) if is_known else math.inf
        if done > count + slack or done < count - slack - (0 if rest <= REST_S else more):
            text = f"the report lines make {done:.0f} {total.replace('_', ' ')}, the total is {count}"
            yield Problem("sums", block.line, text)
            return


def _unreported_transactions(log: SysbenchLog, block: Summary, rest: float) -> float:
    """Number of transactions that can have ended in seconds without a report line: the shortest that fit."""
    # At a fixed rate latencies hold the wait in the queue, and say nothing.
    if block.is_checkpoint or log.header.rate:
        return math.inf
    threads = require_printed(log.header.threads, "threads")
    if log.histogram is None:
        busiest = float(np.nanmax(log.intervals.column("tps"), initial=0.0))
        return threads + UNSEEN_SPEED * busiest * (rest + SLACK_S)
    return threads + count_fitting(log.histogram.full(), 1000 * (rest + SLACK_S) * threads)


def _has_resets(log: SysbenchLog) -> bool:
    return len(log.summaries) > 1 or log.header.warm_up_s > 0


def _is_rate(count: int | None, rate: float | None, window: float) -> bool:
    if count is None or rate is None:
        return True  # sysbench before 1.0 prints other ones.
    low, high = count / (window + SLACK_S), count / max(window - SLACK_S, 1e-4)
    return low - 0.006 <= rate <= high + 0.006


GRID = (histogram.RATIO - 1) / 2 + 5e-4
"""How far a bucket's value is from the latencies in it, as a share."""
GRAIN_MS = 0.005
"""Latencies are printed with two decimals."""
FINEST_MS = 0.001
"""Below 0.054 ms several buckets print alike, and all below 0.001 ms are in the first."""


def _check_rate(log: SysbenchLog) -> Iterator[Problem]:
    """Problems of more transactions done than can have arrived."""
    if not log.header.rate or log.final is None:
        return
    whole = [block.whole() for block in log.summaries]
    due, done = log.header.rate * whole[-1].total_time_s, sum(block.events for block in whole)
    if done > due + RATE_DEVIATIONS * math.sqrt(due) + 1:
        text = f"{done} events, at {log.header.rate} a second about {due:.0f} arrived"
        yield Problem("numbers", log.final.line, text)


def _of_histogram(log: SysbenchLog) -> Iterator[Problem]:
    if (bars := log.histogram) is not None and log.final is not None:
        yield from (Problem("numbers", bars.line, text) for text in _check_histogram(log, bars, log.final))


def _check_histogram(log: SysbenchLog, bars: Histogram, final: Summary) -> Iterator[str]:
    """Contradictions between a histogram and the last totals."""
    whole = final.whole()
    timed = round(whole.thread_events_avg * require_printed(log.header.threads, "threads"))
    if not (timed if _has_resets(log) else whole.events) <= bars.events <= whole.events:
        yield f"the histogram counts {bars.events} events, the total is {whole.events}"
        return
    if final.percentile:
        value = histogram.bucket_percentile(bars.full(), final.percentile)
        printed_ms = require_printed(final.latency_percentile_ms, "percentile of the latencies")
        if value is None or not abs(value - printed_ms) <= 0.0056:
            yield f"{final.percentile}th percentile {printed_ms} ms, the histogram says {value}"
    if bars.events and whole.latency_max_ms < histogram.HIGHEST_MS:
        yield from _check_latencies(bars, whole, bars.events - timed)
    elif bars.events and bars.buckets[-1] < histogram.BUCKETS - 1:
        # What is longer than the last bucket is counted in it, so that sums say nothing; the end still does.
        end_ms = histogram.value_of(bars.buckets[-1])
        yield f"the histogram ends at {end_ms:.3f} ms, max is {whole.latency_max_ms} ms"


def _check_latencies(bars: Histogram, final: Totals, extra: int) -> Iterator[str]:
    """Problems if sum, least and most of the timers miss the buckets; `extra` are in these only."""
    full, total_ms = bars.full(), final.latency_sum_ms
    sum_ms, more_ms = spent_ms(full), spent_ms(count_longest(full, extra))
    slack_ms = GRID * total_ms + FINEST_MS * bars.events + GRAIN_MS
    if not -slack_ms <= sum_ms - total_ms <= slack_ms + more_ms:
        yield f"the histogram makes {sum_ms:.0f} ms, the sum of latencies is {total_ms:.0f} ms"
    lowest, highest = int(bars.buckets[0]), int(bars.buckets[-1])
    least, most = _bucket_range(final.latency_min_ms), _bucket_range(final.latency_max_ms)
    # What is in the buckets only may be shorter or longer than all that was timed.
    begin_ms, end_ms = histogram.value_of(lowest), histogram.value_of(highest)
    if lowest > least[1] or (not extra and lowest < least[0]):
        yield f"the histogram begins at {begin_ms:.3f} ms, min is {final.latency_min_ms} ms"
    if highest < most[0] or (not extra and highest > most[1]):
        yield f"the histogram ends at {end_ms:.3f} ms, max is {final.latency_max_ms} ms"


def count_longest(counts: np.ndarray, events: int) -> np.ndarray:
    """Counts of the longest `events` transactions among those of 1024 buckets."""
    beyond = np.cumsum(counts[::-1])[::-1] - counts
    return np.minimum(counts, np.maximum(events - beyond, 0))


def spent_ms(counts: np.ndarray) -> float:
    """Latencies of 1024 buckets added up, in ms; the exact sum of the products, rounded once."""
    used = np.flatnonzero(counts)
    return numeric_equality.exact_sum((counts[used] * histogram.VALUES_MS[used]).tolist())


def count_fitting(counts: np.ndarray, spent_ms: float) -> int:
    """Number of transactions that fit into some ms one after the other, the shortest ones first."""
    ends = np.array(list(itertools.accumulate((counts * histogram.VALUES_MS).tolist())))
    whole = int(np.searchsorted(ends, spent_ms, side="right"))
    done = int(counts[:whole].sum())
    if whole == histogram.BUCKETS:
        return done
    return done + int((spent_ms - (ends[whole - 1] if whole else 0.0)) / histogram.VALUES_MS[whole])


def _bucket_range(printed_ms: float) -> tuple[int, int]:
    """Lowest and highest bucket that a printed latency may be in."""
    least, most = (histogram.bucket_of(printed_ms + off) for off in (-GRAIN_MS, GRAIN_MS))
    return int(least) - 1, int(most) + 1
