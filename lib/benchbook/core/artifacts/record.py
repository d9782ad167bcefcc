"""The index of the measured record: what each archive in `data/record` is, and what must follow from it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from ruamel.yaml import YAML

from benchbook.core.study.study_base import Model, Name
from benchbook.core.study.validation_errors import validate
from benchbook.core.util import files, paths, yaml_file

INDEX = "index.yaml"
_HEAD = """# The measured record: the sessions of each study, an archive STUDY/SESSION.tar.xz each.
# `make record` writes it. `made` is what must follow from an archive's raw files; `make pages` makes it
# again and compares values. Findings and metrics lie in the archive itself.
"""
_HASH = r"^[0-9a-f]{64}$"
SESSION = r"^[0-9]{8}T[0-9]{4}Z-[0-9a-f]{4}$"
MINUTE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}Z$"
MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}Z)?$"
SessionId = Annotated[str, Field(pattern=SESSION)]


class Machine(Model):
    """The machine under the servers, and what ran on it."""

    processor: str
    """The processor's name."""
    family: int | None = None
    """Family of the processor; null where the session did not keep it."""
    model: int | None = None
    """Its model."""
    stepping: int | None = None
    """Its stepping."""
    cores: float = Field(gt=0)
    """Cores that programs could use."""
    memory_mib: int | None = None
    """Memory, in MiB."""
    kernel: str | None = None
    """Release of the kernel."""
    system: str | None = None
    """The operating system."""
    site: str
    """Kind of site."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Each engine and proxy with its version, as observed; several of one name joined by commas."""
    probes: dict[str, float] = Field(default_factory=dict)
    """What was measured of it, by names that end in their units."""

    @property
    def told_processor(self) -> str:
        """Say which processor it has."""
        known = (self.family, self.model, self.stepping)
        which = "" if self.family is None else " (family {}, model {}, stepping {})".format(*known)
        return f"{self.processor}{which}"

    @property
    def told(self) -> str:
        """Say in a line where it was measured."""
        return f"{self.cores:g} cores of {self.told_processor}, {self.memory_mib} MiB, {self.system}"


class Superseded(Model):
    """Why a session is listed and not pooled."""

    reason: str = Field(min_length=3)
    """What is wrong with it, in a sentence."""
    commit: str
    """The commit at which it was found."""
    arms: tuple[str, ...] = ()
    """The arms that it is about; none: the whole session."""


class Entry(Model):
    """One recorded session."""

    measured: str = Field(pattern=MINUTE)
    """UTC minute of the first run."""
    answer: str
    """The session's answer in a sentence, from its findings; empty where they can't be made."""
    machine: Machine
    """Where it was measured."""
    design: str = Field(pattern=r"^[0-9a-f]{12}$")
    """Digest of everything that changes what is measured: only sessions of one design are pooled."""
    methods: dict[str, int]
    """The ways of arranging and measuring that it used, each with its number (`core/artifacts/design.py`)."""
    seed: int
    """Seed of the order of its runs and of sysbench's random numbers."""
    commit: str
    """The last commit that changed what the evidence was made with."""
    runs: int = Field(ge=1)
    """Valid runs."""
    blocks: int = Field(ge=0)
    """Complete blocks."""
    minutes: float = Field(ge=0)
    """Machine time."""
    registered: str
    """What git's dates say about the study file and the first run."""
    doubts: tuple[str, ...] = ()
    """What speaks against it; they travel with it."""
    bytes: int = Field(ge=1)
    """Size of the archive."""
    sha256: str = Field(pattern=_HASH)
    """Hash of the archive."""
    made: dict[str, str] = Field(min_length=1)
    """Digests of the tidy tables that follow from the raw files, by name (`canonical.digest`)."""
    superseded: Superseded | None = None
    """Why it, or an arm of it, is not pooled; null: all of it is."""

    @property
    def is_pooled(self) -> bool:
        """Tell whether anything of it is pooled."""
        return self.superseded is None or bool(self.superseded.arms)


class NotRecorded(Model):
    """A session that was started and is not in the record."""

    begun: str = Field(pattern=MOMENT)
    """UTC minute in which it began; its day where the minute was not kept."""
    processor: str
    """Where."""
    why: str
    """Why it is not recorded."""


class Recorded(Model):
    """All sessions of one study."""

    title: str
    """Title of the report."""
    sessions: dict[SessionId, Entry] = Field(min_length=1)
    """The recorded sessions, the oldest first."""
    not_recorded: tuple[NotRecorded, ...] = ()
    """The sessions that were started and are not here."""
    retired: str | None = None
    """Why it is measured no more; its sessions stay. Null: it is measured."""

    @property
    def newest(self) -> str:
        """The session shown as the study's page: the newest that is not superseded, else the newest."""
        return max(self.sessions, key=lambda one: (self.sessions[one].is_pooled, one))

    def of_design(self, design: str) -> dict[str, Entry]:
        """Return the sessions that are pooled under a design."""
        known = self.sessions.items()
        return {name: one for name, one in known if one.design == design and one.is_pooled}


class Index(Model):
    """All recorded studies by name."""

    studies: dict[Name, Recorded] = Field(default_factory=dict)
    """The recorded studies, sorted by name."""

    def with_session(self, name: str, title: str, session: str, entry: Entry) -> Index:
        """Return the index with one session more, or with another entry for one that is there."""
        before = self.studies.get(name)
        sessions = {**(before.sessions if before else {}), session: entry}
        known: dict[str, Any] = {"title": title, "sessions": dict(sorted(sessions.items()))}
        whole = before.model_copy(update=known) if before else Recorded(**known)
        return self.with_study(name, whole)

    def with_study(self, name: str, study: Recorded) -> Index:
        """Return the index with a study as it is given."""
        return Index(studies={**self.studies, name: study})


def read(folder: Path | None = None) -> Index:
    """Read the index; empty where there is none yet. InputErrors with every mistake."""
    file = (folder or paths.record()) / INDEX
    if not file.is_file():
        return Index()
    return validate(yaml_file.read(file, f"data/record/{INDEX}", is_ours=True), Index)


def archives() -> list[Path]:
    """Return the archives of all sessions, by study and time."""
    return sorted(paths.record().glob("[!.]*/*Z-*.tar.xz"))


def places(name: str, session: str | None = None) -> paths.RecordedPaths:
    """Return the places of a recorded session of a study; of the newest where none is named."""
    return paths.recorded(name, session or read().studies[name].newest)


def write(index: Index, folder: Path | None = None) -> Path:
    """Write the index, studies sorted by name and sessions by time."""
    yaml = YAML()
    yaml.width, yaml.indent = 110, 2
    text = io.StringIO()
    told = {name: index.studies[name].model_dump(mode="json") for name in sorted(index.studies)}
    for study in told.values():
        study["sessions"] = dict(sorted(study["sessions"].items()))
    yaml.dump({"studies": told}, text)
    file = (folder or paths.record()) / INDEX
    file.parent.mkdir(parents=True, exist_ok=True)
    files.write_text(file, _HEAD + text.getvalue())
    return file
