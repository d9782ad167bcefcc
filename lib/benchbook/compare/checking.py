"""Results of checks of cells, each with its arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from benchbook.core.cells import shown
from benchbook.core.findings import Check
from benchbook.core.source import keys


def check(
    name: str,
    passed: bool | None,
    where: str,
    detail: str,
    tables: Sequence[str] = (),
    row: int | None = None,
) -> Check:
    """Return one result; `row` is that of the only table, where one row alone is concerned."""
    only = None if row is None else int(row)
    return Check(check=name, passed=passed, where=where, tables=sorted(set(tables)), detail=detail, row=only)


def summary(name: str, n: int, text: str, failed: int = 0) -> list[Check]:
    """Return one line for n cells that pass, or that there was nothing to check; none if all failed."""
    if n:
        return [check(name, True, "everywhere else" if failed else "everywhere", f"{text}: {n}.")]
    return (
        [] if failed else [check(name, None, "nowhere", "Nothing to check: no table has the numbers for it.")]
    )


def place_of(line: Mapping[str, Any]) -> str:
    """Write the keys of one cell, given its row or a row of several metrics."""
    return shown(
        {
            key: line[key]
            for key in keys(line)
            if key not in ("qps", "tps")
            and not key.startswith("latency_")
            and not isinstance(line[key], tuple)
            and not pd.isna(line[key])
        }
    )
