"""Columns are a promise: whoever reads the Parquet files finds each with its type, unit and meaning.

A change of the golden is meant to be read, and noted in the changelog.
"""

from benchbook.read.schemas import SCHEMAS
from tests.goldens import assert_golden


def test_every_column_is_as_it_was_promised():
    assert_golden("columns.txt", "".join(
        f"{table}.{name}: {kind}, {unit or 'no unit'}, {means}\n"
        for table, columns in SCHEMAS.items()
        for name, (kind, unit, means) in columns.items()
    ))  # fmt: skip
