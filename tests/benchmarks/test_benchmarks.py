"""The benchmarks measure what they say: valid folders, a fair alternative, no thumb on the simulation."""

import os
from dataclasses import replace

import numpy as np
import pytest

from benchbook.compare.stats.intervals import t_interval
from benchbook.core.artifacts import run_folder
from benchbook.read import tidy, validity
from benchbook.read.sysbench_log import parse_log
from benchmarks import bench_site, gates, logs, plain, power, precision
from benchmarks.machines import SCENARIOS, STEP_S, Scenario, speed
from benchmarks.order import BLOCKS, LEVELS, agrees_with_findings, placed

STILL = Scenario("still", second=0.0)
STEPS = np.array([-0.001, 0.0, 0.001])


def test_made_up_folders_are_valid_in_every_check(tmp_path):
    schedule = logs.campaign(tmp_path, 4, seconds=40)
    folders = list(run_folder.list_folders(tmp_path / "raw"))
    assert [validity.judge_run(folder).reasons for folder in folders] == [[]] * 4
    assert len(tidy.read_study(tmp_path / "raw", tmp_path / "void", schedule)["intervals"]) == 160


def test_the_plain_parser_reads_the_same_numbers():
    text, _ = logs.output(3, 60)
    intervals, bars, totals = plain.parse(text)
    log = parse_log(text)
    for found, ours in zip(intervals, log.intervals, strict=True):
        assert {name: getattr(ours, name) for name in found} == found
    assert [count for _, count in bars] == log.histogram.counts.tolist()
    assert {name: getattr(log.final, name) for name in totals} == totals
    tps, latency, qps = plain.three_fields(text)
    of_one = [intervals[7][name] for name in ("tps", "latency_percentile_ms", "qps")]
    assert [tps[7], latency[7], qps[7]] == of_one


def test_a_machine_that_stands_still_makes_no_error_in_either_order():
    random = np.random.default_rng(1)
    assert not precision.block_errors(STILL, placed(1), random, 3).any()
    assert not precision.published_errors(STILL, 1, random, 3).any()


def test_a_ramp_cancels_in_our_order_but_for_the_distance_of_a_pair():
    """10 % an hour: a pair is 60 s apart, so one pair is off by 0.17 % and pairs of both orders cancel.

    The published order is off by the distance of its arms: 3660 s of 3600 s an hour, 10.17 %.
    """
    ramp = replace(STILL, drift=0.1, kind="ramp")
    random = np.random.default_rng(2)
    steady = np.tile(np.arange(2000) * 0.1 * STEP_S / 3600, (2, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(precision, "speed", lambda scenario, campaigns, steps, random: steady[:, :steps])
        ours = precision.block_errors(ramp, placed(1), random, 2)
        theirs = precision.published_errors(ramp, 1, random, 2)
    assert ours.shape == (2, BLOCKS)
    assert abs(ours).max() <= 0.1 * 60 / 3600 + 1e-12
    assert abs(ours.mean()) < 1e-4
    assert theirs == pytest.approx(0.1 * 3660 / 3600)


def test_drift_has_the_size_and_the_memory_that_its_scenario_names():
    scenario = Scenario("drift", drift=0.1, memory_s=600)
    log_speed = speed(scenario, 400, 400, np.random.default_rng(3))
    assert log_speed.std() == pytest.approx(0.1, rel=0.05)
    later = np.corrcoef(log_speed[:, 0], log_speed[:, 600 // STEP_S])[0, 1]
    # exp(-1) after one time constant; 400 campaigns know a correlation to about 0.05
    assert later == pytest.approx(np.exp(-1), abs=0.15)


def test_every_level_of_every_block_has_both_arms_next_to_each_other():
    order = placed(5)
    assert order.shape == (BLOCKS, LEVELS, 2)
    assert set(abs(order[..., 0] - order[..., 1]).ravel().tolist()) == {60 // STEP_S}


def test_the_fast_path_is_the_whole_analysis():
    assert agrees_with_findings(SCENARIOS[2], 1) == 1


def test_gates_are_made_of_the_noise_that_was_recorded_and_of_nothing_else():
    noise = gates.campaigns()
    assert len(noise) == 100 and max(abs(one.mean()) for one in noise) < 1e-12
    # With next to no noise equal arms pass, and one that has lost 5 % is beyond 3 %.
    still = [np.array([-2e-4, -1e-4, 0.0, 1e-4, 2e-4])]
    assert gates.answers(still, 0.03, 0.0, 1, 3) == {"not slower": 3}
    assert gates.answers(still, 0.03, 0.05, 1, 3) == {"slower": 3}
    again = [gates.answers(noise, 0.05, 0.05, 3, 60) for _ in range(2)]
    # 1.5 % of 600 were let through.
    assert again[0] == again[1] and again[0]["not slower"] <= 3


def test_power_counts_what_was_found_with_its_sign_and_what_was_invented():
    """Ten sessions: nine found 5 % more and one 5 % less; equal arms differed in one of them."""
    none, more, less = (t_interval(np.log(effect + STEPS), 0.9) for effect in (1, 1.05, 0.95))
    line = power.count_results("quota", [(none, more)] * 8 + [(more, more), (none, less)], 500.0)
    assert line.ours.startswith("9 found, mean +4.") and line.alternative.startswith("1 invented")
    assert (line.met, line.ratio) == (True, "50 s a session")
    assert not power.count_results("zones", [(none, more)] * 10, 500.0).met


def test_a_place_for_a_server_lies_among_the_labs_and_is_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHBOOK_LAB_DIR", str(tmp_path))
    with bench_site.place() as base:
        assert tmp_path in base.parents and os.environ["BENCHBOOK_LOCK"] == str(base / "machine.lock")
    assert not base.exists()
