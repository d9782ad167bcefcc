"""Results of checks of cells, each with its arithmetic."""

from __future__ import annotations

from collections.abc import Iterable

from benchbook.core.cells import shown
from benchbook.core.findings import Check
from benchbook.core.source import Number


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
