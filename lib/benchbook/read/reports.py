"""One report of sysbench as values: a line, a row of its CSV hook, or an object of its JSON hook.

The hooks are those of sysbench's own src/lua/internal/sysbench.lua.
"""

from __future__ import annotations

import json
import re

from benchbook.read import grammar
from benchbook.read.intervals import Interval
from benchbook.read.log import Problem

CSV = re.compile(r"\d{1,9},\d{1,9}(?:,-?\d{1,18}\.\d{2}){8}")
JSON_LINE = re.compile(r'[\[\],]|  [{}],?|    \},?|    "\w+": .{1,80}|      "\w+": .{1,80}')


def parse_interval_line(text: str) -> Interval | None:
    """Return one report line of sysbench 0.5, 1.0 or 1.1, cut out of any document, or None if it is none."""
    line = text.strip()
    if (match := grammar.INTERVAL.fullmatch(line)) is not None:
        return database_interval(1, match.groups())
    if (match := grammar.INTERVAL_NO_DB.fullmatch(line)) is not None:
        second, threads, tps, percentile, latency = match.groups()
        return Interval(
            1,
            float(second),
            int(threads),
            float(tps),
            percentile=int(percentile),
            latency_percentile_ms=float(latency),
        )
    if (match := grammar.INTERVAL_05.fullmatch(line)) is not None:
        second, threads, tps, reads, writes, latency, percentile, errors, reconnects = match.groups()
        return Interval(
            1,
            float(second),
            int(threads),
            float(tps),
            None,
            float(reads),
            float(writes),
            None,
            int(percentile),
            float(latency),
            float(errors),
            float(reconnects),
        )
    return None


def database_interval(number: int, matched: tuple[str, ...]) -> Interval:
    """Return the report line of a database test from what `grammar.INTERVAL` caught in line `number`."""
    second, threads, tps, qps, reads, writes, other, percentile, latency, colon, errors, reconnects = matched
    return Interval(
        number,
        float(second),
        int(threads),
        float(tps),
        float(qps),
        float(reads),
        float(writes),
        float(other),
        int(percentile),
        float(latency),
        float(errors),
        float(reconnects),
        is_hook=not colon,
    )


def csv_interval(line: str) -> Interval | None:
    """Return a row of the CSV hook (its ten columns have no heading), or None."""
    if CSV.fullmatch(line) is None:
        return None
    second, threads, *numbers = line.split(",")
    tps, qps, reads, writes, other, latency, errors, reconnects = map(float, numbers)
    rates = (tps, qps, reads, writes, other)
    return Interval(0, float(second), int(threads), *rates, None, latency, errors, reconnects, is_hook=True)


def is_json_line(line: str, is_open: bool) -> bool:
    """Tell whether a line belongs to the JSON hook's output; the first one is a lone bracket."""
    return line == "[" or (is_open and JSON_LINE.fullmatch(line) is not None)


def json_intervals(lines: list[tuple[int, str]]) -> tuple[list[Interval], list[Problem]]:
    """Return the report objects among numbered lines, and what is wrong with the rest.

    The closing bracket comes only when the Lua state closes, so a killed run leaves its array open; every
    whole object is still returned.
    """
    intervals: list[Interval] = []
    problems: list[Problem] = []
    start = 0
    for position, (number, line) in enumerate(lines):
        if line == "  {":
            start = position
        elif line in ("  }", "  },"):
            text = "\n".join(part for _, part in lines[start : position + 1]).rstrip(",")
            try:
                intervals.append(_interval(lines[start][0], json.loads(text)))
            except (ValueError, KeyError, TypeError):
                problems.append(Problem("grammar", number, "a JSON report that can't be read"))
    opened, closed = (sum(line == bracket for _, line in lines) for bracket in "[]")
    if opened != closed:
        problems.append(Problem("end", lines[-1][0], "the array of JSON reports is not closed"))
    return intervals, problems


def _interval(number: int, report: dict) -> Interval:
    qps = report["qps"]
    return Interval(
        number,
        float(report["time"]),
        int(report["threads"]),
        float(report["tps"]),
        float(qps["total"]),
        float(qps["reads"]),
        float(qps["writes"]),
        float(qps["other"]),
        None,
        float(report["latency"]),
        float(report["errors"]),
        float(report["reconnects"]),
        is_hook=True,
    )
