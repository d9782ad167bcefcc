"""The record made again where something changed: sessions, and a page for each study.

The newest session of a study is made from its raw files; of earlier ones what their archives hold is taken.
`make record-again` makes all of them from their raw files.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from benchbook.commands import code_fingerprint
from benchbook.core.artifacts import meta_analysis, record
from benchbook.core.artifacts.artifact import Document, Facts
from benchbook.core.artifacts.findings import Findings
from benchbook.core.artifacts.meta_analysis import Pooled
from benchbook.core.util import files, parallel, paths
from benchbook.core.util.errors import BenchbookError

# What the record is made with; dvc.yaml names the same.
TRAITS = "sites/traits"
FLOORS = ("core", "read", "compare", "show", "evidence", TRAITS)
NOTEBOOKS = ("07_report", "runs")
# In the folder of a session: what it was made with, and how it came out.
MADE = "made.json"
# In the folder of a study: what its page was rendered from.
SHOWN = "shown.json"
_SHOWN = 5


class Code(NamedTuple):
    """The digests of what makes evidence from raw files, and of what makes pages of it."""

    evidence: str
    pages: str


class Outcome(Document):
    """What became of a session: `refused` is no evidence, `differs` names values that came out otherwise."""

    refused: list[str] = Field(default_factory=list)
    differs: list[str] = Field(default_factory=list)

    @property
    def all(self) -> list[str]:
        """Everything that is wrong."""
        return [*self.refused, *self.differs]


class Made(Document):
    """How a session came out, its design in its parts, and the digests of what it was made with."""

    outcome: Outcome
    design: dict[str, Any]
    state: dict[str, str]


def command(write: bool) -> int | str:
    """Make recorded sessions again; return an exit code, or what was written into the record."""
    from benchbook.commands.record import rewrite

    if write:
        return rewrite()
    if wrong := run():
        print("\n".join(["Not as recorded:", *wrong]), file=sys.stderr)
    return 0


def run() -> list[str]:
    """Make what does not stand again; return what is wrong, a line each: it stops nothing."""
    with parallel.processes() as submit:
        return make(submit)


def make(submit: parallel.Submit) -> list[str]:
    """Make again what does not stand of the record, in these processes; return what is wrong with it."""
    from benchbook.evidence import sessions

    index, made_with = record.read(), _code(paths.root())
    # The stage's outputs, which DVC asks for where nothing is recorded, too.
    for folder in (base(), *_pages()):
        folder.mkdir(parents=True, exist_ok=True)
    _forget(index)
    there = [one for name in index.studies for one in _there(name, index)]
    due = [one for one in there if not _stands(*one, index, made_with)]
    # The largest first, so that all processes end at about the same time.
    due.sort(key=lambda one: (one[1] != index.studies[one[0]].newest, -_runs(index.studies[one[0]]), *one))
    tasks = {submit(_one, *one, made_with): one for one in due}
    refused = [*sessions.strangers(index), *sessions.doubled(index)]
    for count, done in enumerate(as_completed(tasks), 1):
        name, session = tasks[done]
        outcome, is_newest = done.result(), session == index.studies[name].newest
        told = "taken from its archive, whose SHA-256 is the recorded one"
        told = "made again from its raw files, as recorded" if is_newest else told
        told = "NOT as recorded" if outcome.differs else "refused" if outcome.refused else told
        print(f"record {count} of {len(due)}: {name} {session}: {told}")
    refused += _pages_of(index, due, submit, made_with)
    print(_summary(index, there, due))
    all_there = [_kept(*one).outcome for one in there]
    refused += [text for outcome in all_there for text in outcome.refused]
    return [*refused, *(text for outcome in all_there for text in outcome.differs)]


def _runs(study: record.Recorded) -> int:
    return study.sessions[study.newest].runs


def _summary(index: record.Index, there: Sequence[tuple[str, str]], due: Sequence[tuple[str, str]]) -> str:
    """Say how many sessions were made again, how many only taken from archives that are the recorded ones."""
    newest = {(name, study.newest) for name, study in index.studies.items()}
    again, taken = (sum((one in newest) == is_newest for one in due) for is_newest in (True, False))
    told = [f"{len(index.studies)} recorded studies: {again} sessions made again from their raw files"]
    if taken:
        whose = "earlier ones taken from archives whose SHA-256 is the recorded one"
        told.append(f"{taken} {whose} (`make record-again` makes them again too)")
    if len(there) > len(due):
        told.append(f"{len(there) - len(due)} stand as they were made")
    return "; ".join(told)


def study(name: str) -> Pooled | None:
    """Make the sessions of one study again that do not stand; return what they say together."""
    index, made_with = record.read(), _code(paths.root())
    due = [session for _, session in _there(name, index) if not _stands(name, session, index, made_with)]
    with parallel.processes() as submit:
        for task in [submit(_one, name, session, made_with) for session in due]:
            task.result()
    return meta_analysis.of(name) if pool(name, index) else None


def _there(name: str, index: record.Index) -> list[tuple[str, str]]:
    sessions = index.studies[name].sessions
    return [(name, one) for one in sessions if paths.recorded(name, one).archive.is_file()]


def _pages_of(
    index: record.Index, due: Sequence[tuple[str, str]], submit: parallel.Submit, made_with: Code
) -> list[str]:
    """Pool the sessions of each study, then render each page that does not stand; return what failed."""
    from benchbook.compare.meta.cross_study import elsewhere, joined

    is_pooled = {name: pool(name, index) for name in index.studies}
    # What a page says of other studies' sessions is known when all are pooled.
    rows = joined(meta_analysis.several())
    told = {name: elsewhere(name, rows) for name, is_there in is_pooled.items() if is_there}
    # What the page says of a session that was made again lies with that session.
    newest = {name for name, session in due if session == index.studies[name].newest}
    asked = [name for name in told if name in newest or not _is_shown(name, index, made_with, told[name])]
    asked.sort(key=lambda name: (-_runs(index.studies[name]), name))
    tasks = {submit(_show, name, made_with, told[name]): name for name in asked}
    failed = dict.fromkeys(newest - {*told}, "not rendered: its newest session could not be made again")
    for done in as_completed(tasks):
        print(f"page of {tasks[done]}: {done.result() or 'rendered'}")
        failed |= {tasks[done]: done.result()} if done.result() else {}
    return [f"page of {name}: {why}" for name, why in failed.items()]


def base() -> Path:
    """Return the folder of all recorded studies made again."""
    return paths.root() / "data" / "recorded"


def _code(root: Path) -> Code:
    """Return the digests of the modules and templates that make evidence, and pages with their notebooks."""
    notebooks = [root / "notebooks" / f"{stem}.ipynb" for stem in NOTEBOOKS]
    cells = [cell for one in notebooks for cell in files.read_json(one)["cells"]]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    begun = [name for text in texts for name in code_fingerprint.imported(text)]
    evidence = _modules(["benchbook.evidence.sessions"], [floor for floor in FLOORS if floor != "show"])
    pages = _modules([*begun, "benchbook.commands.record_pages"], FLOORS)
    both = evidence + pages + files.sha256_all(root, notebooks)
    return Code(evidence, hashlib.sha256(both.encode()).hexdigest())


def _modules(begun: Sequence[str], floors: Sequence[str]) -> str:
    """Return the digest of the modules of floors that are reached, and of what else these floors hold."""
    inside = [code_fingerprint.PACKAGE / floor for floor in floors]
    # Traits are read by all floors, and imported by none.
    reached = {*code_fingerprint.reached(begun), *(code_fingerprint.PACKAGE / TRAITS).glob("*.py")}
    used = {one for one in reached if any(one.is_relative_to(floor) for floor in inside)}
    others = {one for floor in inside for one in floor.rglob("*") if one.is_file()}
    return files.sha256_all(
        code_fingerprint.PACKAGE, used | {one for one in others if one.suffix not in (".py", ".pyc")}
    )


def _stands(name: str, session: str, index: record.Index, made_with: Code) -> bool:
    """Tell whether a session is as it was made, with the present archive, entry and code.

    One that was refused never stands: the machine may have been what failed, such as a disk that was full.
    """
    try:
        kept = _kept(name, session)
        return not kept.outcome.refused and kept.state == _state(name, session, index, made_with)
    except BenchbookError:
        return False


def _kept(name: str, session: str) -> Made:
    return Made.read(paths.recorded(name, session).base / MADE, "`benchbook remake`")


def _state(name: str, session: str, index: record.Index, made_with: Code) -> dict[str, str]:
    """Return the digests of what a session is made with, and of all that stands of it now."""
    where, study = paths.recorded(name, session), index.studies[name]
    left = [one for one in where.base.rglob("*") if one.is_file() and one != where.base / MADE]
    told = {"entry": study.sessions[session].model_dump(mode="json"), "shown": session == study.newest}
    return {
        "archive": files.sha256(where.archive),
        "index": hashlib.sha256(json.dumps(told).encode()).hexdigest(),
        "code": made_with.evidence,
        "left": files.looks(where.clone, left),
    }


def pool(name: str, index: record.Index) -> bool:
    """Write what the sessions of a study say together; tell whether there is anything to show of it."""
    from benchbook.compare.meta import meta_analysis as compared
    from benchbook.core.artifacts import design

    study = index.studies[name]
    there = {one: paths.recorded(name, one) for one in study.sessions}
    there = {one: where for one, where in there.items() if where.findings.is_file()}
    target = paths.recorded(name, study.newest).pooled
    if study.newest not in there:
        target.unlink(missing_ok=True)
        return False
    newest, brought = _kept(name, study.newest).design, []
    for one, where in there.items():
        entry, facts = study.sessions[one], Facts.read(where.facts)
        brought.append(
            compared.brought(
                *(one, entry.measured, entry.design, Findings.read(where.findings)),
                facts=facts.arms,
                probes=facts.probes,
                superseded=entry.superseded,
                differs="; ".join(design.differing(_kept(name, one).design, newest)),
            )
        )
    found = compared.pool(name, brought, study.sessions[study.newest].design)
    found.model_copy(update={"not_recorded": study.not_recorded, "retired": study.retired}).write(target)
    return True


def _is_shown(name: str, index: record.Index, made_with: Code, elsewhere: Sequence[str]) -> bool:
    """Tell whether the page of a study is as it was rendered, with all that it shows."""
    file = paths.recorded(name, index.studies[name].newest).pooled.with_name(SHOWN)
    try:
        return bool(files.read_json(file) == _page_state(name, index, made_with, elsewhere))
    except BenchbookError:
        return False


def _page_state(name: str, index: record.Index, made_with: Code, elsewhere: Sequence[str]) -> dict[str, str]:
    study = index.studies[name]
    where = paths.recorded(name, study.newest)
    pages = [one for one in (where.report, where.summary, *where.run_pages.rglob("*")) if one.is_file()]
    entry = study.sessions[study.newest].model_dump(mode="json")
    return {
        "session": hashlib.sha256(json.dumps([study.newest, entry]).encode()).hexdigest(),
        "findings": files.sha256(where.findings),
        "pooled": files.sha256(where.pooled),
        "elsewhere": hashlib.sha256("\n".join(elsewhere).encode()).hexdigest(),
        "code": made_with.pages,
        "pages": files.looks(where.clone, pages),
    }


def _pages() -> tuple[Path, ...]:
    like = paths.recorded("any", "any")
    return like.report.parent, like.run_pages.parent


def _forget(index: record.Index) -> None:
    """Remove what stands of sessions and studies that are recorded no more."""
    for folder in [one for one in base().iterdir() if one.is_dir()]:
        known = index.studies[folder.name].sessions if folder.name in index.studies else {}
        for session in [one for one in folder.iterdir() if one.is_dir() and one.name not in known]:
            shutil.rmtree(session)
        if not known:
            shutil.rmtree(folder)
    for page in [one for folder in _pages() for one in folder.iterdir()]:
        name = page.name.partition(".")[0]
        if name and name not in index.studies:
            shutil.rmtree(page) if page.is_dir() else page.unlink()


def _one(name: str, session: str, made_with: Code) -> Outcome:
    """Make one session again below a root of its own, and write down what it was made with."""
    from benchbook.evidence import sessions

    index, where = record.read(), paths.recorded(name, session)
    study = index.studies[name]
    entry = study.sessions[session]
    shutil.rmtree(where.base, ignore_errors=True)
    where.base.mkdir(parents=True)
    design, refused, differs = dict[str, Any](), list[str](), list[str]()
    try:
        if session == study.newest:
            design, refused, differs = sessions.from_raw(where, entry, where.base)
        else:
            # Only the newest has a page: of earlier ones what their archives say of themselves is enough.
            design, refused = sessions.taken(where, entry, where.base)
    except BenchbookError as error:
        refused = [f"data/record/{name}/{session}.tar.xz: {error}"] if entry.is_pooled else []
    more = len(differs) - _SHOWN
    rest = [f"{name} {session}: and {more} more values"] if more > 0 else []
    outcome = Outcome(refused=refused, differs=[*differs[:_SHOWN], *rest])
    _keep(name, session, index, made_with, outcome, design)
    return outcome


def _keep(
    name: str, session: str, index: record.Index, made_with: Code, outcome: Outcome, design: dict[str, Any]
) -> None:
    made = Made(outcome=outcome, design=design, state=_state(name, session, index, made_with))
    made.write(paths.recorded(name, session).base / MADE)


def _show(name: str, made_with: Code, elsewhere: Sequence[str]) -> str:
    """Render the page of a study from its newest session; return why that failed, if it did."""
    from benchbook.commands import record_pages

    index = record.read()
    study = index.studies[name]
    where, kept = paths.recorded(name, study.newest), _kept(name, study.newest)
    try:
        record_pages.render(where, study.sessions[study.newest], kept.outcome.all)
    except Exception as error:  # One page that can't be made takes no other away.
        kind = "" if isinstance(error, BenchbookError) else f"{type(error).__name__}: "
        return f"not rendered: {kind}{error}"
    _keep(name, study.newest, index, made_with, kept.outcome, kept.design)
    files.write_json(where.pooled.with_name(SHOWN), _page_state(name, index, made_with, elsewhere))
    return ""
