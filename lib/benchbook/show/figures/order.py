"""The runs in order of time: what the machine did while the study went on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from benchbook.show import numbers, theme
from benchbook.show.picture import Panel, Picture, by_arm

_MANY_BLOCKS = 12
_CAPTION = (
    "Each run against the mean of its own cell (same arm, workload and threads). A slope shared by all arms "
    "is the machine drifting, which pairs cancel. Crosses at the bottom are voided attempts."
)


def run_order(runs: pd.DataFrame, voids: pd.DataFrame, arms: Sequence[str]) -> Picture:
    """Draw every run against the geometric mean of its cell in order of time, with voided attempts marked.

    A drift of the machine shows as a slope that all arms share. Voided attempts have no throughput: they
    stand at the bottom, at their `started_s` if the table has it, else in the middle of their block.
    """
    if runs.empty:
        return Picture("run-order", "The runs in order of time", (), "")
    cells = runs.groupby(["workload", "threads", "arm"]).qps
    means = np.exp(cells.transform(lambda values: np.log(values).mean()))
    order = runs.assign(minute=runs.started_s / 60, change=100 * (runs.qps / means - 1))
    order = order.sort_values("minute", kind="stable")
    blocks = order.groupby("block").minute.agg(["min", "max"])
    with theme.style():
        figure, axes = theme.canvas()
        present = by_arm(order, arms)
        for arm, own in present.items():
            axes.plot(
                *(own.minute, own.change, theme.marker(arm, arms)), color=theme.colour(arm, arms),
                markersize=5, markeredgecolor=theme.PAPER, markeredgewidth=0.6, alpha=0.9,
            )  # fmt: skip
        axes.axhline(0, color=theme.MUTED, linewidth=0.9, zorder=1)
        _blocks(axes, blocks)
        extra = _voids(axes, voids, blocks)
        axes.set_xlabel("minutes since the first run")
        axes.set_ylabel("off its cell's mean, %")
        theme.legend(figure, [*present], arms, **extra)
    panel = Panel(figure, _told(order, voids))
    return Picture("run-order", "The runs in order of time", (panel,), _CAPTION)


def _blocks(axes: Axes, blocks: pd.DataFrame) -> None:
    """Mark where blocks begin, every fifth one if there are many, and leave room for their names."""
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.1 * (high - low), high + 0.12 * (high - low))
    for block, start in blocks["min"].items():
        if len(blocks) <= _MANY_BLOCKS or block % 5 == 0:
            axes.axvline(start, color=theme.RULE, linewidth=0.8, zorder=0)
            theme.corner(axes, f"block {block}" if len(blocks) <= _MANY_BLOCKS / 2 else f"{block}", start)


def _voids(axes: Axes, voids: pd.DataFrame, blocks: pd.DataFrame) -> dict[str, Line2D]:
    if voids.empty:
        return {}
    minute = voids.started_s / 60 if "started_s" in voids else voids.block.map(blocks.mean(axis=1))
    minute = minute.dropna()
    mark: dict[str, Any] = {"color": theme.INK, "marker": "X", "markersize": 7, "linestyle": ""}
    axes.plot(minute, [axes.get_ylim()[0]] * len(minute), clip_on=False, zorder=5, **mark)
    return {"voided": Line2D([], [], **mark)}


def _told(order: pd.DataFrame, voids: pd.DataFrame) -> str:
    worst = order.loc[order.change.abs().idxmax()]
    blocks = numbers.count(order.block.nunique(), "block")
    length = numbers.minutes(order.minute.max())
    voided = numbers.count(len(voids), "voided attempt")
    middle = numbers.decimal(order.change.abs().median())
    cell = f"{worst.arm}, {worst.workload}, {numbers.count(int(worst.threads), 'thread')}"
    return (
        f"{numbers.count(len(order), 'run')} in {blocks} over {length}; {voided}. Half of the runs lie "
        f"within {middle} % of their cell's mean. Farthest: {cell}, block {worst.block}, "
        f"{numbers.decimal(worst.change, 1, True)} %."
    )
