"""Equivalence tests: bands fixed before the first run, looks, and three verdicts.

Equivalence is shown by inclusion of the interval (Schuirmann 1987); what is not shown stays open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from scipy.special import stdtr

from benchbook.compare.stats import tolerance
from benchbook.compare.stats.intervals import Interval
from benchbook.core.artifacts.findings import Direction, Label, Verdict
from benchbook.core.util.errors import require_value
from benchbook.core.util.estimate import USEFUL_RATIO

DECIDED = frozenset({"higher", "lower", "no practical difference"})

MARGIN = 0.02
RELATIVE_MARGIN = 0.2
PRACTICAL = 0.01


@dataclass(frozen=True)
class Bounds:
    """Ends in logarithms (or plain numbers, for a power) for a part; strict ends are outside."""

    log_low: float = -math.inf
    log_high: float = math.inf
    is_strict: bool = False

    def holds(self, value: float) -> bool:
        """True if a number without an interval lies inside."""
        if self.is_strict:
            return tolerance.is_above(value, self.log_low) and tolerance.is_below(value, self.log_high)
        return not tolerance.is_below(value, self.log_low) and not tolerance.is_above(value, self.log_high)

    @property
    def turned(self) -> Bounds:
        """The same bounds on the other side of zero."""
        return Bounds(-self.log_high, -self.log_low, self.is_strict)


@dataclass(frozen=True)
class EquivalenceBand:
    """The effects that a claim allows, as fractions; an end of None is open.

    The ends belong to the band unless `is_strict`: "more than 30 %" is not 30 %.
    """

    low: float | None
    high: float | None
    is_strict: bool = False

    @property
    def log_low(self) -> float:
        return -math.inf if self.low is None or self.low <= -1 else math.log1p(self.low)

    @property
    def log_high(self) -> float:
        return math.inf if self.high is None else math.log1p(self.high)


NO_DIFFERENCE = EquivalenceBand(-PRACTICAL, PRACTICAL)
Outcome = TypeVar("Outcome", bound=str)


@dataclass(frozen=True)
class TestedOutcome(Generic[Outcome]):
    """Outcome, and the p value that it would still be reached at (None: it decides nothing).

    `agrees` is False if a second opinion leads elsewhere, `survives` if Holm's correction takes it away.
    """

    outcome: Outcome
    p: float | None
    agrees: bool = True
    survives: bool = True


def point_band(value: float) -> EquivalenceBand:
    """Band of a claimed number: its `near` band, for a small number at most half of it.

    So the band of a number with a sign ends before zero: "1.21 % lower" is 0.61 to 1.82 % lower, and neither
    nothing nor a rise. A claimed zero allows ± 2 percentage points.
    """
    return EquivalenceBand(value - _claim_margin(value), value + _claim_margin(value))


def range_band(low: float, high: float) -> EquivalenceBand:
    """Band of a claimed range: each end widened as a point is, by 2 percentage points or a fifth of it.

    Where the range has a direction, zero stays outside.
    """
    below, above = _claim_margin(low), _claim_margin(high)
    if low < 0 < high or low == high == 0:
        return EquivalenceBand(low - max(MARGIN, below), high + max(MARGIN, above))
    return EquivalenceBand(low - below if low else 0.0, high + above if high else 0.0)


def _claim_margin(value: float) -> float:
    """Margin of a claimed effect: 2 points or a fifth of it, of a small one half; of zero 2 points."""
    return max(min(MARGIN, abs(value) / 2), RELATIVE_MARGIN * abs(value)) if value else MARGIN


def reached_look(n: int, looks: Sequence[int]) -> int | None:
    """Last look that n blocks have reached; None before the first."""
    return max((look for look in looks if look <= n), default=None)


def next_look(n: int, looks: Sequence[int]) -> int | None:
    """Next look after n blocks; None after the last."""
    return min((look for look in looks if look > n), default=None)


def judge_interval(ends: Interval, band: EquivalenceBand | Bounds) -> Verdict:
    """Judge a claim: the interval inside its band, entirely outside, or neither (at a tie too)."""
    if ends.log_low is None or ends.log_high is None:
        return "inconclusive"
    both = ends.log_low, ends.log_high, band.log_low, band.log_high
    if tolerance.is_inside(*both):
        return "confirmed"
    return "contradicted" if tolerance.is_outside(*both) else "inconclusive"


def label_interval(ends: Interval) -> Label:
    """Label of an interval without any claim; ± 1 percentage point is no practical difference."""
    if judge_interval(ends, NO_DIFFERENCE) == "confirmed":
        return "no practical difference"
    labels: dict[int, Label] = {1: "higher", -1: "lower", 0: "not shown"}
    return labels[tolerance.sign_of_interval(ends.log_low, ends.log_high)]


def is_useful(ends: Interval) -> bool:
    """True if an interval is narrow enough to be quoted; an unknown one is no reason to withhold."""
    if ends.log_low is None or ends.log_high is None:
        return True
    return tolerance.is_below(ends.log_high - ends.log_low, math.log(USEFUL_RATIO))


def judge_direction(ends: Interval, value: float) -> Direction | None:
    """Direction of a contradicted claim, right or wrong; None for a claim of no difference."""
    if not ends.is_known or value == 0:
        return None
    if not (sign := tolerance.sign_of_interval(ends.log_low, ends.log_high)):
        return "no effect"
    return "right" if sign * value > 0 else "opposite"


def decide_verdict(
    interval: Interval, band: EquivalenceBand | Bounds, second: Interval | None = None
) -> TestedOutcome[Verdict]:
    """Judge a claim, with the p value that Holm's correction needs; `second` is a second opinion."""
    outcome = judge_interval(interval, band)
    agrees = second is None or judge_interval(second, band) == outcome
    if outcome == "inconclusive":
        return TestedOutcome(outcome, None, agrees)
    is_inside = outcome == "confirmed"
    tails = _tail_p(interval, band.log_low, not is_inside), _tail_p(interval, band.log_high, is_inside)
    return TestedOutcome(outcome, max(tails) if is_inside else min(tails), agrees)


def decide_label(interval: Interval, second: Interval | None = None) -> TestedOutcome[Label]:
    """Label an effect, with the p value that Holm's correction needs; `second` is a second opinion."""
    outcome = label_interval(interval)
    agrees = second is None or label_interval(second) == outcome
    if outcome == "no practical difference":
        return TestedOutcome(outcome, decide_verdict(interval, NO_DIFFERENCE).p, agrees)
    return TestedOutcome(outcome, None if outcome == "not shown" else p_value(interval), agrees)


def p_value(interval: Interval) -> float | None:
    """Two-sided p value of "no effect"; None without an interval."""
    return min(_tail_p(interval, 0.0), _tail_p(interval, 0.0, is_below=True)) if interval.is_known else None


def _tail_p(interval: Interval, bound: float, is_below: bool = False) -> float:
    """Twice the tail of "the effect is not above (or below) the bound", as a two-sided interval spends it."""
    distance = (require_value(interval.log_mean) - bound) / require_value(interval.standard_error)
    return float(2 * stdtr(interval.df, distance if is_below else -distance))


def adjust_holm(p_values: Sequence[float]) -> list[float]:
    """P values adjusted so that the chance of any false rejection stays bounded (Holm 1979).

    >>> [round(p, 2) for p in adjust_holm([0.01, 0.04, 0.03, 0.005])]
    [0.03, 0.06, 0.06, 0.02]
    """
    p = _check_p_values(p_values)
    order = np.argsort(p, kind="stable")
    steps = p[order] * np.arange(len(p), 0, -1)
    return np.minimum(np.maximum.accumulate(steps), 1)[np.argsort(order)].tolist()


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """q values: the expected share of false ones among all at least as small (Benjamini 1995).

    >>> [round(q, 2) for q in benjamini_hochberg([0.01, 0.04, 0.03, 0.005])]
    [0.02, 0.04, 0.04, 0.02]
    """
    p = _check_p_values(p_values)
    order = np.argsort(p, kind="stable")[::-1]
    steps = p[order] * len(p) / np.arange(len(p), 0, -1)
    return np.minimum(np.minimum.accumulate(steps), 1)[np.argsort(order)].tolist()


def _check_p_values(p_values: Sequence[float]) -> np.ndarray:
    p = np.asarray(p_values, dtype=float)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p values must lie between 0 and 1: {list(p_values)}")
    return p
