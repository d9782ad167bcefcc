"""Checks of what only a document prints: growths in percent, and the order of its rows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from benchbook.compare.arithmetic import MINUS, percent, plain
from benchbook.compare.checking import Check, check, of_number, summary
from benchbook.core.source import Number


def growth_base(
    numbers: Sequence[Number], growths: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> list[Check]:
    """Recompute printed growths in percent against both bases, and name the one they were divided by.

    `growths` maps a heading to (metric that grew, keys of the cell it grew over).
    """
    name, found, unknown, n = "base of percentages", [], [], 0
    for heading, (metric, over) in growths.items():
        for one in numbers:
            if one.heading != heading or not one.is_given:
                continue
            group = [other for other in numbers if (other.table, other.metric) == (one.table, metric)]
            new, old = _cell(group, one, {}), _cell(group, one, over)
            if new is None or old is None or all(one.key(key) == value for key, value in over.items()):
                continue
            if not old or not new:
                text = f"printed {one.printed} %, from {plain(old)} to {plain(new)}: no growth over 0."
                unknown.append(of_number(name, None, one, text))
                continue
            n += 1
            by_old, by_new = 100 * (new / old - 1), 100 * (1 - old / new)
            fits = [_fits(value, one.value, 2 * one.half_unit) for value in (by_old, by_new)]
            work = (
                f"printed {one.printed} %; {plain(new)} / {plain(old)} {MINUS} 1 = "
                f"{percent(by_old / 100)}, "
                f"({plain(new)} {MINUS} {plain(old)}) / {plain(new)} = {percent(by_new / 100)}"
            )
            if not fits[0]:
                base = "It was divided by the new value." if fits[1] else "It fits neither base."
                found.append(of_number(name, False, one, f"{work}. {base}"))
    return [
        *found,
        *unknown,
        *summary(name, n - len(found), "Percentages divided by the old value, as they should be", len(found)),
    ]


def rising_threads(numbers: Sequence[Number]) -> list[Check]:
    """Check that thread counts rise from row to row of a table."""
    name, found, n = "rising thread counts", [], 0
    tables: dict[str, dict[int, Any]] = {}
    for one in numbers:
        if (threads := one.key("threads")) is not None:
            tables.setdefault(one.table, {}).setdefault(one.row, threads)
    for table, rows in tables.items():
        levels = list(rows.values())
        n += 1
        if any(after < before for before, after in itertools.pairwise(levels)):
            text = f"In their printed order: {', '.join(map(str, levels))}."
            found.append(check(name, False, table, text, [table]))
    return [*found, *summary(name, n - len(found), "Tables in order", len(found))]


def _fits(value: float, printed: float, step: float) -> bool:
    """Whether a number was rounded or cut to the printed one."""
    return abs(value - printed) <= step / 2 + 1e-9 or (
        0 <= abs(value) - abs(printed) < step and value * printed >= 0
    )


def _cell(group: Sequence[Number], one: Number, over: Mapping[str, Any]) -> float | None:
    wanted = {**one.at, **over}
    fits = (
        other for other in group if all(other.key(key) == wanted.get(key) for key in (*wanted, *other.at))
    )
    return next((other.value for other in fits), None)
