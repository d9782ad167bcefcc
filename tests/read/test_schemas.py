"""Columns are a promise: whoever reads the Parquet files finds each with its type, unit and meaning.

A change is meant to be read: write the list again with `python -m tests.read.test_schemas`, and note it in
the changelog.
"""

import difflib
from pathlib import Path

from benchbook.read.schemas import SCHEMAS

KEPT = Path(__file__).parents[1] / "data" / "columns.txt"


def text() -> str:
    """Write a line a column: table, name, type, unit, meaning."""
    return "".join(
        f"{table}.{name}: {kind}, {unit or 'no unit'}, {means}\n"
        for table, columns in SCHEMAS.items()
        for name, (kind, unit, means) in columns.items()
    )


def test_every_column_is_as_it_was_promised():
    expected = KEPT.read_text(encoding="utf-8")
    assert text() == expected, "".join(
        difflib.unified_diff(expected.splitlines(True), text().splitlines(True))
    )


if __name__ == "__main__":
    KEPT.write_text(text(), encoding="utf-8")
