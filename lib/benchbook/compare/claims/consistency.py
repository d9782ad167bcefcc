"""Every check that a table of cells must pass, published ones and ours alike, each with its arithmetic.

A check takes printed numbers, as `core.source.Published` has them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from benchbook.compare.bottlenecks import operational_laws
from benchbook.compare.stats import scaling
from benchbook.compare.text.worked_arithmetic import (
    build_check,
    check_number,
    render_detail,
    summarize_checks,
)
from benchbook.core.artifacts.findings import CellCheck
from benchbook.core.published.source import Number, Published
from benchbook.core.published.table_cells import THREADS, describe_place, select_numbers
from benchbook.core.study.interleaving import RUNS
from benchbook.core.util.errors import require_value
from benchbook.core.util.number_format import format_plain

# sysbench prints latencies with two decimals.
PRINTED_MS = 0.01
# What a transaction takes that a window may cut through: not the slowest of all, which tells of one alone.
SLOW = ("latency_avg_ms", "latency_p99_ms")


def of_source(published: Published) -> list[CellCheck]:
    """Run every check on the tables of a source."""
    source, numbers = published.source, published.numbers
    measured = [one for one in numbers if one.role == "metric"]
    statements = {
        name: workload.statements for name, workload in source.workloads.items() if workload.statements
    }
    growths = {
        heading: (require_value(column.of), column.over)
        for heading, column in source.columns.items()
        if column.role == "growth"
    }
    checks = [
        *equal_tables(measured, {name: arm.settings for name, arm in source.arms.items()}),
        *repeated_cells(measured),
        *operational_laws.littles_law(measured, statements),
        *(operational_laws.percentile_grid(measured) if source.sysbench else []),
        *operational_laws.statements_per_transaction(measured, statements),
        *growth_base(numbers, growths),
        *operational_laws.latency_order(measured),
        *rising_threads(measured),
        *scaling.find_collapses(measured),
        *scaling.check_scalability(measured),
        *missing_cells(
            measured,
            compared_arms(published),
            {name: load.threads_stated for name, load in source.workloads.items()},
        ),
    ]
    return _idle_in_one(checks)


def _idle_in_one(checks: Sequence[CellCheck]) -> list[CellCheck]:
    """Checks with those that had nothing to check in one line at the end."""
    idle = [one for one in checks if one.passed is None and one.where == "nowhere"]
    if len(idle) < 2:
        return list(checks)
    names = ", ".join(dict.fromkeys(one.check for one in idle))
    line = build_check("nothing to check", None, "nowhere", f"No table has the numbers for these: {names}.")
    return [*(one for one in checks if one not in idle), line]


def of_runs(runs: pd.DataFrame) -> list[CellCheck]:
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
    whole = runs[runs.order == RUNS]
    closed = from_runs(whole[whole.rate == 0])
    return [
        *equal_tables(numbers, {}),
        *operational_laws.littles_law(closed, statements),
        *operational_laws.percentile_grid(numbers),
        *operational_laws.statements_per_transaction(from_runs(whole), statements),
        *operational_laws.latency_order(numbers),
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
    share = runs[list(SLOW)].max(axis=1) / 1000 / runs.measured_s
    keys = ["arm", "workload", "threads", "block"]
    rows = runs.groupby(table).cumcount() + 1
    each = list(zip(table, rows, runs[keys].to_dict("records"), cut, share, strict=True))
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
            dict.fromkeys(one.key("arm") for one in select_numbers(published.numbers, claim.cells, side))
            for side in (claim.baseline, claim.treatment)
        ]
        pairs = ((one, other) for one in sides[0] for other in sides[1])
        found |= dict.fromkeys(
            (one, other) for one, other in pairs if None not in (one, other) and one != other
        )
    return list(found)


NEARLY_EQUAL = 0.5
FEWEST = 4


def equal_tables(numbers: Sequence[Number], settings: Mapping[str, Mapping[str, Any]]) -> list[CellCheck]:
    """Find tables, or arms of a table, that share their numbers.

    `settings` has the stated factors of each arm. Two of one setting may be equal: one measurement printed
    twice. Where a factor differs, equal numbers mean that one of them is not what it says.
    """
    name, found, n = "equal tables", [], 0
    for one, other in itertools.combinations(_build_series(numbers, settings), 2):
        common = one.numbers.keys() & other.numbers.keys()
        if len(common) < FEWEST:
            continue
        n += 1
        equal = sum(one.numbers[place] == other.numbers[place] for place in common)
        size = max(len(one.numbers), len(other.numbers))
        if equal / size < NEARLY_EQUAL:
            continue
        differ = sorted(
            f"{key.replace('_', ' ')} ({one.setting[key]}, {other.setting[key]})"
            for key in one.setting.keys() & other.setting.keys() - {"arm"}
            if one.setting[key] != other.setting[key]
        )
        is_stated = len(one.setting) > 2 and len(other.setting) > 2
        is_same = not differ and (is_stated or one.setting["arm"] == other.setting["arm"])
        values = {"equal": equal, "size": size, "is_same": is_same, "differ": differ}
        text = render_detail("equal tables", one=one.setting, other=other.setting, **values)
        where, tables = f"{one.name} and {other.name}", (one.table, other.table)
        found.append(build_check(name, is_same and equal == size, where, text, tables))
    return found or summarize_checks(name, n, "Pairs with fewer than half of their numbers in common")


def repeated_cells(numbers: Sequence[Number]) -> list[CellCheck]:
    """Find cells of one arm that two tables print with different values."""
    name, found, n = "repeated cells", [], 0
    seen: dict[_Place, Number] = {}
    for one in numbers:
        first = seen.setdefault(_place_of_number(one, one.at), one) if one.is_given else one
        if first is one or first.table == one.table:
            continue
        n += 1
        if first.value != one.value:
            text = f"{one.metric} is {first.printed} in {first.table} and {one.printed} in {one.table}."
            found.append(build_check(name, False, describe_place(one.at), text, (first.table, one.table)))
    if not n:
        return [build_check(name, None, "nowhere", "Nothing to check: no cell of an arm is printed twice.")]
    text = f"Numbers printed twice that agree: {n - len(found)}."
    return found + ([build_check(name, True, "everywhere else", text)] if n > len(found) else [])


def missing_cells(
    numbers: Sequence[Number], compared: Sequence[tuple[str, str]], stated: Mapping[str, Sequence[int]]
) -> list[CellCheck]:
    """Find blanks, cells that one of two compared arms lacks, and thread counts announced but not printed.

    `compared` has pairs of arms; `stated` the thread counts that the document says were run, by workload.
    """
    name = "missing cells"
    found = [
        build_check(name, False, f"{one.table}, row {one.row}", f"{one.heading} is blank.", [one.table])
        for one in numbers
        if not one.is_given
    ]
    measured = [one for one in numbers if one.is_given and one.key("arm") is not None]
    groups: dict[_Place, list[Number]] = {}
    for one in measured:
        factors = {key: value for key, value in one.at.items() if key not in {"arm", "second", *THREADS}}
        groups.setdefault(_place_of_number(None, factors), []).append(one)
    for group in groups.values():
        levels: dict[str, set[int]] = {}
        for one in group:
            levels.setdefault(one.at["arm"], set()).update(_thread_levels([one]))
        for arm, other in dict.fromkeys((*compared, *((second, first) for first, second in compared))):
            if arm in levels and (lack := levels.get(other, set()) - levels[arm]):
                text = f"No numbers at {_format_levels(lack)} threads, where {other} has them."
                tables = [one.table for one in group if one.at["arm"] == arm]
                found.append(build_check(name, False, f"{arm}, {group[0].key('workload')}", text, tables))
    for workload, threads in stated.items():
        part = [one for one in measured if one.key("workload") == workload]
        if lack := set(threads) - _thread_levels(part):
            text = f"No numbers at {_format_levels(lack)} threads, which the document says were run."
            found.append(build_check(name, False, workload, text, [one.table for one in part]))
    return found or [
        build_check(name, True, "everywhere", "No blank, and compared arms have the same cells.")
    ]


def _format_levels(levels: set[int]) -> str:
    return ", ".join(map(str, sorted(levels)))


def _thread_levels(numbers: Sequence[Number]) -> set[int]:
    return {one.threads for one in numbers if one.key("threads") is not None}


_Place = frozenset[tuple[str, str]]


def _place_of_number(one: Number | None, keys: Mapping[str, Any]) -> _Place:
    """Key of a number by some of its keys, as it is printed."""
    metric = {("metric", one.metric)} if one else set()
    return frozenset(metric | {(key, str(value)) for key, value in keys.items()})


class _Series(NamedTuple):
    """The numbers of one arm in one table, by metric and place."""

    name: str
    table: str
    setting: dict[str, Any]
    numbers: dict[_Place, float]


def _build_series(numbers: Sequence[Number], settings: Mapping[str, Mapping[str, Any]]) -> list[_Series]:
    arms: dict[str, set[str]] = {}
    groups: dict[tuple[str, str, str], dict[_Place, float]] = {}
    for one in numbers:
        if one.is_given and (arm := one.key("arm")) is not None:
            arms.setdefault(one.table, set()).add(arm)
            rest = {key: value for key, value in one.at.items() if key not in ("arm", "workload")}
            own = groups.setdefault((one.table, arm, one.key("workload")), {})
            own[_place_of_number(one, rest)] = one.value
    return [
        _Series(
            table if len(arms[table]) == 1 else f"{table} ({arm})",
            table,
            {"arm": arm, "workload": workload, **settings.get(arm, {})},
            own,
        )
        for (table, arm, workload), own in groups.items()
    ]


def growth_base(
    numbers: Sequence[Number], growths: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> list[CellCheck]:
    """Recompute printed growths in percent against both bases, and name the one they were divided by.

    `growths` maps a heading to (metric that grew, keys of the cell it grew over).
    """
    name, found, unknown, n = "base of percentages", [], [], 0
    for heading, (metric, over) in growths.items():
        for one in numbers:
            if one.heading != heading or not one.is_given:
                continue
            group = [other for other in numbers if (other.table, other.metric) == (one.table, metric)]
            new, old = _expected_value(group, one, {}), _expected_value(group, one, over)
            if new is None or old is None or all(one.key(key) == value for key, value in over.items()):
                continue
            if not old or not new:
                ends = f"from {format_plain(old)} to {format_plain(new)}"
                text = f"printed {one.printed} %, {ends}: no growth over 0."
                unknown.append(check_number(name, None, one, text))
                continue
            n += 1
            by_old, by_new = 100 * (new / old - 1), 100 * (1 - old / new)
            # "6 %" beside "5.95 %" was rounded to its own places, not to those of its column.
            step = max(2 * one.half_unit, 10.0 ** -len(one.printed.partition(".")[2]))
            fits = [_is_rounding(value, one.value, step) for value in (by_old, by_new)]
            if not fits[0]:
                shares = {"by_old": by_old / 100, "by_new": by_new / 100, "fits_new": fits[1]}
                found.append(
                    check_number(
                        name, False, one, render_detail("growth", one=one, new=new, old=old, **shares)
                    )
                )
    return [
        *found,
        *unknown,
        *summarize_checks(
            name, n - len(found), "Percentages divided by the old value, as they should be", len(found)
        ),
    ]


def rising_threads(numbers: Sequence[Number]) -> list[CellCheck]:
    """Check that thread counts rise from row to row, wherever all other keys of a table are the same."""
    name, found, n = "rising thread counts", [], 0
    tables: dict[tuple[str, _Place], dict[int, Any]] = {}
    for one in numbers:
        if (threads := one.key("threads")) is not None:
            rest = {key: value for key, value in one.at.items() if key not in THREADS}
            tables.setdefault((one.table, _place_of_number(None, rest)), {}).setdefault(one.row, threads)
    for (table, _), rows in tables.items():
        levels = list(rows.values())
        n += 1
        if any(after < before for before, after in itertools.pairwise(levels)):
            text = f"In their printed order: {', '.join(map(str, levels))}."
            found.append(build_check(name, False, table, text, [table]))
    return [*found, *summarize_checks(name, n - len(found), "Series in order", len(found))]


def _is_rounding(value: float, printed: float, step: float) -> bool:
    """True if a number, rounded or cut, is the printed one."""
    return abs(value - printed) <= step / 2 + 1e-9 or (
        0 <= abs(value) - abs(printed) < step and value * printed >= 0
    )


def _expected_value(group: Sequence[Number], one: Number, over: Mapping[str, Any]) -> float | None:
    wanted = {**one.at, **over}
    fits = (
        other for other in group if all(other.key(key) == wanted.get(key) for key in (*wanted, *other.at))
    )
    return next((other.value for other in fits), None)
