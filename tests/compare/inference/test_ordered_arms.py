"""A ladder: who is compared with whom, what Holm's correction takes away, and the best arm up to each."""

import json

import pytest

from benchbook.compare.inference import findings
from benchbook.compare.inference.ordered_arms import find_best_arms
from benchbook.core.study.params import Analysis

ARMS = ("small", "middle", "large")
STEP = [1.100, 1.102, 1.098, 1.101, 1.099]
AGAIN = [1.101, 1.0985, 1.1005, 1.102, 1.098]


@pytest.fixture
def laddered(make_study, make_runs, no_voids, no_histograms):
    def make(ratios, blocks=5, **given):
        study = make_study(arms=ARMS, blocks=blocks)
        study = study.model_copy(update={"plan": study.plan.model_copy(update={"ladder": ARMS})})
        runs = make_runs({arm: {4: own} for arm, own in ratios.items()}, baseline="small")
        tidy = {"runs": runs, "voids": no_voids, "histograms": no_histograms}
        made = findings.build_findings("mine", study, tidy, Analysis(), **given)
        json.dumps(made.plain, allow_nan=False)
        return made

    return make


def named(entries):
    return [(one.baseline, one.treatment) for one in entries]


def test_every_arm_meets_the_first_its_neighbour_and_all_others(laddered):
    """middle is 10 % above small in every block; large is within 0.4 % of middle: no step to a better arm."""
    made = laddered({"middle": STEP, "large": AGAIN}).ladder
    (own,) = made.workloads
    assert (made.arms, made.skipped) == (list(ARMS), [])
    assert named(own.against_first) == [("small", "middle"), ("small", "large")]
    assert named(own.against_neighbour) == [("small", "middle"), ("middle", "large")]
    assert named(own.pairs) == [("small", "middle"), ("small", "large"), ("middle", "large")]
    assert [one.best for one in own.best] == ["small", "middle", "middle"]
    assert own.against_first[0].effect == pytest.approx(0.10, abs=1e-3)
    assert own.pairs[2].label == "no practical difference"
    assert own.sentence.replace("\xa0", " ").startswith(
        "Best up to large on point selects: middle, +10.0 % QPS against small (98 % interval +9."
    )
    assert own.sentence.endswith("5 blocks); large made no practical difference to it.")


def test_more_contrasts_in_one_question_need_more_evidence(laddered):
    """Log ratios with mean 0.05, s 0.0234, n 5: t = 4.78, p = 0.0088 with 4 degrees of freedom.

    Against the first there are two contrasts, and the other shows nothing: 2 × 0.0088 = 0.0176 < 0.02, so
    middle is shown. Among all pairs there are three, and no other shows anything: 3 × 0.0088 = 0.0264 > 0.02.
    """
    noisy = [1.0513 * (1 + 0.0234 * z) for z in (-1.2649, -0.6325, 0, 0.6325, 1.2649)]
    open_ = [1.04, 0.97, 1.0, 0.96, 1.03]
    (own,) = laddered({"middle": noisy, "large": open_}).ladder.workloads
    assert own.against_first[0].label == "higher"
    assert own.pairs[0].label == "not shown"
    assert own.best[-1].best == "small"
    assert "no later arm was shown to be better" in own.sentence


def test_before_the_first_look_there_is_no_best_and_an_arm_that_never_ran_is_left_out(laddered):
    (own,) = laddered({"middle": STEP[:4], "large": AGAIN[:4]}).ladder.workloads
    assert own.best is None and "nothing is decided yet" in own.sentence
    made = laddered({"middle": STEP}).ladder
    assert (made.skipped, named(made.workloads[0].pairs)) == (["large"], [("small", "middle")])


def test_a_study_without_a_ladder_has_no_such_key(make_study, make_runs, no_voids, no_histograms):
    tidy = {"runs": make_runs({"haproxy": {4: STEP}}), "voids": no_voids, "histograms": no_histograms}
    made = findings.build_findings("quick", make_study(), tidy, Analysis())
    assert made.ladder is None and "ladder" not in made.plain


def test_where_less_is_better_the_best_is_the_lowest():
    labels = {("a", "b"): "lower", ("b", "c"): "higher", ("a", "c"): "lower"}
    assert find_best_arms(["a", "b", "c"], labels, "lower") == ["a", "b", "b"]
    assert find_best_arms(["a", "b", "c"], labels, "higher") == ["a", "a", "a"]
