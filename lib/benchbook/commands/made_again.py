"""One recorded study made again from the raw files of its archive, and held against what was recorded."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from benchbook.commands import archive, notebooks, stage, verify
from benchbook.core import canonical, files, paths, record
from benchbook.read import tidy
from benchbook.show import registration

_HREF = re.compile(r'(?<=\shref=")([^"#:]+)(?=[#"])')


def one(name: str) -> list[str]:
    """Make one recorded study again: unpack, parse, analyze, compare, render; return what differs."""
    where, entry, ours = paths.recorded(name), record.read().studies[name], paths.root()
    try:
        return _made(name, where, entry, ours)
    finally:
        os.environ["BENCHBOOK_ROOT"] = str(ours)


def _made(name: str, where: paths.RecordedPaths, entry: record.Entry, ours: Path) -> list[str]:
    commit, edited = stage.commit(), stage.edited()
    wrong = held(name, where, entry, ours)
    if wrong:
        return wrong
    for done, page in (("report", where.base_report), ("runs", where.base_runs)):
        target = execute(done, name, ours, where.base)
        stage.render(target, page, name, where.base, commit, edited)
    stage.summarise(name, commit, edited)
    _move(where)
    return []


def held(name: str, where: paths.RecordedPaths, entry: record.Entry, ours: Path) -> list[str]:
    """Unpack, parse and analyze one recorded study; return what is not as its archive and its entry have it.

    Afterwards `BENCHBOOK_ROOT` is the folder that it was unpacked to.
    """
    contents = archive.unpack(where.archive, where.base)
    if files.sha256(where.archive) != entry.sha256:
        return [
            f"data/record/{name}.tar.xz: whole, but not the archive of {record.INDEX}: its sha256 begins "
            f"with {files.sha256(where.archive)[:12]}, the recorded one with {entry.sha256[:12]}"
        ]
    if contents.study != name:
        return [f"data/record/{name}.tar.xz: holds the study {contents.study}; rename the file after it"]
    claimed = {part: (where.data / part).read_bytes() for part in verify.MADE}
    for part in verify.MADE:
        (where.data / part).unlink()
    verify.settle(where.base, name)
    files.write_text(where.base / registration.RECORDED, entry.registered + "\n")
    os.environ["BENCHBOOK_ROOT"] = str(where.base)
    for done in verify.STAGES:
        execute(done, name, ours, where.base)
    return [f"data/record/{name}.tar.xz: {text}" for text in _differing(claimed, where.data, entry)]


def execute(done: str, name: str, ours: Path, root: Path) -> Path:
    """Execute our notebook of a stage for a study below `root`, in this process; return what it became."""
    stem = stage.STAGES[done]
    target = paths.StudyPaths(name, root).notebooks / f"{stem}.ipynb"
    return notebooks.execute(ours / "notebooks" / f"{stem}.ipynb", target, root, {"study": name})


def _differing(claimed: dict[str, bytes], data: Path, entry: record.Entry) -> Iterator[str]:
    """Yield what differs from what was recorded: values of findings and metrics, then columns of tables."""
    yield from verify.differing(claimed, data)
    for text in canonical.table_differences(entry.made, tidy.load(data / "tidy")):
        yield f"tidy/{text}; the recorded digest stands in {record.INDEX}"


def made(data: Path) -> dict[str, str]:
    """Return the digests of the tidy tables of a study, which follow from its raw files alone."""
    return {name: canonical.digest(table) for name, table in tidy.load(data / "tidy").items()}


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
