"""Runs of arms in turns (interleaved in slices of the same second): their selection, summary and caveats.

A run of turns counts over its active seconds, the sum of its own turns.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from benchbook.core.artifacts.findings import Turns
from benchbook.core.study.interleaving import TURNS
from benchbook.core.study.study import StudySpec
from benchbook.core.util.plural import count

PERCENTILES = ("latency_p95_ms", "latency_p99_ms")
MIXED = (
    "measured in whole runs, since its transactions are too long for turns, and at other levels in turns: "
    "its intervals differ in width for that alone."
)
ABSENT = (
    "Latency percentiles are left out where the end of a turn interrupted more than a tenth of the events "
    "beyond them, because the latency of such an event holds the pause."
)


def select_order(runs: pd.DataFrame, study: StudySpec) -> tuple[pd.DataFrame, list[str]]:
    """Runs of one order at each workload and thread level, the study's own (else most), and runs left out."""
    cell, request = [runs.workload, runs.threads], study.plan.order
    usual = runs.order.groupby(cell).transform(lambda result: result.mode().iloc[0])
    has_asked = runs.order.eq(request or "").groupby(cell).transform("any")
    is_kept = runs.order == usual.mask(has_asked, request)
    if is_kept.all():
        return runs, []
    text = f"{count(int((~is_kept).sum()), 'run')} measured in the other order left out: "
    text += "turns and whole runs of a workload are never pooled."
    return runs[is_kept].reset_index(drop=True), [text]


def mixed_levels(runs: pd.DataFrame) -> list[str]:
    """Sentences on workloads with some thread levels in turns and others in whole runs."""
    texts = []
    for workload, of_workload in runs.groupby("workload", sort=False):
        whole = sorted(of_workload.loc[of_workload.order != TURNS, "threads"].unique())
        if whole and (of_workload.order == TURNS).any():
            texts.append(f"{workload} at {', '.join(map(str, whole))} threads was {MIXED}")
    return texts


def summarize_turns(runs: pd.DataFrame, facts: Mapping[str, Mapping[str, Any]]) -> Turns | None:
    """Summary of turns for the findings, None for whole runs.

    `turns` is the median over arms and blocks of an arm in a block, `active_s` that of a run.
    """
    in_turns = runs[runs.order == TURNS]
    if in_turns.empty:
        return None
    turns = in_turns.turns.astype(float)
    by_block = in_turns.assign(turns=turns).groupby(["arm", "block"])["turns"].sum(min_count=1).dropna()
    active = in_turns.active_s.dropna()
    # What stands still out of an arm's turn: as its runs say, else its facts.
    stopped = {arm: list(fact["stopped"]) for arm, fact in facts.items() if fact.get("stopped")}
    by_arm = in_turns[in_turns.stopped != ""].groupby("arm", sort=False)["stopped"].first()
    stopped |= {arm: text.split(", ") for arm, text in by_arm.items()}
    return Turns(
        turn_ms=sorted({int(value) for value in in_turns.turn_ms.dropna()}),
        turns=int(by_block.median()) if len(by_block) else None,
        active_s=float(active.median()) if len(active) else None,
        stopped=stopped,
    )


def machine_s(runs: pd.DataFrame) -> float:
    """Seconds that runs took: those of a group in turns share the same ones."""
    in_turns = runs.order == TURNS
    shared = runs[in_turns].groupby("group")["sysbench_s"].max().sum() if in_turns.any() else 0.0
    return float(runs.loc[~in_turns, "sysbench_s"].sum() + shared)


def lacks_percentiles(runs: pd.DataFrame) -> bool:
    """True if a run of turns lacks a percentile because of events in flight at ends of turns."""
    in_turns = runs[runs.order == TURNS]
    return bool(len(in_turns)) and bool(in_turns[list(PERCENTILES)].isna().any(axis=None))
