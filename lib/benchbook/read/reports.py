"""Report lines of sysbench as values, and those that a document prints as cells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from benchbook.core.source import Number
from benchbook.read import grammar
from benchbook.read.intervals import Interval


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


UNITS = {
    "tps": "1/s",
    "qps": "1/s",
    "reads_per_s": "1/s",
    "writes_per_s": "1/s",
    "other_per_s": "1/s",
    "errors_per_s": "1/s",
    "reconnects_per_s": "1/s",
}


def numbers(text: str, table: str, at: Mapping[str, Any]) -> tuple[list[Number], list[tuple[int, str, str]]]:
    """Return a table's numbers, and (line number, line, wrong) for lines sysbench does not print.

    Each line is a row; its label is the key `second`. The latency is named by its percentile, such as
    `latency_p95_ms`.
    """
    rows: list[Number] = []
    wrong: list[tuple[int, str, str]] = []
    seen: dict[float, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        interval = parse_interval_line(line)
        if interval is None:
            wrong.append(
                (number, line, "not a report line of sysbench; copy the line as printed, one a line")
            )
            continue
        if interval.second in seen:
            wrong.append(
                (
                    number,
                    line,
                    f"second {interval.second:.0f} given twice, first on line {seen[interval.second]}; "
                    "keep one",
                )
            )
        seen.setdefault(interval.second, number)
        place = {**at, "threads": int(interval.threads), "second": int(interval.second)}
        printed = {name: (getattr(interval, name), unit) for name, unit in UNITS.items()}
        printed[f"latency_p{interval.percentile}_ms"] = (interval.latency_percentile_ms, "ms")
        rows += [
            Number(table, number, name, name, value, f"{value:.2f}", math.nan, unit, "metric", place)
            for name, (value, unit) in printed.items()
            if value is not None
        ]
    return rows, wrong
