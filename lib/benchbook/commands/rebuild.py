"""The measured record made again from the raw files of its archives: tables, findings, pages, all compared.

One stage for all of it: a kernel that takes study after study needs a fourth of the time that a process for
each notebook would.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchbook.commands import archive, stage, verify
from benchbook.core import files, parallel, paths, record
from benchbook.core.errors import BenchbookError, InputErrors

_HREF = re.compile(r'(?<=\shref=")([^"#:]+)(?=[#"])')
_MOST_WORKERS = 4


def run() -> int:
    """Make every recorded study again below `data/recorded` and `reports/record`.

    InputErrors names every archive and file that is not as recorded, and every finding that differs.
    """
    root, index = paths.root(), record.read()
    for folder in (root / "data" / "recorded", root / "reports" / "record"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    wrong = list(strangers(index))
    shares = _shares(index)
    if len(shares) < 2:
        wrong += [one for share in shares for one in _several(share, str(root))]
    else:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(len(shares), context, initializer=parallel.end_with_parent) as pool:
            for found in pool.map(_several, shares, [str(root)] * len(shares)):
                wrong += found
    if wrong:
        raise InputErrors(wrong)
    runs = sum(entry.runs for entry in index.studies.values())
    print(f"{len(index.studies)} recorded studies made again from {runs} runs: all as recorded")
    return 0


def strangers(index: record.Index) -> Iterator[str]:
    """Name archives without an entry and entries without an archive."""
    there = {file.name.removesuffix(".tar.xz") for file in paths.record().glob("*.tar.xz")}
    for name in sorted(there - set(index.studies)):
        yield f"data/record/{name}.tar.xz: not in {record.INDEX}; `make record` writes both"
    for name in sorted(set(index.studies) - there):
        yield f"data/record/{record.INDEX}: {name}: there is no data/record/{name}.tar.xz; remove the entry"


def _shares(index: record.Index) -> list[list[str]]:
    """Deal the studies out to the cores, the largest first, so that all end at about the same time."""
    names = sorted(index.studies, key=lambda name: (-index.studies[name].runs, name))
    there = [name for name in names if paths.recorded(name).archive.is_file()]
    count = max(1, min(len(os.sched_getaffinity(0)), _MOST_WORKERS, len(there)))
    return [share for place in range(count) if (share := there[place::count])]


def _several(names: Sequence[str], root: str) -> list[str]:
    """Make some studies again with one kernel; return what is wrong with them."""
    from benchbook.commands import notebooks

    os.environ["BENCHBOOK_ROOT"] = root
    wrong: list[str] = []
    with notebooks.started(Path(root)) as kernel:
        for name in names:
            try:
                wrong += one(name, kernel)
            except InputErrors as error:
                wrong += [f"{name}: {text}" for text in error.errors]
            except BenchbookError as error:
                wrong.append(f"data/record/{name}.tar.xz: {error}")
    return wrong


def one(name: str, kernel: object) -> list[str]:
    """Make one recorded study again: unpack, parse, analyze, compare, render; return what differs."""
    where, entry, ours = paths.recorded(name), record.read().studies[name], paths.root()
    try:
        return _made_again(name, where, entry, ours, kernel)
    finally:
        os.environ["BENCHBOOK_ROOT"] = str(ours)


def _made_again(
    name: str, where: paths.RecordedPaths, entry: record.Entry, ours: Path, kernel: object
) -> list[str]:
    from benchbook.show import registration

    contents = archive.unpack(where.archive, where.base)
    if files.sha256(where.archive) != entry.sha256:
        return [
            f"data/record/{name}.tar.xz: whole, but not the archive of {record.INDEX}: its sha256 begins "
            f"with {files.sha256(where.archive)[:12]}, {entry.sha256[:12]} was recorded"
        ]
    if contents.study != name:
        return [f"data/record/{name}.tar.xz: the evidence of {contents.study}; name it so"]
    claimed = {part: (where.data / part).read_bytes() for part in verify.MADE}
    for part in verify.MADE:
        (where.data / part).unlink()
    verify.settle(where.base, name)
    files.write_text(where.base / registration.RECORDED, entry.registered + "\n")
    commit, edited = stage.commit(), stage.edited()
    os.environ["BENCHBOOK_ROOT"] = str(where.base)
    for done in ("parse", "analyze"):
        _execute(kernel, done, ours, where)
    wrong = [f"data/record/{name}.tar.xz: {text}" for text in _differing(claimed, where.data, entry)]
    if wrong:
        return wrong
    for done, page in (("report", where.base_report), ("runs", where.base_runs)):
        target = _execute(kernel, done, ours, where)
        stage.render(target, page, name, where.base, commit, edited)
    stage.summarise(name, commit, edited)
    _move(where)
    return []


def _execute(kernel: object, done: str, ours: Path, where: paths.RecordedPaths) -> Path:
    stem = stage.STAGES[done]
    target = where.notebooks / f"{stem}.ipynb"
    return kernel.execute(ours / "notebooks" / f"{stem}.ipynb", target, where.base, study=where.name)  # type: ignore[attr-defined,no-any-return]


def _differing(claimed: dict[str, bytes], data: Path, entry: record.Entry) -> Iterator[str]:
    """Name what was made again and differs from what was recorded: values first, then bytes."""
    yield from verify.differing(claimed, data)
    for part, digest in made(data).items():
        if digest != entry.made.get(part):
            yield f"{part}: made again it has other bytes than {record.INDEX} says"


def made(data: Path) -> dict[str, str]:
    """Return the hashes of what follows from the raw files of a study."""
    tidy = hashlib.sha256()
    for file in sorted((data / "tidy").iterdir()):
        tidy.update(f"{file.name} {files.sha256(file)}\n".encode())
    return {**{part: files.sha256(data / part) for part in verify.MADE}, "tidy": tidy.hexdigest()}


def _move(where: paths.RecordedPaths) -> None:
    """Put the pages on the site, each link leading to where its target stands then."""
    inside = where.base / "reports"
    for file in sorted(inside.rglob("*")):
        if file.is_dir():
            continue
        target = where.clone / "reports" / "record" / file.relative_to(inside)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".html":
            text = file.read_text(encoding="utf-8")
            text = _HREF.sub(lambda found: _link(found[1], file, target, where), text)  # noqa: B023
            target.write_text(text, encoding="utf-8")
        else:
            shutil.copyfile(file, target)
    shutil.rmtree(inside)


def _link(link: str, file: Path, target: Path, where: paths.RecordedPaths) -> str:
    """Return a link that leads from a page's place on the site to what it led to before."""
    meant = Path(os.path.normpath(file.parent / link))
    inside, site = where.base / "reports", where.clone / "reports"
    if meant.is_relative_to(inside):
        own = meant.relative_to(inside)
        is_own = own.parts[0] in ("studies", "runs") and where.name in (own.stem, *own.parts[:2])
        meant = (site / "record" / own) if is_own else site / own
    return os.path.relpath(meant, target.parent)
