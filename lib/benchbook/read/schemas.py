"""The tidy tables: type, unit and meaning of every column, as `columns.csv` has them.

Types: `str`, `int`, `float` (as printed or noted; NaN where there is nothing), `Int` (a whole number or
nothing), `bool`, and `derived`: a float worked out of others by exact sums and single divisions, with
`canonical.DERIVED` significant digits. So no value depends on the processor. Rows are in the order of the
schedule, within a run in the order of time or buckets.
"""

import csv
from pathlib import Path

Column = tuple[str, str, str]
COLUMNS = "columns.csv"


def read_columns(folder: Path) -> dict[str, dict[str, Column]]:
    """Type, unit and meaning of each column of each table in a folder's `columns.csv`."""
    columns: dict[str, dict[str, Column]] = {}
    with (folder / COLUMNS).open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            columns.setdefault(row["table"], {})[row["column"]] = row["type"], row["unit"], row["meaning"]
    return columns


SCHEMAS = read_columns(Path(__file__).parent)
