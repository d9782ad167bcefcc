"""The pages of a recorded session: rendered in a root of its own, then put on the site with their links."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from ruamel.yaml import YAML

from benchbook.commands import notebooks, stage
from benchbook.core.artifacts import record
from benchbook.core.util import files, paths, yaml_file
from benchbook.show import caveats_section, registration
from benchbook.show import page as pages

_HREF = re.compile(r'(?<=\shref=")([^"#:]+)(?=[#"])')


def render_pages(where: paths.RecordedPaths, entry: record.Entry, differs: Sequence[str]) -> None:
    """Render the page of a session that was made again, and those of its runs, on the site of the clone."""
    # The session's settings name its own study and sources, and nothing else.
    file, published = where.base / "params.yaml", where.base / "data" / "published"
    sources = sorted(path.name for path in published.iterdir()) if published.is_dir() else []
    lists = {"studies": {where.name: where.shown}, "sources": sources}
    settings = yaml_file.read_mapping(file, "params.yaml").data
    with file.open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump({**settings, **lists}, stream)
    files.write_text(where.base / registration.RECORDED, entry.registered + "\n")
    if differs:
        files.write_text(where.base / caveats_section.DIFFERS, "\n".join(differs) + "\n")
    ours, inside = where.clone, paths.StudyPaths(where.name, where.base)
    with paths.use_root(ours):
        commit, edited = stage.current_commit(), stage.count_edited()
    for done, page in (("report", inside.report), ("runs", inside.run_pages / "index.html")):
        stem = stage.STAGES[done]
        target = inside.notebooks / f"{stem}.ipynb"
        source = ours / "notebooks" / f"{stem}.ipynb"
        notebooks.execute_notebook(source, target, where.base, {"study": where.name})
        with paths.use_root(where.base):
            pages.render_page(target, page, where.name, commit, where.base, edited)
    with paths.use_root(where.base):
        stage.write_summary(where.name, commit, edited)
    _move_pages(where)


def _move_pages(where: paths.RecordedPaths) -> None:
    """Put the pages on the site, each link adapted to the later place of its target."""
    shutil.rmtree(where.run_pages, ignore_errors=True)
    inside = where.base / "reports"
    for file in sorted(inside.rglob("*")):
        if file.is_dir():
            continue
        target = where.clone / "reports" / "record" / file.relative_to(inside)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".html":
            text = file.read_text(encoding="utf-8")
            text = _HREF.sub(lambda result: _adapt_link(result[1], file, target, where), text)  # noqa: B023
            target.write_text(text, encoding="utf-8")
        else:
            shutil.copyfile(file, target)
    shutil.rmtree(inside)


def _adapt_link(link: str, file: Path, target: Path, where: paths.RecordedPaths) -> str:
    """A link from a page's place on the site to the same target as before."""
    meant = Path(os.path.normpath(file.parent / link))
    inside, site = where.base / "reports", where.clone / "reports"
    if meant.is_relative_to(inside):
        relative = meant.relative_to(inside)
        names = relative.stem, *relative.parts[:2]
        is_own = relative.parts[0] in ("studies", "runs") and where.name in names
        meant = site / "record" / relative if is_own else site / relative
    return os.path.relpath(meant, target.parent)
