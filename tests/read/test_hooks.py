"""Reports by sysbench's CSV and JSON hooks."""

from __future__ import annotations

from benchbook.read import hooks
from benchbook.read.sysbench_log import parse
from tests.read import corpus


def test_csv_rows_stand_for_report_lines():
    log = parse(corpus.case("hook_csv").out)
    assert log.status == "complete"
    first = log.intervals[0]
    assert (first.second, first.threads, first.tps, first.qps) == (1, 2, 525.35, 5253.50)
    assert (first.other_per_s, first.latency_percentile_ms, first.is_hook) == (5253.50, 0.08, True)


def test_csv_needs_all_ten_columns():
    assert hooks.csv_interval("1,2,525.35,5253.50,0.00,0.00,5253.50,0.08,0.00,0.00") is not None
    assert hooks.csv_interval("1,2,525.35,5253.50,0.00,0.00,5253.50,0.08,0.00") is None


def test_json_of_a_run_without_totals():
    log = parse(corpus.case("hook_json").out)
    assert [(report.second, report.threads) for report in log.intervals] == [(1, 2), (2, 2), (3, 0)]
    assert (log.intervals[1].tps, log.intervals[1].other_per_s) == (9664024.13, 9664023.13)
    assert log.why == ("line 58: ends after 'started', the last totals are not whole",)


def test_a_killed_run_leaves_its_array_open_but_its_reports():
    out = corpus.case("hook_json").out
    log = parse(out[: out.index("]\n[")])
    assert len(log.intervals) == 2
    assert any("not closed" in reason for reason in log.why)


def test_damaged_json_is_refused():
    log = parse(corpus.case("hook_json").out.replace('"tps": 7762492.90,', '"tps": 77624x2.90,'))
    assert len(log.intervals) == 2
    assert any("can't be read" in reason for reason in log.why)
