"""Audit of a source: its measurements, checks of its tables, verdicts, and open questions."""

from collections.abc import Sequence
from typing import get_args

from benchbook.compare.claims import consistency
from benchbook.compare.claims.printed_cells import judge_claim
from benchbook.compare.text import labels
from benchbook.compare.text.worked_arithmetic import round_digits
from benchbook.core.artifacts.findings import CellCheck
from benchbook.core.published.audit import Audit, AuditedClaim, AuditedNumber, AuditedTable, Counts, Reading
from benchbook.core.published.source import About, Published

# What a source states that the page shows as it stands.
STATED = ("versions", "hardware", "configuration", "sysbench", "conduct", "arms", "workloads")
# What a reader must know and the document does not say: a field of `conduct`, and what its silence means.
SILENT = labels.NAMES["silence"]


def audit_source(published: Published) -> Audit:
    """Content of the page of a source; the same files give the same audit."""
    source = published.source
    checks = consistency.of_source(published)
    claims = [_audit_claim(published, name, checks) for name in source.claims]
    verdicts = [claim.verdict for claim in claims]
    return Audit(
        source=published.name,
        document=About(**{key: getattr(source, key) for key in About.model_fields}),
        **{key: getattr(source, key) for key in STATED},
        tables=[_build_table(published, name) for name in source.tables],
        claims=claims,
        checks=checks,
        leaves_open=[text for key, text in SILENT.items() if getattr(source.conduct, key) is None]
        + list(source.leaves_open),
        counts=Counts(
            tables=len(source.tables),
            cells=sum(number.is_given for number in published.numbers),
            claims=len(claims),
            **{reading.replace(" ", "_"): verdicts.count(reading) for reading in get_args(Reading)},
        ),
    )


def _audit_claim(published: Published, name: str, checks: Sequence[CellCheck]) -> AuditedClaim:
    """Verdict on a claim, with the failed checks of what it rests on."""
    claim = AuditedClaim.model_validate({**judge_claim(published, name), "doubts": []})
    relevant = (check for check in checks if _is_relevant(check, claim))
    claim.doubts.extend(f"{check.check}, {check.where}: {check.detail}" for check in relevant)
    return claim


def _build_table(published: Published, name: str) -> AuditedTable:
    """Table as printed, with its numbers for figures."""
    table, rows = published.source.tables[name], published.texts[name]
    numbers = (number for number in published.numbers if number.table == name)
    headings = {heading: published.source.columns[heading] for heading in table.columns}
    return AuditedTable(
        name=name,
        **{key: getattr(table, key) for key in ("title", "stands", "note", "file")},
        at=dict(table.at),
        columns=list(rows.columns),
        units={heading: column.unit for heading, column in headings.items()},
        means={heading: column.means for heading, column in headings.items() if column.means},
        rows=rows.to_numpy().tolist(),
        numbers=[
            AuditedNumber(
                **{key: getattr(number, key) for key in ("row", "metric", "printed")},
                value=round_digits(number.value),
                at=dict(number.at),
            )
            for number in numbers
        ],
    )


def _is_relevant(cell_check: CellCheck, claim: AuditedClaim) -> bool:
    """True if a failed check is about a row that the verdict rests on, or that one of two tables is."""
    if cell_check.passed is not False:
        return False
    rows = {side for cell in claim.cells for side in cell.sides}
    if cell_check.row is not None:
        return (cell_check.tables[0], cell_check.row) in rows
    return len(cell_check.tables) > 1 and bool(set(cell_check.tables) & {table for table, _ in rows})
