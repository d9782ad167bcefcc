"""Every check that a table of cells must pass, published ones and ours alike, each with its arithmetic.

A check takes cells, one row a printed number, as `core.source.Published` has them.
"""

from __future__ import annotations

import pandas as pd

from benchbook.compare import laws, levels, printed, tables, turns
from benchbook.core.cells import select
from benchbook.core.errors import given
from benchbook.core.findings import Check
from benchbook.core.source import Published

# sysbench prints latencies with two decimals.
PRINTED_MS = 0.01
# What a transaction takes that a window may cut through: not the slowest of all, which tells of one alone.
SLOW = ("latency_avg_ms", "latency_p99_ms")


def of_source(published: Published) -> list[Check]:
    """Run every check on the tables of a source."""
    source, cells = published.source, published.cells
    measured = cells[cells["role"] == "metric"]
    statements = {
        name: workload.statements for name, workload in source.workloads.items() if workload.statements
    }
    growths = {
        heading: (given(column.of), column.over)
        for heading, column in source.columns.items()
        if column.role == "growth"
    }
    return [
        *tables.equal_tables(measured, {name: arm.settings for name, arm in source.arms.items()}),
        *tables.repeated_cells(measured),
        *laws.littles_law(measured, statements),
        *(laws.percentile_grid(measured) if source.sysbench else []),
        *laws.statements_per_transaction(measured, statements),
        *printed.growth_base(cells, growths),
        *laws.latency_order(measured),
        *printed.rising_threads(measured),
        *levels.collapses(measured),
        *levels.scalability(measured),
        *tables.missing_cells(
            measured,
            compared_arms(published),
            {name: load.threads_stated for name, load in source.workloads.items()},
        ),
    ]


def of_runs(runs: pd.DataFrame) -> list[Check]:
    """Run the checks on our own runs, the `runs` table of read/tidy.py.

    The statements of a transaction are those of the whole workload, so a run that differs from the others
    shows. Little's law speaks of closed loops: runs with a `rate` are left out of it. Both leave out runs of
    turns: their printed mean carries the pauses, and their window cuts through transactions at both ends.
    """
    if runs.empty:
        return []
    sums = runs.groupby("workload")[["queries", "transactions"]].sum()
    statements = {
        name: line.queries / line.transactions for name, line in sums.iterrows() if line.transactions
    }
    cells = from_runs(runs)
    whole = runs[turns.orders(runs) == turns.RUNS]
    closed = from_runs(whole[whole["rate"] == 0] if "rate" in runs else whole)
    return [
        *tables.equal_tables(cells, {}),
        *laws.littles_law(closed, statements),
        *laws.percentile_grid(cells),
        *laws.statements_per_transaction(from_runs(whole), statements),
        *laws.latency_order(cells),
    ]


def from_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return our own runs as cells; each run is its own row, and only sysbench's mean latency is uncertain.

    It is rounded, and a window cuts through one transaction of each thread at both ends, which moves the mean
    by as large a share as a transaction has of the measured seconds: a slow one, since where a quota stops an
    arm, all its threads wait at once. `cut` is how large a share of a run's transactions those are.
    """
    metrics = [name for name in runs.columns if name in ("qps", "tps") or name.startswith("latency_")]
    runs = runs.assign(cut=(runs["threads"] / (runs["tps"] * runs["measured_s"])).where(runs["tps"] > 0, 0.0))
    slow = runs[[name for name in SLOW if name in runs]].max(axis=1)
    runs = runs.assign(slow_share=slow / 1000 / runs["measured_s"])
    ids = ["run_id", "arm", "workload", "threads", "block", "measured_s", "cut", "slow_share"]
    long = runs.melt(ids, metrics, "metric", "value")
    long["printed"] = [f"{value:.6g}" for value in long["value"]]
    long = long.assign(
        table=long["arm"] + " " + long["workload"],
        heading=long["metric"],
        half_unit=(PRINTED_MS / 2 + long["value"] * long["slow_share"]).where(
            long["metric"] == "latency_avg_ms", 0.0
        ),
        unit=None,
        role="metric",
    )
    long["row"] = long.groupby("table")["run_id"].transform(lambda ids: pd.factorize(ids)[0] + 1)
    return long.drop(columns=["run_id", "measured_s", "slow_share"])


def compared_arms(published: Published) -> list[tuple[str, str]]:
    """Return the pairs of arms that a claim of the source puts against each other."""
    found: dict[tuple[str, str], None] = {}
    for claim in published.source.claims.values():
        if claim.baseline is None or claim.treatment is None:
            continue
        sides = [
            select(select(published.cells, claim.cells), side)["arm"].dropna().unique()
            for side in (claim.baseline, claim.treatment)
        ]
        found |= dict.fromkeys((one, other) for one in sides[0] for other in sides[1] if one != other)
    return list(found)
