"""One HTML table: caption, units, aligned numbers, footnotes, and a heading cell for every row."""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchbook.show.markup import Html, escape_html, make_element
from benchbook.show.templating import PIPE, render_macros, render_template


@dataclass(frozen=True)
class TableColumn:
    """A column: heading, unit, meaning, and `kind`, its cells' class: `n` numbers, `w` texts that wrap."""

    label: str
    unit: str = ""
    kind: str | None = None
    meaning: str | None = None

    @property
    def heading(self) -> str:
        """Label and unit."""
        return f"{self.label} {self.unit}".strip()


def number_column(label: str, unit: str = "", meaning: str | None = None) -> TableColumn:
    """Give a column of numbers."""
    return TableColumn(label, unit, "n", meaning)


def text_column(label: str) -> TableColumn:
    """Give a column of texts that may wrap."""
    return TableColumn(label, kind="w")


@dataclass
class Notes:
    """Footnotes of one table: the same text gets the same number."""

    anchor: str
    texts: list[str] = field(default_factory=list)

    def mark(self, text: str) -> Html:
        """Add a footnote, or find it again, and return the mark that points to it."""
        if text not in self.texts:
            self.texts.append(text)
        place = self.texts.index(text) + 1
        link = make_element("a", place, href=f"#{self.anchor}-note-{place}", aria_label=f"footnote {place}")
        return make_element("sup", link, class_="note")

    def marks(self, texts: Sequence[str]) -> Html:
        """Mark several texts, with a space before each mark."""
        return Html("".join(f" {self.mark(text.strip()).text}" for text in texts if text.strip()))


@dataclass(frozen=True)
class Table:
    """A table with its heading; shows itself in a notebook.

    A row begins with its heading. What is wide scrolls in a box of its own, and so does what is long,
    unless it `is_whole`. A column that says the same in every row is a line of the caption instead, and an
    empty one is left out. One that `is_compared` has its rows as columns while they are the fewer.
    """

    anchor: str
    title: str
    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[object]]
    caption: str = ""
    empty: str | Html = "There is none."
    notes: Notes | None = None
    is_folded: bool = False
    is_whole: bool = False
    is_compared: bool = False

    def _repr_html_(self) -> str:
        columns, rows, shared = self._narrowed() if self.rows else ([], [], "")
        is_transposed = self.is_compared and len(columns) > len(rows)
        if is_transposed:
            headings = [column.heading for column in columns]
            labels, *lines = zip(*rows, strict=True)
            columns = [TableColumn(headings[0]), *(text_column(str(label)) for label in labels)]
            rows = [[heading, *line] for heading, line in zip(headings[1:], lines, strict=True)]
        caption = " ".join(filter(None, [self.caption, shared]))
        is_whole = self.is_whole or is_transposed or len(rows) <= _FEW
        inputs = {"columns": columns, "caption": caption, "is_whole": is_whole}
        return render_template("table.html.j2", table=self, rows=rows, **inputs).text

    # Lets a template take it as it is.
    __html__ = _repr_html_

    def __repr__(self) -> str:
        return f"<Table {self.anchor}, {len(self.rows)} rows>"

    def render_text(self) -> list[str]:
        """Lines for a terminal: title, a line for the headings, one for each row."""
        head = [column.heading for column in self.columns]
        lines = [head, *([str(cell) for cell in row] for row in self.rows)]
        sizes = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        texts = [
            [f"{cell:>{size}}" if place else f"{cell:<{size}}" for place, (cell, size) in enumerate(pairs)]
            for pairs in (zip(line, sizes, strict=True) for line in lines)
        ]
        return [f"{self.title}, {self.caption[:1].lower()}{self.caption[1:]}", *map("  ".join, texts)]

    def _narrowed(self) -> tuple[list[TableColumn], list[list[object]], str]:
        """Columns that tell rows apart, the rows without the others, and the values all rows share."""
        kept, shared = [0], []
        for place in range(1, len(self.columns)):
            values = {escape_html(row[place]) for row in self.rows}
            if values == {""}:
                continue
            if len(values) > 1 or len(self.rows) < _FEWEST_ALIKE:
                kept.append(place)
            else:
                text = html.unescape(re.sub(r"<[^>]*>", "", values.pop())).strip()
                column = self.columns[place]
                unit = f" ({column.unit})" if column.unit else ""
                shared.append(f"{column.label}{unit}: {text}")
        rows = [[row[place] for place in kept] for row in self.rows]
        caption_text = f"The same in every row: {'; '.join(shared)}." if shared else ""
        return [self.columns[place] for place in kept], rows, caption_text


def build_table(shape: str, rows: Iterable[Any], anchor: str = "", /, **inputs: Any) -> Table:
    """Table in a shape of `templates/tables`, with the title, columns and texts of that shape.

    Where the shape has a macro `row`, that writes each of the rows, ` | ` or a new line between cells; else
    they are cells, which may mark footnotes, `notes`. The anchor is the shape's name unless given.
    """
    rows, inputs = list(rows), {"notes": Notes(anchor or shape), **inputs}
    makers = {"column": TableColumn, "long": text_column, "number": number_column}
    macros = render_macros(f"tables/{shape}.html.j2", **makers, rows=rows, **inputs)
    if "row" in macros:
        texts = [str(macros["row"](row)).replace(" | ", "\n").replace(PIPE, "|") for row in rows]
        lines = map(str.splitlines, texts)
        rows = [[Html(cell) if "<" in cell else html.unescape(cell) for cell in line] for line in lines]
    optional = ("caption", "empty", "is_folded", "is_whole", "is_compared")
    kept = {key: macros[key] for key in optional if key in macros}
    return Table(anchor or shape, macros["title"], macros["columns"], rows, notes=inputs["notes"], **kept)


# So few rows are seen whole, also as cards on a phone, where a box that scrolls inside a page is a nuisance.
_FEW = 12
# Two rows that agree in something still say so of each.
_FEWEST_ALIKE = 3
