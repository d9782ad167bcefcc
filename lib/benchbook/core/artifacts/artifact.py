"""JSON files of stages, as typed documents: parsed, written and given a schema here alone.

What a stage left for the next one is checked before anything starts, for people edit it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from benchbook.core.study.study_base import Described
from benchbook.core.util import files, paths
from benchbook.core.util.errors import BenchbookError

T = TypeVar("T")


def describe_error(error: ValidationError) -> str:
    """The first thing that is wrong with a document, behind its place."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg'].lower()}"


Absent = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
"""A value whose key is left out of the file where there is none."""


class DocumentPart(Described):
    """A part of a document, quick to parse."""

    @property
    def plain(self) -> dict[str, Any]:
        """Content of this part in the file."""
        return self.model_dump()


class Document(DocumentPart):
    """A whole file. A document that names no version is of version 1."""

    @classmethod
    def read(cls, path: Path, remedy: str = "the stage that makes it") -> Self:
        """Read a file; BenchbookError naming file, key and remedy if it is not such a document."""
        return cls.parse(files.read_json(path), path, remedy)

    @classmethod
    def parse(cls, arguments: Any, path: Path, remedy: str = "the stage that makes it") -> Self:
        """Take a file's content; BenchbookError as with `read`."""
        try:
            return cls.model_validate(arguments)
        except ValidationError as error:
            name = path.relative_to(paths.find_root()) if path.is_relative_to(paths.find_root()) else path
            raise BenchbookError(
                f"{name}: {describe_error(error)}; it is damaged, was edited, or another release wrote "
                f"it: run {remedy}"
            ) from None

    def write(self, path: Path) -> None:
        """Write the file, complete or not at all."""
        files.write_json(path, self.plain)


Arms = dict[str, dict[str, Any]]


class Facts(Document):
    """Results of provision: `arms` has `site.facts` of each, `skipped` the reasons against others."""

    model_config = ConfigDict(extra="allow")
    study: str
    machine: dict[str, Any] | None = None
    methods: dict[str, int] | None = None
    arms: Arms = Field(min_length=1)
    skipped: dict[str, str] = Field(default_factory=dict)

    @property
    def probes(self) -> dict[str, Any] | None:
        """State of the machine before any server was up; None if that is not known."""
        return (self.machine or {}).get("probes")


class _Dataset(Document):
    model_config = ConfigDict(extra="allow")
    fingerprint: str = Field(pattern=r"^[0-9a-f]{10}$")
    tables: int = Field(ge=1)
    table_size: int = Field(ge=1)
    rows: dict[str, int]


def read_facts(study: str) -> Facts:
    """Facts of a study; BenchbookError naming file and key if they are not provision's."""
    remedy = f"`dvc repro -f provision@{study}`"
    facts = Facts.read(paths.study_paths(study).facts, remedy)
    if facts.study != study:
        raise BenchbookError(
            f"data/{study}/facts.json: study: {facts.study!r}: these are the facts of another study; "
            f"run {remedy}"
        )
    return facts


def read_dataset(study: str) -> dict[str, Any]:
    """Record of prepare; BenchbookError naming file and key if it is not prepare's."""
    dataset: dict[str, Any] = files.read_json(path := paths.study_paths(study).dataset)
    _Dataset.parse(dataset, path, f"`dvc repro -f prepare@{study}`")
    return dataset
