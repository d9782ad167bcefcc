"""audit.json: what a published document measured, what its own tables say of its claims, what stays open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from benchbook.core.artifacts.artifact import Absent, Document, Part
from benchbook.core.artifacts.findings import Check
from benchbook.core.published.source import About, Arm, Conduct, Scalar, Sysbench, Workload

Reading = Literal["holds", "does not hold", "not derivable"]


class Number(Part):
    """One printed number; `at` has the keys (arm, workload, threads ...) that tell it from others."""

    row: int
    metric: str
    value: float | None
    printed: str
    at: dict[str, Scalar]


class Table(Part):
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
    numbers: list[Number]


class Side(Part):
    """A printed number that an effect is made of."""

    table: str | None
    row: int | None
    """Null where several numbers make it up."""
    value: float | None


class Cell(Part):
    """A value, or an effect with its sides, and the arithmetic that gives it."""

    where: str
    table: Absent[str] = None
    row: Absent[int] = None
    value: float | None
    baseline: Absent[Side] = None
    treatment: Absent[Side] = None
    arithmetic: str
    other_baseline: Absent[Side] = None
    other_treatment: Absent[Side] = None
    is_inside: Absent[bool] = None
    """Whether it supports the claim, where one cell alone can."""

    @property
    def sides(self) -> list[tuple[str | None, int | None]]:
        """Table and row of each printed number behind it."""
        pairs = (self.baseline, self.treatment, self.other_baseline, self.other_treatment)
        return [(one.table, one.row) for one in (self, *pairs) if one is not None]


class Beside(Part):
    """Cells shown beside a claim, deciding nothing."""

    says: str
    cells: list[Cell]
    problem: str | None


class Claim(Part):
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
    cells: list[Cell]
    n_inside: int | None
    n_cells: int
    other_base: list[float | None] | None
    outside: Absent[list[str]] = None
    """Where cells lie outside, if every cell had to lie in the band."""
    found_at: Absent[list[str]] = None
    """Where cells have the published number, though what decides is outside."""
    takes: str | None
    because: str | None
    note: str | None
    put: str | None
    beside: list[Beside]
    doubts: list[str]
    """Failed checks that concern the numbers it rests on."""

    @property
    def names(self) -> tuple[str, str]:
        """The source, and the claim in it."""
        source, _, claim = self.id.partition("/")
        return source, claim

    @property
    def shares(self) -> list[float | None] | None:
        """The ends of its band where that is one of effects."""
        return self.band if self.is_share else None


class Counts(Part):
    """How much there is, and how many claims have each verdict."""

    tables: int
    cells: int
    claims: int
    holds: int
    does_not_hold: int
    not_derivable: int

    @property
    def verdicts(self) -> tuple[int, int, int]:
        """How many claims have each verdict, in the order of `Reading`."""
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
    arms: Mapping[str, Arm]
    workloads: Mapping[str, Workload]
    tables: list[Table]
    claims: list[Claim]
    checks: list[Check]
    leaves_open: list[str]
    counts: Counts
