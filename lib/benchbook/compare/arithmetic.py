"""How the arithmetic of the published record is written down: one line a cell, digits enough to redo it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchbook.core.cells import Cell, Pair, shown

MINUS = "\N{MINUS SIGN}"


def plain(value: float) -> str:
    """Write a number with up to six significant digits, without exponent or thousands separator."""
    digits = max(0, 5 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{abs(value):.{min(digits, 6)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{MINUS if value < 0 else ''}{text}"


def percent(fraction: float, digits: int = 2) -> str:
    """Write an effect: 0.0389 is +3.89 %."""
    text = f"{abs(100 * fraction):.{digits}f}"
    sign = "" if float(text) == 0 else MINUS if fraction < 0 else "+"
    return f"{sign}{text} %"


def amount(value: float, is_share: bool) -> str:
    """Write an effect, or a plain value with five significant digits."""
    return percent(value) if is_share else plain(float(f"{value:.5g}"))


def geometric_mean(values: Sequence[float]) -> float | None:
    """Return exp(mean of ln x); None if a value is not positive, because then it has none."""
    if not values or min(values) <= 0:
        return None
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def cell_record(cell: Cell) -> dict[str, object]:
    """Return a value as it goes into audit.json."""
    return {
        "where": shown(cell.place),
        "table": cell.table,
        "row": cell.row,
        "value": tidy(cell.value),
        "arithmetic": cell.working,
    }


def pair_record(pair: Pair) -> dict[str, object]:
    """Return an effect as it goes into audit.json, with the division written out."""
    over = [
        f"({cell.working})" if "/" in cell.working or " of " in cell.working else cell.working
        for cell in (pair.treatment, pair.baseline)
    ]
    return {
        "where": shown(pair.place) or "all",
        "value": tidy(pair.effect),
        "baseline": {
            "table": pair.baseline.table,
            "row": pair.baseline.row,
            "value": tidy(pair.baseline.value),
        },
        "treatment": {
            "table": pair.treatment.table,
            "row": pair.treatment.row,
            "value": tidy(pair.treatment.value),
        },
        "arithmetic": f"{over[0]} / {over[1]} {MINUS} 1 = {percent(pair.effect)}",
    }


def tidy(value: float | None) -> float | None:
    """Round to 12 significant digits, so that the same tables give the same bytes on any machine."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.12g}")
