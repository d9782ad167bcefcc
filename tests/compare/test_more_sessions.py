"""What would narrow a prediction interval: more sessions, or more blocks in each."""

import math
from dataclasses import replace

import pytest

from benchbook.compare.more_sessions import Need, advise, chosen, half_width, lines, need
from benchbook.compare.pooled import pool
from tests.compare.sessions import sessions


def test_half_the_width_is_that_of_the_pooled_interval():
    found = pool("quick", sessions(0.05, 0.15, 0.10, 0.20))
    effect = found.contrasts[0].whole
    (advice,) = advise(found)
    printed = (math.log1p(effect.prediction_high) - math.log1p(effect.prediction_low)) / 2
    assert advice.now_pct == pytest.approx(100 * printed, rel=1e-4)


def test_sessions_that_differ_want_more_sessions():
    (advice,) = advise(pool("quick", sessions(0.05, 0.15, 0.10, 0.20)))
    # tau is 6.44: 2.3534 * 6.44 * sqrt(1 + 1/4) and 1.8946 * 6.44 * sqrt(1 + 1/8), t with 3 and 7 degrees.
    assert advice.sentence == (
        "HAProxy on point selects: ±16.9 points; 8 sessions make it ±12.9, twice the blocks in each ±16.9. "
        "More sessions: sessions differ by 6.4 points, their blocks leave 0.5."
    )


def test_sessions_alike_gain_from_either():
    (advice,) = advise(pool("quick", sessions(0.10, 0.10, 0.10, 0.10, error=0.03)))
    # Without tau: 2.3534 * 0.03 / sqrt(4) = 3.53; with twice the blocks over sqrt(2) less: 2.50.
    assert advice.now_pct == pytest.approx(3.53, abs=0.005)
    # Of eight sessions 1.8946 * 3 / sqrt(8) = 2.01.
    assert "8 sessions make it ±2.0, twice the blocks in each ±2.5. Either helps" in advice.sentence
    assert "only another can say what to expect elsewhere" not in advice.sentence


def test_sessions_of_one_processor_want_another():
    found = pool("quick", sessions(0.10, 0.11, 0.09, 0.10))
    contrast = found.contrasts[0]
    alone = contrast.model_copy(update={"whole": contrast.whole.model_copy(update={"processors": 1})})
    (advice,) = advise(found.model_copy(update={"contrasts": (alone,)}))
    assert advice.sentence.endswith("only another can say what to expect elsewhere.")


def test_too_few_occasions_want_more_of_them():
    (advice,) = advise(pool("quick", sessions(0.10)))
    assert advice.now_pct is None
    assert advice.sentence == (
        "HAProxy on point selects: 3 more occasions would say what to expect elsewhere; "
        "more blocks of the same hour can't."
    )
    told = list(lines(pool("quick", sessions(0.10))))
    assert told == ["What would narrow what is expected of a further session:", f"  {advice.sentence}"]
    assert list(lines(None)) == []


@pytest.mark.parametrize("block", [0.0, 0.01, 0.1])
def test_more_of_anything_never_widens(block):
    assert half_width(0.05, block, 8) < half_width(0.05, block, 4)
    assert half_width(0.05, block / 2, 4) <= half_width(0.05, block, 4)


def lacking(study: str, *, known: int, pct: float | None = None, runs: bool = False, s: float = 300) -> Need:
    return Need(study, known, pct, is_new_here=True, is_in_runs=runs, seconds=s)


def test_what_has_fewest_occasions_is_needed_most_then_what_is_expected_least_narrowly():
    needs = [
        lacking("narrow", known=4, pct=2.0), lacking("wide", known=4, pct=9.0), lacking("new", known=0),
        lacking("slow", known=1, s=5000), lacking("runs", known=4, pct=3.0, runs=True),
    ]  # fmt: skip
    # 15 minutes: new, then wide and runs of five each; slow alone takes longer, and narrow comes last.
    assert [one.study for one in chosen(needs, 900)] == ["runs", "new", "wide"]
    assert lacking("wide", known=4, pct=9.0).sentence == (
        "wide: 4 occasions, ±9.0 points expected of a further one; turns, 5 min"
    )


def test_what_fits_to_the_second_is_measured_and_one_of_these_hours_is_not():
    one, other, here = (lacking(name, known=0, s=300) for name in ("one", "other", "here"))
    assert chosen([one, other], 600) == [one, other]
    assert chosen([one, other], 599) == [one]
    assert chosen([replace(here, is_new_here=False), other], 600) == [other]


def test_a_session_in_the_hours_of_another_on_such_a_machine_is_no_occasion_and_not_asked_for():
    own = [one.session for one in sessions(0.1, 0.1)]  # The last: a Milan, on 2026-11-02 at 06:00.
    here = own[-1].model_copy(update={"id": "here"})
    soon, late = (here.model_copy(update={"measured": f"2026-11-02T{hour}"}) for hour in ("11:59", "12:01"))
    found = [need("quick", own, one, None, in_runs=False, seconds=60) for one in (soon, late)]
    assert [(one.occasions, one.is_new_here) for one in found] == [(2, False), (2, True)]
    assert chosen(found, 3600) == [found[1]]
