"""Numbers that were printed together must agree, each by its own rule."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML

from benchbook.core.util import histogram
from benchbook.read import log_consistency
from benchbook.read.sysbench_log import parse_log
from tests.goldens import assert_golden
from tests.read import synthetic

CASES = Path(__file__).parents[1] / "data" / "changed_outputs.yaml"


def with_change(change: Any) -> Iterator[tuple[str, str]]:
    """A healthy output after each variant of a change, with what is changed to what."""
    out = synthetic.output()
    if isinstance(change, dict):
        start, end = out.find(change.get("from", "")), out.find(change["to"]) if "to" in change else len(out)
        part, times = re.subn(change["all"], change["by"], out[start:end])
        assert times, change
        yield f"all {change['all']} to {change['by']}", out[:start] + part + out[end:]
        return
    pattern, texts = change
    match = [*re.finditer(pattern, out)][-1]
    for text in [texts] if isinstance(texts, str) else texts:
        changed = match.expand(text)
        shown = "; ".join(" ".join(line.split()) for line in changed.strip().splitlines()) or "nothing"
        yield (
            f"{' '.join(match[0].split())[:60]} to {shown}",
            out[: match.start()] + changed + out[match.end() :],
        )


def test_one_changed_number_is_found_and_what_rounding_makes_of_one_agrees():
    answers = []
    for title, changes in YAML(typ="safe").load(CASES).items():
        answers.append(f"\n{title}\n")
        for shown, text in (variant for change in changes for variant in with_change(change)):
            log = parse_log(text)
            answers += [f"  - {shown}: {log.status}\n", *(f"      {reason}\n" for reason in log.why)]
    assert_golden("changed_outputs.txt", "".join(answers).lstrip())


def test_a_percentile_above_the_maximum_is_found_without_a_histogram_too():
    out = synthetic.output()
    head, _, tail = out.partition("Latency histogram")
    without = head + tail[tail.index("SQL statistics") :]
    assert parse_log(without).why == ()
    before, _, after = without.rpartition("39.65")
    # The longest took 40 ms; 500 events have five above their 99th percentile, and threads are only four.
    log = parse_log(f"{before}80.03{after}")
    assert log.status == "complete", "after a checkpoint half a second of events may be in its bars alone"
    once = synthetic.output(discard_s=0)
    whole = once.partition("Latency histogram")[0] + once[once.index("SQL statistics") :]
    assert parse_log(whole).why == ()
    assert whole.count("39.65") == 1
    (problem,) = parse_log(whole.replace("39.65", "80.03")).problems
    assert problem.concern == "numbers" and {"80.03", "40.0"} < {*problem.text.split()}


def test_few_long_transactions_that_threads_do_not_share_evenly_agree():
    # 5 of 3 s each: 1.6667 a thread make 5.0001 events, which are 0.3 ms too much.
    assert parse_log(synthetic.output(threads=3, tps=1)).why == ()


def of_the_lost_second(latency_ms: float) -> list[tuple[str, list[str]]]:
    """Concern and numbers of each problem of an output that lost its last report line, with bars of
    `latency_ms` beside."""
    out = synthetic.output(tps=1000, latency_ms=latency_ms)
    last = out.rindex("[ 7s ] thds")
    problems = parse_log(out[:last] + out[out.index("\n", last) + 1 :]).problems
    return [(problem.concern, re.findall(r"\d+", str(problem))) for problem in problems]


def test_what_no_report_line_tells_of_must_fit_into_its_second():
    """The lines tell of 4000 of 5000 transactions. In the second that is lost and 0.5 s, 4 threads do 1500 of
    4 ms, but 150 of 40 ms."""
    assert of_the_lost_second(4.0) == []
    assert of_the_lost_second(40.0) == [("sums", ["47", "4000", "5000"])]


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
