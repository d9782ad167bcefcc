"""Meaning of every column of every table of the API, and tables that fit a terminal."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import cache
from itertools import accumulate
from pathlib import Path

import pandas as pd

from benchbook.core.artifacts.artifact import DocumentPart
from benchbook.core.util.errors import NotThere, did_you_mean
from benchbook.core.util.number_format import format_percent
from benchbook.read import schemas
from benchbook.read.schemas import SCHEMAS, Column
from benchbook.show.templating import render_template


@cache
def read_meanings() -> dict[str, dict[str, Column]]:
    """Type, unit and meaning of each column of each table, in their order."""
    return SCHEMAS | schemas.read_columns(Path(__file__).parent)


class Meanings(pd.DataFrame):
    """A table of columns that shows every meaning whole."""

    def _repr_html_(self) -> str:
        return frame_html(self.reset_index())


def columns(table: str | pd.DataFrame | None = None) -> pd.DataFrame:
    """Type, unit and meaning by column; for all tables at once also the table's name in front."""
    if table is None:
        parts = [columns(name).reset_index().assign(table=name) for name in read_meanings()]
        return pd.concat(parts, ignore_index=True)[["table", "column", "type", "unit", "meaning"]]
    if isinstance(table, pd.DataFrame):
        name = table.attrs.get("table")
        if name is None:
            raise NotThere(f"there is no such table; the tables are {', '.join(read_meanings())}")
        described = [column for column in table.columns if column in read_meanings()[name]]
        return Meanings(columns(name).reindex(described))
    if table not in read_meanings():
        raise NotThere(f"{table}: no such table; {did_you_mean(str(table), read_meanings())}")
    meanings = pd.DataFrame.from_dict(
        read_meanings()[table], orient="index", columns=["type", "unit", "meaning"]
    )
    return Meanings(meanings.rename_axis("column"))


def document_table(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Put a table's columns in their documented order and let it remember its name and fit a terminal."""
    meanings = read_meanings().get(name) if name not in SCHEMAS else None
    ordered = TerminalTable(frame if meanings is None else frame.reindex(columns=list(meanings)))
    ordered.attrs["table"] = name
    return ordered


def of_parts(name: str, parts: Iterable[DocumentPart]) -> pd.DataFrame:
    """Parts of findings or of an audit as the documented table of that name, one row each."""
    return document_table(name, pd.DataFrame([part.plain for part in parts]))


# Columns that hold fractions: shown with a sign and in per cent, kept as they are.
FRACTIONS = frozenset(
    {"effect", "low", "high", "prediction_low", "prediction_high", "range_low", "range_high", "tau"}
)
_SHORTEST, _LONGEST = 16, 60


class TerminalTable(pd.DataFrame):
    """A frame with text as wide as the terminal; columns that do not fit are named below it."""

    @property
    def _constructor(self) -> type[TerminalTable]:
        return TerminalTable

    def __repr__(self) -> str:
        if self.empty or self.columns.nlevels > 1:
            return str(pd.DataFrame(self))
        width = shutil.get_terminal_size((100, 24)).columns
        shown = pd.DataFrame(self)
        for name in FRACTIONS & set(shown.columns):
            shown[name] = [format_percent(item) if pd.notna(item) else "" for item in shown[name]]
        head, shown = _split_shared(shown)
        shown, left_out = _split_too_many(shown, width)
        while (text := _fit_columns(shown, width)) is None and len(shown.columns) > 1:
            left_out.insert(0, str(shown.columns[-1]))
            shown = shown.iloc[:, :-1]
        more = f"and {len(left_out)} more columns: {', '.join(left_out)}" if left_out else ""
        return "\n".join(part for part in (_cut_text(head, width), text, _cut_text(more, width)) if part)


def _split_shared(shown: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """Take out the columns that say the same of every row, and say it once."""
    if len(shown) < 3:
        return "", shown
    same = [name for name in shown if shown[name].map(str).nunique() == 1]
    if len(same) == len(shown.columns):
        return "", shown
    constants = [f"{name} {item}" for name in same if pd.notna(item := shown[name].iloc[0]) and item != ""]
    return "every row: " + ", ".join(constants) if constants else "", shown.drop(columns=same)


def _split_too_many(shown: pd.DataFrame, width: int) -> tuple[pd.DataFrame, list[str]]:
    """Take out the columns that do not fit for their names alone, which saves writing tables of them."""
    names = [str(name) for name in shown.columns]
    ends = accumulate(len(name) + 1 for name in names)
    fitting = max(1, sum(end <= width + 1 for end in ends))
    return shown.iloc[:, :fitting], names[fitting:]


def _fit_columns(shown: pd.DataFrame, width: int) -> str | None:
    """Table with names whole and sentences cut to fit; None if it is wider all the same."""
    has_name = shown.index.name is not None
    for longest in range(_LONGEST, _SHORTEST - 1, -4):
        cut = shown.map(lambda item, most=longest: _cut_text(str(item), most) if " " in str(item) else item)
        text = cut.to_string(index=has_name, max_rows=100, na_rep="", float_format="{:.6g}".format)
        if max(map(len, text.splitlines())) <= width:
            return text
    return text if len(shown.columns) == 1 else None


def _cut_text(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def frame_html(frame: pd.DataFrame) -> str:
    """Write a small table of texts as HTML, every cell escaped, long ones wrapped and set left."""
    rows = [[_format_cell(value) for value in row] for row in frame.itertuples(index=False)]
    return render_template("frame.html.j2", columns=list(frame.columns), rows=rows).text


def _format_cell(value: object) -> object:
    if value is None or value is pd.NA or value != value:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else value
