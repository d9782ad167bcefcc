"""Comparisons with a bound; a number equal to it up to the last bits is on neither side.

Logarithms, quantiles and sums end in other bits on another processor or with another version of a library. A
label that such a bit decides is no finding. So every decision of this floor asks here, and a tie goes towards
no claim: a number on its bound shows nothing, confirms nothing, and takes no doubt away.
"""

import math
from typing import Literal

TIE = 1e-9
"""Numbers closer than this are a tie, beyond one as a share of the bound: a million times what rounding makes
of log ratios, shares and p values, and far less than any interval resolves."""


def is_above(value: float, bound: float) -> bool:
    """True if a number is above a bound by more than a tie; NaN never is."""
    return value > bound + _tie_width(bound)


def is_below(value: float, bound: float) -> bool:
    """True if a number is below a bound by more than a tie; NaN never is."""
    return value < bound - _tie_width(bound)


def is_inside(low: float, high: float, least: float, most: float) -> bool:
    """True if an interval lies between two bounds and touches neither; an open bound is infinite."""
    return is_above(low, least) and is_below(high, most)


def is_outside(low: float, high: float, least: float, most: float) -> bool:
    """True if an interval lies wholly on one side of two bounds and touches neither."""
    return is_below(high, least) or is_above(low, most)


def sign_of_interval(low: float | None, high: float | None) -> Literal[-1, 0, 1]:
    """Sign of an interval: -1 below zero, 1 above, 0 if it holds or touches zero or is unknown."""
    if low is None or high is None:
        return 0
    return 1 if is_above(low, 0) else -1 if is_below(high, 0) else 0


def _tie_width(bound: float) -> float:
    return TIE * max(1.0, abs(bound)) if math.isfinite(bound) else 0.0
