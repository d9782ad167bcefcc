"""Sysbench's buckets: wrong ones would shift every latency of every report."""

import numpy as np
import pytest

from benchbook.core.util import histogram


def counts_of(values_ms) -> np.ndarray:
    return np.bincount(np.atleast_1d(histogram.bucket_of(values_ms)), minlength=histogram.BUCKETS)


def test_grid_is_sysbenchs():
    # 1023 steps from 1e-3 to 1e5: exp(ln(1e8) / 1023).
    assert abs(histogram.RATIO - 1.0181696256) < 1e-10
    assert list(histogram.bucket_of([0.01, 0.5, 1, 2, 10, 100, 1000])) == [128, 345, 384, 422, 512, 639, 767]
    assert histogram.value_of(384) == pytest.approx(1.0068, abs=5e-5)
    assert histogram.value_of(512) == pytest.approx(10.0904, abs=5e-5)
    assert histogram.value_of(639) == pytest.approx(99.327, abs=5e-4)
    # What is outside the range is in the first or the last.
    assert list(histogram.bucket_of([0.0005, 0, -1, 200_000])) == [0, 0, 0, 1023]


def test_percentiles_of_a_ramp():
    # 0.1, 0.2 ... 10.0 ms: the exact 50th, 95th and 99th are 5.0, 9.5 and 9.9.
    counts = counts_of(np.arange(1, 101) / 10)
    assert histogram.bucket_percentile(counts, 50) == pytest.approx(4.9995, abs=5e-5)
    assert histogram.bucket_percentile(counts, 95) == pytest.approx(9.5598, abs=5e-5)
    assert histogram.bucket_percentile(counts, 99) == pytest.approx(9.9104, abs=5e-5)
    assert histogram.bucket_percentile(counts, 100) == histogram.value_of(histogram.bucket_of(10.0))


def test_merging_clients_is_not_averaging_them():
    a = counts_of([1.0] * 9500 + [2.0] * 500)
    b = counts_of([10.0] * 900 + [50.0] * 100)
    p95 = [histogram.bucket_percentile(counts, 95) for counts in (a, b)]
    assert p95 == [pytest.approx(1.007, abs=5e-4), pytest.approx(50.107, abs=5e-4)]
    # mean 25.557; weighted by 10000 and 1000 events 5.470; of all 11000 events the 10450th is at 10 ms.
    assert histogram.bucket_percentile(histogram.merge_counts(a, b), 95) == pytest.approx(10.090, abs=5e-4)
    with pytest.raises(ValueError, match="1024"):
        histogram.merge_counts(a, np.zeros(512, dtype=int))


def test_rank_rounds_half_up_like_sysbench():
    # 10 events, 95 %: floor(9.5 + 0.5) = 10, so the slowest event decides.
    assert histogram.bucket_percentile(counts_of([1.0] * 9 + [100.0]), 95) == pytest.approx(99.327, abs=5e-4)
    # 10 events, 94 %: floor(9.4 + 0.5) = 9.
    assert histogram.bucket_percentile(counts_of([1.0] * 9 + [100.0]), 94) == pytest.approx(1.0068, abs=5e-5)


@pytest.mark.parametrize("percentile", [histogram.bucket_percentile, histogram.interpolate_percentile])
def test_no_events_no_percentile_and_none_outside_its_range(percentile):
    assert percentile(np.zeros(1024, dtype=int), 95) is None
    for p in (0, -1, 100.1):
        with pytest.raises(ValueError, match="outside"):
            percentile(counts_of([1.0]), p)


def test_interpolation_stays_inside_the_bucket_and_moves_with_the_rank():
    counts = counts_of([1.0] * 100)
    low, middle, high = (histogram.interpolate_percentile(counts, p) for p in (1, 50, 100))
    half = histogram.RATIO**0.5
    assert middle == pytest.approx(histogram.value_of(384))
    assert middle / half < low < middle < high <= middle * half * (1 + 1e-12)


def test_bucket_values_are_on_the_grid_and_their_average_is_not():
    assert histogram.is_on_grid(round(histogram.value_of(512), 2))
    assert histogram.is_on_grid(9.91)
    assert not histogram.is_on_grid((10.09 + 50.11) / 2)


def test_printed_values_name_their_bucket():
    buckets = histogram.buckets_of_printed(["0.324", "0.330", "19.645"])
    assert [f"{histogram.value_of(bucket):.3f}" for bucket in buckets] == ["0.324", "0.330", "19.645"]


def test_values_that_print_alike_get_neighbouring_buckets():
    buckets = histogram.buckets_of_printed(["0.019", "0.019", "0.020"])
    assert list(np.diff(buckets) > 0) == [True, True]
    assert histogram.value_of(buckets) == pytest.approx([0.019, 0.019, 0.020], abs=0.0005)


@pytest.mark.parametrize("printed", [["1.234"], ["0.330", "0.324"], ["0.330", "0.330"]])
def test_a_damaged_value_column_is_refused(printed):
    with pytest.raises(ValueError):
        histogram.buckets_of_printed(printed)
