"""The pages of a study's single runs: one for each block, so that a thousand runs stay readable."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from benchbook.core import paths, runfolder
from benchbook.core.runfolder import RunFolder
from benchbook.show import numbers, page, run_tables
from benchbook.show.evidence import Evidence
from benchbook.show.markup import Html, element, join
from benchbook.show.run_page import Section, file_name, note, section
from benchbook.show.table import Column, Table, long, number

# Head and tail of a log, where its options and its totals stand; a drawing shows the seconds between, and the
# whole is in the file that the page leads to. A page of very many runs has less of each.
PAGE_CHARACTERS = 1_400_000
MOST_OF_A_LOG = 4_000
AROUND_A_LOG = 6_000


def opening(seen: Evidence) -> Html:
    """Write the title of the page that leads to the others."""
    sentence = "Every run of this study as it lies on the disk: nothing left out, nothing edited."
    basis = [
        numbers.count(len(seen.runs), "valid run"),
        numbers.count(len(seen.voids), "voided attempt"),
        numbers.count(seen.runs["block"].nunique(), "block"),
    ]
    return join(
        [
            element("h1", f"Raw runs of {seen.name}"),
            element("p", sentence, class_="question"),
            element("ul", *(element("li", item) for item in basis), class_="basis"),
        ]
    )


def tables(seen: Evidence) -> tuple[Table, Table]:
    """List valid runs and voided attempts, each with the way to its section and its raw log."""
    link = os.path.relpath(seen.folder, paths.study(seen.name).run_pages)
    return run_tables.runs(seen.runs, link, ""), run_tables.voids(seen.voids, link, "")


def checks(known: Sequence[tuple[str, str, Callable[..., Any]]]) -> Table:
    """List the checks of a run: id, name, and what it means to pass, from the check's own description."""
    rows = [[id, name, _meaning(check)] for id, name, check in known]
    columns = [Column("Check"), Column("Name"), long("Passed means")]
    return Table("checks-of-a-run", "Checks of a run", columns, rows, is_whole=True)


def _meaning(check: Callable[..., Any]) -> str:
    text = (inspect.getdoc(check) or "").partition("\n\n")[0].partition(": ")[2]
    return f"{text[:1].upper()}{text[1:]}"


def write(seen: Evidence, judge: Callable[[RunFolder], Any]) -> Table:
    """Write the page of every block and return the table that leads to them.

    `judge` says what the checks see in a folder (read/validity.py). Pages of blocks that are gone go too.
    """
    where = paths.study(seen.name)
    sections = _sections(where.raw, where.void, judge)
    blocks = sorted({one.block for one in sections})
    where.run_pages.mkdir(parents=True, exist_ok=True)
    for old in where.run_pages.glob("block-*.html"):
        old.unlink()
    rows = []
    for block in blocks:
        own = sorted((one for one in sections if one.block == block), key=lambda one: one.order)
        file = where.run_pages / file_name(block)
        title = f"{seen.findings['title']} Block {block}"
        file.write_text(
            page.html(
                _notebook(own, file, seen, block), title, seen.name, crumbs=_crumbs(seen.name, block, blocks)
            ),
            encoding="utf-8",
        )
        voided = sum(one.note is not None for one in own)
        started = min((str(one.judged.evidence.seen.get("started_utc", "")) for one in own), default="")
        rows.append(
            [
                element("a", f"Block {block}", href=file_name(block)),
                len(own) - voided,
                voided,
                started[:19].replace("T", " "),
            ]
        )
    columns = [Column("Block"), number("Valid runs"), number("Voided"), number("Began", "UTC")]
    return Table("blocks", "Blocks", columns, rows, empty="Nothing has been run yet.")


def _sections(raw: Path, void: Path, judge: Callable[[RunFolder], Any]) -> list[Section]:
    folders = [*runfolder.listing(raw), *runfolder.listing(void)]
    return [Section(folder, judge(folder), note(folder.path)) for folder in folders]


def _crumbs(study: str, block: int, blocks: Sequence[int]) -> list[tuple[str, str]]:
    place = blocks.index(block)
    before, after = blocks[max(place - 1, 0)], blocks[min(place + 1, len(blocks) - 1)]
    around = [
        (f"Block {other}", file_name(other)) for other in dict.fromkeys((before, after)) if other != block
    ]
    claims = "../../claims.html"
    up = [("Findings", "../../index.html"), ("Claims", claims)]
    up += [("Studies", f"{claims}#studies"), ("Sources", f"{claims}#sources")]
    own = [(study, f"../../studies/{study}.html"), ("Runs", "index.html"), ("Method", "../../method.html")]
    return [*up, *own, *around]


def _notebook(sections: Sequence[Section], file: Path, seen: Evidence, block: int) -> NotebookNode:
    """Put the runs of a block into a notebook of their own, so that they take the way of every page."""
    most = min(MOST_OF_A_LOG, max(PAGE_CHARACTERS // len(sections) - AROUND_A_LOG, 1000))
    cells = [_cell(_opening(sections, seen, block))]
    for place, own in groupby(sections, key=lambda one: one.place):
        parts = [element("h2", place), *(section(one, file, most, seen.arms) for one in own)]
        cells.append(_cell(join(parts)))
    return nbformat.v4.new_notebook(cells=cells)


def _opening(sections: Sequence[Section], seen: Evidence, block: int) -> Html:
    voided = sum(one.note is not None for one in sections)
    basis = [numbers.count(len(sections) - voided, "valid run"), numbers.count(voided, "voided attempt")]
    sentence = (
        "Every run of this block in the order of the schedule: what the checks saw, the one-second "
        "series (the shaded part is discarded), the command, and sysbench's own words."
    )
    return join(
        [
            element("h1", f"{seen.name}, block {block}"),
            element("p", sentence, class_="question"),
            element("ul", *(element("li", item) for item in basis), class_="basis"),
        ]
    )


def _cell(content: Html) -> NotebookNode:
    output = nbformat.v4.new_output("display_data", {"text/html": content.text})
    return nbformat.v4.new_code_cell("", outputs=[output])
