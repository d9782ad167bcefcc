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
from tests.goldens import assert_golden

LOOKS = Analysis(looks=(5, 10, 20), level=0.98)
MARGIN = 0.03


def blocks(values: list[float]) -> BlockRatios:
    ratios = pd.DataFrame({4: values}, index=pd.RangeIndex(1, len(values) + 1, name="block"))
    ids = dict.fromkeys(ratios.index, ("",))
    return BlockRatios("before", "after", "oltp", "qps", ratios, ids, (), None, (4,))


def spread(mean: float, deviation: float, n: int) -> list[float]:
    """Return n log ratios with exactly this mean and standard deviation."""
    values = np.random.default_rng(7).normal(size=n)
    return list(math.log1p(mean) + deviation * (values - values.mean()) / values.std(ddof=1))


HEAPS = sorted(spread(0.0, 0.02, 9))[::2] + sorted(spread(0.0, 0.02, 9))[1::2]
# Log ratios by block, and True where the measuring is over; goldens/noninferiority.txt has what is decided.
CASES: dict[str, tuple[list[float], bool]] = {
    # t(0.99, 4) = 3.747: half width 3.747 · 0.01 / √5 = 1.68 %, so the lower end is above -3 %.
    "an equal arm is let through": (spread(0.0, 0.01, 5), False),
    "one that lost a tenth is stopped": (spread(-0.10, 0.01, 5), False),
    "before the first look nothing is decided, however clear": (spread(-0.50, 0.001, 4), False),
    # At 5 blocks the half width is 3.747 · 0.02 / √5 = 3.4 %; at 9 it is 2.896 · 0.02 / 3 = 1.9 %.
    "blocks between looks do not count": (HEAPS, False),
    "unless the time is over": (HEAPS, True),
    # 4 % with a half width of 2.821 · 0.015 / √10 = 1.3 %: below zero, and on both sides of the margin.
    "a loss about the margin is open": (spread(-0.04, 0.015, 10), False),
    "and at the last look it is stopped": (spread(-0.04, 0.015, 10), True),
    # 2 % with a half width of 1.3 %.
    "a loss that is shown may reach beyond the margin": (spread(-0.02, 0.015, 10), True),
    "or lie within it": (spread(-0.02, 0.005, 20), True),
    "a wider interval of twenty blocks leaves it open": (spread(-0.02, 0.025, 20), True),
    "no loss to half a per cent has no word of it": (spread(0.0, 0.005, 20), True),
    "noise is no slowdown": (spread(-0.04, 0.10, 20), True),
    # Half of the t interval is 2.821 · 1.054 · 3.15 % / √10 = 2.96 %, below the margin of 3.05 %; of the 55
    # means of two blocks 15 are -3.15 %, also the sixth smallest, where the interval of the ranks ends.
    "the ranks leave open what the mean of two heaps would decide": ([-0.0315, 0.0315] * 5, False),
}


def test_an_arm_is_slower_beyond_the_margin_alone():
    lines = []
    for title, (values, is_over) in CASES.items():
        one = decide_contrast(blocks(values), MARGIN, LOOKS, is_over=is_over)
        lines.append(f"{title}\n  {one.answer} ({one.word}), {len(values)} blocks: {one.why}\n")
    assert_golden("noninferiority.txt", "\n".join(lines))


def test_the_interval_of_a_look_is_that_of_students_t():
    found = decide_contrast(blocks(spread(0.0, 0.01, 5)), MARGIN, LOOKS)
    assert found.interval.log_low == pytest.approx(-0.01676, abs=1e-4)


def test_several_questions_share_the_errors():
    decisions = [decide_contrast(blocks(spread(0, 0.01, 5)), MARGIN, LOOKS, questions=n) for n in (1, 2)]
    assert [decision.interval.level for decision in decisions] == [0.98, 0.99]


def test_an_outlier_that_carries_the_mean_leaves_it_open():
    # Nineteen blocks say -3.5 % to a hundredth of a per cent, one says +5 %: the t interval reaches past the
    # margin, the ranks alone would decide.
    values = [-0.0356 + 0.0001 * (number % 3) for number in range(19)] + [0.05]
    assert decide_contrast(blocks(values), MARGIN, LOOKS, is_over=True).answer in ("undecided", "slower")
    assert decide_contrast(blocks(values), 0.02, LOOKS, is_over=True).answer != "not slower"


def test_the_ranks_decide_with_the_mean_where_the_margin_is_wider():
    decision = decide_contrast(blocks([-0.0315, 0.0315] * 5), MARGIN, LOOKS)
    assert decision.interval.log_low == pytest.approx(-0.0296, abs=1e-4) and decision.answer == "undecided"
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
