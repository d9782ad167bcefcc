"""The table of results as text for a terminal, as HTML, as Markdown and as a data frame: the same rows."""

import itertools
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from benchbook.compare.text import labels
from benchbook.compare.text import results_table as results
from benchbook.compare.text.results_table import ResultRow, ResultsTable, describe_aa, describe_range
from benchbook.core.artifacts.findings import FindingData
from benchbook.core.util import number_format as numbers
from benchbook.core.util.grouping import group_by
from benchbook.core.util.number_format import format_count, format_interval, format_level, format_percent
from benchbook.core.util.plural import count
from benchbook.show.markup import Html, escape_markdown
from benchbook.show.templating import render_template

WIDTH = 110
# More rows than fill a screen: effects that don't depend on threads then stand in one row first.
_MANY_ROWS = 20
# A longer name of a treatment has a line of its own.
_MOST_OF_A_NAME = 30
# Columns that equal arms have, too.
_OF_AA = ("threads", "baseline", "change", "interval")
_COLOURS = {"▲": "\033[34m", "▼": "\033[33m"}
_PLAIN = "\033[0m"
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class ResultColumn:
    """One column: its key, its heading, the text of a row in it, and a flag for right alignment."""

    key: str
    heading: str
    text: Callable[[ResultRow], str]
    is_number: bool = True


COLUMNS = (
    ResultColumn("threads", "threads", lambda row: "all" if row.threads is None else f"{row.threads:,}"),
    ResultColumn("baseline", "baseline", lambda row: numbers.format_rate(row.baseline_value)),
    ResultColumn(
        "change", "change", lambda row: format_percent(row.change.value) if row.change.has_value else ""
    ),
    ResultColumn("interval", "interval", lambda row: format_interval(row.change.low, row.change.high)),
    ResultColumn("mark", "", lambda row: row.mark, is_number=False),
    ResultColumn("level", "level", lambda row: format_level(row.change.level) if row.change.level else ""),
    ResultColumn("n", "blocks", lambda row: str(row.change.n or "")),
    ResultColumn("mean", "mean", lambda row: _format_mean(row.elsewhere)),
    ResultColumn("elsewhere", "other sessions", lambda row: describe_range(row.elsewhere), is_number=False),
    ResultColumn("label", "over sessions", lambda row: row.elsewhere.label if row.elsewhere else "", False),
    ResultColumn("bottleneck", "bottleneck", lambda row: row.bottleneck, is_number=False),
)
# What a narrow terminal can do without, in this order; a page shows it.
_DISPENSABLE = ("label", "mean", "baseline", "bottleneck")


def _format_mean(elsewhere: results.Elsewhere | None) -> str:
    if elsewhere is None or elsewhere.sessions < 2 or elsewhere.kind == "depends on the machine":
        return ""
    return "" if elsewhere.mean.value is None else numbers.glance_percent(elsewhere.mean.value)


@dataclass
class _Footnotes:
    """Footnotes of one table: the same text has one number."""

    texts: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """Each footnote with its number."""
        return [f"{str(number).translate(_RAISED)} {text}" for number, text in enumerate(self.texts, 1)]

    def mark(self, row: ResultRow) -> str:
        """Numbers of a row's footnotes, raised."""
        for text in row.notes:
            if text not in self.texts:
                self.texts.append(text)
        return "".join(str(self.texts.index(text) + 1).translate(_RAISED) for text in row.notes)


def _columns_of(rows: Sequence[ResultRow]) -> tuple[list[ResultColumn], dict[str, str]]:
    """Columns that tell rows apart, and, for the caption, values by key that all rows share."""
    texts = {column.key: {column.text(row) for row in rows} for column in COLUMNS}
    shared = {key: "".join(texts[key]) for key in ("level", "n") if len(texts[key]) == 1}
    columns = [column for column in COLUMNS if column.key not in shared and texts[column.key] != {""}]
    return columns, {key: text for key, text in shared.items() if text}


def _group_rows(rows: Sequence[ResultRow]) -> dict[tuple[str, str, str], list[ResultRow]]:
    return group_by(rows, lambda row: (row.treatment, row.baseline, row.metric))


def _name_groups(rows: Sequence[ResultRow], table: ResultsTable) -> list[tuple[str, list[ResultRow]]]:
    return [(_name_group(several[0], table), several) for several in _group_rows(rows).values()]


def caption_of(table: ResultsTable) -> str:
    """Subject of the numbers: `Change in queries/s against direct connections, 98 % intervals.`"""
    rows = table.rows or table.aa
    if not rows:
        return ""
    metrics = list(dict.fromkeys(labels.name_metric(row.metric) for row in rows))
    baselines = list(dict.fromkeys(labels.in_sentence(row.baseline) for row in rows))
    _, shared = _columns_of((*table.rows, *table.aa))
    what = f"Change in {metrics[0]}" if len(metrics) == 1 else "Change"
    against = f" against {baselines[0]}" if len(baselines) == 1 else ""
    parts = [f"{what}{against}"]
    parts += [f"{shared['level']} intervals"] if "level" in shared else []
    parts += [count(int(shared["n"]), "block")] if "n" in shared else []
    return ", ".join(parts) + "."


def _name_group(first: ResultRow, table: ResultsTable) -> str:
    name = labels.strip_article(first.treatment)
    if len({row.baseline for row in table.rows}) > 1:
        name += f" against {labels.in_sentence(first.baseline)}"
    if len({row.metric for row in table.rows}) > 1:
        name += f", {labels.name_metric(first.metric)}"
    return name


def _name_aa(row: ResultRow) -> str:
    metric = "" if row.metric == "qps" else f", {labels.name_metric(row.metric)}"
    return f"A/A: {labels.strip_article(row.baseline)}, twice{metric}"


def legend_of(table: ResultsTable) -> list[str]:
    """Meanings of the marks that a table has, and of its column over other sessions."""
    used = {row.mark: row.meaning for row in table.rows}
    marks = " · ".join(f"{mark} {used[mark]}" for mark in results.MEANINGS if mark in used)
    return [line for line in (marks, _legend_of_sessions(table), results.describe_help(table.rows)) if line]


def _legend_of_sessions(table: ResultsTable) -> str:
    """Meaning of the column over other sessions; empty without it."""
    known = [row.elsewhere for row in table.rows if row.elsewhere]
    if not known:
        return ""
    processors = format_count(table.processors, "processor")
    texts = [f"{format_count(table.sessions, 'recorded session')} on {processors}"]
    kinds = {elsewhere.kind for elsewhere in known if elsewhere.sessions > 1}
    if "expected" in kinds:
        where = " or ".join(dict.fromkeys(elsewhere.where for elsewhere in known))
        texts.append(f"nine of ten further sessions {where} should lie in the range")
    if "depends on the machine" in kinds:
        texts.append("“by machine”: smallest to largest so far, as sign or size depends on the machine")
    elif "seen" in kinds:
        texts.append("“seen”: smallest to largest so far")
    return f"Other sessions: {'; '.join(texts)}."


@dataclass(frozen=True)
class _TextLayout:
    """Columns of a table in a terminal, each with its width; stacked names have lines of their own."""

    columns: Sequence[ResultColumn]
    widths: Sequence[int]
    name_width: int
    is_stacked: bool
    is_coloured: bool

    def heading(self, name: str) -> str:
        """Name of a group, above names of columns or beside them."""
        texts = [column.heading for column in self.columns]
        is_long = len(name) > self.name_width
        return f"{name}\n{self._join('', texts)}" if is_long else self._join(name, texts)

    def line(self, name: str, row: ResultRow, mark: str = "") -> str:
        """One row behind its name, with the numbers of its footnotes."""
        return self._join(
            name,
            [column.text(row) + (mark if column.key == "mark" else "") for column in self.columns],
            _COLOURS.get(row.mark, "") if self.is_coloured else "",
        )

    def workloads(
        self, rows: Sequence[ResultRow], render: Callable[[str, ResultRow], list[str]]
    ) -> Iterator[str]:
        """Lines of a group: each workload's name before its first row, or above it where stacked."""
        for workload, several in itertools.groupby(rows, key=lambda row: row.workload):
            name = f"  {workload}"
            if self.is_stacked:
                yield name
                name = ""
            for row in several:
                yield from render(name, row)
                name = ""

    def aa_line(self, name: str, row: ResultRow, width: int) -> list[str]:
        """Row of equal arms with its statement behind it, or below where there is no room."""
        kept = [pair for pair in zip(self.columns, self.widths, strict=True) if pair[0].key in _OF_AA]
        columns, widths = zip(*kept, strict=True)
        layout = replace(self, columns=columns, widths=widths, is_coloured=False)
        line, statement = layout.line(name, row), describe_aa(row)
        is_short = len(line) + len(statement) + 2 <= width
        return [f"{line}  {statement}"] if is_short else [line, f"{statement:>{width}}"]

    def _join(self, name: str, texts: Sequence[str], colour: str = "") -> str:
        cells = []
        for column, size, text in zip(self.columns, self.widths, texts, strict=True):
            padded = f"{text:>{size}}" if column.is_number else f"{text:<{size}}"
            is_coloured = colour and column.key in ("change", "mark")
            cells.append(f"{colour}{padded}{_PLAIN}" if is_coloured else padded)
        return f"{name:<{self.name_width}}  {'  '.join(cells)}".rstrip()


def render_text(table: ResultsTable, width: int = WIDTH, is_coloured: bool = False) -> list[str]:
    """Lines of the table for a terminal of some width; colours only if requested."""
    notes, layout, lines = _Footnotes(), _lay_out(table, width, is_coloured), list[str]()
    for name, rows in _name_groups(table.rows, table):
        lines.append(layout.heading(name))
        lines += layout.workloads(rows, lambda name, row: [layout.line(name, row, notes.mark(row))])
    for rows in _group_rows(table.aa).values():
        lines.append(_name_aa(rows[0]))
        lines += layout.workloads(rows, lambda name, row: layout.aa_line(name, row, width))
    wrapped = (textwrap.wrap(text, width) for text in (*legend_of(table), *notes.lines))
    return [line.rstrip() for line in (*lines, "", *itertools.chain.from_iterable(wrapped))]


def _lay_out(table: ResultsTable, width: int, is_coloured: bool) -> _TextLayout:
    """Columns that fit a width, without the dispensable ones where it is narrow."""
    columns, _ = _columns_of((*table.rows, *table.aa))
    for dropped in ("", *_DISPENSABLE):
        columns = [column for column in columns if column.key != dropped]
        if _width_of(table, columns) <= width:
            break
    is_stacked = _width_of(table, columns) > width
    name_width = 4 if is_stacked else _name_width(table)
    widths = [_width_of_column(table, column) for column in columns]
    return _TextLayout(columns, widths, name_width, is_stacked, is_coloured)


def _name_width(table: ResultsTable) -> int:
    groups = [min(len(name), _MOST_OF_A_NAME) for name, _ in _name_groups(table.rows, table)]
    return max([*(len(row.workload) + 2 for row in (*table.rows, *table.aa)), *groups], default=10)


def _width_of_column(table: ResultsTable, column: ResultColumn) -> int:
    rows = (*table.rows, *table.aa) if column.key in _OF_AA else table.rows
    extra = 2 if column.key == "mark" and any(row.notes for row in rows) else 0
    return max([len(column.heading), *(len(column.text(row)) + extra for row in rows)])


def _width_of(table: ResultsTable, columns: Sequence[ResultColumn]) -> int:
    return _name_width(table) + sum(2 + _width_of_column(table, column) for column in columns)


def render_html(table: ResultsTable) -> Html:
    """The table as HTML."""
    columns, _ = _columns_of((*table.rows, *table.aa))
    notes, is_long = _Footnotes(), len(table.rows) > _MANY_ROWS
    whole = {row.finding for row in table.rows if row.threads is None and is_long}
    rows = [row for row in table.rows if row.threads is None or row.finding not in whole]
    groups, every = (_name_groups(chosen, table) for chosen in (rows, table.rows))
    return render_template(
        "results.html.j2",
        table=table,
        groups=groups,
        aa=[(_name_aa(several[0]), several) for several in _group_rows(table.aa).values()],
        every=every if every != groups else [],
        columns=columns,
        caption=caption_of(table),
        notes=notes,
        legend=legend_of(table),
        describe_aa=describe_aa,
    )


def render_markdown(table: ResultsTable) -> str:
    """The table as Markdown, with a line for each row and the treatment in each line."""
    rows = (*table.rows, *table.aa)
    (columns, _), notes = _columns_of(rows), _Footnotes()
    head = ["treatment", "workload", *(column.heading for column in columns)]
    lines = [
        f"| {' | '.join(head)} |",
        f"|---|---|{''.join('--:|' if column.is_number else '---|' for column in columns)}",
    ]
    for row in rows:
        name = _name_aa(row) if row.is_aa else _name_group(row, table)
        cells = [column.text(row) + (notes.mark(row) if column.key == "mark" else "") for column in columns]
        if row.is_aa:
            cells[-1] = describe_aa(row)
        lines.append(f"| {' | '.join([escape_markdown(name), escape_markdown(row.workload), *cells])} |")
    texts = (escape_markdown(text).replace("\\~", "~") for text in (*legend_of(table), *notes.lines))
    return "\n".join([*lines, "", *map("{}  ".format, texts)]).rstrip()


def describe_row(row: ResultRow) -> str:
    """One row on a line: change, interval, mark and blocks, of those that it has."""
    keys = ("change", "interval", "mark", "n")
    cells = [column.text(row) for key in keys for column in COLUMNS if column.key == key]
    return " ".join([*filter(None, cells[:3]), f"(n = {cells[3]})" if cells[3] else ""]).rstrip()


def describe_session(finding: FindingData) -> str:
    """Effects of a finding in one session: `1 thread: −21.0 % [−28.9, −18.0] ▼ (n = 5); 8 threads: …`."""
    return "; ".join(
        results.prefix_level(row.threads) + describe_row(row) for row in results.rows_of_finding(finding)
    )


def results_frame(table: ResultsTable) -> pd.DataFrame:
    """A row for each effect; effects are fractions, `threads` is missing over all levels."""
    frame = pd.DataFrame([row.record for row in (*table.rows, *table.aa)])
    return frame.astype({"threads": "Int64"}) if len(frame) else frame
