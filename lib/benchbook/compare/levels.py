"""Throughput by threads as a document prints it: where it collapses, and whether the scalability law fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from benchbook.compare.arithmetic import percent, plain
from benchbook.compare.checking import Check, check, summary
from benchbook.compare.scaling import MIN_LEVELS, fit
from benchbook.core.cells import THREADS, shown
from benchbook.core.source import Number

COLLAPSE = 1 / 3
RATES = ("qps", "tps")
# A law that misses a printed number by more than this share does not describe it.
MISS = 0.05


def collapses(numbers: Sequence[Number]) -> list[Check]:
    """Name drops of throughput by more than a third between neighbouring levels of threads.

    It is a collapse where some processor works more at the same time, or where none is printed.
    """
    name, found, n = "collapse", [], 0
    for where, series in _series(numbers):
        n += 1
        for before, after in pairwise(series):
            drop = after.value / before.value - 1 if before.value else 0.0
            busy = _busier(numbers, before, after)
            if drop >= -COLLAPSE or busy == "":
                continue
            detail = (
                f"From {before.at['threads']:g} to {after.at['threads']:g} threads {after.metric.upper()} "
                f"falls from {plain(before.value)} to {plain(after.value)} ({percent(drop, 1)}); {busy}."
            )
            found.append(check(name, False, where, detail, [after.table], after.row))
    return [
        *found,
        *summary(name, n - len({one.where for one in found}), "Series that do not", len(found)),
    ]


def scalability(numbers: Sequence[Number]) -> list[Check]:
    """Fit the Universal Scalability Law to each series, or say why it is refused.

    Without repetitions nothing tells noise from a bend, so that a fit describes the printed numbers alone: it
    fails where it misses one by more than 5 %.
    """
    name, found = "scalability law", []
    refused: dict[str, list[str]] = {}
    for where, series in _series(numbers):
        levels, values = [float(one.at["threads"]) for one in series], [one.value for one in series]
        reason = _refusal(levels, values)
        if reason is not None:
            refused.setdefault(reason, []).append(where)
            continue
        law = fit(levels, values)
        miss = max(
            abs(float(law.qps(level)) / value - 1) for level, value in zip(levels, values, strict=True)
        )
        peak = f"highest at {law.peak_threads:.0f} threads" if law.peak_threads else "without a peak"
        detail = (
            f"One thread {law.gamma:.4g} {series[0].metric.upper()}, contention {law.alpha:.3g}, coherency "
            f"{law.beta:.2g}, {peak}; it misses a printed number by {percent(miss, 1).lstrip('+')} at most."
        )
        found.append(check(name, bool(miss <= MISS), where, detail, [series[0].table]))
    found += [
        check(name, None, f"{len(places)} series", f"Refused for {'; '.join(places)}: {reason}.")
        for reason, places in refused.items()
    ]
    return found or summary(name, 0, "")


def _refusal(levels: Sequence[float], values: Sequence[float]) -> str | None:
    if len(levels) < MIN_LEVELS or levels[0] != 1:
        return f"the law needs {MIN_LEVELS} thread levels that begin with 1"
    if min(values) <= 0:
        return "a throughput is 0"
    if max(values) == values[-1]:
        return "no point past the knee: throughput does not fall after its maximum"
    return None


def _series(numbers: Sequence[Number]) -> Iterator[tuple[str, list[Number]]]:
    """Yield each series of two thread levels or more: where it is, and the numbers of its rate by threads."""
    groups: dict[str, list[Number]] = {}
    for one in numbers:
        if one.metric in RATES and one.is_given and isinstance(one.key("threads"), int | float):
            rest = shown({key: value for key, value in one.at.items() if key not in THREADS})
            groups.setdefault(f"{one.table}, {rest}, {one.metric.upper()}", []).append(one)
    for where, series in groups.items():
        ordered = sorted(series, key=lambda one: float(one.at["threads"]))
        if len({one.at["threads"] for one in ordered}) == len(ordered) > 1:
            yield where, ordered


def _busier(numbers: Sequence[Number], before: Number, after: Number) -> str:
    """Say which processors work more in the second of two rows; empty where those printed do not."""
    used = [
        {
            one.metric: one.value
            for one in numbers
            if (one.table, one.row) == (row.table, row.row) and one.metric.startswith("cpu_") and one.is_given
        }
        for row in (before, after)
    ]
    both = [metric for metric in used[0] if metric in used[1]]
    if not both:
        return "no processor time is printed beside it"
    more = [metric for metric in both if used[1][metric] > used[0][metric]]
    return ", ".join(
        f"{metric.removeprefix('cpu_').removesuffix('_pct')} uses more CPU ({plain(used[0][metric])} to "
        f"{plain(used[1][metric])})"
        for metric in more
    )
