"""Prediction intervals tried on what they did not see, and equal arms over sessions."""

import random

from benchbook.compare.placed import coverage, equal_arms, sentences
from benchbook.compare.pooled import pool
from tests.compare.sessions import finding, part, session, sessions


def test_each_occasion_is_left_out_once():
    # Four near 0.1 and one at 0.5: that one is outside what the four let expect; each of the four is inside
    # what the others do, since 0.5 among them makes tau large.
    found = coverage([pool("quick", sessions(0.10, 0.11, 0.09, 0.10, 0.50))])
    assert (found.inside.number, found.inside.of, found.effects, found.studies) == (4, 5, 1, 1)
    # Exact interval of 4 of 5: 28.4 to 99.5 %.
    assert (round(100 * found.inside.low, 1), round(100 * found.inside.high, 1)) == (28.4, 99.5)


def test_fewer_than_four_occasions_are_not_tried():
    assert coverage([pool("quick", sessions(0.1, 0.1, 0.1))]) is None
    assert sentences([pool("quick", sessions(0.1, 0.1, 0.1))])[0].startswith("No effect has 4 occasions")


def test_nine_of_ten_drawn_sessions_lie_inside():
    draw = random.Random(20261123)
    several = [
        pool(
            f"s{place}",
            sessions(*(draw.gauss(0.1, 0.05) + draw.gauss(0, 0.01) for _ in range(8)), error=0.01),
        )
        for place in range(60)
    ]
    found = coverage(several)
    assert found.inside.of == 480
    # 480 times 0.9 is 432; that is left in all but one of a thousand draws between 412 and 452.
    assert 412 <= found.inside.number <= 452


def test_equal_arms_are_counted_by_session_and_by_mean():
    def twins(*logs: float):
        return pool(
            "quick",
            [
                session(
                    finding(part(0.1, 0.005)),
                    aa=finding(part(log, 0.005), treatment="direct_again"),
                    measured=f"2026-11-0{place}T01:00",
                )
                for place, log in enumerate(logs, 1)
            ],
        )

    # t is 3.747, so an interval is ±0.0187: 0.05 is outside. The mean of two has t with 1 degree of freedom.
    own, means = equal_arms([twins(0.001, -0.001), twins(0.05)])
    assert (own.number, own.of) == (2, 3)
    assert (means.number, means.of) == (1, 1)
    assert equal_arms([pool("quick", sessions(0.1))]) == (None, None)
    told = list(sentences([twins(0.001, -0.001), twins(0.05)]))
    assert told[-1].replace("\xa0", " ") == (
        "Equal arms (A/A): the intervals of 2 of 3 sessions hold zero, "
        "and 1 of 1 means over sessions do at 90 %."
    )
