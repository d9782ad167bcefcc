"""Outcomes of the parts of a claim: each inside, outside or open, and one verdict of all."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchbook.compare.claims.estimands import BACK, CellSource, ClaimTest, Estimand, NotApplicable
from benchbook.compare.stats import equivalence, tolerance
from benchbook.compare.stats.equivalence import MARGIN, PRACTICAL, RELATIVE_MARGIN, Bounds, Verdict
from benchbook.compare.stats.intervals import Interval
from benchbook.core.artifacts.findings import AnswerPart
from benchbook.core.util.errors import require_value

SAMPLE_P = 0.025
"""One-sided probability below which a few seconds of a run refuse that most of its seconds are in a band."""
NO_SIZE = "no effect was shown, so its size has no trend"
NOT_SHOWN = "not shown by its own repeats"


@dataclass(frozen=True)
class EstimandOutcome:
    """Part with its number, its bounds and its outcome; `p` is None if undecided."""

    part: Estimand
    amount: Interval
    bounds: Bounds
    outcome: Verdict
    p: float | None = None
    reason: str | None = None
    is_flat: bool = False
    """A step of a trend that is too small to say anything."""


def judge_test(claim_test: ClaimTest, outcomes: Sequence[EstimandOutcome], level: float | None) -> Verdict:
    """Judge a claim by its parts: all must hold, or more than half of them; a part that fails is against it.

    Of a few seconds of a run half and less does not refute "most": a sign test must (Dixon & Mood 1946).
    That all hold needs no correction; that some of several do, or don't, takes Holm's, at the `level` of the
    intervals (None: printed numbers have none). What can't be seen does not hold, but it may fail.
    """
    deciding = [outcome for outcome in outcomes if outcome.part.decides]
    steps = [outcome for outcome in deciding if not outcome.is_flat]
    if not steps:
        return "contradicted" if deciding else "inconclusive"
    # Steps that say nothing are left out where most say something.
    deciding = steps if 2 * len(steps) > len(deciding) else deciding
    held, failed = (_count_surviving(deciding, which, level) for which in ("confirmed", "contradicted"))
    if claim_test.must == "most":
        is_held, is_failed = (
            2 * held > len(deciding),
            _refutes_most(failed, len(deciding), claim_test.is_sample),
        )
    else:
        is_held, is_failed = all(outcome.outcome == "confirmed" for outcome in deciding), failed > 0
    if is_failed:
        return "contradicted"
    return "confirmed" if is_held and claim_test.unseen is None else "inconclusive"


def _refutes_most(failed: int, n: int, is_sample: bool) -> bool:
    if not is_sample:
        return 2 * failed >= n
    return sum(math.comb(n, k) for k in range(failed, n + 1)) / 2**n < SAMPLE_P


def as_answer_part(estimand_outcome: EstimandOutcome, repetitions: int | None = None) -> AnswerPart:
    """Part as a row: its number with its interval, its band and its outcome."""
    part, amount, bounds = estimand_outcome.part, estimand_outcome.amount, estimand_outcome.bounds
    logs = (amount.log_mean, amount.log_low, amount.log_high, bounds.log_low, bounds.log_high)
    value, low, high, least, most = (
        BACK[part.scale](log) if log is not None and math.isfinite(log) else None for log in logs
    )
    return AnswerPart(
        **{key: getattr(part, key) for key in ("where", "scale", "decides")},
        **{key: getattr(estimand_outcome, key) for key in ("outcome", "reason")},
        value=value, low=low, high=high, band=(least, most), n=repetitions,
    )  # fmt: skip


def _judge_printed(
    part: Estimand, amount: Interval, bounds: Bounds, value: float, board: CellSource
) -> EstimandOutcome:
    """Outcome of a printed number: inside or outside; open if its repetitions leave it undecided."""
    is_inside = bounds.holds(value)
    if not is_inside and _is_flat(part, value, board):
        return EstimandOutcome(part, amount, bounds, "inconclusive", is_flat=True)
    if not amount.is_known:
        return EstimandOutcome(part, amount, bounds, "confirmed" if is_inside else "contradicted")
    # In a closed band it holds where its repetitions show any effect.
    is_closed = math.isfinite(bounds.log_high - bounds.log_low) and bounds.log_low * bounds.log_high != 0
    if is_inside and is_closed and tolerance.sign_of_interval(amount.log_low, amount.log_high):
        return EstimandOutcome(part, amount, bounds, "confirmed")
    outcome = equivalence.judge_interval(amount, bounds)
    reason = NOT_SHOWN if outcome == "inconclusive" else None
    return EstimandOutcome(part, amount, bounds, outcome, reason=reason)


def _is_flat(part: Estimand, value: float, board: CellSource) -> bool:
    """True of a step of a trend that says nothing: below 1 % of a value, or 2 points of an effect."""
    if part.margin is None:
        return False
    least = PRACTICAL
    if part.margin == "points":
        least = MARGIN / math.exp(require_value(board.amount(part.of[1]).log_mean))
    return abs(value) < math.log1p(least)


def _count_surviving(outcomes: Sequence[EstimandOutcome], which: str, level: float | None) -> int:
    """Number of parts with an outcome, after Holm's correction if they have intervals."""
    counted = [outcome for outcome in outcomes if outcome.outcome == which]
    if level is None or not counted:
        return len(counted)
    p_values = [1.0 if each.p is None or each.outcome != which else each.p for each in outcomes]
    return sum(tolerance.is_below(p, 1 - level) for p in equivalence.adjust_holm(p_values))


def judge_estimand(part: Estimand, board: CellSource, is_printed: bool) -> EstimandOutcome:
    """Outcome of a part of a claim's test; a measured number is inside or outside with its whole interval."""
    amount, bounds = board.amount(part.terms), part.bounds
    reason = amount.reason
    if part.rule == "size":
        # |a| > |b| just where (a - b)(a + b) > 0, so the sign of both together says which way is larger.
        later, earlier = part.of
        both = board.amount((*later, *earlier))
        if require_value(both.log_mean) < 0:
            bounds = bounds.turned
        if not tolerance.sign_of_interval(both.log_low, both.log_high):
            reason = NO_SIZE
    if part.rule == "alike":
        # Of a loss of 99 % a fifth is all that is left, so what is compared is the ratio of both changes: it
        # may be a fifth of the change from 1, of a small one 2 %.
        change = abs(math.expm1(require_value(board.amount(part.of[1]).log_mean)))
        margin = min(max(MARGIN, RELATIVE_MARGIN * change), RELATIVE_MARGIN)
        bounds = Bounds(math.log1p(-margin), math.log1p(margin))
    value = amount.log_mean
    if value is None or math.isnan(value):
        raise NotApplicable(f"{part.where}: no logarithm of a number below zero")
    if is_printed:
        return _judge_printed(part, amount, bounds, value, board)
    if reason is None and amount.is_known:
        decision = equivalence.decide_verdict(amount, bounds)
        return EstimandOutcome(part, amount, bounds, decision.outcome, decision.p)
    return EstimandOutcome(part, amount, bounds, "inconclusive", None, reason)
