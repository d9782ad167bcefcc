"""Every check that a table of cells must pass, published ones and ours alike, each with its arithmetic.

A check takes printed numbers, as `core.source.Published` has them.
"""

from __future__ import annotations

import pandas as pd

from benchbook.compare import laws, scaling, tables, turns
from benchbook.core.cells import select
from benchbook.core.errors import given
from benchbook.core.findings import Check
from benchbook.core.source import Number, Published

# sysbench prints latencies with two decimals.
PRINTED_MS = 0.01
# What a transaction takes that a window may cut through: not the slowest of all, which tells of one alone.
SLOW = ("latency_avg_ms", "latency_p99_ms")


def of_source(published: Published) -> list[Check]:
    """Run every check on the tables of a source."""
    source, numbers = published.source, published.numbers
    measured = [one for one in numbers if one.role == "metric"]
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
        *tables.growth_base(numbers, growths),
        *laws.latency_order(measured),
        *tables.rising_threads(measured),
        *scaling.collapses(measured),
        *scaling.scalability(measured),
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
    numbers = from_runs(runs)
    whole = runs[turns.orders(runs) == turns.RUNS]
    closed = from_runs(whole[whole.rate == 0] if "rate" in runs else whole)
    return [
        *tables.equal_tables(numbers, {}),
        *laws.littles_law(closed, statements),
        *laws.percentile_grid(numbers),
        *laws.statements_per_transaction(from_runs(whole), statements),
        *laws.latency_order(numbers),
    ]


def from_runs(runs: pd.DataFrame) -> list[Number]:
    """Return our own runs as numbers; each run is its own row, and only sysbench's mean latency is uncertain.

    It is rounded, and a window cuts through one transaction of each thread at both ends, which moves the mean
    by as large a share as a transaction has of the measured seconds: a slow one, since where a quota stops an
    arm, all its threads wait at once. `cut` is how large a share of a run's transactions those are.
    """
    metrics = [name for name in runs.columns if name in ("qps", "tps") or name.startswith("latency_")]
    table = runs.arm + " " + runs.workload
    cut = (runs.threads / (runs.tps * runs.measured_s)).where(runs.tps > 0, 0.0)
    share = runs[[name for name in SLOW if name in runs]].max(axis=1) / 1000 / runs.measured_s
    keys = ["arm", "workload", "threads", "block"]
    known = zip(
        table, runs.groupby(table).cumcount() + 1, runs[keys].to_dict("records"), cut, share, strict=True
    )
    each = list(known)
    found = []
    for metric in metrics:
        is_mean = metric == "latency_avg_ms"
        for (name, row, at, own_cut, own_share), value in zip(each, runs[metric].astype(float), strict=True):
            half = PRINTED_MS / 2 + value * own_share if is_mean else 0.0
            text = f"{value:.6g}"
            found.append(Number(name, row, metric, metric, value, text, half, None, "metric", at, own_cut))
    return found


def compared_arms(published: Published) -> list[tuple[str, str]]:
    """Return the pairs of arms that a claim of the source puts against each other."""
    found: dict[tuple[str, str], None] = {}
    for claim in published.source.claims.values():
        if claim.baseline is None or claim.treatment is None:
            continue
        sides = [
            dict.fromkeys(one.key("arm") for one in select(published.numbers, claim.cells, side))
            for side in (claim.baseline, claim.treatment)
        ]
        pairs = ((one, other) for one in sides[0] for other in sides[1])
        found |= dict.fromkeys(
            (one, other) for one, other in pairs if None not in (one, other) and one != other
        )
    return list(found)
