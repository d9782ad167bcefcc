"""The figures of runs by name. Each function takes tidy tables and returns a `Picture`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
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


STALL_SHARE = 0.1


def seconds(
    intervals: pd.DataFrame, runs: pd.DataFrame, arms: Sequence[str], threads: int | None = None
) -> Picture:
    """Draw the one-second series of all runs at one thread count, the highest unless given, by workload.

    A stall is a measured second under a tenth of its run's own median; it is marked at the bottom. Not for
    runs of turns: a second of theirs is shared by all arms.
    """
    panels = []
    for name, chosen in _cells(runs, threads):
        series = intervals.drop(columns="threads").merge(chosen[["run_id", "arm"]], on="run_id")
        if series.empty:
            continue
        series = series.assign(is_stall=_stalls(series))
        present = by_arm(series, arms)
        with theme.style():
            figure, axes = theme.canvas()
            for arm, own in present.items():
                _lines(axes, own, theme.colour(arm, arms))
            _discard(axes, float(chosen.discard_s.max()))
            axes.set_ylim(0, 1.08 * series.qps.max())
            axes.set_xlim(0, series.second.max() + 0.5)
            axes.set_title(theme.short(name, 44), pad=6)
            axes.set_xlabel("seconds since the run began")
            axes.set_ylabel("queries per second")
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            stall = Line2D([], [], linestyle="", marker="v", color=theme.INK, markersize=6)
            theme.legend(figure, [*present], arms, **({"stall": stall} if series.is_stall.any() else {}))
        text = " ".join(_told_seconds(own, arm) for arm, own in present.items())
        panels.append(Panel(figure, f"{name}, queries in each second. {text}"))
    caption = "One line a run. A triangle marks a stall: a second with less than a tenth of its run's median."
    return Picture("seconds", "Second by second", tuple(panels), caption)


def _cells(runs: pd.DataFrame, threads: int | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Give each workload's runs at the thread count asked for, or its highest, with a name for both."""
    for workload, part in runs.groupby("workload", sort=True):
        level = threads or int(part.threads.max())
        yield f"{workload}, {numbers.count(level, 'thread')}", part[part.threads == level]


def _stalls(series: pd.DataFrame) -> pd.Series:
    measured = series.qps.where(~series.is_discarded.astype(bool))
    return measured < STALL_SHARE * measured.groupby(series.run_id).transform("median")


def _lines(axes: Axes, own: pd.DataFrame, colour: str) -> None:
    for _, run in own.sort_values("second").groupby("run_id", sort=True):
        axes.plot(run.second, run.qps, color=colour, linewidth=1, alpha=0.65)
    stalls = own[own.is_stall].second
    axes.plot(stalls, [0] * len(stalls), "v", color=colour, markersize=7, clip_on=False, zorder=5)


def _discard(axes: Axes, discard_s: float) -> None:
    if discard_s > 0:
        axes.axvspan(0, discard_s, color=theme.ZONE, zorder=0, linewidth=0)
        theme.corner(axes, "discarded", 0)


def _told_seconds(own: pd.DataFrame, arm: str) -> str:
    measured = own[~own.is_discarded.astype(bool)].qps
    middle, slowest = numbers.significant(measured.median()), numbers.significant(measured.min())
    stalled = numbers.count(int(own.is_stall.sum()), "stalled second")
    return f"{arm}: median {middle}, slowest second {slowest}, {stalled}."
