"""The figures of runs by name. Each function takes tidy tables and returns a `Picture`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullLocator

from benchbook.compare.bottlenecks.load_curve import build_load_curve
from benchbook.compare.stats.stalls import STALL_SHARE
from benchbook.compare.text import labels as labels_module
from benchbook.compare.text.cpu_models import name_processor
from benchbook.core.artifacts.findings import Findings
from benchbook.core.artifacts.meta_analysis import read_pooled
from benchbook.core.study.interleaving import TURNS
from benchbook.core.util import number_format, paths
from benchbook.core.util.errors import require_value
from benchbook.core.util.number_format import format_count, format_significant
from benchbook.core.util.plural import count
from benchbook.show import bottleneck_section, curves, forest, sessions, theme
from benchbook.show.evidence import ReportInputs
from benchbook.show.picture import Panel, Picture, by_arm
from benchbook.show.table import Table, build_table
from benchbook.show.tables import format_confidence


def draw_throughput(runs: pd.DataFrame, arms: Sequence[str]) -> Picture:
    """Draw queries per second over threads, a panel a workload: runs as points, geometric means as a line."""
    panels = []
    for workload, part in runs[runs.qps > 0].groupby("workload", sort=True):
        present, report = by_arm(part, arms), []
        with theme.figure_style():
            figure, axes = theme.make_canvas()
            for place, (arm, of_arm) in enumerate(present.items()):
                means = np.exp(np.log(of_arm.qps).groupby(of_arm.threads).mean())
                # Equal points of several arms stand beside each other.
                aside, shade = 1.05 ** (place - (len(present) - 1) / 2), theme.colour_of_arm(arm, arms)
                axes.plot(means.index * aside, means, color=shade, zorder=2)
                axes.plot(
                    of_arm.threads * aside, of_arm.qps, theme.marker_of_arm(arm, arms), color=shade,
                    alpha=0.75, markeredgecolor=theme.PAPER, markeredgewidth=0.5, zorder=3,
                )  # fmt: skip
                at = [f"{format_significant(y)} at {format_count(x, 'thread')}" for x, y in means.items()]
                report.append(f"{arm}: {', '.join(at)}.")
            levels = sorted(part.threads.unique())
            axes.set(xscale="log", xlabel="threads", xlim=(levels[0] / 1.4, levels[-1] * 1.4))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xticks(levels, [f"{level:,}" for level in levels])
            axes.set(title=theme.shorten_name(workload), ylabel="queries per second")
            axes.set_ylim(0, 1.08 * part.qps.max())
            axes.yaxis.set_major_formatter("{x:,.0f}")
            theme.draw_legend(figure, [*present], arms)
        panels.append(Panel(figure, f"{workload}, queries per second. {' '.join(report)}"))
    caption = "Every point is one run; the line joins the geometric means of the runs at each thread count."
    return Picture("throughput", "Throughput by threads", tuple(panels), caption)


def draw_seconds(intervals: pd.DataFrame, runs: pd.DataFrame, arms: Sequence[str]) -> Picture:
    """Draw each second of runs at a workload's most threads; a stall is under a tenth of the run's median."""
    panels = []
    for workload, part in runs.groupby("workload", sort=True):
        chosen = part[part.threads == part.threads.max()]
        name = f"{workload}, {format_count(int(part.threads.max()), 'thread')}"
        series = intervals.drop(columns="threads").merge(chosen[["run_id", "arm"]], on="run_id")
        if series.empty:
            continue
        measured = series.qps.where(~series.is_discarded.astype(bool))
        usual = measured.groupby(series.run_id).transform("median")
        series = series.assign(is_stall=measured < STALL_SHARE * usual)
        present, report = by_arm(series, arms), []
        with theme.figure_style():
            figure, axes = theme.make_canvas()
            for arm, of_arm in present.items():
                shade, stalls = theme.colour_of_arm(arm, arms), of_arm[of_arm.is_stall].second
                for _, run in of_arm.sort_values("second").groupby("run_id", sort=True):
                    axes.plot(run.second, run.qps, color=shade, linewidth=1, alpha=0.65)
                axes.plot(stalls, [0] * len(stalls), "v", color=shade, markersize=7, clip_on=False, zorder=5)
                counted = of_arm[~of_arm.is_discarded.astype(bool)].qps
                middle, slowest = map(format_significant, (counted.median(), counted.min()))
                many = format_count(len(stalls), "stalled second")
                report.append(f"{arm}: median {middle}, slowest second {slowest}, {many}.")
            _shade_discard(axes, float(chosen.discard_s.max()))
            axes.set(ylim=(0, 1.08 * series.qps.max()), xlim=(0, series.second.max() + 0.5))
            axes.set(title=theme.shorten_name(name, 44), ylabel="queries per second")
            axes.set_xlabel("seconds since the run began")
            axes.yaxis.set_major_formatter("{x:,.0f}")
            stall = Line2D([], [], linestyle="", marker="v", color=theme.INK, markersize=6)
            theme.draw_legend(figure, [*present], arms, **({"stall": stall} if series.is_stall.any() else {}))
        panels.append(Panel(figure, f"{name}, queries in each second. {' '.join(report)}"))
    caption = "One line a run. A triangle marks a stall: a second with less than a tenth of its run's median."
    return Picture("seconds", "Second by second", tuple(panels), caption)


def _shade_discard(axes: Axes, discard_s: float) -> None:
    if discard_s > 0:
        axes.axvspan(0, discard_s, color=theme.ZONE, zorder=0, linewidth=0)
        axes.annotate(
            *("discarded", (0, 1), (3, -3)), xycoords=("data", "axes fraction"), textcoords="offset points",
            va="top", fontsize=theme.SMALLEST, color=theme.MUTED,
        )  # fmt: skip


def of_effects(report_inputs: ReportInputs) -> list[object]:
    """Draw the effects of a study (over its sessions if it is recorded), with the causes below."""
    findings, recorded = report_inputs.findings, sessions.pooled_sessions(report_inputs)
    earlier: list[tuple[str, str, Findings]] = []
    processors: list[str] = []
    if recorded:
        earlier, here = sessions.earlier_sessions(recorded), paths.find_root().name
        processors = [name_processor(each.processor) for each in recorded.sessions if each.id == here]
        lines, drawn = curves.over_sessions(recorded)
        rest = forest.over_sessions(recorded, drawn)
    else:
        lines, drawn = curves.of_findings(findings.findings)
        rest = forest.of_findings(findings.findings, findings.aa, drawn)
    return [
        *([lines] if lines else []),
        *([rest] if rest.rows or not lines else []),
        *draw_load_curves(report_inputs),
        *bottleneck_section.render_section(findings, earlier, *processors),
    ]


_CURVES: dict[str, dict[str, tuple[str, Any]]] = {
    "busy cores": {
        f"cpu_{part}_cores": (part, style) for part, style in zip(theme.PARTS, (":", "--", "-"), strict=True)
    },
    "latency, ms": {"latency_p50_ms": ("median", "-"), "latency_p99_ms": ("p99", "--")},
}


def draw_load_curves(report_inputs: ReportInputs) -> list[Picture]:
    """Draw busy cores of each part and latency against the offered rate; none below three rates."""
    findings = report_inputs.findings
    if not (report_inputs.runs.rate > 0).any():
        return []
    curve = build_load_curve(findings.causes, report_inputs.runs, report_inputs.histograms)
    if curve.empty:
        return []
    names, arms = labels_module.label_by_name(findings, "workloads"), [*report_inputs.named.values()]
    # The workloads of a curve differ in their rate, and in the key that their names have in brackets.
    place = [
        f"{names[row.workload].removesuffix(f' ({row.workload})')}, {count(row.threads, 'thread')}"
        for row in curve.itertuples()
    ]
    curve = curve.assign(place=place, arm=curve.arm.map(report_inputs.named))
    curve = curve[~curve.arm.map(theme.is_again)]
    panels = [
        _draw_load_panel(f"{name}: {quantity}", part[part.metric.isin(styles)], styles, arms)
        for name, part in curve.groupby("place", sort=False)
        for quantity, styles in _CURVES.items()
    ]
    caption = (
        "Offered rate: what the client was told to send, whether or not answers came. Latency is from the "
        "histograms of all blocks added up. Whiskers: "
        f"{number_format.format_level(require_value(findings.causes).level)} intervals over blocks."
    )
    return [Picture("load-curve", "CPU and latency against the offered rate", tuple(panels), caption)]


def _draw_load_panel(
    name: str, curve: pd.DataFrame, styles: Mapping[str, tuple[str, Any]], arms: Sequence[str]
) -> Panel:
    report = []
    with theme.figure_style():
        figure, axes = theme.make_canvas()
        for (arm, metric), part in curve.groupby(["arm", "metric"], sort=False):
            line, shade = part.sort_values("offered_qps"), theme.colour_of_arm(arm, arms)
            label, style = styles[metric]
            whiskers = np.abs(line[["low", "high"]].sub(line.value, axis=0)).to_numpy(float).T
            axes.errorbar(
                line.offered_qps, line.value, whiskers, color=shade, linestyle=style,
                marker=theme.marker_of_arm(arm, arms), elinewidth=0.8,
            )  # fmt: skip
            points = line[["value", "offered_qps"]].dropna().to_numpy()
            texts = [f"{format_significant(y)} at {number_format.format_rate(x)}" for y, x in points]
            report.append(f"{arm}, {label}: {', '.join(texts) or 'not known'}.")
        if "latency" in name:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
        else:
            axes.set_ylim(0, 1.08 * curve[["value", "high"]].max(axis=None))
        axes.set(xlim=(0, 1.06 * curve.offered_qps.max()), xlabel="offered queries per second", title=name)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        used = dict(styles[metric] for metric in styles if metric in set(curve.metric))
        extra = {label: Line2D([], [], color=theme.INK, linestyle=style) for label, style in used.items()}
        theme.draw_legend(figure, [arm for arm in arms if arm in set(curve.arm)], arms, **extra)
    return Panel(figure, f"{name}, by offered rate. {' '.join(report)}")


def beside_effects(report_inputs: ReportInputs) -> list[object]:
    """Further views of effects: session by session, the ladder, the cost of a query in each part."""
    findings, is_pooled = report_inputs.findings, sessions.pooled_sessions(report_inputs) is not None
    return [
        *sessions.build_evidence(read_pooled(report_inputs.name)),
        *([forest.of_findings(findings.findings, findings.aa)] if is_pooled else []),
        *draw_ordered_arms(findings),
        *bottleneck_section.build_tables(findings),
        *tabulate_percentiles(findings),
    ]


def of_runs(report_inputs: ReportInputs) -> list[Picture]:
    """Draw the figures of a study's runs: throughput over several thread levels, and the seconds."""
    drawn, names = report_inputs.drawn
    pictures = [draw_throughput(drawn, names)] if drawn.threads.nunique() > 1 else []
    is_shared = (drawn.order == TURNS).any()
    return [*pictures, *([] if is_shared else [draw_seconds(report_inputs.intervals, drawn, names)])]


def tabulate_percentiles(findings: Findings) -> list[Table]:
    """Table of percentiles; empty if no percentile was compared."""
    rows = [(finding, support) for finding in findings.findings for support in finding.support or ()]
    arms = labels_module.label_by_name(findings, "arms")
    return [build_table("percentiles", rows, arms=arms)] if rows else []


def draw_ordered_arms(findings: Findings) -> list[object]:
    """Figure and tables of a study's ladder; empty if it has none."""
    ladder = findings.ladder
    if not ladder:
        return []
    if not ladder.workloads:
        return [build_table("ladder-of-none", [], "ladder", skipped=ladder.skipped)]
    tables = [
        build_table(
            "ladder", rungs.pairs, f"ladder-{place}", rungs=rungs, level=format_confidence(rungs.pairs)
        )
        for place, rungs in enumerate(ladder.workloads, 1)
    ]
    return [*map(forest.draw_ordered_arms, ladder.workloads), *tables]
