"""The gate's decision: intervals against the margin, looks, several questions, and the second opinion."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchbook.compare.stats.noninferiority import NoninferiorityDecision, combine_answers, decide_contrast
from benchbook.compare.stats.pairs import BlockRatios
from benchbook.core.study.params import Analysis
from tests import depth

LOOKS = Analysis(looks=(5, 10, 20), level=0.98)
MARGIN = 0.03


def blocks(values: list[float]) -> BlockRatios:
    ratios = pd.DataFrame({4: values}, index=pd.RangeIndex(1, len(values) + 1, name="block"))
    return BlockRatios(
        "before", "after", "oltp", "qps", ratios, dict.fromkeys(ratios.index, ("",)), (), None, (4,)
    )


def spread(mean: float, deviation: float, n: int) -> list[float]:
    """Return n log ratios with exactly this mean and standard deviation."""
    values = np.random.default_rng(7).normal(size=n)
    return list(math.log1p(mean) + deviation * (values - values.mean()) / values.std(ddof=1))


def answer(mean: float, deviation: float, n: int, **more: object) -> str:
    return decide_contrast(blocks(spread(mean, deviation, n)), MARGIN, LOOKS, **more).answer


def test_equal_arms_are_not_slower_at_the_first_look():
    # t(0.99, 4) = 3.747: half width 3.747 · 0.01 / √5 = 1.68 %, so the lower end is above -3 %.
    found = decide_contrast(blocks(spread(0.0, 0.01, 5)), MARGIN, LOOKS)
    assert found.answer == "not slower"
    assert found.interval.log_low == pytest.approx(-0.01676, abs=1e-4)


def test_an_arm_far_below_the_margin_is_slower_at_the_first_look():
    assert answer(-0.10, 0.01, 5) == "slower"


def test_before_the_first_look_nothing_is_decided_however_clear():
    assert answer(-0.50, 0.001, 4) == "undecided"


def test_blocks_between_looks_count_only_when_the_time_is_over():
    # At 5 blocks the half width is 3.747 · 0.02 / √5 = 3.4 %; at 9 it is 2.896 · 0.02 / 3 = 1.9 %.
    values = spread(0.0, 0.02, 9)
    values = sorted(values)[::2] + sorted(values)[1::2]
    assert decide_contrast(blocks(values), MARGIN, LOOKS).answer == "undecided"
    assert decide_contrast(blocks(values), MARGIN, LOOKS, is_over=True).answer == "not slower"


def test_a_slowdown_shown_near_the_margin_is_slower_only_at_the_end():
    # 4 % with a half width of 2.821 · 0.015 / √10 = 1.3 %: below zero, and on both sides of the margin.
    values = spread(-0.04, 0.015, 10)
    assert decide_contrast(blocks(values), MARGIN, LOOKS).answer == "undecided"
    assert decide_contrast(blocks(values), MARGIN, LOOKS, is_over=True).answer == "slower"


def test_a_slowdown_within_the_margin_is_never_called_slower():
    # 2 % with a half width of 1.3 %: shown, estimate within the margin, and the interval reaches beyond it.
    assert answer(-0.02, 0.015, 10, is_over=True) == "undecided"
    assert answer(-0.02, 0.005, 20, is_over=True) == "not slower"
    words = [
        decide_contrast(blocks(spread(-0.02, one, 20)), MARGIN, LOOKS, is_over=True).word
        for one in (0.005, 0.025)
    ]
    assert words == ["slower, within the margin", "slower, perhaps beyond the margin"]
    assert decide_contrast(blocks(spread(0.0, 0.005, 20)), MARGIN, LOOKS).word == "not slower"


def test_noise_is_no_slowdown():
    assert answer(-0.04, 0.10, 20, is_over=True) == "undecided"


def test_several_questions_share_the_errors():
    one = decide_contrast(blocks(spread(0, 0.01, 5)), MARGIN, LOOKS)
    of_two = decide_contrast(blocks(spread(0, 0.01, 5)), MARGIN, LOOKS, questions=2)
    assert (one.interval.level, of_two.interval.level) == (0.98, 0.99)


def test_an_outlier_that_carries_the_mean_leaves_it_open():
    # Nineteen blocks say -3.5 % to a hundredth of a per cent, one says +5 %: the t interval reaches past the
    # margin, the ranks alone would decide.
    values = [-0.0356 + 0.0001 * (number % 3) for number in range(19)] + [0.05]
    assert decide_contrast(blocks(values), MARGIN, LOOKS, is_over=True).answer in ("undecided", "slower")
    assert decide_contrast(blocks(values), 0.02, LOOKS, is_over=True).answer != "not slower"


def test_the_ranks_leave_open_what_the_mean_of_two_heaps_would_decide():
    # Half of the t interval is 2.821 · 1.054 · 3.15 % / √10 = 2.96 %, above the margin of 3.05 %; of the 55
    # means of two blocks 15 are -3.15 %, also the sixth smallest, where the interval of the ranks ends.
    decision = decide_contrast(blocks([-0.0315, 0.0315] * 5), MARGIN, LOOKS)
    assert decision.interval.log_low == pytest.approx(-0.0296, abs=1e-4)
    assert decision.answer == "undecided" and "believes nothing about the shape" in decision.why
    assert decide_contrast(blocks([-0.0315, 0.0315] * 5), 0.032, LOOKS).answer == "not slower"


@pytest.mark.parametrize(
    ("answers", "whole"),
    [
        (["not slower", "not slower"], "not slower"),
        (["not slower", "undecided"], "undecided"),
        (["undecided", "slower"], "slower"),
    ],
)
def test_one_slower_arm_is_enough_and_one_open_question_leaves_it_open(answers, whole):
    interval = decide_contrast(blocks([]), MARGIN, LOOKS).interval
    assert combine_answers([NoninferiorityDecision("w", "a", one, interval, "") for one in answers]) == whole


def test_both_errors_are_rare():
    # Gates of 20 blocks with 2 % noise: an arm slower by the margin is let through, and an equal arm stopped,
    # at most once in forty each, and three binomial deviations beyond.
    random, gates = np.random.default_rng(1), depth.examples(2000)
    wrong = {"not slower": 0, "slower": 0}
    for truth, bad in ((math.log1p(-MARGIN), "not slower"), (0.0, "slower")):
        for _ in range(gates):
            values = list(random.normal(truth, 0.02, size=20))
            wrong[bad] += decide_contrast(blocks(values), MARGIN, LOOKS, is_over=True).answer == bad
    assert max(wrong.values()) <= 0.025 * gates + 3 * math.sqrt(0.025 * 0.975 * gates)


def test_what_refuses_the_ratios_is_the_reason_when_the_time_is_over():
    some = blocks([0.0])
    none = replace(some, ratios=some.ratios.iloc[:0], refusal="a run has no queries")
    found = decide_contrast(none, MARGIN, LOOKS, is_over=True)
    assert (found.answer, found.why) == ("undecided", "a run has no queries")
