"""E-divisive: the statistic by hand, a planted step at its place, and silence where there is none."""

import numpy as np
import pytest

from benchbook.compare import changes


def test_the_statistic_of_two_levels_by_hand():
    """Three zeros, then three ones: mean distance between the sides 1, within each 0.

    n m / (n + m) × (2 × 1 - 0 - 0) = 9 / 6 × 2 = 3.
    """
    values = np.array([0.0, 0, 0, 1, 1, 1])
    assert changes.divergences(np.abs(values[:, None] - values)) == pytest.approx([3.0])


def test_the_statistic_of_an_uneven_split_by_hand():
    """0 0 3 | 3 3 3 3: between (4+4+0)·3/12 = 2; within the left pairs (0, 3, 3): mean 2; right 0.

    3 × 4 / 7 × (2 × 2 - 2 - 0) = 24 / 7. At 0 0 3 3 | 3 3 3: between 6·3/12 = 1.5; left pairs 0, 3 × 4, 0: 2.
    """
    values = np.array([0.0, 0, 3, 3, 3, 3, 3])
    found = changes.divergences(np.abs(values[:, None] - values))
    assert found == pytest.approx([12 / 7 * (2 * 2 - 2), 12 / 7 * (2 * 1.5 - 2)])


@pytest.mark.parametrize("place", [5, 15, 24])
def test_a_planted_step_is_found_where_it_is(place):
    values = np.random.default_rng(place).normal(0, 1, 30) + 5 * (np.arange(30) >= place)
    assert changes.change_points(values) == [place]


def test_two_steps_are_two_changes():
    values = np.random.default_rng(4).normal(0, 1, 45) + 6 * (np.arange(45) >= 15) - 8 * (np.arange(45) >= 30)
    assert changes.change_points(values) == [15, 30]


def test_thirty_quiet_series_of_thirty_have_no_change():
    random = np.random.default_rng(30)
    assert [changes.change_points(random.normal(size=30)) for _ in range(30)] == [[]] * 30


@pytest.mark.parametrize("values", [[], [1.0], [0.0] * 3 + [9.0] * 3, [1.0] * 30, [0.0] * 29 + [50.0]])
def test_too_few_values_no_spread_or_one_outlier_are_no_change(values):
    assert changes.change_points(values) == []


def test_units_and_direction_do_not_matter_and_the_answer_is_the_same_twice():
    values = np.random.default_rng(8).normal(0, 1, 30) + 2.5 * (np.arange(30) >= 12)
    once = changes.change_points(values)
    assert once == changes.change_points(values) == changes.change_points(-1e6 * values + 3)


def test_a_value_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="no number"):
        changes.change_points([1.0, float("nan"), 2.0])
