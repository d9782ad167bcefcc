"""JSON files of stages, which people edit, as typed documents: parsed, checked and given a schema here."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchbook.core.study.study_base import Described
from benchbook.core.util import files, paths
from benchbook.core.util.errors import BenchbookError

T = TypeVar("T")


def describe_error(error: Exception) -> str:
    """The first thing that is wrong with a document, behind its place; of another error its kind and text."""
    if not isinstance(error, ValidationError):
        return f"{type(error).__name__}: {error}"
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg'].lower()}"


Absent = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
"""A value whose key is left out of the file where there is none."""


@dataclass(frozen=True)
class Wording:
    """Mark of a field whose text follows from other fields; a retired one is read and never written."""

    is_retired: bool = False


Text = Annotated[T, Wording()]
"""Words for numbers, labels and codes that stand in other fields, so that they may change with a release."""
RetiredText = Annotated[str | None, Wording(is_retired=True), Field(exclude=True)]
"""Words that earlier releases wrote."""


def blank_wording(kind: Any, document: Any) -> Any:
    """JSON of a model, or of a field's type, without its wording; how many texts there are stays."""
    if isinstance(document, list):
        return [blank_wording(kind, item) for item in document]
    if not isinstance(document, dict) or (model := _model_in(kind)) is None:
        return document
    if dict in [*map(get_origin, (kind, *get_args(kind)))]:
        return {key: blank_wording(model, item) for key, item in document.items()}
    blanked, fields = {}, _marked_fields(model)
    for key, value in document.items():
        inner, mark = fields.get(key, (None, None))
        if mark is None:
            blanked[key] = blank_wording(inner, value)
        elif not mark.is_retired:
            blanked[key] = _blank_texts(value)
    return blanked


@cache
def _marked_fields(model: type[BaseModel]) -> dict[str, tuple[Any, Wording | None]]:
    """Type of each field of a model, and its mark if it is wording."""
    fields = model.model_fields.items()
    marks = {key: [mark for mark in field.metadata if isinstance(mark, Wording)] for key, field in fields}
    return {key: (field.annotation, next(iter(marks[key]), None)) for key, field in fields}


def _blank_texts(value: Any) -> Any:
    if isinstance(value, list):
        return [_blank_texts(item) for item in value]
    if isinstance(value, dict):
        return {key: _blank_texts(item) for key, item in value.items()}
    return bool(value) if isinstance(value, str) else value


def _model_in(kind: Any) -> type[BaseModel] | None:
    """First model in a type such as `list[Finding] | None`."""
    if isinstance(kind, type) and not get_origin(kind) and issubclass(kind, BaseModel):
        return kind
    return next((model for part in get_args(kind) if (model := _model_in(part))), None)


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
            what = f"{describe_error(error)}; it is damaged, was edited, or another release wrote it"
            raise BenchbookError(f"{name}: {what}: run {remedy}") from None

    def write(self, path: Path) -> None:
        """Write the file, complete or not at all."""
        files.write_json(path, self.plain)


Arms = dict[str, dict[str, Any]]


def find_fact(facts: Mapping[str, Any], *keys: str) -> Any:
    """Fact of an arm below some keys; None where one of them is absent or null."""
    for key in keys:
        facts = (facts or {}).get(key)  # type: ignore[assignment]
    return facts


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
        what = f"study: {facts.study!r}: these are the facts of another study"
        raise BenchbookError(f"data/{study}/facts.json: {what}; run {remedy}")
    return facts


def read_dataset(study: str) -> dict[str, Any]:
    """Record of prepare; BenchbookError naming file and key if it is not prepare's."""
    dataset: dict[str, Any] = files.read_json(path := paths.study_paths(study).dataset)
    _Dataset.parse(dataset, path, f"`dvc repro -f prepare@{study}`")
    return dataset
