"""Checks between tables: numbers that are equal where they should differ, or the reverse, or missing."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from benchbook.compare.checking import Check, check, summary
from benchbook.core.cells import THREADS, shown
from benchbook.core.source import keys

NEARLY_EQUAL = 0.5
FEWEST = 4


def equal_tables(cells: pd.DataFrame, settings: Mapping[str, Mapping[str, Any]]) -> list[Check]:
    """Find tables, or arms of a table, that share their numbers.

    `settings` has the stated factors of each arm. Two of one setting may be equal: one measurement printed
    twice. Where a factor differs, equal numbers mean that one of them is not what it says.
    """
    name, found, n = "equal tables", [], 0
    for one, other in itertools.combinations(_series(cells, settings), 2):
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
        text = f"{equal} of {size} numbers are equal. "
        if is_same and equal == size:
            text += "Both state the same setting, as far as they state it: one measurement printed twice."
        elif is_same:
            text += "Both state the same setting, so all of them should be."
        else:
            what = ", ".join(differ) or f"arm ({one.setting['arm']}, {other.setting['arm']})"
            text += f"They should differ in {what}, so one of them at least is not what it is called."
        where, tables = f"{one.name} and {other.name}", (one.table, other.table)
        found.append(check(name, is_same and equal == size, where, text, tables))
    return found or summary(name, n, "Pairs with fewer than half of their numbers in common")


def repeated_cells(cells: pd.DataFrame) -> list[Check]:
    """Find cells of one arm that two tables print with different values."""
    seen: dict[tuple[str, ...], dict[str, Any]] = {}
    found, n = [], 0
    for line in cells[cells["value"].notna()].to_dict("records"):
        place = (line["metric"], *(str(line[key]) for key in keys(cells)))
        first = seen.setdefault(place, line)
        if first is line or first["table"] == line["table"]:
            continue
        n += 1
        if first["value"] != line["value"]:
            where = shown({key: line[key] for key in keys(cells) if not pd.isna(line[key])})
            found.append(
                check(
                    "repeated cells",
                    False,
                    where,
                    f"{line['metric']} is {first['printed']} in {first['table']} and {line['printed']} in "
                    f"{line['table']}.",
                    (first["table"], line["table"]),
                )
            )
    if not n:
        return [
            check("repeated cells", None, "nowhere", "Nothing to check: no cell of an arm is printed twice.")
        ]
    agree = n - len(found)
    return found + (
        [check("repeated cells", True, "everywhere else", f"Numbers printed twice that agree: {agree}.")]
        if agree
        else []
    )


def missing_cells(
    cells: pd.DataFrame, compared: Sequence[tuple[str, str]], stated: Mapping[str, Sequence[int]]
) -> list[Check]:
    """Find blanks, cells that one of two compared arms lacks, and thread counts announced but not printed.

    `compared` has pairs of arms; `stated` the thread counts that the document says were run, by workload.
    """
    found: list[Check] = []
    for line in cells[cells["value"].isna()].to_dict("records"):
        found.append(
            check(
                "missing cells",
                False,
                f"{line['table']}, row {line['row']}",
                f"{line['heading']} is blank.",
                [line["table"]],
            )
        )
    measured = cells[cells["value"].notna() & cells["arm"].notna()]
    factors = [key for key in keys(cells) if key not in {"arm", "workload", "second", *THREADS}]
    for _, group in measured.groupby([measured[key].map(str) for key in ("workload", *factors)], sort=False):
        levels = {arm: set(part["threads"].dropna()) for arm, part in group.groupby("arm", sort=False)}
        for one, other in dict.fromkeys((*compared, *((second, first) for first, second in compared))):
            lack = sorted(levels.get(other, set()) - levels.get(one, set())) if one in levels else []
            if lack:
                found.append(
                    check(
                        "missing cells",
                        False,
                        f"{one}, {group['workload'].iloc[0]}",
                        f"No numbers at {_list(lack)} threads, where {other} has them.",
                        group.loc[group["arm"] == one, "table"].unique(),
                    )
                )
    for workload, threads in stated.items():
        part = measured[measured["workload"] == workload]
        lack = sorted(set(threads) - set(part["threads"].dropna()))
        if lack:
            found.append(
                check(
                    "missing cells",
                    False,
                    str(workload),
                    f"No numbers at {_list(lack)} threads, which the document says were run.",
                    part["table"].unique(),
                )
            )
    return found or [
        check("missing cells", True, "everywhere", "No blank, and compared arms have the same cells.")
    ]


def _list(levels: Sequence[int]) -> str:
    return ", ".join(map(str, levels))


class _Series(NamedTuple):
    """The numbers of one arm in one table, by metric and place."""

    name: str
    table: str
    setting: dict[str, Any]
    numbers: dict[tuple[str, ...], float]


def _series(cells: pd.DataFrame, settings: Mapping[str, Mapping[str, Any]]) -> list[_Series]:
    measured = cells[cells["value"].notna() & cells["arm"].notna()]
    arms = measured.groupby("table")["arm"].nunique()
    found = []
    for (table, arm, workload), group in measured.groupby(
        ["table", "arm", "workload"], sort=False, dropna=False
    ):
        places = [key for key in keys(group) if key not in ("arm", "workload")]
        numbers = {
            (line["metric"], *(str(line[key]) for key in places)): line["value"]
            for line in group.to_dict("records")
        }
        setting = {"arm": arm, "workload": workload, **settings.get(arm, {})}
        found.append(_Series(table if arms[table] == 1 else f"{table} ({arm})", table, setting, numbers))
    return found
