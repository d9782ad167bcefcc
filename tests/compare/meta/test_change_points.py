"""Latest sessions on one machine that lie beyond all before them."""

from datetime import date, timedelta

import numpy as np
import pytest

from benchbook.compare.meta import change_points
from benchbook.core.artifacts.meta_analysis import (
    MetaAnalysis,
    ObservedEffect,
    PooledContrast,
    PooledEffect,
    Processor,
    StudySession,
)


def told(logs, levels=(None,), processors=("Xeon",)):
    """What a page says of sessions a week apart, the same at each level and on each processor in turn."""
    sessions = [
        StudySession(
            id=f"s{place}", measured=f"{date(2026, 1, 1) + timedelta(weeks=place)}T08:00:00Z", design="d",
            processor=Processor(name=processors[place % len(processors)]),
        )
        for place in range(len(logs))
    ]  # fmt: skip
    seen = [
        ObservedEffect(session=one.id, effect=np.expm1(log)) for one, log in zip(sessions, logs, strict=True)
    ]
    effects = [
        PooledEffect(threads=level, seen=seen, occasions=(), processors=1, label="on average")
        for level in levels
    ]
    contrast = PooledContrast(
        id="read.proxy.qps", workload="read", baseline="direct", treatment="proxy", metric="qps",
        names={"workload": "reads", "baseline": "direct", "treatment": "proxy"},
        one_number=levels == (None,), whole=effects[0],
        levels=effects if levels != (None,) else (),
    )  # fmt: skip
    found = MetaAnalysis(
        study="made",
        title="made",
        level=0.9,
        design="d",
        sessions=sessions,
        left_out=(),
        contrasts=[contrast],
    )
    return [text.replace("\xa0", " ") for text in change_points.describe_shifts(found)]


NOISE = np.random.default_rng(7).normal(0, 0.008, 30)


def test_a_step_near_the_end_is_told_as_what_can_be_said_already():
    """Eight weeks after the first of January is 26 February."""
    (text,) = told(NOISE[:11] + np.log(1.1) * (np.arange(11) >= 8))
    assert "the last 3 sessions, from 2026-02-26 on, lie beyond all 8 sessions before, by +" in text
    assert "more are needed" in text
    # Six before and five after: the sixth week after the first of January begins on 12 February.
    (text,) = told(NOISE[:11] + np.log(1.1) * (np.arange(11) >= 6))
    assert "the last 5 sessions, from 2026-02-12 on, lie beyond all 6 sessions before, by +" in text
    assert told(NOISE[:11]) == []


def test_each_level_and_each_machine_is_a_series():
    stepped = NOISE + np.log(0.8) * (np.arange(30) >= 15)
    assert [text.partition(":")[0] for text in told(stepped, (1, 8))] == [
        "proxy on reads, 1 thread, Xeon",
        "proxy on reads, 8 threads, Xeon",
    ]
    # Two machines in turn, one 20 % below the other: no series moved.
    assert told(NOISE + np.log(0.8) * (np.arange(30) % 2), processors=("Xeon", "EPYC")) == []


@pytest.mark.parametrize(
    ("more", "place"),
    [
        # Two values beyond all before are too few to stand for the latest sessions; three are enough.
        ([0.0, 5.0, 5.1], 0),
        ([5.0, 5.1, 5.2], 8),
        ([-5.0, -5.1, -5.2], 8),
        # Of two places the one with the wider gap: 4 before the last three, 1 before the last four.
        ([1.0, 5.0, 5.1, 5.2], 9),
        ([0.0, 0.0, 0.0], 0),
    ],
)
def test_the_latest_sessions_are_three_at_least_and_lie_beyond_all_before(more: list[float], place: int):
    assert change_points.find_shift([0.0, 0.01, -0.01, 0.0, 0.01, 0.0, -0.01, 0.01, *more]) == place


def test_five_sessions_come_before_the_latest():
    assert change_points.find_shift([0.0, 0.1, 0.0, 0.1, 5.0, 5.1, 5.2]) == 0
