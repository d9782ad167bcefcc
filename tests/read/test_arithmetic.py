"""Numbers that were printed together must agree, each by its own rule."""

from __future__ import annotations

import re

import pytest

from benchbook.read.sysbench_log import parse
from tests.read import synthetic

# Part of the reason, what is replaced in a healthy output with a checkpoint, and by what; the last match of
# the pattern is changed, so the totals of the measured window.
CHANGES = {
    "read, write and other": (r"read:( +)7000\n", r"read:\g<1>7001\n"),
    "transactions": (r"transactions:( +)500 ", r"transactions:\g<1>501 "),
    "queries says": (r"queries:( +)10000", r"queries:\g<1>10001"),
    "events, the totals are": (r"avg/stddev\):( +)125\.0000", r"avg/stddev):\g<1>125.2500"),
    "x 40.12 ms is not 20000.0 ms": (r"avg:( +)40\.00", r"avg:\g<1>40.12"),
    "outside min and max": (r"min:( +)40\.00", r"min:\g<1>40.21"),
    "the threads took": (r"avg/stddev\):( +)5\.0000", r"avg/stddev):\g<1>5.1000"),
    "is not 100.0 per second": (r"total time:( +)7\.0000", r"total time:\g<1>8.0000"),
    "the histogram counts": (r"(\*+) 500\n", r"\1 501\n"),
    "the histogram says": (r"99th percentile:( +)39\.65", r"99th percentile:\g<1>40.37"),
    "r/w/o make": (r"1400\.00/400\.00", r"1400.00/401.00"),
    "threads of 4": (r"\[ 3s \] thds: 4", r"[ 3s ] thds: 3"),
    "label 4 s": (r"\[ 5s \]", r"[ 4s ]"),
    "percentile 95, the totals": (r"\(ms,99%\)", r"(ms,95%)"),
    "do not go together": (r"reconn/s: 0\.00\n", "reconn/s: 0.00\n[ 7s ] queue length: 0, concurrency: 0\n"),
}


def changed(pattern: str, by: str) -> str:
    out = synthetic.output()
    match = list(re.finditer(pattern, out))[-1]
    return out[: match.start()] + match.expand(by) + out[match.end() :]


@pytest.mark.parametrize("said, change", CHANGES.items(), ids=CHANGES)
def test_one_changed_number_is_found(said, change):
    log = parse(changed(*change))
    assert log.status == "truncated"
    assert any(said in reason for reason in log.why), log.why


def test_report_lines_must_add_up_to_the_totals():
    # 7 lines of 100 events against 200 + 500; a tenth less in every line after the checkpoint is 50 events.
    out = synthetic.output()
    head, tail = out.split("[ 3s ]")
    log = parse(head + "[ 3s ]" + tail.replace("tps: 100.00", "tps: 80.00"))
    assert log.why == ("line 48: the report lines make 400 events, the total is 500",)


def test_a_lost_bar_is_missed_by_the_count_of_events():
    assert parse(synthetic.output().replace("* 500\n", "* 499\n")).status == "truncated"


def test_a_lost_checkpoint_is_missed():
    out = synthetic.output()
    start, end = out.index("[ 2s ] Checkpoint"), out.index("[ 2s ] thds")
    assert parse(out[:start] + out[end:]).status == "truncated"


def test_no_total_time_no_window():
    out = synthetic.output(discard_s=0)
    log = parse(out.replace("    total time:                          5.0000s\n", ""))
    assert log.measured_s is None
