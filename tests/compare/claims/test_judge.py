"""One verdict of several parts: what must hold, what speaks against it, and what Holm's correction leaves."""

import pytest

from benchbook.compare.claims.estimands import ClaimTest, Estimand
from benchbook.compare.claims.judge import EstimandOutcome, judge_test
from benchbook.compare.stats.equivalence import Bounds
from benchbook.compare.stats.intervals import Interval
from tests.compare.cases import read_cases

YES, NO, OPEN = "confirmed", "contradicted", "inconclusive"


def judged(*parts: tuple[str, float], must: str = "all", level: float | None = 0.95, **more) -> str:
    """Judge a claim by parts, each with what came out of it and its p value; an open one has none."""
    found = [
        EstimandOutcome(
            Estimand("", (), Bounds()), Interval(5, 0.95), Bounds(), what, None if what == OPEN else p
        )
        for what, p in parts
    ]
    return judge_test(ClaimTest([one.part for one in found], [], must, **more), found, level)


@pytest.mark.parametrize(("parts", "must", "said"), read_cases("judged_parts"))
def test_what_holds_and_what_fails_of_several_parts(parts: list, must: str, said: str):
    assert judged(*parts, must=must) == said


def test_printed_numbers_have_no_p_value_and_what_cannot_be_seen_may_fail_and_does_not_hold():
    assert judged((NO, 1.0), (YES, 1.0), level=None) == NO
    assert judged((YES, 1.0), (YES, 1.0), (NO, 1.0), must="most", level=None) == YES
    assert judged((YES, 1.0), (NO, 1.0), must="most", level=None) == NO
    assert judged((YES, 0.001), unseen="the rest") == OPEN
    assert judged((NO, 0.001), unseen="the rest") == NO


def test_a_part_for_readers_decides_nothing():
    beside = EstimandOutcome(Estimand("", (), Bounds(), decides=False), Interval(5, 0.95), Bounds(), NO, 0.0)
    own = EstimandOutcome(Estimand("", (), Bounds()), Interval(5, 0.95), Bounds(), YES, 0.04)
    assert judge_test(ClaimTest([beside.part, own.part], []), [beside, own], 0.95) == YES
    assert judge_test(ClaimTest([beside.part], []), [beside], 0.95) == OPEN


@pytest.mark.parametrize(
    ("inside", "outside", "verdict"), [(8, 4, "confirmed"), (5, 5, "inconclusive"), (1, 9, "contradicted")]
)
def test_a_few_seconds_refute_what_is_said_of_most_by_a_sign_test_alone(
    inside: int, outside: int, verdict: str
):
    parts = [(YES, 0.0)] * inside + [(NO, 0.0)] * outside
    assert judged(*parts, must="most", level=None, is_sample=True) == verdict
