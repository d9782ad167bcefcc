"""Bands, looks, and the three verdicts."""

import numpy as np
import pytest

from benchbook.compare.stats import equivalence
from benchbook.compare.stats.equivalence import (
    EquivalenceBand,
    adjust_holm,
    benjamini_hochberg,
    judge_direction,
    judge_interval,
    point_band,
    range_band,
)
from benchbook.compare.stats.intervals import Interval, t_interval, t_quantile

LOOKS = (5, 10, 20)
# [+4.38 %, +8.49 %] at 98 %.
FIVE = t_interval(np.log([1.062, 1.071, 1.058, 1.081, 1.049]), 0.98)


@pytest.mark.parametrize(
    ("band", "expected"),
    [
        ((0.05, 0.09), "inconclusive"),
        ((0.04, 0.09), "confirmed"),
        ((0.04, 0.10), "confirmed"),
        ((-0.02, 0.02), "contradicted"),
        ((0.09, 0.15), "contradicted"),
        # A bound is not widened.
        ((-0.05, None, True), "confirmed"),
        ((None, 0.04, True), "contradicted"),
        ((0.05, None, True), "inconclusive"),
    ],
)
def test_verdicts_on_one_interval(band, expected):
    assert judge_interval(FIVE, EquivalenceBand(*band)) == expected


@pytest.mark.parametrize(
    ("band", "low", "high"),
    [
        # Two points or a fifth.
        (point_band(0.07), 0.05, 0.09),
        (point_band(-0.30), -0.36, -0.24),
        (range_band(0.5, 0.6), 0.4, 0.72),
        # Half of a small number: 1.21 % lower is 0.605 to 1.815 % lower. From 4 % on 2 points are less.
        (point_band(-0.0121), -0.01815, -0.00605),
        (point_band(0.03), 0.015, 0.045),
        (point_band(0.04), 0.02, 0.06),
        (point_band(0.0), -0.02, 0.02),
        # A range with a direction keeps it: 1 to 3 % is widened by half of each, 0 to 3 % begins at nothing.
        (range_band(0.01, 0.03), 0.005, 0.045),
        (range_band(-0.03, 0.0), -0.045, 0.0),
        (range_band(-0.01, 0.01), -0.03, 0.03),
        (range_band(0.0, 0.0), -0.02, 0.02),
    ],
)
def test_a_claim_is_widened_and_a_small_one_keeps_its_direction(band, low, high):
    assert (band.low, band.high) == pytest.approx((low, high))


def test_no_interval_decides_nothing():
    nothing = Interval(2, 0.98, 0.5, reason="an interval needs 3 blocks")
    assert judge_interval(nothing, EquivalenceBand(-1, 1)) == "inconclusive"
    assert equivalence.label_interval(nothing) == "not shown"
    assert judge_direction(nothing, 0.1) is None


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.01, 0.05, "higher"),
        (-0.05, -0.001, "lower"),
        (-0.009, 0.009, "no practical difference"),
        (0.001, 0.009, "no practical difference"),
        (-0.02, 0.03, "not shown"),
    ],
)
def test_labels(low, high, expected):
    ends = Interval(5, 0.98, 0.0, np.log1p(low), np.log1p(high), 0.01, 4)
    assert equivalence.label_interval(ends) == expected


def test_a_contradicted_claim_may_still_have_the_sign_right():
    assert judge_direction(FIVE, 0.20) == "right"
    assert judge_direction(FIVE, -0.05) == "opposite"
    assert judge_direction(t_interval([-0.01, 0.01, 0.02, -0.02, 0.005], 0.98), 0.10) == "no effect"
    assert judge_direction(FIVE, 0.0) is None


@pytest.mark.parametrize(
    ("n", "reached", "following"),
    [(0, None, 5), (4, None, 5), (5, 5, 10), (9, 5, 10), (10, 10, 20), (25, 20, None)],
)
def test_between_looks_the_last_one_counts(n, reached, following):
    assert (equivalence.reached_look(n, LOOKS), equivalence.next_look(n, LOOKS)) == (reached, following)


@pytest.mark.parametrize(
    "band",
    [
        EquivalenceBand(0.04, 0.09),
        EquivalenceBand(-0.02, 0.02),
        EquivalenceBand(0.09, 0.15),
        EquivalenceBand(-0.05, None, is_strict=True),
        EquivalenceBand(None, 0.04, is_strict=True),
    ],
)
def test_the_p_value_of_a_decision_is_where_its_interval_would_touch_the_band(band):
    decision = equivalence.decide_verdict(FIVE, band)
    assert 0 < decision.p < 0.02
    mean, error = FIVE.log_mean, FIVE.standard_error
    for level, still in ((1 - decision.p - 1e-6, True), (1 - decision.p + 1e-6, False)):
        half = t_quantile((1 + level) / 2, FIVE.df) * error
        wider = Interval(5, level, mean, mean - half, mean + half, error, 4)
        assert (judge_interval(wider, band) == decision.outcome) == still


def test_a_label_has_the_p_value_of_its_t_test():
    decision = equivalence.decide_label(FIVE)
    # t = 12.0 with 4 df.
    assert (decision.outcome, decision.p) == ("higher", pytest.approx(0.00027, rel=0.05))
    assert equivalence.decide_label(t_interval([-0.01, 0.01, 0.02], 0.98)).p is None


def _crossings(blocks: np.ndarray, looks: tuple[int, ...], threshold) -> float:
    """Share of rows of unit noise whose t statistic passes the threshold at any look."""
    sums, squares = blocks.cumsum(axis=1), (blocks**2).cumsum(axis=1)
    crossed = np.zeros(len(blocks), dtype=bool)
    for n in looks:
        mean = sums[:, n - 1] / n
        variance = (squares[:, n - 1] - n * mean**2) / (n - 1)
        crossed |= np.abs(mean) / np.sqrt(variance / n) > threshold(n)
    return crossed.mean()


def test_three_looks_at_98_percent_keep_five_percent_errors_and_peeking_does_not():
    blocks = np.random.default_rng(20261120).standard_normal((60_000, 30))
    planned = _crossings(blocks, LOOKS, lambda n: t_quantile(0.99, n - 1))
    peeking = _crossings(blocks, tuple(range(3, 31)), lambda n: t_quantile(0.975, n - 1))
    # Standard errors: √(.05 · .95 / 60000) = .0009 and .0018.
    assert planned == pytest.approx(0.05, abs=0.004)
    assert peeking == pytest.approx(0.265, abs=0.01)


@pytest.mark.parametrize(
    ("p_values", "holm", "hochberg"),
    [
        # Sorted .005 .01 .03 .04 times 4 3 2 1 = .02 .03 .06 .04, never falling; times 4/1 4/2 4/3 4/4 else.
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02], [0.02, 0.04, 0.04, 0.02]),
        # One test needs no correction.
        ([0.03], [0.03], [0.03]),
        ([], [], []),
        # .7 times 3 is 2.1, cut to 1; .9, .8 x 3/2 = 1.2 and .7 x 3 = 2.1, none above the one after it.
        ([0.9, 0.8, 0.7], [1.0, 1.0, 1.0], [0.9, 0.9, 0.9]),
        # Twice 0 is 0, and the last of two stays as it is.
        ([1.0, 0.0], [1.0, 0.0], [1.0, 0.0]),
    ],
)
def test_holm_steps_down_and_benjamini_hochberg_up(p_values, holm, hochberg):
    assert adjust_holm(p_values) == pytest.approx(holm)
    assert benjamini_hochberg(p_values) == pytest.approx(hochberg)


@pytest.mark.parametrize("correct", [adjust_holm, benjamini_hochberg])
@pytest.mark.parametrize("wrong", [float("nan"), -0.01, 1.01])
def test_something_that_is_no_probability_is_refused_with_all_that_were_given(correct, wrong: float):
    with pytest.raises(ValueError, match=rf"must lie between 0 and 1: \[0\.1, {wrong}\]"):
        correct([0.1, wrong])
