"""Where printed throughput collapses, and whether the scalability law is fitted or refused, by hand."""

from __future__ import annotations

import math

import pytest

from benchbook.compare import laws, scaling
from tests.compare.test_consistency import cells


def rows(qps: dict[int, float], **beside: dict[int, float]) -> list[tuple]:
    """Return rows of QPS by threads, with further metrics in the same rows."""
    found = [("t", "a", threads, "qps", f"{value:g}") for threads, value in qps.items()]
    return found + [
        ("t", "a", threads, metric, f"{value:g}")
        for metric, by in beside.items()
        for threads, value in by.items()
    ]


def test_a_third_less_with_busier_processors_is_a_collapse():
    """900 to 500 is -44.4 %, and CPU goes from 380 to 395."""
    table = cells(rows({8: 600, 16: 900, 32: 500}, cpu_tidb_pct={8: 200, 16: 380, 32: 395}))
    (found,) = [one for one in scaling.collapses(table) if one.passed is False]
    assert found.detail == (
        "From 16 to 32 threads QPS falls from 900 to 500 (\N{MINUS SIGN}44.4 %); "
        "tidb uses more CPU (380 to 395)."
    )
    assert (found.tables, found.row) == (["t"], 32)


@pytest.mark.parametrize(
    ("qps", "cpu"),
    [
        # 900 to 610 is less than a third; where processors do less as well, something else is missing.
        ({16: 900, 32: 610}, {16: 380, 32: 395}),
        ({16: 900, 32: 500}, {16: 380, 32: 200}),
        ({16: 500, 32: 900}, {16: 380, 32: 395}),
        # A third is not more than a third, as much work is not more of it, and nothing can't become less.
        ({16: 900, 32: 600}, {16: 380, 32: 395}),
        ({16: 900, 32: 500}, {16: 380, 32: 380}),
        ({16: 0, 32: 500}, {16: 380, 32: 395}),
    ],
)
def test_other_changes_are_none(qps, cpu):
    found = scaling.collapses(cells(rows(qps, cpu_tidb_pct=cpu)))
    assert [one.passed for one in found] == [True]


def test_of_several_processors_those_that_work_more_are_named():
    table = cells(rows({16: 900, 32: 500}, cpu_proxy_pct={16: 90, 32: 120}, cpu_tikv_pct={16: 300, 32: 200}))
    (found,) = [one for one in scaling.collapses(table) if one.passed is False]
    assert found.detail.endswith("; proxy uses more CPU (90 to 120).")


def test_a_series_that_collapses_twice_is_one_of_those_that_do():
    """Two series: one falls by 44.4 and by 60 %, the other is all that is left."""
    twice = rows({8: 900, 16: 500, 32: 200})
    calm = [("t", "b", threads, metric, text) for _, _, threads, metric, text in rows({8: 100, 16: 90})]
    found = scaling.collapses(cells([*twice, *calm]))
    assert [(one.passed, one.row) for one in found] == [(False, 16), (False, 32), (True, None)]
    assert (found[-1].where, found[-1].detail) == ("everywhere else", "Series that do not: 1.")


@pytest.mark.parametrize("beside", [{}, {"cpu_tidb_pct": {16: math.nan, 32: math.nan}}])
def test_without_processor_time_that_is_said(beside):
    table = cells(rows({16: 900, 32: 500}, **beside))
    (found,) = [one for one in scaling.collapses(table) if one.passed is False]
    assert found.detail.endswith("no processor time is printed beside it.")


def test_the_scalability_law_is_fitted_where_it_can_be():
    """X(N) = 1000 N / (1 + 0.02 (N - 1) + 0.001 N (N - 1)): its peak is sqrt(0.98 / 0.001) = 31.3 threads."""
    qps = {n: 1000 * n / (1 + 0.02 * (n - 1) + 0.001 * n * (n - 1)) for n in (1, 2, 4, 8, 16, 32, 64)}
    (found,) = scaling.scalability(cells(rows(qps)))
    assert found.passed is True
    assert "One thread 1000 QPS, contention 0.02, coherency 0.001, highest at 31 threads" in found.detail
    assert found.detail.endswith("; it misses a printed number by 0.0 % at most.")
    jumps = {**qps, 8: qps[8] / 2}
    (off,) = scaling.scalability(cells(rows(jumps)))
    assert off.passed is False


def test_six_levels_are_enough_for_the_law():
    """Its peak is sqrt(0.95 / 0.005) = 13.8 threads."""
    qps = {n: 1000 * n / (1 + 0.05 * (n - 1) + 0.005 * n * (n - 1)) for n in (1, 2, 4, 8, 16, 32)}
    (found,) = scaling.scalability(cells(rows(qps)))
    assert found.passed is True and "contention 0.05, coherency 0.005, highest at 14 threads" in found.detail


def test_series_are_refused_together_and_what_is_none_is_not_counted():
    two = rows({8: 600, 16: 900}) + [("t", "b", threads, "qps", "10") for threads in (8, 16)]
    (found,) = scaling.scalability(cells(two))
    assert (found.passed, found.where) == (None, "2 series")
    assert "Refused for t, arm a, workload load, QPS; t, arm b, workload load, QPS: the law" in found.detail
    # One level alone is no series, and neither is a level that stands there twice.
    for none in ({8: 600}, {}):
        (nothing,) = scaling.scalability(cells(rows(none)))
        assert (nothing.passed, nothing.where) == (None, "nowhere")
    (nothing,) = scaling.scalability(cells(rows({8: 600, 16: 900}) + rows({8: 700})))
    assert nothing.where == "nowhere"


@pytest.mark.parametrize(
    ("qps", "reason"),
    [
        ({8: 600, 16: 900, 32: 500}, "needs 6 thread levels that begin with 1"),
        ({2: 10, 4: 20, 8: 30, 16: 40, 32: 50, 64: 20}, "needs 6 thread levels that begin with 1"),
        ({1: 10, 2: 20, 4: 30, 8: 40, 16: 20}, "needs 6 thread levels that begin with 1"),
        ({n: 10 * n for n in (1, 2, 4, 8, 16, 32)}, "no point past the knee"),
        ({1: 10, 2: 20, 4: 0, 8: 30, 16: 40, 32: 20}, "a throughput is 0"),
    ],
)
def test_or_it_is_refused_aloud(qps, reason):
    (found,) = scaling.scalability(cells(rows(qps)))
    assert found.passed is None
    assert found.detail.startswith("Refused for t, arm a, workload load, QPS:") and reason in found.detail


def test_a_percentile_bounds_the_mean_where_none_is_printed():
    """8 threads at 4000 QPS have a mean of 2 ms; a p95 of 50 ms alone asks for 0.05 x 50 = 2.5 ms."""
    found = laws.littles_law(cells(rows({8: 4000}, latency_p95_ms={8: 50.0})), {"load": 1.0})
    (failed,) = found
    assert failed.passed is False and failed.row == 8
    assert "a mean of 2.00 ms. As 5% take the printed 50 ms" in failed.detail
    assert "2.50 ms at least" in failed.detail
    (fits,) = laws.littles_law(cells(rows({8: 4000}, latency_p95_ms={8: 39.0})), {"load": 1.0})
    assert fits.passed is True and "leaves room" in fits.detail
    # A printed mean is held against the law itself, and its percentile no more.
    both = cells(rows({8: 4000}, latency_p95_ms={8: 50.0}, latency_avg_ms={8: 2.0}))
    assert [one.passed for one in laws.littles_law(both, {"load": 1.0})] == [True]
