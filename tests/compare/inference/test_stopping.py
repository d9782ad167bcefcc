"""A study that may stop early stops at a look where nothing is open, and only there."""

import re

import pytest

from benchbook.compare.claims.effects import ClaimedEffect
from benchbook.compare.inference.stopping import StoppingRule
from benchbook.compare.stats.equivalence import point_band
from benchbook.core.study.params import Analysis
from benchbook.core.study.study import StudySpec

CLEAR = [0.69, 0.70, 0.68, 0.69, 0.70]
OPEN = [0.96, 1.05, 0.93, 1.06, 0.99]
STEADY, OPEN_LEVEL = [0.970, 0.972, 0.968, 0.971, 0.969], [0.90, 0.98, 0.93, 0.97, 0.97]


@pytest.fixture
def ask(make_study, make_runs, no_histograms):
    """Return what the rule says with the runs of some blocks, of a study of two arms and 20 blocks."""

    def asked(ratios, claims=(), stop="decided", arms=("direct", "haproxy"), planned=20, say=print, aa=None):
        by_level = {arm: by if isinstance(by, dict) else {4: by} for arm, by in ratios.items()}
        threads = sorted({level for by in by_level.values() for level in by})
        study = make_study(arms=arms, threads=threads, blocks=planned, aa=aa).model_dump()
        study["plan"]["stop"] = stop
        runs = make_runs(by_level)
        tables = {"runs": runs, "histograms": no_histograms}
        rule = StoppingRule(StudySpec.model_validate(study), Analysis(), claims, lambda: tables, {}, say=say)
        return rule(int(runs.block.max()))

    return asked


def test_a_clear_effect_stops_at_the_first_look(ask):
    assert ask({"haproxy": CLEAR}) == "everything is decided at the look at 5 blocks; 20 planned"


def test_an_open_question_goes_on(ask):
    assert ask({"haproxy": OPEN}) is None
    assert ask({"haproxy": OPEN * 2}) is None


def test_a_narrow_interval_is_enough_without_a_label(ask):
    """Logs have a mean of 2.6 % and s = 1.7 %: ± 2.8 % reaches beyond 5 %; twice that spread does not do."""
    assert ask({"haproxy": [1.009, 1.009, 1.026, 1.043, 1.043]}) is not None
    assert ask({"haproxy": [0.992, 0.992, 1.026, 1.060, 1.060]}) is None


def test_a_mean_that_no_row_shows_does_not_stop_while_one_of_its_levels_is_open(ask):
    """By −3.0 % at 1 thread and −5.0 % [−10.6, +0.9] at 8 the mean is lower; the table shows levels."""
    told = []
    assert ask({"haproxy": {1: STEADY, 8: OPEN_LEVEL}}, say=told.append) is None
    at_1, at_8 = told[-1].replace("\N{NO-BREAK SPACE}", " ").split("; ")
    assert re.fullmatch(r"after 5 blocks: \w+ haproxy qps, 1 thread: −3\.0 % \(−.+ to −.+ %\)", at_1), at_1
    assert re.fullmatch(r"\w+ haproxy qps, 8 threads: −5\.0 % \(−.+ to \+.+ %\), open: not shown", at_8), at_8
    assert ask({"haproxy": {1: STEADY, 8: [0.95, 0.951, 0.949, 0.95, 0.95]}}) is not None


def test_one_open_contrast_keeps_all_going(ask):
    arms = ("direct", "haproxy", "tiproxy")
    assert ask({"haproxy": CLEAR, "tiproxy": OPEN}, arms=arms) is None
    assert ask({"haproxy": CLEAR, "tiproxy": CLEAR}, arms=arms) is not None


def test_equal_arms_that_come_out_far_apart_keep_a_decided_study_going(ask):
    """Ratios of 0.96 to 1.06 leave equal arms within some 8 %, those of 0.99 to 1.01 within 2 %."""
    said, aa = [], {"workloads": ["oltp_point_select"], "threads": [4]}
    assert ask({"haproxy": CLEAR, "direct_again": OPEN}, aa=aa, say=said.append) is None
    assert said[-1].endswith("equal arms are not yet known to be within 5 % of each other at every level")
    near = [0.99, 1.01, 1.0, 1.0, 1.01]
    assert ask({"haproxy": CLEAR, "direct_again": near}, aa=aa) is not None


def test_what_a_look_shows_is_said_at_once_and_nothing_between_looks(ask):
    """0.69 is 31 % lower; five ratios about 1 leave the question open."""
    arms, told = ("direct", "haproxy", "tiproxy"), []
    ask({"haproxy": CLEAR, "tiproxy": OPEN}, arms=arms, say=told.append)
    ask({"haproxy": CLEAR + CLEAR[:2], "tiproxy": OPEN + OPEN[:2]}, arms=arms, say=told.append)
    (line,) = told
    clear, open_ = line.replace("\N{NO-BREAK SPACE}", " ").split("; ")
    assert re.fullmatch(r"after 5 blocks: \w+ haproxy qps −30\.8 % \(−3.+ to −.+ %\)", clear), clear
    assert re.fullmatch(r"\w+ tiproxy qps −0\.3 % \(−.+ to \+.+ %\), open: not shown", open_), open_
    wide = [2.0, 5.0, 3.0, 4.0, 3.5]
    ask({"haproxy": wide}, say=told.append)
    assert told[-1].endswith("%), open: no useful interval")


def test_before_the_first_look_nothing_is_even_read(make_study):
    study = make_study(blocks=20).model_dump()
    study["plan"]["stop"] = "decided"
    rule = StoppingRule(
        StudySpec.model_validate(study), Analysis(), (), lambda: pytest.fail("the runs were read"), {}
    )
    assert [rule(blocks) for blocks in range(5)] == [None] * 5


def test_by_default_every_block_is_measured(ask):
    assert ask({"haproxy": CLEAR}, stop="all") is None


def test_a_claim_needs_its_verdict_and_a_label_is_not_enough(ask):
    """0.69 is 31 % lower beyond doubt, but with these intervals not beyond doubt near a third."""
    wide = [0.62, 0.75, 0.70, 0.66, 0.73]
    near = ClaimedEffect("s/near", "direct", "haproxy", -0.31, point_band(-0.31))
    far = ClaimedEffect("s/far", "direct", "haproxy", 0.05, point_band(0.05))
    assert ask({"haproxy": wide}) is not None
    assert ask({"haproxy": wide}, [near]) is None
    assert ask({"haproxy": wide}, [far]) is not None


def test_between_looks_the_blocks_of_the_last_look_decide(ask):
    """Seven blocks: only the first five count, so what was open stays open until the tenth."""
    assert ask({"haproxy": [*OPEN, 0.5, 0.5]}) is None
    assert ask({"haproxy": [*CLEAR, 2.0, 2.0]}) is not None


def test_a_look_that_left_something_open_is_not_taken_again(make_study, make_runs, no_histograms):
    """Ratios about 1 are open at 5 and at 10 blocks: the runs are read at these two alone."""
    study = make_study(blocks=20).model_dump()
    study["plan"]["stop"] = "decided"
    reads, blocks = [], range(1, 13)

    def read_tables():
        reads.append(number)
        return {"runs": make_runs({"haproxy": {4: (OPEN * 3)[:number]}}), "histograms": no_histograms}

    rule = StoppingRule(StudySpec.model_validate(study), Analysis(), (), read_tables, {})
    for number in blocks:
        assert rule(number) is None
    assert reads == [5, 10]


def test_at_the_last_block_there_is_nothing_to_leave_out(ask):
    assert ask({"haproxy": CLEAR}, planned=5) is None


def test_the_report_says_that_and_why_it_stopped(make_study, make_runs, no_voids, no_histograms):
    from benchbook.compare.inference import findings

    def report(levels, what):
        study = make_study(blocks=20, threads=sorted(levels)).model_dump()
        study["plan"]["stop"] = "decided"
        tidy = {"runs": make_runs({"haproxy": levels}), "voids": no_voids, "histograms": no_histograms}
        made = findings.build_findings("s", StudySpec.model_validate(study), tidy, Analysis())
        (said,) = [one.text for one in made.warnings if "20 planned blocks" in one.text]
        assert said.startswith(f"Stopped after 5 of 20 planned blocks: {what} was decided at the look at 5")
        assert made.look.n == 5

    report({4: CLEAR}, "everything")
    # As sessions ended until 2026-11-29.
    report({1: STEADY, 8: OPEN_LEVEL}, "each mean over thread levels")
