"""What percentiles of latencies rest on, as a table: events beyond them, and the pauses that made these."""

from __future__ import annotations

from benchbook.compare import words
from benchbook.core.findings import Findings
from benchbook.show.table import Column, Table, long, number

_CAPTION = (
    "A pause of the machine makes many queries late at once. Pauses are counted as seconds, or several in a "
    "row, that hold what lies beyond the percentile of their run. Where one alone made it, it says more of "
    "the machine than of the arm."
)


def tables(findings: Findings) -> list[Table]:
    """Return the table, or nothing where no percentile was compared."""
    arms = words.labels(findings, "arms")
    rows = [
        [
            words.of(found, "workload"),
            words.metric(found.metric),
            arms.get(one.arm, one.arm),
            one.runs,
            one.events_beyond,
            *("not known" if many is None else many for many in (one.pauses, one.by_one_pause)),
        ]
        for found in findings.findings
        for one in found.support or ()
    ]
    columns = [
        long("Workload"), Column("Percentile"), Column("Arm"), number("Runs"),
        number("Events beyond", "at least, in a run"), number("Pauses", "in all runs"),
        number("By one pause alone", "runs"),
    ]  # fmt: skip
    title = "What percentiles rest on"
    return [Table("percentiles", title, columns, rows, _CAPTION)] if rows else []
