"""Numbers as people read them.

Effects arrive as fractions (0.061 is +6.1 %). What could not be computed is written in words, never shown as
zero. Spaces before a unit do not break, and a minus is a real minus.
"""

from __future__ import annotations

import math
from typing import TypeGuard

from benchbook.compare.text.sentences import NBSP as NBSP
from benchbook.compare.text.sentences import Interval
from benchbook.compare.text.sentences import listing as listing
from benchbook.core.artifacts.findings import Contrast

NOT_COMPUTED = "not computed"
_MINUS = "\N{MINUS SIGN}"
_MANY = 10
"""Fractions from which decimals of a per cent say nothing."""


def is_known(value: object) -> TypeGuard[float]:
    """Say whether a value is a number that can be shown (None and NaN are not)."""
    return isinstance(value, int | float) and not (isinstance(value, float) and math.isnan(value))


def decimal(value: float | None, digits: int = 1, signed: bool = False) -> str:
    """Write a number with thousands commas and a fixed number of digits."""
    if not is_known(value):
        return NOT_COMPUTED
    if math.isinf(value):
        return f"{_MINUS if value < 0 else '+' if signed else ''}∞"
    text = f"{abs(value):,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        return text
    return (_MINUS if value < 0 else "+" if signed else "") + text


def percent(fraction: float | None, digits: int = 1, signed: bool = True) -> str:
    """Write a fraction as a percentage: 0.061 becomes +6.1 %, and 48.351 becomes +4,835 %."""
    if not is_known(fraction):
        return NOT_COMPUTED
    return decimal(100 * fraction, digits if abs(fraction) < _MANY else 0, signed) + NBSP + "%"


def span(low: float | None, high: float | None, digits: int = 1) -> str:
    """Write an interval of fractions: −15.1 to −13.2 %."""
    if not (is_known(low) and is_known(high)):
        return "no interval"
    digits = digits if max(abs(low), abs(high)) < _MANY else 0
    return f"{decimal(100 * low, digits, True)} to {decimal(100 * high, digits, True)}{NBSP}%"


def ends(part: Interval) -> tuple[float, float] | None:
    """Return both ends of an interval; None where one is not known."""
    return (part.low, part.high) if is_known(part.low) and is_known(part.high) else None


def effect(found: Contrast) -> str:
    """Write the effect of a finding, or that it has one for each thread level and none for all."""
    return percent(found.effect) if found.headline else "by threads"


def level(fraction: float | None) -> str:
    """Write a confidence level: 0.98 becomes 98 %."""
    return f"{100 * fraction:g}{NBSP}%" if is_known(fraction) else NOT_COMPUTED


def significant(value: float | None, digits: int = 3) -> str:
    """Write a measured value with about three significant digits: 74,300, 12.4, 0.382."""
    if not is_known(value) or math.isinf(value):
        return decimal(value)
    places = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    return decimal(round(value, places), max(places, 0))


def count(number: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun: 1 run, 12 runs."""
    return f"{number:,}{NBSP}{one if number == 1 else many or one + 's'}"


def minutes(value: float | None) -> str:
    """Write a length of time given in minutes, as minutes or hours."""
    if not is_known(value):
        return NOT_COMPUTED
    return f"{value / 60:.1f}{NBSP}hours" if value >= 120 else count(round(value), "minute")


def p_value(p: float | None) -> str:
    """Write a p-value; tiny ones only as a bound."""
    if not is_known(p):
        return NOT_COMPUTED
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
