"""The changed parts of the record made again: sessions, and a page for each study.

The newest session of a study is made from its raw files; of an earlier one git has the results.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import as_completed
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from benchbook.commands import code_fingerprint
from benchbook.core.artifacts import meta_analysis, record
from benchbook.core.artifacts.artifact import Document
from benchbook.core.artifacts.findings import Findings
from benchbook.core.artifacts.meta_analysis import MetaAnalysis
from benchbook.core.artifacts.record import RecordedSession
from benchbook.core.util import files, parallel, paths
from benchbook.core.util.errors import BenchbookError

# What the record is made with; dvc.yaml names the same.
TRAITS = "sites/descriptors"
FLOORS = ("core", "read", "compare", "show", "evidence", TRAITS)
NOTEBOOKS = ("07_report", "runs")
# In the folder of a study: what its sessions and its page were made with, and how they came out.
MADE = "made.json"
_SHOWN = 5
MOST_TOLD = 12


class CodeDigests(NamedTuple):
    """Digests of the code that makes evidence from raw files, and of the code for its pages."""

    evidence: str
    pages: str


class RebuildState(Document):
    """A newest session's outcome (`refused`: no evidence, `differs`: other values), digests of its inputs."""

    refused: list[str] = Field(default_factory=list)
    differs: list[str] = Field(default_factory=list)
    session: str = ""
    pooled: str = ""
    page: str = ""

    @property
    def outcome(self) -> str:
        """How the session came out, in words."""
        if self.refused:
            return "refused"
        return "NOT as recorded" if self.differs else "rebuilt from its raw files: identical"


def run_command(write: bool) -> int | str:
    """Make recorded sessions again; return an exit code, or a text on the changes to the record."""
    if write:
        return rewrite_sessions()
    if wrong := rebuild_record():
        print("Not as recorded:", *wrong, sep="\n", file=sys.stderr)
    return 0


def rebuild_record() -> list[str]:
    """Make the parts again that do not stand; return the faults, a line each: they stop nothing."""
    with parallel.process_pool() as submit:
        return rebuild_sessions(submit)


def rebuild_sessions(submit: parallel.Submit) -> list[str]:
    """Make again, in these processes, parts of the record that do not stand; return its faults."""
    from benchbook.evidence import sessions

    index, made_with = record.read_index(), _digest_code(paths.find_root())
    _remove_stale(index)
    states = {name: _read_state(name) for name in index.studies}
    newest = map(index.newest, states)
    due = [session for session in newest if not _stands(session, states[session.where.name], made_with)]
    # The largest first, so that all processes end at about the same time.
    due.sort(key=lambda session: (-session.entry.runs, session.archive_name))
    tasks = {submit(_rebuild_session, session): session for session in due}
    wrong = [*sessions.find_unmatched(index), *sessions.find_duplicates(index)]
    for count, done in enumerate(as_completed(tasks), 1):
        session, state = tasks[done], done.result()
        states[session.where.name] = state
        print(f"record {count} of {len(due)}: {session.where.name} {session.id}: {state.outcome}")
    wrong += _make_pages(states, {session.where.name for session in due}, submit, made_with)
    for name, state in states.items():
        digest = _digest_session(index.newest(name), made_with)
        state.model_copy(update={"session": digest}).write(_state_file(name))
    away = sum(not session.where.archive.is_file() for session in index.sessions())
    kept = f"{len(states) - len(due)} stand as they were made; {away} archives of earlier ones are not here"
    again = f"{len(due)} newest sessions made again from their raw files"
    print(f"{len(states)} recorded studies: {again}, {kept}")
    wrong += chain.from_iterable(state.refused for state in states.values())
    return [*wrong, *chain.from_iterable(state.differs for state in states.values())]


def _stands(session: RecordedSession, state: RebuildState, made_with: CodeDigests) -> bool:
    """True if a session stands as it was made; one that was refused never does: a full disk may be why."""
    return not state.refused and state.session == _digest_session(session, made_with)


def rebuild_study(name: str) -> MetaAnalysis | None:
    """Make a study's newest session again unless it stands; return its sessions' joint results."""
    index, made_with, state = record.read_index(), _digest_code(paths.find_root()), _read_state(name)
    newest = index.newest(name)
    if not _stands(newest, state, made_with):
        state = _rebuild_session(newest)
    is_there = write_joint_results(name, index)
    session = _digest_session(newest, made_with)
    state.model_copy(update={"session": session}).write(_state_file(name))
    return meta_analysis.read_pooled(name) if is_there else None


def _make_pages(
    states: dict[str, RebuildState], again: set[str], submit: parallel.Submit, made_with: CodeDigests
) -> list[str]:
    """Pool the sessions of changed studies, render each page that does not stand; return failures."""
    from benchbook.compare.meta.cross_study import build_rows, sign_reversals

    newest, wrong = _pool_studies(states, made_with)
    # What a page says of other studies' sessions is known when all are pooled.
    rows = build_rows(meta_analysis.read_all())

    def digest_page(name: str) -> str:
        return _digest_page(newest[name], [*sign_reversals(name, rows)], made_with)

    due = [name for name in newest if name in again or states[name].page != digest_page(name)]
    due.sort(key=lambda name: (-newest[name].entry.runs, name))
    tasks = {submit(_render_page, newest[name], states[name]): name for name in due}
    failed = dict.fromkeys(again - {*newest}, "not rendered: its newest session could not be made again")
    for done in as_completed(tasks):
        name = tasks[done]
        print(f"page of {name}: {done.result() or 'rendered'}")
        if done.result():
            failed[name] = done.result()
        else:
            states[name] = states[name].model_copy(update={"page": digest_page(name)})
    return [*wrong, *(f"page of {name}: {why}" for name, why in failed.items())]


def _pool_studies(
    states: dict[str, RebuildState], made_with: CodeDigests
) -> tuple[dict[str, RecordedSession], list[str]]:
    """Pool the sessions of changed studies; return the newest of each that has results, and failures."""
    index, newest, wrong = record.read_index(), dict[str, RecordedSession](), list[str]()
    for name in index.studies:
        where = index.newest(name).where
        digest = files.digest_file(where.archive.with_name(record.INDEX))
        pooled = _digest_value([digest, made_with.evidence])
        stands = states[name].pooled == pooled and where.findings.is_file() and where.pooled.is_file()
        try:
            if stands or write_joint_results(name, index):
                newest[name] = index.newest(name)
            states[name] = states[name].model_copy(update={"pooled": pooled})
        except BenchbookError as error:
            wrong.append(f"{name}: {error}")
    return newest, wrong


def base_folder() -> Path:
    """Folder of all recorded studies made again."""
    return paths.find_root() / "data" / "recorded"


def _state_file(name: str) -> Path:
    return base_folder() / name / MADE


def _read_state(name: str) -> RebuildState:
    try:
        return RebuildState.read(_state_file(name))
    except BenchbookError:
        return RebuildState()


def _digest_code(root: Path) -> CodeDigests:
    """Digests of the modules and templates that make evidence, and pages with their notebooks."""
    notebooks = [root / "notebooks" / f"{stem}.ipynb" for stem in NOTEBOOKS]
    cells = [cell for notebook in notebooks for cell in files.read_json(notebook)["cells"]]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    begun = [name for text in texts for name in code_fingerprint.list_imports(text)]
    floors = [floor for floor in FLOORS if floor != "show"]
    evidence = _digest_modules(["benchbook.evidence.sessions"], floors)
    pages = _digest_modules([*begun, "benchbook.commands.record_pages"], FLOORS)
    both = evidence + pages + files.sha256_all(root, notebooks)
    return CodeDigests(evidence, hashlib.sha256(both.encode()).hexdigest())


def _digest_modules(begun: Sequence[str], floors: Sequence[str]) -> str:
    """Digest of the modules of floors that are reached, and of all other files of these floors."""
    inside = [code_fingerprint.PACKAGE / floor for floor in floors]
    # Traits are read by all floors, and imported by none.
    reached = {*code_fingerprint.trace_imports(begun), *(code_fingerprint.PACKAGE / TRAITS).glob("*.py")}
    used = {path for path in reached if any(path.is_relative_to(floor) for floor in inside)}
    others = {path for floor in inside for path in floor.rglob("*") if path.is_file()}
    return files.sha256_all(
        code_fingerprint.PACKAGE, used | {other for other in others if other.suffix not in (".py", ".pyc")}
    )


def _digest_session(session: RecordedSession, made_with: CodeDigests) -> str:
    """Digest of a session's inputs, and of all its outputs as they are now."""
    where = session.where
    left = [file for file in (where.archive, where.results, *where.base.rglob("*")) if file.is_file()]
    looks = files.digest_stats(where.clone, left)
    return _digest_value([session.id, session.entry.model_dump(mode="json"), made_with.evidence, looks])


def _digest_page(session: RecordedSession, reversals: Sequence[object], made_with: CodeDigests) -> str:
    """Digest of what the page of a newest session is made of, and of its files as they are now."""
    where = session.where
    shown = [where.report, where.summary, *where.run_pages.rglob("*"), where.findings, where.pooled]
    looks = files.digest_stats(where.clone, [file for file in shown if file.is_file()])
    entry = session.entry.model_dump(mode="json")
    return _digest_value([session.id, entry, reversals, made_with.pages, looks])


def _digest_value(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def write_joint_results(name: str, index: record.Index) -> bool:
    """Write the joint results of a study's sessions; True if there is anything to show of them."""
    from benchbook.compare.meta import recorded_sessions

    where = index.newest(name).where
    pooled = recorded_sessions.pool_study(index, name) if where.findings.is_file() else None
    if pooled is None:
        where.pooled.unlink(missing_ok=True)
        return False
    pooled.write(where.pooled)
    return True


def _page_folders() -> tuple[Path, ...]:
    like = paths.recorded_paths("any", "any")
    return like.report.parent, like.run_pages.parent


def _remove_stale(index: record.Index) -> None:
    """Remove the outputs of sessions and studies that are recorded no more; make their folders.

    They are the stage's outputs, which DVC asks for where nothing is recorded, too.
    """
    for folder in (base_folder(), *_page_folders()):
        folder.mkdir(parents=True, exist_ok=True)
    kept = {session.where.base for session in index.sessions()}
    kept |= {base.parent for base in kept}
    for folder in [*base_folder().glob("*/*/"), *base_folder().glob("*/")]:
        if folder not in kept:
            shutil.rmtree(folder)
    # What begins with a dot is no page.
    names = {"", *index.studies}
    for page in [*chain.from_iterable(map(Path.iterdir, _page_folders()))]:
        if page.name.partition(".")[0] not in names:
            shutil.rmtree(page) if page.is_dir() else page.unlink()


def _rebuild_session(session: RecordedSession) -> RebuildState:
    """Make one session again below its own root."""
    from benchbook.evidence import archive_store, sessions

    where, refused, differs = session.where, list[str](), list[str]()
    shutil.rmtree(where.base, ignore_errors=True)
    try:
        archive_store.bring_archive(session)
        where.base.mkdir(parents=True)
        refused, differs = sessions.from_raw(session, where.base)
    except BenchbookError as error:
        refused = [f"{session.archive_name}: {error}"]
    more = len(differs) - _SHOWN
    rest = [f"{where.name} {session.id}: and {more} more values"] if more > 0 else []
    return RebuildState(refused=refused, differs=[*differs[:_SHOWN], *rest])


def _render_page(session: RecordedSession, state: RebuildState) -> str:
    """Render the page of a study from its newest session; return the reason of a failure, if any."""
    from benchbook.commands import record_pages

    try:
        record_pages.render_pages(session.where, session.entry, [*state.refused, *state.differs])
    except Exception as error:  # One page that can't be made takes no other away.
        kind = "" if isinstance(error, BenchbookError) else f"{type(error).__name__}: "
        return f"not rendered: {kind}{error}"
    return ""


def rewrite_sessions() -> str:
    """Write every session again that comes out otherwise now; return the changes by session."""
    report = []
    for session in record.read_index().sessions():
        name = session.where.name
        if not (changed := _rewrite_session(session)):
            report.append(f"{name} {session.id}: as recorded")
            continue
        more = f"\n  and {len(changed) - MOST_TOLD} more" if len(changed) > MOST_TOLD else ""
        head = f"{name} {session.id}: written again by the present code:"
        report.append("\n  ".join([head, *changed[:MOST_TOLD]]) + more)
    return "\n".join(report) or "nothing is recorded yet"


def _rewrite_session(session: RecordedSession) -> list[str]:
    """Write a session's new entry; an archive not fetched is replaced. Its differences, none if it stays."""
    from benchbook.commands import record as recording
    from benchbook.evidence import archive, archive_store, recompute, sessions
    from benchbook.evidence.archive_reader import ArchiveContents
    from benchbook.show import registration

    where, entry, place = session.where, session.entry, session.archive_name
    packed = archive_store.bring_archive(session)
    if session.other_archive():
        raise BenchbookError(f"{place}: not the archive of {record.INDEX}; take it from git again")
    with tempfile.TemporaryDirectory(prefix=".again-", dir=packed.parent) as folder:
        root = Path(folder)
        try:
            contents = archive.unpack_archive(packed, root)
            changed = [*recompute.compare_results(contents.study, root)]
        except BenchbookError:
            if entry.is_pooled:
                raise
            return []
        held = ArchiveContents(root, contents.study)
        registered = registration.confirm_registration(
            held.name, entry.registered, entry.measured, held.where.file
        )
        with paths.use_root(held.root):
            followed = recording.entry_fields(held, Findings.read(held.where.findings), registered)
            # What was measured and when is no matter of the code.
            if wrong := [key for key in ("measured", "seed", "runs") if followed[key] != getattr(entry, key)]:
                statement = f"{', '.join(wrong)}: {record.INDEX} says otherwise than its raw files"
                raise BenchbookError(f"{place}: {statement}; take the index from git again")
            columns, tables = recording.describe_tables(held)
            results = sessions.results_of(held)
        # Git's tip would not have another one, so that its hash would name bytes that nobody has.
        if changed and not archive_store.is_fetched(session):
            target = packed.parent / f".{folder[-8:]}.tar.xz"
            with paths.use_root(root):
                archive.pack_study(where.name, target, contents.manifest.commit)
            followed |= {"bytes": target.stat().st_size, "sha256": files.digest_file(target)}
            target.replace(packed)
        followed |= tables | {"results": sessions.write_results(where.results, results)}
        fresh = entry.model_copy(update=followed)
    if fresh == entry:
        return []
    recorded = record.read_index().studies[where.name]
    study = recorded.model_copy(update={"columns": {**recorded.columns, **columns}})
    record.write_study(where.name, study.with_session(session.id, fresh))
    return changed or ["the entry in the index"]
