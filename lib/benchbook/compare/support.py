"""What a latency percentile rests on: how many events lie beyond it, and how many pauses made them.

A pause of the machine makes a queue, and all that waited there comes out slow at once. So events beyond a
percentile lie close together where pauses made them, and in many seconds of a run where they did not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchbook.compare.contrasts import PERCENTILES
from benchbook.compare.latency import dense, percentile_ms
from benchbook.core import histogram
from benchbook.core.findings import Finding, Support
from benchbook.core.wording import count

FEWEST_S = 5
"""Seconds of a run from which one of them alone says something."""
ONE_PAUSE_S = 2
"""Seconds in a row that one pause reaches, as it may lie on the border of two."""


def added(
    entries: Sequence[Finding], tidy: Mapping[str, pd.DataFrame], names: Mapping[str, str]
) -> list[Finding]:
    """Return entries with `support` by arm where they are of a percentile beyond the median."""
    return [
        _with(entry, list(_arms(entry, tidy)), names) if PERCENTILES.get(entry.metric, 0) > 50 else entry
        for entry in entries
    ]


def _with(entry: Finding, told: list[Support], names: Mapping[str, str]) -> Finding:
    percentile = f"p{PERCENTILES[entry.metric]:g}"
    alone = [
        f"One pause alone made what lies beyond {percentile} in {one.by_one_pause} of "
        f"{count(one.runs, 'run')} of {names.get(one.arm, one.arm)}."
        for one in told
        if one.by_one_pause
    ]
    return entry.model_copy(update={"support": told, "warnings": [*entry.warnings, *alone]})


def _arms(entry: Finding, tidy: Mapping[str, pd.DataFrame]) -> Iterator[Support]:
    percentile = PERCENTILES[entry.metric]
    used = set(" ".join(entry.runs).split())
    own = tidy["runs"][tidy["runs"]["run_id"].isin(used)]
    tables = [
        dict(iter(tidy[name][tidy[name]["run_id"].isin(used)].groupby("run_id", observed=True)))
        for name in ("histograms", "intervals")
    ]
    for arm in (entry.baseline, entry.treatment):
        runs = own[own.arm == arm]
        seen = [
            _run(tables[0].get(run["run_id"]), tables[1].get(run["run_id"]), run, percentile)
            for run in runs.to_dict("records")
        ]
        known = [one for one in seen if one is not None]
        if not known:
            continue
        pauses = [one[1] for one in known]
        is_told = all(one is not None for one in pauses)
        yield Support(
            arm=arm,
            runs=len(known),
            events_beyond=min(one[0] for one in known),
            pauses=sum(one for one, _ in filter(None, pauses)) if is_told else None,
            by_one_pause=sum(alone for _, alone in filter(None, pauses)) if is_told else None,
        )


def _run(
    counts: pd.DataFrame | None, seconds: pd.DataFrame | None, run: Mapping[str, Any], percentile: float
) -> tuple[int, tuple[int, bool] | None] | None:
    """Return how many events of a run lie beyond a percentile, in how many pauses, or in one alone."""
    if counts is None:
        return None
    every = dense(counts)
    bound = percentile_ms(every, percentile)
    if bound is None:
        return None
    beyond = round(int(every.sum()) * (1 - percentile / 100))
    # A second tells where its events beyond lie if its own percentile is no lower than the one in question.
    if seconds is None or run["printed_percentile"] < percentile:
        return beyond, None
    printed = seconds.loc[~seconds.is_discarded, "latency_percentile_ms"].to_numpy(dtype=float)
    if len(printed) < FEWEST_S or np.isnan(printed).any():
        return beyond, None
    slow = np.flatnonzero(histogram.bucket_of(printed) >= histogram.bucket_of(bound))
    pauses = int((np.diff(slow) > 1).sum()) + 1 if len(slow) else 0
    return beyond, (pauses, pauses == 1 and len(slow) <= ONE_PAUSE_S)
