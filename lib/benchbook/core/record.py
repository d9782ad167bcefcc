"""The index of the measured record: what each archive in `data/record` is, and what must follow from it."""

from __future__ import annotations

import io
from pathlib import Path

from pydantic import Field
from ruamel.yaml import YAML

from benchbook.core import files, paths, yamlfile
from benchbook.core.explain import validate
from benchbook.core.study_base import Model

INDEX = "index.yaml"
_HEAD = """# The measured record: one entry an archive beside this file, written by `make record STUDY=name`.
# `made` is what must follow from the archive's raw files; `make pages` makes it again
# and compares values. Findings and metrics lie in the archive itself.
"""
_HASH = r"^[0-9a-f]{64}$"


class Entry(Model):
    """One recorded study."""

    title: str
    """Title of the report."""
    answer: str
    """The answer in a sentence, from its findings."""
    measured: str
    """UTC date of the first run."""
    machine: str
    """Where it was measured."""
    commit: str
    """The last commit that changed what the evidence was made with."""
    runs: int = Field(ge=1)
    """Valid runs."""
    blocks: int = Field(ge=1)
    """Complete blocks."""
    minutes: float = Field(ge=0)
    """Machine time."""
    registered: str
    """What git's dates say about the study file and the first run."""
    doubts: tuple[str, ...] = ()
    """What speaks against it being recorded; it was recorded all the same, by an explicit word."""
    bytes: int = Field(ge=1)
    """Size of the archive."""
    sha256: str = Field(pattern=_HASH)
    """Hash of the archive."""
    made: dict[str, str] = Field(min_length=1)
    """Digests of the tidy tables that follow from the raw files, by name (`canonical.digest`)."""


class Index(Model):
    """All recorded studies by name."""

    studies: dict[str, Entry] = Field(default_factory=dict)
    """The recorded studies, sorted by name."""


def read(folder: Path | None = None) -> Index:
    """Read the index; empty where there is none yet. InputErrors with every mistake."""
    file = (folder or paths.record()) / INDEX
    if not file.is_file():
        return Index()
    return validate(yamlfile.read(file, f"data/record/{INDEX}"), Index)


def write(index: Index, folder: Path | None = None) -> Path:
    """Write the index, its studies sorted by name."""
    yaml = YAML()
    yaml.width, yaml.indent = 110, 2
    text = io.StringIO()
    known = {name: index.studies[name].model_dump(mode="json") for name in sorted(index.studies)}
    yaml.dump({"studies": known}, text)
    file = (folder or paths.record()) / INDEX
    file.parent.mkdir(parents=True, exist_ok=True)
    files.write_text(file, _HEAD + text.getvalue())
    return file
