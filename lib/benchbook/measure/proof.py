"""What was asked of the data beside what the server has: the proof that loading worked."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchbook.core.study_sections import Dataset


def table(state: dict[str, Any], asked: Dataset) -> pd.DataFrame:
    """Return table, property, asked, found and proof, one row a property of a table."""
    rows: list[tuple[str, str, object, object, str]] = []
    for number in range(1, asked.tables + 1):
        name = f"sbtest{number}"
        counted, indexes = state["rows"].get(name), state["indexes"].get(name, [])
        # By itself it proves nothing: the stages after this one compare it before they measure.
        checksum = (state["checksums"] or {}).get(name)
        rows += [
            (name, "rows", f"{asked.table_size:,}", f"{counted or 0:,}", _agree(counted == asked.table_size)),
            (name, "index", f"k_{number}", ", ".join(indexes), _agree(has_index(state, number))),
            (name, "checksum", f"what seed {state['seed']} gives", checksum or "not taken: too large",
             "compared before every measurement" if checksum else "none"),
        ]  # fmt: skip
    return pd.DataFrame(rows, columns=["table", "property", "asked", "found", "proof"])


def has_index(state: dict[str, Any], number: int) -> bool:
    """Say whether a table has its secondary index: by name, or by its column where engines differ."""
    return bool({f"k_{number}", "k"} & {*state["indexes"].get(f"sbtest{number}", [])})


def _agree(is_same: bool) -> str:
    return "the server has what was asked" if is_same else "DIFFERS"
