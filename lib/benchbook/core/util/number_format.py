"""Numbers as people read them: digits, signs, units and ranges, for every page, table and terminal.

Effects arrive as fractions (0.061 is +6.1 %). What could not be computed is written in words, never shown as
zero. Spaces before a unit do not break, and a minus is a real minus.
"""

import math
from collections.abc import Sequence
from typing import TypeGuard

NBSP = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
NOT_COMPUTED = "not computed"
# Fractions from which decimals of a per cent say nothing.
_MANY = 10


def is_known(value: object) -> TypeGuard[float]:
    """True if a value is a number that can be shown (None and NaN are not)."""
    return isinstance(value, int | float) and not (isinstance(value, float) and math.isnan(value))


def format_decimal(value: float | None, digits: int = 1, signed: bool = False) -> str:
    """Number with thousands commas and a fixed number of digits.

    >>> format_decimal(-1234.56), format_decimal(0.04, signed=True), format_decimal(2, 0, signed=True)
    ('−1,234.6', '0.0', '+2')
    """
    if not is_known(value):
        return NOT_COMPUTED
    if math.isinf(value):
        return f"{MINUS if value < 0 else '+' if signed else ''}∞"
    text = f"{abs(value):,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        return text
    return (MINUS if value < 0 else "+" if signed else "") + text


def percent_number(fraction: float | None, digits: int = 1, signed: bool = True) -> str:
    """Fraction in per cent without its unit: 0.061 becomes +6.1, and 48.351 becomes +4,835."""
    if not is_known(fraction):
        return NOT_COMPUTED
    return format_decimal(100 * fraction, digits if abs(fraction) < _MANY else 0, signed)


def format_percent(fraction: float | None, digits: int = 1, signed: bool = True) -> str:
    """Fraction in per cent: 0.061 becomes +6.1 %."""
    text = percent_number(fraction, digits, signed)
    return text if text == NOT_COMPUTED else f"{text}{NBSP}%"


def format_percent_range(low: float | None, high: float | None, digits: int = 1, signed: bool = True) -> str:
    """Two ends in per cent: −15.1 to −13.2 %; without signs the smaller size first, one number if alike.

    >>> format_percent_range(-0.19, -0.16, 0, signed=False), format_percent_range(0.038, 0.038, signed=False)
    ('16 to 19\\xa0%', '3.8\\xa0%')
    """
    if not (is_known(low) and is_known(high)):
        return "no interval"
    if not signed:
        low, high = sorted((abs(low), abs(high)))
    first, last = (percent_number(end, digits, signed) for end in (low, high))
    return f"{first if first == last and not signed else f'{first} to {last}'}{NBSP}%"


def format_interval(low: float | None, high: float | None) -> str:
    """Interval in per cent as tables have it, without its unit: [−28.9, −18.0]."""
    return f"[{percent_number(low)}, {percent_number(high)}]" if is_known(low) and is_known(high) else ""


def glance_digits(*fractions: float) -> int:
    """Decimals of per cents for a glance: none from 10 on, more if they would look alike.

    >>> glance_digits(-0.153), glance_digits(-0.004, 0.021), glance_digits(0.191, 0.194)
    (0, 1, 1)
    """
    digits = 0 if max(abs(100 * fraction) for fraction in fractions) >= 9.95 else 1
    alike = len({f"{100 * fraction:.{digits}f}" for fraction in fractions}) < len(set(fractions))
    return 1 if alike else digits


def glance_percent(fraction: float) -> str:
    """Mean over sessions, or another number that is read at a glance: −15 %, +0.4 %."""
    return format_percent(fraction, glance_digits(fraction))


def glance_range(low: float, high: float, signed: bool = True) -> str:
    """Range that is read at a glance: −18 to −13 %."""
    return format_percent_range(low, high, glance_digits(low, high), signed)


def format_level(fraction: float | None) -> str:
    """Confidence level: 0.98 becomes 98 %."""
    return f"{100 * fraction:g}{NBSP}%" if is_known(fraction) else NOT_COMPUTED


def format_significant(value: float | None, digits: int = 3) -> str:
    """Measured value with about three significant digits: 74,300, 12.4, 0.382."""
    if not is_known(value) or math.isinf(value):
        return format_decimal(value)
    places = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    return format_decimal(round(value, places), max(places, 0))


def format_amount(value: float) -> str:
    """Published or measured value: whole from a thousand on, else three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else format_significant(value)


def format_rate(value: float | None) -> str:
    """Rate as a column of a table has it.

    >>> format_rate(8012.3), format_rate(217_000), format_rate(94.2), format_rate(1_310_000)
    ('8.0k', '217k', '94.2', '1.3M')
    """
    if not is_known(value) or math.isinf(value):
        return ""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.{1 if value < 100 * size else 0}f}{unit}"
    return f"{value:.3g}"


def format_plain(value: float) -> str:
    """Number with up to six significant digits, without exponent or thousands separator."""
    digits = max(0, 5 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{abs(value):.{min(digits, 6)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{MINUS if value < 0 else ''}{text}"


def format_count(number: int, noun: str, nouns: str | None = None) -> str:
    """Number with its noun: 1 run, 12 runs."""
    return f"{number:,}{NBSP}{noun if number == 1 else nouns or noun + 's'}"


def format_minutes(value: float | None) -> str:
    """Length of time given in minutes, as minutes or hours."""
    if not is_known(value):
        return NOT_COMPUTED
    return f"{value / 60:.1f}{NBSP}hours" if value >= 120 else format_count(round(value), "minute")


def format_p_value(p: float | None) -> str:
    """P-value; tiny ones only as a bound."""
    if not is_known(p):
        return NOT_COMPUTED
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def join_words(items: Sequence[object], last: str = "and") -> str:
    """Items as a sentence joins them: a, b and c."""
    texts = [str(item) for item in items]
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}" if len(texts) > 1 else "".join(texts)
