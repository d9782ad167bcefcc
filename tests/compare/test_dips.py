"""What an event in a run cost, on series whose dips are known."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from benchbook.compare import dips


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
    (event, other) = dips.of_runs(*frames({"lost": lost, "steady": steady}), {"lost": 30})
    assert event == dips.Dip("lost", True, 100.0, 0.0, 12, 20, pytest.approx(16.0))
    # 12 s without an answer and 8 at half speed: 12 + 8 / 2 = 16 s of 100 queries a second.
    assert (other.has_event, other.silent_s, other.recovered_s) == (False, 0, 0)
    # Half its seconds are 100 and half 90, so that the median is 95 and the slowest 90.
    assert (other.before_qps, other.lowest_qps, other.lost_s) == (95.0, 90.0, 0.0)


def test_a_run_that_never_is_what_it_was_has_not_recovered_and_a_short_rise_is_no_recovery() -> None:
    # Five good seconds, one window, among bad ones are not two windows in a row.
    series = [100.0] * 20 + [10.0] * 10 + [100.0] * 5 + [10.0] * 15
    (one,) = dips.of_runs(*frames({"lost": series}), {"lost": 20})
    assert one.recovered_s is None
    # 25 seconds at a tenth of the rate.
    assert one.lost_s == pytest.approx(25 * 0.9)
    assert one.silent_s == 0


def test_discarded_seconds_are_no_seconds_before_and_too_few_say_nothing() -> None:
    series = [1.0] * 10 + [100.0] * 20 + [100.0] * 20
    (one,) = dips.of_runs(*frames({"lost": series}, discard=10), {"lost": 30})
    assert one.before_qps == 100.0
    assert dips.of_runs(*frames({"lost": series}, discard=11), {"lost": 30}) == []
    assert dips.of_runs(*frames({"lost": series}), {}) == []


def test_events_are_read_from_the_facts_of_the_arms() -> None:
    event = {"what": "kill_store", "at_s": 60, "back_after_s": 30}
    facts: dict[str, Any] = {"arms": {"lost": {"engine": {"cluster": {"event": event}}}, "steady": {}}}
    assert dips.events(facts) == {"lost": 60}
    assert dips.events({"arms": {"one": {"engine": {"name": "mariadb"}}}}) == dips.events(None) == {}
