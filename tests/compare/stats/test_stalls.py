"""Stalls, levels and dips of runs: those that are there are found, in noise none are."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchbook.compare.stats import stalls


def noise(seconds: int, level: float, spread: float = 0.02, seed: int = 1) -> np.ndarray:
    return level * np.exp(np.random.default_rng(seed).normal(0, spread, seconds))


def study(qps: np.ndarray, run_s: int, discard: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    runs = pd.DataFrame({"run_id": ["r"], "position": [0], "run_s": [run_s]})
    second = np.arange(1.0, len(qps) + 1)
    intervals = pd.DataFrame({"run_id": "r", "second": second, "qps": qps, "is_discarded": second <= discard})
    return runs, intervals


def test_two_speeds_of_one_run_are_two_levels_with_their_shares():
    # 400 of 600 s at 1000, 200 at 800.
    low, high = stalls.find_modes(np.concatenate([noise(400, 1000), noise(200, 800)]))
    assert (low.qps, high.qps) == pytest.approx((800, 1000), rel=0.01)
    assert (low.share, high.share) == pytest.approx((1 / 3, 2 / 3), abs=0.01)


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_noise_has_one_level_even_if_it_wanders(memory: float):
    random = np.random.default_rng(5)
    for _ in range(40):
        series = np.zeros(600)
        for place, step in enumerate(random.normal(0, 0.01, 600)):
            series[place] = memory * series[place - 1] + step
        assert len(stalls.find_modes(1000 * np.exp(series))) == 1


def test_a_slow_second_now_and_then_is_no_level():
    qps = noise(600, 1000)
    qps[::50] = 500  # 12 of 600: 2 %
    (only,) = stalls.find_modes(qps)
    assert only.qps == pytest.approx(1000, rel=0.01)


def test_seconds_of_a_stall_that_follow_each_other_are_one_stall():
    qps = np.full(400, 1000.0)
    qps[[9, 10, 11, 199, 399]] = [0, 4, 99, 50, 0]
    found = stalls.find_stalls(np.arange(1.0, 401.0), qps)
    assert found == (stalls.Stall(10.0, 3, 0.0), stalls.Stall(200.0, 1, 50.0), stalls.Stall(400.0, 1, 0.0))
    # A tenth of the median is slow, not a stall.
    assert stalls.find_stalls(np.arange(3.0), np.array([1000.0, 100.0, 1000.0])) == ()


def test_only_runs_of_five_minutes_are_looked_at_and_never_their_discard():
    qps = np.concatenate([np.zeros(20), noise(300, 700)])
    (one,) = stalls.long_runs(*study(qps, run_s=300, discard=20))
    assert (one.seconds, one.stalls, len(one.modes)) == (300, (), 1)
    assert stalls.long_runs(*study(qps, run_s=299, discard=20)) == []


def test_a_series_without_any_change_is_one_level():
    assert stalls.find_modes(np.full(300, 1000.0)) == (stalls.Mode(pytest.approx(1000.0), 1.0),)
    assert stalls.find_modes(noise(59, 1000)) == ()


def frames(series: dict[str, list[float]], discard: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return runs, each of an arm of its own name, and their intervals, labels from 1."""
    runs = pd.DataFrame([{"run_id": name, "arm": name, "position": at} for at, name in enumerate(series)])
    rows = [
        {"run_id": name, "second": second, "qps": qps, "is_discarded": second <= discard}
        for name, values in series.items()
        for second, qps in enumerate(values, start=1)
    ]
    return runs, pd.DataFrame(rows)


def test_depth_silence_recovery_and_loss_are_those_of_the_series() -> None:
    # 100 a second for 30 s, nothing for 12, half of it for 8, then 100 again.
    lost = [100.0] * 30 + [0.0] * 12 + [50.0] * 8 + [100.0] * 20
    steady = [100.0, 90.0] * 35
    (event, other) = stalls.measure_dips(*frames({"lost": lost, "steady": steady}), {"lost": 30})
    assert event == stalls.Dip("lost", True, 100.0, 0.0, 12, 20, pytest.approx(16.0))
    # 12 s without an answer and 8 at half speed: 12 + 8 / 2 = 16 s of 100 queries a second.
    assert (other.has_event, other.silent_s, other.recovered_s) == (False, 0, 0)
    # Half its seconds are 100 and half 90, so that the median is 95 and the slowest 90.
    assert (other.before_qps, other.lowest_qps, other.lost_s) == (95.0, 90.0, 0.0)


def test_what_an_event_lost_stands_by_arm_with_those_first_that_had_one() -> None:
    """Of 30 s at 100, then 12 of nothing: 12 s are lost; a run that stays at nothing is not as before."""
    back, never, steady = [0.0] * 12 + [100.0] * 28, [0.0] * 40, [100.0] * 40
    runs, intervals = frames({f"r{n}": [100.0] * 30 + rest for n, rest in enumerate((steady, back, never))})
    runs = runs.assign(arm=["steady", "killed", "killed"], ignored_errors=[0, 4, 6])
    dips = stalls.measure_dips(runs, intervals, {"killed": 30})
    killed, other = stalls.summarize_losses(runs, dips)
    assert killed == stalls.EventLoss("killed", True, [4, 6], [12.0, 40.0], [12, 40], [12])
    assert (other.arm, other.has_event, other.errors, other.recovered_s) == ("steady", False, [0], [0])


def test_a_run_that_never_is_what_it_was_has_not_recovered_and_a_short_rise_is_no_recovery() -> None:
    # Five good seconds, one window, among bad ones are not two windows in a row.
    series = [100.0] * 20 + [10.0] * 10 + [100.0] * 5 + [10.0] * 15
    (one,) = stalls.measure_dips(*frames({"lost": series}), {"lost": 20})
    assert one.recovered_s is None
    # 25 seconds at a tenth of the rate.
    assert one.lost_s == pytest.approx(25 * 0.9)
    assert one.silent_s == 0


def test_discarded_seconds_are_no_seconds_before_and_too_few_say_nothing() -> None:
    series = [1.0] * 10 + [100.0] * 20 + [100.0] * 20
    (one,) = stalls.measure_dips(*frames({"lost": series}, discard=10), {"lost": 30})
    assert one.before_qps == 100.0
    assert stalls.measure_dips(*frames({"lost": series}, discard=11), {"lost": 30}) == []
    assert stalls.measure_dips(*frames({"lost": series}), {}) == []


def test_events_are_read_from_the_facts_of_the_arms() -> None:
    event = {"what": "kill_store", "at_s": 60, "back_after_s": 30}
    facts: dict[str, Any] = {"lost": {"engine": {"cluster": {"event": event}}}, "steady": {}}
    assert stalls.event_seconds(facts) == {"lost": 60}
    named = {"one": {"engine": {"cluster": "a name"}}}
    assert stalls.event_seconds(named) == stalls.event_seconds(None) == {}
