"""Causes of effects: cost of each part of an arm, saturated cores, and their consequences."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from benchbook.compare.bottlenecks import explanation, operational_laws
from benchbook.compare.bottlenecks.service_demand import PARTS, ArmCell, summarize_cell
from benchbook.core.artifacts.artifact import find_fact
from benchbook.core.artifacts.bottlenecks import CLIENT_USED, Causes
from benchbook.core.study.study import StudySpec
from benchbook.core.study.sysbench_workloads import ROW_BYTES

# As an arm asks for itself: the stage that analyzes declares no other section that says it.
_BEGINS: Mapping[bool | None, str] = {True: "warm", False: "cold"}


def build_causes(
    study: StudySpec,
    runs: pd.DataFrame,
    costs: pd.DataFrame | None,
    facts: Mapping[str, Mapping[str, Any]],
    level: float,
    names: Mapping[str, str],
    rows: int | None = None,
) -> Causes | None:
    """Causes as they stand in findings.json, None if no part of any arm was measured.

    `runs` and `costs` are tidy tables, `facts` one nested mapping by arm, `names` the arms in words, `rows`
    how many each server holds.
    """
    if costs is None or costs.empty or runs.empty:
        return None
    of_cells = dict(iter(runs.groupby(["workload", "threads", "arm"], observed=True)))
    arms = filter(None, (*study.arms, study.twin))
    keys = (key for key in itertools.product(study.workloads, study.threads, arms) if key in of_cells)
    cells = list(filter(None, (_build_cell(study, key, of_cells[key], costs, facts, rows) for key in keys)))
    bases = {(cell.workload, cell.threads): cell for cell in cells if cell.arm == study.baseline}
    contrasts = [
        explanation.explain_contrast(base, treated, level, names)
        for treated in cells
        if treated.arm in study.treatments
        and (base := bases.get((treated.workload, treated.threads))) is not None
    ]
    return Causes(
        level=level,
        cells=tuple(summarize_cell(cell, level) for cell in cells),
        contrasts=tuple(contrasts),
        physics=tuple(operational_laws.check_physics(cells, study.baseline, level)),
    )


def set_aside(voids: pd.DataFrame) -> list[int]:
    """Thread levels with runs voided because their client had no core to spare."""
    if voids.empty:
        return []
    statement = voids.reasons.str.contains(CLIENT_USED, regex=False).astype(bool)
    return sorted({int(threads) for threads in voids.loc[statement, "threads"]})


def _build_cell(
    study: StudySpec,
    key: tuple[str, int, str],
    runs: pd.DataFrame,
    costs: pd.DataFrame,
    facts: Mapping[str, Mapping[str, Any]],
    rows: int | None,
) -> ArmCell | None:
    workload, _, arm = key
    by_block = runs.drop_duplicates("block", keep="last").set_index("block").sort_index()
    if not by_block.qps.gt(0).all():
        return None
    spent = by_block[["run_id"]].reset_index().merge(costs, on="run_id").set_index("block")
    parts = ((part, spent[spent.part == part]) for part in PARTS)
    by_part = {part: cost for part, cost in parts if len(cost) == len(by_block) and cost.cpu_us.notna().all()}
    arm_facts = facts.get(study.deployed(arm)) or {}
    needed = {"client", "server", *(["proxy"] if arm_facts.get("proxy") else [])}
    cores = find_fact(arm_facts, "machine", "cores") or math.nan
    turn_ms, data = by_block.turn_ms.iloc[0], study.arms[study.deployed(arm)].data
    return ArmCell(
        *(*key, not study.workloads[workload].rate, by_block.qps, by_block.steal_pct),
        busy=by_block.cpu_machine_pct.where(by_block.order == "runs") / 100 * cores,
        has_neighbour=bool(arm_facts.get("neighbour")),
        has_errors=bool(by_block[["ignored_errors", "reconnects"]].gt(0).any(axis=None)),
        turn_ms=None if pd.isna(turn_ms) else float(turn_ms),
        begins=_BEGINS.get(data.prewarm) if data is not None else None,
        engine=find_fact(arm_facts, "engine", "name"),
        fits=_is_in_memory(rows, arm_facts),
        costs=by_part,
        # A part that is not seen may be the one that is full.
        rooms=_core_groups(arm_facts, tuple(by_part)) if needed <= set(by_part) else (),
    )


def _is_in_memory(rows: int | None, facts: Mapping[str, Any]) -> bool:
    """True if a server's pool surely holds all rows: it has at least twice their size."""
    pool = str(find_fact(facts, "engine", "settings", "innodb_buffer_pool_size", "got"))
    return rows is not None and pool.isdigit() and int(pool) >= 2 * ROW_BYTES * rows


def _core_groups(facts: Mapping[str, Any], parts: Sequence[str]) -> tuple[tuple[tuple[str, ...], float], ...]:
    """Parts on each set of cores, and the number of cores; empty if the facts don't say."""
    if find_fact(facts, "site", "kind") != "local":
        return ()
    machine = find_fact(facts, "machine", "cores")
    shared: dict[tuple[Any, ...], list[str]] = {}
    sizes: dict[tuple[Any, ...], float] = {}
    for part in parts:
        cores, quota = (find_fact(facts, "cpu", part, limit) for limit in ("cores", "quota_cores"))
        count = len(cores) if cores else machine
        if count is None:
            return ()
        # A quota is a part's own, whatever else is on its cores.
        key = (part,) if quota else tuple(cores or ())
        shared.setdefault(key, []).append(part)
        sizes[key] = min(float(count), float(quota)) if quota else float(count)
    return tuple((tuple(mine), sizes[key]) for key, mine in shared.items())
