"""A study that may stop early stops at a look where nothing is open, and only there."""

import pytest

from benchbook.compare.claims.effects import ClaimedEffect
from benchbook.compare.inference.stopping import StoppingRule
from benchbook.compare.stats.equivalence import point_band
from benchbook.core.study.params import Analysis
from benchbook.core.study.study import StudySpec
from tests.compare.cases import assert_cases

ARMS = ("haproxy", "tiproxy", "direct_again")
OPEN = [0.96, 1.05, 0.93, 1.06, 0.99]


@pytest.fixture
def make_stopping(make_study):
    """Return a function that makes a study of 20 blocks which may stop where everything is decided."""

    def make(stop="decided", blocks=20, **given):
        study = make_study(blocks=blocks, **given).model_dump()
        return StudySpec.model_validate(study | {"plan": study["plan"] | {"stop": stop}})

    return make


def test_a_study_stops_at_a_look_where_nothing_is_open(make_stopping, make_runs, no_histograms):
    def describe(case):
        ratios = {arm: by if isinstance(by, dict) else {4: by} for arm, by in case.items() if arm in ARMS}
        aa = {"workloads": ["oltp_point_select"], "threads": [4]} if "direct_again" in case else None
        arms, levels = [arm for arm in ARMS[:2] if arm in ratios], sorted(ratios["haproxy"])
        study = make_stopping(case.get("stop", "decided"), case.get("planned", 20), aa=aa,
                              arms=["direct", *arms], threads=levels)  # fmt: skip
        claims = [ClaimedEffect(f"s/{name}", "direct", "haproxy", size, point_band(size))
                  for name, size in case.get("claims", {}).items()]  # fmt: skip
        runs, lines = make_runs(ratios), []
        tables = {"runs": runs, "histograms": no_histograms}
        rule = StoppingRule(study, Analysis(), claims, lambda: tables, {}, say=lines.append)
        answer = rule(int(runs.block.max())) or "it goes on"
        return [answer, *(text for line in lines for text in line.split("; "))]

    assert_cases("stopping", describe, part="cases")


def test_before_the_first_look_nothing_is_even_read(make_stopping):
    rule = StoppingRule(make_stopping(), Analysis(), (), lambda: pytest.fail("the runs were read"), {})
    assert [rule(blocks) for blocks in range(5)] == [None] * 5


def test_a_look_that_left_something_open_is_not_taken_again(make_stopping, make_runs, no_histograms):
    """Ratios about 1 are open at 5 and at 10 blocks: the runs are read at these two alone."""
    reads, blocks = [], range(1, 13)

    def read_tables():
        reads.append(number)
        return {"runs": make_runs({"haproxy": {4: (OPEN * 3)[:number]}}), "histograms": no_histograms}

    rule = StoppingRule(make_stopping(), Analysis(), (), read_tables, {})
    for number in blocks:
        assert rule(number) is None
    assert reads == [5, 10]
