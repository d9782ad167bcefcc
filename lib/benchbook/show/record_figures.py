"""The figures of a published document, drawn again from its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from benchbook.core.audit import Audit, Number, Table
from benchbook.show import numbers, theme
from benchbook.show.markup import slug
from benchbook.show.picture import Panel, Picture

Points = dict[str, list[tuple[float, float]]]

NOT_ALONG = ("arm", "workload", "processes", "threads_per_process")
# One of each group is drawn, the first that is printed.
DRAWN = (("qps", "tps"), ("latency_p95_ms", "latency_p99_ms", "latency_avg_ms"))
LABELS = {
    "qps": "queries per second",
    "tps": "transactions per second",
    "latency_p95_ms": "95th percentile, ms",
    "latency_p99_ms": "99th percentile, ms",
    "latency_avg_ms": "mean latency, ms",
}
LOG_FROM = 20


def pictures(audit: Audit) -> list[Picture]:
    """Draw the tables that a claim compares in one picture each, then every table that is left."""
    tables = {table.name: table for table in audit.tables if table.numbers}
    compared = _groups(audit, tables)
    left = [name for name in tables if not any(name in group for group in compared)]
    drawn = [_picture([tables[name] for name in group]) for group in (*compared, *([name] for name in left))]
    return [picture for picture in drawn if picture.panels]


def _groups(audit: Audit, tables: Mapping[str, Table]) -> list[list[str]]:
    """Return the tables that claims put next to each other, each set once and without sets inside another."""
    sets: list[frozenset[str]] = []
    for claim in audit.claims:
        sides = [side for cell in claim.cells for side in (cell, cell.baseline, cell.treatment) if side]
        names = frozenset(side.table for side in sides if side.table is not None and side.table in tables)
        if len(names) > 1 and names not in sets:
            sets.append(names)
    largest = [one for one in sets if not any(one < other for other in sets)]
    return [[name for name in tables if name in group] for group in largest]


def _picture(tables: Sequence[Table]) -> Picture:
    panels = []
    loads = dict.fromkeys(_load(line) for table in tables for line in table.numbers)
    for load in loads:
        for choice in DRAWN:
            present = {line.metric for table in tables for line in table.numbers if _load(line) == load}
            metric = next((one for one in choice if one in present), None)
            if metric:
                panels += _panel(tables, load, metric)
    title = (
        numbers.listing([table.title for table in tables])
        if len(tables) < 4
        else f"{len(tables)} tables compared"
    )
    return Picture(
        f"figure-{slug('-'.join(table.name for table in tables))[:80]}",
        title,
        tuple(panels),
        "Drawn from the printed numbers, one a point: nothing shows how far a second run would move them.",
    )


def _load(line: Number) -> str:
    return str(line.at.get("workload", ""))


def _panel(tables: Sequence[Table], load: str, metric: str) -> list[Panel]:
    along, points = _points(tables, load, metric)
    if along is None or max(map(len, points.values()), default=0) < 2:
        return []
    with theme.style():
        figure, axes = theme.canvas()
        names = list(points)
        for name, line in points.items():
            x, y = zip(*line, strict=True)
            axes.plot(
                x,
                y,
                color=theme.colour(name, names),
                marker=theme.marker(name, names),
                markersize=5,
                linewidth=1.4,
            )
        axes.set_title(theme.short(load), pad=6)
        axes.set_ylabel(LABELS[metric])
        axes.set_xlabel(along.replace("_", " "))
        axes.set_ylim(0, 1.08 * max(y for line in points.values() for _, y in line))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}" if metric in DRAWN[0] else "{x:g}"))
        _levels(axes, sorted({x for line in points.values() for x, _ in line}), along)
        theme.legend(figure, names, names)
    told = " ".join(
        f"{name}: {', '.join(f'{y:g} at {x:g}' for x, y in line)}." for name, line in points.items()
    )
    return [Panel(figure, f"{load}, {LABELS[metric]} over {along.replace('_', ' ')}. {told}")]


def _points(tables: Sequence[Table], load: str, metric: str) -> tuple[str | None, Points]:
    """Return the key that varies and the series over it; report lines count from the first printed one."""
    lines = [(table, line) for table in tables for line in table.numbers
             if line.metric == metric and _load(line) == load]  # fmt: skip
    levels: dict[str, set[Any]] = {}
    for _, line in lines:
        for key, value in line.at.items():
            if key not in NOT_ALONG and isinstance(value, int | float):
                levels.setdefault(key, set()).add(value)
    others = [key for key, found in levels.items() if key != "threads" and len(found) > 1]
    along = others[0] if others else "threads" if len(levels.get("threads", ())) > 1 else None
    if along is None:
        return None, {}
    arms = {(table.name, line.at.get("arm")) for table, line in lines}
    is_plain = len({arm for _, arm in arms}) == len(arms)
    points: Points = {}
    for table, line in lines:
        if along not in line.at:
            continue
        name = str(line.at.get("arm") or table.title) if is_plain else f"{table.title} ({line.at.get('arm')})"
        if line.value is not None:
            place = line.row if along == "second" else float(line.at[along])
            points.setdefault(name, []).append((place, line.value))
    return ("printed second" if along == "second" else along), {
        name: sorted(line) for name, line in points.items()
    }


def _levels(axes: Axes, levels: Sequence[float], along: str) -> None:
    if len(levels) < 2 or along == "printed second":
        return
    if min(levels) > 0 and max(levels) / min(levels) >= LOG_FROM:
        axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(list(levels)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
