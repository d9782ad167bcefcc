"""How long a turn is, and whose turn it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchbook.core.study import Study
from benchbook.core.turns import DEFAULT_MS, EDGE_S, EVENTS, GUARD_S, THREAD_MS
from benchbook.plan import order

LADDER_MS = (50, 100, 200, 500)
"""Lengths that are used: pilots that differ a little then ask for the same, and runs that exist are kept."""

EDGE_STEP_S = 0.5

Lengths = Mapping[str, Mapping[int, int]]
Edges = Mapping[str, Mapping[int, float]]


def settle(study: Study, pilots: pd.DataFrame) -> list[dict[str, Any]]:
    """Return for each workload and thread level the length of a turn in milliseconds, the same for all arms.

    A turn holds ten mean transactions of the slowest arm, 1.5 ms for each thread, and 50 ms at the least;
    None where that is more than 500 ms. `pilots` has the columns arm, workload, threads, second, tps and
    starting_s; a transaction's mean time is threads / tps (Little's law), on a straight line of logarithms
    between levels that have pilots. `edge_s` is there where clients take longer to start than `EDGE_S` holds.
    Without starting_s neither it nor the number of threads counts, as in evidence made before they did.
    """
    settled = []
    for name in study.workloads:
        seen = pilots[pilots.workload == name]
        tps = seen.groupby(["arm", "threads"], sort=True)["tps"].mean()
        slowest: dict[int, float] = {}
        for (_, threads), rate in tps[tps > 0].items():
            slowest[int(threads)] = max(slowest.get(int(threads), 0.0), 1000 * threads / rate)
        if not slowest:
            continue
        levels = sorted(slowest)
        times = np.log([slowest[level] for level in levels])
        for threads in study.threads:
            mean_ms = float(np.exp(np.interp(np.log(threads), np.log(levels), times)))
            starting = _starting(seen, threads)
            least_ms = max(EVENTS * mean_ms, THREAD_MS * threads if starting else 0.0)
            length = next((one for one in LADDER_MS if one >= least_ms), None)
            row = {"workload": name, "threads": threads, "transaction_ms": round(mean_ms, 3)}
            settled.append(row | {"turn_ms": length} | starting)
    return settled


def _starting(seen: pd.DataFrame, threads: int) -> dict[str, float]:
    """Return `starting_s` of all arms together at a thread level, and `edge_s`, by steps of half a second,
    where the usual seconds don't suffice.

    Arms that start at once share the cores, so that the last one has started when all have had the time that
    each took alone, and the A/A pair has one more; on a straight line between levels that have pilots.
    """
    if "starting_s" not in seen:
        return {}
    each = seen.groupby(["threads", "arm"])["starting_s"].first().dropna().groupby(level="threads")
    together = each.sum() + each.max()
    if together.empty:
        return {}
    starting_s = round(float(np.interp(threads, together.index.astype(float), together)), 2)
    edge_s = math.ceil((GUARD_S + starting_s) / EDGE_STEP_S) * EDGE_STEP_S
    return {"starting_s": starting_s} | ({"edge_s": edge_s} if edge_s > EDGE_S else {})


def lengths(warm_up: Mapping[str, Any]) -> Lengths:
    """Return the settled lengths in ms by workload and threads; 0 where transactions are too long."""
    found: dict[str, dict[int, int]] = {}
    for row in warm_up.get("turns", ()):
        found.setdefault(row["workload"], {})[int(row["threads"])] = int(row["turn_ms"] or 0)
    return found


def edges(warm_up: Mapping[str, Any]) -> Edges:
    """Return the seconds beside discard and turns by workload and threads, where they are not the usual."""
    found: dict[str, dict[int, float]] = {}
    for row in warm_up.get("turns", ()):
        if "edge_s" in row:
            found.setdefault(row["workload"], {})[int(row["threads"])] = float(row["edge_s"])
    return found


def length_ms(study: Study, workload: str, threads: int, settled: Lengths) -> int | None:
    """Return the milliseconds of a turn; None where a transaction is too long for turns."""
    if study.plan.turn_ms is not None:
        return study.plan.turn_ms
    return settled.get(workload, {}).get(threads, DEFAULT_MS) or None


def each(run_s: float, turn_ms: int, of_a_round: int) -> int:
    """Return how many turns each arm has: as many whole rounds of `of_a_round` as fit, one at the least."""
    return max(1, round(run_s * 1000) // turn_ms // of_a_round) * of_a_round


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
