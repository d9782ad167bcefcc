"""Steady state of pilots, and the seconds to discard of every run.

MSER-5 (White 1997): of all truncation points, take the one after which the mean is known best. Its
known weakness, a minimum that is flat, is met by taking the earliest point within 10 % of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchbook.compare.stats import tolerance
from benchbook.core.util.errors import require_value
from benchbook.core.util.plural import count

BATCH = 5
MIN_BATCHES = 12
# The last batches always look steady by themselves: few values spread little (Hoad et al. 2008).
TAIL_BATCHES = 5
TOLERANCE = 1.10
MARGIN_S = 5
FLOOR_S = 10
# A second without a query has no logarithm; it counts as half a query, far below any other second.
EMPTY_SECOND_QUERIES = 0.5


@dataclass(frozen=True)
class PilotResult:
    """Settling time of the pilots of one cell, in seconds; None with the reason."""

    arm: str
    workload: str
    threads: int
    steady_after_s: int | None
    reason: str


@dataclass(frozen=True)
class DiscardAdvice:
    """Seconds to discard, the same for all arms; None if the pilots show no steady state."""

    discard_s: int | None
    is_steady: bool
    reason: str
    pilots: tuple[PilotResult, ...]


def truncation_point(series: Sequence[float] | np.ndarray) -> int:
    """Number of values to leave out at the start, a multiple of 5.

    Values are equally spaced; at least 60 of them. Raise ValueError for fewer or for gaps.
    """
    values = np.asarray(series, dtype=float)
    if len(values) < BATCH * MIN_BATCHES:
        raise ValueError(f"{len(values)} values are too few; at least {BATCH * MIN_BATCHES} are needed")
    if not np.isfinite(values).all():
        raise ValueError("the series has gaps")
    whole = len(values) // BATCH
    batches = values[: whole * BATCH].reshape(whole, BATCH).mean(axis=1)
    starts = range(whole - TAIL_BATCHES + 1)
    scores = np.array([batches[start:].var() / (whole - start) for start in starts])
    # Batches that are equal up to rounding have a minimum of "zero" in many places.
    limit = scores.min() * TOLERANCE + 1e-20 * max(1.0, float(np.abs(batches).max())) ** 2
    return BATCH * int(np.argmax(scores < limit * (1 - tolerance.TIE)))


def discard_advice(pilots: pd.DataFrame) -> DiscardAdvice:
    """Seconds to discard, from pilots with columns arm, workload, threads, pilot, second, qps.

    `pilot` numbers the repetitions of one cell and `second` counts from its start, one row a second.
    Repetitions are averaged second by second on the log scale (Welch 1983). The advice is the latest
    point of all cells plus 5 s, at least `FLOOR_S`; a cell that settles in the second half of its
    pilot has shown no steady state.
    """
    results = tuple(
        PilotResult(str(arm), str(workload), int(threads), *_settling_time(part))
        for (arm, workload, threads), part in pilots.groupby(["arm", "workload", "threads"])
    )
    if not results:
        return DiscardAdvice(None, False, "there are no pilots", ())
    unsettled = [result for result in results if result.steady_after_s is None]
    slowest = unsettled[0] if unsettled else max(results, key=lambda each: require_value(each.steady_after_s))
    where = f"{slowest.arm}, {slowest.workload}, {count(slowest.threads, 'thread')}"
    if unsettled:
        others = f" (likewise {count(len(unsettled) - 1, 'other cell')})" if len(unsettled) > 1 else ""
        return DiscardAdvice(None, False, f"{where}: {slowest.reason}{others}", results)
    after_s = require_value(slowest.steady_after_s)
    discard = max(FLOOR_S, after_s + MARGIN_S)
    reason = f"the slowest pilot ({where}) is steady after {after_s} s; {MARGIN_S} s added"
    if discard > after_s + MARGIN_S:
        reason = f"all pilots are steady after {after_s} s; {FLOOR_S} s is the least"
    return DiscardAdvice(discard, True, reason, results)


def _settling_time(part: pd.DataFrame) -> tuple[int | None, str]:
    """Seconds until the pilots of a cell are steady, None with the reason."""
    wide = part.pivot(index="second", columns="pilot", values="qps").sort_index()
    shortest = int(wide.count().min())
    wide = wide.iloc[:shortest]
    if shortest < BATCH * MIN_BATCHES:
        return None, f"a pilot of {shortest} s is too short to judge; it needs {BATCH * MIN_BATCHES} s"
    if wide.isna().to_numpy().any() or not np.isfinite(wide.to_numpy()).all():
        return None, "seconds are missing in a pilot"
    point = truncation_point(np.log(wide.clip(lower=EMPTY_SECOND_QUERIES)).mean(axis=1).to_numpy())
    if 2 * point >= shortest:
        return None, f"no steady state in {shortest} s; warm up for longer"
    return point, f"steady after {point} s of {shortest} s"
