"""The table of how the data were loaded: in which order, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchbook.show import numbers
from benchbook.show.table import Column, Table, number

CAPTION = (
    "From the first loader's start to the last one's end, with as many tables at once as there are cores. "
    "Each was timed once, when the data were prepared: a difference between arms here has no interval."
)
SHARED = "Arms in one row share the data, which were loaded once. "


def tables(dataset: Mapping[str, Any] | None, names: Mapping[str, str]) -> list[Table]:
    """Return how long loading took for each copy of the data, as a table; none where it was not timed.

    `dataset` is the content of `dataset.json`: `loads` by arm with `index` and `seconds`, `tables` and
    `table_size`. `names` are those of the arms.
    """
    loads: Mapping[str, Mapping[str, Any]] = (dataset or {}).get("loads") or {}
    if not dataset or not loads:
        return []
    copies: dict[tuple[str, float], list[str]] = {}
    for arm, load in loads.items():
        copies.setdefault((load["index"], load["seconds"]), []).append(names.get(arm, arm))
    rows_loaded = dataset["tables"] * dataset["table_size"]
    rows = [
        [
            ", ".join(arms),
            order,
            numbers.significant(seconds),
            numbers.significant(rows_loaded / seconds if seconds else None),
        ]
        for (order, seconds), arms in copies.items()
    ]
    columns = [Column("Arms"), Column("Secondary index"), number("Loading", "s"), number("Rows", "a second")]
    is_shared = any(len(arms) > 1 for arms in copies.values())
    return [Table("loading", "Loading", columns, rows, (SHARED if is_shared else "") + CAPTION)]
