"""What an event in the middle of a run cost: how deep throughput fell, for how long, and how much was lost.

Each run is held against its own seconds before the event, and a run without the event is looked at over the
same seconds, so that what any run does at that time is seen too. They describe; nothing here decides a claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchbook.compare import edges

FEWEST_BEFORE_S = 20
SILENT_SHARE = 0.1
WINDOW_S = 5


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


def events(facts: Mapping[str, Any] | None) -> dict[str, int]:
    """Return by arm at which second of a run its cluster's event was planned, from the facts of the arms."""
    found = {}
    for arm, seen in _under(facts, "arms").items():
        event = _under(_under(_under(seen, "engine"), "cluster"), "event")
        if event:
            found[arm] = int(event["at_s"])
    return found


def of_runs(runs: pd.DataFrame, intervals: pd.DataFrame, at_s: Mapping[str, int]) -> list[Dip]:
    """Return the dip of every run in the order of the schedule; `at_s` has the event's second by arm.

    Arms without an event are looked at from the earliest event on. `runs` has the columns run_id, position
    and arm, `intervals` run_id, second, qps and is_discarded; runs with under 20 s before are left out.
    """
    if not at_s:
        return []
    series = dict(iter(intervals[~intervals.is_discarded].sort_values("second").groupby("run_id")))
    found = []
    for run in runs.sort_values("position").itertuples():
        if run.run_id in series:
            own = series[run.run_id]
            second, qps = own.second.to_numpy(dtype=float), own.qps.to_numpy(dtype=float)
            at = at_s.get(str(run.arm), min(at_s.values()))
            # The label of an interval is its end.
            before, after = qps[second <= at], qps[second > at]
            if before.size >= FEWEST_BEFORE_S and after.size:
                found.append(_dip(str(run.run_id), str(run.arm) in at_s, before, after))
    return found


def _dip(run_id: str, has_event: bool, before: NDArray[np.float64], after: NDArray[np.float64]) -> Dip:
    level = float(np.median(before))
    recovered = _recovered(after, _windows(before).min())
    until = after[:recovered] if recovered is not None else after
    lost = float((level - until).sum() / level) if level else 0.0
    silent = sum(edges.is_below(one, SILENT_SHARE * level) for one in after)
    return Dip(run_id, has_event, level, float(after.min()), silent, recovered, lost)


def _recovered(after: NDArray[np.float64], least: float) -> int | None:
    """Return the second from which on two windows in a row are at least as fast as `least`."""
    for start in range(after.size - 2 * WINDOW_S + 1):
        if not any(edges.is_below(one, least) for one in _windows(after[start : start + 2 * WINDOW_S])):
            return start
    return None


def _windows(qps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of windows of 5 s, one after another from the start; the rest is left out."""
    whole = qps.size // WINDOW_S
    return qps[: whole * WINDOW_S].reshape(whole, WINDOW_S).mean(axis=1)


def _under(known: object, key: str) -> Mapping[str, Any]:
    found = known.get(key) if isinstance(known, Mapping) else None
    return found if isinstance(found, Mapping) else {}
