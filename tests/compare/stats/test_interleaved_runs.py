"""Runs of turns: never pooled with whole runs, and no latency that carries a pause."""

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from benchbook.compare.stats import interleaved_runs
from benchbook.core.artifacts import design
from tests.found import runs


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
    return runs({**table, **columns})


MIXED = pd.concat([_runs(), _runs(run_id=["c", "d"]), _runs(run_id=["e", "f"], order=["runs"] * 2)])


def test_the_two_orders_are_never_pooled(make_study):
    kept, told = interleaved_runs.select_order(MIXED, make_study())
    assert list(kept["run_id"]) == ["a", "b", "c", "d"]
    assert told == [
        "2 runs measured in the other order left out: turns and whole runs of a workload are never pooled."
    ]
    assert interleaved_runs.select_order(_runs(), make_study())[1] == []
    # A study may have one workload in turns and another in whole runs.
    other = _runs(run_id=["c", "d"], workload=["oltp_read_only"] * 2, order=["runs"] * 2)
    kept, told = interleaved_runs.select_order(pd.concat([_runs(), other], ignore_index=True), make_study())
    assert (list(kept["run_id"]), told) == (["a", "b", "c", "d"], [])


def test_levels_of_a_workload_may_have_two_orders_which_is_a_doubt_and_another_design(make_study):
    other = _runs(run_id=["c", "d"], threads=[64] * 2, order=["runs"] * 2)
    both = pd.concat([_runs(), other], ignore_index=True)
    kept, told = interleaved_runs.select_order(both, make_study())
    assert (list(kept["run_id"]), told) == (["a", "b", "c", "d"], [])
    workload = both.workload.iloc[0]
    (text,) = interleaved_runs.mixed_levels(kept)
    assert text.startswith(f"{workload} at 64 threads was measured in whole runs")
    assert interleaved_runs.mixed_levels(_runs()) == []
    plans = kept[["workload", "threads", "order"]].to_dict("records")
    assert design.mixed_methods(plans) == {f"whole runs of {workload} at 64 threads": 1}
    assert design.mixed_methods(plans[:2]) == {}


def test_the_machine_s_time_counts_the_seconds_of_a_group_in_turns_once():
    """Two arms of 10.5 and 10.7 s in one group took 10.7 s; two whole runs of 8 s took 16 s."""
    shared = _runs(sysbench_s=[10.5, 10.7], group=["g"] * 2)
    whole = _runs(sysbench_s=[8.0, 8.0], group=["h"] * 2, order=["runs"] * 2)
    assert interleaved_runs.machine_s(shared) == pytest.approx(10.7)
    assert interleaved_runs.machine_s(pd.concat([shared, whole], ignore_index=True)) == pytest.approx(26.7)
    assert interleaved_runs.machine_s(whole) == pytest.approx(16.0)


def test_a_study_that_says_its_order_keeps_the_runs_of_it_however_few():
    study: Any = SimpleNamespace(plan=SimpleNamespace(order="runs"))
    kept, told = interleaved_runs.select_order(MIXED, study)
    assert list(kept["run_id"]) == ["e", "f"] and [text.split()[0] for text in told] == ["4"]
    # Where there is none of it, the order of most counts.
    assert list(interleaved_runs.select_order(_runs(), study)[0]["run_id"]) == ["a", "b"]


def test_turns_are_counted_by_arm_and_block_and_what_stands_still_is_told_by_runs_or_facts():
    # Arm direct has 48 + 40 turns in block 1, HAProxy 52 in each: 88, 52 and 52, of which 52 is the median.
    runs = pd.concat([
        _runs(stopped=["a trigger, a quota", ""]),
        _runs(run_id=["c", "d"], block=[1, 2], turns=[40, 52], active_s=[5.0, 9.0], turn_ms=[50, 100]),
    ], ignore_index=True)  # fmt: skip
    facts = {"direct": {"stopped": ["all"]}, "haproxy": {"stopped": ["its pool"]}, "third": {}}
    found = interleaved_runs.summarize_turns(runs, facts)
    assert found is not None and (found.turn_ms, found.turns, found.active_s) == ([50, 100], 52, 6.0)
    assert found.stopped == {"direct": ["a trigger", "a quota"], "haproxy": ["its pool"]}
    assert interleaved_runs.summarize_turns(_runs(order=["runs"] * 2), {}) is None


def test_a_run_in_turns_may_lack_a_percentile_and_a_whole_one_is_not_asked():
    assert not interleaved_runs.lacks_percentiles(_runs())
    assert interleaved_runs.lacks_percentiles(_runs(latency_p99_ms=[2.0, None]))
    assert not interleaved_runs.lacks_percentiles(_runs(latency_p99_ms=[2.0, None], order=["runs"] * 2))
