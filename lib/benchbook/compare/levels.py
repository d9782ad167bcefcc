"""Throughput by threads as a document prints it: where it collapses, and whether the scalability law fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from benchbook.compare.arithmetic import percent, plain
from benchbook.compare.checking import Check, check, summary
from benchbook.compare.scaling import MIN_LEVELS, fit
from benchbook.core.cells import THREADS, shown
from benchbook.core.source import keys

COLLAPSE = 1 / 3
RATES = ("qps", "tps")
# A law that misses a printed number by more than this share does not describe it.
MISS = 0.05


def collapses(cells: pd.DataFrame) -> list[Check]:
    """Name drops of throughput by more than a third between neighbouring levels of threads.

    It is a collapse where some processor works more at the same time, or where none is printed.
    """
    name, found, n = "collapse", [], 0
    for where, rate, lines in _series(cells):
        n += 1
        for before, after in pairwise(lines):
            drop = after["value"] / before["value"] - 1 if before["value"] else 0.0
            busy = _busier(cells, before, after)
            if drop >= -COLLAPSE or busy == "":
                continue
            detail = (
                f"From {before['threads']:g} to {after['threads']:g} threads {rate.upper()} falls from "
                f"{plain(before['value'])} to {plain(after['value'])} ({percent(drop, 1)}); {busy}."
            )
            found.append(check(name, False, where, detail, [after["table"]], after["row"]))
    return [
        *found,
        *summary(name, n - len({one.where for one in found}), "Series that do not", len(found)),
    ]


def scalability(cells: pd.DataFrame) -> list[Check]:
    """Fit the Universal Scalability Law to each series, or say why it is refused.

    Without repetitions nothing tells noise from a bend, so that a fit describes the printed numbers alone: it
    fails where it misses one by more than 5 %.
    """
    name, found = "scalability law", []
    refused: dict[str, list[str]] = {}
    for where, rate, lines in _series(cells):
        levels, values = [line["threads"] for line in lines], [line["value"] for line in lines]
        reason = _refusal(levels, values)
        if reason is not None:
            refused.setdefault(reason, []).append(where)
            continue
        law = fit(levels, values)
        miss = max(abs(law.qps(level) / value - 1) for level, value in zip(levels, values, strict=True))
        peak = f"highest at {law.peak_threads:.0f} threads" if law.peak_threads else "without a peak"
        detail = (
            f"One thread {law.gamma:.4g} {rate.upper()}, contention {law.alpha:.3g}, coherency "
            f"{law.beta:.2g}, {peak}; it misses a printed number by {percent(miss, 1).lstrip('+')} at most."
        )
        found.append(check(name, bool(miss <= MISS), where, detail, [lines[0]["table"]]))
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


def _series(cells: pd.DataFrame) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield each series of two thread levels or more: where it is, its rate, and its cells by threads."""
    names = [key for key in keys(cells) if key not in THREADS]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in cells[cells["metric"].isin(RATES) & cells["value"].notna()].to_dict("records"):
        if isinstance(line["threads"], int | float) and line["threads"] == line["threads"]:
            rest = shown({key: line[key] for key in names if not pd.isna(line[key])})
            groups.setdefault(
                (f"{line['table']}, {rest}, {line['metric'].upper()}", line["metric"]), []
            ).append(line)
    for (where, rate), lines in groups.items():
        ordered = sorted(lines, key=lambda line: float(line["threads"]))
        if len({line["threads"] for line in ordered}) == len(ordered) > 1:
            yield where, rate, ordered


def _busier(cells: pd.DataFrame, before: dict[str, Any], after: dict[str, Any]) -> str:
    """Say which processors work more in the second of two rows; empty where those printed do not."""
    rows = [cells[(cells["table"] == one["table"]) & (cells["row"] == one["row"])] for one in (before, after)]
    used = [
        {
            line["metric"]: line["value"]
            for line in row.to_dict("records")
            if line["metric"].startswith("cpu_") and not pd.isna(line["value"])
        }
        for row in rows
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
