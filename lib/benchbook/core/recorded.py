"""What a stage left for the next as JSON: its shape is checked before anything starts, for people edit it."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from benchbook.core import files, paths
from benchbook.core.document import Document
from benchbook.core.errors import BenchbookError

Arms = dict[str, dict[str, Any]]


class Facts(Document):
    """What provision found: `arms` has what `site.facts` says of each, `skipped` why others can't be made."""

    model_config = ConfigDict(extra="allow")
    study: str
    machine: dict[str, Any] | None = None
    methods: dict[str, int] | None = None
    arms: Arms = Field(min_length=1)
    skipped: dict[str, str] = Field(default_factory=dict)

    @property
    def probes(self) -> dict[str, Any] | None:
        """What the machine was like before any server was up; None where that is not known."""
        return (self.machine or {}).get("probes")


class _Dataset(Document):
    model_config = ConfigDict(extra="allow")
    fingerprint: str = Field(pattern=r"^[0-9a-f]{10}$")
    tables: int = Field(ge=1)
    table_size: int = Field(ge=1)
    rows: dict[str, int]


def facts(study: str) -> Facts:
    """Read the facts of a study; BenchbookError naming file and key if they are not what provision writes."""
    remedy = f"`dvc repro -f provision@{study}`"
    found = Facts.read(paths.study(study).facts, remedy)
    if found.study != study:
        raise BenchbookError(
            f"data/{study}/facts.json: study: {found.study!r}: these are the facts of another study; "
            f"run {remedy}"
        )
    return found


def dataset(study: str) -> dict[str, Any]:
    """Read what prepare recorded; BenchbookError naming file and key if it is not what prepare writes."""
    found: dict[str, Any] = files.read_json(path := paths.study(study).dataset)
    _Dataset.parse(found, path, f"`dvc repro -f prepare@{study}`")
    return found
