"""Report lines read together are the very lines read one by one, and nothing unusual passes as usual."""

from __future__ import annotations

import pytest

from benchbook.read import grammar
from benchbook.read.intervals import Interval, Intervals, columns
from benchbook.read.reports import database_interval
from benchbook.read.sysbench_log import parse
from tests.read import synthetic
from tests.read.corpus import cases

LINE = (
    "[ {s}s ] thds: 4 tps: {tps} qps: 1234567.09 (r/w/o: 0.00/12.34/987654321.10) lat (ms,99%): 0.29 "
    "err/s: 0.00 reconn/s: 0.00\n"
)


def text(*tps: str) -> str:
    return "".join(LINE.format(s=second, tps=value) for second, value in enumerate(tps, 1))


def one_by_one(lines: str, first: int) -> list[Interval]:
    matches = [grammar.INTERVAL.fullmatch(line) for line in lines.splitlines()]
    return [database_interval(first + at, match.groups()) for at, match in enumerate(matches)]


def test_columns_have_the_bits_that_the_text_says():
    lines = text(*(f"{whole}.{part:02d}" for whole in (0, 7, 10, 999999999) for part in range(100)))
    found = Intervals()
    found.add(columns(lines, 14))
    assert list(found) == one_by_one(lines, 14)
    assert [type(value) for value in found[0]] == [type(value) for value in one_by_one(lines, 14)[0]]


@pytest.mark.parametrize("odd", ["-1.00", "inf", "nan", "1.0", "1.000", "1e3", "1234567890.00", "٣.00"])
def test_a_line_that_is_not_like_the_others_is_left_to_the_grammar(odd: str):
    assert columns(text("1.00", "2.00", odd, "4.00"), 1) is None
    assert columns(text(odd, "2.00"), 1) is None


def test_digits_in_the_wrong_place_are_noticed():
    usual = text(*["10.00"] * 9)
    moved = usual.replace("thds: 4 tps: 10.00", "th4ds:  tps: 10.00", 1)
    assert columns(moved, 1) is None
    # The fifth line: a digit has moved across the space.
    lines = usual.splitlines(keepends=True)
    lines[4] = lines[4].replace("tps: 10.00", "tps:1 0.00")
    assert columns("".join(lines), 1) is None


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_recorded_output_says_the_same_both_ways(case, monkeypatch):
    together = parse(case.out)
    monkeypatch.setattr("benchbook.read.sysbench_log._taken", lambda *_: 0)
    apart = parse(case.out)
    assert together.intervals == apart.intervals
    assert (together.status, together.why, together.summaries) == (apart.status, apart.why, apart.summaries)


def test_a_line_that_comes_twice_is_named_by_its_number():
    lines = synthetic.output(run_s=30).splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith("[ 20s ] thds"))
    found = parse("".join([*lines[: at + 1], *lines[at:]]))
    assert f"line {at + 2}: label 20 s where 21 s is due" in found.why


def test_lines_of_both_kinds_stay_in_order():
    plain = one_by_one(text(*["1.00"] * 9), 1)
    found = Intervals()
    found.append(plain[0])
    found.add(columns(text(*["2.00"] * 9), 2))
    found.append(plain[1])
    assert [interval.tps for interval in found] == [1.0] + [2.0] * 9 + [1.0]
    assert found.column("tps").tolist() == [interval.tps for interval in found]
    assert found.plain is None and len(found) == 11
    found.replace_last(plain[1]._replace(queue_length=3))
    assert found[-1].queue_length == found.last.queue_length == 3
    assert found.column("queue_length").tolist()[-1] == 3.0
