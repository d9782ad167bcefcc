"""The audit of a source: what it measured, checks of its tables, verdicts, and what it leaves open."""

from __future__ import annotations

from benchbook.compare.claims import consistency
from benchbook.compare.claims.printed_cells import judge
from benchbook.compare.text import labels
from benchbook.compare.text.worked_arithmetic import tidy
from benchbook.core.artifacts.findings import Check
from benchbook.core.published.audit import Audit, Claim, Counts, Number, Table
from benchbook.core.published.source import About, Published

# What a source states that the page shows as it stands.
STATED = ("versions", "hardware", "configuration", "sysbench", "conduct", "arms", "workloads")
# What a reader must know and the document does not say: a field of `conduct`, and what its silence means.
SILENT = labels.NAMES["silence"]


def audit(published: Published) -> Audit:
    """Return everything the page of a source shows; the same files give the same audit."""
    source = published.source
    checks = consistency.of_source(published)
    claims = [Claim.model_validate({**one, "doubts": []}) for one in judge(published)]
    for claim in claims:
        claim.doubts.extend(
            f"{one.check}, {one.where}: {one.detail}" for one in checks if _concerns(one, claim)
        )
    verdicts = [claim.verdict for claim in claims]
    return Audit(
        source=published.name,
        document=About(**{key: getattr(source, key) for key in About.model_fields}),
        **{key: getattr(source, key) for key in STATED},
        tables=[_table(published, name) for name in source.tables],
        claims=claims,
        checks=checks,
        leaves_open=[text for key, text in SILENT.items() if getattr(source.conduct, key) is None]
        + list(source.leaves_open),
        counts=Counts(
            tables=len(source.tables),
            cells=sum(one.is_given for one in published.numbers),
            claims=len(claims),
            holds=verdicts.count("holds"),
            does_not_hold=verdicts.count("does not hold"),
            not_derivable=verdicts.count("not derivable"),
        ),
    )


def _table(published: Published, name: str) -> Table:
    """Return a table as printed, with its numbers for figures."""
    table, source = published.source.tables[name], published.source
    rows = published.texts[name]
    numbers = [
        Number(row=one.row, metric=one.metric, value=tidy(one.value), printed=one.printed, at=dict(one.at))
        for one in published.numbers
        if one.table == name
    ]
    headings = {heading: source.columns[heading] for heading in table.columns}
    return Table(
        name=name,
        **{key: getattr(table, key) for key in ("title", "stands", "note", "file")},
        at=dict(table.at),
        columns=list(rows.columns),
        units={heading: column.unit for heading, column in headings.items()},
        means={heading: column.means for heading, column in headings.items() if column.means},
        rows=rows.to_numpy().tolist(),
        numbers=numbers,
    )


def _concerns(one: Check, claim: Claim) -> bool:
    """Tell whether a failed check speaks of a cell that the verdict on a claim rests on.

    Numbers that two tables share concern a reader of either table; a law that is broken in a row,
    a reader of that row.
    """
    if one.passed is not False:
        return False
    rows = {side for cell in claim.cells for side in cell.sides}
    if one.row is not None:
        return (one.tables[0], one.row) in rows
    return len(one.tables) > 1 and bool(set(one.tables) & {table for table, _ in rows})
