"""Non-inferiority of a treatment by a margin of throughput: the decision of a gate.

Two errors are bounded, each by half of what the interval leaves out: `not slower` of an arm that is slower by
the margin or more (by the interval's lower end), and `slower` of an arm that is not slower (by its upper).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from benchbook.compare.stats import tolerance
from benchbook.compare.stats.intervals import Interval, block_interval, signed_rank_interval
from benchbook.compare.stats.pairs import BlockRatios
from benchbook.core.study.params import Analysis

Answer = Literal["not slower", "slower", "undecided"]


@dataclass(frozen=True)
class NoninferiorityDecision:
    """Answer for one treatment at one workload, with its deciding interval and the reason."""

    workload: str
    treatment: str
    answer: Answer
    interval: Interval
    why: str
    shows_slowdown: bool = False

    @property
    def word(self) -> str:
        """The answer as readers see it; a slowdown that is shown and not beyond the margin is named."""
        return _WORDS.get(self.answer, self.answer) if self.shows_slowdown else self.answer


_WORDS = {"not slower": "slower, within the margin", "undecided": "slower, perhaps beyond the margin"}


def decide_contrast(
    ratios: BlockRatios, margin: float, analysis: Analysis, questions: int = 1, is_over: bool = False
) -> NoninferiorityDecision:
    """Decide from the blocks of one contrast.

    `margin` is the fraction of QPS that may be lost. Until the measuring is over only the looks of the
    analysis count, each with its first blocks alone; `is_over` adds one look at all blocks in place of those
    that were not reached. The level of an interval is the analysis's, divided among `questions` (Bonferroni).
    """
    looks = [look for look in sorted(analysis.looks) if look <= ratios.n]
    level = 1 - (1 - analysis.level) / questions
    decision = None
    for look in looks:
        decision = _decide_at_look(ratios.first(look), margin, level, is_last=look == max(analysis.looks))
        if decision.answer != "undecided":
            return decision
    if is_over:
        return _decide_at_look(ratios.first(max(analysis.looks)), margin, level, is_last=True)
    why, interval = f"the first look is at {min(analysis.looks)} blocks", block_interval(ratios.ratios, level)
    return decision or NoninferiorityDecision(ratios.workload, ratios.treatment, "undecided", interval, why)


def combine_answers(decisions: Sequence[NoninferiorityDecision]) -> Answer:
    """Answer to all questions: slower if one is, not slower if each is not, else undecided."""
    answers = {decision.answer for decision in decisions}
    if "slower" in answers:
        return "slower"
    return "not slower" if answers == {"not slower"} else "undecided"


def _decide_at_look(
    ratios: BlockRatios, margin: float, level: float, is_last: bool
) -> NoninferiorityDecision:
    interval, allowed = block_interval(ratios.ratios, level), math.log1p(-margin)
    answer, why = _answer_by_interval(interval, allowed, is_last)
    # Ratios that are refused are empty.
    why = ratios.refusal or interval.reason or why
    second = signed_rank_interval(ratios.ratios.mean(axis=1).to_numpy(), level)
    by_ranks = answer if second is None else _answer_by_interval(second, allowed, is_last)[0]
    if answer not in ("undecided", by_ranks):
        answer = "undecided"
        why = "the interval that believes nothing about the shape of the noise does not decide it"
    ends = [known.log_high for known in (interval, second) if known is not None]
    is_shown = all(end is not None and tolerance.is_below(end, 0) for end in ends)
    return NoninferiorityDecision(ratios.workload, ratios.treatment, answer, interval, why, is_shown)


def _answer_by_interval(interval: Interval, allowed: float, is_last: bool) -> tuple[Answer, str]:
    low, high, mean = interval.log_low, interval.log_high, interval.log_mean
    if low is None or high is None or mean is None:
        return "undecided", "no interval"
    if tolerance.is_above(low, allowed):
        return "not slower", "the whole interval is above the margin"
    if tolerance.is_below(high, allowed):
        return "slower", "the whole interval is below the margin"
    if tolerance.is_below(high, 0) and tolerance.is_below(mean, allowed) and is_last:
        return "slower", "a slowdown is shown, and its estimate is beyond the margin"
    if tolerance.is_below(high, 0):
        return "undecided", "a slowdown is shown, but not whether it is within the margin"
    return "undecided", "the interval holds no change as well as a slowdown beyond the margin"
