"""Corrections for several tests."""

import pytest

from benchbook.compare.multiple import benjamini_hochberg, holm


def test_holm_steps_down():
    # Sorted .005 .01 .03 .04 times 4 3 2 1 = .02 .03 .06 .04, and never falling: .02 .03 .06 .06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_benjamini_hochberg_steps_up():
    # Sorted .005 .01 .03 .04 times 4/1 4/2 4/3 4/4 = .02 .02 .04 .04.
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
def test_one_test_needs_no_correction_and_none_is_none(correct):
    assert correct([0.03]) == [0.03]
    assert correct([]) == []


def test_no_corrected_value_is_above_one():
    # .7 times 3 is 2.1, cut to 1; what comes after never falls.
    assert holm([0.9, 0.8, 0.7]) == [1.0, 1.0, 1.0]
    # .9, .8 x 3/2 = 1.2 and .7 x 3 = 2.1, none above the one after it.
    assert benjamini_hochberg([0.9, 0.8, 0.7]) == pytest.approx([0.9, 0.9, 0.9])


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
def test_nought_and_one_are_probabilities(correct):
    # Twice 0 is 0, and the last of two stays as it is.
    assert correct([1.0, 0.0]) == [1.0, 0.0]


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
@pytest.mark.parametrize("wrong", [float("nan"), -0.01, 1.01])
def test_something_that_is_no_probability_is_refused_with_all_that_were_given(correct, wrong: float):
    with pytest.raises(ValueError, match=rf"must lie between 0 and 1: \[0\.1, {wrong}\]"):
        correct([0.1, wrong])
