"""Cells that should be there, or that are there twice with two values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from benchbook.compare.consistency import Check, check
from benchbook.core.cells import THREADS, shown
from benchbook.core.source import keys


def repeated_cells(cells: pd.DataFrame) -> list[Check]:
    """Find cells of one arm that two tables print with different values."""
    seen: dict[tuple[str, ...], dict[str, Any]] = {}
    found, n = [], 0
    for line in cells[cells["value"].notna()].to_dict("records"):
        place = (line["metric"], *(str(line[key]) for key in keys(cells)))
        first = seen.setdefault(place, line)
        if first is line or first["table"] == line["table"]:
            continue
        n += 1
        if first["value"] != line["value"]:
            where = shown({key: line[key] for key in keys(cells) if not pd.isna(line[key])})
            found.append(
                check(
                    "repeated cells",
                    False,
                    where,
                    f"{line['metric']} is {first['printed']} in {first['table']} and {line['printed']} in "
                    f"{line['table']}.",
                    (first["table"], line["table"]),
                )
            )
    if not n:
        return [
            check("repeated cells", None, "nowhere", "Nothing to check: no cell of an arm is printed twice.")
        ]
    agree = n - len(found)
    return found + (
        [check("repeated cells", True, "everywhere else", f"{agree} numbers that are printed twice agree.")]
        if agree
        else []
    )


def missing_cells(
    cells: pd.DataFrame, compared: Sequence[tuple[str, str]], stated: Mapping[str, Sequence[int]]
) -> list[Check]:
    """Find blanks, cells that one of two compared arms has and the other lacks, and thread counts that were announced.

    `compared` has pairs of arms; `stated` the thread counts that the document says were run, by workload.
    """
    found: list[Check] = []
    for line in cells[cells["value"].isna()].to_dict("records"):
        found.append(
            check(
                "missing cells",
                False,
                f"{line['table']}, row {line['row']}",
                f"{line['heading']} is blank.",
                [line["table"]],
            )
        )
    measured = cells[cells["value"].notna() & cells["arm"].notna()]
    factors = [key for key in keys(cells) if key not in {"arm", "workload", "second", *THREADS}]
    for _, group in measured.groupby([measured[key].map(str) for key in ("workload", *factors)], sort=False):
        levels = {arm: set(part["threads"].dropna()) for arm, part in group.groupby("arm", sort=False)}
        for one, other in dict.fromkeys((*compared, *((second, first) for first, second in compared))):
            lack = sorted(levels.get(other, set()) - levels.get(one, set())) if one in levels else []
            if lack:
                found.append(
                    check(
                        "missing cells",
                        False,
                        f"{one}, {group['workload'].iloc[0]}",
                        f"No numbers at {_list(lack)} threads, where {other} has them.",
                        group.loc[group["arm"] == one, "table"].unique(),
                    )
                )
    for workload, threads in stated.items():
        part = measured[measured["workload"] == workload]
        lack = sorted(set(threads) - set(part["threads"].dropna()))
        if lack:
            found.append(
                check(
                    "missing cells",
                    False,
                    str(workload),
                    f"No numbers at {_list(lack)} threads, which the document says were run.",
                    part["table"].unique(),
                )
            )
    return found or [
        check("missing cells", True, "everywhere", "No blank, and compared arms have the same cells.")
    ]


def _list(levels: Sequence[int]) -> str:
    return ", ".join(map(str, levels))
