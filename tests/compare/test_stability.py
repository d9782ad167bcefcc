"""Stalls and levels of long runs: those that are there are found, in noise none are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchbook.compare import stability


def noise(seconds: int, level: float, spread: float = 0.02, seed: int = 1) -> np.ndarray:
    return level * np.exp(np.random.default_rng(seed).normal(0, spread, seconds))


def study(qps: np.ndarray, run_s: int, discard: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    runs = pd.DataFrame({"run_id": ["r"], "position": [0], "run_s": [run_s]})
    second = np.arange(1.0, len(qps) + 1)
    intervals = pd.DataFrame({"run_id": "r", "second": second, "qps": qps, "is_discarded": second <= discard})
    return runs, intervals


def test_two_speeds_of_one_run_are_two_levels_with_their_shares():
    # 400 of 600 s at 1000, 200 at 800.
    low, high = stability.modes(np.concatenate([noise(400, 1000), noise(200, 800)]))
    assert (low.qps, high.qps) == pytest.approx((800, 1000), rel=0.01)
    assert (low.share, high.share) == pytest.approx((1 / 3, 2 / 3), abs=0.01)


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_noise_has_one_level_even_if_it_wanders(memory: float):
    random = np.random.default_rng(5)
    several = 0
    for _ in range(40):
        series = np.zeros(600)
        for place, step in enumerate(random.normal(0, 0.01, 600)):
            series[place] = memory * series[place - 1] + step
        several += len(stability.modes(1000 * np.exp(series))) > 1
    assert several == 0


def test_a_slow_second_now_and_then_is_no_level():
    qps = noise(600, 1000)
    qps[::50] = 500  # 12 of 600: 2 %
    (only,) = stability.modes(qps)
    assert only.qps == pytest.approx(1000, rel=0.01)


def test_seconds_of_a_stall_that_follow_each_other_are_one_stall():
    qps = np.full(400, 1000.0)
    qps[[9, 10, 11, 199, 399]] = [0, 4, 99, 50, 0]
    found = stability.stalls(np.arange(1.0, 401.0), qps)
    assert found == (
        stability.Stall(10.0, 3, 0.0),
        stability.Stall(200.0, 1, 50.0),
        stability.Stall(400.0, 1, 0.0),
    )
    # A tenth of the median is slow, not a stall.
    assert stability.stalls(np.arange(3.0), np.array([1000.0, 100.0, 1000.0])) == ()


def test_only_runs_of_five_minutes_are_looked_at_and_never_their_discard():
    qps = np.concatenate([np.zeros(20), noise(300, 700)])
    (one,) = stability.of_runs(*study(qps, run_s=300, discard=20))
    assert (one.seconds, one.stalls, len(one.modes)) == (300, (), 1)
    assert stability.of_runs(*study(qps, run_s=299, discard=20)) == []


def test_a_series_without_any_change_is_one_level():
    assert stability.modes(np.full(300, 1000.0)) == (stability.Mode(pytest.approx(1000.0), 1.0),)
    assert stability.modes(noise(59, 1000)) == ()
