"""Text of checks and of the arithmetic of the published record, with digits enough to redo it."""

import math
from collections.abc import Iterable

from benchbook.compare.text.sentences import render_paragraphs
from benchbook.core.artifacts.findings import CellCheck
from benchbook.core.published.source import Number
from benchbook.core.published.table_cells import Pair, TableCell, describe_place
from benchbook.core.util.number_format import MINUS, format_plain, percent_number


def write_percent(fraction: float, digits: int = 2) -> str:
    """Write an effect: 0.0389 is +3.89 %."""
    return f"{percent_number(fraction, digits)} %"


def _side_record(cell: TableCell) -> dict[str, object]:
    return {"table": cell.table, "row": cell.row, "value": round_digits(cell.value)}


def cell_record(cell: TableCell) -> dict[str, object]:
    """Value as it goes into audit.json, the quotient behind its division."""
    arithmetic = f"{cell.working} = {format_plain(cell.value)}" if "/" in cell.working else cell.working
    return {"where": describe_place(cell.place), **_side_record(cell), "arithmetic": arithmetic}


def pair_record(pair: Pair) -> dict[str, object]:
    """Effect as it goes into audit.json, with the division written out."""
    workings = (pair.treatment.working, pair.baseline.working)
    over = [f"({text})" if "/" in text or " of " in text else text for text in workings]
    return {
        "where": describe_place(pair.place) or "all",
        "value": round_digits(pair.effect),
        "baseline": _side_record(pair.baseline),
        "treatment": _side_record(pair.treatment),
        "arithmetic": f"{over[0]} / {over[1]} {MINUS} 1 = {write_percent(pair.effect)}",
    }


def round_digits(value: float | None) -> float | None:
    """Round to 12 significant digits, so that the same tables give the same bytes on any machine."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.12g}")


def render_detail(kind: str, **values: object) -> str:
    """Result of a check in the words of its template."""
    (text,) = render_paragraphs(
        "check.j2", kind=kind, minus=MINUS, percent=write_percent, plain=format_plain, **values
    )
    return text


def build_check(
    name: str,
    passed: bool | None,
    where: str,
    detail: str,
    tables: Iterable[str] = (),
    row: int | None = None,
) -> CellCheck:
    """One result; `row` is that of the only table, if one row alone is concerned."""
    listed = sorted(set(tables))
    return CellCheck(check=name, passed=passed, where=where, tables=listed, detail=detail, row=row)


def check_number(
    name: str, passed: bool | None, number: Number, detail: str, has_row: bool = False
) -> CellCheck:
    """Result about a number; with its row if the law is one of that row."""
    where = f"{number.table}, {describe_place(number.at)}"
    return build_check(name, passed, where, detail, [number.table], number.row if has_row else None)


def summarize_checks(name: str, n: int, text: str, failed: int = 0) -> list[CellCheck]:
    """One line for n cells that pass, or for nothing to check; none if all failed."""
    if n:
        return [build_check(name, True, "everywhere else" if failed else "everywhere", f"{text}: {n}.")]
    message = "Nothing to check: no table has the numbers for it."
    return [] if failed else [build_check(name, None, "nowhere", message)]
