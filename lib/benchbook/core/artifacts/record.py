"""The measured record: an index of sessions for each study, and the results of each session.

`data/record/STUDY` has `index.json`, which says what each session is; SESSION.json with the results that
pooling reads; and SESSION.tar.xz, the whole evidence, where it doesn't lie in a remote under its SHA-256.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from benchbook.core.artifacts.artifact import Document, Facts
from benchbook.core.artifacts.findings import Findings
from benchbook.core.study.study_base import Model, Name
from benchbook.core.util import files, paths
from benchbook.core.util.errors import BenchbookError

INDEX = "index.json"
_HASH = r"^[0-9a-f]{64}$"
SESSION = r"^[0-9]{8}T[0-9]{4}Z-[0-9a-f]{4}$"
MINUTE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}Z$"
MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}Z)?$"
SessionId = Annotated[str, Field(pattern=SESSION)]


class RecordedMachine(Model):
    """Machine under the servers, and the software on it."""

    processor: str
    family: int | None = None
    """Family of the processor; null where the session did not keep it."""
    model: int | None = None
    stepping: int | None = None
    cores: float = Field(gt=0)
    """Cores that programs could use."""
    memory_mib: int | None = None
    kernel: str | None = None
    system: str | None = None
    """The operating system."""
    site: str
    """Kind of site."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Each engine and proxy with its version, as observed; several of one name joined by commas."""
    probes: dict[str, float] = Field(default_factory=dict)
    """What was measured of it, by names that end in their units."""

    @property
    def processor_model(self) -> str:
        """Name of its processor."""
        numbers = (self.family, self.model, self.stepping)
        which = "" if self.family is None else " (family {}, model {}, stepping {})".format(*numbers)
        return f"{self.processor}{which}"

    @property
    def description(self) -> str:
        """Place of the measurement, in a line."""
        return f"{self.cores:g} cores of {self.processor_model}, {self.memory_mib} MiB, {self.system}"


class Superseded(Model):
    """Reason that a session is listed and not pooled."""

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
    machine: RecordedMachine
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
    sha256: str = Field(pattern=_HASH)
    """Hash of the archive; `bytes` is its size."""
    tables: str = Field(pattern=_HASH)
    """Digest of the tidy tables that follow from the raw files, their columns being those of `columns`."""
    columns: str
    """Which columns: a key of the study's `columns`. One that came later is in no digest."""
    results: str = Field(pattern=_HASH)
    """Hash of SESSION.json."""
    logs: str
    """First digits of the SHA-256 of each run's log: no other measurement has the same."""
    superseded: Superseded | None = None
    """Why it, or an arm of it, is not pooled; null: all of it is."""

    @property
    def is_pooled(self) -> bool:
        """True if anything of it is pooled."""
        return self.superseded is None or bool(self.superseded.arms)


class NotRecorded(Model):
    """A session that was started and is not in the record."""

    begun: str = Field(pattern=MOMENT)
    """UTC minute in which it began; its day where the minute was not kept."""
    processor: str
    why: str


class Recorded(Model, Document):
    """All sessions of one study."""

    title: str
    sessions: dict[SessionId, Entry] = Field(min_length=1)
    """The recorded sessions, the oldest first."""
    not_recorded: tuple[NotRecorded, ...] = ()
    retired: str | None = None
    """Why it is measured no more; its sessions stay. Null: it is measured."""
    columns: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Columns of the tidy tables, by a digest of them: names joined by blanks, by table."""

    @property
    def newest(self) -> str:
        """The session shown as the study's page: the newest that is not superseded, else the newest."""
        return max(self.sessions, key=lambda item: (self.sessions[item].is_pooled, item))

    def with_session(self, session: str, entry: Entry) -> Recorded:
        """The study with one session more, or with another entry for one that is there."""
        return self.model_copy(update={"sessions": dict(sorted({**self.sessions, session: entry}.items()))})

    def of_design(self, design: str) -> dict[str, Entry]:
        """Sessions that are pooled under a design."""
        entries = self.sessions.items()
        return {name: entry for name, entry in entries if entry.design == design and entry.is_pooled}


class Index(Model):
    """All recorded studies by name."""

    studies: dict[Name, Recorded] = Field(default_factory=dict)

    def sessions(self, name: str | None = None) -> Iterator[RecordedSession]:
        """The sessions of every study, or of one, by name and time."""
        for study in sorted(self.studies) if name is None else [name]:
            for session in sorted(self.studies[study].sessions):
                yield self.session(study, session)

    def session(self, name: str, session: str) -> RecordedSession:
        """One session of a study."""
        study = self.studies[name]
        where = paths.recorded_paths(name, session)
        return RecordedSession(where, study.sessions[session], session == study.newest)

    def newest(self, name: str) -> RecordedSession:
        """The session that a study's page shows."""
        return self.session(name, self.studies[name].newest)


@dataclass(frozen=True)
class RecordedSession:
    """A session of the record: its places, its entry, and true if its study's page shows it."""

    where: paths.RecordedPaths
    entry: Entry
    is_newest: bool

    @property
    def id(self) -> str:
        """Its id."""
        return self.where.session_id

    @property
    def archive_name(self) -> str:
        """Place of its archive from the root on, as messages have it."""
        return self.place_of(self.where.archive)

    def place_of(self, file: Path) -> str:
        """Place of a file of the clone, from the root on."""
        return file.relative_to(self.where.clone).as_posix()

    @property
    def results(self) -> Results:
        """Results in git beside the archive; BenchbookError if they are not those of the entry."""
        return self._read_results()

    @property
    def pooled_results(self) -> Results:
        """The same without causes, which take nine tenths of the time to parse and are never pooled."""
        return self._read_results(without=("causes",))

    def _read_results(self, without: Iterable[str] = ()) -> Results:
        file, place = self.where.results, self.place_of(self.where.results)
        text = file.read_bytes() if file.is_file() else b""
        if hashlib.sha256(text).hexdigest() != self.entry.results:
            what = f"not the results of {INDEX}" if text else "not there"
            raise BenchbookError(f"{place}: {what}; take it from git again")
        return parse_results(text, file, without)

    def other_archive(self) -> str | None:
        """Reason that the archive there is not the one of the entry; None if it is."""
        digest = files.digest_file(self.where.archive)
        if digest == self.entry.sha256:
            return None
        begins = f"its sha256 begins with {digest[:12]}, the recorded one with {self.entry.sha256[:12]}"
        return f"{self.archive_name}: not the archive of {INDEX}: {begins}"


def read_index() -> Index:
    """Index of all recorded studies, empty if there is none. BenchbookError for a damaged file."""
    indexes = sorted(paths.record_folder().glob(f"[!.]*/{INDEX}"))
    versions = tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in indexes)
    return Index(studies={file.parent.name: _read_study(file, *version) for file, *version in versions})


# One command asks for the index many times; a file that was written has another time.
@lru_cache(maxsize=1024)
def _read_study(file: Path, time_ns: int, size: int) -> Recorded:
    return Recorded.read(file, "`git checkout` of it")


def write_study(name: str, study: Recorded) -> str:
    """Write the index of one study; return its place from the root on."""
    file = paths.record_folder() / name / INDEX
    file.parent.mkdir(parents=True, exist_ok=True)
    study.write(file)
    return file.relative_to(paths.find_root()).as_posix()


def list_archives() -> list[Path]:
    """Archives of sessions that are in git's folders, by study and time."""
    return sorted(paths.record_folder().glob("[!.]*/*Z-*.tar.xz"))


class Results(Document):
    """Results of a session in git beside its archive: all that pooling and study pages read of it."""

    findings: Findings
    facts: Facts
    design: dict[str, Any]
    """Its design in parts, as `design.describe_design` gives it."""


def parse_results(text: bytes | str, file: Path, without: Iterable[str] = ()) -> Results:
    """Results of a session by the text of a file, without parts of the findings; BenchbookError as `read`."""
    remedy = "`git checkout` of it"
    try:
        document = json.loads(text)
    except ValueError as error:
        raise BenchbookError(f"{file.name}: {error}; run {remedy}") from None
    for part in without:
        document.get("findings", {}).pop(part, None)
    return Results.parse(document, file, remedy)
