"""Several clients of one run add up: counts exactly, percentiles by their histograms, seconds by seconds."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchbook.core.util import histogram
from benchbook.read.evidence import Evidence
from benchbook.read.log import merge_logs
from benchbook.read.sysbench_log import parse_log
from tests.read import synthetic

DATA = Path(__file__).parents[1] / "data" / "clients"


def three():
    return [client.log for client in synthetic.three().clients]


def test_counts_are_sums():
    whole = merge_logs(three())
    # Five seconds of 100, 120 and 140 transactions of 14 + 4 + 2 statements.
    assert (whole.final.transactions, whole.final.events) == (1800, 1800)
    assert (whole.final.reads, whole.final.writes, whole.final.other) == (25200, 7200, 3600)
    assert (whole.final.total, whole.final.queries) == (36000, 36000)
    assert whole.checkpoints[0].transactions == 720
    assert (whole.measured_s, whole.header.threads) == (5.0, 6)
    assert (whole.status, whole.problems) == ("complete", ())


def test_latency_is_least_most_and_a_mean_weighted_by_events():
    whole = merge_logs(three()).final
    assert (whole.latency_min_ms, whole.latency_max_ms) == (14.29, 20.0)
    # As printed: (500 x 20.00 + 600 x 16.67 + 700 x 14.29) / 1800 = 30005 / 1800.
    assert whole.latency_avg_ms == pytest.approx(16.669444, abs=1e-6)
    # Threads that did nothing count as well: two each with 0, 300 and 350 events.
    idle, *others = three()
    idle = replace(idle, summaries=[replace(block, thread_events_avg=0.0) for block in idle.summaries])
    assert merge_logs([idle, *others]).final.thread_events_avg == pytest.approx(1300 / 6)


@pytest.mark.parametrize("p, client", [(25, 2), (38, 2), (39, 1), (50, 1), (72, 1), (73, 0), (99, 0)])
def test_percentiles_are_those_of_the_added_histograms(p, client):
    """700, 600 and 500 events in three buckets, the last client's lowest: the 38th percentile is event
    floor(684.5), the 39th event floor(702.5), the 72nd event floor(1296.5), the 73rd event floor(1314.5)."""
    whole = merge_logs(three())
    assert whole.histogram.events == 1800
    expected = histogram.value_of(histogram.bucket_of(synthetic.LATENCIES_MS[client]))
    assert histogram.bucket_percentile(whole.histogram.full(), p) == expected
    assert whole.final.latency_percentile_ms == histogram.value_of(
        histogram.bucket_of(synthetic.LATENCIES_MS[0])
    ), "the run's own percentile, not a mean of three"


def test_seconds_are_added_where_every_client_has_one():
    logs = three()
    whole = merge_logs(logs)
    assert [(one.second, one.threads, one.tps, one.qps) for one in whole.intervals] == [
        (float(second), 6, 360.0, 7200.0) for second in range(1, 8)
    ]
    assert np.isnan(whole.intervals.column("latency_percentile_ms")).all()
    lines = synthetic.output(threads=2, tps=100).splitlines(keepends=True)
    short = parse_log("".join(line for line in lines if not line.startswith("[ 7s ]")))
    assert [one.second for one in merge_logs([short, *logs[1:]]).intervals] == [1, 2, 3, 4, 5, 6]


def test_a_second_that_a_client_has_twice_is_nobodys():
    logs = three()
    lines = synthetic.output(threads=2, tps=100).replace("[ 5s ]", "[ 4s ]")
    assert [one.second for one in merge_logs([parse_log(lines), *logs[1:]]).intervals] == [1, 2, 3, 6, 7]


def test_what_a_client_lacks_the_whole_lacks():
    logs = three()
    cut = parse_log(synthetic.output(threads=2)[:1500])
    whole = merge_logs([logs[0], cut, logs[2]])
    assert (whole.final, whole.histogram, whole.measured_s) == (None, None, None)
    assert whole.status == "truncated"
    assert all(str(problem).find("client 1:") >= 0 for problem in whole.problems) and whole.problems


def test_one_client_is_its_own_log():
    log = three()[0]
    assert merge_logs([log]) is log


def test_real_logs_together_hold_what_they_hold_apart():
    """Three processes that ran at once on three servers, with what a spreadsheet would make of them."""
    texts = [(DATA / f"client-{number}.out").read_text() for number in range(3)]
    logs = [parse_log(text) for text in texts]
    assert [log.status for log in logs] == ["complete"] * 3
    whole = merge_logs(logs)
    assert whole.final.queries == sum(log.final.queries for log in logs) == 59432
    assert whole.final.transactions == 2974
    # 4.0179, 4.0089 and 4.0144 s; their rates are 4963.0, 4918.3 and 4925.8, in all 14807.1 queries a second.
    assert whole.measured_s == pytest.approx(4.0137333, abs=1e-7)
    assert whole.final.queries / whole.measured_s == pytest.approx(14807.1, abs=0.15)
    by_hand: dict[str, int] = {}
    for text in texts:
        for line in text.splitlines():
            value, bar, rest = line.partition("|")
            if bar:
                by_hand[value.strip()] = by_hand.get(value.strip(), 0) + int(rest.split()[-1])
    assert sum(by_hand.values()) == whole.histogram.events == 2974
    wanted, counted = math.floor(2974 * 99 / 100 + 0.5), 0
    for value in sorted(by_hand, key=float):
        counted += by_hand[value]
        if counted >= wanted:
            break
    assert f"{histogram.bucket_percentile(whole.histogram.full(), 99):.3f}" == value == "13.460"
    third = [log.intervals[2].qps for log in logs]
    assert third == [4727.01, 4775.16, 4768.80]
    assert whole.intervals[2].qps == 14270.97


def test_a_server_is_seen_with_its_own_clients():
    run: Evidence = synthetic.three()
    assert [view.total("transactions") for view in run.servers] == [700, 840, 980]
    assert [view.plan_value("threads") for view in run.servers] == [2, 2, 2]
    (alone,) = synthetic.three(servers=1).servers
    assert (alone.total("transactions"), alone.plan_value("threads")) == (2520, 6)
