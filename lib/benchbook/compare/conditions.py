"""Conditions of a claim on the cells it speaks of, such as a proxy below 80 % CPU, put to our runs.

They choose cells by what was used there, never by what came out, and by the mean over all blocks: of a cell
that is chosen every block counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pandas as pd

from benchbook.compare.claims import USED, ClaimedEffect
from benchbook.core.claim import Condition
from benchbook.core.errors import given

CELL = ["workload", "threads"]
Facts = Mapping[str, Mapping[str, Any]]


def narrowed(
    claims: Sequence[ClaimedEffect], runs: pd.DataFrame, facts: Facts
) -> tuple[list[ClaimedEffect], list[str]]:
    """Return claims held to the cells that meet their conditions, and a sentence for each that none meets.

    A claim with conditions becomes one for each workload, at the thread levels that meet them all. `runs` is
    the tidy table, `facts` one nested mapping by arm.
    """
    found: list[ClaimedEffect] = []
    left: list[str] = []
    for claim in claims:
        held, reason = _held(claim, runs, facts) if claim.where else ([claim], None)
        found += held
        if reason is not None:
            left.append(f"Claim {claim.id} is not answered: {reason}.")
    return found, left


def room(facts: Mapping[str, Any], part: str) -> float | None:
    """Return how many cores' time a part of an arm may use, as its facts tell; None where they don't."""
    given = (facts.get("cpu") or {}).get(part)
    if given is None:
        return None
    if given.get("quota_cores"):
        return float(given["quota_cores"])
    if given.get("cores"):
        return float(len(given["cores"]))
    machine = facts["hosts"].get(part) if facts.get("hosts") else facts.get("machine")
    return float(machine["cores"]) if machine and machine.get("cores") else None


def _held(claim: ClaimedEffect, runs: pd.DataFrame, facts: Facts) -> tuple[list[ClaimedEffect], str | None]:
    """Return one claim as one for each workload that has cells to answer it; else why there are none."""
    cells = _cells(claim, runs)
    text = []
    for condition in claim.where:
        column, part = USED[given(condition.metric)]
        arm = claim.treatment if condition.of == "treatment" else claim.baseline
        cores = room(facts.get(arm, {}), part)
        if cores is None:
            return [], f"how many cores the {part} of {arm} may use is not known"
        used = runs[runs["arm"] == arm].groupby(CELL)[column].mean().reindex(cells) / cores
        text.append(f"the {part} of {arm} at {band(condition)} of its CPU ({_seen(used)})")
        low, high = ends(condition)
        cells = cells[((used > low) & (used < high)).to_numpy()]
    if cells.empty:
        return [], f"no cell has {' and '.join(text)}"
    levels: dict[str, tuple[int, ...]] = {}
    for workload, threads in cells:
        levels[workload] = (*levels.get(workload, ()), int(threads))
    return [
        replace(claim, workloads=(workload,), threads=threads, where=())
        for workload, threads in levels.items()
    ], None


def _cells(claim: ClaimedEffect, runs: pd.DataFrame) -> pd.MultiIndex:
    """Return the cells that both arms have and the claim speaks of."""
    mine = [set(map(tuple, runs.loc[runs["arm"] == arm, CELL].to_numpy())) for arm in claim.arms]
    return pd.MultiIndex.from_tuples(
        sorted(
            (workload, threads)
            for workload, threads in mine[0] & mine[1]
            if (claim.workloads is None or workload in claim.workloads)
            and (claim.threads is None or threads in claim.threads)
        ),
        names=CELL,
    )


def ends(condition: Condition) -> tuple[float, float]:
    """Return between which shares of the whole a use must lie."""
    low = -inf if condition.above is None else condition.above / given(condition.whole)
    high = inf if condition.below is None else condition.below / given(condition.whole)
    return low, high


def band(condition: Condition) -> str:
    """Write the share of a part's CPU that a condition asks for."""
    low, high = ends(condition)
    if low == -inf:
        return f"less than {high:.0%}"
    return f"more than {low:.0%}" if high == inf else f"{low:.0%} to {high:.0%}"


def _seen(used: pd.Series) -> str:
    known = used.dropna()
    return f"seen: {known.min():.0%} to {known.max():.0%}" if len(known) else "nothing was seen of it"
