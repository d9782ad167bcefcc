"""Which fields of a log each kind of line fills, and how their text becomes a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Fields = tuple[tuple[str, Callable[[str], Any]], ...]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(", "))


HEADER: dict[str, Fields] = {
    "version": (("version", str), ("lua", str)),
    "threads": (("threads", int),),
    "warm_up": (("warm_up_s", int),),
    "rate": (("rate", int),),
    "interval": (("interval_s", int),),
    "checkpoints": (("checkpoints_s", _numbers),),
    "seed": (("seed", int),),
    "forcing": (("forced_shutdown_s", int),),
}
TOTALS: dict[str, Fields] = {
    "checkpoint": (("checkpoint_s", int),),
    "reads": (("reads", int),),
    "writes": (("writes", int),),
    "other": (("other", int),),
    "total": (("total", int),),
    "transactions": (("transactions", int), ("transactions_per_s", float)),
    "queries": (("queries", int), ("queries_per_s", float)),
    "ignored_errors": (("ignored_errors", int), ("ignored_errors_per_s", float)),
    "reconnects": (("reconnects", int), ("reconnects_per_s", float)),
    "unfinished": (("unfinished", int),),
    "eps": (("events_per_s", float),),
    "total_time": (("total_time_s", float),),
    "elapsed": (("total_time_s", float),),
    "events": (("events", int),),
    "min": (("latency_min_ms", float),),
    "avg": (("latency_avg_ms", float),),
    "max": (("latency_max_ms", float),),
    "percentile": (("percentile", int), ("latency_percentile_ms", float)),
    "sum": (("latency_sum_ms", float),),
    "thread_events": (("thread_events_avg", float), ("thread_events_stddev", float)),
    "thread_time": (("thread_time_avg_s", float), ("thread_time_stddev_s", float)),
}


def values(fields: Fields, matched: tuple[str | None, ...]) -> dict[str, Any]:
    """Return the fields of a line by name, without those it left out."""
    pairs = zip(fields, matched, strict=True)
    return {name: convert(text) for (name, convert), text in pairs if text is not None}
