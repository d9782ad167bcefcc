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
    assert max(correct([0.9, 0.8, 0.7])) <= 1


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
def test_something_that_is_no_probability_is_refused(correct):
    with pytest.raises(ValueError, match="between 0 and 1"):
        correct([0.1, float("nan")])
