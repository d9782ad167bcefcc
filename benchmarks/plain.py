"""sysbench's output by straightforward regular expressions: a search a field, nothing proven.

Written the way public tools take these logs apart, and giving what our own parser gives: every field of every
report line, the histogram, the last totals. What such a parser does not notice: lines that are missing or
doubled, totals of the wrong block, numbers that disagree.
"""

import re

INTERVAL = {
    "second": r"\[ ([0-9]+)s \]",
    "threads": r"thds: ([0-9]+) ",
    "tps": r"tps: (.*?) ",
    "qps": r"qps: (.*?) \(",
    "reads_per_s": r"\(r/w/o: (.*?)/",
    "writes_per_s": r"\(r/w/o: .*?/(.*?)/",
    "other_per_s": r"\(r/w/o: .*?/.*?/(.*?)\)",
    "percentile": r"lat \(ms,(.*?)%\)",
    "latency_percentile_ms": r"lat \(.*?\): (.*?) ",
    "errors_per_s": r"err/s: (.*?) ",
    "reconnects_per_s": r"reconn/s: (.*)",
}
TOTALS = {
    "reads": r"read: *([0-9]+)",
    "writes": r"write: *([0-9]+)",
    "other": r"other: *([0-9]+)",
    "total": r"total: *([0-9]+)",
    "transactions": r"transactions: *([0-9]+) *\(",
    "transactions_per_s": r"transactions: *[0-9]* *\(([0-9]*[.]?[0-9]+) per sec.\)",
    "queries": r"queries: *([0-9]+) *\(",
    "queries_per_s": r"queries: *[0-9]* *\(([0-9]*[.]?[0-9]+) per sec.\)",
    "ignored_errors": r"ignored errors: *([0-9]+)",
    "reconnects": r"reconnects: *([0-9]+)",
    "total_time_s": r"total time: *([0-9]*[.]?[0-9]+)s",
    "events": r"total number of events: *([0-9]+)",
    "latency_min_ms": r"min: *([0-9]*[.]?[0-9]+)",
    "latency_avg_ms": r"avg: *([0-9]*[.]?[0-9]+)",
    "latency_max_ms": r"max: *([0-9]*[.]?[0-9]+)",
    "latency_percentile_ms": r"[0-9]+th percentile: *([0-9]*[.]?[0-9]+)",
    "latency_sum_ms": r"sum: *([0-9]*[.]?[0-9]+)",
}


def parse(output: str) -> tuple[list[dict[str, float]], list[tuple[float, int]], dict[str, float]]:
    """Return report lines, bars of the histogram and the last totals of an output."""
    intervals, bars = [], []
    for line in output.split("\n"):
        if re.match(r"^\[.*thds", line):
            found = {}
            for name, pattern in INTERVAL.items():
                match = re.search(pattern, line)
                if not match:
                    raise ValueError(f"no {name} in: {line}")
                found[name] = float(match.group(1))
            intervals.append(found)
        elif match := re.match(r"^ *([0-9.]+) \|[* ]+ ([0-9]+)$", line):
            bars.append((float(match.group(1)), int(match.group(2))))
    end = output[output.rindex("SQL statistics:") :]
    totals = {}
    for name, pattern in TOTALS.items():
        match = re.search(pattern, end)
        if not match:
            raise ValueError(f"no {name} in the output")
        totals[name] = float(match.group(1))
    return intervals, bars, totals


def three_fields(output: str) -> tuple[list[float], list[float], list[float]]:
    """Return tps, latency and qps of the report lines, which is all that many tools look at."""
    tps, latency, qps = [], [], []
    for line in output.split("\n"):
        if re.match(r"^\[.*thds", line):
            for values, pattern in ((tps, "tps: (.*?) "), (latency, r"lat \(.*?\): (.*?) "),
                                    (qps, r"qps: (.*?) \(.*?\) ")):  # fmt: skip
                match = re.search(pattern, line)
                if not match:
                    raise ValueError(f"no {pattern} in: {line}")
                values.append(float(match.group(1)))
    return tps, latency, qps
