"""All pages that need no measuring, made in as many processes as there are cores.

DVC starts a process for each page, one after the other, and each imports for two seconds what it draws with.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchbook.commands import remake, stage
from benchbook.core import files, load, parallel, paths

# In data/site: what the pages of sources and those about everything were made from.
MADE = "made.json"
# In a page that stands in for one that no stage has made.
STANDS_IN = "stands in for a page that is not made"
_LINK = re.compile(r'\bhref="([^"#:]+\.html)(?:#([^"]*))?"')


def make(with_record: bool) -> int:
    """Make the pages of sources, those of the record if asked, then those about everything; return a code.

    What stands as it was made from the same is left as it is.
    """
    root, file, codes = paths.root(), paths.root() / "data" / "site" / MADE, []
    (root / "reports" / "record").mkdir(parents=True, exist_ok=True)
    before: dict[str, Any] = files.read_json(file) if file.is_file() else {}
    with parallel.processes() as submit:
        audits = [] if before.get("sources") == _sources(root) else load.params("sources").sources
        made = [submit(stage.make_audit, name) for name in audits]
        if with_record:
            remake.make(submit)
        codes += [task.result() for task in made]
        if before.get("all") != _all(root):
            codes += [task.result() for task in [submit(stage.make_page, name) for name in stage.PAGES]]
    stand_in(root)
    if not any(codes):
        files.write_json(file, {"sources": _sources(root), "all": _all(root)})
    return max(codes, default=0)


def stand_in(root: Path) -> list[Path]:
    """Put a page that says what to do in place of each that a page leads to and that no stage has made.

    A stage that failed or was stopped leaves no page, and others lead to it all the same.
    """
    site = root / "reports"
    wanted: dict[Path, set[str]] = {}
    for file in site.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        if STANDS_IN in text[:100]:
            file.unlink()
            continue
        for link, anchor in set(_LINK.findall(text)):
            wanted.setdefault(Path(os.path.normpath(file.parent / link)), set()).add(anchor)
    absent = {page: own for page, own in wanted.items() if page.is_relative_to(site) and not page.exists()}
    if not absent:
        return []
    # It brings pandas along.
    from benchbook.show.shape import shaped

    for page, anchors in absent.items():
        kind = page.relative_to(site).parts[0]
        name = page.parent.name if kind == "runs" else page.stem
        command = f"make repro STUDY={name}" if kind in ("studies", "runs") else "make pages"
        given = {"mark": STANDS_IN, "command": command, "anchors": sorted(anchors - {""})}
        files.write_text(page, shaped("absent.html.j2", **given).text)
    return sorted(absent)


def _sources(root: Path) -> str:
    """Return a digest of how all looks that the pages of sources are made from, and they themselves."""
    folders = ["notebooks", "data/published", "data/audit", "reports/sources"]
    return _looks(root, [file for folder in folders for file in (root / folder).rglob("*")])


def _all(root: Path) -> str:
    """Return the same for the pages about everything, and what they read of each study."""
    data, folders = root / "data", ("studies", "reports", "data/record/calibration")
    # Not the raw files of the record: what is shown of them lies in these, some of which are always written.
    patterns = ("*/*.json", "record/index.yaml", "recorded/*/*.json", "recorded/*/*/data/*/*.json")
    read = [file for pattern in patterns for file in data.glob(pattern) if file.name != MADE]
    seen = [file for folder in folders for file in (root / folder).rglob("*")]
    return _sources(root) + _looks(root, seen) + files.sha256_all(root, read)


def _looks(root: Path, found: Sequence[Path]) -> str:
    made_with = [file for file in (root / "lib" / "benchbook").rglob("*") if file.suffix != ".pyc"]
    return files.looks(root, [file for file in (*found, *made_with, paths.params()) if file.is_file()])
