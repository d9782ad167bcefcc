"""Runs of turns: never pooled with whole runs, and no latency that carries a pause."""

from __future__ import annotations

import pandas as pd
import pytest

from benchbook.compare import consistency, turns


def _runs(**columns):
    """Make two runs at 4 and 16 threads: 141,909 events at 4 threads as measured, 4,008 at 16."""
    table = {
        "run_id": ["a", "b"], "arm": ["direct", "haproxy"], "workload": ["oltp_point_select"] * 2,
        "block": [1, 1],
        "threads": [4, 16], "events": [141_909, 4_008], "transactions": [141_909, 4_008],
        "queries": [141_909, 80_160],
        "qps": [50.0, 50.0], "tps": [50.0, 50.0],
        "latency_avg_ms": [9.0, 9.0], "latency_max_ms": [60.0, 60.0], "printed_percentile_ms": [8.0, 8.0],
        "latency_p95_ms": [1.2, 50.0], "latency_p99_ms": [2.0, 60.0], "order": ["turns"] * 2,
        "turn_ms": [50, 50],
        "turns": [48, 52], "active_s": [6.0, 6.0],
    }  # fmt: skip
    return pd.DataFrame({**table, **columns})


def test_old_tables_are_whole_runs():
    old = _runs().drop(columns=["order", "turn_ms", "turns", "active_s"])
    assert set(turns.orders(old)) == {"runs"}
    assert turns.summary(old, {}) is None
    assert turns.described(old) is old
    assert set(turns.orders(_runs(order=[None, ""]))) == {"runs"}


def test_the_two_orders_are_never_pooled(make_study):
    mixed = pd.concat([_runs(), _runs(run_id=["c", "d"]), _runs(run_id=["e", "f"], order=["runs"] * 2)])
    kept, told = turns.of_one_order(mixed, make_study())
    assert list(kept["run_id"]) == ["a", "b", "c", "d"]
    assert told == [
        "2 runs measured in the other order (whole runs) left out: the two orders are never pooled."
    ]
    assert turns.of_one_order(_runs(), make_study())[1] == []


def test_the_mean_is_littles_law_over_active_seconds():
    shown = turns.described(_runs())
    # 4 threads × 6 s / 141,909 events = 0.16912 ms; 16 × 6 / 4,008 = 23.952 ms.
    assert list(shown["latency_avg_ms"]) == pytest.approx([0.16912, 23.952], abs=1e-3)
    assert shown["latency_max_ms"].isna().all() and shown["printed_percentile_ms"].isna().all()


def test_a_percentile_stays_only_where_few_of_the_events_beyond_it_were_in_flight():
    """4 × 48 = 192 events of 7,095 beyond p95, but of 1,419 beyond p99; 16 × 52 = 832 of 200 destroy both."""
    shown = turns.described(_runs())
    assert shown["latency_p95_ms"].tolist()[0] == 1.2
    assert shown["latency_p99_ms"].isna().all()
    assert shown["latency_p95_ms"].isna().tolist() == [False, True]
    assert turns.lacks_percentiles(_runs())
    assert not turns.lacks_percentiles(_runs(turns=[2, 0]))


def test_without_a_count_of_turns_no_percentile_is_trusted():
    assert turns.described(_runs(turns=[None, None]))["latency_p95_ms"].isna().all()


def test_what_is_said_of_turns():
    found = turns.summary(
        pd.concat([_runs(), _runs(run_id=["c", "d"])]),
        {"direct": {}, "haproxy": {"stopped": ["client", "proxy"]}},
    )
    # Each arm has two runs in the block: 96 and 104 turns, half of them 100.
    assert found == {
        "turn_ms": [50],
        "turns": 100,
        "active_s": 6.0,
        "stopped": {"haproxy": ["client", "proxy"]},
    }


def test_littles_law_is_not_asked_of_a_printed_mean_that_carries_pauses():
    checks = {one["check"]: one["passed"] for one in consistency.of_runs(_runs())}
    assert checks.get("Little's law") is not False
    whole = {one["check"]: one["passed"] for one in consistency.of_runs(_runs(order=["runs"] * 2))}
    assert any("ittle" in name and passed is False for name, passed in whole.items())


def test_what_stands_still_is_told_by_the_runs_themselves():
    runs = _runs(stopped=["client", "client, server"])
    assert turns.summary(runs, {"haproxy": {"stopped": ["client"]}})["stopped"] == {
        "direct": ["client"],
        "haproxy": ["client", "server"],
    }
