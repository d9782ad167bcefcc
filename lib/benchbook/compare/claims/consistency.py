"""Every check that a table of cells must pass, published ones and ours alike, each with its arithmetic."""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from benchbook.core.util.grouping import group_by
from benchbook.core.util.number_format import format_plain

# sysbench prints latencies with two decimals.
PRINTED_MS = 0.01
# What a transaction takes that a window may cut through: not the slowest of all, which tells of one alone.
SLOW = ("latency_avg_ms", "latency_p99_ms")


def of_source(published: Published) -> list[CellCheck]:
    """Run every check on the tables of a source."""
    source, numbers = published.source, published.numbers
    measured = [number for number in numbers if number.role == "metric"]
    statements = {name: load.statements for name, load in source.workloads.items() if load.statements}
    growths = {
        heading: (require_value(column.of), column.over)
        for heading, column in source.columns.items()
        if column.role == "growth"
    }
    stated = {name: load.threads_stated for name, load in source.workloads.items()}
    equal = equal_tables(measured, {name: arm.settings for name, arm in source.arms.items()})
    checks = [
        *equal,
        *shared_columns(measured, equal),
        *repeated_cells(measured),
        *operational_laws.littles_law(measured, statements),
        *(operational_laws.percentile_grid(measured) if source.sysbench else []),
        *operational_laws.statements_per_transaction(measured, statements),
        *growth_base(numbers, growths),
        *operational_laws.latency_order(measured),
        *rising_threads(measured),
        *scaling.find_collapses(measured),
        *scaling.check_scalability(measured),
        *missing_cells(measured, compared_arms(published), stated),
    ]
    return _join_idle(checks)


def _join_idle(checks: list[CellCheck]) -> list[CellCheck]:
    """Checks with those that had nothing to check in one line at the end."""
    idle = [check for check in checks if check.passed is None and check.where == "nowhere"]
    if len(idle) < 2:
        return checks
    names = ", ".join(dict.fromkeys(cell_check.check for cell_check in idle))
    line = build_check("nothing to check", None, "nowhere", f"No table has the numbers for these: {names}.")
    return [*(check for check in checks if check not in idle), line]


def of_runs(runs: pd.DataFrame) -> list[CellCheck]:
    """Run the checks on our own runs, the `runs` table of read/tidy.py.

    The statements of a transaction are those of the whole workload, so a run that differs from the others
    shows. Little's law speaks of closed loops: runs with a `rate` are left out of it. Both leave out runs of
    turns: their printed mean carries the pauses, and their window cuts through transactions at both ends.
    """
    if runs.empty:
        return []
    sums = runs.groupby("workload")[["queries", "transactions"]].sum()
    sums = sums[sums.transactions != 0]
    statements = (sums.queries / sums.transactions).to_dict()
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
    """Our own runs as numbers; each run is its own row, and only sysbench's mean latency is uncertain.

    It is rounded, and a window cuts through one transaction of each thread at both ends, which moves the mean
    by the share that a slow transaction has of the measured seconds. `cut` is their share of transactions.
    """
    metrics = [name for name in runs.columns if name in ("qps", "tps") or name.startswith("latency_")]
    table = runs.arm + " " + runs.workload
    cut = (runs.threads / (runs.tps * runs.measured_s)).where(runs.tps > 0, 0.0)
    share = runs[list(SLOW)].max(axis=1) / 1000 / runs.measured_s
    keys = ["arm", "workload", "threads", "block"]
    rows = runs.groupby(table).cumcount() + 1
    each = list(zip(table, rows, runs[keys].to_dict("records"), cut, share, strict=True))
    numbers = []
    for metric in metrics:
        is_mean, values = metric == "latency_avg_ms", runs[metric].astype(float)
        for (name, row, at, cut_share, uncertain_share), value in zip(each, values, strict=True):
            half, text = PRINTED_MS / 2 + value * uncertain_share if is_mean else 0.0, f"{value:.6g}"
            measured = (metric, metric, value, text, half, None, "metric")
            numbers.append(Number(name, row, *measured, at, cut_share))
    return numbers


def compared_arms(published: Published) -> list[tuple[str, str]]:
    """Pairs of arms that a claim of the source puts against each other."""
    results: dict[tuple[str, str], None] = {}
    for claim in published.source.claims.values():
        if claim.baseline is None or claim.treatment is None:
            continue
        sides = (
            select_numbers(published.numbers, claim.cells, side) for side in (claim.baseline, claim.treatment)
        )
        pairs = itertools.product(*({number.key("arm"): None for number in side} for side in sides))
        results |= dict.fromkeys(pair for pair in pairs if None not in pair and pair[0] != pair[1])
    return list(results)


NEARLY_EQUAL = 0.5
FEWEST = 4


def equal_tables(numbers: Sequence[Number], settings: Mapping[str, Mapping[str, Any]]) -> list[CellCheck]:
    """Find tables, or arms of a table, that share their numbers, though the `settings` of an arm differ."""
    name, result, n = "equal tables", [], 0
    for series, other in itertools.combinations(_build_series(numbers, settings), 2):
        common = series.numbers.keys() & other.numbers.keys()
        if len(common) < FEWEST:
            continue
        n += 1
        equal = sum(series.numbers[place] == other.numbers[place] for place in common)
        size = max(len(series.numbers), len(other.numbers))
        if equal / size < NEARLY_EQUAL:
            continue
        differ = _list_differences({**series.setting, "arm": ""}, {**other.setting, "arm": ""})
        is_stated = len(series.setting) > 2 and len(other.setting) > 2
        is_same = not differ and (is_stated or series.setting["arm"] == other.setting["arm"])
        values = {"equal": equal, "size": size, "is_same": is_same, "differ": differ}
        text = render_detail("equal tables", one=series.setting, other=other.setting, **values)
        where, tables = f"{series.name} and {other.name}", (series.table, other.table)
        result.append(build_check(name, is_same and equal == size, where, text, tables))
    return result or summarize_checks(name, n, "Pairs with fewer than half of their numbers in common")


def shared_columns(numbers: Sequence[Number], reported: Sequence[CellCheck] = ()) -> list[CellCheck]:
    """Find columns whose numbers two tables share, though a key that is constant in each of them differs.

    `reported` are checks of tables that were found to be equal already.
    """
    tables_reported = [{*check.tables} for check in reported]
    shared: dict[tuple[str, str], list[str]] = {}
    differing: dict[tuple[str, str], str] = {}
    for column, other in itertools.combinations(_build_columns(numbers), 2):
        tables = (column.table, other.table)
        differ = _list_differences(column.setting, other.setting)
        if column.name != other.name or {*tables} in [{column.table}, *tables_reported] or not differ:
            continue
        if column.numbers == other.numbers and len({*column.numbers.values()}) >= FEWEST:
            shared.setdefault(tables, []).append(f"{column.name} ({len(column.numbers)} numbers)")
            differing[tables] = ", ".join(differ)
    checks = []
    for tables, metrics in shared.items():
        text = f"Equal in {', '.join(metrics)}. They should differ in {differing[tables]}, so these were "
        text += "measured once, or one of them is not what it is called."
        checks.append(build_check("equal tables", False, " and ".join(tables), text, tables))
    return checks


def _list_differences(setting: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Keys of both whose values differ, with the two values."""
    return sorted(
        f"{key.replace('_', ' ')} ({setting[key]}, {other[key]})"
        for key in setting.keys() & other.keys()
        if setting[key] != other[key]
    )


def repeated_cells(numbers: Sequence[Number]) -> list[CellCheck]:
    """Find cells of one arm that two tables print with different values."""
    name, result, n = "repeated cells", [], 0
    printed_first: dict[_Place, Number] = {}
    for number in numbers:
        if not number.is_given:
            continue
        first = printed_first.setdefault(_rest_of_place(number, (), number.metric), number)
        if first.table == number.table:
            continue
        n += 1
        if first.value != number.value:
            values = f"{first.printed} in {first.table} and {number.printed} in {number.table}"
            text, tables = f"{number.metric} is {values}.", (first.table, number.table)
            result.append(build_check(name, False, describe_place(number.at), text, tables))
    if not n:
        return [build_check(name, None, "nowhere", "Nothing to check: no cell of an arm is printed twice.")]
    text = f"Numbers printed twice that agree: {n - len(result)}."
    return result + ([build_check(name, True, "everywhere else", text)] if n > len(result) else [])


def missing_cells(
    numbers: Sequence[Number], compared: Sequence[tuple[str, str]], stated: Mapping[str, Sequence[int]]
) -> list[CellCheck]:
    """Find blanks, cells that one of two compared arms lacks, and thread counts announced but not printed.

    `compared` has pairs of arms; `stated` the thread counts that the document says were run, by workload.
    """
    measured = [cell for cell in numbers if cell.is_given and cell.key("arm") is not None]
    checks = []
    for cell in numbers:
        if not cell.is_given:
            where, text = f"{cell.table}, row {cell.row}", f"{cell.heading} is blank."
            checks.append(build_check(_MISSING, False, where, text, [cell.table]))
    checks += _missing_in_arms(measured, compared)
    for workload, threads in stated.items():
        part = [cell for cell in measured if cell.key("workload") == workload]
        if lack := set(threads) - _thread_levels(part):
            text = f"No numbers at {_format_levels(lack)} threads, which the document says were run."
            checks.append(build_check(_MISSING, False, workload, text, [cell.table for cell in part]))
    text = "No blank, and compared arms have the same cells."
    return checks or [build_check(_MISSING, True, "everywhere", text)]


_MISSING = "missing cells"


def _missing_in_arms(measured: Sequence[Number], compared: Sequence[tuple[str, str]]) -> Iterator[CellCheck]:
    """Thread levels that one of two compared arms lacks under the same load."""
    loads = group_by(measured, lambda number: _rest_of_place(number, {"arm", "second", *THREADS}))
    both_ways = dict.fromkeys((*compared, *((second, first) for first, second in compared)))
    for group in loads.values():
        by_arm = group_by(group, lambda number: number.at["arm"])
        for arm, other in both_ways:
            own, its = (_thread_levels(by_arm.get(name, ())) for name in (arm, other))
            if arm in by_arm and (lack := its - own):
                text = f"No numbers at {_format_levels(lack)} threads, where {other} has them."
                tables = [cell.table for cell in by_arm[arm]]
                yield build_check(_MISSING, False, f"{arm}, {group[0].key('workload')}", text, tables)


def _format_levels(levels: set[int]) -> str:
    return ", ".join(map(str, sorted(levels)))


def _thread_levels(numbers: Sequence[Number]) -> set[int]:
    return {number.threads for number in numbers if number.key("threads") is not None}


_Place = frozenset[tuple[str, str]]


def _rest_of_place(number: Number, without: Collection[str], metric: str = "") -> _Place:
    """Key of a number by its other keys, as they are printed, and by a metric."""
    rest = {(key, str(value)) for key, value in number.at.items() if key not in without}
    return frozenset({*rest, ("metric", metric)})


class _Series(NamedTuple):
    """The numbers of one arm, or of one metric, in one table, by metric and place."""

    name: str
    table: str
    setting: dict[str, Any]
    numbers: dict[_Place, float]


def _build_series(numbers: Sequence[Number], settings: Mapping[str, Mapping[str, Any]]) -> list[_Series]:
    arms: dict[str, set[str]] = {}
    groups: dict[tuple[str, str, str], dict[_Place, float]] = {}
    for number in numbers:
        if number.is_given and (arm := number.key("arm")) is not None:
            arms.setdefault(number.table, set()).add(arm)
            series = groups.setdefault((number.table, arm, number.key("workload")), {})
            series[_rest_of_place(number, ("arm", "workload"), number.metric)] = number.value
    return [
        _Series(
            table if len(arms[table]) == 1 else f"{table} ({arm})",
            table,
            {"arm": arm, "workload": workload, **settings.get(arm, {})},
            group,
        )
        for (table, arm, workload), group in groups.items()
    ]


def _build_columns(numbers: Sequence[Number]) -> Iterator[_Series]:
    """Yield the numbers of each metric in each table, beside the keys that all of them share."""
    printed = (number for number in numbers if number.is_given)
    for (table, metric), members in group_by(printed, lambda number: (number.table, number.metric)).items():
        first, *others = (number.at for number in members)
        shared = {
            key: value
            for key, value in first.items()
            if key not in THREADS and all(at.get(key) == value for at in others)
        }
        values = {_rest_of_place(number, shared): number.value for number in members}
        yield _Series(metric, table, shared, values)


def growth_base(
    numbers: Sequence[Number], growths: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> list[CellCheck]:
    """Recompute printed growths in percent against both bases, and name the one they were divided by.

    `growths` maps a heading to (metric that grew, keys of the cell it grew over).
    """
    name, result, unknown, n = "base of percentages", [], [], 0
    for heading, (metric, over) in growths.items():
        for number in numbers:
            if number.heading != heading or not number.is_given:
                continue
            group = [other for other in numbers if (other.table, other.metric) == (number.table, metric)]
            new, old = _expected_value(group, number, {}), _expected_value(group, number, over)
            if new is None or old is None or all(number.key(key) == value for key, value in over.items()):
                continue
            if not old or not new:
                ends = f"from {format_plain(old)} to {format_plain(new)}"
                text = f"printed {number.printed} %, {ends}: no growth over 0."
                unknown.append(check_number(name, None, number, text))
                continue
            n += 1
            by_old, by_new = 100 * (new / old - 1), 100 * (1 - old / new)
            # "6 %" beside "5.95 %" was rounded to its own places, not to those of its column.
            step = max(2 * number.half_unit, 10.0 ** -len(number.printed.partition(".")[2]))
            fits = [_is_rounding(value, number.value, step) for value in (by_old, by_new)]
            if not fits[0]:
                shares = {"by_old": by_old / 100, "by_new": by_new / 100, "fits_new": fits[1]}
                text = render_detail("growth", one=number, new=new, old=old, **shares)
                result.append(check_number(name, False, number, text))
    text = "Percentages divided by the old value, as they should be"
    return [*result, *unknown, *summarize_checks(name, n - len(result), text, len(result))]


def rising_threads(numbers: Sequence[Number]) -> list[CellCheck]:
    """Check that thread counts rise from row to row, wherever all other keys of a table are the same."""
    name, result, n = "rising thread counts", [], 0
    tables: dict[tuple[str, _Place], dict[int, Any]] = {}
    for number in numbers:
        if (threads := number.key("threads")) is not None:
            place = (number.table, _rest_of_place(number, THREADS))
            tables.setdefault(place, {}).setdefault(number.row, threads)
    for (table, _), rows in tables.items():
        levels = list(rows.values())
        n += 1
        if any(after < before for before, after in itertools.pairwise(levels)):
            text = f"In their printed order: {', '.join(map(str, levels))}."
            result.append(build_check(name, False, table, text, [table]))
    return [*result, *summarize_checks(name, n - len(result), "Series in order", len(result))]


def _is_rounding(value: float, printed: float, step: float) -> bool:
    """True if a number, rounded or cut, is the printed one."""
    is_cut = 0 <= abs(value) - abs(printed) < step and value * printed >= 0
    return is_cut or abs(value - printed) <= step / 2 + 1e-9


def _expected_value(group: Sequence[Number], number: Number, over: Mapping[str, Any]) -> float | None:
    wanted = {**number.at, **over}
    for other in group:
        if all(other.key(key) == wanted.get(key) for key in (*wanted, *other.at)):
            return other.value
    return None
