"""Where the table of `--histogram` must agree with the totals printed beside it.

Its values are those of buckets 1.8 % apart. After a checkpoint sysbench starts it again a moment before its
timers, so it may count some transactions more than they did, of any length; never fewer, and never others.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from benchbook.core import canonical, histogram
from benchbook.read.log import Histogram, Problem, SysbenchLog, Totals, printed

GRID = (histogram.RATIO - 1) / 2 + 5e-4
"""How far a bucket's value is from the latencies in it, as a share."""
GRAIN_MS = 0.005
"""Latencies are printed with two decimals."""
FINEST_MS = 0.001
"""Below 0.054 ms several buckets print alike, and all below 0.001 ms are in the first."""


def disagreements(log: SysbenchLog, timed: int, has_resets: bool) -> Iterator[Problem]:
    """Yield where a histogram contradicts the last totals; `timed` events are in their timers.

    `has_resets` says that counting began again during the run.
    """
    bars, final = log.histogram, log.final
    if bars is None or final is None:
        return
    whole = final.whole()
    if not (timed if has_resets else whole.events) <= bars.events <= whole.events:
        text = f"the histogram counts {bars.events} events, the total is {whole.events}"
        yield Problem("numbers", bars.line, text)
        return
    if final.percentile:
        value = histogram.percentile(bars.full(), final.percentile)
        said = printed(final.latency_percentile_ms, "percentile of the latencies")
        if value is None or not abs(value - said) <= 0.0056:
            text = f"{final.percentile}th percentile {said} ms, the histogram says {value}"
            yield Problem("numbers", bars.line, text)
    if bars.events and whole.latency_max_ms < histogram.HIGHEST_MS:
        yield from _of_latencies(bars, whole, bars.events - timed)
    elif bars.events and bars.buckets[-1] < histogram.BUCKETS - 1:
        # What is longer than the last bucket is counted in it, so that sums say nothing; the end still does.
        end_ms = histogram.value_of(bars.buckets[-1])
        text = f"the histogram ends at {end_ms:.3f} ms, max is {whole.latency_max_ms} ms"
        yield Problem("numbers", bars.line, text)


def _of_latencies(bars: Histogram, final: Totals, extra: int) -> Iterator[Problem]:
    """Yield where sum, least and most of the timers are not in the buckets; `extra` are in these only."""
    full, total_ms = bars.full(), final.latency_sum_ms
    sum_ms, more_ms = spent_ms(full), spent_ms(longest(full, extra))
    slack_ms = GRID * total_ms + FINEST_MS * bars.events + GRAIN_MS
    if not -slack_ms <= sum_ms - total_ms <= slack_ms + more_ms:
        text = f"the histogram makes {sum_ms:.0f} ms, the sum of latencies is {total_ms:.0f} ms"
        yield Problem("numbers", bars.line, text)
    lowest, highest = int(bars.buckets[0]), int(bars.buckets[-1])
    least, most = _around(final.latency_min_ms), _around(final.latency_max_ms)
    # What is in the buckets only may be shorter or longer than all that was timed.
    begin_ms, end_ms = histogram.value_of(lowest), histogram.value_of(highest)
    if lowest > least[1] or (not extra and lowest < least[0]):
        text = f"the histogram begins at {begin_ms:.3f} ms, min is {final.latency_min_ms} ms"
        yield Problem("numbers", bars.line, text)
    if highest < most[0] or (not extra and highest > most[1]):
        text = f"the histogram ends at {end_ms:.3f} ms, max is {final.latency_max_ms} ms"
        yield Problem("numbers", bars.line, text)


def longest(counts: np.ndarray, events: int) -> np.ndarray:
    """Return the counts of the longest `events` transactions among those of 1024 buckets."""
    backwards = shortest(counts[::-1], events)
    return backwards[::-1]


def shortest(counts: np.ndarray, events: int) -> np.ndarray:
    """Return the counts of the shortest `events` transactions among those of 1024 buckets."""
    return np.minimum(counts, np.maximum(events - (np.cumsum(counts) - counts), 0))


def spent_ms(counts: np.ndarray) -> float:
    """Return the latencies of 1024 buckets added up, in ms; the exact sum of the products, rounded once."""
    return canonical.total(counts * histogram.VALUES_MS)


def fitting(counts: np.ndarray, spent_ms: float) -> int:
    """Return how many transactions fit into some ms one after the other, if the shortest ones come first."""
    ends = np.array(list(itertools.accumulate((counts * histogram.VALUES_MS).tolist())))
    whole = int(np.searchsorted(ends, spent_ms, side="right"))
    done = int(counts[:whole].sum())
    if whole == histogram.BUCKETS:
        return done
    before = float(ends[whole - 1]) if whole else 0.0
    return done + int((spent_ms - before) / histogram.VALUES_MS[whole])


def _around(printed_ms: float) -> tuple[int, int]:
    """Return the lowest and highest bucket that a printed latency may be in."""
    least, most = (histogram.bucket_of(printed_ms + off) for off in (-GRAIN_MS, GRAIN_MS))
    return int(least) - 1, int(most) + 1
