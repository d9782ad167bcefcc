"""The measured record made again from the raw files of its archives: tables, findings, pages, all compared.

One stage for all of it: a process that takes study after study imports everything once, and this one, which
only deals them out, next to nothing. A study whose archive, index and code are those it was made with, and
whose pages and tables nobody has touched since, stands as it is.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from benchbook.commands import code
from benchbook.core import files, parallel, paths, record
from benchbook.core.errors import BenchbookError, InputErrors

# What the record is made with; dvc.yaml names the same.
TRAITS = "sites/traits"
FLOORS = ("core", "read", "compare", "show", TRAITS)
NOTEBOOKS = ("05_parse", "06_analyze", "07_report", "runs")
# In the folder of a recorded study: what it was made with, and what became of it.
MADE = "made.json"


def run() -> int:
    """Make every recorded study again that does not stand; InputErrors with all that is not as recorded."""
    index, made_with = record.read(), _code(paths.root())
    # The stage's outputs, which DVC asks for where nothing is recorded, too.
    for folder in _folders():
        folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(_known() - set(index.studies)):
        _remove(paths.recorded(name))
    wrong = list(strangers(index))
    # The largest first, so that all processes end at about the same time.
    names = sorted(index.studies, key=lambda name: (-index.studies[name].runs, name))
    there = [name for name in names if paths.recorded(name).archive.is_file()]
    due = [name for name in there if not _stands(name, index.studies[name], made_with)]
    for number, (name, found) in enumerate(_made(due, made_with), 1):
        wrong += found
        told = "NOT as recorded" if found else "as recorded"
        print(f"record {number} of {len(due)}: {name}: made again, {told}", flush=True)
    if wrong:
        raise InputErrors(wrong)
    runs = sum(index.studies[name].runs for name in due)
    stand = f"; {len(there) - len(due)} stand as they were made" if len(due) < len(there) else ""
    print(f"{len(due)} recorded studies made again from {runs} runs, all as recorded{stand}")
    return 0


def strangers(index: record.Index) -> Iterator[str]:
    """Name archives without an entry and entries without an archive."""
    there = {file.name.removesuffix(".tar.xz") for file in paths.record().glob("*.tar.xz")}
    for name in sorted(there - set(index.studies)):
        yield f"data/record/{name}.tar.xz: not in {record.INDEX}; `make record` writes both"
    for name in sorted(set(index.studies) - there):
        yield f"data/record/{record.INDEX}: {name}: there is no data/record/{name}.tar.xz; remove the entry"


def _code(root: Path) -> str:
    """Return the digest of what makes a study again: notebooks, the modules they reach, templates."""
    notebooks = [root / "notebooks" / f"{stem}.ipynb" for stem in NOTEBOOKS]
    begun = [name for one in notebooks for name in code.imported(_source(one))]
    floors = [code.PACKAGE / floor for floor in FLOORS]
    modules = code.reached([*begun, "benchbook.commands.made_again"])
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


def _stands(name: str, entry: record.Entry, made_with: str) -> bool:
    """Tell whether a study is as it was made, with the present archive, entry and code."""
    file = paths.recorded(name).base / MADE
    try:
        return bool(files.read_json(file) == _state(name, entry, made_with))
    except BenchbookError:
        return False


def _state(name: str, entry: record.Entry, made_with: str) -> dict[str, str]:
    """Return the digests of what a study is made with, and of all that stands of it now."""
    where = paths.recorded(name)
    data = [one for one in where.base.rglob("*") if one.is_file() and one != where.base / MADE]
    pages = [one for one in (where.report, where.summary, *where.run_pages.rglob("*")) if one.is_file()]
    return {
        "archive": files.sha256(where.archive),
        "index": hashlib.sha256(json.dumps(entry.model_dump(mode="json")).encode()).hexdigest(),
        "code": made_with,
        "left": files.sha256_all(where.clone, [*data, *pages]),
    }


def _known() -> set[str]:
    """Return the studies of which something stands, recorded or not any more."""
    there = [one.name for folder in _folders() for one in folder.iterdir()]
    return {name.partition(".")[0] for name in there if not name.startswith(".")}


def _folders() -> tuple[Path, ...]:
    like = paths.recorded("any")
    return like.base.parent, like.report.parent, like.run_pages.parent


def _remove(where: paths.RecordedPaths) -> None:
    for folder in (where.base, where.run_pages):
        shutil.rmtree(folder, ignore_errors=True)
    for page in (where.report, where.summary):
        page.unlink(missing_ok=True)


def _made(names: Sequence[str], made_with: str) -> Iterator[tuple[str, list[str]]]:
    """Make studies again in as many processes as there are cores; yield each with what is wrong."""
    root, workers = str(paths.root()), min(len(os.sched_getaffinity(0)), len(names))
    if workers < 2:
        yield from ((name, _one(name, root, made_with)) for name in names)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=parallel.end_with_parent) as pool:
        asked = {pool.submit(_one, name, root, made_with): name for name in names}
        for done in as_completed(asked):
            yield asked[done], done.result()


def _one(name: str, root: str, made_with: str) -> list[str]:
    """Make one study again and write down what it was made with; return what is wrong with it."""
    from benchbook.commands import made_again

    os.environ["BENCHBOOK_ROOT"] = root
    where = paths.recorded(name)
    _remove(where)
    where.base.parent.mkdir(parents=True, exist_ok=True)
    try:
        wrong = made_again.one(name)
        if not wrong:
            entry = record.read().studies[name]
            files.write_json(where.base / MADE, _state(name, entry, made_with))
    except InputErrors as error:
        return [f"{name}: {text}" for text in error.errors]
    except BenchbookError as error:
        return [f"data/record/{name}.tar.xz: {error}"]
    return wrong
