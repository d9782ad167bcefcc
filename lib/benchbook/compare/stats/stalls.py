"""Runs second by second: stalls and levels of long ones, and the cost of an event in between."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchbook.compare.stats import tolerance
from benchbook.core.util.grouping import group_by

LONG_S = 300
STALL_SHARE = 0.1
FEWEST_SECONDS = 60
# Two levels count as different if fewer than half as many seconds lie between them as at the smaller one.
VALLEY = 0.5
SMALLEST_SHARE = 0.05
# Levels within half a percent are one.
FINEST = 0.005
GRID = 512
FEWEST_BEFORE_S, WINDOW_S = 20, 5


@dataclass(frozen=True)
class Stall:
    """Seconds in a row below a tenth of the run's median: label of the first, number, slowest."""

    second: float
    length_s: int
    lowest_qps: float


@dataclass(frozen=True)
class Mode:
    """A persistent level of a run: the median of its seconds, and their share of all."""

    qps: float
    share: float


@dataclass(frozen=True)
class Stability:
    """One long run; `modes` is empty if too few seconds are known to tell."""

    run_id: str
    seconds: int
    median_qps: float
    lowest_qps: float
    stalls: tuple[Stall, ...]
    modes: tuple[Mode, ...]


def long_runs(runs: pd.DataFrame, intervals: pd.DataFrame) -> list[Stability]:
    """Stability of every run of at least 300 s, in the order of the schedule.

    `runs` has the columns run_id, position and run_s, `intervals` run_id, second, qps and is_discarded.
    """
    long = runs[runs["run_s"] >= LONG_S].sort_values("position")
    measured = intervals[intervals.run_id.isin(set(long.run_id)) & ~intervals.is_discarded]
    series = dict(iter(measured.sort_values("second").groupby("run_id")))
    stabilities = []
    for run in (run for run in long.run_id if run in series):
        qps, second = (series[run][name].to_numpy(dtype=float) for name in ("qps", "second"))
        median, lowest, stopped = float(np.median(qps)), float(qps.min()), find_stalls(second, qps)
        stabilities.append(Stability(str(run), len(qps), median, lowest, stopped, find_modes(qps)))
    return stabilities


def find_stalls(second: NDArray[np.float64], qps: NDArray[np.float64]) -> tuple[Stall, ...]:
    """Stalls of a series of one value a second."""
    usual = float(np.median(qps))
    is_stall = [tolerance.is_below(qp, STALL_SHARE * usual) for qp in qps]
    turns = np.flatnonzero(np.diff(np.concatenate(([False], is_stall, [False])).astype(int)))
    return tuple(
        Stall(float(second[first]), int(end - first), float(qps[first:end].min()))
        for first, end in zip(turns[::2], turns[1::2], strict=True)
    )


def find_modes(qps: NDArray[np.float64]) -> tuple[Mode, ...]:
    """Levels of a series without its stalls, the lowest first; one level if it stays at one.

    A kernel density of the logarithms (bandwidth after Silverman 1986) is cut where it has a deep valley; a
    part with under a twentieth of the seconds is no level of its own.
    """
    usual = float(np.median(qps))
    values = np.log([qp for qp in qps if tolerance.is_above(qp, STALL_SHARE * usual)])
    if values.size < FEWEST_SECONDS:
        return ()
    low, high = np.percentile(values, [25, 75])
    spread = min(float(values.std(ddof=1)), float(high - low) / 1.349) or float(values.std(ddof=1))
    width = max(FINEST, 0.9 * spread * values.size**-0.2)
    grid = np.linspace(values.min() - 3 * width, values.max() + 3 * width, GRID)
    density = np.exp(-0.5 * ((grid[:, None] - values[None, :]) / width) ** 2).sum(axis=1)
    parts = _cut_values(np.sort(values), [grid[place] for place in _find_valleys(density)])
    return tuple(Mode(float(np.exp(np.median(part))), part.size / values.size) for part in parts)


def _cut_values(ordered: NDArray[np.float64], cuts: list[float]) -> list[NDArray[np.float64]]:
    """Parts of ordered values between cuts, as many of them as leave no part too small."""
    while True:
        parts = np.split(ordered, np.searchsorted(ordered, cuts))
        small = [place for place, part in enumerate(parts) if part.size < SMALLEST_SHARE * ordered.size]
        if not small or not cuts:
            return parts
        cuts.pop(min(small[0], len(cuts) - 1))


def _find_valleys(density: NDArray[np.float64]) -> list[int]:
    """Places of deep valleys: each rises on both sides to more than twice its height."""
    inner = density[1:-1]
    peaks = [int(place) + 1 for place in np.flatnonzero((inner > density[:-2]) & (inner >= density[2:]))]
    while len(peaks) > 1:
        between = [left + int(np.argmin(density[left:right])) for left, right in pairwise(peaks)]
        lower = [min(density[left], density[right]) for left, right in pairwise(peaks)]
        depth = density[between] / lower
        worst = int(np.argmax(depth))
        if tolerance.is_below(depth[worst], VALLEY):
            return between
        left, right = peaks[worst], peaks[worst + 1]
        peaks.remove(left if density[left] < density[right] else right)
    return []


@dataclass(frozen=True)
class Dip:
    """One run from the moment of an event on, in seconds and queries a second.

    `before_qps` is the median of the seconds before; `silent_s` counts later seconds with less than a tenth
    of it; `recovered_s` is how long it took until two windows of 5 s in a row were no slower than the slowest
    such window before, None if that never was; `lost_s` is what was not answered until then, in seconds of
    `before_qps`.
    """

    run_id: str
    has_event: bool
    before_qps: float
    lowest_qps: float
    silent_s: int
    recovered_s: int | None
    lost_s: float


def event_seconds(arms: Mapping[str, Mapping[str, Any]] | None) -> dict[str, int]:
    """Planned second of the cluster's event in a run, by arm, from the facts of the arms."""
    planned = {}
    for arm, facts in (arms or {}).items():
        cluster = (facts.get("engine") or {}).get("cluster")
        of_cluster = cluster.get("event") if isinstance(cluster, Mapping) else None
        if event := of_cluster or facts.get("event"):
            planned[arm] = int(event["at_s"])
    return planned


def measure_dips(runs: pd.DataFrame, intervals: pd.DataFrame, at_s: Mapping[str, int]) -> list[Dip]:
    """Dip of every run in the order of the schedule; `at_s` has the event's second by arm.

    Arms without an event are looked at from the earliest event on. `runs` has the columns run_id, position
    and arm, `intervals` run_id, second, qps and is_discarded; runs with under 20 s before are left out.
    """
    if not at_s:
        return []
    series = dict(iter(intervals[~intervals.is_discarded].sort_values("second").groupby("run_id")))
    dips = []
    for run in runs.sort_values("position").itertuples():
        if run.run_id in series:
            seconds = series[run.run_id]
            second, qps = seconds.second.to_numpy(dtype=float), seconds.qps.to_numpy(dtype=float)
            at = at_s.get(str(run.arm), min(at_s.values()))
            # The label of an interval is its end.
            before, after = qps[second <= at], qps[second > at]
            if before.size >= FEWEST_BEFORE_S and after.size:
                dips.append(_measure_dip(str(run.run_id), str(run.arm) in at_s, before, after))
    return dips


@dataclass(frozen=True)
class EventLoss:
    """Loss of one arm from an event on: of each quantity a value a run; `recovered_s` of those that did.

    `errors` are transactions that ended in an error, the others are those of `Dip`.
    """

    arm: str
    has_event: bool
    errors: list[int]
    lost_s: list[float]
    silent_s: list[int]
    recovered_s: list[int]


def summarize_losses(runs: pd.DataFrame, dips: Sequence[Dip]) -> list[EventLoss]:
    """Losses by arm, those with an event first; `runs` has the columns run_id, arm and ignored_errors."""
    about = runs.set_index("run_id")
    losses = []
    ordered = sorted(dips, key=lambda dip: not dip.has_event)
    for arm, of_arm in group_by(ordered, lambda dip: str(about.arm[dip.run_id])).items():
        errors = [int(about.ignored_errors[dip.run_id]) for dip in of_arm]
        lost, silent = [dip.lost_s for dip in of_arm], [int(dip.silent_s) for dip in of_arm]
        recovered = [dip.recovered_s for dip in of_arm if dip.recovered_s is not None]
        losses.append(EventLoss(arm, of_arm[0].has_event, errors, lost, silent, recovered))
    return losses


def _measure_dip(
    run_id: str, has_event: bool, before: NDArray[np.float64], after: NDArray[np.float64]
) -> Dip:
    level, least = float(np.median(before)), _window_means(before).min()

    # Two windows in a row are at least as fast as the slowest one before.
    def is_back(start: int) -> bool:
        windows = _window_means(after[start : start + 2 * WINDOW_S])
        return not any(tolerance.is_below(mean, least) for mean in windows)

    recovered = next(filter(is_back, range(after.size - 2 * WINDOW_S + 1)), None)
    until = after[:recovered]
    lost = float((level - until).sum() / level) if level else 0.0
    silent = sum(tolerance.is_below(item, STALL_SHARE * level) for item in after)
    return Dip(run_id, has_event, level, float(after.min()), silent, recovered, lost)


def _window_means(qps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of windows of 5 s, one after another from the start; the rest is left out."""
    whole = qps.size // WINDOW_S
    return qps[: whole * WINDOW_S].reshape(whole, WINDOW_S).mean(axis=1)
