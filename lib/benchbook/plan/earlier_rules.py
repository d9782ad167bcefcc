"""Results of pilots by earlier rules, lifted to the present ones: the only place that knows the earlier."""

from collections.abc import Mapping
from typing import Any

from benchbook.core.study import interleaving
from benchbook.core.study.study import StudySpec

SHORTEST_MS = 50
"""Turns that pilots gave no length, by the first rules."""


def lift_warm_up(study: StudySpec, warm_up: Mapping[str, Any]) -> dict[str, Any]:
    """`warm_up.json` that gives the recorded plan by the present rules, `interleaving.RULES`.

    By the first rules (no number) one level with transactions too long for turns made whole runs of a
    workload, and nothing took slow turns.
    """
    if "rules" in warm_up:
        return dict(warm_up)
    settled = {(row["workload"], row["threads"]): row for row in warm_up.get("turns", ())}
    is_slow, turns = bool(interleaving.find_slow(study)), []
    for workload in study.workloads:
        rows = [
            {"workload": workload, "threads": threads, "turn_ms": SHORTEST_MS}
            | settled.get((workload, threads), {})
            for threads in study.threads
        ]
        is_whole = is_slow or not all(row["turn_ms"] for row in rows)
        turns += [row | {"turn_ms": None} if is_whole else row for row in rows]
    return {**warm_up, "rules": interleaving.RULES, "turns": turns}
