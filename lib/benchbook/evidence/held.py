"""The record held against itself: an archive has one entry, a run one session, an entry its archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbook.core import canonical, design, files, paths, record
from benchbook.core.errors import BenchbookError
from benchbook.evidence import archive, remake, sessions
from benchbook.evidence.unpacked import Unpacked
from benchbook.read import tidy

# What the sessions of a study say together is made of these; the study's file comes with them.
TAKEN = ("findings.json", "facts.json")


def strangers(index: record.Index) -> Iterator[str]:
    """Name archives without an entry and entries without an archive."""
    there = {(file.parent.name, file.name.removesuffix(".tar.xz")) for file in record.archives()}
    known = {(name, session) for name, study in index.studies.items() for session in study.sessions}
    for name, session in sorted(there - known):
        yield f"data/record/{name}/{session}.tar.xz: not in {record.INDEX}; `make record` writes both"
    for name, session in sorted(known - there):
        yield (
            f"data/record/{record.INDEX}: {name}, {session}: there is no data/record/{name}/{session}.tar.xz"
            "; take it from git again: what was recorded stays"
        )


def doubled(index: record.Index) -> Iterator[str]:
    """Name runs that two archives have, whatever these are called."""
    seen: dict[tuple[str, str], str] = {}
    for file in record.archives():
        place = f"data/record/{file.parent.name}/{file.name}"
        try:
            runs = sessions.runs_in(file)
        except BenchbookError:
            continue  # An archive that can't be read is named when it is made again.
        shared = sorted({seen[one] for one in runs.items() if one in seen})
        if shared:
            yield f"{place}: has runs of {', '.join(shared)}; one measurement is one session"
        seen |= dict.fromkeys(runs.items(), place)


@dataclass(frozen=True)
class Held:
    """A recorded session made again: `refused` is no evidence of its entry, `differs` came out otherwise."""

    remade: remake.Remade
    refused: tuple[str, ...]
    differs: tuple[str, ...]


def from_raw(where: paths.RecordedPaths, entry: record.Entry, root: Path) -> Held:
    """Make a session again below `root`, which is empty, and hold it against its entry.

    BenchbookError where the archive is not whole, or parse and analyze fail on it.
    """
    remade = remake.remake(where.archive, root, 1)
    if remade.contents.study != where.name:
        told = f"{_place(where)}: holds the study {remade.contents.study}; it belongs into that folder"
        return Held(remade, (told,), ())
    refused = (*other_archive(where, entry), *other_session(where, entry, root))
    tables = tidy.load(remade.where.tidy)
    found = [*remade.differences]
    found += [f"tidy/{text}" for text in canonical.table_differences(entry.made, tables)]
    return Held(remade, refused, tuple(f"{_place(where)}: {text}" for text in found))


def taken(where: paths.RecordedPaths, entry: record.Entry, root: Path) -> tuple[dict[str, Any], list[str]]:
    """Put what an archive says of its own session below `root`, without its runs; return its design in parts,
    and what its entry says otherwise.

    It was made again when it was recorded, and is the same to the byte. BenchbookError where it is not.
    """
    if wrong := [*other_archive(where, entry)]:
        raise BenchbookError(wrong[0].partition(": ")[2])
    archive.take(where.archive, TAKEN, root)
    held = Unpacked(root, where.name)
    runs = sessions.runs_in(where.archive)
    stamp = entry.measured.replace("-", "").replace(":", "")
    methods = entry.methods if held.facts.methods is None else held.facts.methods
    told = {
        "session": (where.session_id, f"{stamp}-{sessions.digits(runs)}"),
        "methods": (entry.methods, {name: methods.get(name) for name in entry.methods}),
        "design": (entry.design, design.of(held.study, held.facts.arms, entry.methods)),
        "machine": (entry.machine, sessions.machine_of(held.facts)),
        "runs": (entry.runs, len(runs)),
    }
    return design.described(held.study, held.facts.arms, entry.methods), [*_otherwise(where, told)]


def other_archive(where: paths.RecordedPaths, entry: record.Entry) -> Iterator[str]:
    """Say that an archive is not the one of its entry."""
    found = files.sha256(where.archive)
    if found != entry.sha256:
        yield (
            f"{_place(where)}: not the archive of {record.INDEX}: its sha256 begins with {found[:12]}, the "
            f"recorded one with {entry.sha256[:12]}"
        )


def other_session(where: paths.RecordedPaths, entry: record.Entry, root: Path) -> Iterator[str]:
    """Name what an entry says otherwise than the session's raw files do, unpacked below `root`."""
    held = Unpacked(root, where.name)
    with paths.at(root):
        told = {
            "session": (where.session_id, sessions.session_id(held)),
            "measured": (entry.measured, sessions.minute(sessions.begun(held))),
            "methods": (entry.methods, sessions.methods(held)),
            "design": (entry.design, sessions.design_of(held)),
            "machine": (entry.machine, sessions.machine_of(held.facts)),
            "seed": (entry.seed, sessions.seed_of(held)),
            "runs": (entry.runs, len(held.folders)),
        }
    yield from _otherwise(where, told)


def _otherwise(where: paths.RecordedPaths, told: Mapping[str, tuple[Any, Any]]) -> Iterator[str]:
    for key, (said, found) in told.items():
        if said != found:
            yield f"{_place(where)}: {key}: {record.INDEX} says {said}, its raw files {found}"


def _place(where: paths.RecordedPaths) -> str:
    return where.archive.relative_to(where.clone).as_posix()
