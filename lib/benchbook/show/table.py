"""One HTML table: caption, units, aligned numbers, footnotes, and a heading cell for every row."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchbook.show.markup import Html, element, escape
from benchbook.show.shape import shaped


@dataclass(frozen=True)
class Column:
    """A column's heading, its unit, what it means, and how its cells are set.

    Numbers are aligned right; long texts may wrap; everything else stays on one line.
    """

    label: str
    unit: str = ""
    is_number: bool = False
    is_long: bool = False
    meaning: str | None = None

    @property
    def kind(self) -> str | None:
        """Give the class of the column's cells."""
        return "n" if self.is_number else "w" if self.is_long else None


def number(label: str, unit: str = "", meaning: str | None = None) -> Column:
    """Give a column of numbers."""
    return Column(label, unit, is_number=True, meaning=meaning)


def long(label: str) -> Column:
    """Give a column of texts that may wrap."""
    return Column(label, is_long=True)


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
        link = element("a", place, href=f"#{self.anchor}-note-{place}", aria_label=f"footnote {place}")
        return element("sup", link, class_="note")

    def marks(self, texts: Sequence[str]) -> Html:
        """Mark several texts, with a space before each mark."""
        return Html("".join(f" {self.mark(text.strip()).text}" for text in texts if text.strip()))


@dataclass(frozen=True)
class Table:
    """A table with its heading; shows itself in a notebook.

    Cells are escaped unless they are `Html`. The first cell of a row is its heading. `empty` is shown in
    place of a table without rows. A wide table scrolls inside its own box, which the keyboard can reach; so
    does a long one, unless it `is_whole` because it is to be seen at a glance. The caption stands above the
    box, so that it does not scroll away. A column that says the same in every row is a line of the caption
    instead, and an empty one is left out.
    """

    anchor: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[object]]
    caption: str = ""
    empty: str | Html = "There is none."
    notes: Notes | None = None
    is_folded: bool = False
    is_whole: bool = False

    def _repr_html_(self) -> str:
        columns, rows, shared = self._narrowed() if self.rows else ([], [], "")
        caption = " ".join(filter(None, [self.caption, shared]))
        given = {"columns": columns, "caption": caption, "is_whole": self.is_whole or len(rows) <= _FEW}
        return shaped("table.html.j2", table=self, body=_body(columns, rows), **given).text

    def __repr__(self) -> str:
        return f"<Table {self.anchor}, {len(self.rows)} rows>"

    def _narrowed(self) -> tuple[list[Column], list[list[object]], str]:
        """Return the columns that tell rows apart, the rows without the others, and what all rows share."""
        kept, shared = [0], []
        for place in range(1, len(self.columns)):
            values = {escape(row[place]) for row in self.rows}
            if len(values) > 1 or (len(self.rows) < _FEWEST_ALIKE and values != {""}):
                kept.append(place)
            elif values != {""}:
                column = self.columns[place]
                unit = f" ({column.unit})" if column.unit else ""
                shared.append(f"{column.label}{unit}: {_words(values.pop())}")
        rows = [[row[place] for place in kept] for row in self.rows]
        caption_text = f"The same in every row: {'; '.join(shared)}." if shared else ""
        return [self.columns[place] for place in kept], rows, caption_text


# So few rows are seen whole, also as cards on a phone, where a box that scrolls inside a page is a nuisance.
_FEW = 12
# Two rows that agree in something still say so of each.
_FEWEST_ALIKE = 3


def _words(cell: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", cell)).strip()


def _body(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> Html:
    # A table of runs has thousands of cells: a class is the only attribute that a cell carries.
    kinds = [f' class="{column.kind}"' if column.kind else "" for column in columns]
    lines = []
    for first, *others in rows:
        cells = (f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds[1:], others, strict=True))
        lines.append(f'<tr><th scope="row"{kinds[0]}>{escape(first)}</th>{"".join(cells)}</tr>')
    return Html("\n".join(lines))
