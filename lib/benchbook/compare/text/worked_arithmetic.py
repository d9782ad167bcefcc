"""How checks and the arithmetic of the published record are written down: digits enough to redo it."""

from __future__ import annotations

import math
from collections.abc import Iterable

from benchbook.compare.text.sentences import told
from benchbook.core.artifacts.findings import Check
from benchbook.core.published.source import Number
from benchbook.core.published.table_cells import Cell, Pair, shown
from benchbook.core.util.number_format import MINUS, format_plain, percent_number


def percent(fraction: float, digits: int = 2) -> str:
    """Write an effect: 0.0389 is +3.89 %."""
    return f"{percent_number(fraction, digits)} %"


def amount(value: float, is_share: bool) -> str:
    """Write an effect, or a plain value with five significant digits."""
    return percent(value) if is_share else format_plain(float(f"{value:.5g}"))


def _side(cell: Cell) -> dict[str, object]:
    return {"table": cell.table, "row": cell.row, "value": tidy(cell.value)}


def cell_record(cell: Cell) -> dict[str, object]:
    """Return a value as it goes into audit.json."""
    return {"where": shown(cell.place), **_side(cell), "arithmetic": cell.working}


def pair_record(pair: Pair) -> dict[str, object]:
    """Return an effect as it goes into audit.json, with the division written out."""
    over = [
        f"({cell.working})" if "/" in cell.working or " of " in cell.working else cell.working
        for cell in (pair.treatment, pair.baseline)
    ]
    return {
        "where": shown(pair.place) or "all",
        "value": tidy(pair.effect),
        "baseline": _side(pair.baseline),
        "treatment": _side(pair.treatment),
        "arithmetic": f"{over[0]} / {over[1]} {MINUS} 1 = {percent(pair.effect)}",
    }


def tidy(value: float | None) -> float | None:
    """Round to 12 significant digits, so that the same tables give the same bytes on any machine."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.12g}")


def detail(kind: str, **values: object) -> str:
    """Return what a check found, in the words of its template."""
    (text,) = told("check.j2", kind=kind, minus=MINUS, percent=percent, plain=format_plain, **values)
    return text


def check(
    name: str,
    passed: bool | None,
    where: str,
    detail: str,
    tables: Iterable[str] = (),
    row: int | None = None,
) -> Check:
    """Return one result; `row` is that of the only table, where one row alone is concerned."""
    return Check(check=name, passed=passed, where=where, tables=sorted(set(tables)), detail=detail, row=row)


def of_number(name: str, passed: bool | None, one: Number, detail: str, has_row: bool = False) -> Check:
    """Return a result about a number; with its row where the law is one of that row."""
    where = f"{one.table}, {shown(one.at)}"
    return check(name, passed, where, detail, [one.table], one.row if has_row else None)


def summary(name: str, n: int, text: str, failed: int = 0) -> list[Check]:
    """Return one line for n cells that pass, or that there was nothing to check; none if all failed."""
    if n:
        return [check(name, True, "everywhere else" if failed else "everywhere", f"{text}: {n}.")]
    return (
        [] if failed else [check(name, None, "nowhere", "Nothing to check: no table has the numbers for it.")]
    )
