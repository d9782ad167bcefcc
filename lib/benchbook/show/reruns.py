"""Reruns of a study by others, each beside the first run: a table for the page, the same as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchbook.compare import reruns
from benchbook.core.findings import Finding, Findings, Rerun
from benchbook.show import numbers, shape
from benchbook.show.markup import slug
from benchbook.show.table import Notes, Table, tabulated
from benchbook.show.tables import contrast

RULE = (
    "The first effect is the claim. Confirmed: the rerun's whole interval lies in its band; contradicted: "
    "all of it lies outside; otherwise inconclusive."
)


def tables(first: Findings, kept: Sequence[Rerun]) -> list[Table]:
    """Set every rerun that was kept beside the first findings; without one, a table that says so.

    `kept` are the files of data/reruns (see `benchbook.commands.archives.read`).
    """
    made = []
    for one in kept:
        anchor, rows = f"rerun-{slug(one.name)}", judged(first, one.findings)
        care = [*cares(one), *twins(first, one.findings)]
        given = {"kept": one, "care": care, "rule": RULE, "contrast": contrast, "note": note}
        made.append(tabulated("rerun", rows, anchor, notes=Notes(anchor), **given))
    return made or [tabulated("reruns", [])]


def markdown(first: Findings, kept: Rerun) -> str:
    """Set one rerun beside the first findings, to be pasted into an issue."""
    given = {"rows": judged(first, kept.findings), "contrast": contrast, "note": note, "told": _told}
    told = {"twins": twins(first, kept.findings), "cares": cares(kept), "rule": RULE}
    return shape.markdown("rerun.md.j2", first=first, **given, **told)


def judged(first: Findings, second: Findings) -> Iterator[reruns.Judged]:
    """Judge a rerun by the first findings; the same data can neither confirm nor contradict itself."""
    if not is_same_data(first, second):
        yield from reruns.judge(first, second)
        return
    theirs = {found.id: found for found in second.findings}
    for found in first.findings:
        yield reruns.Judged(found, theirs.get(found.id), obstacle="the same data as the first run")


def is_same_data(first: Findings, second: Findings) -> bool:
    """Say whether two findings have the same numbers to the last digit, which no second measuring gives."""
    own, theirs = (
        [(one.id, one.effect, one.low, one.high, one.n) for one in found.findings]
        for found in (first, second)
    )
    return bool(own) and own == theirs and any(effect is not None for _, effect, *_ in own)


def note(one: reruns.Judged) -> str:
    """Say by what a verdict was reached, or why there is none."""
    if one.band is None:
        return one.obstacle
    text = f"band {numbers.span(one.band.low, one.band.high)}"
    text += f"; direction: {one.direction}" if one.direction else ""
    return text + ("; the two intervals overlap, so the first may be what is off" if one.overlaps else "")


def twins(first: Findings, second: Findings) -> Iterator[str]:
    """Say what the A/A pairs of both showed, and first of all whether there are two measurements."""
    if is_same_data(first, second):
        yield "The numbers are the first run's to the last digit: the same data, not a second measurement."
    for who, found in (("first run", first), ("rerun", second)):
        yield f"A/A of the {who}: {_told(found.aa)}."


def cares(kept: Rerun) -> Iterator[str]:
    """Say where the study that was rerun may not be the same question, and what its check noted."""
    if kept.differs is None:
        yield "The rerun came without its study file: nothing says that it asked the same question."
    elif kept.differs:
        yield f"It is not quite the same study: {numbers.listing(kept.differs)} differ."
    yield from (f"{text.rstrip('.')}." for text in kept.notes)


def _told(found: Finding | None) -> str:
    if found is None:
        return "none"
    if not found.headline:
        return f"by threads (n = {found.n}), {found.label}"
    return f"{numbers.effect(found)} ({numbers.span(found.low, found.high)}, n = {found.n}), {found.label}"
