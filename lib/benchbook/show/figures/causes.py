"""The cost of a query by part, as two stacked bars a contrast: baseline and treatment."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from benchbook.compare import words
from benchbook.core.causes import Cause, Causes, CellCosts
from benchbook.core.findings import Findings
from benchbook.show import numbers, theme
from benchbook.show.picture import Panel, Picture

_MOST = 6
"""Contrasts that are drawn of one workload; the table has all."""


def costs_of_a_query(found: Causes, contrasts: Sequence[Cause], findings: Findings) -> Picture:
    """Draw the processor time of a query, us, a panel a workload; what was full is hatched."""
    cells = {(cell.workload, cell.threads, cell.arm): cell for cell in found.cells}
    arms, workloads = (words.labels(findings, kind) for kind in ("arms", "workloads"))
    panels = []
    for workload in dict.fromkeys(one.workload for one in contrasts):
        own = _most_telling([one for one in contrasts if one.workload == workload])
        bars = []
        for one in own:
            pair = [(workload, one.threads, arm) for arm in (findings.baseline, one.treatment)]
            bars += [cells[key] for key in pair if key in cells and cells[key] not in bars]
        if bars:
            panels.append(_panel(workloads.get(workload, workload), bars, arms))
    return Picture(
        "cost-of-a-query",
        "What a query costs each part",
        tuple(panels),
        "Processor time of a query, client, proxy and server after each other. Hatched: its cores were full, "
        "so its cost decides how many queries are served.",
    )


def _most_telling(contrasts: Sequence[Cause]) -> list[Cause]:
    """Return the contrasts that are drawn: those with a cause, then others, in the study's order."""
    ranked = sorted(contrasts, key=lambda one: one.sentence is None)[:_MOST]
    return [one for one in contrasts if one in ranked]


def _panel(name: str, bars: Sequence[CellCosts], arms: Mapping[str, str]) -> Panel:
    with theme.style():
        labels = [f"{_in_lines(arms.get(bar.arm, bar.arm))} · {bar.threads}" for bar in bars]
        height = 0.35 if any("\n" in label for label in labels) else 0.25
        figure, axes = theme.canvas(theme.WIDTH, 1.0 + height * len(bars))
        _stack(axes, bars)
        axes.set_title("\n".join(textwrap.wrap(name, 24)), pad=6)
        axes.set_yticks(range(len(bars)), labels)
        axes.tick_params(axis="y", labelcolor=theme.INK, labelsize=theme.SMALLEST)
        axes.set_ylim(len(bars) - 0.4, -0.6)
        axes.set_xlabel("µs of processor time a query")
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", visible=True)
        axes.spines["left"].set_visible(False)
        handles = [Patch(facecolor=shade, label=part) for part, shade in theme.PARTS.items()]
        figure.legend(handles=handles, loc="outside upper left", ncols=3, handlelength=1.0)
    return Panel(figure, f"{name}, processor time of a query. {' '.join(_told(bar, arms) for bar in bars)}")


def _in_lines(name: str) -> str:
    """Write an arm's name in at most two lines beside its bar."""
    return "\n".join(textwrap.wrap(theme.short(name, 36), 18))


def _stack(axes: Axes, bars: Sequence[CellCosts]) -> None:
    for place, bar in enumerate(bars):
        end, full = 0.0, _full(bar)
        for part in bar.parts:
            width = part.a_query["cpu_us"].value
            style: dict[str, Any] = {"hatch": "////", "edgecolor": theme.PAPER} if part.part in full else {}
            axes.barh(place, width, left=end, height=0.72, color=theme.PARTS[part.part], linewidth=0, **style)
            end += width


def _full(bar: CellCosts) -> set[str]:
    return {part for place in bar.places if place.is_full for part in place.parts}


def _told(bar: CellCosts, arms: Mapping[str, str]) -> str:
    full = _full(bar)
    parts = [
        f"{part.part} {numbers.significant(part.a_query['cpu_us'].value)} µs{' (full)' * (part.part in full)}"
        for part in bar.parts
    ]
    return f"{arms.get(bar.arm, bar.arm)} at {numbers.count(bar.threads, 'thread')}: {', '.join(parts)}."
