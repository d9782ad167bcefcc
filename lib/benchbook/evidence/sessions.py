"""A session by its own raw files, and the record held against it: one entry an archive, one session a run."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchbook.compare.text import cpu_models
from benchbook.core.artifacts import design, record, run_folder
from benchbook.core.artifacts.artifact import Facts
from benchbook.core.artifacts.findings import Findings
from benchbook.core.artifacts.record import RecordedMachine
from benchbook.core.util import files, numeric_equality, paths
from benchbook.core.util.errors import BenchbookError
from benchbook.evidence import archive, recompute
from benchbook.evidence.archive_reader import ArchiveContents
from benchbook.read import tidy

# Digits of a log's SHA-256 in an entry: of a million logs no two have the same by chance.
LOG_DIGITS = 12


def runs_by_log(manifest: archive.ArchiveManifest) -> dict[str, str]:
    """Raw runs of an archive by the first digits of the SHA-256 of their logs."""
    begin, end = f"data/{manifest.study}/raw/", f"/{run_folder.OUT}"
    return {
        file.sha256[:LOG_DIGITS]: place.removeprefix(begin).removesuffix(end)
        for place, file in sorted(manifest.files.items())
        if place.startswith(begin) and place.endswith(end) and place.count("/") == 4
    }


def read_start(held: ArchiveContents) -> str:
    """Start of the first run of a session, by its evidence; BenchbookError without a run."""
    moments = [folder.times().started_utc for folder in held.folders]
    if not moments:
        raise BenchbookError(f"{held.name}: no raw run, and so no session")
    return min(moments)


def format_minute(moment: str) -> str:
    """Minute of a moment as the index writes it, such as 2026-11-23T02:29Z."""
    return f"{moment[:16]}Z"


def session_id(held: ArchiveContents) -> str:
    """A session's id, by its raw runs alone: the first one's UTC minute, 4 hex digits over all manifests."""
    manifests = {folder.name: folder.path / run_folder.MANIFEST for folder in held.folders}
    lines = sorted(f"{name} {files.digest_file(file)}\n" for name, file in manifests.items())
    stamp = format_minute(read_start(held)).replace("-", "").replace(":", "")
    return f"{stamp}-{hashlib.sha256(''.join(lines).encode()).hexdigest()[:4]}"


def list_methods(held: ArchiveContents) -> dict[str, int]:
    """Methods that a session used: as provision wrote them, else by the evidence of its runs.

    Sessions from before methods were written show them: a ledger by account is turns of the first kind, and
    programs without precedence are placed as first. Levels whose transactions were too long for the turns of
    others have a method of their own.
    """
    orders = {str(plan.get("order", "runs")) for plan in held.plans.values()}
    used, mixed = design.methods_used(held.study, orders), design.mixed_methods(held.plans.values())
    if (written := held.facts.methods) is not None:
        # A way that got its number later is not written.
        late = {*design.LATER} - {*written}
        return {name: int(written[name]) for name in used if name not in late} | mixed
    shown = _show_methods(held)
    return {name: shown.get(name, 1) for name in used if name not in design.LATER} | mixed


def _show_methods(held: ArchiveContents) -> dict[str, int]:
    """Methods by the evidence of a session's first run."""
    first = min(held.folders, key=lambda item: item.times().started_utc).evidence()
    ledger = (first.get("ledger") or {}).get("after") or {}
    nice = ((first.get("identity_before") or {}).get("place") or {}).get("nice", "")
    return {
        "turns": 1 if "Account_other" in ledger else 2,
        "local": 2 if str(nice).startswith("-") else 1,
        "cluster": 2 if first.get("arrangement") else 1,
    }


def describe_design(held: ArchiveContents) -> dict[str, Any]:
    """A session's design in its parts, for `design.describe_differences`."""
    return design.describe_design(held.study, held.facts.arms, list_methods(held))


def machine_of(facts: Facts) -> RecordedMachine:
    """Machine under the servers, from the facts of the first arm, with all versions seen."""
    arm = next(iter(facts.arms.values()))
    hosts = arm.get("hosts") or {}
    host: Mapping[str, Any] = arm.get("machine") or hosts.get("server") or next(iter(hosts.values()), {})
    processor = cpu_models.parse_processor(str(host.get("cpu_model") or "not known"))
    return RecordedMachine(
        processor=processor.name,
        cores=float(host.get("cores") or 1),
        memory_mib=host.get("memory_mib"),
        kernel=host.get("kernel"),
        system=host.get("system") or (arm.get("node") or {}).get("image"),
        site=str((arm.get("site") or {}).get("kind", "not known")),
        versions={name: ", ".join(versions) for name, versions in design.list_versions(facts.arms).items()},
        probes={name: value for name, value in (facts.probes or {}).items() if value is not None},
        **processor.model_dump(exclude={"name"}, exclude_none=True),
    )


def find_unmatched(index: record.Index) -> Iterator[str]:
    """Archives without an entry or of other bytes than its, and entries without results."""
    recorded_sessions = {session.where.archive: session for session in index.sessions()}
    for file in record.list_archives():
        if file not in recorded_sessions:
            place = file.relative_to(paths.find_root()).as_posix()
            yield f"{place}: not in {record.INDEX}; `make record` writes both"
        # The newest is made again, which says it of itself.
        elif not recorded_sessions[file].is_newest and (wrong := recorded_sessions[file].other_archive()):
            yield wrong
    for session in recorded_sessions.values():
        if not session.where.results.is_file():
            yield f"{session.place_of(session.where.results)}: not there; take it from git again"


def find_duplicates(index: record.Index) -> Iterator[str]:
    """Sessions that have runs of another, by the logs that their entries name."""
    before: dict[str, str] = {}
    for session in index.sessions():
        logs = session.entry.logs.split()
        shared = sorted({before[log] for log in logs if log in before})
        if shared:
            yield f"{session.archive_name}: has runs of {', '.join(shared)}; one measurement is one session"
        before |= dict.fromkeys(logs, session.archive_name)


def results_of(held: ArchiveContents) -> record.Results:
    """Results of a session that is unpacked and analyzed: its findings, facts and design."""
    findings = Findings.read(held.where.findings)
    return record.Results(findings=findings, facts=held.facts, design=describe_design(held))


def write_results(file: Path, results: record.Results) -> str:
    """Write the results of a session, SESSION.json beside its archive; return their SHA-256."""
    text = json.dumps(results.plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    files.write_text(file, text + "\n")
    return files.digest_file(file)


def from_raw(session: record.RecordedSession, root: Path) -> tuple[list[str], list[str]]:
    """Make a session again below `root`, an empty folder; compare it with its entry and results.

    Return why it is no evidence of its entry, and what came out otherwise. BenchbookError where the archive
    is not whole, or parse and analyze fail on it.
    """
    study = archive.unpack_archive(session.where.archive, root).study
    if study != session.where.name:
        return [f"{session.archive_name}: holds the study {study}; it belongs into that folder"], []
    inside, in_git, differs = paths.StudyPaths(study, root), session.results, []
    for file, ours in ((inside.findings, in_git.findings), (inside.facts, in_git.facts)):
        if type(ours).read(file) != ours:
            differs.append(f"{file.name}: the archive has another than {session.where.results.name}")
    differs += recompute.compare_results(study, root, 1)
    with paths.use_root(root):
        held = ArchiveContents(root, study)
        evidence = {"session": session_id(held), **derive_entry(held)}
    refused = [*filter(None, [session.other_archive()])]
    for key, value in evidence.items():
        statement = session.id if key == "session" else getattr(session.entry, key)
        if statement != value:
            text = f"{key}: {record.INDEX} says {statement}, its raw files {value}"
            refused.append(f"{session.archive_name}: {text}")
    tables = tidy.load_tables(held.where.tidy)
    # The columns that there were when it was recorded.
    columns = record.read_index().studies[study].columns[session.entry.columns]
    kept = {name: tables[name].reindex(columns=text.split()) for name, text in columns.items()}
    if numeric_equality.tables_digest(kept) != session.entry.tables:
        differs.append("tidy tables: other values than recorded")
    return refused, [f"{session.archive_name}: {text}" for text in differs]


def derive_entry(held: ArchiveContents) -> dict[str, Any]:
    """Fields of an entry that follow from a session's raw files, by the entry's keys."""
    logs = sorted(files.digest_file(folder.path / run_folder.OUT)[:LOG_DIGITS] for folder in held.folders)
    methods = list_methods(held)
    # The one that the session drew, or that of the study file.
    seed = held.session.get("seed", held.study.plan.seed)
    if seed is None:
        raise BenchbookError(f"{held.name}: session.json: missing, and the study file has no plan.seed")
    return {
        "measured": format_minute(read_start(held)),
        "seed": int(seed),
        "runs": len(logs),
        "logs": " ".join(logs),
        "methods": methods,
        "design": design.compute_digest(held.study, held.facts.arms, methods),
        "machine": machine_of(held.facts),
    }
