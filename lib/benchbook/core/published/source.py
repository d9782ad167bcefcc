"""A published document as frozen types: its measurements, layout of tables, and claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field, model_validator

from benchbook.core.published.claim import ClaimSpec, Scalar, SourcePart
from benchbook.core.study.validation_errors import validate_document
from benchbook.core.util import source_files

if TYPE_CHECKING:
    import pandas as pd

SLUG = r"^[a-z0-9][a-z0-9._-]{0,59}$"
Slug = Annotated[str, Field(pattern=SLUG)]
# What a printed number is multiplied with to stand in the unit that a metric's name ends in.
SCALES = {
    "_ms": {"ms": 1.0, "s": 1000.0, "us": 0.001},
    "_s": {"s": 1.0, "ms": 0.001, "us": 0.000001},
    "_pct": {"%": 1.0, "% of one core": 1.0, "cores": 100.0},
    "qps": {"1/s": 1.0, "1000/s": 1000.0, "1/min": 1 / 60},
    "tps": {"1/s": 1.0, "1000/s": 1000.0, "1/min": 1 / 60},
}


class _Placed(SourcePart):
    """Part of a source whose numbers have keys in common, which stand under `at`."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_cell_keys(cls, arguments: Any) -> Any:
        keys = {"arm", "workload", "threads"} & set(arguments if isinstance(arguments, Mapping) else ())
        if keys:
            key = min(keys)
            raise ValueError(f"{key} holds for all of its cells; write at: {{{key}: {arguments[key]}}}")
        return arguments


class PublishedColumn(_Placed):
    """Meaning of the numbers under one heading."""

    role: Literal["key", "metric", "growth", "text"]
    """`key` tells cells apart, `metric` was measured, `growth` is the authors' own, `text` the rest."""
    unit: str | None = Field(None, min_length=1, examples=["ms"])
    """Unit of the printed numbers; needed for metrics and growth."""
    metric: str | None = Field(None, pattern=r"^[a-z][a-z0-9_]*$", examples=["latency_p95_ms"])
    """Name of the metric in this project; null takes the heading in the CSV file."""
    at: Mapping[str, Scalar] = {}
    """Keys that hold for the whole column, such as `arm: haproxy` where each arm has a column."""
    of: str | None = None
    """For `growth`: the metric that grew."""
    over: Mapping[str, Scalar] = {}
    """For `growth`: the cell that the growth is over, such as `arm: "2.1.8"`."""
    means: str | None = None
    """What the column holds, where its name does not say it."""

    @model_validator(mode="after")
    def _require_unit_and_base(self) -> PublishedColumn:
        if self.role in ("metric", "growth") and self.unit is None:
            raise ValueError("a number without a unit; write unit: such as 1/s, ms or %")
        if self.role == "growth" and (self.of is None or not self.over):
            raise ValueError("growth needs `of` and `over`; write of: qps and over: {arm: NAME}")
        return self


class PublishedTable(_Placed):
    """One table of the document, in one file."""

    title: str
    """What the table shows, in a few words."""
    file: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*\.(csv|log)$", examples=["pod-network.csv"])
    """CSV file with the printed numbers, or a .log file with sysbench's report lines."""
    stands: str | None = None
    """Where the table stands in the document."""
    columns: tuple[str, ...] = ()
    """Headings of the CSV file in their order, each explained under `columns`; none for a .log file."""
    at: Mapping[str, Scalar] = {}
    """Keys that hold for the whole table: arm, workload, threads or anything that is varied."""
    is_unordered: bool = False
    """The document itself prints the rows in no rising order."""
    copy_of: str | None = None
    """Another table whose numbers these are: what was measured under this name was not printed, and no claim
    can be judged by it."""
    note: str | None = None
    """Anything a reader must know about the numbers."""


class PublishedArm(SourcePart):
    """One setting that the document measured."""

    means: str | None = None
    """The arm in a few words."""
    settings: Mapping[str, Scalar | None] = {}
    """What the document states about it, by factor; factors it does not state are left out."""


class PublishedWorkload(SourcePart):
    """Work of one event of the load."""

    script: str | None = None
    """sysbench script, as far as stated."""
    statements: float | None = Field(None, gt=0, examples=[20])
    """Statements of one event, as the QPS counts them; null if the document does not let us know."""
    options: Mapping[str, Scalar | bool | None] = {}
    """Options of this workload beside those of the source."""
    threads_stated: tuple[int, ...] = ()
    """Thread counts that the document says were run; a cell without numbers is reported as missing."""
    means: str | None = None
    """What the statements are."""


class Conduct(SourcePart):
    """Conduct of the measurements, as far as stated; null means that the document does not say."""

    repetitions: int | None = None
    """Runs of one cell."""
    order_of_arms: str | None = None
    """The order in which arms took turns."""
    client_machines: int | None = None
    """Machines that ran sysbench."""
    run_s: int | None = None
    """Seconds of one run."""
    warm_up: str | None = None
    """What was done before measuring."""
    seed: str | None = None
    """Seed of the random numbers."""
    errors: str | None = None
    """What the document says about failed statements."""
    spread: str | None = None
    """What the document says about the variation of a number."""
    client_load: str | None = None
    """What the document says about the load of the client machine."""


class Sysbench(SourcePart):
    """The load generator."""

    version: str | None = None
    """Version as stated."""
    options: Mapping[str, Scalar | bool | None] = {}
    """Options of the measured runs, by name without dashes; account and address left out."""
    prepare: str | None = None
    """How the tables were filled, in our words."""


class About(SourcePart):
    """The document itself."""

    title: str
    """Title of the document, in English."""
    title_original: str | None = None
    """Title in the document's own language."""
    language: str
    """Language of the document."""
    publisher: str | None = None
    """Who published it, or null if the document does not say."""
    date: str | None = None
    """Date as stated, or null."""
    found: str
    """Where the copy was found, and what it had lost."""
    subject: str
    """What the document measures, in a sentence."""


class SourceSpec(About):
    """A published document: its origin, its measurements and its claims."""

    versions: Mapping[str, str | None] = {}
    """Versions of everything that took part."""
    place: Literal["local", "ssh", "kubernetes"] | None = None
    """The kind of place it was measured in, as `site.kind` of a study names it; null: not known."""
    hardware: Mapping[str, str | None] = {}
    """Machines by part."""
    configuration: Mapping[str, Mapping[str, Scalar | bool | None] | Scalar | bool | None] = {}
    """Settings by component; none where the document shows none."""
    sysbench: Sysbench | None = None
    """The load generator."""
    conduct: Conduct = Conduct()
    """How the measurements were made."""
    arms: Mapping[str, PublishedArm]
    """The settings measured, by name."""
    workloads: Mapping[Slug, PublishedWorkload]
    """The loads, by name."""
    columns: Mapping[str, PublishedColumn]
    """Every heading of the CSV files."""
    tables: Mapping[Slug, PublishedTable]
    """Every table of the document, in its order."""
    claims: Mapping[Slug, ClaimSpec] = {}
    """What the document claims, in its order; none where its tables alone are carried."""
    leaves_open: tuple[str, ...] = ()
    """What else the document leaves open, in our words."""


class Number(NamedTuple):
    """A printed number."""

    table: str
    row: int
    """1 is the first below the heading."""
    heading: str
    metric: str
    value: float
    """In the unit of the metric's name; NaN for a blank."""
    printed: str
    half_unit: float
    """Half of the last printed place."""
    unit: str | None
    role: str
    at: Mapping[str, Any]
    """The keys that apply to it (arm, workload, threads and whatever else is varied)."""
    cut: float = 0.0
    """Of our own runs alone: the share of their transactions that a window cuts through."""

    @property
    def is_given(self) -> bool:
        """True if it is no blank."""
        return self.value == self.value

    @property
    def written(self) -> str:
        """The number as printed; in the unit of its metric's name if the document has another one."""
        return self.printed if float(self.printed) == self.value else f"{self.value:.8g}"

    @property
    def threads(self) -> int:
        """Its level of threads; KeyError of a table that has none."""
        level: int = self.at["threads"]
        return level

    def key(self, name: str) -> Any:
        """Its table or one of its keys; None if that does not apply."""
        return self.table if name == "table" else self.at.get(name)


def cell_keys(numbers: Iterable[Number]) -> list[str]:
    """Names that tell cells apart."""
    others = (key for number in numbers for key in number.at)
    return list(dict.fromkeys(["arm", "workload", "threads", *others]))


@dataclass(frozen=True)
class Published:
    """A source with its tables read; `texts` holds every file's rows as printed, by table."""

    name: str
    source: SourceSpec
    numbers: Sequence[Number]
    texts: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def cells(self) -> pd.DataFrame:
        """Its numbers as a table, with a column for each key (None if it does not apply)."""
        import pandas as pd

        fixed, names = Number._fields[:-2], cell_keys(self.numbers)
        rows = [(*number[:-2], *map(number.at.get, names)) for number in self.numbers]
        result = pd.DataFrame(rows, columns=[*fixed, *names], dtype=object)
        return result.astype({"row": int, "value": float, "half_unit": float})


def load_source(name: str) -> SourceSpec:
    """Read `data/published/NAME/source.yaml`; raise `InputErrors` with every mistake."""
    return validate_document(source_files.read_source(name), SourceSpec)


def claim_for_study(loaded: SourceSpec, name: str) -> ClaimSpec:
    """Claim of a document in its form for studies, by its name in the document.

    Of an effect each table that it names is replaced by what holds for all of its cells: a study of other
    people has no such table; it may have the arm and the workload that the table is about.
    """
    claim = loaded.claims[name].as_put
    if claim.kind != "effect":
        return claim
    common = dict(claim.cells or {})
    sides: dict[str, dict[str, object]] = {}
    for side in ("baseline", "treatment"):
        selector = dict(getattr(claim, side))
        table = selector.pop("table", None)
        if not isinstance(table, str | None):
            return claim
        at = dict(loaded.tables[table].at) if table is not None else {}
        for key in ("workload", "threads"):
            place = selector.pop(key, at.pop(key, None))
            if place is not None and common.setdefault(key, place) != place:
                return claim
        sides[side] = {**at, **selector}
    return claim.model_copy(update={**sides, "cells": common or None})
