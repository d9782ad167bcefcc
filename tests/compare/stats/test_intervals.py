"""Intervals against numbers worked by hand and by other programs."""

import math

import numpy as np
import pandas as pd
import pytest

from benchbook.compare.stats import intervals
from benchbook.compare.stats.intervals import signed_rank_interval, t_interval, t_quantile, tail_probabilities

FIVE = np.log([1.062, 1.071, 1.058, 1.081, 1.049])
# Four blocks (rows) at three thread levels (columns), log ratios.
TABLE = pd.DataFrame([(62, 55, 71), (70, 49, 66), (58, 60, 75), (66, 52, 69)], columns=[4, 8, 16]) / 1000


@pytest.mark.parametrize(
    ("probability", "df", "quantile"),
    [
        (0.975, 2, 4.302653),
        (0.975, 3, 3.182446),
        (0.975, 4, 2.776445),
        (0.975, 9, 2.262157),
        (0.99, 4, 3.746947),
        (0.99, 9, 2.821438),
        (0.99, 19, 2.539483),
    ],
)
def test_quantiles_are_those_of_printed_tables(probability, df, quantile):
    assert t_quantile(probability, df) == pytest.approx(quantile, abs=5e-7)


@pytest.mark.parametrize(
    ("level", "low", "high"), [(0.95, 0.0490242172, 0.0794805478), (0.98, 0.0437901431, 0.0848935910)]
)
def test_five_blocks_give_the_interval_on_the_log_scale(level, low, high):
    interval = t_interval(FIVE, level)
    expected = (0.0641434286, low, high)
    assert (interval.effect, interval.low, interval.high) == pytest.approx(expected, abs=1e-10)
    assert (interval.n, interval.df, interval.reason) == (5, 4, None)


def test_one_outlier_widens_the_interval_over_zero_instead_of_being_dropped():
    # Mean 2 of (-8, 2, 3, 4, 5, 6), s = 5.099; benchstat prints 2 [-3.351, 7.351] for it.
    interval = t_interval([-8, 2, 3, 4, 5, 6], 0.95)
    assert interval.log_mean == pytest.approx(2)
    assert (interval.log_low, interval.log_high) == pytest.approx((-3.351092806089359, 7.351092806089359))


@pytest.mark.parametrize(
    ("values", "effect", "is_known", "reason"),
    [
        ([], None, False, "no complete block"),
        ([0.05], 0.05, False, "3 blocks"),
        ([0.05, 0.07], 0.06, False, "3 blocks"),
        ([0.05, 0.06, 0.07], 0.06, True, ""),
        # Blocks that are copies of each other claim no certainty.
        ([math.log(1.07)] * 5, math.log(1.07), False, "same ratio"),
        ([0.05, math.nan, 0.06, 0.07], None, False, "number"),
    ],
)
def test_too_few_blocks_and_what_is_no_number_have_no_interval_but_a_reason(values, effect, is_known, reason):
    interval = t_interval(values, 0.98)
    assert interval.effect == (None if effect is None else pytest.approx(math.expm1(effect)))
    assert (interval.is_known, interval.low is not None) == (is_known, is_known)
    assert reason in (interval.reason or "") and bool(interval.reason) != is_known


def test_the_headline_takes_blocks_as_the_unit():
    interval = intervals.block_interval(TABLE, 0.95)
    expected = (0.0647606158, 0.0628402381, 0.0666844633)
    assert (interval.effect, interval.low, interval.high) == pytest.approx(expected, abs=1e-10)


def test_dependence_on_threads_is_a_two_way_f_test():
    found = intervals.thread_test(TABLE)
    assert (found.f, found.p, found.df1, found.df2) == pytest.approx((9.1015992, 0.0152348, 2, 6), rel=1e-5)
    assert np.exp(TABLE.mean()).tolist() == pytest.approx([1.0660924, 1.0554846, 1.0727763], abs=1e-7)


@pytest.mark.parametrize("table", [TABLE.iloc[:1], TABLE[[4]], TABLE * 0 + 0.05])
def test_what_cannot_be_tested_is_absent(table):
    assert intervals.thread_test(table) is None


def _fieller(a, b, level):
    """Ratio of two independent means by Fieller's theorem, each with its own variance."""
    variance_a, variance_b = np.var(a, ddof=1) / len(a), np.var(b, ddof=1) / len(b)
    df = len(a) + len(b) - 2
    mean_b, t = np.mean(b), t_quantile((1 + level) / 2, df)
    ratio = np.mean(a) / mean_b
    g = t**2 * variance_b / mean_b**2
    half = t / mean_b * math.sqrt((1 - g) * variance_a + ratio**2 * variance_b)
    return ratio, g, df, (ratio - half) / (1 - g), (ratio + half) / (1 - g)


def test_fiellers_interval_agrees_with_ours():
    a = np.array([49, 51, 50, 48, 52, 50, 49.5, 50.5])
    b = np.array([98, 102, 99, 101, 100, 97, 103, 100])
    ratio, g, df, low, high = _fieller(a, b, 0.95)
    assert (ratio, df) == (pytest.approx(0.5), 14)
    assert g == pytest.approx(2.3001e-4, abs=5e-9)
    assert (low, high) == pytest.approx((0.4881234, 0.5121067), abs=5e-8)
    # The two rest on different assumptions; on tame data they must tell the same story.
    ours = t_interval(np.log(a / b), 0.95)
    assert (1 + ours.low, 1 + ours.high) == pytest.approx((low, high), rel=0.01)


@pytest.mark.parametrize(
    ("method", "low", "high"), [("percentile", 1.05517, 1.07436), ("BCa", 1.05519, 1.07499)]
)
def test_a_bootstrap_would_be_too_sure(method, low, high):
    from scipy.stats import bootstrap

    how = {"confidence_level": 0.95, "n_resamples": 9999, "random_state": np.random.default_rng(1)}
    found = bootstrap((FIVE,), np.mean, method=method, **how).confidence_interval
    assert (math.exp(found.low), math.exp(found.high)) == pytest.approx((low, high), abs=3e-4)
    ours = t_interval(FIVE, 0.95)
    assert found.high - found.low < 0.75 * (ours.log_high - ours.log_low)


@pytest.mark.parametrize(("n", "narrower"), [(3, 0.372), (5, 0.631), (10, 0.822), (20, 0.913)])
def test_how_much_narrower_a_percentile_bootstrap_is(n, narrower):
    # z / t · √((n-1)/n): the plug-in variance and the normal quantile both err on the narrow side.
    assert 1.959964 / t_quantile(0.975, n - 1) * math.sqrt((n - 1) / n) == pytest.approx(narrower, abs=5e-4)


def test_the_distribution_is_the_enumeration_of_signs_and_tails_agree_with_scipy():
    from scipy.stats import wilcoxon

    # Of 2^n sign patterns, one has no positive rank and one has all: 2 / 2^n is the smallest possible p.
    assert [2 * tail_probabilities(n)[0] for n in (5, 6)] == [0.0625, 0.03125]
    # n = 3: the sums 0..6 occur 1, 1, 1, 2, 1, 1, 1 times among 8 patterns.
    assert np.diff([0, *tail_probabilities(3)]).tolist() == [1 / 8, 1 / 8, 1 / 8, 2 / 8, 1 / 8, 1 / 8, 1 / 8]

    values = np.array([-0.02, 0.05, 0.07, 0.01, 0.09, 0.11, 0.04, 0.03])
    # The only negative value has rank 2: W = 2.
    assert wilcoxon(values, method="exact").pvalue == pytest.approx(2 * tail_probabilities(8)[2])


@pytest.mark.parametrize(
    ("n", "level", "is_there"), [(5, 0.95, False), (6, 0.95, True), (6, 0.98, False), (7, 0.98, True)]
)
def test_too_few_blocks_give_no_second_opinion(n, level, is_there):
    assert (signed_rank_interval(np.linspace(0.01, 0.05, n), level) is not None) == is_there
    assert signed_rank_interval([0.01] * n + [float("nan")], level) is None


def test_at_its_smallest_n_the_interval_is_the_range():
    values = [0.01, 0.02, 0.04, 0.03, 0.09, 0.05]
    interval = signed_rank_interval(values, 0.95)
    assert (interval.log_low, interval.log_high) == (0.01, 0.09)


def test_ten_blocks_leave_out_the_five_outermost_pair_means():
    # P(W <= 5) = 10/1024 <= 0.01 < P(W <= 6) = 14/1024, so pair means 6 and 50 of the 55 bound the interval.
    values = np.array([2, 3, 5, 7, 11, 13, 17, 19, 23, 29]) / 1000
    means = sorted((values[i] + values[j]) / 2 for i in range(10) for j in range(i, 10))
    interval = signed_rank_interval(values, 0.98)
    assert (interval.log_low, interval.log_high) == pytest.approx((means[5], means[49]))
    assert interval.log_mean == pytest.approx(means[27])


def test_one_outlier_moves_the_second_opinion_little():
    values = np.array([0.05, 0.052, 0.055, 0.049, 0.051, 0.053, 0.048, 0.054, 0.047, 0.046])
    wild = values.copy()
    wild[0] = -2.0
    calm, moved = (signed_rank_interval(one, 0.98).log_mean for one in (values, wild))
    assert moved == pytest.approx(calm, abs=0.002)
