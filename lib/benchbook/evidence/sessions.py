"""What a session is, told by its own raw files, and the record held against it.

An archive has one entry, a run one session, an entry its archive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchbook.compare.text import cpu_models
from benchbook.core.artifacts import design, record, run_folder
from benchbook.core.artifacts.artifact import Facts
from benchbook.core.artifacts.record import Machine
from benchbook.core.util import files, numeric_equality, paths
from benchbook.core.util.errors import BenchbookError
from benchbook.evidence import archive, recompute
from benchbook.evidence.archive_reader import Unpacked
from benchbook.read import tidy


def runs_of(manifest: archive.Manifest, name: str = run_folder.MANIFEST) -> dict[str, str]:
    """Return the SHA-256 of each raw run's manifest, or another file of it, as an archive's own lists it."""
    begin, end = f"data/{manifest.study}/raw/", f"/{name}"
    return {
        place.removeprefix(begin).removesuffix(end): one.sha256
        for place, one in sorted(manifest.files.items())
        if place.startswith(begin) and place.endswith(end) and place.count("/") == 4
    }


def logs_in(file: Path) -> dict[str, str]:
    """Return the raw runs of an archive that is not unpacked, by the SHA-256 of their logs.

    No other measurement has the same log, whatever else of a run was changed.
    """
    logs = runs_of(archive.manifest(file), run_folder.OUT)
    return {digest: run for run, digest in logs.items()}


def begun(held: Unpacked) -> str:
    """Return when the first run of a session started, by its evidence; BenchbookError without a run."""
    moments = [folder.times().started_utc for folder in held.folders]
    if not moments:
        raise BenchbookError(f"{held.name}: no raw run, and so no session")
    return min(moments)


def minute(moment: str) -> str:
    """Return the minute of a moment as the index writes it, such as 2026-11-23T02:29Z."""
    return f"{moment[:16]}Z"


def session_id(held: Unpacked) -> str:
    """Return a session's id: the UTC minute of its first run, and 4 hex digits over all runs' manifests.

    It follows from the raw runs alone, so it stays what it is under any name of a file.
    """
    runs = {one.name: files.sha256(one.path / run_folder.MANIFEST) for one in held.folders}
    return id_of(minute(begun(held)), runs)


def id_of(measured: str, runs: Mapping[str, str]) -> str:
    """Return a session's id by its first minute and the hashes of its runs' manifests by run."""
    lines = sorted(f"{name} {digest}\n" for name, digest in runs.items())
    stamp = measured.replace("-", "").replace(":", "")
    return f"{stamp}-{hashlib.sha256(''.join(lines).encode()).hexdigest()[:4]}"


def methods(held: Unpacked) -> dict[str, int]:
    """Methods that a session used: as provision wrote them, else by what its runs show.

    Sessions from before methods were written show them: a ledger by account is turns of the first kind, and
    programs without precedence are placed as first. Levels whose transactions were too long for the turns of
    others have a method of their own.
    """
    orders = {str(plan.get("order", "runs")) for plan in held.plans.values()}
    used, mixed = design.used(held.study, orders), design.mixed(held.plans.values())
    written = held.facts.methods
    if written is not None:
        # A way that got its number later is not written.
        return {
            name: int(written[name]) for name in used if name in written or name not in design.LATER
        } | mixed
    first = min(held.folders, key=lambda one: one.times().started_utc).evidence()
    ledger = (first.get("ledger") or {}).get("after") or {}
    nice = ((first.get("identity_before") or {}).get("place") or {}).get("nice", "")
    shown = {
        "turns": 1 if "Account_other" in ledger else 2,
        "local": 2 if str(nice).startswith("-") else 1,
        "cluster": 2 if (first.get("arrangement") or {}) else 1,
    }
    return {name: shown.get(name, 1) for name in used if name not in design.LATER} | mixed


def seed_of(held: Unpacked) -> int:
    """Return the seed of a session: the one it drew, or that of the study file."""
    seed = held.session.get("seed", held.study.plan.seed)
    if seed is None:
        raise BenchbookError(f"{held.name}: session.json: missing, and the study file has no plan.seed")
    return int(seed)


def described(held: Unpacked) -> dict[str, Any]:
    """Return a session's design in its parts, for `design.differing`."""
    return design.described(held.study, held.facts.arms, methods(held))


def machine_of(facts: Facts) -> Machine:
    """Return the machine under the servers, from the facts of the first arm, with all versions seen."""
    arm = next(iter(facts.arms.values()))
    hosts = arm.get("hosts") or {}
    seen: Mapping[str, Any] = arm.get("machine") or hosts.get("server") or next(iter(hosts.values()), {})
    one = cpu_models.processor(str(seen.get("cpu_model") or "not known"))
    probes: Mapping[str, Any] = facts.probes or {}
    return Machine(
        processor=one.name,
        cores=float(seen.get("cores") or 1),
        memory_mib=seen.get("memory_mib"),
        kernel=seen.get("kernel"),
        system=seen.get("system") or (arm.get("node") or {}).get("image"),
        site=str((arm.get("site") or {}).get("kind", "not known")),
        versions={name: ", ".join(versions) for name, versions in design.versions(facts.arms).items()},
        probes={name: value for name, value in probes.items() if value is not None},
        **one.model_dump(exclude={"name"}, exclude_none=True),
    )


def facts_in(file: Path) -> Facts:
    """Return the facts in an archive that is not unpacked; BenchbookError where it has none."""
    return Facts.parse(archive.documents(file, "facts.json")[0], file)


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
    seen: dict[str, str] = {}
    for file in record.archives():
        place = f"data/record/{file.parent.name}/{file.name}"
        try:
            logs = logs_in(file)
        except BenchbookError:
            continue  # An archive that can't be read is named when it is made again.
        shared = sorted({seen[one] for one in logs if one in seen})
        if shared:
            yield f"{place}: has runs of {', '.join(shared)}; one measurement is one session"
        seen |= dict.fromkeys(logs, place)


def from_raw(
    where: paths.RecordedPaths, entry: record.Entry, root: Path
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Make a session again below `root`, which is empty, and hold it against its entry.

    Return its design in parts, why it is no evidence of its entry, and what came out otherwise.
    BenchbookError where the archive is not whole, or parse and analyze fail on it.
    """
    study = archive.unpack(where.archive, root).study
    if study != where.name:
        return {}, [f"{_place(where)}: holds the study {study}; it belongs into that folder"], []
    found = [*recompute.compared(study, root, 1)]
    with paths.at(root):
        held = Unpacked(root, study)
        shown, session, parts = follows(held), session_id(held), described(held)
    refused = [*other_archive(where, entry), *_otherwise(where, entry, session, shown)]
    tables = tidy.load(held.where.tidy)
    found += [f"tidy/{text}" for text in numeric_equality.table_differences(entry.made, tables)]
    return parts, refused, [f"{_place(where)}: {text}" for text in found]


def taken(where: paths.RecordedPaths, entry: record.Entry, root: Path) -> tuple[dict[str, Any], list[str]]:
    """Put what an archive says of its own session below `root`, without its runs; return its design in parts,
    and what its entry says otherwise.

    It was made again when it was recorded, and is the same to the byte. BenchbookError where it is not.
    """
    if wrong := [*other_archive(where, entry)]:
        raise BenchbookError(wrong[0].partition(": ")[2])
    manifest = archive.unpack(where.archive, root, TAKEN).manifest
    held = Unpacked(root, where.name)
    methods = entry.methods if held.facts.methods is None else held.facts.methods
    runs = runs_of(manifest)
    told = {name: methods.get(name) if name in design.METHODS else one for name, one in entry.methods.items()}
    shown = _by_facts(held, told) | {"runs": len(runs)}
    other = [*_otherwise(where, entry, id_of(entry.measured, runs), shown)]
    return design.described(held.study, held.facts.arms, entry.methods), other


def other_archive(where: paths.RecordedPaths, entry: record.Entry) -> Iterator[str]:
    """Say that an archive is not the one of its entry."""
    found = files.sha256(where.archive)
    if found != entry.sha256:
        yield (
            f"{_place(where)}: not the archive of {record.INDEX}: its sha256 begins with {found[:12]}, the "
            f"recorded one with {entry.sha256[:12]}"
        )


def follows(held: Unpacked) -> dict[str, Any]:
    """Return what an entry says of a session whose raw files show it, by the entry's keys."""
    shown = {"measured": minute(begun(held)), "seed": seed_of(held), "runs": len(held.folders)}
    return shown | _by_facts(held, methods(held))


def _by_facts(held: Unpacked, methods: Mapping[str, Any]) -> dict[str, Any]:
    arms = held.facts.arms
    found = {"methods": methods, "design": design.of(held.study, arms, methods)}
    return found | {"machine": machine_of(held.facts)}


def _otherwise(
    where: paths.RecordedPaths, entry: record.Entry, session: str, shown: Mapping[str, Any]
) -> Iterator[str]:
    """Yield what an entry says otherwise than its session shows."""
    for key, value in {"session": session, **shown}.items():
        said = where.session_id if key == "session" else getattr(entry, key)
        if said != value:
            yield f"{_place(where)}: {key}: {record.INDEX} says {said}, its raw files {value}"


def _place(where: paths.RecordedPaths) -> str:
    return where.archive.relative_to(where.clone).as_posix()
