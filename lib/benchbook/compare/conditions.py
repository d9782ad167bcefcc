"""Conditions of a claim on the cells it speaks of, such as a proxy below 80 % CPU, put to our runs.

They choose cells by what was used there, never by what came out, and by the mean over all blocks: of a cell
that is chosen every block counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import pandas as pd

from benchbook.compare.claims.metrics import COLUMNS, USED
from benchbook.core.claim import Condition
from benchbook.core.errors import given


def used(
    runs: pd.DataFrame, facts: Mapping[str, Mapping[str, Any]], condition: Condition, at: tuple[str, str, int]
) -> float | None:
    """Return which share of what it may use a part used in a cell (arm, workload, threads), in the mean.

    None where nothing was seen of it, or where the facts don't tell what it may use.
    """
    metric, (arm, workload, threads) = given(condition.metric), at
    cores = room(facts.get(arm, {}), USED[metric])
    own = runs[(runs.arm == arm) & (runs.workload == workload) & (runs.threads == threads)]
    seen = own[COLUMNS[metric][0]].dropna() if COLUMNS[metric][0] in own else own.iloc[:0]
    return None if cores is None or seen.empty else float(seen.mean()) / cores


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
