"""Numbers that were printed together must agree, each by its own rule."""

import re

import numpy as np
import pytest

from benchbook.core.util import histogram
from benchbook.read import log_consistency
from benchbook.read.sysbench_log import parse_log
from tests.read import synthetic

# Part of the reason, what is replaced in a healthy output with a checkpoint, and by what; the last match of
# the pattern is changed, so the totals of the measured window.
CHANGES = {
    "read, write and other": (r"read:( +)7000\n", r"read:\g<1>7001\n"),
    "transactions": (r"transactions:( +)500 ", r"transactions:\g<1>501 "),
    "queries says": (r"queries:( +)10000", r"queries:\g<1>10001"),
    "events, the totals are": (r"avg/stddev\):( +)125\.0000", r"avg/stddev):\g<1>125.2500"),
    "x 40.01 ms is not 20000.0 ms": (r"avg:( +)40\.00", r"avg:\g<1>40.01"),
    "outside min and max": (r"min:( +)40\.00", r"min:\g<1>40.02"),
    "latency is outside min": (r"max:( +)40\.00", r"max:\g<1>39.98"),
    "the threads took": (r"avg/stddev\):( +)5\.0000", r"avg/stddev):\g<1>5.0001"),
    "is not 100.0 per second": (r"total time:( +)7\.0000", r"total time:\g<1>7.5100"),
    "the histogram counts 501": (r"(\*+) 500\n", r"\1 501\n"),
    "the histogram counts 499": (r"(\*+) 500\n", r"\1 499\n"),
    "the histogram says": (r"99th percentile:( +)39\.65", r"99th percentile:\g<1>39.66"),
    "r/w/o make": (r"1400\.00/400\.00", r"1400.00/400.03"),
    "threads of 4": (r"\[ 3s \] thds: 4", r"[ 3s ] thds: 3"),
    "label 4 s": (r"\[ 5s \]", r"[ 4s ]"),
    "percentile 95, the totals": (r"\(ms,99%\)", r"(ms,95%)"),
    "do not go together": (r"reconn/s: 0\.00\n", "reconn/s: 0.00\n[ 7s ] queue length: 0, concurrency: 0\n"),
}


# What no program that counts can print, though its sums may still add up.
CHANGES |= {
    "reconnects is -1": (r"reconnects:( +)0 ", r"reconnects:\g<1>-1 "),
    "ignored_errors_per_s is -0.01": (r"(ignored errors: +0 +)\(0\.00", r"\1(-0.01"),
    "errors_per_s is -1.0": (r"err/s: 0\.00", "err/s: -1.00"),
    # Four decimals: of four threads 0.0002 events may be rounded away, and not twice as many.
    "125.0001 events a thread make no count": (r"125\.0000/0\.00", "125.0001/0.00"),
    "4 threads with a mean of 125.0 can't deviate by 250.02": (r"125\.0000/0\.00", "125.0000/250.02"),
    "4 threads with a mean of 5.0 can't deviate by 10.02": (r"5\.0000/0\.00", "5.0000/10.02"),
    "a percentile of 0": (r"99th percentile: ", "0th percentile:  "),
}


def changed(pattern: str, by: str) -> str:
    out = synthetic.output()
    match = list(re.finditer(pattern, out))[-1]
    return out[: match.start()] + match.expand(by) + out[match.end() :]


@pytest.mark.parametrize("said, change", CHANGES.items(), ids=CHANGES)
def test_one_changed_number_is_found(said, change):
    log = parse_log(changed(*change))
    assert log.status == "truncated"
    assert any(said in reason for reason in log.why), log.why


# The largest changes that rounding, and half a second on a busy machine, explain.
@pytest.mark.parametrize(
    "change",
    [
        (r"min:( +)40\.00", r"min:\g<1>40.01"),
        (r"max:( +)40\.00", r"max:\g<1>39.99"),
        (r"total time:( +)7\.0000", r"total time:\g<1>7.4900"),
        (r"1400\.00/400\.00", r"1400.00/400.02"),
        (r"125\.0000/0\.00", "125.0000/250.01"),
        (r"5\.0000/0\.00", "5.0000/10.01"),
    ],
)
def test_what_rounding_makes_of_a_number_agrees(change):
    assert parse_log(changed(*change)).why == ()


def test_a_percentile_above_the_maximum_is_found_without_a_histogram_too():
    out = synthetic.output()
    head, _, tail = out.partition("Latency histogram")
    without = head + tail[tail.index("SQL statistics") :]
    assert parse_log(without).why == ()
    match = list(re.finditer(r"99th percentile:( +)39\.65", without))[-1]
    # The longest took 40 ms; 500 events have five above their 99th percentile, and threads are only four.
    log = parse_log(
        without[: match.start()] + match.expand(r"99th percentile:\g<1>80.03") + without[match.end() :]
    )
    assert log.status == "complete", (
        "after a checkpoint half a second of events may be in the histogram alone"
    )
    once = synthetic.output(discard_s=0)
    whole = once.partition("Latency histogram")[0] + once[once.index("SQL statistics") :]
    assert parse_log(whole).why == ()
    assert whole.count("39.65") == 1
    (said,) = parse_log(whole.replace("39.65", "80.03")).why
    assert "99th percentile 80.03 ms, max is 40.0" in said


def test_a_maximum_far_beyond_the_histogram_is_found_where_latencies_are_beyond_its_range():
    log = parse_log(changed(r"max:( +)40\.00", r"max:\g<1>400000.00"))
    assert any("the histogram ends at 39.650 ms, max is 400000.0 ms" in reason for reason in log.why), log.why


@pytest.mark.parametrize("digits", ["\u0661\u0660\u0660", "\uff11\uff10\uff10"])
@pytest.mark.parametrize("line", [r"tps: 100", r"transactions: +500", r"max: +40"])
def test_digits_of_other_scripts_are_no_numbers_of_sysbench(line, digits):
    log = parse_log(changed(rf"({line[: line.rindex(' ')]}.*? )\d+", rf"\g<1>{digits}"))
    assert log.status == "truncated"
    assert any("no line of sysbench" in reason for reason in log.why), log.why


def test_report_lines_that_are_all_negative_are_found():
    log = parse_log(synthetic.output().replace("tps: 100.00", "tps: -100.00"))
    assert any("tps is -100.0" in reason for reason in log.why), log.why


@pytest.mark.parametrize(
    "change", [(r"reconnects:( +)0 ", r"reconnects:\g<1>-0 "), (r"err/s: 0", "err/s: -0")]
)
def test_a_zero_below_zero_is_no_number_of_sysbench(change):
    log = parse_log(changed(*change))
    assert log.status == "truncated"
    assert any("no line of sysbench" in reason for reason in log.why), log.why


def test_few_long_transactions_that_threads_do_not_share_evenly_agree():
    # 5 of 3 s each: 1.6667 a thread make 5.0001 events, which are 0.3 ms too much.
    assert parse_log(synthetic.output(threads=3, tps=1)).why == ()


@pytest.mark.parametrize("tps, sum_of_lines", [("94.90", 474), ("95.00", 0), ("105.30", 0), ("105.40", 527)])
def test_report_lines_must_add_up_to_the_totals(tps, sum_of_lines):
    # Five lines against 500: 2 % of it, 0.15 of a line and one may be missing, which are 25.2 to 26.8.
    out = synthetic.output()
    head, tail = out.split("[ 3s ]")
    log = parse_log(head + "[ 3s ]" + tail.replace("tps: 100.00", f"tps: {tps}"))
    text = f"line 48: the report lines make {sum_of_lines} events, the total is 500"
    assert log.why == ((text,) if sum_of_lines else ())


@pytest.mark.parametrize("number", ["nan", "-nan", "inf", "-inf"])
@pytest.mark.parametrize(
    "line", ["min", "avg", "max", "99th percentile", "sum", "execution time (avg/stddev)"]
)
def test_a_total_that_is_no_number_is_found(line, number):
    """Nothing that is compared with NaN differs from it, so it would agree with everything."""
    pattern = rf"({re.escape(line)}:( +)(?:5\.0000/)?)\d+\.\d\d\n"
    log = parse_log(changed(pattern, rf"\g<1>{number}\n"))
    assert any(f" is {float(number)}" in reason for reason in log.why), log.why
    assert log.status == "truncated"


@pytest.mark.parametrize("name", ["tps", "qps", "(ms,99%)", "err/s", "reconn/s"])
def test_a_report_line_with_what_is_no_number_is_found(name):
    log = parse_log(changed(rf"({re.escape(name)}:? )\d+\.\d\d", r"\g<1>nan"))
    assert any(" is nan" in reason for reason in log.why), log.why


@pytest.mark.parametrize(
    "told, pattern, by",
    [
        # Two lines of 1800 instead of 2000 queries, and of 700 instead of 1400 reads.
        ("the report lines make 3600 queries", r"(?s)qps: 2000(.*?)qps: 2000", r"qps: 1800\1qps: 1800"),
        ("the report lines make 1400 reads", r"1400\.00/", "700.00/"),
    ],
)
def test_every_series_of_the_report_lines_is_held_against_its_total(told, pattern, by):
    out = synthetic.output()
    head, tail = out.split("[ 3s ]")
    log = parse_log(re.sub(pattern, by, head) + "[ 3s ]" + tail)
    assert any(told in reason for reason in log.why), log.why


def of_the_lost_second(latency_ms: float) -> list[str]:
    """Return the problems of an output that lost its last report line, with bars of `latency_ms` beside."""
    out = synthetic.output(tps=1000, latency_ms=latency_ms)
    last = out.rindex("[ 7s ] thds")
    return list(parse_log(out[:last] + out[out.index("\n", last) + 1 :]).why)


def test_what_no_report_line_tells_of_must_fit_into_its_second():
    """The lines tell of 4000 of 5000 transactions. In the second that is lost and 0.5 s, 4 threads do 1500 of
    4 ms, but 150 of 40 ms."""
    assert of_the_lost_second(4.0) == []
    assert of_the_lost_second(40.0) == ["line 47: the report lines make 4000 events, the total is 5000"]


def histogram_of(bars: dict[float, int]) -> str:
    """Return an output with other bars of 500 transactions of 40 ms."""
    lines = [f"{value:12.3f} |{'*' * 40} {count}" for value, count in bars.items()]
    return re.sub(r" +39\.650 \|.*", "\n".join(lines), synthetic.output())


@pytest.mark.parametrize(
    "bars, told",
    [
        ({39.650: 500}, None),
        # 450 x 39.65 + 50 x 10.09 ms.
        ({10.090: 50, 39.650: 450}, "the histogram makes 18347 ms, the sum of latencies is 20000 ms"),
        ({38.942: 1, 39.650: 499}, None),
        ({36.236: 1, 39.650: 499}, "the histogram begins at 36.236 ms, min is 40.0 ms"),
        ({39.650: 499, 44.173: 1}, "the histogram ends at 44.173 ms, max is 40.0 ms"),
    ],
)
def test_a_histogram_holds_the_latencies_that_were_timed(bars, told):
    """The buckets beside that of 40 ms are at 38.94 and 40.37 ms; one further is no rounding."""
    why = [reason for reason in parse_log(histogram_of(bars)).why if "percentile" not in reason]
    assert [reason.partition(": ")[2] for reason in why[:1]] == ([told] if told else [])


def test_a_lost_bar_is_missed_by_the_count_of_events():
    assert parse_log(synthetic.output().replace("* 500\n", "* 499\n")).status == "truncated"


def test_a_lost_checkpoint_is_missed():
    out = synthetic.output()
    start, end = out.index("[ 2s ] Checkpoint"), out.index("[ 2s ] thds")
    assert parse_log(out[:start] + out[end:]).status == "truncated"


def test_no_total_time_no_window():
    out = synthetic.output(discard_s=0)
    log = parse_log(out.replace("    total time:                          5.0000s\n", ""))
    assert log.measured_s is None


def test_a_printed_latency_is_of_its_bucket_or_of_one_beside_it():
    # Bucket 500 is from 8.057 to 8.203 ms; what is printed is within 0.005 ms of what was measured.
    assert log_consistency._bucket_range(8.13) == (499, 501)
    assert log_consistency._bucket_range(8.203) == (499, 502)


def test_the_longest_transactions_are_taken_from_their_end():
    counts = np.array([3, 4, 5])
    assert [list(log_consistency.count_longest(counts, many)) for many in (0, 5, 7, 99)] == [
        [0, 0, 0], [0, 0, 5], [0, 2, 5], [3, 4, 5]
    ]  # fmt: skip


def test_as_many_transactions_fit_into_a_time_as_the_shortest_of_them_take():
    """Five of 0.001 ms and ten of 8.1296 ms: the first take 0.005 ms, all of them 81.3 ms."""
    counts = np.zeros(histogram.BUCKETS, dtype=int)
    counts[0], counts[500] = 5, 10
    times = (0.0, 0.0021, 8.1, 8.2, 20.0, 81.0, 82.0)
    assert [log_consistency.count_fitting(counts, spent_ms) for spent_ms in times] == [0, 2, 5, 6, 7, 14, 15]
    assert log_consistency.spent_ms(counts) == pytest.approx(0.005 + 81.2959, abs=1e-4)
