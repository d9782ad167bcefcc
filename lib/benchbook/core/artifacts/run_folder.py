"""The run folder: the contract between measuring and reading.

A folder is complete or absent. While a run goes on its files are in `NAME.part`; once its manifest with
the hashes of all files is on disk the folder takes its name, and nothing in it is written again. Where a run
has several clients, what those after the first printed is in folders of their own, `client-1` and so on.
Parts of its `evidence.json` are types here: measuring writes them, reading takes them apart.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field

from benchbook.core.artifacts.artifact import Document, DocumentPart, describe_error
from benchbook.core.study import client_sharding, interleaving
from benchbook.core.study.model import FORMAT, PlannedRun
from benchbook.core.util import files

OUT, ERR = "sysbench.out", "sysbench.err"
# What a client got its options from, where they were not arguments.
OPTIONS = "sysbench.cnf"
# The turns of the whole group, where it was made in turns.
TURNS = "turns.csv"
PLAN, EVIDENCE, MONITOR = "plan.json", "evidence.json", "monitor.csv"
MANIFEST, VOID = "manifest.json", "void.json"
CONTENT = (PLAN, OUT, ERR, EVIDENCE, MONITOR)
PART = ".part"
FAILED = ("invalid", "indeterminate")
# What a voided run may have been voided for; `earlier`, `killed` and `apart` cost no attempt.
COUNTED = (*FAILED, "partner")


def client_file(number: int, name: str) -> str:
    """Path of a client's file below the run folder."""
    return name if number == 0 else f"client-{number}/{name}"


def planned_files(plan: Mapping[str, Any]) -> tuple[str, ...]:
    """Files of a planned run's folder beside its manifest."""
    setting = plan.get("arm_setting")
    names = (OUT, ERR, OPTIONS) if client_sharding.has_file(setting) else (OUT, ERR)
    clients = range(client_sharding.count_clients(setting))
    results = [client_file(number, name) for number in clients for name in names]
    results += [TURNS] if interleaving.is_in_turns(plan) else []
    return tuple(dict.fromkeys([*CONTENT, *results]))


class Listed(DocumentPart):
    """A file as a manifest has it."""

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(ge=0)]

    @classmethod
    def of(cls, file: Path) -> Listed:
        """Hash and size of a file on the disk."""
        return cls(sha256=files.digest_file(file), bytes=file.stat().st_size)


class RunManifest(Document):
    """Content of a run folder."""

    format: int
    run_id: str
    attempt: int
    files: dict[str, Listed]


class Note(Document):
    """Note beside a voided folder; of a damaged one the status is `unreadable`."""

    run_id: str
    attempt: int
    status: str
    reasons: list[str]


@dataclass(frozen=True)
class RunFolder:
    """One run's files."""

    path: Path

    @property
    def name(self) -> str:
        """Run id, with the attempt behind it in `void`."""
        return self.path.name

    def plan(self) -> dict[str, Any]:
        """Planned settings of the run."""
        return files.parse_finite(self.text(PLAN))

    def planned(self) -> PlannedRun:
        """Plan as a run; TypeError if a setting is missing."""
        return PlannedRun.of(self.plan())

    def evidence(self) -> dict[str, Any]:
        """Observations before, during and after the run."""
        return files.parse_finite(self.text(EVIDENCE))

    def times(self) -> Times:
        """Begin and end of the run."""
        return Times.of(self.evidence())

    def manifest(self) -> RunManifest:
        """Hashes and sizes of the files."""
        return RunManifest.model_validate(json.loads(self.text(MANIFEST)))

    def text(self, name: str) -> str:
        """A file as text, bytes that are not UTF-8 replaced; OSError for anything but a plain file."""
        return files.read_plain(self.path / name).decode("utf-8", errors="replace")

    def verify(self) -> list[str]:
        """Faults of the folder against its manifest; an empty list means it is whole."""
        try:
            if self.path.is_symlink():
                return ["the run folder is a symbolic link; put the folder itself here"]
            there = dict(files.walk_tree(self.path))
            odd = {name: kind for name, kind in there.items() if kind not in (None, files.FOLDER)}
            if odd:
                rule = "a run folder holds plain files only"
                return [f"{name}: it is {kind}; {rule}" for name, kind in odd.items()]
            manifest = self.manifest()
            names = dict.fromkeys([*CONTENT, *manifest.files, *self.content()])
            recorded = {name: manifest.files[name] for name in names}
        except (OSError, ValueError, KeyError, RecursionError) as error:
            return [f"{MANIFEST}: {describe_error(error)}"]
        problems = []
        if manifest.format != FORMAT:
            problems.append(f"{MANIFEST}: format {manifest.format}, this version reads {FORMAT}")
        if manifest.run_id != run_of(self.name):
            problems.append(f"{MANIFEST}: it is the folder of {manifest.run_id}")
        return [*problems, *self._find_changes(recorded, there)]

    def _find_changes(self, recorded: Mapping[str, Listed], there: Mapping[str, str | None]) -> Iterator[str]:
        """Recorded files that are gone or other ones, and what is there beside them."""
        for name, listed in recorded.items():
            file = self.path / name
            if there.get(name, files.FOLDER) is not None:
                yield f"{name}: missing"
            elif file.stat().st_size != listed.bytes or files.digest_file(file) != listed.sha256:
                yield f"{name}: its bytes are not those of the manifest"
        folders = {str(Path(name).parent) for name in recorded}
        extra = sorted(set(there) - set(recorded) - folders - {MANIFEST})
        yield from (f"{name}: not listed in the manifest" for name in extra)

    def content(self) -> tuple[str, ...]:
        """Files that its plan asks for, or those of any run if the plan can't be read."""
        try:
            return planned_files(self.plan())
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            return CONTENT


def begin_folder(parent: Path, plan: dict[str, Any]) -> Path:
    """Make `RUN_ID.part` with its plan on disk, for a run that is about to start; return its path."""
    part = parent / (plan["run_id"] + PART)
    part.mkdir(parents=True)
    for name in planned_files(plan):
        (part / name).parent.mkdir(exist_ok=True)
    files.write_json(part / PLAN, plan)
    return part


def seal_folder(part: Path, attempt: int) -> RunFolder:
    """Write the manifest from the bytes read back from the disk; the folder is whole from here."""
    listed = {}
    for name in RunFolder(part).content():
        with (part / name).open("rb") as stream:
            os.fsync(stream.fileno())
        listed[name] = Listed.of(part / name)
    manifest = RunManifest(format=FORMAT, run_id=part.name.removesuffix(PART), attempt=attempt, files=listed)
    manifest.write(part / MANIFEST)
    for folder in (*part.glob("client-*"), part):
        _sync_folder(folder)
    return RunFolder(part)


def move_to_raw(folder: RunFolder, raw: Path) -> RunFolder:
    """Give a sealed folder its final name in `raw`."""
    target = raw / folder.name.removesuffix(PART)
    folder.path.rename(target)
    _sync_folder(raw)
    return RunFolder(target)


def void_folder(folder: Path, into: Path, status: str, reasons: list[str]) -> Path:
    """Move a folder, whole or not, to the evidence with the reason beside it; return its new path."""
    into.mkdir(parents=True, exist_ok=True)
    run_id = folder.name.removesuffix(PART)
    attempts = [_attempt_number(path) for path in into.iterdir() if run_of(path.name) == run_id]
    number = 1 + max(attempts, default=0)
    target = into / f"{run_id}.a{number}"
    note = Note(run_id=run_id, attempt=number, status=status, reasons=reasons)
    note.write(target.with_name(f"{target.name}.{VOID}"))
    folder.rename(target)
    _sync_folder(into)
    return target


def run_of(name: str) -> str:
    """Run id in a folder's name, finished, unfinished or voided."""
    return re.sub(r"(\.part|\.a[0-9]+)$", "", name)


def read_note(note: Path) -> Note:
    """Note beside a voided folder."""
    try:
        return Note.model_validate_json(files.read_plain(note).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        folder, reasons = voided_by(note), [f"{note.name}: damaged: {describe_error(error)}"]
        run_id, attempt = run_of(folder.name), _attempt_number(folder.path)
        return Note(run_id=run_id, attempt=attempt, status="unreadable", reasons=reasons)


def voided_by(note: Path) -> RunFolder:
    """Folder that a note stands beside."""
    return RunFolder(note.with_name(note.name.removesuffix(f".{VOID}")))


def list_folders(parent: Path) -> Iterator[RunFolder]:
    """Finished folders of `raw` in the order of their names."""
    if parent.is_dir():
        for path in sorted(parent.iterdir()):
            if path.is_dir() and not path.name.endswith(PART):
                yield RunFolder(path)


def list_unfinished(parent: Path) -> list[Path]:
    """The `.part` folders that a killed run left behind."""
    return sorted(path for path in parent.glob("*" + PART) if path.is_dir()) if parent.is_dir() else []


def _attempt_number(path: Path) -> int:
    attempt = re.search(r"\.a([0-9]+)$", path.name)
    return int(attempt[1]) if attempt else 0


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True)
class _EvidencePart:
    """A part of a run's evidence, under its own keys; keys it does not name are ignored."""

    @classmethod
    def of(cls, observations: Mapping[str, Any]) -> Self:
        """Part of the evidence from a mapping; TypeError if a key without a default is missing."""
        absent = [item for item in fields(cls) if item.name not in observations]
        needed = [item.name for item in absent if item.default is item.default_factory is MISSING]
        if needed:
            raise TypeError(f"{EVIDENCE}: missing: {', '.join(needed)}")
        return cls(**{item.name: observations[item.name] for item in fields(cls) if item not in absent})


@dataclass(frozen=True)
class Times(_EvidencePart):
    """Begin and end of a run, by both clocks, and the step of the wall clock."""

    started_utc: str
    ended_utc: str
    started_monotonic_s: float
    ended_monotonic_s: float
    sysbench_s: float
    clock_step_s: float


@dataclass(frozen=True)
class Cache(_EvidencePart):
    """The pages of a server's pool, by its own count, and its reads from disk by then."""

    pages: int
    pages_of_pool: int
    page_bytes: int
    pages_read: int
    bytes_read: int


@dataclass(frozen=True)
class Between(_EvidencePart):
    """Counts of a server between two runs: `counters` that moved, all `connections`, `own` that are ours."""

    seconds: float
    uptime_s: float
    connections: int | None
    own: int | None
    counters: Mapping[str, int]
    is_shared: bool
    refused: int = 0
    not_held: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NetworkNamespace(_EvidencePart):
    """A network namespace of an arm's parts; None for values the kernel does not tell."""

    parts: list[str]
    is_shared: bool
    rules: int | None
    dropped: int | None
    sent: int | None = None
    again: int | None = None


@dataclass(frozen=True)
class ForeignActivity(_EvidencePart):
    """Foreign actions on the processes and packets of a run on one machine."""

    traced: Mapping[str, str]
    stopped: Mapping[str, int]
    continued: list[str]
    counting: list[str]
    networks: list[Mapping[str, Any]]
    connections: Mapping[str, int | None] | None
    limits: Mapping[str, list[str]] = field(default_factory=dict)
    held_back: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def each(self) -> list[NetworkNamespace]:
        """Its networks."""
        return [NetworkNamespace.of(network) for network in self.networks]
