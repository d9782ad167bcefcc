"""Figures over thread levels: throughput, latency, and what each part used of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator, StrMethodFormatter

from benchbook.show import numbers, theme
from benchbook.show.picture import Panel, Picture

_PARTS = {"client": "cpu_client_cores", "proxy": "cpu_proxy_cores", "server": "cpu_server_cores"}


def qps(runs: pd.DataFrame, arms: Sequence[str]) -> Picture:
    """Draw queries per second over threads, a panel a workload: runs as points, geometric means as a line."""
    panels = []
    for workload, part in runs.groupby("workload", sort=True):
        with theme.style():
            figure, axes = theme.canvas()
            present = _lines(axes, part, arms, "qps", "-", True)
            axes.set_title(theme.short(workload), pad=6)
            axes.set_ylabel("queries per second")
            axes.set_ylim(0, 1.08 * part["qps"].max())
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            theme.legend(figure, present, arms)
        text = f"{workload}, queries per second. {_told(part, present, 'qps')}"
        panels.append(Panel(figure, text))
    return Picture(
        "throughput",
        "Throughput by threads",
        tuple(panels),
        "Every point is one run; the line joins the geometric means of the runs at each thread count.",
    )


def latency(runs: pd.DataFrame, arms: Sequence[str]) -> Picture:
    """Draw the 95th and 99th latency percentile in ms over threads, one panel a workload, runs as points.

    A workload whose runs have no percentile is left out.
    """
    panels = []
    for workload, part in runs.groupby("workload", sort=True):
        if part[["latency_p95_ms", "latency_p99_ms"]].isna().all(axis=None):
            continue
        with theme.style():
            figure, axes = theme.canvas()
            present = _lines(axes, part, arms, "latency_p95_ms", "-", True)
            _lines(axes, part, arms, "latency_p99_ms", (0, (3, 2)), False)
            axes.set_yscale("log")
            axes.set_title(theme.short(workload), pad=6)
            axes.set_ylabel("latency, ms")
            theme.round_log(axes.yaxis)
            dashes: dict[str, Any] = {"p95": "-", "p99": (0, (3, 2))}
            lines = {
                rank: Line2D([], [], color=theme.MUTED, linewidth=1.4, linestyle=style)
                for rank, style in dashes.items()
                if part[f"latency_{rank}_ms"].notna().any()
            }
            theme.legend(figure, present, arms, **lines)
        said = {rank: _told(part, present, f"latency_p{rank}_ms", " ms") for rank in (95, 99)}
        text = " ".join(f"p{rank}: {told}" for rank, told in said.items() if told)
        panels.append(Panel(figure, f"{workload}, latency. {text}"))
    return Picture(
        "latency",
        "Latency by threads",
        tuple(panels),
        "Each arm at its own speed: a closed loop begins the next transaction when the last one is done, so "
        "these percentiles describe the runs and are no finding. Solid: 95th percentile, filled points. "
        "Dashed: 99th, hollow points.",
    )


def cpu(runs: pd.DataFrame, arms: Sequence[str]) -> Picture:
    """Draw the mean cores of client, proxy and server, a bar for each thread count and arm."""
    panels = []
    for workload, part in runs.groupby("workload", sort=True):
        means = part.groupby(["threads", "arm"])[[*_PARTS.values(), "cpu_machine_pct"]].mean()
        bars = [
            (level, arm)
            for level in sorted(part["threads"].unique())
            for arm in arms
            if (level, arm) in means.index
        ]
        if means[list(_PARTS.values())].isna().all(axis=None):
            continue
        with theme.style():
            figure, axes = theme.canvas(theme.WIDTH, 0.95 + 0.25 * len(bars))
            _stack(axes, means, bars)
            axes.set_title(theme.short(workload), pad=6)
            handles = [
                Line2D([], [], linestyle="", marker="s", markersize=8, color=shade)
                for shade in theme.PARTS.values()
            ]
            figure.legend(handles, list(theme.PARTS), loc="outside upper left", ncols=3, handletextpad=0.2)
        panels.append(Panel(figure, f"{workload}, mean CPU cores. {_cores_told(means, bars)}"))
    return Picture(
        "cpu",
        "Who used the CPU",
        tuple(panels),
        "Mean cores each part kept busy; bars are named by arm and threads. The number behind a bar is the "
        "use of the whole machine, everything else on it included.",
    )


def _lines(
    axes: Axes, part: pd.DataFrame, arms: Sequence[str], column: str, dashes: object, is_filled: bool
) -> list[str]:
    """Draw one column over threads for every arm that has it; return those arms."""
    # A second to import, and pages without such a figure import this module too.
    import seaborn as sns

    part = part[part[column].notna() & (part[column] > 0)]
    present = [arm for arm in arms if arm in set(part["arm"])]
    for arm in present:
        own = part[part["arm"] == arm]
        aside = own.assign(threads=own["threads"] * _aside(present, arm))
        shade = theme.colour(arm, arms)
        sns.lineplot(
            aside,
            x="threads",
            y=column,
            estimator=_geometric_mean,
            errorbar=None,
            color=shade,
            linewidth=1.5,
            linestyle=dashes,
            ax=axes,
            legend=False,
            zorder=2,
        )
        sns.scatterplot(
            aside,
            x="threads",
            y=column,
            color=shade if is_filled else theme.PAPER,
            s=22,
            alpha=0.75,
            marker=theme.marker(arm, arms),
            edgecolor=theme.PAPER if is_filled else shade,
            ax=axes,
            linewidth=0.5 if is_filled else 1,
            legend=False,
            zorder=3,
        )
    _thread_axis(axes, sorted(part["threads"].unique()))
    return present


def _aside(present: Sequence[str], arm: str) -> float:
    """Return by what threads are multiplied so that equal points of several arms do not hide each other."""
    return 1.05 ** (present.index(arm) - (len(present) - 1) / 2)


def _thread_axis(axes: Axes, levels: Sequence[int]) -> None:
    if not levels:
        return
    axes.set_xscale("log")
    axes.set_xlabel("threads")
    axes.set_xlim(levels[0] / 1.4, levels[-1] * 1.4)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(levels, [f"{level:,}" for level in levels])


def _geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _told(part: pd.DataFrame, arms: Sequence[str], column: str, unit: str = "") -> str:
    """Say the geometric mean of every arm at every thread count."""
    known = part[part[column].notna() & (part[column] > 0)]
    sentences = []
    for arm in arms:
        means = known[known["arm"] == arm].groupby("threads")[column].agg(_geometric_mean)
        values = [
            f"{numbers.significant(value)}{unit} at {numbers.count(threads, 'thread')}"
            for threads, value in means.items()
        ]
        if values:
            sentences.append(f"{arm}: {', '.join(values)}.")
    return " ".join(sentences)


def _stack(axes: Axes, means: pd.DataFrame, bars: Sequence[tuple[int, str]]) -> None:
    ends = np.zeros(len(bars))
    levels = [threads for threads, _ in bars]
    places = np.arange(len(bars)) + 0.45 * np.searchsorted(np.unique(levels), levels)
    for name, column in _PARTS.items():
        widths = np.array([means.loc[bar, column] for bar in bars], dtype=float)
        widths = np.nan_to_num(widths)
        axes.barh(places, widths, left=ends, height=0.72, color=theme.PARTS[name], linewidth=0)
        ends += widths
    for y, bar, end in zip(places, bars, ends, strict=True):
        share = means.loc[bar, "cpu_machine_pct"]
        if not np.isnan(share):
            axes.annotate(
                f"{share:.0f} %",
                (end, y),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=theme.SMALLEST,
                color=theme.MUTED,
            )
    axes.set_yticks(places, [f"{theme.short(arm, 18)} · {threads}" for threads, arm in bars])
    axes.tick_params(axis="y", labelcolor=theme.INK, labelsize=8.5)
    axes.set_ylim(places[-1] + 0.6, -0.6)
    axes.set_xlim(0, 1.12 * max(ends.max(), 0.1))
    axes.set_xlabel("cores")
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", visible=True)
    axes.spines["left"].set_visible(False)


def _cores_told(means: pd.DataFrame, bars: Sequence[tuple[int, str]]) -> str:
    sentences = []
    for threads, arm in bars:
        row = means.loc[(threads, arm)]
        parts = [f"{name} {row[column]:.2f}" for name, column in _PARTS.items() if not np.isnan(row[column])]
        whole = "" if np.isnan(row["cpu_machine_pct"]) else f", machine {row['cpu_machine_pct']:.0f} %"
        sentences.append(
            f"{arm} at {numbers.count(threads, 'thread')}: {', '.join(parts) or 'not recorded'}{whole}."
        )
    return " ".join(sentences)
