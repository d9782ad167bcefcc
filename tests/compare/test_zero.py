"""A zero where something is divided by it: no number, and a reason; never an error, never infinity."""

from __future__ import annotations

import pytest

from benchbook.compare import consistency, contrasts, laws
from benchbook.compare.claims.blocks import Evidence
from benchbook.core.params import Analysis
from tests.compare.test_consistency import cells, failed
from tests.found import runs as runs_of


@pytest.mark.parametrize(
    ("tps", "latency", "says"),
    [
        ("0", "10.00", "The throughput is 0, so there is nothing to hold against it."),
        ("0", "0.00", "The throughput is 0, so there is nothing to hold against it."),
        ("100", "0.00", "The latency is 0, so there is nothing to hold against it."),
    ],
)
def test_littles_law_says_nothing_of_zero(tps, latency, says):
    """The other row obeys it: 4 threads / 100 a second are 40 ms."""
    rows = [("t", "a", 2, "tps", tps), ("t", "a", 2, "latency_avg_ms", latency)]
    rows += [("t", "a", 4, "tps", "100"), ("t", "a", 4, "latency_avg_ms", "40.00")]
    exact = cells(rows, half_unit=0.0)
    found = laws.littles_law(exact, {})
    assert [(one.passed, one.detail) for one in found if one.passed is None] == [(None, says)]
    assert found[-1].passed is True and found[-1].detail.endswith(": 1.")
    assert not failed(found)


def test_a_workload_without_a_statement_is_left_out():
    rows = [("t", "a", 4, "qps", "0"), ("t", "a", 4, "tps", "100"), ("t", "a", 4, "latency_avg_ms", "40.00")]
    assert not failed(laws.statements_per_transaction(cells(rows), {"load": 0.0}))
    assert not failed(laws.littles_law(cells([rows[0], rows[2]]), {"load": 0.0}))


def test_runs_of_ours_that_did_nothing_are_no_error():
    runs = runs_of(
        [
            {"run_id": f"r{block}", "arm": "direct", "workload": "load", "threads": 4, "block": block,
             "rate": 0, "measured_s": 5.0, "qps": 0.0, "tps": 0.0,
             "queries": 0, "transactions": 0, "latency_avg_ms": 0.0}
            for block in (1, 2)
        ]
    )  # fmt: skip
    assert not failed(consistency.of_runs(runs))


@pytest.mark.parametrize(("old", "new"), [("0", "100"), ("100", "0"), ("0", "0")])
def test_a_growth_over_zero_is_no_number(old, new):
    table = cells([("t", "a", 1, "qps", old), ("t", "a", 2, "qps", new), ("t", "a", 2, "growth", "50")])
    found = consistency.growth_base(table, {"growth": ("qps", {"threads": 1})})
    assert [(one.passed, one.detail) for one in found] == [
        (None, f"printed 50 %, from {old} to {new}: no growth over 0."),
        (None, "Nothing to check: no table has the numbers for it."),
    ]


@pytest.mark.parametrize("cores", [0.5, 0.0])
def test_processor_time_for_a_query_of_an_arm_without_queries_refuses_the_contrast(
    make_runs, make_study, no_histograms, cores
):
    """0.5 cores over 0 queries, and 0 over 0, which would else leave out its block alone."""
    runs = make_runs({"haproxy": {4: [1.1, 1.2, 1.3]}}).assign(cpu_proxy_cores=0.5)
    idle = (runs["block"] == 2) & (runs["arm"] == "direct")
    runs.loc[idle, ["qps", "cpu_proxy_cores"]] = [0.0, cores]
    evidence = Evidence(make_study(), runs, Analysis(), histograms=no_histograms)
    ratios = contrasts._ratios(
        evidence, "direct", "haproxy", "oltp_point_select", "cpu_proxy_for_a_query", (4,)
    )
    assert ratios.refusal == (
        "cpu_proxy_for_a_query is inf (block 2, direct, 4 threads), so a ratio cannot be taken"
    )
    assert ratios.n == 0
