"""Figures of what happened over time and inside runs: the order of runs, single seconds, single queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import StrMethodFormatter

from benchbook.show import numbers, theme
from benchbook.show.picture import Panel, Picture

STALL_SHARE = 0.1
_BUCKETS_A_STEP = 8


def run_order(runs: pd.DataFrame, voids: pd.DataFrame, arms: Sequence[str]) -> Picture:
    """Draw every run's throughput against its cell's geometric mean in order of time, with voided attempts marked.

    A drift of the machine shows as a slope that all arms share. Voided attempts have no throughput: they stand at the
    bottom, at their `started_s` if the table has it, else in the middle of their block.
    """
    if runs.empty:
        return Picture("run-order", "The runs in order of time", (), "")
    order = runs.sort_values("started_s", kind="stable")
    cell = order.groupby(["workload", "threads", "arm"])["qps"]
    change = 100 * (order["qps"] / cell.transform(lambda values: np.exp(np.log(values).mean())) - 1)
    order = order.assign(minute=order["started_s"] / 60, change=change)
    blocks = order.groupby("block")["minute"].agg(["min", "max"])
    with theme.style():
        figure, axes = theme.canvas(6.2, 3.0)
        present = [arm for arm in arms if arm in set(order["arm"])]
        for arm in present:
            own = order[order["arm"] == arm]
            axes.plot(own["minute"], own["change"], theme.marker(arm, arms), color=theme.colour(arm, arms), markersize=5,
                      markeredgecolor=theme.PAPER, markeredgewidth=0.6, alpha=0.9)
        axes.axhline(0, color=theme.MUTED, linewidth=0.9, zorder=1)
        for block, ends in blocks.iterrows():
            if len(blocks) <= 12 or block % 5 == 0:
                axes.annotate(f"block {block}" if len(blocks) <= 6 else f"{block}", (ends["min"], 1), xytext=(3, -3),
                              xycoords=("data", "axes fraction"), textcoords="offset points", va="top", fontsize=8,
                              color=theme.MUTED)
            axes.axvline(ends["min"], color=theme.RULE, linewidth=0.8, zorder=0)
        low, high = axes.get_ylim()
        axes.set_ylim(low - 0.1 * (high - low), high + 0.12 * (high - low))
        extra = _voids(axes, voids, blocks)
        axes.set_xlabel("minutes since the first run")
        axes.set_ylabel("difference from its cell's mean, %")
        theme.legend(figure, present, arms, **extra)
    worst = order.loc[order["change"].abs().idxmax()]
    told = (f"{numbers.count(len(order), 'run')} in {numbers.count(len(blocks), 'block')} over "
            f"{numbers.minutes(order['minute'].max())}; {numbers.count(len(voids), 'voided attempt')}. Half of the runs lie "
            f"within {change.abs().median():.1f} % of their cell's mean. Farthest: {worst['arm']}, {worst['workload']}, "
            f"{numbers.count(int(worst['threads']), 'thread')}, block {worst['block']}, {numbers.decimal(worst['change'], 1, True)} %.")
    caption = ("Each run against the mean of its own cell (same arm, workload and threads). A slope shared by all arms is the "
               "machine drifting, which pairs cancel. Crosses at the bottom are voided attempts.")
    return Picture("run-order", "The runs in order of time", (Panel(figure, told),), caption)


def _voids(axes: Axes, voids: pd.DataFrame, blocks: pd.DataFrame) -> dict[str, Line2D]:
    if voids.empty:
        return {}
    minute = voids["started_s"] / 60 if "started_s" in voids else voids["block"].map(blocks.mean(axis=1))
    minute = minute.dropna()
    bottom = axes.get_ylim()[0]
    axes.plot(minute, np.full(len(minute), bottom), "X", color=theme.INK, markersize=7, clip_on=False, zorder=5)
    return {"voided": Line2D([], [], linestyle="", marker="X", color=theme.INK, markersize=7)}


def seconds(intervals: pd.DataFrame, runs: pd.DataFrame, arms: Sequence[str], threads: int | None = None) -> Picture:
    """Draw the one-second series of all runs at one thread count (the highest unless given), one panel a workload.

    A stall is a measured second under a tenth of its run's own median; it is marked at the bottom.
    """
    panels = []
    for workload, part in runs.groupby("workload", sort=True):
        chosen = part[part["threads"] == (threads or part["threads"].max())]
        series = intervals.merge(chosen[["run_id", "arm", "threads"]], on="run_id", suffixes=("_line", ""))
        if series.empty:
            continue
        kept = series[~series["is_discarded"].astype(bool)]
        series = series.assign(is_stall=_stalls(series))
        with theme.style():
            figure, axes = theme.canvas()
            present = [arm for arm in arms if arm in set(series["arm"])]
            for arm in present:
                _series(axes, series[series["arm"] == arm], theme.colour(arm, arms))
            axes.set_ylim(0, 1.08 * series["qps"].max())
            axes.set_xlim(0, series["second"].max() + 0.5)
            discard = chosen["discard_s"].max()
            if discard > 0:
                axes.axvspan(0, discard, color=theme.ZONE, zorder=0, linewidth=0)
                axes.annotate("discarded", (0, 1), xytext=(3, -3), xycoords=("data", "axes fraction"), va="top",
                              textcoords="offset points", fontsize=8, color=theme.MUTED)
            axes.set_title(f"{theme.short(workload)}, {numbers.count(int(chosen['threads'].iloc[0]), 'thread')}", pad=6)
            axes.set_xlabel("seconds since the run began")
            axes.set_ylabel("queries per second")
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            stall = Line2D([], [], linestyle="", marker="v", color=theme.INK, markersize=6)
            theme.legend(figure, present, arms, **({"stall": stall} if series["is_stall"].any() else {}))
        told = " ".join(f"{arm}: median {numbers.significant(own['qps'].median())}, slowest second "
                        f"{numbers.significant(own['qps'].min())}, "
                        f"{numbers.count(int(series.loc[series['arm'] == arm, 'is_stall'].sum()), 'stalled second')}."
                        for arm, own in ((arm, kept[kept["arm"] == arm]) for arm in present))
        panels.append(Panel(figure, f"{workload} at {numbers.count(int(chosen['threads'].iloc[0]), 'thread')}, queries in each second. {told}"))
    return Picture("seconds", "Second by second", tuple(panels),
                   "One line a run. A triangle marks a stall: a second with less than a tenth of its run's median.")


def _stalls(series: pd.DataFrame) -> pd.Series:
    measured = series["qps"].where(~series["is_discarded"].astype(bool))
    return measured < STALL_SHARE * measured.groupby(series["run_id"]).transform("median")


def _series(axes: Axes, own: pd.DataFrame, colour: str) -> None:
    for _, run in own.sort_values("second").groupby("run_id", sort=True):
        axes.plot(run["second"], run["qps"], color=colour, linewidth=1, alpha=0.65)
    stalls = own[own["is_stall"]]
    axes.plot(stalls["second"], np.zeros(len(stalls)), "v", color=colour, markersize=7, clip_on=False, zorder=5)


def histogram(histograms: pd.DataFrame, runs: pd.DataFrame, arms: Sequence[str], threads: int | None = None) -> Picture:
    """Draw how long queries took, all runs of an arm added up, at one thread count, one panel a workload.

    Counts of sysbench's buckets add exactly; eight neighbours (15 %) are drawn as one step.
    """
    panels = []
    for workload, part in runs.groupby("workload", sort=True):
        chosen = part[part["threads"] == (threads or part["threads"].max())]
        counts = histograms.merge(chosen[["run_id", "arm"]], on="run_id")
        if counts.empty:
            continue
        present, told = [arm for arm in arms if arm in set(counts["arm"])], []
        with theme.style():
            figure, axes = theme.canvas()
            for arm in present:
                own = counts[counts["arm"] == arm].groupby(["bucket", "value_ms"], as_index=False)["count"].sum()
                told.append(_steps(axes, own, arm, theme.colour(arm, arms)))
            axes.set_xscale("log")
            axes.set_ylim(bottom=0)
            axes.set_title(f"{theme.short(workload)}, {numbers.count(int(chosen['threads'].iloc[0]), 'thread')}", pad=6)
            axes.set_xlabel("latency, ms")
            axes.set_ylabel("share of transactions, %")
            theme.round_log(axes.xaxis)
            theme.legend(figure, present, arms, p99=Line2D([], [], color=theme.MUTED, linewidth=1, linestyle=":"))
        panels.append(Panel(figure, f"{workload} at {numbers.count(int(chosen['threads'].iloc[0]), 'thread')}, latency in ms. {' '.join(told)}"))
    return Picture("histogram", "How long transactions took", tuple(panels),
                   "All runs of an arm added up, at the highest thread count. The dotted line is the 99th percentile.")


def _steps(axes: Axes, own: pd.DataFrame, arm: str, colour: str) -> str:
    steps = own.assign(step=own["bucket"] // _BUCKETS_A_STEP).groupby("step")["count"].sum()
    steps = steps.reindex(range(steps.index.min() - 1, steps.index.max() + 2), fill_value=0)
    # sysbench's grid: bucket 0 is 0.001 ms, bucket 1023 is 100,000 ms, equal steps in the logarithm.
    edges = 1e-3 * np.exp(np.log(1e8) / 1023 * (_BUCKETS_A_STEP * np.append(steps.index, steps.index[-1] + 1) - 0.5))
    share = 100 * steps.to_numpy() / steps.sum()
    axes.stairs(share, edges, color=colour, linewidth=1.5)
    axes.stairs(share, edges, color=colour, alpha=0.12, fill=True)
    p50, p99 = percentile(own, 50), percentile(own, 99)
    axes.axvline(p99, color=colour, linewidth=1, linestyle=":")
    return f"{arm}: half of them within {numbers.significant(p50)} ms, 99 % within {numbers.significant(p99)} ms."


def percentile(counts: pd.DataFrame, rank: int) -> float:
    """Give a percentile of added-up buckets by sysbench's rule: the first bucket that reaches floor(n rank/100 + 0.5)."""
    ordered = counts.sort_values("bucket")
    wanted = np.floor(ordered["count"].sum() * rank / 100 + 0.5)
    return float(ordered["value_ms"].iloc[int(np.searchsorted(ordered["count"].cumsum(), wanted))])
