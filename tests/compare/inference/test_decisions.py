"""Everything that takes a claim away again."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchbook.compare.claims.effects import ClaimedEffect
from benchbook.compare.inference.decisions import Effect, Hypothesis, estimate_effect, judge_candidates
from benchbook.compare.stats.equivalence import EquivalenceBand, p_value, point_band
from benchbook.compare.stats.intervals import Interval, t_quantile
from benchbook.compare.stats.pairs import block_ratios
from benchbook.core.artifacts.findings import Depends
from tests.compare.cases import read_cases
from tests.goldens import assert_golden

FIVE = [1.062, 1.071, 1.058, 1.081, 1.049]


def make_blocks(told: list[float] | dict[str, float]) -> list[float]:
    """Return ratios as given, or five whose t test against zero has the p value given."""
    if isinstance(told, list):
        return told
    pattern = np.array([-2, -1, 0, 1, 2]) / 100
    return list(np.exp(pattern + t_quantile(1 - told["p"] / 2, 4) * pattern.std(ddof=1) / np.sqrt(5)))


def make_hypothesis(make_runs, case: dict[str, Any]) -> Hypothesis:
    (treatment, levels), *_ = case.items()
    runs = make_runs({treatment: {threads: make_blocks(told) for threads, told in levels.items()}})
    ratios = block_ratios(runs, "direct", treatment, "oltp_point_select", levels)
    effect = estimate_effect(replace(ratios, workload=case.get("workload", ratios.workload)), 0.98, 0.95)
    claim, band = case.get("claim"), case.get("band")
    if claim is not None:
        allowed = EquivalenceBand(*band) if band else point_band(claim)
        claim = ClaimedEffect("source/claim", "direct", treatment, value=claim, band=allowed)
    return Hypothesis(effect, ratios.n, case.get("look", 5), claim, case.get("is_extra", False))


def describe(decision: Any) -> str:
    """Outcome of one effect, its notes, and a line for each level."""
    told = (decision.label, decision.verdict, decision.direction, decision.withheld)
    agrees = {False: "the second opinion differs", True: "the second opinion agrees"}
    told = (*told, agrees.get(decision.second_opinion_agrees))
    lines = [f"{decision.candidate.effect.contrast.treatment}: {'; '.join(filter(None, told))}"]
    lines += [f"  {note}" for note in decision.notes]
    for level in decision.levels:
        sign = "" if level.low is None else ", above zero" if level.low > 0 else ""
        note = f": {level.note}" if level.note else ""
        lines.append(f"  {level.threads} threads: {level.label}{sign}{note}")
    return "\n  ".join(lines)


def test_effects_are_decided_by_look_interval_and_what_else_is_asked(make_runs):
    answers = []
    for title, cases in read_cases("decisions")["cases"].items():
        asked, twins = ([make_hypothesis(make_runs, case) for case in cases if ("twin" in case) == is_twin]
                        for is_twin in (False, True))  # fmt: skip
        is_one_family = any("is_one_family" in case for case in cases)
        decisions = judge_candidates(asked, 5, is_one_family=is_one_family, twins=twins)
        answers.append("\n  ".join([title, *map(describe, decisions)]))
    assert_golden("decisions.txt", "\n\n".join(answers) + "\n")


# QPS gained per thread level as the documents' own tables give it, in percent, and the geometric mean.
PUBLISHED = {
    "pod to host network": ([3.89, 5.75, 6.19, 7.68, 6.25, 6.83], 6.093),
    "COS to Ubuntu": ([13.56, 15.41, 13.15, 10.41, 10.91, 9.46], 12.130),
    "service to load balancer": ([-11.94, -13.35, -11.62, -9.43, -9.84, -8.64], -10.818),
    "one zone to several": ([-30.83, -19.09, -12.97, -12.90, -12.19, -6.20], -16.075),
    "n1 to c2": ([42.58, 55.39, 65.62, 63.72, 65.97, 64.08], 59.331),
    "v2.1 to v3.0, all workloads": ([50.803, 34.352, 44.744, 28.590], 39.353),
}


def _effect(make_runs, by_threads):
    runs = make_runs({"haproxy": by_threads})
    ratios = block_ratios(runs, "direct", "haproxy", "oltp_point_select", by_threads)
    return estimate_effect(ratios, 0.98, 0.95)


@pytest.mark.parametrize(("percents", "mean"), PUBLISHED.values(), ids=PUBLISHED)
def test_published_tables_have_these_geometric_means(percents, mean, make_runs):
    # The inputs are rounded to 0.01, so their mean is known to 0.01 only.
    levels = {2**level: [1 + percent / 100] * 5 for level, percent in enumerate(percents)}
    assert 100 * _effect(make_runs, levels).interval.effect == pytest.approx(mean, abs=0.01)


def test_the_mean_does_not_depend_on_which_arm_is_the_baseline(make_runs):
    ratios = [1.2, 0.7, 1.05, 1.1, 0.9]
    there, back = (_effect(make_runs, {4: [ratio**power for ratio in ratios]}) for power in (1, -1))
    assert (1 + there.interval.effect) * (1 + back.interval.effect) == pytest.approx(1)


def test_thread_levels_are_averaged_before_blocks(make_runs):
    effect = _effect(make_runs, {4: FIVE})
    assert (effect.interval.low, effect.interval.high) == pytest.approx((0.0437901431, 0.0848935910))
    # √5 · standard error is the spread of a block again.
    assert effect.has_headline and effect.spread == pytest.approx(0.01159, abs=1e-4)


@pytest.mark.parametrize(
    ("levels", "depends", "has_headline"),
    [
        # Signs that are shown to differ, a range over zero that is only noise, and sizes that differ.
        ({4: [1.10, 1.11, 1.09, 1.10, 1.12], 16: [0.90, 0.91, 0.90, 0.89, 0.90]}, True, False),
        ({4: [1.02, 0.97, 1.03, 0.98, 1.01], 16: [0.97, 1.02, 0.98, 1.01, 0.99]}, False, True),
        ({4: [1.04, 1.041, 1.039, 1.04, 1.042], 16: [1.08, 1.081, 1.08, 1.079, 1.08]}, True, True),
    ],
)
def test_there_is_no_headline_where_levels_are_shown_to_have_different_signs(
    make_runs, levels, depends, has_headline
):
    effect = _effect(make_runs, levels)
    assert (bool(effect.depends), effect.has_headline) == (depends, has_headline)


def test_p_is_small_exactly_when_the_interval_leaves_zero_out(make_runs):
    interval = _effect(make_runs, {4: FIVE}).by_threads[0][1]
    assert p_value(interval) < 0.05
    # The t of these blocks: mean .06217 / (.01159 / √5) = 12.0 with 4 df.
    assert math.isclose(p_value(interval), 0.00027, rel_tol=0.05)


def test_a_refused_contrast_has_no_effect_but_a_reason(make_runs):
    interval = _effect(make_runs, {4: [1.1, 0.0, 1.2, 1.1, 1.1]}).interval
    assert (interval.effect, p_value(interval)) == (None, None) and "cannot be taken" in interval.reason


@pytest.mark.parametrize(
    ("p", "means", "depends", "has_headline"),
    [
        (0.049, (-0.1, 0.1), True, False),
        # On its bound a test shows nothing, and nothing is on neither side of nothing.
        (0.05, (-0.1, 0.1), False, True),
        (0.049, (0.0, 0.1), True, True),
        (0.049, (-0.1, 0.0), True, True),
        (0.049, (None, 0.1), True, True),
    ],
)
def test_one_number_stands_for_levels_unless_their_signs_are_shown_to_differ(p, means, depends, has_headline):
    by_threads = tuple((4 * place, Interval(5, 0.98, mean)) for place, mean in enumerate(means, start=1))
    effect = Effect(None, Interval(5, 0.98), None, by_threads, Depends(f=9.0, p=p, df1=1, df2=4))
    assert (effect.depends, effect.has_headline, effect.spread) == (depends, has_headline, None)
