"""One report line of sysbench as values."""

from __future__ import annotations

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
