"""The second opinion against enumerations small enough to check by hand."""

import numpy as np
import pytest

from benchbook.compare.ranks import signed_rank_interval, tail_probabilities


@pytest.mark.parametrize(("n", "p"), [(5, 0.0625), (6, 0.03125)])
def test_all_blocks_on_one_side_have_the_smallest_possible_p(n, p):
    # Of 2^n sign patterns, one has no positive rank and one has all: 2 / 2^n.
    assert 2 * tail_probabilities(n)[0] == p


def test_the_distribution_is_the_enumeration_of_signs():
    # n = 3: the sums 0..6 occur 1, 1, 1, 2, 1, 1, 1 times among 8 patterns.
    assert np.diff([0, *tail_probabilities(3)]).tolist() == [1 / 8, 1 / 8, 1 / 8, 2 / 8, 1 / 8, 1 / 8, 1 / 8]


def test_tails_agree_with_scipy():
    from scipy.stats import wilcoxon

    values = np.array([-0.02, 0.05, 0.07, 0.01, 0.09, 0.11, 0.04, 0.03])
    # The only negative value has rank 2: W = 2.
    assert wilcoxon(values, method="exact").pvalue == pytest.approx(2 * tail_probabilities(8)[2])


@pytest.mark.parametrize(
    ("n", "level", "is_there"), [(5, 0.95, False), (6, 0.95, True), (6, 0.98, False), (7, 0.98, True)]
)
def test_too_few_blocks_give_no_second_opinion(n, level, is_there):
    assert (signed_rank_interval(np.linspace(0.01, 0.05, n), level) is not None) == is_there


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
    assert signed_rank_interval(wild, 0.98).log_mean == pytest.approx(
        signed_rank_interval(values, 0.98).log_mean, abs=0.002
    )


def test_a_value_that_is_missing_leaves_no_interval():
    assert signed_rank_interval([0.01] * 9 + [float("nan")], 0.98) is None
