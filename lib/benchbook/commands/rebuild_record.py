"""The changed parts of the record made again: sessions, and a page for each study.

The newest session of a study is made from its raw files. Of an earlier one git has the results; its archive
is held against them where it is in the clone. `make record-again` makes all of them from their raw files.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any, NamedTuple

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


class SessionOutcome(Document):
    """Outcome of a session: `refused`: it is no evidence, `differs`: values came out otherwise."""

    refused: list[str] = Field(default_factory=list)
    differs: list[str] = Field(default_factory=list)
    state: str = ""

    @property
    def all(self) -> list[str]:
        """Everything that is wrong."""
        return [*self.refused, *self.differs]


class RebuildState(Document):
    """Outcome of each session of a study, and the inputs of its pooled results and of its page."""

    sessions: dict[str, SessionOutcome] = Field(default_factory=dict)
    pooled: str = ""
    page: str = ""


def run_command(write: bool) -> int | str:
    """Make recorded sessions again; return an exit code, or a text on the changes to the record."""
    if write:
        return rewrite_sessions()
    if wrong := rebuild_record():
        print("\n".join(["Not as recorded:", *wrong]), file=sys.stderr)
    return 0


def rebuild_record() -> list[str]:
    """Make the parts again that do not stand; return the faults, a line each: they stop nothing."""
    with parallel.process_pool() as submit:
        return rebuild_sessions(submit)


def rebuild_sessions(submit: parallel.Submit) -> list[str]:
    """Make again, in these processes, parts of the record that do not stand; return its faults."""
    from benchbook.evidence import sessions

    index, made_with = record.read_index(), _digest_code(paths.find_root())
    # The stage's outputs, which DVC asks for where nothing is recorded, too.
    for folder in (base_folder(), *_page_folders()):
        folder.mkdir(parents=True, exist_ok=True)
    _remove_stale(index)
    rebuild_states = {name: _read_state(name) for name in index.studies}
    due = _select_due(list(index.sessions()), rebuild_states, made_with)
    # The largest first, so that all processes end at about the same time.
    due.sort(key=lambda session: (not session.is_newest, -session.entry.runs, session.archive_name))
    tasks = {submit(_rebuild_session, session): session for session in due}
    refused = [*sessions.find_unmatched(index), *sessions.find_duplicates(index)]
    for count, done in enumerate(as_completed(tasks), 1):
        session, outcome = tasks[done], done.result()
        rebuild_states[session.where.name].sessions[session.id] = outcome
        message = "its archive is the recorded one, with the results that git has"
        message = "rebuilt from its raw files: identical" if session.is_newest else message
        message = "NOT as recorded" if outcome.differs else "refused" if outcome.refused else message
        print(f"record {count} of {len(due)}: {session.where.name} {session.id}: {message}")
    again = {session.where.name for session in due if session.is_newest}
    refused += _pages_of(index, rebuild_states, again, submit, made_with)
    for session in due:
        _store_state(session, rebuild_states, made_with)
    for name, rebuild_state in rebuild_states.items():
        rebuild_state.write(_state_file(name))
    print(_summarize_rebuild(index, due))
    outcomes = [outcome for state in rebuild_states.values() for outcome in state.sessions.values()]
    refused += [text for outcome in outcomes for text in outcome.refused]
    return [*refused, *(text for outcome in outcomes for text in outcome.differs)]


def _select_due(
    there: Sequence[RecordedSession], rebuild_states: dict[str, RebuildState], made_with: CodeDigests
) -> list[RecordedSession]:
    """Sessions that do not stand as they were made, with the present archive, entry and code.

    One that was refused never stands: the machine may have been what failed, such as a disk that was full.
    """
    due = []
    for session in there:
        if not session.is_newest and not session.where.archive.is_file():
            rebuild_states[session.where.name].sessions.setdefault(session.id, SessionOutcome())
            continue
        outcome = rebuild_states[session.where.name].sessions.get(session.id)
        if outcome is None or outcome.refused or outcome.state != _digest_session(session, made_with):
            due.append(session)
    return due


def _summarize_rebuild(index: record.Index, due: Sequence[RecordedSession]) -> str:
    """Number of sessions made again, and the basis of the others, as a sentence."""
    again = sum(session.is_newest for session in due)
    messages = [f"{len(index.studies)} recorded studies: {again} sessions made again from their raw files"]
    if checked := len(due) - again:
        messages.append(
            f"{checked} earlier ones held against archives whose SHA-256 is the recorded one "
            "(`make record-again` makes them again too)"
        )
    there = list(index.sessions())
    if away := sum(not session.where.archive.is_file() for session in there):
        messages.append(f"{away} have their results in git and their archive in a remote")
    if (stand := len(there) - len(due) - away) > 0:
        messages.append(f"{stand} stand as they were made")
    return "; ".join(messages)


def rebuild_study(name: str) -> MetaAnalysis | None:
    """Make a study's newest session again unless it stands; return its sessions' joint results."""
    index, made_with, rebuild_state = record.read_index(), _digest_code(paths.find_root()), _read_state(name)
    for session in _select_due([index.newest(name)], {name: rebuild_state}, made_with):
        rebuild_state.sessions[session.id] = _rebuild_session(session)
        _store_state(session, {name: rebuild_state}, made_with)
    is_there = pool_study(name, index)
    rebuild_state.write(_state_file(name))
    return meta_analysis.read_pooled(name) if is_there else None


def _store_state(
    session: RecordedSession, rebuild_states: dict[str, RebuildState], made_with: CodeDigests
) -> None:
    """Note the state that a session's outcome holds for, after its page was rendered."""
    outcomes = rebuild_states[session.where.name].sessions
    state = _digest_session(session, made_with)
    outcomes[session.id] = outcomes[session.id].model_copy(update={"state": state})


def _pages_of(
    index: record.Index,
    rebuild_states: dict[str, RebuildState],
    again: set[str],
    submit: parallel.Submit,
    made_with: CodeDigests,
) -> list[str]:
    """Pool the sessions of changed studies, render each page that does not stand; return failures.

    `again` are the studies whose newest session was made again: what a page says of it lies with it.
    """
    from benchbook.compare.meta.cross_study import build_rows, sign_reversals

    wrong, there = list[str](), list[str]()
    for name in index.studies:
        target = index.newest(name).where
        state = _digest_value([files.digest_file(target.archive.with_name(record.INDEX)), made_with.evidence])
        if target.findings.is_file() and target.pooled.is_file() and rebuild_states[name].pooled == state:
            there.append(name)
            continue
        try:
            there += [name] if pool_study(name, index) else []
            rebuild_states[name] = rebuild_states[name].model_copy(update={"pooled": state})
        except BenchbookError as error:
            wrong.append(f"{name}: {error}")
    # What a page says of other studies' sessions is known when all are pooled.
    rows = build_rows(meta_analysis.read_all())
    messages = {name: sign_reversals(name, rows) for name in there}
    newest = {name: index.newest(name) for name in messages}

    def state_of(name: str) -> str:
        return _page_state(newest[name], made_with, messages[name])

    requests = [name for name in messages if name in again or rebuild_states[name].page != state_of(name)]
    requests.sort(key=lambda name: (-newest[name].entry.runs, name))
    tasks = {
        submit(_render_page, newest[name], rebuild_states[name].sessions[newest[name].id].all): name
        for name in requests
    }
    failed = dict.fromkeys(again - {*messages}, "not rendered: its newest session could not be made again")
    for done in as_completed(tasks):
        name = tasks[done]
        print(f"page of {name}: {done.result() or 'rendered'}")
        failed |= {name: done.result()} if done.result() else {}
        if not done.result():
            rebuild_states[name] = rebuild_states[name].model_copy(update={"page": state_of(name)})
            _store_state(newest[name], rebuild_states, made_with)
    return [*wrong, *(f"page of {name}: {why}" for name, why in failed.items())]


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
    evidence = _digest_modules(
        ["benchbook.evidence.sessions"], [floor for floor in FLOORS if floor != "show"]
    )
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
    entry = session.entry.model_dump(mode="json")
    return _digest_value(
        [entry, session.is_newest, made_with.evidence, files.digest_stats(where.clone, left)]
    )


def _digest_value(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def pool_study(name: str, index: record.Index) -> bool:
    """Write the joint results of a study's sessions; True if there is anything to show of them."""
    from benchbook.compare.meta import meta_analysis as compared
    from benchbook.core.artifacts import design

    newest, brought = index.newest(name), []
    if not newest.where.findings.is_file():
        newest.where.pooled.unlink(missing_ok=True)
        return False
    current = newest.pooled_results.design
    for session in index.sessions(name):
        entry, results = session.entry, session.pooled_results
        is_other = entry.design != newest.entry.design
        brought.append(
            compared.build_session(
                *(session.id, entry.measured, entry.design, results.findings),
                facts=results.facts.arms,
                probes=results.facts.probes,
                superseded=entry.superseded,
                differs="; ".join(design.describe_differences(results.design, current)) if is_other else "",
            )
        )
    found_all = compared.pool_sessions(name, brought, newest.entry.design)
    recorded = index.studies[name]
    more = {"not_recorded": recorded.not_recorded, "retired": recorded.retired}
    found_all.model_copy(update=more).write(newest.where.pooled)
    return True


def _page_state(newest: RecordedSession, made_with: CodeDigests, elsewhere: Sequence[str]) -> str:
    where = newest.where
    shown = [where.report, where.summary, *where.run_pages.rglob("*"), where.findings, where.pooled]
    looks = files.digest_stats(where.clone, [file for file in shown if file.is_file()])
    return _digest_value(
        [newest.id, newest.entry.model_dump(mode="json"), list(elsewhere), made_with.pages, looks]
    )


def _page_folders() -> tuple[Path, ...]:
    like = paths.recorded_paths("any", "any")
    return like.report.parent, like.run_pages.parent


def _remove_stale(index: record.Index) -> None:
    """Remove the outputs of sessions and studies that are recorded no more."""
    for folder in [path for path in base_folder().iterdir() if path.is_dir()]:
        entries = index.studies[folder.name].sessions if folder.name in index.studies else {}
        for session in [path for path in folder.iterdir() if path.is_dir() and path.name not in entries]:
            shutil.rmtree(session)
        if not entries:
            shutil.rmtree(folder)
    for page in [path for folder in _page_folders() for path in folder.iterdir()]:
        name = page.name.partition(".")[0]
        if name and name not in index.studies:
            shutil.rmtree(page) if page.is_dir() else page.unlink()


def _rebuild_session(session: RecordedSession) -> SessionOutcome:
    """Make one session again below its own root, or compare its archive with its results in git."""
    from benchbook.evidence import archive_store, sessions

    where, refused, differs = session.where, list[str](), list[str]()
    shutil.rmtree(where.base, ignore_errors=True)
    try:
        if session.is_newest:
            if not where.archive.is_file() and archive_store.is_configured():
                archive_store.ArchiveStore().fetch(session)
            where.base.mkdir(parents=True)
            refused, differs = sessions.from_raw(session, where.base)
        else:
            with tempfile.TemporaryDirectory(prefix="benchbook-check-") as folder:
                refused = sessions.check_archive(session, Path(folder))
    except BenchbookError as error:
        refused = [f"{session.archive_name}: {error}"] if session.entry.is_pooled else []
    more = len(differs) - _SHOWN
    rest = [f"{where.name} {session.id}: and {more} more values"] if more > 0 else []
    return SessionOutcome(refused=refused, differs=[*differs[:_SHOWN], *rest])


def _render_page(session: RecordedSession, wrong: Sequence[str]) -> str:
    """Render the page of a study from its newest session; return the reason of a failure, if any."""
    from benchbook.commands import record_pages

    try:
        record_pages.render_pages(session.where, session.entry, wrong)
    except Exception as error:  # One page that can't be made takes no other away.
        kind = "" if isinstance(error, BenchbookError) else f"{type(error).__name__}: "
        return f"not rendered: {kind}{error}"
    return ""


def rewrite_sessions() -> str:
    """Write every session again that comes out otherwise now; return the changes by session."""
    report = []
    for session in record.read_index().sessions():
        name = session.where.name
        changed, fresh = _rewrite_session(session)
        if fresh is None:
            report.append(f"{name} {session.id}: as recorded")
            continue
        study, entry = fresh
        record.write_study(
            name, record.read_index().studies[name].model_copy(update=study).with_session(session.id, entry)
        )
        more = f"\n  and {len(changed) - MOST_TOLD} more" if len(changed) > MOST_TOLD else ""
        head = f"{name} {session.id}: written again by the present code:"
        report.append("\n  ".join([head, *changed[:MOST_TOLD]]) + more)
    return "\n".join(report) or "nothing is recorded yet"


def _rewrite_session(
    session: RecordedSession,
) -> tuple[list[str], tuple[dict[str, Any], record.Entry] | None]:
    """Differences of a session, and its new entry; its archive is replaced. None: it stays."""
    from benchbook.commands import record as recording
    from benchbook.evidence import archive, archive_store, recompute, sessions
    from benchbook.evidence.archive_reader import ArchiveContents
    from benchbook.show import registration

    where, entry, place = session.where, session.entry, session.archive_name
    if not where.archive.is_file():
        archive_store.ArchiveStore().fetch(session)
    packed = where.archive
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
            return [], None
        held = ArchiveContents(root, contents.study)
        confirm_registration = registration.confirm_registration(
            held.name, entry.registered, entry.measured, held.where.file
        )
        recorded = record.read_index().studies[where.name]
        with paths.use_root(held.root):
            followed = recording.entry_fields(held, Findings.read(held.where.findings), confirm_registration)
            # What was measured and when is no matter of the code.
            if wrong := [key for key in ("measured", "seed", "runs") if followed[key] != getattr(entry, key)]:
                statement = f"{', '.join(wrong)}: {record.INDEX} says otherwise than its raw files"
                raise BenchbookError(f"{place}: {statement}; take the index from git again")
            columns, tables = recording.describe_tables(held)
            study = {"columns": {**recorded.columns, **columns}}
            results = sessions.results_of(held)
        if changed:
            target = packed.parent / f".{folder[-8:]}.tar.xz"
            with paths.use_root(root):
                archive.pack_study(where.name, target, contents.manifest.commit)
            followed |= {"bytes": target.stat().st_size, "sha256": files.digest_file(target)}
            target.replace(packed)
        followed |= tables | {"results": sessions.write_results(where.results, results)}
        fresh = entry.model_copy(update=followed)
    if fresh == entry:
        return [], None
    return changed or ["the entry in the index"], (study, fresh)
