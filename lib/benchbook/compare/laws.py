"""Laws that numbers of one row must obey together: throughput and latency, statements, percentiles, order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchbook.compare.arithmetic import Check, check, of_number, percent, plain, summary
from benchbook.core import histogram
from benchbook.core.source import Number

LITTLE_TOLERANCE = 0.01
STATEMENTS_TOLERANCE = 0.01


def littles_law(numbers: Sequence[Number], statements: Mapping[str, float]) -> list[Check]:
    """Compare threads / transactions a second with the printed mean latency; more than 1 % is flagged.

    Where only QPS is printed, transactions are QPS / `statements` (by workload, as the QPS counts them).
    Little (1961): in a closed loop the number of clients is throughput times time. A difference that the
    rounding of the two printed numbers can explain is not flagged.
    """
    name, found, unknown, n = "Little's law", [], [], 0
    by_tps, by_qps = (
        {_place(rate): (rate, latency) for rate, latency in _wide(numbers, (metric, "latency_avg_ms"))}
        for metric in ("tps", "qps")
    )
    for rate, latency in (by_qps | by_tps).values():
        if not (work := _work(rate, statements)):
            continue
        if not rate.value or not latency.value:
            what = "latency" if rate.value else "throughput"
            text = f"The {what} is 0, so there is nothing to hold against it."
            unknown.append(of_number(name, None, rate, text, True))
            continue
        n += 1
        low = work / (rate.value + rate.half_unit) / (latency.value + latency.half_unit)
        high = work / max(rate.value - rate.half_unit, 1e-9) / max(latency.value - latency.half_unit, 1e-9)
        if low > 1 + LITTLE_TOLERANCE or high < 1 - LITTLE_TOLERANCE:
            count = 1.0 if rate.metric == "tps" else statements[rate.at["workload"]]
            factor = "" if count == 1 else f" x {count:g} statements"
            detail = (
                f"{rate.threads} threads{factor} / {rate.written} {rate.metric.upper()} = "
                f"{work / rate.value:.2f} ms, printed {latency.written} ms: "
                f"ratio {work / rate.value / latency.value:.4f}, "
                f"throughput {percent(rate.value * latency.value / work - 1, 1)} against what that latency "
                "gives."
            )
            found.append(of_number(name, False, rate, detail, True))
    bounded = _of_percentiles(numbers, statements, {*by_tps, *by_qps})
    text = "Cells that agree within 1 % or their rounding"
    agreeing = summary(name, n - len(found), text, len(found)) if n or not bounded else []
    return [*found, *unknown, *agreeing, *bounded]


def _of_percentiles(
    numbers: Sequence[Number], statements: Mapping[str, float], with_mean: set[tuple[Any, ...]]
) -> list[Check]:
    """Hold percentiles against Little's law where no mean is printed, of which there may be none.

    Of the transactions 5 % take the 95th percentile or longer, so the mean is at least a twentieth of it. A
    percentile stands for a bucket 1.8 % wide.
    """
    name, found, n = "Little's law", [], 0
    for metric in sorted({one.metric for one in numbers if re.fullmatch(r"latency_p\d\d_ms", one.metric)}):
        least = (100 - int(metric[len("latency_p") : -len("_ms")])) / 100
        rows = {
            _place(rate): (rate, latency)
            for of in ("qps", "tps")
            for rate, latency in _wide(numbers, (of, metric))
        }
        for place, (rate, latency) in rows.items():
            if place in with_mean or not rate.value or not (work := _work(rate, statements)):
                continue
            n += 1
            mean = work / rate.value
            if mean < least * (latency.value - latency.half_unit) / histogram.RATIO:
                detail = (
                    f"{rate.threads} threads at {rate.written} {rate.metric.upper()} have a mean of "
                    f"{mean:.2f} ms. As {least:.0%} take the printed {latency.written} ms ({metric}) or "
                    f"longer, it is {least * latency.value:.2f} ms at least."
                )
                found.append(of_number(name, False, rate, detail, True))
    text = "Cells without a mean whose percentile leaves room for that of the law"
    return [*found, *(summary(name, n - len(found), text, len(found)) if n else [])]


def percentile_grid(numbers: Sequence[Number]) -> list[Check]:
    """Look for percentiles that sysbench's histogram cannot give; an average of several leaves its grid."""
    name, found, n, coarse = "percentile grid", [], 0, 0
    for one in numbers:
        if not re.fullmatch(r"latency_p\d+_ms", one.metric) or not one.value > 0:
            continue
        if one.half_unit > max(0.005, 0.25 * (histogram.RATIO - 1) * one.value):
            coarse += 1
            continue
        n += 1
        if not histogram.is_on_grid(one.value):
            near = histogram.value_of(histogram.bucket_of(one.value))
            detail = (
                f"{one.printed} ({one.metric}) is not a value of sysbench's histogram; the nearest is "
                f"{near:.2f} ms. An average of several percentiles looks like this."
            )
            found.append(of_number(name, False, one, detail))
    if coarse and n == len(found):
        found.append(check(name, None, "nowhere", f"{coarse} percentiles are too coarsely rounded to tell."))
        return found
    text = "Percentiles on sysbench's grid" + (f" ({coarse} too coarsely rounded to tell)" if coarse else "")
    return [*found, *summary(name, n - len(found), text, len(found))]


def statements_per_transaction(numbers: Sequence[Number], statements: Mapping[str, float]) -> list[Check]:
    """Compare QPS / TPS with the statements that the workload's script sends in one transaction.

    Where cells have `cut`, the share of their transactions that their window may have cut through, they may
    differ by so much more.
    """
    name, found, n, is_cut = "statements per transaction", [], 0, False
    for qps, tps in _wide(numbers, ("qps", "tps")):
        count = statements.get(qps.at["workload"])
        if not count or tps.value == 0:
            continue
        n += 1
        ratio = qps.value / tps.value
        off = abs(ratio / count - 1) - STATEMENTS_TOLERANCE
        is_cut |= 0 < off <= qps.cut
        if off > qps.cut:
            detail = f"{qps.written} / {tps.written} = {ratio:.3f} statements, the script sends {count:g}."
            found.append(of_number(name, False, qps, detail))
    text = "Cells that agree within 1 %" + (" or what their windows cut through" if is_cut else "")
    return [*found, *summary(name, n - len(found), text, len(found))]


def latency_order(numbers: Sequence[Number]) -> list[Check]:
    """Check minimum <= mean <= maximum, and no percentile above the maximum by more than its bucket."""
    name, found, n = "order of latencies", [], 0
    rows: dict[tuple[str, int], list[Number]] = {}
    for one in numbers:
        if one.metric.startswith("latency_"):
            rows.setdefault((one.table, one.row), []).append(one)
    for row in rows.values():
        by = {one.metric: one.value for one in row}
        low, mean, high = (by.get(f"latency_{part}_ms") for part in ("min", "avg", "max"))
        parts = [part for part in (low, mean, high) if part is not None]
        if len(parts) < 2:
            continue
        n += 1
        over = [m for m, v in by.items() if "_p" in m and high is not None and v > high * histogram.RATIO]
        if parts != sorted(parts) or over:
            told = ", ".join(f"{metric} {plain(value)}" for metric, value in by.items())
            found.append(of_number(name, False, row[0], f"{told}."))
    return [*found, *summary(name, n - len(found), "Rows in order", len(found))]


def _work(rate: Number, statements: Mapping[str, float]) -> float:
    """Return 1000 x threads x statements of a row's rate, from which follows its mean latency; 0: unknown."""
    threads, count = rate.at.get("threads"), 1.0
    if rate.metric == "qps":
        count = statements.get(rate.at.get("workload", ""), 0.0)
    return 1000 * threads * count if isinstance(threads, int | float) else 0.0


def _place(one: Number) -> tuple[Any, ...]:
    return one.table, one.row, frozenset(one.at.items())


def _wide(numbers: Sequence[Number], metrics: Sequence[str]) -> Iterator[list[Number]]:
    """Yield the numbers of rows that have all of the metrics, in the order of these."""
    rows: dict[tuple[Any, ...], dict[str, Number]] = {}
    for one in numbers:
        if one.metric in metrics and one.is_given:
            rows.setdefault(_place(one), {})[one.metric] = one
    yield from ([row[name] for name in metrics] for row in rows.values() if len(row) == len(metrics))
