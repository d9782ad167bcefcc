"""A set of logs as text: the table first, then what could be wrong, for a terminal or for an issue."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from benchbook.logs.comparison import Cell, LogSet, describe_change, needed_spread

MOST_LINES = 3
MOST_LEFT_OUT = 12


def table_rows(logs: LogSet) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of the comparison: a row a workload and level, a column an arm."""
    several = len({workload for workload, _ in logs.rows}) > 1
    headings = ["workload", "threads"] if several else ["threads"]
    for arm in logs.arms:
        headings += [f"{arm}, qps"]
        if arm != logs.arms[0]:
            headings += [f"against {logs.arms[0]}"]
    headings += [f"{arm}, ms" for arm in logs.arms]
    rows = []
    for workload, level in logs.rows:
        cells = [logs.cell(workload, level, arm) for arm in logs.arms]
        row = [workload, f"{level:,}"] if several else [f"{level:,}"]
        for arm, cell in zip(logs.arms, cells, strict=True):
            row.append(_rate(cell))
            if arm != logs.arms[0]:
                row.append(describe_change(cell.change) if cell and cell.change else "–")
        rows.append(row + [_latency(cell) for cell in cells])
    return headings, rows


def _rate(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    return f"{_number(cell.mean('qps'))}" + (f" (n = {cell.n})" if cell.n > 1 else "")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}" if value >= 10 else f"{value:.3g}"


def _latency(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    tails = [
        (run.percentile, run.percentile_ms)
        for run in cell.runs
        if run.percentile and run.percentile_ms is not None
    ]
    text = f"{cell.mean('avg_ms'):.2f}"
    if len(tails) == cell.n and len({rank for rank, _ in tails}) == 1:
        text += f", p{tails[0][0]} {sum(value or 0.0 for _, value in tails) / cell.n:.2f}"
    return text


def render_terminal(logs: LogSet) -> str:
    """The whole answer for a terminal."""
    parts = [*_opening(logs)]
    if logs.runs:
        title = f"Queries a second{_of_workload(logs)}; latency in ms: mean, percentile; 95 % intervals"
        parts += ["", title, *_aligned(*table_rows(logs))]
    parts += [f"\n{text}" for text in filter(None, [needed_spread(logs.cells)])]
    parts += ["", *(f"Claim {line}" for _, line in logs.claims)] if logs.claims else []
    if scaling := [*_scaling_lines(logs)]:
        parts += ["", "Over threads", *scaling]
    if logs.caveats:
        parts += ["", "What could be wrong", *_grouped(logs)]
    if logs.left_out:
        parts += ["", f"Left out: {len(logs.left_out)}", *_left_out(logs)]
    return "\n".join(parts)


def _of_workload(logs: LogSet) -> str:
    workloads = {workload for workload, _ in logs.rows}
    return f" of {workloads.pop()}" if len(workloads) == 1 else ""


def _opening(logs: LogSet) -> Iterator[str]:
    versions = sorted({run.version for run in logs.runs})
    files = f"{logs.files:,} file{'s' * (logs.files != 1)}"
    silent = f" ({logs.silent_files:,} without sysbench)" if logs.silent_files else ""
    if not logs.runs:
        yield f"{files}{silent}: no whole run of sysbench on a database"
        return
    runs = f"{len(logs.runs):,} run{'s' * (len(logs.runs) != 1)}"
    yield f"{files}{silent}: {runs} of sysbench {', '.join(versions)}"
    undone = dict.fromkeys(what for run in logs.runs for what in run.undone)
    if undone:
        yield f"Taken off: {', '.join(undone)}"
    yield f"Read as {logs.layout.sentence(logs.runs)}"


def _aligned(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(text) for text in column) for column in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        cells = [
            text.rjust(width) if place else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield ("  " + "  ".join(cells)).rstrip()


def _scaling_lines(logs: LogSet) -> Iterator[str]:
    for series in logs.scaling:
        top = max(series.qps)
        text = f"  {series.arm}, {series.workload}: most {_number(top)} qps at {series.peak_level} threads"
        text += f", knee at {series.knee_level}"
        if series.law is not None:
            law = series.law
            peak = f", peak at {law.peak_threads:.0f} threads" if law.peak_threads else ""
            text += f"; USL: contention {law.alpha:.3g}, coherency {law.beta:.2g}{peak}"
        else:
            text += f"; no USL: {series.refused}"
        yield text


def _grouped(logs: LogSet) -> Iterator[str]:
    """Caveats by kind: the first few of each, and how many more."""
    ordered = sorted(logs.caveats, key=lambda caveat: caveat.kind)
    order = list(dict.fromkeys(caveat.kind for caveat in logs.caveats))
    groups = {kind: list(members) for kind, members in groupby(ordered, key=lambda caveat: caveat.kind)}
    for kind in order:
        members = groups[kind]
        yield from (f"  {caveat}" for caveat in members[:MOST_LINES])
        if len(members) > MOST_LINES:
            yield f"  … {len(members) - MOST_LINES:,} more of this kind ({kind})"


def _left_out(logs: LogSet) -> Iterator[str]:
    yield from (f"  {part}" for part in logs.left_out[:MOST_LEFT_OUT])
    if len(logs.left_out) > MOST_LEFT_OUT:
        yield f"  … {len(logs.left_out) - MOST_LEFT_OUT:,} more; --all shows each"


def render_markdown(logs: LogSet) -> str:
    """The same for an issue."""
    parts = [*_opening(logs)]
    if logs.runs:
        headings, rows = table_rows(logs)
        lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
        parts += [
            "",
            *("| " + " | ".join(re.sub(r"\|", r"\\|", cell) for cell in line) + " |" for line in lines),
        ]
    parts += ["", *filter(None, [needed_spread(logs.cells)]), *(f"Claim {line}" for _, line in logs.claims)]
    if scaling := [*_scaling_lines(logs)]:
        parts += ["", "**Over threads**", "", *(f"-{line[1:]}" for line in scaling)]
    if logs.caveats:
        parts += ["", "**What could be wrong**", "", *(f"-{line[1:]}" for line in _grouped(logs))]
    if logs.left_out:
        parts += [
            "",
            f"**Left out: {len(logs.left_out)}**",
            "",
            *(f"-{line[1:]}" for line in _left_out(logs)),
        ]
    return "\n".join(parts) + "\n"
