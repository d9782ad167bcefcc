"""Put a measured study into the record: its evidence as an archive in git, and an entry in the index."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

import pandas as pd
from ruamel.yaml import YAML

from benchbook.commands import stage, terminal_summary
from benchbook.compare.inference import caveats
from benchbook.core.artifacts import record
from benchbook.core.artifacts.findings import Findings
from benchbook.core.study import load, study_variants
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files, git, number_format, numeric_equality, parallel, paths, yaml_file
from benchbook.core.util.errors import BenchbookError, InputErrors, did_you_mean
from benchbook.core.util.plural import count
from benchbook.evidence import archive, archive_store, sessions, verify
from benchbook.evidence.archive import ROOM_BYTES
from benchbook.evidence.archive_reader import ArchiveContents
from benchbook.read import tidy
from benchbook.show import registration, study_answer
from benchbook.sites.workspace import free_bytes

# What the evidence is made with; params.yaml is compared without the lists of what to run.
MADE_WITH = ("lib", "notebooks", "tools", "data/published", "dvc.yaml", "requirements.lock", "pyproject.toml")
LISTS = ("studies", "sources")
COMMIT = "`git add data/record` and commit; `make pages` shows it on the first page"
# Load and CPU pressure are no refusal by themselves: the study before leaves a load, and arms make pressure.
NOISE = ("Other programs", "Steal")
MOST_BYTES = 40_000_000
USUAL_BYTES = 300_000
MOST_OF_A_DOUBT = 200
"""Characters of a doubt that are printed; its page has all of it."""


def run_command(
    study: str | None,
    archives: Sequence[Path],
    session: str | None,
    arms: Sequence[str],
    retired: str | None,
    because: str,
    is_pruning: bool,
    wanted: Sequence[str],
) -> str:
    """Record sessions, note a reason against one, or move archives; return lines on the work done."""
    if sum(map(bool, (study, archives, session, retired, is_pruning, wanted))) != 1:
        ways = "a study, --archive with files, --supersede, --retire, --prune, --fetch with sessions"
        raise InputErrors([f"record takes one of: {ways}"])
    if is_pruning:
        return prune_archives()
    if wanted:
        return fetch_archives(wanted)
    if session:
        return supersede_session(session, because, arms)
    if retired:
        return retire_study(retired, because)
    return take_all(archives) if archives else add_session(str(study))


def add_session(name: str) -> str:
    """Record a session that was measured here, with its doubts; InputErrors with all against it."""
    study = load.load_study(name)
    if wrong := [*find_edits(name), *find_unfinished(name, study)]:
        raise InputErrors([f"{name}: not recorded: {reason}" for reason in wrong])
    with open_staging() as folder:
        packed = archive.pack_study(name, folder / f"{name}.tar.xz", stage.commit_of_evidence(name))
        return f"{take_archive(packed)}\n{COMMIT}"


def take_all(files_: Sequence[Path]) -> str:
    """Record sessions that were measured elsewhere, from the archives that `benchbook export` wrote there."""
    outcomes = take_archives(files_)
    for line in outcomes.values():
        if isinstance(line, str):
            print(line, flush=True)
    errors = [error for error in outcomes.values() if isinstance(error, BenchbookError)]
    if wrong := [text for error in errors for text in list_errors(error)]:
        raise InputErrors(wrong)
    return COMMIT


def export_archive(study: str, to: Path | None) -> str:
    """Pack a study's whole evidence; return a line on it."""
    target = to or paths.find_root() / f"{study}.tar.gz"
    written = archive.pack_study(study, target, stage.commit_of_evidence(study))
    return f"{written}: {written.stat().st_size / 1e6:.1f} MB; `make verify ARCHIVE={written}` checks it"


def verify_archive(archive: Path) -> int:
    """Check an archive; return an exit code."""
    verified = verify.verify_archive(archive)
    print(verified)
    return 0 if verified.is_same else 1


def list_errors(error: BenchbookError) -> Sequence[str]:
    """Texts of an error, of which InputErrors has several."""
    return error.errors if isinstance(error, InputErrors) else [str(error)]


def take_archive(file: Path) -> str:
    """Put one archive into the record as `take_archives` does; return its line, or raise its error."""
    outcome = take_archives([file])[file]
    if isinstance(outcome, BenchbookError):
        raise outcome
    return outcome


def take_archives(files_: Sequence[Path]) -> dict[Path, str | BenchbookError]:
    """Check archives in processes and put them into the record; a line on each with its doubts, or its error.

    An error is BenchbookError where an archive's files contradict each other, Doubled where the record has it
    or a run of it. Other refused ones are kept in data/refused. The index of a study is written once.
    """
    outcomes: dict[Path, str | BenchbookError] = {}
    with open_staging() as folder:
        prepared = {}
        with parallel.process_pool(1 if len(files_) == 1 else None) as submit:
            tasks = {
                file: submit(prepare_session, paths.find_root(), file, folder / str(number))
                for number, file in enumerate(dict.fromkeys(files_))
            }
            for file, task in tasks.items():
                try:
                    prepared[file] = task.result()
                except BenchbookError as error:
                    outcomes[file] = _keep_refused(file, error)
        # Read after the checks, which take minutes for many.
        studies, changed = dict(record.read_index().studies), set()
        try:
            for file, session in prepared.items():
                try:
                    study, outcomes[file] = _enter_session(record.Index(studies=studies), session)
                except BenchbookError as error:
                    outcomes[file] = _keep_refused(file, error)
                else:
                    studies[session.name] = study
                    changed.add(session.name)
        finally:
            for name in sorted(changed):
                record.write_study(name, studies[name])
    return {file: outcomes[file] for file in tasks}


class Doubled(InputErrors):
    """The record has a session, or a run of it, already."""


class PreparedSession(NamedTuple):
    """A checked session, packed by the present code in a folder of its own, with all that its entry says."""

    file: Path
    name: str
    title: str
    session: str
    manifest: archive.ArchiveManifest
    packed: Path
    columns: dict[str, dict[str, str]]
    entry: record.Entry
    answer: list[str]


def prepare_session(root: Path, file: Path, folder: Path) -> PreparedSession:
    """Check an archive beside the record of a root and pack it again; errors as those of `take_archives`."""
    with paths.use_root(root), verify.open_checked(file) as (checked, unpacked):
        findings = checked.findings
        if findings is None:
            raise BenchbookError(f"{file.name}: not recorded, its files contradict each other\n{checked}")
        held, manifest = ArchiveContents(unpacked, checked.contents.study), checked.contents.manifest
        name = held.name
        with paths.use_root(unpacked):
            session = sessions.session_id(held)
        _refuse_doubled(record.read_index(), file, session, manifest)
        folder.mkdir()
        packed = folder / f"{session}.tar.xz"
        with paths.use_root(unpacked):
            archive.pack_study(name, packed, manifest.commit)
        columns, tables = describe_tables(held)
        results = sessions.write_results(folder / f"{session}.json", sessions.results_of(held))
        entry = record.Entry(
            commit=manifest.commit or "not known",
            minutes=round(float(findings.machine_minutes), 1),
            bytes=packed.stat().st_size,
            sha256=files.digest_file(packed),
            results=results,
            **(tables | entry_fields(held, findings, describe_registration(held))),
        )
        answer = study_answer.render_session(findings)
    return PreparedSession(file, name, findings.title, session, manifest, packed, columns, entry, answer)


def _refuse_doubled(index: record.Index, file: Path, session: str, manifest: archive.ArchiveManifest) -> None:
    """Doubled if the record has a session, or a run of it, already."""
    if doubled := list(known_already(index, session, manifest)):
        raise Doubled([f"{file.name}: not recorded: {reason}" for reason in doubled])


def _enter_session(index: record.Index, prepared: PreparedSession) -> tuple[record.Recorded, str]:
    """Move a session's files into the record; return its study's index with its entry, and a line on it."""
    name, session, entry = prepared.name, prepared.session, prepared.entry
    # Another archive of the same call may have brought it.
    _refuse_doubled(index, prepared.file, session, prepared.manifest)
    if why := capacity_problem(entry.bytes):
        raise BenchbookError(f"{name}: not recorded: {why}")
    where, recorded = paths.recorded_paths(name, session), index.studies.get(name)
    where.archive.parent.mkdir(parents=True, exist_ok=True)
    prepared.packed.with_suffix("").with_suffix(".json").replace(where.results)
    prepared.packed.replace(where.archive)
    columns = {**(recorded.columns if recorded else {}), **prepared.columns}
    inputs: dict[str, Any] = {"title": prepared.title, "columns": columns}
    if recorded:
        study = recorded.with_session(session, entry).model_copy(update=inputs)
    else:
        study = record.Recorded(sessions={session: entry}, **inputs)
    place = where.archive.relative_to(paths.find_root()).as_posix()
    line = f"{place}: {entry.bytes / 1e3:.0f} kB, {entry.runs} runs"
    doubts = (shorten(doubt, MOST_OF_A_DOUBT, placeholder=" …") for doubt in entry.doubts)
    marked = (f"  recorded with a doubt: {doubt}" for doubt in doubts)
    return study, "\n".join([line, *prepared.answer, *marked])


def describe_tables(held: ArchiveContents) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Columns of a session's tidy tables by a digest of them, and what its entry says of the tables."""
    tables = tidy.load_tables(held.where.data / "tidy")
    columns = {name: " ".join(table.columns) for name, table in sorted(tables.items())}
    key = hashlib.sha256(repr(columns).encode()).hexdigest()[:6]
    return {key: columns}, {"columns": key, "tables": numeric_equality.tables_digest(tables)}


def _keep_refused(file: Path, error: BenchbookError) -> BenchbookError:
    """Error of a refused archive with the place where it is kept: in data, or copied where nothing clears."""
    if isinstance(error, Doubled) or not file.is_file():
        return error
    data, kept = paths.find_root() / "data", file.resolve()
    if not kept.is_relative_to(data.resolve()) or kept.is_relative_to(paths.record_folder().resolve()):
        stem, dot, suffix = file.name.partition(".tar")
        kept = data.resolve() / "refused" / f"{stem}-{files.digest_file(file)[:8]}{dot}{suffix}"
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, kept)
    place = kept.relative_to(paths.find_root().resolve()).as_posix()
    return BenchbookError(f"{error}\nThe archive is kept: {place}")


def capacity_problem(more: int, sessions: int = 1) -> str | None:
    """Reason against so many sessions of so many bytes each in the record; None if they fit."""
    if more * sessions > MOST_BYTES - record_size():
        archives = f"{count(sessions, 'archive')} of {more / 1e6:.1f} MB"
        most = f"the {MOST_BYTES / 1e6:.0f} MB that a clone carries"
        remedy = "`benchbook record --prune` takes earlier archives out of git"
        return f"{archives} would make the record larger than {most}; {remedy}"
    free = free_bytes(paths.find_root())
    if more * sessions + ROOM_BYTES > free:
        return f"{free / 1e6:.0f} MB are free on the disk of this clone; make room"
    return None


def archive_bytes(name: str) -> int:
    """Bytes that an archive of a study takes: the largest recorded one; of a new study the usual one."""
    recorded = record.read_index().studies.get(name)
    return max(entry.bytes for entry in recorded.sessions.values()) if recorded else USUAL_BYTES


def prune_archives() -> str:
    """Remove archives of earlier sessions, each once the DVC remote, or else a commit, has it whole."""
    store, sent = archive_store.open_store(), []
    for session in record.read_index().sessions():
        if not session.is_newest and session.where.archive.is_file():
            store.put(session)
            session.where.archive.unlink()
            sent.append(session)
    archives = f"{count(len(sent), 'archive')} ({sum(session.entry.bytes for session in sent) / 1e6:.1f} MB)"
    return f"{archives} in {store.name} and no longer here; {COMMIT}"


def fetch_archives(names: Sequence[str]) -> str:
    """Bring archives of sessions, or of all of a study, to the folder; return their number."""
    there = list(record.read_index().sessions())
    recorded = {name for session in there for name in (session.id, session.where.name)}
    if wrong := [
        f"--fetch: {name}: no such session or study in the record" for name in names if name not in recorded
    ]:
        raise InputErrors(wrong)
    wanted = [session for session in there if {session.id, session.where.name} & {*names}]
    absent = [session for session in wanted if not session.where.archive.is_file()]
    for session in absent:
        archive_store.bring_archive(session)
    return f"{count(len(absent), 'archive')} fetched and checked, {len(wanted) - len(absent)} were here"


def supersede_session(session: str, because: str, arms: Sequence[str] = ()) -> str:
    """Take a session, or arms of it, out of pooling with a reason, unless nothing is left; return a line."""
    studies = record.read_index().studies
    name = next((text for text, study in studies.items() if session in study.sessions), None)
    if name is None:
        raise InputErrors([f"--supersede: {session}: no such session in data/record"])
    recorded = studies[name]
    wrong = [] if because.strip() else ["--because: missing; say in a sentence what is wrong with it"]
    has = list(load.load_study(name).arms) if arms else []
    wrong += [
        f"--arms: {arm}: {name} has no such arm; {did_you_mean(arm, has)}" for arm in arms if arm not in has
    ]
    if not arms and not any(recorded.sessions[other].is_pooled for other in {*recorded.sessions} - {session}):
        wrong.append(f"--supersede: {session}: nothing of {name} would be left; record another session first")
    if wrong:
        raise InputErrors(wrong)
    reason = record.Superseded(
        reason=because.strip(), commit=stage.current_commit() or "not known", arms=tuple(arms)
    )
    entry = recorded.sessions[session].model_copy(update={"superseded": reason})
    place = record.write_study(name, recorded.with_session(session, entry))
    what = f"{', '.join(arms)} of {session}" if arms else session
    return f"{place}: {what} is superseded: {reason.reason}"


def retire_study(name: str, because: str) -> str:
    """Mark a recorded study as measured no more; its sessions stay. Return a line on it."""
    index = record.read_index()
    wrong = [] if because.strip() else ["--because: missing; say in a sentence why it is measured no more"]
    if name not in index.studies:
        wrong.append(f"--retire: {name}: not in the record; {did_you_mean(name, list(index.studies))}")
    if wrong:
        raise InputErrors(wrong)
    study = index.studies[name].model_copy(update={"retired": because.strip()})
    return f"{record.write_study(name, study)}: {name} is retired: {because.strip()}"


def known_already(index: record.Index, session: str, manifest: archive.ArchiveManifest) -> Iterator[str]:
    """Reasons that the record has a session already, under any file name, or one of its runs."""
    mine = sessions.runs_by_log(manifest)
    for other in index.sessions():
        if other.id == session:
            yield f"it is the session {session}, and {other.archive_name} is that"
        elif shared := mine.keys() & {*other.entry.logs.split()}:
            run = min(mine[log] for log in shared)
            yield f"{run} is a run of {other.archive_name} too; a run belongs to one session"


@contextlib.contextmanager
def open_staging() -> Iterator[Path]:
    """Folder beside the record, as a context, so that whole results can be moved into it at once."""
    paths.record_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=paths.record_folder()) as folder:
        yield Path(folder)


def record_size() -> int:
    """Bytes of all archives of the record, the calibration's among them."""
    archives = paths.record_folder().rglob("*.tar.xz")
    return sum(file.stat().st_size for file in archives if ".new-" not in str(file))


def find_edits(name: str) -> Iterator[str]:
    """Differences from the commit among the files that the evidence is made with."""
    whole, where = study_variants.find_origin(name) or name, paths.study_paths(name)
    requests = *MADE_WITH, where.shown, paths.study_paths(whole).shown
    listed = git.run_git("status", "--porcelain", "--untracked-files=all", "--", *requests)
    committed = git.run_git("show", "HEAD:params.yaml")
    if listed is None or committed is None:
        yield "git can't say which commit the code is; record from a clone"
        return
    changed = [line[3:] for line in listed.splitlines()]
    # A study at another size than its file of the tree is no edit of it.
    if whole != name and where.file.read_text("utf-8") == study_variants.render_variant(name, whole):
        changed = [text for text in changed if text != where.shown]
    if _read_settings(committed) != _read_settings(paths.params_file().read_text(encoding="utf-8")):
        changed.append("params.yaml (beside its lists of studies and sources)")
    if changed:
        more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
        yield f"the tree is edited: {', '.join(changed[:5])}{more}; commit, measure with that, then record"


def find_unfinished(name: str, study: StudySpec) -> Iterator[str]:
    """Reasons that a study is not whole and valid."""
    where = paths.study_paths(name)
    if not where.findings.is_file() or not (where.tidy / "runs.parquet").is_file():
        yield f"it has no findings; run `make repro STUDY={name}`"
        return
    findings = Findings.read(where.findings)
    blocks, look = findings.blocks, findings.look
    kept, planned = terminal_summary.count_progress(name)
    is_decided = study.plan.stop == "decided" and blocks.complete == look.n
    if not planned or (kept != planned and not (is_decided and look.n)):
        yield f"{kept} of {planned} runs are there; run `make repro STUDY={name}` again, it goes on"
    # Fewer by the plan itself is a doubt: such a study describes its runs and decides nothing.
    if not look.n and blocks.planned >= (look.next or 0):
        yield f"{blocks.complete} complete blocks are fewer than the first look needs, so nothing is decided"
    if not findings.findings:
        yield "no finding could be computed; its page says why"


def find_objections(findings: Findings, registered: str) -> Iterator[str]:
    """Objections to whole findings: not pre-registered, or not quiet by their own signs."""
    if not registered.startswith(registration.HELD):
        yield f"pre-registration: {registered}"
    if not findings.look.n:
        yield f"nothing is decided: it plans fewer blocks than the first look needs ({findings.look.next})"
    aa = findings.aa
    if aa is None:
        yield "there is no A/A pair (aa), so how far apart equal arms come out on this machine is not known"
    elif aa.low is None:
        yield "the A/A pair has no interval"
    elif aa.label in ("higher", "lower"):
        ends = number_format.format_percent_range(aa.low, aa.high)
        yield f"the A/A pair shows a difference where there is none: {ends}"
    elif aa.label == "depends on threads":
        yield "the A/A pair depends on threads, though its arms are equal at each of them"
    yield from (f"too wide: {text}" for text in caveats.wide_contrasts(findings.findings))
    for check in findings.checks:
        if check.passed is False:
            yield f"the check “{check.check}” fails: {check.detail}"
    for warning in findings.warnings:
        if warning.title in NOISE:
            yield f"{warning.title.lower()}: {warning.text}"


def describe_registration(held: ArchiveContents) -> str:
    """Promise of git's dates in this clone about a session unpacked below a root of its own."""
    ours = paths.study_paths(held.name)
    theirs = yaml_file.read_mapping(held.where.file, held.where.shown).data
    written = yaml_file.read_mapping(ours.file, ours.shown).data if ours.file.is_file() else {}
    runs = pd.read_parquet(held.where.tidy / "runs.parquet")
    if written and (broken := registration.changed_keys(written, theirs, registration.PROMISED)):
        return f"Not held: {', '.join(broken)} are not as the study file of this clone has them."
    return registration.check_registration(held.name, runs).text


def entry_fields(held: ArchiveContents, findings: Findings, message: str) -> dict[str, Any]:
    """Entry fields that follow from a session's raw files, and the registration text in `told`."""
    doubts = tuple(find_objections(findings, message))
    fields = {"registered": message, "blocks": findings.blocks.complete, "doubts": doubts}
    return fields | sessions.derive_entry(held)


def _read_settings(text: str) -> dict[str, Any]:
    read = YAML(typ="safe").load(text) or {}
    return {key: value for key, value in read.items() if key not in LISTS}
