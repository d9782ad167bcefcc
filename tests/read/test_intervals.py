"""Report lines read together are the very lines read one by one, and nothing unusual passes as usual."""

import re

import pytest

from benchbook.read import grammar
from benchbook.read.intervals import Intervals, parse_columns, parse_interval_line
from benchbook.read.published_table import interval_numbers
from benchbook.read.sysbench_log import parse_log
from tests.read import synthetic
from tests.read.corpus import cases

LINE = (
    "[ {s}s ] thds: 4 tps: {tps} qps: 1234567.09 (r/w/o: 0.00/12.34/987654321.10) lat (ms,99%): 0.29 "
    "err/s: 0.00 reconn/s: 0.00\n"
)


def test_columns_have_the_bits_that_the_text_says():
    values = (f"{whole}.{part:02d}" for whole in (0, 7, 10, 999999999) for part in range(100))
    lines = "".join(LINE.format(s=second, tps=value) for second, value in enumerate(values, 1))
    assert grammar.REPORTS.fullmatch(lines)
    apart = [parse_interval_line(line, 14 + at) for at, line in enumerate(lines.splitlines())]
    found = Intervals([parse_columns(lines, 14)])
    assert list(found) == apart
    assert [type(value) for value in found[0]] == [type(value) for value in apart[0]]
    both = Intervals([apart[:3], parse_columns(lines, 17), apart[3:5]])
    assert (len(both), both[-1]) == (405, apart[4])
    assert both.column("tps").tolist() == [interval.tps for interval in both]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_recorded_output_says_the_same_both_ways(case, monkeypatch):
    together = parse_log(case.out)
    monkeypatch.setattr(grammar, "REPORTS", re.compile("(?!)"))
    apart = parse_log(case.out)
    assert list(together.intervals) == list(apart.intervals)
    assert (together.status, together.why, together.summaries) == (apart.status, apart.why, apart.summaries)


def test_a_line_that_comes_twice_is_named_by_its_number():
    lines = synthetic.output(run_s=30).splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith("[ 20s ] thds"))
    found = parse_log("".join([*lines[: at + 1], *lines[at:]]))
    # What is said of it is goldens/changed_outputs.txt.
    assert ("intervals", at + 2) in [(problem.concern, problem.line) for problem in found.problems]


@pytest.mark.parametrize("odd", ["-1.00", "inf", "-inf", "nan", "1.0", "1.000", "1e3", "٣.00"])
@pytest.mark.parametrize("key", ["tps", "lat (ms,99%)", "err/s"])
def test_a_number_that_sysbench_cannot_count_is_noticed(key: str, odd: str):
    lines = synthetic.output(run_s=30).splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith("[ 20s ] thds"))
    before, _, after = lines[at].partition(f"{key}: ")
    lines[at] = f"{before}{key}: {odd}{after[after.index(' ') :]}"
    assert parse_log("".join(lines)).status == "truncated"


COMMON = (
    "[ 10s ] thds: 64 tps: 1.50 qps: 30.00 (r/w/o: 21.00/6.00/3.00) lat (ms,99%): 7.17 "
    "err/s: 0.25 reconn/s: 0.50"
)


EARLIER = (
    "[   1s] threads: 16, tps: 1964.53, reads: 27511.03, writes: 7859.13, response time: 9.69ms (95%), "
    "errors: 0.00, reconnects:  0.00"
)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (COMMON, (10, 64, 1.5, 30.0, 21.0, 6.0, 3.0, 99, 7.17, 0.25, 0.5, None, None, False)),
        # The Lua report lacks a colon, a test without a database counts events.
        (COMMON.replace("err/s:", "err/s"),
         (10, 64, 1.5, 30.0, 21.0, 6.0, 3.0, 99, 7.17, 0.25, 0.5, None, None, True)),
        ("[ 2s ] thds: 3 eps: 10.01 lat (ms,95%): 101.13",
         (2, 3, 10.01, None, None, None, None, 95, 101.13, None, None, None, None, False)),
        (EARLIER, (1, 16, 1964.53, None, 27511.03, 7859.13, None, 95, 9.69, 0.0, 0.0, None, None, False)),
    ],
)  # fmt: skip
def test_each_form_of_a_report_line_is_read(line, read):
    assert parse_interval_line(line) == (1, *read)


def test_anything_else_is_none():
    others = ("", "tps: 1.50", COMMON[:-1], COMMON + " x", f" {COMMON}", COMMON.replace("1.50", "1,50"),
              f"{COMMON}\n{COMMON}", "[ 1s ] queue length: 3, concurrency: 2")  # fmt: skip
    assert [text for text in others if parse_interval_line(text) is not None] == []


def test_blanks_around_a_published_line_are_none_of_it():
    assert interval_numbers(f"   {COMMON} \r\n", "t", {}) == interval_numbers(COMMON, "t", {})
