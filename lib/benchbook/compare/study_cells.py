"""The cells of a study under the keys that documents use, and their values block by block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchbook.compare.claims import LOADING
from benchbook.core.cells import PUT_TOGETHER, both_metrics
from benchbook.core.claim import Selector
from benchbook.core.study import Study

OF_THREADS = ("threads", "threads_per_process", "threads_per_server")
OF_WORKLOAD = ("range_size",)
CELL = ["name", "workload", "threads"]
# What documents print, the column of `runs` that has it, and what that is multiplied by.
COLUMNS = {
    "qps": ("qps", 1),
    "tps": ("tps", 1),
    "qps_min": ("lowest_qps", 1),
    "latency_avg_ms": ("latency_avg_ms", 1),
    "latency_p95_ms": ("latency_p95_ms", 1),
    "latency_p99_ms": ("latency_p99_ms", 1),
    "cpu_proxy_pct": ("cpu_proxy_cores", 100),
    "cpu_tidb_pct": ("cpu_tidb_cores", 100),
    "cpu_tikv_pct": ("cpu_tikv_cores", 100),
    "memory_proxy_mb": ("memory_proxy_mib", 1.048576),
}
# What is known of each second of a run.
SECONDS = ("qps", "tps")


class Unfit(ValueError):
    """A claim that a study can't be asked, or whose numbers it does not have; the text says why."""


def cells(study: Study) -> pd.DataFrame:
    """Return every cell of a study, without its twin: name, workload, threads, and the keys of documents."""
    rows = []
    for name, arm in study.arms.items():
        role = arm.role(name)
        for workload, one in study.workloads.items():
            for threads in study.threads:
                rows.append(
                    {
                        "name": name,
                        "workload": workload,
                        "threads": threads,
                        "script": study.script(workload),
                        "range_size": one.range_size,
                        "threads_per_process": threads // arm.clients,
                        "threads_per_server": threads // arm.servers,
                        **role,
                    }
                )
    return pd.DataFrame(rows)


def chosen(table: pd.DataFrame, selector: Selector | None) -> pd.DataFrame:
    """Return the cells that a selector means; Unfit where the study lacks a key or a value of it.

    Of several workloads one is enough, because a study may measure a part of a document's.
    """
    for key, wanted in (selector or {}).items():
        any_of = wanted if isinstance(wanted, tuple) else (wanted,)
        also = {"arm": "name", "workload": "script"}.get(key)
        if key not in table:
            raise Unfit(f"the study does not vary {key.replace('_', ' ')}")
        present = {one for column in (key, also) if column for one in table[column]}
        missing = [str(one) for one in any_of if one not in present]
        if missing and (key != "workload" or len(missing) == len(any_of)):
            raise Unfit(f"the study has no {key.replace('_', ' ')} {' and '.join(missing)}")
        is_one = table[key].isin(any_of)
        table = table[is_one | table[also].isin(any_of) if also else is_one]
    return table


def is_known(metric: str, across: str | None) -> bool:
    """Tell whether a study has a metric: for each run, for each second, or for the loading."""
    names = both_metrics(metric)
    if metric == LOADING:
        return across is None
    known = SECONDS if across == "second" else COLUMNS
    return across in (None, "second") and all(name in known for name in names)


def logarithms(
    runs: pd.DataFrame, metric: str, by: str | None, intervals: pd.DataFrame | None
) -> pd.DataFrame:
    """Return ln of a metric, one row a block, one column a cell; `by` puts the seconds of a run together.

    NaN where a run has no such number. Unfit where a number is zero or below.
    """
    values = _of_runs(runs, metric) if by is None else _of_seconds(runs, metric, by, intervals)
    known = runs[["block", "workload", "threads"]].assign(name=runs["arm"], value=values.astype(float))
    if not known["value"].notna().any():
        raise Unfit(f"no run has {metric.replace('_', ' ')}")
    if (known["value"] <= 0).any():
        worst = known[known["value"] <= 0].iloc[0]
        raise Unfit(
            f"{metric.replace('_', ' ')} is {worst['value']:g} in block {worst['block']} "
            f"({worst['name']}, {worst['workload']}, {worst['threads']} threads), so no ratio can be taken"
        )
    table = known.pivot_table(index="block", columns=CELL, values="value", aggfunc="mean", dropna=False)
    return np.log(table)


def _of_runs(runs: pd.DataFrame, metric: str) -> pd.Series:
    names = both_metrics(metric)
    if not {COLUMNS[name][0] for name in names} <= set(runs):
        return pd.Series(np.nan, index=runs.index)
    first, *rest = (runs[COLUMNS[name][0]].astype(float) * COLUMNS[name][1] for name in names)
    return first / rest[0] if rest else first


def _of_seconds(runs: pd.DataFrame, metric: str, by: str, intervals: pd.DataFrame | None) -> pd.Series:
    if "order" in runs and (runs["order"] == "turns").any():
        raise Unfit("in turns a second belongs to several arms, so it says nothing of one of them")
    if intervals is None or intervals.empty:
        raise Unfit("the seconds of the runs are not there")
    counted = intervals[~intervals["is_discarded"].astype(bool)]
    together = counted.groupby("run_id")[metric].agg(PUT_TOGETHER[by])
    return runs["run_id"].map(together)


def loading(study: Study, loads: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return ln of the seconds that loading took, as `logarithms` does; it is timed once, so in one row."""
    known = {arm: float(load["seconds"]) for arm, load in loads.items() if load.get("seconds")}
    if not known:
        raise Unfit("loading was not timed")
    columns = pd.MultiIndex.from_tuples(
        [
            (arm, workload, threads)
            for arm in known
            for workload in study.workloads
            for threads in study.threads
        ],
        names=CELL,
    )
    return pd.DataFrame([[np.log(known[arm]) for arm, _, _ in columns]], columns=columns, index=[1])
