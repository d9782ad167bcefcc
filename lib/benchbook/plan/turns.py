"""How long a turn is, and whose turn it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from benchbook.core.study import Study
from benchbook.core.turns import DEFAULT_MS, EVENTS, LONGEST_MS
from benchbook.plan import order

STEP_MS = 10

Lengths = Mapping[str, int]


def settle(study: Study, pilots: pd.DataFrame) -> list[dict[str, Any]]:
    """Return for each workload the length of a turn in milliseconds, and the cell that decides it.

    A turn holds ten mean transactions of the slowest cell, and 50 ms at the least. `pilots` has the columns
    arm, workload, threads, second and tps; a transaction's mean time is threads / tps (Little's law).
    """
    settled = []
    for name in study.workloads:
        seen = pilots[pilots["workload"] == name]
        found = {
            (str(arm), int(threads)): 1000 * threads / tps
            for (arm, threads), tps in seen.groupby(["arm", "threads"], sort=True)["tps"].mean().items()
            if tps > 0
        }
        if not found:
            continue
        slowest = max(found, key=lambda cell: found[cell])
        needed = STEP_MS * math.ceil(EVENTS * found[slowest] / STEP_MS)
        settled.append(
            {
                "workload": name,
                "turn_ms": max(DEFAULT_MS, needed),
                "transaction_ms": round(found[slowest], 3),
                "arm": slowest[0],
                "threads": slowest[1],
            }
        )
    return settled


def of(warm_up: Mapping[str, Any]) -> Lengths:
    """Return the settled lengths by workload, in milliseconds, from `warm_up.json`."""
    return {row["workload"]: int(row["turn_ms"]) for row in warm_up.get("turns", ())}


def length_ms(study: Study, workload: str, settled: Lengths) -> int | None:
    """Return the milliseconds of a turn; None where a transaction is too long for turns."""
    if study.plan.turn_ms is not None:
        return study.plan.turn_ms
    found = settled.get(workload, DEFAULT_MS)
    return found if found <= LONGEST_MS else None


def rounds(arms: Sequence[str], block: int, *cell: object) -> list[list[str]]:
    """Return the rounds of turns that are repeated until the window is full, each with every arm as often.

    Two arms go ABBA or BAAB, the first letter drawn for the cell and changed from block to block. More walk a
    balanced square, in which each follows each other equally often, from a row drawn likewise.
    """
    start = order.draw("turns", *cell) + block
    if len(arms) == 2:
        first, second = arms if start % 2 == 0 else arms[::-1]
        return [[first, second, second, first]]
    rows = order.williams(len(arms))
    start %= len(rows)
    return [[arms[at] for at in row] for row in rows[start:] + rows[:start]]
