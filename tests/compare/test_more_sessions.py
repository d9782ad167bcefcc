"""What would narrow a prediction interval: more sessions, or more blocks in each."""

import math

import pytest

from benchbook.compare.more_sessions import advise, half_width, lines
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
    assert advice.tau_pct > advice.block_pct
    # tau is 6.44: 1.8946 * 6.44 * sqrt(1 + 1/8), t with 7 degrees of freedom.
    assert advice.sessions_pct == pytest.approx(12.95, abs=0.05)
    assert advice.now_pct - advice.blocks_pct < 0.1
    assert "More sessions: sessions differ by 6.4 points, their blocks leave 0.5." in advice.sentence


def test_sessions_alike_gain_from_either():
    (advice,) = advise(pool("quick", sessions(0.10, 0.10, 0.10, 0.10, error=0.03)))
    # Without tau: 2.3534 * 0.03 / sqrt(4) = 3.53; with twice the blocks over sqrt(2) less: 2.50.
    assert advice.now_pct == pytest.approx(3.53, abs=0.005)
    assert advice.blocks_pct == pytest.approx(2.50, abs=0.005)
    assert advice.sessions_pct == pytest.approx(1.8946 * 3 / math.sqrt(8), abs=0.005)
    assert "Either helps" in advice.sentence


def test_too_few_occasions_want_more_of_them():
    (advice,) = advise(pool("quick", sessions(0.10)))
    assert (advice.now_pct, advice.sessions_pct, advice.blocks_pct) == (None, None, None)
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
