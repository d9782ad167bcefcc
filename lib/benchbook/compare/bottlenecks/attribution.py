"""Causes of effects: cost of each part of an arm, saturated cores, and their consequences.

QPS of a closed loop is the busy time of any part over its cost of a query. So where a part is full in an
arm, its cost says what can be served; where none is, latency does. A sentence is made by these rules alone,
and withheld where the intervals don't carry it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from benchbook.compare.bottlenecks import explanation, operational_laws
from benchbook.compare.bottlenecks.service_demand import PARTS, ArmCell, summarize_cell
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
    arms = (*study.arms, *([study.twin] if study.twin else []))
    cells = [
        cell
        for key in itertools.product(study.workloads, study.threads, arms)
        if key in of_cells
        and (cell := _build_cell(study, key, of_cells[key], costs, facts, rows)) is not None
    ]
    by_key = {(cell.workload, cell.threads, cell.arm): cell for cell in cells}
    contrasts = [
        explanation.explain_contrast(base, treated, level, names)
        for treated in cells
        if treated.arm in study.treatments
        and (base := by_key.get((treated.workload, treated.threads, study.baseline))) is not None
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
    sort_index = runs.drop_duplicates("block", keep="last").set_index("block").sort_index()
    if not sort_index.qps.gt(0).all():
        return None
    spent = sort_index[["run_id"]].reset_index().merge(costs, on="run_id").set_index("block")
    observations = ((part, spent[spent.part == part]) for part in PARTS)
    by_part = {
        part: item
        for part, item in observations
        if len(item) == len(sort_index) and item.cpu_us.notna().all()
    }
    messages = facts.get(study.deployed(arm)) or {}
    is_closed = not study.workloads[workload].rate
    needed = {"client", "server", *(["proxy"] if messages.get("proxy") else [])}
    # A part that is not seen may be the one that is full.
    rooms = _core_groups(messages, tuple(by_part)) if needed <= set(by_part) else ()
    busy = (
        sort_index.cpu_machine_pct.where(sort_index.order == "runs")
        / 100
        * (_machine_facts(messages).get("cores") or math.nan)
    )
    turn_ms, data = sort_index.turn_ms.iloc[0], study.arms[study.deployed(arm)].data
    return ArmCell(
        *(*key, is_closed),
        *(sort_index.qps, sort_index.steal_pct, busy),
        has_neighbour=bool(messages.get("neighbour")),
        has_errors=bool(sort_index[["ignored_errors", "reconnects"]].gt(0).any(axis=None)),
        turn_ms=None if pd.isna(turn_ms) else float(turn_ms),
        begins=_BEGINS.get(data.prewarm) if data is not None else None,
        engine=(messages.get("engine") or {}).get("name"),
        fits=_is_in_memory(rows, messages),
        costs=by_part,
        rooms=rooms,
    )


def _is_in_memory(rows: int | None, facts: Mapping[str, Any]) -> bool:
    """True if a server's pool surely holds all rows: it has at least twice their size."""
    request = ((facts.get("engine") or {}).get("settings") or {}).get("innodb_buffer_pool_size") or {}
    pool = str(request.get("got"))
    return rows is not None and pool.isdigit() and int(pool) >= 2 * ROW_BYTES * rows


def _machine_facts(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    return facts.get("machine") or {}


def _core_groups(facts: Mapping[str, Any], parts: Sequence[str]) -> tuple[tuple[tuple[str, ...], float], ...]:
    """Parts on each set of cores, and the number of cores; empty if the facts don't say."""
    if (facts.get("site") or {}).get("kind") != "local":
        return ()
    machine = _machine_facts(facts).get("cores")
    shared: dict[tuple[Any, ...], list[str]] = {}
    sizes: dict[tuple[Any, ...], float] = {}
    for part in parts:
        limits = (facts.get("cpu") or {}).get(part) or {}
        cores, quota = limits.get("cores"), limits.get("quota_cores")
        count = len(cores) if cores else machine
        if count is None:
            return ()
        # A quota is a part's own, whatever else is on its cores.
        key = (part,) if quota else tuple(cores or ())
        shared.setdefault(key, []).append(part)
        sizes[key] = min(float(count), float(quota)) if quota else float(count)
    return tuple((tuple(mine), sizes[key]) for key, mine in shared.items())
