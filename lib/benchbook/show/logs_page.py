"""Logs of sysbench as tables and pictures, and the page of them: no notebook is needed for it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.ticker import LogFormatter, NullLocator
from nbformat import v4

from benchbook.core.util import number_format
from benchbook.core.util.grouping import group_by
from benchbook.log_analysis import tables
from benchbook.log_analysis.comparison import LogSet, needed_spread
from benchbook.log_analysis.text import joined_headings, page_rows
from benchbook.show import figures, page, theme
from benchbook.show.picture import Panel, Picture
from benchbook.show.table import Table, TableColumn, number_column, text_column

MOST_SERIES = 40
"""Runs whose seconds are drawn: more lines than that hide each other."""


def comparison_table(logs: LogSet) -> Table:
    """A row a workload and level with columns for each arm, or a row an arm where these are many."""
    headings, rows = page_rows(logs)
    names = joined_headings(headings)
    texts = ("workload", "arm")
    columns = [text_column(name) if name in texts else number_column(name) for name in names]
    caption = (
        "Means over runs; change in queries a second with its 95 % interval over runs, never over seconds."
    )
    return Table("comparison", "Arms beside each other", columns, rows, caption, is_whole=True)


def scaling_table(logs: LogSet) -> Table:
    """Highest throughput, knee and scalability law of each arm."""
    rows = []
    for series in logs.scaling:
        law = series.law
        text = f"not fitted: {series.refused}"
        if law is not None:
            peak = f", peak at {law.peak_threads:.0f} threads" if law.peak_threads else ""
            text = f"contention {law.alpha:.3g}, coherency {law.beta:.2g}{peak}"
        top = number_format.format_significant(max(series.qps), 4)
        rows.append((series.arm, series.workload, top, series.peak_level, series.knee_level, text))
    knee = number_column("knee", meaning="First level within 5 % of the highest throughput.")
    columns = [TableColumn("arm"), TableColumn("workload"), number_column("highest qps")]
    columns += [number_column("at threads"), knee, text_column("Universal Scalability Law")]
    return Table("scaling", "Over threads", columns, rows)


def latency_picture(logs: LogSet) -> Picture:
    """Mean latency over threads, a panel a workload."""
    panels = []
    for workload, chosen in group_by(logs.scaling, lambda series: series.workload).items():
        messages = []
        with theme.figure_style():
            figure, axes = theme.make_canvas()
            for series in chosen:
                shade = theme.colour_of_arm(series.arm, logs.arms)
                mark = theme.marker_of_arm(series.arm, logs.arms)
                axes.plot(series.levels, series.latency_ms, marker=mark, color=shade)
                points = zip(series.latency_ms, series.levels, strict=True)
                texts = (f"{number_format.format_significant(ms)} ms at {level}" for ms, level in points)
                messages.append(f"{series.arm}: {', '.join(texts)}")
            levels = sorted({level for series in chosen for level in series.levels})
            axes.set(xscale="log", yscale="log", xlabel="threads", ylabel="mean latency, ms")
            axes.xaxis.set_minor_locator(NullLocator())
            # The text of a figure is that of the page, which knows no powers of ten.
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.5)))
            axes.set_xticks(levels, [f"{level:,}" for level in levels])
            axes.set(title=theme.shorten_name(workload))
            theme.draw_legend(figure, [series.arm for series in chosen], logs.arms)
        panels.append(Panel(figure, f"{workload}, mean latency. {'; '.join(messages)}."))
    return Picture("latency", "Latency by threads", tuple(panels), "Both axes are logarithmic.")


def throughput_picture(logs: LogSet) -> Picture:
    """Throughput over threads, every run a point."""
    return figures.draw_throughput(tables.runs_table(logs), logs.arms)


def seconds_picture(logs: LogSet) -> Picture | None:
    """Throughput by second of the runs at each workload's highest level; None if none printed it."""
    runs = tables.runs_table(logs).assign(discard_s=0.0)
    intervals = tables.intervals_table(logs)
    intervals = intervals[intervals.qps.notna()].assign(is_discarded=False)
    chosen = runs[runs.run_id.isin(set(intervals.run_id))]
    if chosen.empty or len(chosen) > MOST_SERIES * chosen.workload.nunique():
        return None
    return figures.draw_seconds(intervals, chosen, logs.arms)


def list_parts(logs: LogSet) -> Iterator[object]:
    """Everything that is shown of some logs, in its order."""
    yield comparison_table(logs)
    if len({run.level for run in logs.runs}) > 1:
        yield throughput_picture(logs)
    if logs.scaling:
        yield latency_picture(logs)
        yield scaling_table(logs)
    if (picture := seconds_picture(logs)) is not None:
        yield picture
    caveats = [(caveat.kind, caveat.text, _format_place(caveat)) for caveat in logs.caveats]
    columns = [TableColumn("what"), text_column("finding"), text_column("file and line")]
    yield Table("wrong", "What could be wrong", columns, caveats, empty="Nothing was found.")
    if logs.left_out:
        rows = [(_format_place(part), part.reason) for part in logs.left_out]
        yield Table("left-out", "Left out", [text_column("file and line"), text_column("why")], rows)


def _format_place(part: Any) -> str:
    return f"{part.path}:{part.line}" if part.line else part.path


def describe_input(logs: LogSet) -> str:
    """Files that were read, and the way they were read, in Markdown."""
    versions = ", ".join(sorted({run.version for run in logs.runs}))
    lines = [
        f"{number_format.format_count(len(logs.runs), 'run')} of sysbench {versions}, "
        f"{number_format.format_count(logs.files, 'file')}.",
        f"Read as `{logs.layout.sentence(logs.runs)}`.",
        *(f"Claim {verdict}." for _, verdict in logs.claims),
        needed_spread(logs.cells) or "",
        "Logs can't show in which order runs were made, what else ran, which settings the servers had, or "
        "what the servers counted themselves.",
    ]
    return "\n\n".join(filter(None, lines))


def write_page(logs: LogSet, path: Path, title: str = "Logs of sysbench") -> Path:
    """Write one page that needs no other file; returns it."""
    cells = [v4.new_markdown_cell(f"# {title}\n\n{describe_input(logs)}")]
    for part in list_parts(logs):
        output = v4.new_output("display_data", {"text/html": part._repr_html_()})  # type: ignore[attr-defined]
        cells.append(v4.new_code_cell("", outputs=[output], metadata={"tags": ["hide-input"]}))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page.render_html(v4.new_notebook(cells=cells), title), encoding="utf-8")
    return path
