"""A session beside the record: as expected, outside, or nothing to expect; and what is different there."""

import random

from benchbook.compare.meta import prediction_check
from benchbook.compare.meta.meta_analysis import pool_sessions
from benchbook.compare.meta.prediction_check import estimate_coverage, machine_differences
from tests.compare.sessions import PROCESSORS, finding, part, session, sessions, twins


def test_a_recorded_session_is_compared_with_the_others():
    own = sessions(0.10, 0.11, 0.09, 0.10, 0.40)
    (found,) = prediction_check.compare_with_prediction(own[-1], pool_sessions("quick", own))
    assert found.place == "outside what was expected"
    (found,) = prediction_check.compare_with_prediction(own[0], pool_sessions("quick", own[:3]))
    assert found.place == "nothing to expect yet"


def test_differences_are_those_from_every_recorded_session():
    known = [one.session for one in sessions(0.1, 0.1)]
    same = session(finding(part(0.1, 0.005)), measured="2026-12-01T06:00").session
    assert machine_differences(same, known) == []
    other = {"steal_pct": 6.8, "kernel": "5.10", "cores": 4.0, "proxies": {"haproxy": "3.0"}}
    loud = same.model_copy(update={**other, "probes": {"wake_us": 9.0}})
    probed = [known[0].model_copy(update={"probes": {"wake_us": 2.5}}), known[1]]
    assert machine_differences(loud, probed) == [
        *("kernel 5.10", "haproxy 3.0", "4 cores"),
        *("steal 6.8\xa0%, elsewhere at most 0.5\xa0%", "wake_us 9, elsewhere 2.5 to 2.5"),
    ]


def test_each_processor_is_left_out_with_all_its_occasions():
    # Four near 0.1 and a processor at 0.5, measured twice: that is outside what the four let expect; each of
    # the four is inside what the others do, since 0.5 among them makes tau large.
    logs, models = (0.10, 0.11, 0.09, 0.10, 0.50, 0.50), (*PROCESSORS[:5], PROCESSORS[4])
    known = pool_sessions("quick", sessions(*logs, processors=models))
    own, total = estimate_coverage([known])
    assert (own.study, total.study) == ("quick", "")
    assert (own.effects.number, own.effects.of) == (total.effects.number, total.effects.of) == (4, 5)
    # An occasion of it alone is predicted by the other one, too.
    assert (own.occasions.number, own.occasions.of) == (6, 6)
    # Exact interval of 4 of 5: 28.4 to 99.5 %.
    assert (round(100 * own.effects.low, 1), round(100 * own.effects.high, 1)) == (28.4, 99.5)
    # What leaves fewer than three processors is not tried.
    assert estimate_coverage([pool_sessions("quick", sessions(0.1, 0.1, 0.1))]) == []


def test_nine_of_ten_drawn_processors_lie_inside():
    draw = random.Random(20261123)
    several = []
    for place in range(60):
        logs = [draw.gauss(0.1, 0.05) + draw.gauss(0, 0.01) for _ in range(8)]
        several.append(pool_sessions(f"s{place}", sessions(*logs, error=0.01)))
    share = estimate_coverage(several)[-1].effects
    assert share.of == 480
    # 480 times 0.9 is 432; that is left in all but one of a thousand draws between 412 and 452.
    assert 412 <= share.number <= 452


def test_equal_arms_are_counted_by_session_of_any_design_and_by_mean():
    # t is 3.747, so an interval is ±0.0187: 0.05 is outside. The mean of two has t with 1 degree of freedom.
    several = [pool_sessions("quick", twins(*logs)) for logs in ((0.001, -0.001), (0.05,))]
    shares = prediction_check.equal_arms(several).items()
    assert [(name, share.number, share.of) for name, share in shares] == [("means", 1, 1), ("runs", 2, 3)]
    assert prediction_check.equal_arms([pool_sessions("quick", sessions(0.1))]) == {}
