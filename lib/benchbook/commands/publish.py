"""The site as one folder that any static host can serve: every page, and every raw file that one links to."""

from __future__ import annotations

import argparse
import os
import re
import shutil
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from benchbook.commands.pages import STANDS_IN
from benchbook.core import paths
from benchbook.core.errors import BenchbookError

# Pages stand in reports/ beside data/; published, data/ stands in the site's own folder: one step fewer up.
_UP_TO_DATA = re.compile(r'(<a\b[^>]*\bhref=")((?:\.\./)+)(data/)')
# Keeps hosts from running Jekyll over the pages.
_PLAIN = ".nojekyll"


@dataclass
class Published:
    """What was put together: pages and other files below a folder, and their size in bytes."""

    folder: Path
    pages: int = 0
    others: int = 0
    bytes: int = 0
    dead: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.folder}: {self.pages} pages and {self.others} files they link to, "
            f"{self.bytes / 1e6:.1f} MB; begin at {self.folder / 'index.html'}"
        )


def options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook publish` takes."""
    parser.add_argument("--to", type=Path, help="the folder (default: public)")


def command(arguments: argparse.Namespace) -> int:
    """Put the site together in one folder; return an exit code."""
    print(publish(paths.root(), (arguments.to or paths.root() / "public").absolute()))
    return 0


def publish(root: Path, into: Path) -> Published:
    """Copy what can be reached from the first page, pages and raw files, into a folder of its own.

    What was in the folder before goes. Raises BenchbookError if there is no site, if a link leads nowhere
    or out of the repository, or if the folder holds something that is not an earlier publication.
    """
    reports = root / "reports"
    if not (reports / "index.html").is_file():
        raise BenchbookError("there is no site yet; make repro comes first")
    if into.exists() and any(into.iterdir()) and not (into / _PLAIN).is_file():
        raise BenchbookError(f"{into}: not empty and no earlier publication; name another folder")
    part = into.with_name(f".{into.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    (part / _PLAIN).touch()
    done = Published(into)
    waiting, seen = [reports / "index.html"], {reports / "index.html"}
    while waiting:
        file = waiting.pop()
        target = part / _place(file, root)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".html" and reports in file.parents:
            text = file.read_text(encoding="utf-8")
            if STANDS_IN in text[:100]:
                done.dead.append(f"{file.relative_to(root)}: not made yet")
            target.write_text(_UP_TO_DATA.sub(_one_step_fewer, text), encoding="utf-8")
            done.pages += 1
            for link in local_links(text):
                found = Path(os.path.normpath(file.parent / link))
                if root not in found.parents or not found.is_file():
                    done.dead.append(f"{file.relative_to(root)}: {link}")
                elif found not in seen:
                    seen.add(found)
                    waiting.append(found)
            summary = file.with_suffix(".md")
            if summary.is_file() and summary not in seen:
                seen.add(summary)
                waiting.append(summary)
        else:
            shutil.copyfile(file, target)
            done.others += 1
        done.bytes += target.stat().st_size
    if done.dead:
        shutil.rmtree(part)
        raise BenchbookError("not published, links lead nowhere:\n  " + "\n  ".join(sorted(done.dead)[:20]))
    if into.exists():
        shutil.rmtree(into)
    part.replace(into)
    return done


def _place(file: Path, root: Path) -> Path:
    reports = root / "reports"
    return file.relative_to(reports) if reports in file.parents else file.relative_to(root)


def _one_step_fewer(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2].removesuffix('../')}{found[3]}"


def local_links(text: str) -> list[str]:
    """Return the files that a page links to, without anchors, addresses of others and places on the page."""
    collector = _Links()
    collector.feed(text)
    return sorted(collector.found)


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        link = dict(attrs).get("href") if tag == "a" else None
        parts = urlsplit(link or "")
        if parts.path and not parts.scheme and not parts.netloc:
            self.found.add(unquote(parts.path))
