"""audit.json: measurements of a document, verdicts on claims by its tables, open questions."""

from collections.abc import Mapping
from typing import Literal

from benchbook.core.artifacts.artifact import Absent, Document, DocumentPart
from benchbook.core.artifacts.findings import AnswerPart, CellCheck
from benchbook.core.published.source import About, Conduct, PublishedArm, PublishedWorkload, Scalar, Sysbench

Reading = Literal["holds", "does not hold", "not derivable"]


class AuditedNumber(DocumentPart):
    """One printed number; `at` has the keys (arm, workload, threads ...) that tell it from others."""

    row: int
    metric: str
    value: float | None
    printed: str
    at: dict[str, Scalar]


class AuditedTable(DocumentPart):
    """A table as printed, with its numbers for figures."""

    name: str
    title: str
    stands: str | None
    note: str | None
    file: str
    at: dict[str, Scalar]
    columns: list[str]
    units: dict[str, str | None]
    means: dict[str, str]
    rows: list[list[str]]
    numbers: list[AuditedNumber]


class AuditedSide(DocumentPart):
    """A printed number that an effect is made of."""

    table: str | None
    row: int | None
    """Null where several numbers make it up."""
    value: float | None


class AuditedCell(DocumentPart):
    """A value, or an effect with its sides, and the arithmetic that gives it."""

    where: str
    table: Absent[str] = None
    row: Absent[int] = None
    value: float | None
    baseline: Absent[AuditedSide] = None
    treatment: Absent[AuditedSide] = None
    arithmetic: str
    other_baseline: Absent[AuditedSide] = None
    other_treatment: Absent[AuditedSide] = None
    is_inside: Absent[bool] = None
    """Whether it supports the claim, where one cell alone can."""

    @property
    def sides(self) -> list[tuple[str | None, int | None]]:
        """Table and row of each printed number behind it."""
        pairs = (self.baseline, self.treatment, self.other_baseline, self.other_treatment)
        return [(item.table, item.row) for item in (self, *pairs) if item is not None]


class AuditedSupplement(DocumentPart):
    """Cells shown beside a claim, deciding nothing."""

    says: str
    cells: list[AuditedCell]
    problem: str | None


class AuditedClaim(DocumentPart):
    """A claim put to the tables of its own document."""

    id: str
    claim: str
    stands: str | None
    kind: str
    metric: str | None
    published: str
    band: list[float | None] | None
    is_share: bool
    judged_by: str | None
    verdict: Reading
    reason: str
    recomputed: str
    mean: float | None
    low: float | None
    high: float | None
    cells: list[AuditedCell]
    n_inside: int | None
    n_cells: int
    other_base: list[float | None] | None
    outside: Absent[list[str]] = None
    """Where cells lie outside, if every cell had to lie in the band."""
    n_other_sign: Absent[int] = None
    """Cells with the other sign than their mean, if the mean decides."""
    found_at: Absent[list[str]] = None
    """Where cells have the published number, though what decides is outside."""
    repeats: Absent[list[AnswerPart]] = None
    """Parts with an interval by the printed repetitions, at 95 %."""
    takes: str | None
    because: str | None
    note: str | None
    put: str | None
    beside: list[AuditedSupplement]
    doubts: list[str]
    """Failed checks that concern the numbers it rests on."""

    @property
    def names(self) -> tuple[str, str]:
        """The source, and the claim in it."""
        source, _, claim = self.id.partition("/")
        return source, claim

    @property
    def shares(self) -> list[float | None] | None:
        """Ends of its band if that is one of effects."""
        return self.band if self.is_share else None


class Counts(DocumentPart):
    """Numbers of tables, claims and the like, and of claims with each verdict."""

    tables: int
    cells: int
    claims: int
    holds: int
    does_not_hold: int
    not_derivable: int

    @property
    def verdicts(self) -> tuple[int, int, int]:
        """Number of claims with each verdict, in the order of `Reading`."""
        return self.holds, self.does_not_hold, self.not_derivable


class Audit(Document):
    """All that the page of a source shows."""

    version: Literal[1] = 1
    source: str
    document: About
    versions: Mapping[str, str | None]
    hardware: Mapping[str, str | None]
    configuration: Mapping[str, Mapping[str, Scalar | bool | None] | Scalar | bool | None]
    sysbench: Sysbench | None
    conduct: Conduct
    arms: Mapping[str, PublishedArm]
    workloads: Mapping[str, PublishedWorkload]
    tables: list[AuditedTable]
    claims: list[AuditedClaim]
    checks: list[CellCheck]
    leaves_open: list[str]
    counts: Counts
