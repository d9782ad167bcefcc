"""The figures of runs by name. Each function takes tidy tables and returns a `Picture`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator, StrMethodFormatter

from benchbook.compare import machines, words
from benchbook.compare.seconds import STALL_SHARE
from benchbook.compare.turns import orders
from benchbook.core import paths
from benchbook.core.findings import Findings, Rungs
from benchbook.core.turns import TURNS
from benchbook.show import causes, curves, forest, numbers, sessions, theme
from benchbook.show.evidence import Evidence
from benchbook.show.picture import Panel, Picture, by_arm
from benchbook.show.shape import badge
from benchbook.show.table import Column, Table, long, number


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
        axes.annotate(
            *("discarded", (0, 1), (3, -3)), xycoords=("data", "axes fraction"), textcoords="offset points",
            va="top", fontsize=theme.SMALLEST, color=theme.MUTED,
        )  # fmt: skip


def _told_seconds(own: pd.DataFrame, arm: str) -> str:
    measured = own[~own.is_discarded.astype(bool)].qps
    middle, slowest = numbers.significant(measured.median()), numbers.significant(measured.min())
    stalled = numbers.count(int(own.is_stall.sum()), "stalled second")
    return f"{arm}: median {middle}, slowest second {slowest}, {stalled}."


def of_effects(seen: Evidence) -> list[object]:
    """Draw the effects of a study, over its recorded sessions if it is recorded, and say below why."""
    found, several = seen.findings, sessions.several(seen)
    earlier = sessions.earlier(several) if several else ()
    lines, told = curves.over_sessions(several) if several else curves.of_findings(found.findings)
    drawn = (
        forest.over_sessions(several, told) if several else forest.of_findings(found.findings, found.aa, told)
    )
    shown = [one for one in (lines, drawn if drawn.rows or not lines else None) if one is not None]
    processors = [one.processor for one in several.sessions if one.id == paths.root().name] if several else []
    return [*shown, *causes.shown(found, earlier, *map(machines.name, processors))]


def beside_effects(seen: Evidence) -> list[object]:
    """Return what else there is on effects: session by session, the ladder, what a query cost each part."""
    found = seen.findings
    own = [forest.of_findings(found.findings, found.aa)] if sessions.several(seen) else []
    return [
        *sessions.shown(seen),
        *own,
        *ladder(found),
        *causes.tables(found),
        *percentiles(found),
    ]


def of_runs(seen: Evidence) -> list[Picture]:
    """Draw what the runs of a study show.

    Throughput over threads takes several levels. In turns a second holds the turns of all arms, so its series
    tells nothing of one.
    """
    drawn, names = seen.drawn
    found = [qps(drawn, names)] if drawn.threads.nunique() > 1 else []
    is_shared = (orders(drawn) == TURNS).any()
    return [*found, *([] if is_shared else [seconds(seen.intervals, drawn, names)])]


_CAPTION = (
    "A pause of the machine makes many queries late at once. Pauses are counted as seconds, or several in a "
    "row, that hold what lies beyond the percentile of their run. Where one alone made it, it says more of "
    "the machine than of the arm."
)


def percentiles(findings: Findings) -> list[Table]:
    """Return the table, or nothing where no percentile was compared."""
    arms = words.labels(findings, "arms")
    rows = [
        [
            words.of(found, "workload"),
            words.metric(found.metric),
            arms.get(one.arm, one.arm),
            one.runs,
            one.events_beyond,
            *("not known" if many is None else many for many in (one.pauses, one.by_one_pause)),
        ]
        for found in findings.findings
        for one in found.support or ()
    ]
    columns = [
        long("Workload"), Column("Percentile"), Column("Arm"), number("Runs"),
        number("Events beyond", "at least, in a run"), number("Pauses", "in all runs"),
        number("By one pause alone", "runs"),
    ]  # fmt: skip
    title = "What percentiles rest on"
    return [Table("percentiles", title, columns, rows, _CAPTION)] if rows else []


_QUESTIONS = {
    "against_first": "against the first",
    "against_neighbour": "against its neighbour",
    "pairs": "among all pairs",
}
CAPTION = (
    "Each pair of arms, the later one against the earlier one. A label is decided within its own "
    "question with "
    "Holm's correction: against the first arm, against the neighbour, and among all pairs, which "
    "asks for the most "
    "evidence. The best arm is decided among all pairs."
)


def ladder(findings: Findings) -> list[object]:
    """Return the figure and the tables of a study's ladder; nothing where it has none."""
    own = findings.ladder
    if not own:
        return []
    tables = [_table(found, place) for place, found in enumerate(own.workloads, 1)]
    skipped = f" Without any run: {numbers.listing(own.skipped)}." if own.skipped else ""
    if not tables:
        empty = f"Too few arms of the ladder have runs.{skipped}"
        return [Table("ladder", "From the first arm to the last", [Column("Arm")], [], empty=empty)]
    return [*map(forest.ladder, own.workloads), *tables]


def _table(found: Rungs, place: int) -> Table:
    label = {
        question: {(one.baseline, one.treatment): one.label for one in getattr(found, question)}
        for question in _QUESTIONS
    }
    rows = [
        [
            f"{words.of(one, 'treatment')} against {words.of(one, 'baseline')}",
            numbers.effect(one),
            numbers.span(one.low, one.high) if one.headline else "",
            one.n,
            *(
                badge(own[pair]) if (pair := (one.baseline, one.treatment)) in own else ""
                for own in label.values()
            ),
        ]
        for one in found.pairs
    ]
    levels = numbers.listing([numbers.level(one) for one in sorted({one.level for one in found.pairs})])
    columns = [
        long("Pair"), number("Effect"), number("Interval", levels), number("n", "blocks"),
        *(Column(text.capitalize()) for text in _QUESTIONS.values()),
    ]  # fmt: skip
    workload = words.of(found.pairs[0], "workload")
    title = f"The ladder on {workload}, {words.metric(found.metric)}"
    return Table(f"ladder-{place}", title, columns, rows, f"{found.sentence} {CAPTION}", is_whole=True)
