"""The audit of a source: what it measured, checks of its tables, verdicts, and what it leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from benchbook.compare import consistency
from benchbook.compare.arithmetic import tidy
from benchbook.compare.claims.printed import judge
from benchbook.compare.verdicts import Reading
from benchbook.core.source import Published, keys

# What a reader must know and the document does not say: a field of `conduct`, and what its silence means.
SILENT = {
    "repetitions": "How often each cell was run. One number a cell is printed, so nothing says how much "
    "it would differ "
    "in a second run, and no interval can be given.",
    "order_of_arms": "In which order the arms were measured. If one came after the other, anything that "
    "changed with time "
    "looks like an effect.",
    "client_machines": "How many client machines there were.",
    "run_s": "How long a run took.",
    "warm_up": "Whether anything was done before measuring.",
    "seed": "Whether arms saw the same random numbers.",
    "errors": "Whether statements failed: failed transactions count in QPS.",
    "spread": "How much a number varied.",
    "client_load": "Whether the client machine had anything left.",
}


SIDES = ("baseline", "treatment", "other_baseline", "other_treatment")


def audit(published: Published) -> dict[str, Any]:
    """Return everything the page of a source shows; the same files give the same dict."""
    source = published.source
    checks = consistency.of_source(published)
    claims = judge(published)
    for claim in claims:
        claim["doubts"] = [
            f"{one['check']}, {one['where']}: {one['detail']}" for one in checks if _concerns(one, claim)
        ]
    return {
        "source": published.name,
        "document": {
            key: getattr(source, key)
            for key in ("title", "title_original", "language", "publisher", "date", "found", "subject")
        },
        "versions": dict(source.versions),
        "hardware": dict(source.hardware),
        "configuration": {
            key: dict(value) if isinstance(value, Mapping) else value
            for key, value in source.configuration.items()
        },
        "sysbench": source.sysbench.model_dump(mode="json") if source.sysbench else None,
        "conduct": source.conduct.model_dump(mode="json"),
        "arms": {name: arm.model_dump(mode="json") for name, arm in source.arms.items()},
        "workloads": {name: workload.model_dump(mode="json") for name, workload in source.workloads.items()},
        "tables": [_table(published, name) for name in source.tables],
        "claims": claims,
        "checks": checks,
        "leaves_open": [text for key, text in SILENT.items() if getattr(source.conduct, key) is None]
        + list(source.leaves_open),
        "counts": {
            "tables": len(source.tables),
            "cells": int(published.cells["value"].notna().sum()),
            "claims": len(claims),
            **{
                verdict: sum(claim["verdict"] == verdict for claim in claims) for verdict in get_args(Reading)
            },
        },
    }


def _table(published: Published, name: str) -> dict[str, Any]:
    """Return a table as printed, with its numbers for figures."""
    table, source = published.source.tables[name], published.source
    rows = published.texts[name]
    cells = published.cells[published.cells["table"] == name]
    names = keys(cells)
    numbers = [
        {
            "row": int(line["row"]),
            "metric": line["metric"],
            "value": tidy(line["value"]),
            "printed": line["printed"],
            **{key: line[key] for key in names if line[key] is not None and line[key] == line[key]},
        }
        for line in cells.to_dict("records")
    ]
    units = {heading: source.columns[heading].unit for heading in table.columns}
    means = {
        heading: source.columns[heading].means for heading in table.columns if source.columns[heading].means
    }
    return {
        "name": name,
        "title": table.title,
        "stands": table.stands,
        "note": table.note,
        "file": table.file,
        "at": dict(table.at),
        "columns": list(rows.columns),
        "units": units,
        "means": means,
        "rows": rows.to_numpy().tolist(),
        "numbers": numbers,
    }


def _concerns(one: Mapping[str, Any], claim: Mapping[str, Any]) -> bool:
    """Tell whether a failed check speaks of a cell that the verdict on a claim rests on.

    Numbers that two tables share concern a reader of either table; a law that is broken in a row,
    a reader of that row.
    """
    if one["passed"] is not False:
        return False
    cells = [side for cell in claim["cells"] for side in (cell, *(cell.get(name) for name in SIDES))]
    rows = {(cell["table"], cell["row"]) for cell in cells if cell and "table" in cell}
    if "row" in one:
        return (one["tables"][0], one["row"]) in rows
    return len(one["tables"]) > 1 and bool(set(one["tables"]) & {table for table, _ in rows})
