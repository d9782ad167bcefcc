"""A session beside the record: as expected, outside, or nothing to expect; and what is different there."""

import math

import pytest

from benchbook.compare.placed import different, placed, summary
from benchbook.compare.pooled import pool
from tests.compare.sessions import MILAN, TURIN, XEON, finding, part, session, sessions


def record(*logs: float, **more):
    return pool("quick", sessions(*logs, **more))


def here(log: float, error: float = 0.005, **more):
    return session(finding(part(log, error)), measured="2026-12-01T06:00", **more)


def test_what_is_expected_counts_the_blocks_of_both_sides():
    known = record(0.10, 0.10, 0.10, 0.10)
    (found,) = placed(here(0.10, error=0.01), known)
    # Mean 0.1 without tau; 2.3534 * sqrt(0.005²/4 + 0.01²) = 0.02426.
    assert [math.log1p(end) for end in found.expected] == pytest.approx([0.07574, 0.12426], abs=1e-5)
    assert found.place == "as expected"
    assert found.sentence.replace("\xa0", " ") == (
        "HAProxy on point selects: +11 % here; 4 recorded sessions: +11 to +11 %, so as expected."
    )


def test_a_session_far_off_is_outside_and_what_is_different_is_said():
    known = record(-0.15, -0.16, -0.17, -0.16, processors=(XEON, TURIN))
    far = here(0.10, processor=MILAN)
    (found,) = placed(far, known)
    assert found.place == "outside what was expected"
    assert "outside what was expected (−17 to −13\xa0%)" in found.sentence
    assert summary(far, known) == (
        "The effect here lies outside what was expected. "
        "Different here: EPYC Zen 3, a processor that no recorded session had."
    )
    assert summary(here(-0.16), known) == "The effect here is as expected from the recorded sessions."


def test_with_too_few_occasions_nothing_is_expected():
    (found,) = placed(here(0.5), record(0.1, 0.1, 0.1))
    assert (found.place, found.expected) == ("nothing to expect yet", None)
    assert "4 occasions are needed to expect anything, there are 3" in found.sentence
    assert summary(here(0.5), record(0.1, 0.1, 0.1)) == ""


def test_a_recorded_session_is_compared_with_the_others():
    own = sessions(0.10, 0.11, 0.09, 0.10, 0.40)
    (found,) = placed(own[-1], pool("quick", own))
    assert found.place == "outside what was expected"
    assert "4 recorded sessions" in found.sentence
    (found,) = placed(own[0], pool("quick", own[:4]))
    assert found.place == "nothing to expect yet"


def test_another_design_is_not_compared():
    assert placed(here(0.1, design="b2"), record(0.1, 0.1, 0.1, 0.1)) == []


def test_an_effect_without_an_interval_here_is_no_number():
    broken = session(
        finding({**part(0.1, 0.1), "low": None, "high": None, "reason": "too few"}),
        measured="2026-12-01T06:00",
    )
    (found,) = placed(broken, record(0.1, 0.1, 0.1, 0.1))
    assert (found.place, found.effect) == ("no number here", None)


def test_differences_are_those_from_every_recorded_session():
    known = [one.session for one in sessions(0.1, 0.1)]
    same = here(0.1).session
    assert different(same, known) == []
    loud = same.model_copy(
        update={
            "steal_pct": 6.8,
            "kernel": "5.10",
            "cores": 4.0,
            "proxies": {"haproxy": "3.0"},
            "probes": {"wake_us": 9.0},
        }
    )
    probed = [known[0].model_copy(update={"probes": {"wake_us": 2.5}}), known[1]]
    assert different(loud, probed) == [
        "kernel 5.10",
        "haproxy 3.0",
        "4 cores",
        "steal 6.8\xa0%, elsewhere at most 0.5\xa0%",
        "wake_us 9, elsewhere 2.5 to 2.5",
    ]
