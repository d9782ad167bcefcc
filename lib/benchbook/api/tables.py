"""Tables that fit a terminal: what all rows share stands above them, fractions are shown in per cent."""

from __future__ import annotations

import shutil

import pandas as pd

# Columns that hold fractions: shown with a sign and in per cent, kept as they are.
FRACTIONS = frozenset(
    {"effect", "low", "high", "prediction_low", "prediction_high", "range_low", "range_high", "tau"}
)
_SHORTEST, _LONGEST = 12, 60


class Table(pd.DataFrame):
    """A frame whose text is as wide as the terminal; what does not fit is named below it."""

    @property
    def _constructor(self) -> type[Table]:
        return Table

    def __repr__(self) -> str:
        if self.empty or self.columns.nlevels > 1:
            return str(pd.DataFrame(self))
        width = shutil.get_terminal_size((100, 24)).columns
        head, shown = _shared(_in_per_cent(self))
        left_out: list[str] = []
        while (text := _fitted(shown, width)) is None and len(shown.columns) > 1:
            left_out.insert(0, str(shown.columns[-1]))
            shown = shown.iloc[:, :-1]
        more = f"and {len(left_out)} more columns: {', '.join(left_out)}" if left_out else ""
        return "\n".join(part for part in (_cut(head, width), text, _cut(more, width)) if part)


def _in_per_cent(frame: Table) -> pd.DataFrame:
    shown = pd.DataFrame(frame)
    for name in FRACTIONS & set(shown.columns):
        shown[name] = [f"{100 * one:+.1f} %" if pd.notna(one) else "" for one in shown[name]]
    return shown


def _shared(shown: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """Take out the columns that say the same of every row, and say it once."""
    if len(shown) < 3:
        return "", shown
    same = [name for name in shown if shown[name].map(str).nunique() == 1]
    if len(same) == len(shown.columns):
        return "", shown
    known = [f"{name} {shown[name].iloc[0]}" for name in same if pd.notna(shown[name].iloc[0])]
    return "every row: " + ", ".join(known) if known else "", shown.drop(columns=same)


def _fitted(shown: pd.DataFrame, width: int) -> str | None:
    """Return the table with texts as long as they may be, or None where it is wider all the same."""
    has_name = shown.index.name is not None
    for longest in range(_LONGEST, _SHORTEST - 1, -4):
        text = shown.to_string(
            index=has_name, max_colwidth=longest, max_rows=60, na_rep="", float_format="{:.6g}".format
        )
        if max(map(len, text.splitlines())) <= width:
            return text
    return text if len(shown.columns) == 1 else None


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
