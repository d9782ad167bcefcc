"""Everything that takes a claim away again."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benchbook.compare.claims.effects import ClaimedEffect
from benchbook.compare.inference.decisions import Effect, Hypothesis, estimate_effect, judge_candidates
from benchbook.compare.stats.equivalence import EquivalenceBand, p_value, point_band
from benchbook.compare.stats.intervals import Interval
from benchbook.compare.stats.pairs import block_ratios
from benchbook.core.artifacts.findings import Depends

FIVE = [1.062, 1.071, 1.058, 1.081, 1.049]
# Nineteen calm blocks at +3 % and one at -40 %: the t interval is -6 to +7 %, the one by ranks around +3 %.
HEAVY = [*(1.03 + step / 1000 for step in range(-9, 10)), 0.60]


def _candidate(make_runs, by_threads, treatment="haproxy", look=5, **claimed):
    runs = make_runs({treatment: by_threads})
    ratios = block_ratios(runs, "direct", treatment, "oltp_point_select", by_threads)
    claim = ClaimedEffect("source/claim", "direct", treatment, **claimed) if claimed else None
    return Hypothesis(estimate_effect(ratios, 0.98, 0.95), ratios.n, look, claim)


def test_a_clear_effect_gets_its_label_and_verdict(make_runs):
    (decision,) = judge_candidates(
        [_candidate(make_runs, {4: FIVE}, value=0.065, band=EquivalenceBand(0.04, 0.09))], 5
    )
    assert (decision.label, decision.verdict, decision.direction, decision.notes) == (
        "higher",
        "confirmed",
        None,
        (),
    )


def test_a_contradicted_claim_says_how(make_runs):
    (decision,) = judge_candidates([_candidate(make_runs, {4: FIVE}, value=0.20, band=point_band(0.20))], 5)
    assert (decision.verdict, decision.direction) == ("contradicted", "right")


def test_before_the_first_look_nothing_is_decided(make_runs):
    (decision,) = judge_candidates(
        [_candidate(make_runs, {4: FIVE[:4]}, look=None, value=0.065, band=EquivalenceBand(0.0, 1.0))], 5
    )
    assert (decision.label, decision.verdict) == ("not decided yet", None)
    assert decision.notes == ("nothing is decided before 5 blocks; there are 4",)


@pytest.mark.parametrize("blocks", [[1.07], [1.07, 1.08], [1.07] * 5])
def test_without_an_interval_there_is_no_verdict(make_runs, blocks):
    (decision,) = judge_candidates(
        [_candidate(make_runs, {4: blocks}, look=5, value=0.07, band=point_band(0.07))], 5
    )
    assert (decision.label, decision.verdict) == ("not shown", None)
    assert decision.notes


def test_levels_that_disagree_about_the_sign_take_the_verdict_away(make_runs):
    by_threads = {4: [1.20, 1.21, 1.19, 1.20, 1.22], 16: [0.95, 0.96, 0.95, 0.94, 0.95]}
    (decision,) = judge_candidates([_candidate(make_runs, by_threads, value=0.07, band=point_band(0.07))], 5)
    assert (decision.label, decision.verdict) == ("depends on threads", "inconclusive")
    assert "sign" in decision.notes[0]


def test_a_heavy_tail_is_inconclusive_and_named(make_runs):
    candidate = _candidate(make_runs, {4: HEAVY}, look=20, value=-0.04, band=EquivalenceBand(-0.10, 0.02))
    (decision,) = judge_candidates([candidate], 5)
    assert decision.second_opinion_agrees is False
    assert (decision.label, decision.verdict) == ("not shown", "inconclusive")
    assert "heavy-tailed" in decision.notes[0]


def test_a_second_opinion_of_the_same_mind_changes_nothing(make_runs):
    (decision,) = judge_candidates([_candidate(make_runs, {4: [*FIVE, *FIVE[::-1]]}, look=10)], 5)
    assert (decision.label, decision.second_opinion_agrees) == ("higher", True)


def _weak(make_runs, p, treatment):
    """Make five blocks whose t test against zero has about this p value."""
    pattern = np.array([-2, -1, 0, 1, 2]) / 100
    from benchbook.compare.stats.intervals import t_quantile

    mean = t_quantile(1 - p / 2, 4) * pattern.std(ddof=1) / np.sqrt(5)
    return _candidate(make_runs, {4: list(np.exp(pattern + mean))}, treatment)


def test_several_treatments_of_one_question_are_corrected_by_holm(make_runs):
    alone = judge_candidates([_weak(make_runs, 0.015, "haproxy")], 5)
    both = judge_candidates([_weak(make_runs, 0.015, "haproxy"), _weak(make_runs, 0.5, "tiproxy")], 5)
    strong = judge_candidates([_weak(make_runs, 0.015, "haproxy"), _weak(make_runs, 0.001, "tiproxy")], 5)
    assert alone[0].label == "higher"
    assert both[0].label == "not shown"
    assert "Holm" in both[0].notes[0]
    # The smaller p is tested at half the error, the next one at all of it.
    assert [decision.label for decision in strong] == ["higher", "higher"]


def test_a_second_claim_about_the_same_treatment_is_no_further_contrast(make_runs):
    first = _weak(make_runs, 0.015, "haproxy")
    decisions = judge_candidates([first, replace(first, is_extra=True)], 5)
    assert [decision.label for decision in decisions] == ["higher", "higher"]


def test_different_workloads_are_different_questions_unless_they_are_one_family(make_runs):
    first = _weak(make_runs, 0.015, "haproxy")
    elsewhere = replace(
        first, effect=replace(first.effect, contrast=replace(first.effect.contrast, workload="other"))
    )
    assert [decision.label for decision in judge_candidates([first, elsewhere], 5)] == ["higher", "higher"]
    # The A/A pairs of all workloads answer one question: does the baseline equal itself?
    # Two p values of .015 are .03 each together.
    together = judge_candidates([first, elsewhere], 5, is_one_family=True)
    assert [decision.label for decision in together] == ["not shown", "not shown"]


LEVELS = {
    1: [0.755, 0.757, 0.756, 0.754, 0.758],
    4: [0.88, 0.882, 0.879, 0.881, 0.88],
    16: [1.01, 1.03, 0.99, 1.04, 1.0],
}


def test_each_thread_level_is_decided_by_itself(make_runs):
    (decision,) = judge_candidates([_candidate(make_runs, LEVELS)], 5)
    assert decision.label == "depends on threads"
    assert [(level.threads, level.label) for level in decision.levels] == [
        (1, "lower"),
        (4, "lower"),
        (16, "not shown"),
    ]


def test_levels_are_corrected_for_each_other_and_for_other_treatments(make_runs):
    """p = .015 is below .02 alone, and .03 with one more level (or one level of one more treatment)."""
    weak = [
        float(ratio)
        for ratio in np.exp(np.array([-2, -1, 0, 1, 2]) / 100 + 0.0290)  # t = 4.1, df 4: p = .015
    ]
    noise = [1.01, 0.98, 1.03, 1.0, 0.99]
    alone = judge_candidates([_candidate(make_runs, {4: weak})], 5)[0]
    two = judge_candidates([_candidate(make_runs, {4: weak, 16: noise})], 5)[0]
    others = judge_candidates(
        [_candidate(make_runs, {4: weak}), _candidate(make_runs, {4: noise}, "tiproxy")], 5
    )
    assert alone.levels[0].label == "higher"
    assert (two.levels[0].label, others[0].levels[0].label) == ("not shown", "not shown")
    assert "thread levels" in two.levels[0].note


def test_before_the_first_look_no_level_is_decided(make_runs):
    (decision,) = judge_candidates([_candidate(make_runs, {1: FIVE[:4], 4: FIVE[:4]}, look=None)], 5)
    assert {level.label for level in decision.levels} == {"not decided yet"}


# Log ratios -.9, -.7, -.8, -.5, -1.1 have s = .2236, so the 98 % interval is ± .375: a factor of 2.1.
WIDE = list(np.exp([-0.9, -0.7, -0.8, -0.5, -1.1]))


def test_an_interval_wider_than_a_factor_of_one_and_a_half_is_withheld_though_it_leaves_zero(make_runs):
    (decision,) = judge_candidates([_candidate(make_runs, {4: WIDE}, value=0.5, band=point_band(0.5))], 5)
    assert (decision.label, decision.withheld) == (
        "no useful interval",
        "The interval is too wide to be of use.",
    )
    assert decision.levels[0].label == "no useful interval"
    # What it answers of a claim stays: all of it lies below +40 %.
    assert decision.verdict == "contradicted"


def test_an_aa_pair_that_wide_withholds_what_is_compared_beside_it(make_runs):
    twin = _candidate(make_runs, {4: WIDE}, "direct_again")
    (decision,) = judge_candidates([_candidate(make_runs, {4: FIVE})], 5, twins=[twin])
    assert decision.label == "no useful interval"
    assert decision.withheld.startswith("Equal arms (A/A) came out anywhere from −69.")
    (quiet,) = judge_candidates(
        [_candidate(make_runs, {4: FIVE})], 5, twins=[_candidate(make_runs, {4: FIVE}, "direct_again")]
    )
    assert quiet.label == "higher"


def test_a_level_alone_decides_nothing_where_the_effect_over_all_threads_is_open(make_runs):
    """+3 % at 4 threads and about zero at 16, but not shown to differ: all of it may be chance."""
    levels = {4: [1.030, 1.031, 1.029, 1.032, 1.028], 16: [1.06, 0.97, 1.05, 0.96, 1.03]}
    (decision,) = judge_candidates([_candidate(make_runs, levels)], 5)
    assert decision.label == "not shown"
    assert decision.levels[0].low > 0
    assert (decision.levels[0].label, "over all threads" in decision.levels[0].note) == ("not shown", True)


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
    effect = _effect(make_runs, {4: [1.062, 1.071, 1.058, 1.081, 1.049]})
    assert (effect.interval.low, effect.interval.high) == pytest.approx((0.0437901431, 0.0848935910))
    # √5 · standard error is the spread of a block again.
    assert effect.spread == pytest.approx(0.01159, abs=1e-4)
    assert effect.has_headline


def test_no_headline_where_thread_levels_are_shown_to_have_different_signs(make_runs):
    effect = _effect(make_runs, {4: [1.10, 1.11, 1.09, 1.10, 1.12], 16: [0.90, 0.91, 0.90, 0.89, 0.90]})
    assert effect.depends
    assert not effect.has_headline


def test_a_range_over_zero_that_is_only_noise_keeps_its_headline(make_runs):
    effect = _effect(make_runs, {4: [1.02, 0.97, 1.03, 0.98, 1.01], 16: [0.97, 1.02, 0.98, 1.01, 0.99]})
    assert not effect.depends
    assert effect.has_headline


def test_levels_that_differ_in_size_only_keep_their_headline(make_runs):
    effect = _effect(make_runs, {4: [1.04, 1.041, 1.039, 1.04, 1.042], 16: [1.08, 1.081, 1.08, 1.079, 1.08]})
    assert effect.depends
    assert effect.has_headline


def test_p_is_small_exactly_when_the_interval_leaves_zero_out(make_runs):
    interval = _effect(make_runs, {4: [1.062, 1.071, 1.058, 1.081, 1.049]}).by_threads[0][1]
    assert p_value(interval) < 0.05
    # The t of these blocks: mean .06217 / (.01159 / √5) = 12.0 with 4 df.
    assert math.isclose(p_value(interval), 0.00027, rel_tol=0.05)


def test_a_refused_contrast_has_no_effect_but_a_reason(make_runs):
    effect = _effect(make_runs, {4: [1.1, 0.0, 1.2, 1.1, 1.1]})
    assert effect.interval.effect is None
    assert "cannot be taken" in effect.interval.reason
    assert p_value(effect.interval) is None


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
