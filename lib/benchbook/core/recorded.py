"""What a stage left for the next as JSON: its shape is checked before anything starts, for people edit it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from benchbook.core import files, paths
from benchbook.core.document import Document
from benchbook.core.errors import BenchbookError


class _Facts(Document):
    model_config = ConfigDict(extra="allow")
    study: str
    arms: dict[str, dict[str, Any]] = Field(min_length=1)
    skipped: dict[str, str] = Field(default_factory=dict)


class _Dataset(Document):
    model_config = ConfigDict(extra="allow")
    fingerprint: str = Field(pattern=r"^[0-9a-f]{10}$")
    tables: int = Field(ge=1)
    table_size: int = Field(ge=1)
    rows: dict[str, int]


def facts(study: str) -> dict[str, Any]:
    """Read the facts of a study; BenchbookError naming file and key if they are not what provision writes."""
    found = _read(paths.study(study).facts, _Facts, f"dvc repro -f provision@{study}")
    if found["study"] != study:
        raise BenchbookError(
            f"data/{study}/facts.json: study: {found['study']!r}: these are the facts of another study; "
            f"run `dvc repro -f provision@{study}`"
        )
    return found


def dataset(study: str) -> dict[str, Any]:
    """Read what prepare recorded; BenchbookError naming file and key if it is not what prepare writes."""
    return _read(paths.study(study).dataset, _Dataset, f"dvc repro -f prepare@{study}")


def _read(path: Path, shape: type[Document], remedy: str) -> dict[str, Any]:
    found: dict[str, Any] = files.read_json(path)
    shape.parse(found, path, f"`{remedy}`")
    return found
