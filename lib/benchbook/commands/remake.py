"""The record made again: each session from its archive where something changed, and a page for the newest."""

from __future__ import annotations

import hashlib
import itertools
import json
import multiprocessing
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchbook.commands import code
from benchbook.core import files, parallel, paths, record
from benchbook.core.errors import BenchbookError

# What the record is made with; dvc.yaml names the same.
TRAITS = "sites/traits"
FLOORS = ("core", "read", "compare", "show", "evidence", TRAITS)
NOTEBOOKS = ("05_parse", "06_analyze", "07_report", "runs")
# In the folder of a session: what it was made with, and how it came out.
MADE = "made.json"
# In data/recorded: what the last time found wrong.
TROUBLE = "trouble.json"
# What of a session is only kept where its runs have pages.
RAW = ("raw", "void", "pilots")
_SHOWN = 5


@dataclass
class Outcome:
    """What became of a session: `refused` is no evidence, `differs` names values that came out otherwise."""

    refused: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)


def run() -> int:
    """Make every session again that does not stand; whatever is wrong is told, kept, and stops nothing."""
    from benchbook.evidence import held

    index, made_with = record.read(), _code(paths.root())
    # The stage's outputs, which DVC asks for where nothing is recorded, too.
    for folder in (base(), *_pages()):
        folder.mkdir(parents=True, exist_ok=True)
    _forget(index)
    refused = [*held.strangers(index), *held.doubled(index)]
    known = [(name, session) for name, study in index.studies.items() for session in study.sessions]
    there = [one for one in known if paths.recorded(*one).archive.is_file()]
    due = [one for one in there if not _stands(*one, index, made_with)]
    # The largest first, so that all processes end at about the same time.
    due.sort(key=lambda one: (-index.studies[one[0]].sessions[one[1]].runs, one))
    # The newest last: its page begins with what all sessions of the study say together.
    waves = [
        [one for one in due if is_last == (one[1] == index.studies[one[0]].newest)] for is_last in (0, 1)
    ]
    made = itertools.chain.from_iterable(_made(wave, made_with) for wave in waves)
    for number, (name, session, outcome) in enumerate(made, 1):
        told = "NOT as recorded" if outcome.differs else "refused" if outcome.refused else "as recorded"
        print(f"record {number} of {len(due)}: {name} {session}: made again, {told}", flush=True)
    outcomes = {one: outcome_of(*one) for one in there}
    refused += [text for outcome in outcomes.values() for text in outcome.refused]
    differs = [text for outcome in outcomes.values() for text in outcome.differs]
    files.write_json(base() / TROUBLE, {"refused": refused, "differs": differs})
    stand = f"; {len(there) - len(due)} stand as they were made" if len(due) < len(there) else ""
    print(f"{len(due)} sessions of {len(index.studies)} recorded studies made again{stand}")
    return 0


def trouble() -> list[str]:
    """Return what the record's last making found wrong, a line each; nothing if all is as recorded."""
    file = base() / TROUBLE
    found = files.read_json(file) if file.is_file() else {"refused": [], "differs": []}
    return [*found["refused"], *found["differs"]]


def base() -> Path:
    """Return the folder of all recorded studies made again."""
    return paths.root() / "data" / "recorded"


def outcome_of(name: str, session: str) -> Outcome:
    """Return how a session came out when it was made last."""
    file = paths.recorded(name, session).base / MADE
    if not file.is_file():
        return Outcome([f"data/record/{name}/{session}.tar.xz: it could not be made again"])
    found = files.read_json(file)["outcome"]
    return Outcome(**found)


def _code(root: Path) -> str:
    """Return the digest of what makes a study again: notebooks, the modules they reach, templates."""
    notebooks = [root / "notebooks" / f"{stem}.ipynb" for stem in NOTEBOOKS]
    begun = [name for one in notebooks for name in code.imported(_source(one))]
    floors = [code.PACKAGE / floor for floor in FLOORS]
    modules = code.reached([*begun, "benchbook.evidence.remake", "benchbook.commands.recorded_pages"])
    # Read by all floors, and imported by none.
    modules |= {*(code.PACKAGE / TRAITS).glob("*.py")}
    used = {one for one in modules if any(one.is_relative_to(floor) for floor in floors)}
    others = {one for floor in floors for one in floor.rglob("*") if one.is_file()}
    used |= {one for one in others if one.suffix not in (".py", ".pyc")}
    both = files.sha256_all(code.PACKAGE, used) + files.sha256_all(root, notebooks)
    return hashlib.sha256(both.encode()).hexdigest()


def _source(notebook: Path) -> str:
    cells = files.read_json(notebook)["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def _stands(name: str, session: str, index: record.Index, made_with: str) -> bool:
    """Tell whether a session is as it was made, with the present archive, entry and code."""
    file = paths.recorded(name, session).base / MADE
    try:
        return bool(files.read_json(file)["state"] == _state(name, session, index, made_with))
    except (BenchbookError, KeyError):
        return False


def _state(name: str, session: str, index: record.Index, made_with: str) -> dict[str, str]:
    """Return the digests of what a session is made with, and of all that stands of it now."""
    where, study = paths.recorded(name, session), index.studies[name]
    left = [one for one in where.base.rglob("*") if one.is_file() and one != where.base / MADE]
    is_shown = session == study.newest
    if is_shown:
        shown = (where.pooled, where.report, where.summary, *where.run_pages.rglob("*"))
        left += [one for one in shown if one.is_file()]
    # The page of the newest rests on all of them.
    entries = study.sessions if is_shown else {session: study.sessions[session]}
    told = {name: entry.model_dump(mode="json") for name, entry in entries.items()} | {"shown": is_shown}
    return {
        "archive": files.sha256(where.archive),
        "index": hashlib.sha256(json.dumps(told).encode()).hexdigest(),
        "code": made_with,
        "left": _looks(where.clone, left),
    }


def _looks(root: Path, found: Sequence[Path]) -> str:
    """Return a digest over names, sizes and times of files: to read them all would take seconds."""
    seen = {str(one.relative_to(root)): one.stat() for one in found}
    lines = [f"{name} {seen[name].st_size} {seen[name].st_mtime_ns}" for name in sorted(seen)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


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


def _made(due: Sequence[tuple[str, str]], made_with: str) -> Iterator[tuple[str, str, Outcome]]:
    """Make sessions again in as many processes as there are cores; yield each with what became of it."""
    root, workers = str(paths.root()), min(len(os.sched_getaffinity(0)), len(due))
    if workers < 2:
        yield from ((*one, _one(*one, root, made_with)) for one in due)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=parallel.end_with_parent) as pool:
        asked = {pool.submit(_one, *one, root, made_with): one for one in due}
        for done in as_completed(asked):
            yield (*asked[done], done.result())


def _one(name: str, session: str, root: str, made_with: str) -> Outcome:
    """Make one session again, show it if it is the newest, and write down what it was made with."""
    with paths.at(Path(root)):
        index, where = record.read(), paths.recorded(name, session)
        shutil.rmtree(where.base, ignore_errors=True)
        where.base.mkdir(parents=True)
        try:
            outcome = _remade(where, index.studies[name])
        except BenchbookError as error:
            is_known = index.studies[name].sessions[session].superseded is not None
            told = f"data/record/{name}/{session}.tar.xz: {error}"
            outcome = Outcome() if is_known else Outcome([told])
        made = {"state": _state(name, session, index, made_with), "outcome": asdict(outcome)}
        files.write_json(where.base / MADE, made)
    return outcome


def _remade(where: paths.RecordedPaths, study: record.Recorded) -> Outcome:
    """Make a session again below its own root; show the newest, and of others keep what its tables need."""
    from benchbook.commands import recorded_pages
    from benchbook.evidence import held, pooling

    entry = study.sessions[where.session_id]
    found = held.made_again(where, entry, where.base)
    if where.session_id == study.newest and where.data.is_dir():
        pooling.write(where.name, study)
        recorded_pages.render(where, entry, found.differs)
    else:
        for part in RAW:
            shutil.rmtree(where.data / part, ignore_errors=True)
    more = len(found.differs) - _SHOWN
    rest = [f"{where.name} {where.session_id}: and {more} more values"] if more > 0 else []
    return Outcome([*found.refused], [*found.differs[:_SHOWN], *rest])
