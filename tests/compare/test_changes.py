"""E-divisive: the statistic by hand, a planted step at its place, and silence where there is none."""

from datetime import date, timedelta

import numpy as np
import pytest

from benchbook.compare import changes
from benchbook.core.pooled import Contrast, Pooled, PooledEffect, Processor, Seen, Session


def test_the_statistic_of_two_levels_by_hand():
    """Three zeros, then three ones: mean distance between the sides 1, within each 0.

    n m / (n + m) × (2 × 1 - 0 - 0) = 9 / 6 × 2 = 3.
    """
    values = np.array([0.0, 0, 0, 1, 1, 1])
    assert changes.divergences(np.abs(values[:, None] - values)) == pytest.approx([3.0])


def test_the_statistic_of_an_uneven_split_by_hand():
    """0 0 3 | 3 3 3 3: between (4+4+0)·3/12 = 2; within the left pairs (0, 3, 3): mean 2; right 0.

    3 × 4 / 7 × (2 × 2 - 2 - 0) = 24 / 7. At 0 0 3 3 | 3 3 3: between 6·3/12 = 1.5; left pairs 0, 3 × 4, 0: 2.
    """
    values = np.array([0.0, 0, 3, 3, 3, 3, 3])
    found = changes.divergences(np.abs(values[:, None] - values))
    assert found == pytest.approx([12 / 7 * (2 * 2 - 2), 12 / 7 * (2 * 1.5 - 2)])


@pytest.mark.parametrize("place", [5, 15, 24])
def test_a_planted_step_is_found_where_it_is(place):
    values = np.random.default_rng(place).normal(0, 1, 30) + 5 * (np.arange(30) >= place)
    assert changes.change_points(values) == [place]


def test_two_steps_are_two_changes():
    values = np.random.default_rng(4).normal(0, 1, 45) + 6 * (np.arange(45) >= 15) - 8 * (np.arange(45) >= 30)
    assert changes.change_points(values) == [15, 30]


def test_thirty_quiet_series_of_thirty_have_no_change():
    random = np.random.default_rng(30)
    assert [changes.change_points(random.normal(size=30)) for _ in range(30)] == [[]] * 30


@pytest.mark.parametrize("values", [[], [1.0], [0.0] * 3 + [9.0] * 3, [1.0] * 30, [0.0] * 29 + [50.0]])
def test_too_few_values_no_spread_or_one_outlier_are_no_change(values):
    assert changes.change_points(values) == []


def test_units_and_direction_do_not_matter_and_the_answer_is_the_same_twice():
    values = np.random.default_rng(8).normal(0, 1, 30) + 2.5 * (np.arange(30) >= 12)
    once = changes.change_points(values)
    assert once == changes.change_points(values) == changes.change_points(-1e6 * values + 3)


def test_a_value_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="no number"):
        changes.change_points([1.0, float("nan"), 2.0])


def told(logs, levels=(None,), processors=("Xeon",)):
    """What a page says of sessions a week apart, the same at each level and on each processor in turn."""
    sessions = [
        Session(
            id=f"s{place}", measured=f"{date(2026, 1, 1) + timedelta(weeks=place)}T08:00:00Z", design="d",
            processor=Processor(name=processors[place % len(processors)]),
        )
        for place in range(len(logs))
    ]  # fmt: skip
    seen = [Seen(session=one.id, effect=np.expm1(log)) for one, log in zip(sessions, logs, strict=True)]
    effects = [
        PooledEffect(
            threads=level, seen=seen, occasions=(), processors=1, label="on average", headline="", short=""
        )
        for level in levels
    ]
    contrast = Contrast(
        id="read.proxy.qps", workload="read", baseline="direct", treatment="proxy", metric="qps",
        names={"workload": "reads", "baseline": "direct", "treatment": "proxy"},
        one_number=levels == (None,), whole=effects[0],
        levels=effects if levels != (None,) else (),
    )  # fmt: skip
    found = Pooled(
        study="made",
        title="made",
        level=0.9,
        design="d",
        sessions=sessions,
        left_out=(),
        contrasts=[contrast],
    )
    return [text.replace("\xa0", " ") for text in changes.in_time(found)]


NOISE = np.random.default_rng(7).normal(0, 0.008, 30)


def test_a_step_has_its_date_and_its_size():
    """From the 21st of 30 weeks on, 20 weeks after the first of January: 21 May; 0.92 is −8 %."""
    (text,) = told(NOISE + np.log(0.92) * (np.arange(30) >= 20))
    assert text.startswith("proxy on reads, Xeon: changed on 2026-05-21, the last time by −")
    assert float(text.partition("−")[2].partition(" ")[0]) == pytest.approx(8, abs=1)


def test_a_steady_drift_is_no_step_with_a_date():
    """From 0 to +10 % in 30 weeks: ln 1.1 / 29 each week; the last is 29 weeks after the first, 23 July."""
    (text,) = told(NOISE + np.log(1.1) / 29 * np.arange(30))
    assert "drifts steadily, by +" in text and "from 2026-01-01 to 2026-07-23" in text
    assert "changed" not in text
    assert float(text.partition("+")[2].partition(" ")[0]) == pytest.approx(10, abs=1.5)


def test_a_step_near_the_end_is_told_as_what_can_be_said_already():
    """Eleven sessions are too few for any change; eight weeks after the first of January is 26 February."""
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
    assert changes._latest(np.array([0.0, 0.01, -0.01, 0.0, 0.01, 0.0, -0.01, 0.01, *more])) == place


def test_five_sessions_come_before_the_latest():
    assert changes._latest(np.array([0.0, 0.1, 0.0, 0.1, 5.0, 5.1, 5.2])) == 0
    assert changes._latest(np.array([0.0, 0.1, 0.0, 0.1, 0.0, 5.0, 5.1, 5.2])) == 5
