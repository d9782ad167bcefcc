"""One HTML table: caption, units, aligned numbers, footnotes, and a heading cell for every row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchbook.show.markup import Html, element, escape, join


@dataclass(frozen=True)
class Column:
    """A column's heading, its unit, whether it is aligned as a number, and what it means."""

    label: str
    unit: str = ""
    is_number: bool = False
    meaning: str | None = None


@dataclass
class Notes:
    """Footnotes of one table: the same text gets the same number."""

    anchor: str
    texts: list[str] = field(default_factory=list)

    def mark(self, text: str) -> Html:
        """Add a footnote, or find it again, and return the mark that points to it."""
        if text not in self.texts:
            self.texts.append(text)
        number = self.texts.index(text) + 1
        link = element("a", number, href=f"#{self.anchor}-note-{number}", aria_label=f"footnote {number}")
        return element("sup", link, class_="note")

    def html(self) -> Html:
        """Write the footnotes as they stand below the table."""
        items = (element("li", text, id=f"{self.anchor}-note-{number}") for number, text in enumerate(self.texts, 1))
        return element("ol", *items, class_="notes") if self.texts else Html("")


@dataclass(frozen=True)
class Table:
    """A table with its heading; shows itself in a notebook.

    Cells are escaped unless they are `Html`. The first cell of a row is its heading. `empty` is what is said in place
    of a table without rows. A wide table scrolls inside its own box, which the keyboard can reach.
    """

    anchor: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[object]]
    caption: str = ""
    empty: str = "There is none."
    notes: Notes | None = None
    is_folded: bool = False

    def _repr_html_(self) -> str:
        heading = element("h3", self.title, id=self.anchor)
        if not self.rows:
            return join([heading, element("p", self.empty, class_="empty")]).text
        box = element("div", self._table(), class_="scroll", role="region", tabindex="0", aria_label=self.title)
        if self.is_folded:
            box = element("details", element("summary", f"{len(self.rows)} rows"), box)
        return join([heading, box, self.notes.html() if self.notes else ""]).text

    def __repr__(self) -> str:
        return f"<Table {self.anchor}, {len(self.rows)} rows>"

    def _table(self) -> Html:
        # A run table has thousands of cells: the class of a number is the only attribute a cell carries.
        kinds = [' class="n"' if column.is_number else "" for column in self.columns]
        lines = []
        for row in self.rows:
            cells = "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds[1:], row[1:], strict=True))
            lines.append(f'<tr><th scope="row"{kinds[0]}>{escape(row[0])}</th>{cells}</tr>')
        caption = element("caption", self.caption) if self.caption else ""
        return element("table", caption, element("thead", element("tr", *map(_heading, self.columns))),
                       element("tbody", Html("\n".join(lines))), class_="sortable")


def _heading(column: Column) -> Html:
    unit = element("span", column.unit, class_="unit") if column.unit else ""
    space = " " if column.unit else ""
    return element("th", column.label, space, unit, scope="col", class_="n" if column.is_number else None,
                   title=column.meaning)
