"""Throughput over thread levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator, StrMethodFormatter

from benchbook.show import numbers, theme
from benchbook.show.picture import Panel, Picture, by_arm


def qps(runs: pd.DataFrame, arms: Sequence[str]) -> Picture:
    """Draw queries per second over threads, a panel a workload: runs as points, geometric means as a line."""
    panels = []
    for workload, part in runs[runs.qps > 0].groupby("workload", sort=True):
        of_arms = by_arm(part, arms)
        present = [*of_arms]
        means = {arm: _means(own) for arm, own in of_arms.items()}
        with theme.style():
            figure, axes = theme.canvas()
            for arm, own in of_arms.items():
                _line(axes, own, means[arm], arm, present, arms)
            _thread_axis(axes, sorted(part.threads.unique()))
            axes.set_title(theme.short(workload), pad=6)
            axes.set_ylabel("queries per second")
            axes.set_ylim(0, 1.08 * part.qps.max())
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            theme.legend(figure, present, arms)
        told = " ".join(_told(arm, own) for arm, own in means.items())
        panels.append(Panel(figure, f"{workload}, queries per second. {told}"))
    return Picture(
        "throughput",
        "Throughput by threads",
        tuple(panels),
        "Every point is one run; the line joins the geometric means of the runs at each thread count.",
    )


def _line(
    axes: Axes, own: pd.DataFrame, means: pd.Series, arm: str, present: Sequence[str], arms: Sequence[str]
) -> None:
    # Equal points of several arms stand beside each other.
    aside = 1.05 ** (present.index(arm) - (len(present) - 1) / 2)
    shade = theme.colour(arm, arms)
    axes.plot(means.index * aside, means, color=shade, linewidth=1.5, zorder=2)
    axes.plot(
        own.threads * aside, own.qps, theme.marker(arm, arms), color=shade, markersize=4.5, alpha=0.75,
        markeredgecolor=theme.PAPER, markeredgewidth=0.5, zorder=3,
    )  # fmt: skip


def _means(own: pd.DataFrame) -> pd.Series:
    return np.exp(np.log(own.qps).groupby(own.threads).mean())


def _thread_axis(axes: Axes, levels: Sequence[int]) -> None:
    axes.set_xscale("log")
    axes.set_xlabel("threads")
    axes.set_xlim(levels[0] / 1.4, levels[-1] * 1.4)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(levels, [f"{level:,}" for level in levels])


def _told(arm: str, means: pd.Series) -> str:
    """Say the geometric mean of an arm at every thread count."""
    told = [f"{numbers.significant(one)} at {numbers.count(level, 'thread')}" for level, one in means.items()]
    return f"{arm}: {', '.join(told)}."
