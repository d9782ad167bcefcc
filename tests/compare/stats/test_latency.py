"""Percentiles: merged, interpolated, and only with enough events."""

import numpy as np
import pandas as pd
import pytest

from benchbook.compare.stats.latency import compute_percentiles, has_enough_events, percentile_ms
from benchbook.core.util import histogram


def _counts(latencies_ms) -> np.ndarray:
    return np.bincount(np.atleast_1d(histogram.bucket_of(latencies_ms)), minlength=histogram.BUCKETS)


def test_interpolation_comes_closer_than_the_grid():
    # Evenly spread from 0.1 to 10 ms the percentiles are 5.05, 9.505 and 9.901; a bucket is 1.8 % wide.
    counts = _counts(np.linspace(0.1, 10, 99_001))
    for percentile, exact in ((50, 5.05), (95, 9.505), (99, 9.901)):
        assert percentile_ms(counts, percentile) == pytest.approx(exact, rel=0.0005)


def test_interpolation_moves_smoothly_inside_one_bucket():
    counts = np.zeros(histogram.BUCKETS, dtype=int)
    counts[512] = 1000
    quarter, half = percentile_ms(counts, 25), percentile_ms(counts, 50)
    assert half == pytest.approx(histogram.value_of(512))
    assert half / quarter == pytest.approx(histogram.RATIO**0.25)


def test_counts_are_merged_before_the_percentile():
    fast = _counts([1] * 9500 + [2] * 500)
    slow = _counts([10] * 900 + [50] * 100)
    merged = histogram.merge_counts(fast, slow)
    # 11000 events: the 10450th is the 450th of the 900 at 10 ms, so it lies in their bucket (10.090 ms);
    # the mean of the two p95 would be 25.6 ms.
    assert histogram.bucket_percentile(merged, 95) == pytest.approx(10.090, abs=1e-3)
    assert percentile_ms(merged, 95) == pytest.approx(10.090, rel=0.0091)


def test_a_percentile_off_the_scale_is_unknown():
    assert percentile_ms(_counts([0.0005] * 100), 50) is None
    assert percentile_ms(_counts([1] * 50 + [2e5] * 50), 99) is None
    assert percentile_ms(np.zeros(histogram.BUCKETS, dtype=int), 99) is None


@pytest.mark.parametrize(
    ("events", "percentile", "is_enough"),
    [(9999, 99, False), (10_000, 99, True), (100_000, 99.9, True), (2000, 95, True)],
)
def test_a_hundred_events_must_lie_beyond(events, percentile, is_enough):
    assert has_enough_events(events, percentile) is is_enough


def _tables(make_runs, events, slower=1.1, threads=(4, 16)):
    runs = make_runs({"haproxy": {level: [1.0, 1.0, 1.0] for level in threads}})
    rng = np.random.default_rng(5)
    parts = []
    for run in runs.itertuples():
        counts = _counts(rng.lognormal(0, 0.5, events) * (slower if run.arm == "haproxy" else 1))
        used = np.flatnonzero(counts)
        parts.append(pd.DataFrame({"run_id": run.run_id, "bucket": used, "count": counts[used]}))
    return runs, pd.concat(parts)


def test_long_runs_have_a_percentile_each(make_runs):
    runs, histograms = _tables(make_runs, 10_000)
    found = compute_percentiles(runs, histograms, "oltp_point_select", [4, 16], 99)
    assert (found.is_pooled, found.reason) == (False, None)
    table = found.table.set_index("run_id")["latency_p99_ms"]
    assert len(table) == len(runs)
    # p99 of exp(N(0, 0.5)) is exp(0.5 · 2.326) = 3.2 ms.
    assert table.iloc[0] == pytest.approx(3.2, rel=0.05)


def test_short_runs_are_pooled_by_block_and_arm_unless_that_misses_a_level(make_runs):
    runs, histograms = _tables(make_runs, 6000)
    found = compute_percentiles(runs, histograms, "oltp_point_select", [4, 16], 99)
    assert (found.is_pooled, len(found.table)) == (True, 6)
    assert found.table["run_id"].str.split().map(len).tolist() == [2] * 6
    lost = (runs["block"] == 2) & (runs["arm"] == "haproxy") & (runs["threads"] == 16)
    found = compute_percentiles(runs[~lost], histograms, "oltp_point_select", [4, 16], 99)
    assert set(found.table.loc[found.table["block"] == 2, "arm"]) == {"direct"}


def test_too_few_events_even_in_a_block_give_no_percentile(make_runs):
    runs, histograms = _tables(make_runs, 500)
    found = compute_percentiles(runs, histograms, "oltp_point_select", [4, 16], 99)
    assert found.table.empty
    assert "measure longer" in found.reason
