"""One verdict of several parts: what must hold, what speaks against it, and what Holm's correction leaves."""

import pytest

from benchbook.compare.claims.estimands import ClaimTest, Estimand
from benchbook.compare.claims.judge import EstimandOutcome, judge_test
from benchbook.compare.stats.equivalence import Bounds
from benchbook.compare.stats.intervals import Interval

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


@pytest.mark.parametrize(
    ("parts", "must", "said"),
    [
        # That all hold takes no correction; one that is open leaves it open, whatever the others are.
        ([(YES, 0.04)] * 3, "all", YES),
        ([(YES, 0.001), (OPEN, 0.0)], "all", OPEN),
        # One of two against it takes twice its p: 0.08 and 0.04.
        ([(NO, 0.04), (YES, 0.001)], "all", OPEN),
        ([(NO, 0.02), (YES, 0.001)], "all", NO),
        # A p of 0.05 is on the bound, which shows nothing.
        ([(NO, 0.05)], "all", OPEN),
        ([(NO, 0.049)], "all", NO),
        # Most of three: each p times three, two, one, and none smaller than the one before it.
        ([(YES, 0.04)] * 3, "most", OPEN),
        ([(YES, 0.01)] * 3, "most", YES),
        ([(YES, 0.01), (YES, 0.02), (OPEN, 0.0)], "most", YES),
        ([(YES, 0.01), (YES, 0.03), (OPEN, 0.0)], "most", OPEN),
        # Half of four are not most of them, but half against it are enough.
        ([(YES, 0.001)] * 2 + [(OPEN, 0.0)] * 2, "most", OPEN),
        ([(NO, 0.001)] * 2 + [(OPEN, 0.0)] * 2, "most", NO),
        ([(NO, 0.001)] + [(OPEN, 0.0)] * 2, "most", OPEN),
        ([], "all", OPEN),
        ([], "most", OPEN),
    ],
)
def test_what_holds_and_what_fails_of_several_parts(parts: list, must: str, said: str):
    assert judged(*parts, must=must) == said


def test_printed_numbers_have_no_p_value_and_what_cannot_be_seen_may_fail_and_does_not_hold():
    assert judged((NO, 1.0), (YES, 1.0), level=None) == NO
    assert judged((YES, 1.0), (YES, 1.0), (NO, 1.0), must="most", level=None) == YES
    assert judged((YES, 1.0), (NO, 1.0), must="most", level=None) == NO
    assert judged((YES, 0.001), unseen="highest at the last level") == OPEN
    assert judged((NO, 0.001), unseen="highest at the last level") == NO


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
