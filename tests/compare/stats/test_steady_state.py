"""Warm-up: where a pilot settles, and what is advised when it does not."""

import numpy as np
import pandas as pd
import pytest

from benchbook.compare.stats.steady_state import discard_advice, truncation_point


def _pilot(qps, arm="direct", threads=4, pilot=1):
    return pd.DataFrame({
        "arm": arm, "workload": "oltp_point_select", "threads": threads, "pilot": pilot,
        "second": range(1, len(qps) + 1), "qps": qps,
    })  # fmt: skip


def _noise(seconds, seed):
    return 1000 * np.exp(0.01 * np.random.default_rng(seed).standard_normal(seconds))


def test_a_rise_of_25_values_is_cut_off_exactly_and_a_steady_series_loses_nothing():
    values = np.array([*range(50, 100, 2), *[99, 100, 101, 100, 100] * 15])
    assert truncation_point(values) == 25
    assert truncation_point(np.full(60, 100.0)) == 0


def test_too_few_values_and_gaps_are_refused():
    with pytest.raises(ValueError, match="too few"):
        truncation_point(np.ones(59))
    with pytest.raises(ValueError, match="gaps"):
        truncation_point([*np.ones(60), np.nan])


def test_the_slowest_cell_sets_the_discard_of_all():
    slow = _noise(300, 1)
    slow[:40] *= np.linspace(0.3, 1, 40)
    advice = discard_advice(pd.concat([_pilot(_noise(300, 2)), _pilot(slow, arm="haproxy", threads=16)]))
    assert advice.is_steady
    assert advice.discard_s == max(pilot.steady_after_s for pilot in advice.pilots) + 5
    assert 30 <= advice.discard_s <= 50
    assert "haproxy" in advice.reason
    # A fast warm-up still discards the floor.
    assert discard_advice(_pilot(_noise(300, 6))).discard_s >= 10


@pytest.mark.parametrize("seconds", [60, 64, 69, 300])
def test_a_pilot_that_never_settles_gives_no_number(seconds):
    advice = discard_advice(_pilot(np.linspace(500, 1500, seconds)))
    assert (advice.discard_s, advice.is_steady) == (None, False)
    assert "no steady state" in advice.reason


def test_a_short_pilot_says_that_it_is_too_short():
    advice = discard_advice(_pilot(_noise(20, 3)))
    assert advice.discard_s is None
    assert "20 s is too short" in advice.reason
    two = discard_advice(pd.concat([_pilot(_noise(20, 3)), _pilot(_noise(20, 4), arm="haproxy")]))
    assert two.reason == f"{advice.reason} (likewise 1 other cell)"


def test_a_stall_counts_as_half_a_query_and_moves_the_point_behind_it():
    qps = _noise(200, 4)
    qps[12] = 0
    assert discard_advice(_pilot(qps)).pilots[0].steady_after_s == 15


def test_repetitions_of_a_pilot_are_averaged_second_by_second():
    first, second = _noise(200, 5), _noise(200, 6)
    first[:20] *= 0.5
    both = discard_advice(pd.concat([_pilot(first, pilot=1), _pilot(second[:180], pilot=2)]))
    assert both.pilots[0].steady_after_s >= 20
    assert "of 180 s" in both.pilots[0].reason


def test_no_pilots_and_missing_seconds_give_no_number():
    assert discard_advice(_pilot([])).reason == "there are no pilots"
    gap = _noise(100, 7)
    gap[3] = np.nan
    assert discard_advice(_pilot(gap)).discard_s is None
