"""A set of logs as text: the table first, then the caveats, for a terminal or for an issue."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from benchbook.core.util import number_format
from benchbook.core.util.grouping import group_by
from benchbook.core.util.plural import count
from benchbook.log_analysis.comparison import LogCell, LogSet, needed_spread

MOST_LINES = 3
MOST_LEFT_OUT = 12
PAGE_WIDTH = 150
"""Characters of the headings that a page has room for."""
Heading = tuple[str, str]


def table_rows(logs: LogSet) -> tuple[list[Heading], list[list[str]]]:
    """Headings (arm and column) and cells: a row a workload and level, a group of columns an arm."""
    has_several = len({workload for workload, _ in logs.rows}) > 1
    columns = _columns_by_arm(logs)
    shared = ["workload", "threads"] if has_several else ["threads"]
    headings = [("", name) for name in shared]
    headings += [(arm, name) for arm, names in columns.items() for name in names]
    rows = []
    for workload, level in logs.rows:
        row = [workload, f"{level:,}"][-len(shared) :]
        for arm, names in columns.items():
            texts = _format_cells(logs.cell(workload, level, arm))
            row += [texts.get(name, "–") for name in names]
        rows.append(row)
    return headings, rows


def _columns_by_arm(logs: LogSet) -> dict[str, list[str]]:
    """Columns of each arm; a percentile is one if all runs that printed one have the same."""
    n = ["n"] if any(cell.n > 1 for cell in logs.cells) else []
    tails = {run.percentile for run in logs.runs if run.percentile and run.percentile_ms is not None}
    tail = [f"p{tails.pop()} ms"] if len(tails) == 1 else []
    columns = {arm: ["qps", *n, "change", "95 %", "ms", *tail] for arm in logs.arms}
    return columns | {logs.arms[0]: ["qps", *n, "ms", *tail]}


def _format_cells(cell: LogCell | None) -> dict[str, str]:
    """Texts of a cell by their columns, without those it has nothing for."""
    if cell is None:
        return {}
    texts = {
        "qps": number_format.format_significant(cell.mean("qps"), 4),
        "n": str(cell.n),
        "ms": number_format.format_decimal(cell.mean("avg_ms"), 2),
    }
    if (change := cell.change) is not None:
        texts["change"] = number_format.format_percent(change.effect)
        texts["95 %"] = number_format.format_interval(change.low, change.high) or str(change.reason)
    percentiles = [run.percentile_ms for run in cell.runs if run.percentile_ms is not None]
    if len(percentiles) == cell.n:
        name = f"p{cell.runs[0].percentile} ms"
        texts[name] = number_format.format_decimal(sum(percentiles) / cell.n, 2)
    return texts


def joined_headings(headings: Sequence[Heading]) -> list[str]:
    """Headings of one line."""
    return [f"{arm}: {name}" if arm else name for arm, name in headings]


def _render_table(logs: LogSet, width: int) -> list[str]:
    """The comparison side by side if it fits, else a row an arm."""
    headings, rows = table_rows(logs)
    lines = [*_align_rows(headings, rows)]
    is_narrow = max(map(len, lines)) <= width or len(logs.arms) < 2
    return lines if is_narrow else [*_align_rows(*arm_rows(logs, headings, rows))]


def arm_rows(
    logs: LogSet, headings: Sequence[Heading], wide_rows: Sequence[Sequence[str]]
) -> tuple[list[Heading], list[list[str]]]:
    """Headings and cells of `table_rows` as a row a workload, level and arm, those without runs left out."""
    shared = sum(not arm for arm, _ in headings)
    # The change comes behind the throughput, whatever the baseline lacks.
    present = dict.fromkeys(name for _, name in headings[shared:])
    names = [name for name in dict.fromkeys(("qps", "n", "change", "95 %", *present)) if name in present]
    rows: list[list[str]] = []
    for row in wide_rows:
        cells = dict(zip(headings, row, strict=True))
        for arm in logs.arms:
            texts = [cells.get((arm, name), "") for name in names]
            if texts[0] != "–":
                rows.append([*row[:shared], arm, *texts])
    return [*headings[:shared], ("", "arm"), *(("", name) for name in names)], rows


def page_rows(logs: LogSet) -> tuple[list[Heading], list[list[str]]]:
    """Rows of `table_rows` if a page has room for them and most arms have runs, else of `arm_rows`."""
    headings, rows = table_rows(logs)
    width = sum(len(name) + 2 for name in joined_headings(headings))
    is_full = 2 * len(logs.cells) > len(logs.rows) * len(logs.arms)
    return (headings, rows) if is_full and width <= PAGE_WIDTH else arm_rows(logs, headings, rows)


def render_terminal(logs: LogSet, width: int = 160) -> str:
    """The whole answer for a terminal."""
    parts = [*_render_opening(logs)]
    if logs.runs:
        workloads = {workload for workload, _ in logs.rows}
        whose = f" of {workloads.pop()}" if len(workloads) == 1 else ""
        title = f"Queries a second{whose}; means over runs; latency in ms"
        parts += ["", title, *_render_table(logs, width)]
    parts += [f"\n{text}" for text in filter(None, [needed_spread(logs.cells)])]
    parts += ["", *(f"Claim {line}" for _, line in logs.claims)] if logs.claims else []
    for title, lines in _render_lists(logs):
        parts += ["", title, *lines]
    return "\n".join(parts)


def _render_lists(logs: LogSet) -> Iterator[tuple[str, list[str]]]:
    """Title and lines of each list that has any."""
    left_out = f"Left out: {len(logs.left_out)}"
    lists = {"Over threads": _scaling_lines, "What could be wrong": _render_caveats, left_out: _left_out}
    yield from ((title, lines) for title, render in lists.items() if (lines := [*render(logs)]))


def _render_opening(logs: LogSet) -> Iterator[str]:
    versions = sorted({run.version for run in logs.runs})
    files = count(logs.files, "file")
    silent = f" ({logs.silent_files:,} without sysbench)" if logs.silent_files else ""
    if not logs.runs:
        yield f"{files}{silent}: no whole run of sysbench on a database"
        return
    yield f"{files}{silent}: {count(len(logs.runs), 'run')} of sysbench {', '.join(versions)}"
    undone = dict.fromkeys(what for run in logs.runs for what in run.undone)
    if undone:
        yield f"Taken off: {', '.join(undone)}"
    yield f"Read as {logs.layout.sentence(logs.runs)}"


def _align_rows(headings: Sequence[Heading], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    lines = [[name for _, name in headings], *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    arms = ""
    for arm, group in groupby(zip(headings, widths, strict=True), key=lambda column: column[0][0]):
        width = sum(each + 2 for _, each in group)
        shown = arm if len(arm) <= width - 2 else f"{arm[: width - 3]}…"
        arms += shown.rjust(width)
    if len({arm for arm, _ in headings}) > 2:
        yield arms.rstrip()
    for row in lines:
        yield "  " + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _scaling_lines(logs: LogSet) -> Iterator[str]:
    for series in logs.scaling:
        law, usl = series.law, f"no USL: {series.refused}"
        if law is not None:
            peak = f", peak at {law.peak_threads:.0f} threads" if law.peak_threads else ""
            usl = f"USL: contention {law.alpha:.3g}, coherency {law.beta:.2g}{peak}"
        most = (
            f"most {number_format.format_significant(max(series.qps), 4)} qps at {series.peak_level} threads"
        )
        yield f"  {series.arm}, {series.workload}: {most}, knee at {series.knee_level}; {usl}"


def _render_caveats(logs: LogSet) -> Iterator[str]:
    """Caveats by kind: the first few of each, and the number of the rest."""
    for kind, members in group_by(logs.caveats, lambda caveat: caveat.kind).items():
        yield from (f"  {caveat}" for caveat in members[:MOST_LINES])
        if len(members) > MOST_LINES:
            yield f"  … {len(members) - MOST_LINES:,} more of this kind ({kind})"


def _left_out(logs: LogSet) -> Iterator[str]:
    yield from (f"  {part}" for part in logs.left_out[:MOST_LEFT_OUT])
    if len(logs.left_out) > MOST_LEFT_OUT:
        yield f"  … {len(logs.left_out) - MOST_LEFT_OUT:,} more; --json has each"


def render_markdown(logs: LogSet) -> str:
    """The same for an issue."""
    parts = [*_render_opening(logs)]
    if logs.runs:
        headings, rows = page_rows(logs)
        table = [joined_headings(headings), ["---", *["---:"] * (len(headings) - 1)], *rows]
        escaped = [[cell.replace("|", r"\|") for cell in row] for row in table]
        parts += ["", *(f"| {' | '.join(row)} |" for row in escaped)]
    parts += ["", *filter(None, [needed_spread(logs.cells)]), *(f"Claim {line}" for _, line in logs.claims)]
    for title, lines in _render_lists(logs):
        parts += ["", f"**{title}**", "", *(f"-{line[1:]}" for line in lines)]
    return "\n".join(parts) + "\n"
