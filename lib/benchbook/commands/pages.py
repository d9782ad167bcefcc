"""All pages that need no measuring, made in as many processes as there are cores, and the site of them."""

from __future__ import annotations

import html
import os
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from benchbook.commands import findings_summary, rebuild_record, stage, story_markdown
from benchbook.core.published.audit import Audit
from benchbook.core.study import load
from benchbook.core.util import files, parallel, paths
from benchbook.core.util.errors import BenchbookError

# In data/site: what the pages of sources and those about everything were made from.
MADE = "made.json"
# In a page that stands in for one that no stage has made.
STANDS_IN = "stands in for a page that is not made"
_LINK = re.compile(r'\bhref="([^"#:]+\.html)(?:#([^"]*))?"')


def make_pages(with_record: bool) -> int:
    """Make pages whose inputs changed: of sources, the record if asked, everything; return an exit code."""
    root, file, wrong = paths.find_root(), paths.find_root() / "data" / "site" / MADE, list[str]()
    (root / "reports" / "record").mkdir(parents=True, exist_ok=True)
    before: dict[str, Any] = files.read_json(file) if file.is_file() else {}
    with parallel.process_pool() as submit:
        audits = [] if before.get("sources") == _digest_sources(root) else load.load_params("sources").sources
        new_futures = [submit(stage.run_audit, name) for name in audits]
        if with_record:
            wrong = rebuild_record.rebuild_sessions(submit)
        codes = [task.result() for task in new_futures]
        if before.get("all") != _digest_all(root):
            codes += [task.result() for task in [submit(stage.make_page, name) for name in stage.PAGES]]
    if with_record and not any(codes):
        audit_files = sorted(root.glob("data/audit/*/audit.json"))
        findings_summary.write_summary([Audit.read(file) for file in audit_files])
        story_markdown.write_story()
    stand_in(root)
    if not any(codes):
        files.write_json(file, {"sources": _digest_sources(root), "all": _digest_all(root)})
    if wrong:
        print("All pages are made. Not as recorded, as their pages say:", *wrong, sep="\n", file=sys.stderr)
    return max(codes, default=0) or int(bool(wrong))


def stand_in(root: Path) -> list[Path]:
    """Put a page with the remedy in place of each linked page that a stage left out; return these."""
    site = root / "reports"
    wanted: dict[Path, set[str]] = {}
    for file in site.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        if STANDS_IN in text[:100]:
            file.unlink()
            continue
        for link, anchor in set(_LINK.findall(text)):
            wanted.setdefault(Path(os.path.normpath(file.parent / link)), set()).add(anchor)
    absent = sorted(page for page in wanted if page.is_relative_to(site) and not page.exists())
    for page in absent:
        # It brings pandas along.
        from benchbook.show.templating import render_template

        kind = page.relative_to(site).parts[0]
        name = page.parent.name if kind == "runs" else page.stem
        command = f"make repro STUDY={name}" if kind in ("studies", "runs") else "make pages"
        inputs = {"mark": STANDS_IN, "command": command, "anchors": sorted(wanted[page] - {""})}
        files.write_text(page, render_template("absent.html.j2", **inputs).text)
    return absent


def _digest_sources(root: Path) -> str:
    """Digest of the looks of the files behind the pages of sources, and of these pages themselves."""
    return _digest_files(root, ("notebooks", "data/published", "data/audit", "reports/sources"))


def _digest_all(root: Path) -> str:
    """Digest of the same for the pages about everything, and of the files they read of each study."""
    # Not the raw files of the record: what is shown of them lies in these, some of which are always written.
    patterns = ("*/*.json", "record/*/index.json", "recorded/*/*.json", "recorded/*/*/data/*/*.json")
    read = [file for pattern in patterns for file in (root / "data").glob(pattern) if file.name != MADE]
    looks = _digest_files(root, ("studies", "reports", "data/record/calibration"))
    return _digest_sources(root) + looks + files.sha256_all(root, read)


def _digest_files(root: Path, folders: Iterable[str]) -> str:
    inputs = [file for folder in (*folders, "lib/benchbook") for file in (root / folder).rglob("*")]
    inputs = [file for file in (*inputs, paths.params_file()) if file.is_file() and file.suffix != ".pyc"]
    return files.digest_stats(root, inputs)


_WAY = re.compile(r'<a\b[^>]*\bhref="([^"]*)"')
# Pages stand in reports/ beside data/; published, data/ stands in the site's own folder: one step fewer up.
_UP_TO_DATA = re.compile(r'(<a\b[^>]*\bhref="(?:\.\./)*)\.\./(data/)')
# Keeps hosts from running Jekyll over the pages.
_PLAIN = ".nojekyll"


def publish_site(to: Path | None) -> str:
    """Put pages and raw files reachable from the first page into one folder; return a line on it.

    BenchbookError without a site, for a link to nowhere, and for a folder that is no earlier publication.
    """
    root, into = paths.find_root(), (to or paths.find_root() / "public").absolute()
    first = root / "reports" / "index.html"
    if not first.is_file():
        raise BenchbookError("there is no site yet; make repro comes first")
    if into.exists() and any(into.iterdir()) and not (into / _PLAIN).is_file():
        raise BenchbookError(f"{into}: not empty and no earlier publication; name another folder")
    part = into.with_name(f".{into.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    (part / _PLAIN).touch()
    pages, others, dead = _copy_site(root, first, part)
    size = sum(file.stat().st_size for file in (*pages, *others))
    if dead:
        shutil.rmtree(part)
        raise BenchbookError("not published, links lead nowhere:\n  " + "\n  ".join(sorted(dead)[:20]))
    if into.exists():
        shutil.rmtree(into)
    part.replace(into)
    beside = f"{len(others)} files they link to, {size / 1e6:.1f} MB"
    return f"{into}: {len(pages)} pages and {beside}; begin at {into / 'index.html'}"


def _copy_site(root: Path, first: Path, part: Path) -> tuple[list[Path], list[Path], list[str]]:
    """Copy what the first page leads to; return the pages, the other files, and links to nowhere."""
    reports, waiting, reached = first.parent, [first], {first}
    pages, others, dead = list[Path](), list[Path](), list[str]()
    while waiting:
        file = waiting.pop()
        is_shown = reports in file.parents
        target = part / file.relative_to(reports if is_shown else root)
        target.parent.mkdir(parents=True, exist_ok=True)
        if is_shown and file.suffix == ".html":
            linked, wrong = _copy_page(root, file, target)
            pages.append(target)
            dead += wrong
            waiting += linked - reached
            reached |= linked
        else:
            others.append(shutil.copyfile(file, target))
    return pages, others, dead


def _copy_page(root: Path, page: Path, target: Path) -> tuple[set[Path], list[str]]:
    """Copy a page, its way to data turned; return the files that it leads to, and links to nowhere."""
    text = page.read_text(encoding="utf-8")
    target.write_text(_UP_TO_DATA.sub(r"\1\2", text), encoding="utf-8")
    linked = {link: Path(os.path.normpath(page.parent / link)) for link in local_links(text)}
    there = {path for path in linked.values() if root in path.parents and path.is_file()}
    wrong = [link for link, path in linked.items() if path not in there]
    wrong += ["not made yet"] if STANDS_IN in text[:100] else []
    if (summary := page.with_suffix(".md")).is_file():
        there.add(summary)
    return there, [f"{page.relative_to(root)}: {what}" for what in wrong]


def local_links(text: str) -> list[str]:
    """Files that a page links to, without anchors, addresses of others and places on the page."""
    parts = [urlsplit(html.unescape(link)) for link in _WAY.findall(text)]
    return sorted({unquote(part.path) for part in parts if part.path and not part.scheme and not part.netloc})
