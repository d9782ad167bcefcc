"""Each check finds the fault it is for, in the published tables and in made-up ones, and nothing else."""

import re

import pytest

from benchbook.compare.bottlenecks import operational_laws
from benchbook.compare.claims import consistency
from benchbook.compare.claims.study_cells import StudyEvidence
from benchbook.compare.inference import contrasts
from benchbook.core.artifacts.findings import CellCheck
from benchbook.core.published.source import Number, Published
from benchbook.core.study.params import Analysis
from benchbook.core.util import histogram
from tests import sources as shared
from tests.found import runs as runs_of


@pytest.fixture(scope="module")
def sources() -> dict[str, Published]:
    return shared.every()


def cells(rows: list[tuple], half_unit: float | None = None, **more: object) -> list[Number]:
    """Numbers from (table, arm, threads, metric, printed)."""
    made = []
    for table, arm, threads, metric, text in rows:
        half = 0.5 * 10.0 ** -len(text.partition(".")[2]) if half_unit is None else half_unit
        at = {"arm": arm, "workload": "load", "threads": threads, **more}
        value = float(text or "nan")
        made.append(Number(table, threads, metric, metric, value, text, half, "", "metric", at))
    return made


def failed(found: list[dict]) -> list[dict]:
    return [one for one in found if one.passed is False]


def test_littles_law_on_the_basic_proxy_tables(sources: dict[str, Published]):
    """200 threads x 20 / 120163 = 33.288 ms beside a printed 31.28: 1.0642. The other 23 cells agree."""
    source = sources["tiproxy-haproxy"]
    loads = re.compile("point-select|read-only|write-only|read-write")
    basic = [one for one in source.numbers if loads.search(one.table)]
    found = operational_laws.littles_law(
        basic, {name: load.statements for name, load in source.source.workloads.items()}
    )
    assert [one.where for one in failed(found)] == [
        "haproxy-read-write, arm haproxy, workload oltp_read_write, threads 200"
    ]
    assert "ratio 1.0642" in found[0].detail
    assert found[-1].detail.endswith(": 23.")


def test_littles_law_allows_for_rounding():
    """100 / 2700 = 37.04 ms; printed 37.6 is 1.5 % off, but 2700 may be 2650 to 2750: 36.4 to 37.7 ms."""
    rows = [("t", "a", 100, "qps", "2700"), ("t", "a", 100, "latency_avg_ms", "37.6")]
    exact = cells(rows)
    assert failed(operational_laws.littles_law(exact, {"load": 1}))
    exact[0] = exact[0]._replace(half_unit=50.0)
    assert not failed(operational_laws.littles_law(exact, {"load": 1}))


def test_every_published_percentile_but_one_is_on_sysbench_s_grid(sources: dict[str, Published]):
    """48 distinct Kubernetes cells and 24 of the proxies' basic tables are among them."""
    off = [
        one for source in sources.values() for one in failed(operational_laws.percentile_grid(source.numbers))
    ]
    assert [one.where.split(",")[0] for one in off] == ["read-only"]
    assert "63.20" in off[0].detail


def test_an_average_of_two_grid_values_is_off_the_grid():
    values = [histogram.value_of(bucket) for bucket in (700, 710)]
    assert not failed(
        operational_laws.percentile_grid(cells([("t", "a", 1, "latency_p95_ms", f"{values[0]:.2f}")]))
    )
    average = f"{sum(values) / 2:.2f}"
    assert failed(operational_laws.percentile_grid(cells([("t", "a", 1, "latency_p95_ms", average)])))


def test_cells_on_the_grid_are_counted_and_the_coarse_ones_apart():
    """9.91 and 10.09 ms are on the grid, 10.00 is between them, and 12 ms may be 11.5 to 12.5."""
    texts, grid = ("9.91", "10.09", "12"), "Percentiles on sysbench's grid"
    rows = [("t", "a", threads, "latency_p95_ms", text) for threads, text in enumerate(texts)]
    (one,) = operational_laws.percentile_grid(cells(rows[:2]))
    assert (one.passed, one.where, one.detail) == (True, "everywhere", f"{grid}: 2.")
    found = operational_laws.percentile_grid(cells([*rows, ("t", "a", 9, "latency_p95_ms", "10.00")]))
    assert [(one.passed, one.where, one.detail) for one in found] == [
        (False, "t, arm a, workload load, threads 9",
         "10.00 (latency_p95_ms) is not a value of sysbench's histogram; the nearest is 10.09 ms. "
         "An average of several percentiles looks like this."),
        (True, "everywhere else", f"{grid} (1 too coarsely rounded to tell): 2."),
    ]  # fmt: skip
    assert (
        operational_laws.percentile_grid(cells([("t", "a", 9, "latency_p95_ms", "0.00")]))[0].passed is None
    )


def test_each_law_says_what_it_found_and_how_many_cells_agree():
    rows = [
        ("t", "a", threads, metric, text)
        for threads, qps in ((4, "2000"), (8, "1000"))
        for metric, text in (("tps", "100"), ("latency_avg_ms", "40.00"), ("qps", qps))
    ]
    place = "t, arm a, workload load, threads 8"
    found = operational_laws.littles_law(cells(rows), {})
    # 8 threads / 100 a second are 80 ms, twice the 40 that were printed: half of what that latency gives.
    assert [one.plain for one in found] == [
        {"check": "Little's law", "passed": False, "where": place, "tables": ["t"], "row": 8,
         "detail": "8 threads / 100 TPS = 80.00 ms, printed 40.00 ms: ratio 2.0000, throughput −50.0 % "
         "against what that latency gives. Both printed numbers together imply 4 threads."},
        {"check": "Little's law", "passed": True, "where": "everywhere else", "tables": [],
         "detail": "Cells that agree within 1 % or their rounding: 1."},
    ]  # fmt: skip
    found = operational_laws.statements_per_transaction(cells(rows), {"load": 20})
    assert [one.plain for one in found] == [
        {"check": "statements per transaction", "passed": False, "where": place, "tables": ["t"],
         "detail": "1000 / 100 = 10.000 statements, the script sends 20."},
        {"check": "statements per transaction", "passed": True, "where": "everywhere else", "tables": [],
         "detail": "Cells that agree within 1 %: 1."},
    ]  # fmt: skip


def test_latencies_out_of_order_are_written_out():
    def of(least: str, mean: str, most: str, p99: str) -> list[CellCheck]:
        parts = {"min": least, "avg": mean, "max": most, "p99": p99}
        rows = [("t", "a", 4, f"latency_{one}_ms", text) for one, text in parts.items()]
        return operational_laws.latency_order(cells(rows))

    # A percentile may be above the maximum by the width of its bucket, 1.8 %, and no more.
    assert of("1", "2", "100", "101.8")[0].passed is True
    assert [one.plain for one in of("1", "2", "100", "101.9")] == [
        {"check": "order of latencies", "passed": False, "where": "t, arm a, workload load, threads 4",
         "tables": ["t"],
         "detail": "latency_min_ms 1, latency_avg_ms 2, latency_max_ms 100, latency_p99_ms 101.9."}
    ]  # fmt: skip
    assert of("3", "2", "100", "50")[0].passed is False
    assert of("1", "2", "2", "2")[0].detail == "Rows in order: 1."
    # Runs that take turns have neither maximum nor percentiles.
    assert of("3", "2", "nan", "nan")[0].detail == "latency_min_ms 3, latency_avg_ms 2."
    assert of("1", "2", "nan", "nan")[0].detail == "Rows in order: 1."


def test_a_percentile_in_whole_milliseconds_proves_nothing():
    found = operational_laws.percentile_grid(cells([("t", "a", 1, "latency_p99_ms", "12")]))
    assert not failed(found) and "too coarsely rounded" in found[0].detail


def test_statements_per_transaction():
    rows = [("t", "a", 1, "qps", "1600"), ("t", "a", 1, "tps", "100")]
    assert not failed(operational_laws.statements_per_transaction(cells(rows), {"load": 16}))
    assert failed(operational_laws.statements_per_transaction(cells(rows), {"load": 20}))


def test_the_load_balancer_table_is_the_cos_table(sources: dict[str, Published]):
    found = {one.where: one for one in consistency.of_source(sources["tidb-kubernetes"])}
    same = found["cos and load-balancer"]
    assert same.passed is False and "12 of 12 numbers are equal" in same.detail
    assert "os (cos, ubuntu)" in same.detail


def test_one_measurement_may_be_printed_twice(sources: dict[str, Published]):
    found = {one.where: one for one in consistency.of_source(sources["tidb-kubernetes"])}
    assert found["host-network and cos"].passed is True


ROWS = [("one", "a", n, "qps", f"{100 + n}.5") for n in range(1, 7)]


def test_a_copied_table_with_one_digit_changed_is_still_found():
    copy = [("two", "b", n, metric, text) for _, _, n, metric, text in ROWS]
    copy[2] = ("two", "b", 3, "qps", "999.5")
    found = failed(consistency.equal_tables(cells(ROWS + copy), {"a": {"cpu": 1}, "b": {"cpu": 2}}))
    assert found[0].detail.startswith("5 of 6 numbers are equal") and "cpu (1, 2)" in found[0].detail


def test_a_copied_arm_inside_one_table_is_found():
    copy = [("one", "b", n, metric, text) for _, _, n, metric, text in ROWS]
    found = failed(consistency.equal_tables(cells(ROWS + copy), {}))
    assert found[0].where == "one (a) and one (b)" and "arm (a, b)" in found[0].detail


def test_one_setting_printed_twice_with_a_different_number_is_a_fault():
    copy = [("two", *rest) for _, *rest in ROWS]
    copy[0] = ("two", "a", 1, "qps", "7.5")
    settings = {"a": {"cpu": 1}}
    assert failed(consistency.equal_tables(cells(ROWS + copy), settings))
    assert "101.5 in one and 7.5 in two" in failed(consistency.repeated_cells(cells(ROWS + copy)))[0].detail


def test_growth_is_recomputed_against_both_bases(sources: dict[str, Published]):
    source = sources["tidb-upgrade"]
    found = failed(consistency.growth_base(source.numbers, {"qps_growth_pct": ("qps", {"arm": "2.1.8"})}))
    assert len(found) == 3
    assert all(one.detail.endswith("The printed growth was divided by the new value.") for one in found)
    assert "23300 / 8210 − 1 = +183.80 %, (23300 − 8210) / 23300 = +64.76 %" in found[0].detail


def growth(percent: str) -> list[dict]:
    """150 over 100: 50 % of the old value, 33.3 % of the new."""
    rows = [("t", "old", 1, "qps", "100"), ("t", "new", 1, "qps", "150"), ("t", "new", 1, "growth", percent)]
    return consistency.growth_base(cells(rows), {"growth": ("qps", {"arm": "old"})})


@pytest.mark.parametrize(
    ("percent", "said"), [("33", "by the new value"), ("33.3", "by the new value"), ("40", "neither")]
)
def test_a_growth_over_the_wrong_base(percent: str, said: str):
    assert said in failed(growth(percent))[0].detail


def test_a_growth_over_the_old_value_passes():
    assert not failed(growth("50"))


def test_threads_that_fall_are_told():
    assert not failed(consistency.rising_threads(cells(ROWS)))
    assert failed(consistency.rising_threads(cells(ROWS[::-1])))


def test_blanks_gaps_and_announced_threads_are_missing():
    rows = [*ROWS, *(("two", "b", n, "qps", "7.5") for n in (1, 2, 3, 4, 5)), ("two", "b", 7, "qps", "")]
    found = consistency.missing_cells(cells(rows), [("a", "b")], {"load": (1, 64)})
    assert [one.detail for one in found] == [
        "qps is blank.",
        "No numbers at 6 threads, where a has them.",
        "No numbers at 64 threads, which the document says were run.",
    ]


def test_latencies_out_of_order_are_told():
    rows = [
        ("t", "a", 1, f"latency_{part}_ms", text)
        for part, text in (("min", "2.0"), ("avg", "1.0"), ("max", "9.0"))
    ]
    assert failed(operational_laws.latency_order(cells(rows)))


def test_our_own_runs_pass_through_the_same_checks():
    """Three runs of one cell; the last has a mean latency that 8 threads cannot have: 8 / 1000 s = 8 ms."""
    line = {
        "run_id": "r1", "arm": "direct", "workload": "load", "threads": 8, "block": 1,
        "qps": 1000.0, "tps": 1000.0,
        "measured_s": 10.0, "queries": 10000, "transactions": 10000, "latency_avg_ms": 8.0,
        "latency_p95_ms": histogram.value_of(600),
    }  # fmt: skip
    runs = runs_of(
        [line, line | {"run_id": "r2", "block": 2}, line | {"run_id": "r3", "latency_avg_ms": 9.0}]
    )
    found = failed(consistency.of_runs(runs))
    assert [one.check for one in found] == ["Little's law"]
    assert "8 threads / 1000 TPS = 8.00 ms, printed 9 ms" in found[0].detail


def test_a_window_that_cuts_through_long_transactions_may_move_their_mean():
    """16 threads / 258.67 TPS = 61.85 ms, printed 63.5 ms, is 2.6 % off. Of 3 s, 63.5 ms are 2 %, which
    explains it with the 1 % that is allowed; of 30 s they are 0.2 %, which does not."""
    line = {
        "run_id": "r1", "arm": "direct", "workload": "load", "threads": 16, "block": 1,
        "measured_s": 3.0, "qps": 258.67, "tps": 258.67,
        "queries": 776, "transactions": 776, "latency_avg_ms": 63.5,
    }  # fmt: skip
    assert not failed(consistency.of_runs(runs_of([line])))
    assert failed(consistency.of_runs(runs_of([line | {"measured_s": 30.0}])))


def test_a_window_that_cuts_through_a_stall_of_all_threads_may_move_their_mean():
    """32 threads / 5,070.86 TPS = 6.311 ms, printed 6.4, is 1.4 % off: a quota of 10 ms in 100 stops all
    threads at once for up to 86 ms, 1.7 % of 5 s, and 6.4 ms are only 0.1 %. Were only one transaction in a
    hundred slower than 10 ms, nothing would explain it."""
    line = {
        "run_id": "r1", "arm": "direct", "workload": "load", "threads": 32, "block": 1, "measured_s": 5.0,
        "qps": 5070.86, "tps": 5070.86, "queries": 25354, "transactions": 25354, "latency_avg_ms": 6.4,
        "latency_p99_ms": 86.0,
    }  # fmt: skip
    assert not failed(operational_laws.littles_law(consistency.from_runs(runs_of([line])), {}))
    quick = runs_of([line | {"latency_p99_ms": 10.0}])
    assert failed(operational_laws.littles_law(consistency.from_runs(quick), {}))


def test_numbers_that_agree_and_levels_that_lack_are_counted_and_listed():
    """Six numbers, of which five are printed twice alike; at 5 and 6 threads the other arm has none."""
    copy = [("two", *rest) for _, *rest in ROWS]
    copy[0] = ("two", "a", 1, "qps", "7.5")
    assert consistency.repeated_cells(cells(ROWS + copy))[-1].detail == "Numbers printed twice that agree: 5."
    few = [("two", "b", n, "qps", "7.5") for n in (1, 2, 3, 4)]
    (lack,) = consistency.missing_cells(cells([*ROWS, *few]), [("a", "b")], {})
    assert lack.detail == "No numbers at 5, 6 threads, where a has them."


def test_a_window_that_cuts_through_transactions_may_move_their_statements():
    """32 threads end what they had begun before a window of 3 s: half of 20 statements each were sent before
    it, 320 of 6,720 in 336 transactions, 19.05 each. 32 of 336 transactions may have been cut; of 3,360 in
    30 s they are 1 %, and 5 % is too much."""
    line = {
        "run_id": "r1", "arm": "direct", "workload": "load", "threads": 32, "block": 1, "measured_s": 3.0,
        "qps": 2133.3, "tps": 112.0, "queries": 6400, "transactions": 336,
    }  # fmt: skip
    many = line | {"run_id": "r2", "threads": 1, "qps": 2240.0, "queries": 672000, "transactions": 33600}
    found = consistency.of_runs(runs_of([line, many]))
    assert not failed(found)
    (told,) = (one for one in found if one.check == "statements per transaction")
    assert told.detail == "Cells that agree within 1 % or what their windows cut through: 2."
    (wrong,) = failed(consistency.of_runs(runs_of([line | {"measured_s": 30.0}, many])))
    assert wrong.check == "statements per transaction" and "= 19.047 statements" in wrong.detail


def test_what_a_window_cuts_through_tells_no_cells_apart():
    """Two arms of other speeds in the same blocks are compared with each other, cell by cell."""
    runs = [
        {
            "run_id": f"{arm}{block}", "arm": arm, "workload": "load", "threads": 8, "block": block,
            "measured_s": 10.0, "qps": speed + block, "tps": speed + block,
            "queries": 10 * (speed + block), "transactions": 10 * (speed + block),
        }
        for arm, speed in (("direct", 1000.0), ("haproxy", 900.0))
        for block in range(20)
    ]  # fmt: skip
    (told,) = (one for one in consistency.of_runs(runs_of(runs)) if one.check == "equal tables")
    assert (told.passed, told.detail[-2:]) == (True, "1.")


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
    found = operational_laws.littles_law(exact, {})
    assert [(one.passed, one.detail) for one in found if one.passed is None] == [(None, says)]
    assert found[-1].passed is True and found[-1].detail.endswith(": 1.")
    assert not failed(found)


def test_a_workload_without_a_statement_is_left_out():
    rows = [("t", "a", 4, "qps", "0"), ("t", "a", 4, "tps", "100"), ("t", "a", 4, "latency_avg_ms", "40.00")]
    assert not failed(operational_laws.statements_per_transaction(cells(rows), {"load": 0.0}))
    assert not failed(operational_laws.littles_law(cells([rows[0], rows[2]]), {"load": 0.0}))


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
    evidence = StudyEvidence(make_study(), runs, Analysis(), histograms=no_histograms)
    ratios = contrasts._block_ratios(
        evidence, "direct", "haproxy", "oltp_point_select", "cpu_proxy_for_a_query", (4,)
    )
    assert ratios.refusal == (
        "cpu_proxy_for_a_query is inf (block 2, direct, 4 threads), so a ratio cannot be taken"
    )
    assert ratios.n == 0
