"""Reports as they stand in logs and documents: lines of sysbench 0.5 to 1.1, its CSV and JSON hooks."""

from __future__ import annotations

import pytest

from benchbook.read import report_lines, reports
from benchbook.read.sysbench_log import parse, parse_interval_line
from tests.read import corpus

COMMON = (
    "[ 10s ] thds: 64 tps: 1.50 qps: 30.00 (r/w/o: 21.00/6.00/3.00) lat (ms,99%): 7.17 "
    "err/s: 0.25 reconn/s: 0.50"
)


def test_a_common_line_with_blanks_around():
    report = parse_interval_line(f"   {COMMON} \r\n")
    assert (report.second, report.threads, report.tps, report.qps) == (10, 64, 1.5, 30.0)
    assert (report.reads_per_s, report.writes_per_s, report.other_per_s) == (21.0, 6.0, 3.0)
    assert (report.percentile, report.latency_percentile_ms) == (99, 7.17)
    assert (report.errors_per_s, report.reconnects_per_s, report.is_hook) == (0.25, 0.5, False)


def test_the_lua_report_lacks_a_colon():
    report = parse_interval_line(COMMON.replace("err/s:", "err/s"))
    assert (report.errors_per_s, report.is_hook) == (0.25, True)


def test_a_test_without_a_database_counts_events():
    report = parse_interval_line("[ 2s ] thds: 3 eps: 10.01 lat (ms,95%): 101.13")
    assert (report.tps, report.qps, report.latency_percentile_ms) == (10.01, None, 101.13)


def test_version_0_5():
    report = parse_interval_line(
        "[   1s] threads: 16, tps: 1964.53, reads: 27511.03, writes: 7859.13, response time: 9.69ms (95%), "
        "errors: 0.00, reconnects:  0.00"
    )
    assert (report.second, report.threads, report.tps, report.reads_per_s) == (1, 16, 1964.53, 27511.03)
    assert (report.percentile, report.latency_percentile_ms, report.qps) == (95, 9.69, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tps: 1.50",
        COMMON[:-1],
        COMMON + " x",
        COMMON.replace("1.50", "1,50"),
        COMMON + "\n" + COMMON,
        "[ 1s ] queue length: 3, concurrency: 2",
    ],
)
def test_anything_else_is_none(text):
    assert parse_interval_line(text) is None


def test_csv_rows_stand_for_report_lines():
    log = parse(corpus.case("hook_csv").out)
    assert log.status == "complete"
    first = log.intervals[0]
    assert (first.second, first.threads, first.tps, first.qps) == (1, 2, 525.35, 5253.50)
    assert (first.other_per_s, first.latency_percentile_ms, first.is_hook) == (5253.50, 0.08, True)


def test_csv_needs_all_ten_columns():
    assert reports.csv_interval("1,2,525.35,5253.50,0.00,0.00,5253.50,0.08,0.00,0.00") is not None
    assert reports.csv_interval("1,2,525.35,5253.50,0.00,0.00,5253.50,0.08,0.00") is None


def test_json_of_a_run_without_totals():
    log = parse(corpus.case("hook_json").out)
    assert [(report.second, report.threads) for report in log.intervals] == [(1, 2), (2, 2), (3, 0)]
    assert (log.intervals[1].tps, log.intervals[1].other_per_s) == (9664024.13, 9664023.13)
    assert log.why == ("line 58: ends after 'started', the last totals are not whole",)


def test_a_killed_run_leaves_its_array_open_but_its_reports():
    out = corpus.case("hook_json").out
    log = parse(out[: out.index("]\n[")])
    assert len(log.intervals) == 2
    assert any(reason.endswith(": the array of JSON reports is not closed") for reason in log.why)


def test_damaged_json_is_refused():
    log = parse(corpus.case("hook_json").out.replace('"tps": 7762492.90,', '"tps": 77624x2.90,'))
    assert len(log.intervals) == 2
    assert any("can't be read" in reason for reason in log.why)


def test_a_line_of_the_json_hook_is_one_only_inside_its_array():
    assert reports.is_json_line("[", False) and reports.is_json_line("  {", True)
    assert not reports.is_json_line("  {", False)
    assert not reports.is_json_line("Threads started!", True)


def test_a_second_that_is_printed_twice_names_the_line_that_has_it_first():
    _, wrong = report_lines.cells(f"{COMMON}\n{COMMON}\n")
    assert wrong == [(2, COMMON, "second 10 given twice, first on line 1; keep one")]
