"""Checks that any table of cells must pass, published ones and ours alike: pure functions with their arithmetic.

Every function takes cells (one row a printed number, as `core.source.Published` has them; `from_runs` makes them of our
own runs) and returns dicts {check, passed, where, tables, detail}. `passed` is None where there was nothing to check.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from benchbook.compare.arithmetic import percent, plain
from benchbook.core import histogram
from benchbook.core.cells import shown
from benchbook.core.source import keys

LITTLE_TOLERANCE = 0.01
STATEMENTS_TOLERANCE = 0.01
NEARLY_EQUAL = 0.5
Check = dict[str, Any]


def check(name: str, passed: bool | None, where: str, detail: str, tables: Sequence[str] = ()) -> Check:
    """Return one result."""
    return {"check": name, "passed": passed, "where": where, "tables": sorted(set(tables)), "detail": detail}


def from_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return our own runs (the `runs` table of read/tidy.py) as cells; each run is its own row, nothing is rounded."""
    metrics = [name for name in runs.columns if name in ("qps", "tps") or name.startswith("latency_")]
    long = runs.melt(["run_id", "arm", "workload", "threads", "block"], metrics, "metric", "value")
    long["printed"] = [f"{value:.6g}" for value in long["value"]]
    long = long.assign(
        table=long["arm"] + " " + long["workload"],
        heading=long["metric"],
        half_unit=0.0,
        unit=None,
        role="metric",
    )
    long["row"] = long.groupby("table")["run_id"].transform(lambda ids: pd.factorize(ids)[0] + 1)
    return long.drop(columns="run_id")


def equal_tables(cells: pd.DataFrame, settings: Mapping[str, Mapping[str, Any]]) -> list[Check]:
    """Find tables of different arms that share their numbers.

    `settings` has the stated factors of each arm. Two tables of one setting may be equal: one measurement printed twice.
    Where a factor differs, equal numbers mean that one of the tables is not what it says.
    """
    name, found, n = "equal tables", [], 0
    tables = {table: _numbers(group) for table, group in cells.groupby("table", sort=False)}
    arms = {table: group["arm"].dropna().unique() for table, group in cells.groupby("table", sort=False)}
    for one, other in itertools.combinations(tables, 2):
        common = tables[one].keys() & tables[other].keys()
        if len(arms[one]) != 1 or len(arms[other]) != 1 or len(common) < 4:
            continue
        n += 1
        equal = sum(tables[one][place] == tables[other][place] for place in common)
        size = max(len(tables[one]), len(tables[other]))
        if equal / size < NEARLY_EQUAL:
            continue
        first, second = (dict(settings.get(arms[table][0], {})) for table in (one, other))
        differ = [
            f"{key.replace('_', ' ')} ({first[key]}, {second[key]})"
            for key in first.keys() & second.keys()
            if first[key] != second[key]
        ]
        same = arms[one][0] == arms[other][0] or (not differ and bool(first) and bool(second))
        text = f"{equal} of {size} numbers are equal."
        if same and equal == size:
            text += (
                " Both tables state the same setting as far as they state it: one measurement printed twice."
            )
        elif same:
            text += " Both tables state the same setting, so all of them should be."
        else:
            text += (
                f" The tables are said to differ in {', '.join(sorted(differ)) or 'their arm'}: one of them does not "
                "show what its name says."
            )
        found.append(check(name, same and equal == size, f"{one} and {other}", text, (one, other)))
    return found or [_none(name, n, "pairs of tables share fewer than half of their numbers")]


def littles_law(cells: pd.DataFrame, statements: Mapping[str, float]) -> list[Check]:
    """Compare threads x statements of an event / QPS (s) with the printed mean latency; more than 1 % is flagged.

    Little (1961): in a closed loop the number of clients is throughput times time. A difference that the rounding of the
    two printed numbers can explain is not flagged. `statements` is by workload.
    """
    name, found, n = "Little's law", [], 0
    wide = _wide(cells, ("qps", "latency_avg_ms"))
    for line in wide:
        count = statements.get(line["workload"])
        if count is None or not _number(line.get("threads")):
            continue
        n += 1
        (qps, qps_half), (latency, latency_half) = line["qps"], line["latency_avg_ms"]
        implied = 1000 * line["threads"] * count / qps
        low = 1000 * line["threads"] * count / (qps + qps_half) / (latency + latency_half)
        high = 1000 * line["threads"] * count / max(qps - qps_half, 1e-9) / max(latency - latency_half, 1e-9)
        ratio = implied / latency
        if low > 1 + LITTLE_TOLERANCE or high < 1 - LITTLE_TOLERANCE:
            found.append(
                check(
                    name,
                    False,
                    f"{line['table']}, {_place(line)}",
                    f"{line['threads']} threads x {count:g} statements / {plain(qps)} a second = "
                    f"{implied:.2f} ms, printed {plain(latency)} ms: ratio {ratio:.4f}.",
                    [line["table"]],
                )
            )
    return (
        [*found, _none(name, n - len(found), "cells agree within 1 % or their rounding")]
        if n
        else [_none(name, 0, "")]
    )


def percentile_grid(cells: pd.DataFrame) -> list[Check]:
    """Look for percentiles that sysbench's histogram cannot give: its values are 1.8 % apart; an average leaves them."""
    name, found, n, coarse = "percentile grid", [], 0, 0
    chosen = cells[cells["metric"].str.fullmatch(r"latency_p\d+_ms") & cells["value"].notna()]
    for line in chosen.to_dict("records"):
        if line["value"] <= 0:
            continue
        if line["half_unit"] > max(0.005, 0.25 * (histogram.RATIO - 1) * line["value"]):
            coarse += 1
            continue
        n += 1
        if not histogram.is_on_grid(line["value"]):
            near = histogram.value_of(histogram.bucket_of(line["value"]))
            found.append(
                check(
                    name,
                    False,
                    f"{line['table']}, {_place(line)}",
                    f"{line['printed']} ({line['metric']}) is not a value of sysbench's histogram; the nearest is "
                    f"{near:.2f} ms. An average of several percentiles looks like this.",
                    [line["table"]],
                )
            )
    text = "percentiles lie on sysbench's grid" + (
        f"; {coarse} too coarsely rounded to tell" if coarse else ""
    )
    return [*found, _none(name, n - len(found), text)] if n or coarse else [_none(name, 0, "")]


def statements_per_transaction(cells: pd.DataFrame, statements: Mapping[str, float]) -> list[Check]:
    """Compare QPS / TPS with the statements that the workload's script sends in one transaction."""
    name, found, n = "statements per transaction", [], 0
    for line in _wide(cells, ("qps", "tps")):
        count = statements.get(line["workload"])
        if count is None or line["tps"][0] == 0:
            continue
        n += 1
        ratio = line["qps"][0] / line["tps"][0]
        if abs(ratio / count - 1) > STATEMENTS_TOLERANCE:
            found.append(
                check(
                    name,
                    False,
                    f"{line['table']}, {_place(line)}",
                    f"{plain(line['qps'][0])} / {plain(line['tps'][0])} = {ratio:.3f} statements, the script sends "
                    f"{count:g}.",
                    [line["table"]],
                )
            )
    text = "cells agree within 1 %"
    return [*found, _none(name, n - len(found), text)] if n else [_none(name, 0, "")]


def growth_base(cells: pd.DataFrame, growths: Mapping[str, tuple[str, Mapping[str, Any]]]) -> list[Check]:
    """Recompute printed growths in percent against both bases, and name the one they were divided by.

    `growths` maps a heading to (metric that grew, keys of the cell it grew over).
    """
    name, found, n = "base of percentages", [], 0
    for heading, (metric, over) in growths.items():
        for line in cells[(cells["heading"] == heading) & cells["value"].notna()].to_dict("records"):
            group = cells[(cells["table"] == line["table"]) & (cells["metric"] == metric)]
            new, old = _cell(group, line, {}), _cell(group, line, over)
            if new is None or old is None or all(line[key] == value for key, value in over.items()):
                continue
            n += 1
            by_old, by_new = 100 * (new / old - 1), 100 * (1 - old / new)
            fits = [_fits(value, line["value"], 2 * line["half_unit"]) for value in (by_old, by_new)]
            work = (
                f"printed {line['printed']} %; {plain(new)} / {plain(old)} {MINUS} 1 = {percent(by_old / 100)}, "
                f"({plain(new)} {MINUS} {plain(old)}) / {plain(new)} = {percent(by_new / 100)}"
            )
            if not fits[0]:
                base = "It was divided by the new value." if fits[1] else "It fits neither base."
                found.append(
                    check(name, False, f"{line['table']}, {_place(line)}", f"{work}. {base}", [line["table"]])
                )
    return (
        [*found, _none(name, n - len(found), "percentages are divided by the old value, as they should be")]
        if n
        else [_none(name, 0, "")]
    )


def rising_threads(cells: pd.DataFrame) -> list[Check]:
    """Check that thread counts rise from row to row of a table."""
    name, found, n = "rising thread counts", [], 0
    for table, group in cells[cells["threads"].notna()].groupby("table", sort=False):
        levels = list(group.drop_duplicates("row")["threads"])
        n += 1
        if any(after < before for before, after in itertools.pairwise(levels)):
            found.append(
                check(
                    name,
                    False,
                    str(table),
                    f"In their printed order: {', '.join(map(str, levels))}.",
                    [str(table)],
                )
            )
    return [*found, _none(name, n - len(found), "tables")] if n else [_none(name, 0, "")]


def latency_order(cells: pd.DataFrame) -> list[Check]:
    """Check minimum <= mean <= maximum, and that no percentile exceeds the maximum by more than its bucket."""
    name, found, n = "order of latencies", [], 0
    for (table, _), group in cells[cells["metric"].str.startswith("latency_")].groupby(
        ["table", "row"], sort=False
    ):
        by = {line["metric"]: line["value"] for line in group.to_dict("records")}
        low, mean, high = (by.get(f"latency_{part}_ms") for part in ("min", "avg", "max"))
        parts = [part for part in (low, mean, high) if part is not None]
        if len(parts) < 2:
            continue
        n += 1
        over = [m for m, v in by.items() if "_p" in m and high is not None and v > high * histogram.RATIO]
        if parts != sorted(parts) or over:
            written = ", ".join(f"{metric} {plain(value)}" for metric, value in by.items())
            found.append(
                check(name, False, f"{table}, {_place(group.iloc[0].to_dict())}", f"{written}.", [str(table)])
            )
    return [*found, _none(name, n - len(found), "rows are in order")] if n else [_none(name, 0, "")]


def _fits(value: float, printed: float, step: float) -> bool:
    """Whether a number was rounded or cut to the printed one."""
    return abs(value - printed) <= step / 2 + 1e-9 or (
        0 <= abs(value) - abs(printed) < step and value * printed >= 0
    )


def _cell(group: pd.DataFrame, line: Mapping[str, Any], over: Mapping[str, Any]) -> float | None:
    wanted = {key: line[key] for key in keys(group)} | dict(over)
    for other in group.to_dict("records"):
        if all(
            other[key] == value or (pd.isna(other[key]) and pd.isna(value)) for key, value in wanted.items()
        ):
            return float(other["value"])
    return None


def _wide(cells: pd.DataFrame, metrics: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield rows that have all of the metrics, each as (value, half of its last place)."""
    chosen = cells[cells["metric"].isin(metrics) & cells["value"].notna()]
    for _, group in chosen.groupby(["table", "row"], sort=False):
        for _, cell in group.groupby([group[key].map(str) for key in keys(group)], sort=False):
            lines = cell.to_dict("records")
            if {line["metric"] for line in lines} == set(metrics):
                yield {**lines[0], **{line["metric"]: (line["value"], line["half_unit"]) for line in lines}}


def _numbers(group: pd.DataFrame) -> dict[tuple[Any, ...], float]:
    names = [key for key in keys(group) if key != "arm"]
    return {
        (line["metric"], *(str(line[key]) for key in names)): line["value"]
        for line in group.to_dict("records")
        if not pd.isna(line["value"])
    }


def _place(line: Mapping[str, Any]) -> str:
    names = [
        key for key in line if key in keys(pd.DataFrame(columns=list(line))) and key not in ("qps", "tps")
    ]
    return shown(
        {
            key: line[key]
            for key in names
            if not isinstance(line[key], tuple) and not pd.isna(line[key]) and not key.startswith("latency_")
        }
    )


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not pd.isna(value)


def _none(name: str, n: int, text: str) -> Check:
    return check(
        name,
        True if n else None,
        "everywhere else" if n else "nowhere",
        f"{n} {text}." if n else "Nothing to check: no table has the numbers for it.",
    )


MINUS = "\N{MINUS SIGN}"
