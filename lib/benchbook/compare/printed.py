"""Checks of what only a document prints: growths in percent, and the order of its rows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pandas as pd

from benchbook.compare.arithmetic import MINUS, percent, plain
from benchbook.compare.checking import Check, check, place_of, summary
from benchbook.core.source import keys


def growth_base(cells: pd.DataFrame, growths: Mapping[str, tuple[str, Mapping[str, Any]]]) -> list[Check]:
    """Recompute printed growths in percent against both bases, and name the one they were divided by.

    `growths` maps a heading to (metric that grew, keys of the cell it grew over).
    """
    name, found, unknown, n = "base of percentages", [], [], 0
    for heading, (metric, over) in growths.items():
        for line in cells[(cells["heading"] == heading) & cells["value"].notna()].to_dict("records"):
            group = cells[(cells["table"] == line["table"]) & (cells["metric"] == metric)]
            new, old = _cell(group, line, {}), _cell(group, line, over)
            if new is None or old is None or all(line[key] == value for key, value in over.items()):
                continue
            if not old or not new:
                where = f"{line['table']}, {place_of(line)}"
                text = f"printed {line['printed']} %, from {plain(old)} to {plain(new)}: no growth over 0."
                unknown.append(check(name, None, where, text, [line["table"]]))
                continue
            n += 1
            by_old, by_new = 100 * (new / old - 1), 100 * (1 - old / new)
            fits = [_fits(value, line["value"], 2 * line["half_unit"]) for value in (by_old, by_new)]
            work = (
                f"printed {line['printed']} %; {plain(new)} / {plain(old)} {MINUS} 1 = "
                f"{percent(by_old / 100)}, "
                f"({plain(new)} {MINUS} {plain(old)}) / {plain(new)} = {percent(by_new / 100)}"
            )
            if not fits[0]:
                base = "It was divided by the new value." if fits[1] else "It fits neither base."
                found.append(
                    check(
                        name, False, f"{line['table']}, {place_of(line)}", f"{work}. {base}", [line["table"]]
                    )
                )
    return [
        *found,
        *unknown,
        *summary(name, n - len(found), "Percentages divided by the old value, as they should be", len(found)),
    ]


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
    return [*found, *summary(name, n - len(found), "Tables in order", len(found))]


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
