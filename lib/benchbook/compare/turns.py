"""Turns: arms connected at once of which one runs at a time, in slices of the same second.

A run of turns counts over its active seconds, the sum of its own turns. Tables made before there were turns
lack these columns, and all of their runs are whole runs, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchbook.compare.sentences import count
from benchbook.core.study import Study

TURNS, RUNS = "turns", "runs"
PERCENTILES = {"latency_p95_ms": 95.0, "latency_p99_ms": 99.0}
# Events that carry a pause may be this share of those beyond a percentile.
HARMLESS = 0.1
ABSENT = (
    "Latency percentiles are left out where more than a tenth of the events beyond them were in flight at "
    "the end of a turn: such an event carries the pause."
)


def orders(runs: pd.DataFrame) -> pd.Series:
    """Return the order in which each run was measured, `runs` or `turns`."""
    if "order" not in runs:
        return pd.Series(RUNS, index=runs.index)
    return runs["order"].fillna("").replace("", RUNS)


def of_one_order(runs: pd.DataFrame, study: Study | None = None) -> tuple[pd.DataFrame, list[str]]:
    """Return the runs of the study's order (else of the one that most runs have), and what was left out.

    Runs of the two orders are never pooled.
    """
    order = orders(runs)
    if order.nunique() < 2:
        return runs, []
    asked = getattr(study.plan, "order", None) if study is not None else None
    kept = asked if asked in set(order) else order.mode().iloc[0]
    left = int((order != kept).sum())
    text = f"{count(left, 'run')} measured in the other order ({'turns' if kept == RUNS else 'whole runs'}) "
    text += "left out: the two orders are never pooled."
    return runs[order == kept].reset_index(drop=True), [text]


def summary(runs: pd.DataFrame, facts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return what is to be said of turns, None for whole runs.

    Keys: turn_ms (a list of the lengths in use), turns (median over arms and blocks of the turns of an arm in
    a block, None where they were not counted), active_s (median of a run) and stopped (by arm, what stood
    still with its client).
    """
    own = runs[orders(runs) == TURNS]
    if own.empty:
        return None
    turns = _known(own, "turns")
    by_block = own.assign(turns=turns).groupby(["arm", "block"])["turns"].sum(min_count=1).dropna()
    active = _known(own, "active_s").dropna()
    return {
        "turn_ms": sorted({int(value) for value in _known(own, "turn_ms").dropna()}),
        "turns": int(by_block.median()) if len(by_block) else None,
        "active_s": float(active.median()) if len(active) else None,
        "stopped": _stopped(own, facts),
    }


def _stopped(runs: pd.DataFrame, facts: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return by arm what stands still out of its turn: as its runs say, else its facts."""
    found = {arm: list(told["stopped"]) for arm, told in facts.items() if told.get("stopped")}
    if "stopped" in runs:
        told = runs[runs["stopped"].fillna("") != ""].groupby("arm", sort=False)["stopped"].first()
        found |= {arm: text.split(", ") for arm, text in told.items()}
    return found


def described(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with latencies that may be shown.

    Of turns the mean is Little's law over active seconds, in ms; a percentile stays only where the events in
    flight at the ends of turns (threads × turns) are fewer than a tenth of those beyond it; the longest event
    is a pause and is absent.
    """
    is_turns = (orders(runs) == TURNS).to_numpy()
    if not is_turns.any():
        return runs
    shown = runs.copy()
    events = shown["events"].astype(float)
    mean = 1000 * shown["threads"] * _known(shown, "active_s") / events.where(events > 0)
    shown["latency_avg_ms"] = np.where(is_turns, mean, shown["latency_avg_ms"])
    in_flight = shown["threads"] * _known(shown, "turns")
    for column, percentile in PERCENTILES.items():
        beyond = events * (1 - percentile / 100)
        is_sound = (in_flight < HARMLESS * beyond).to_numpy()
        shown[column] = shown[column].where(~is_turns | is_sound)
    for column in ("latency_max_ms", "printed_percentile_ms"):
        if column in shown:
            shown[column] = shown[column].where(~is_turns)
    return shown


def lacks_percentiles(runs: pd.DataFrame) -> bool:
    """Tell whether `described` leaves out a percentile of a run of turns."""
    own = runs[orders(runs) == TURNS]
    return bool(len(own)) and bool(described(own)[list(PERCENTILES)].isna().any(axis=None))


def _known(runs: pd.DataFrame, column: str) -> pd.Series:
    if column not in runs:
        return pd.Series(np.nan, index=runs.index)
    return pd.to_numeric(runs[column], errors="coerce").astype(float)
