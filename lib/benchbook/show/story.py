"""The story of the five reports: what they claimed, what their tables bear out, what was measured, why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchbook.compare import machines
from benchbook.core.findings import Finding
from benchbook.core.pooled import LABELS, Contrast, Pooled, PooledEffect
from benchbook.show import causes, numbers
from benchbook.show.forest import SEVERAL, Forest, place, together
from benchbook.show.markup import Html, element, join, slug
from benchbook.show.shape import badge
from benchbook.show.standing import Measured, Overview
from benchbook.show.table import Column, Table, long, number

VERDICTS = ("holds", "does not hold", "not derivable")


def opening(seen: Overview, found: Sequence[Pooled]) -> Html:
    """Say on what the story rests, or that the record is still to be made."""
    if not seen.audits and not found:
        text = "Neither the record nor the audits are made yet: run `make pages` first, then this again."
    elif not found:
        text = "The record is not made yet: run `make pages` first; until then, only what was published."
    else:
        sessions = [one for study in found for one in study.sessions]
        several = machines.models([one.processor for one in sessions])
        counts = (
            numbers.count(len(seen.audits), "published report"),
            numbers.count(len(seen.claims), "claim"),
            numbers.count(len(found), "recorded study", "recorded studies"),
            numbers.count(len(sessions), "session"),
        )
        text = f"It rests on {numbers.listing(counts)} on {numbers.count(several, 'model')} of processor."
    return element("p", text)


def reports(seen: Overview) -> Table:
    """Count what each report's own tables bear out of its claims."""
    rows = []
    for audit in seen.audits:
        page = f"sources/{slug(audit.source)}.html"
        rows.append([element("a", audit.document.title, href=page), *audit.counts.verdicts])
    columns = [long("Report"), *(number(f"Claims: {word}") for word in VERDICTS)]
    return Table("reports", "What the reports' own tables say", columns, rows,
                 empty="No report is audited yet: `make pages`.")  # fmt: skip


def measured(seen: Overview, found: Sequence[Pooled]) -> Table:
    """List the claims that have an effect measured here beside the published number and the report's own.

    What several sessions measured is their mean, as on the first page.
    """
    known = {(study.study, contrast.id): contrast for study in found for contrast in study.contrasts}
    rows = [
        [claim.claim, claim.published, badge(claim.verdict), study.name,
         *_shown(one, known.get((study.name, one.id)) if study.is_recorded else None)]
        for claim in seen.claims
        for study, one in [*seen.answers(claim.id), *seen.shows(claim.id)][:1]
    ]  # fmt: skip
    columns = [long("Claim"), Column("Published"), Column("Its own tables"), Column("Study"),
               Column("Measured here"), Column("Shown")]  # fmt: skip
    return Table("measured", "What was measured for a claim", columns, rows,
                 empty="Nothing is made yet: `make pages`.")  # fmt: skip


def _shown(one: Finding, over: Contrast | None) -> tuple[str, Html]:
    if one.verdict or over is None or len(over.whole.sessions) < 2:
        return numbers.effect(one), badge(one.verdict or one.label)
    whole = numbers.percent(over.whole.effect) if over.one_number else "by threads"
    return whole, join(map(badge, dict.fromkeys(effect.label for effect in over.told)))


def labels(found: Sequence[Pooled]) -> Table:
    """Count how far the effects on throughput carry: one row a label."""
    said = Counter(effect.label for _, _, effect in _effects(found))
    rows = [[badge(label), said[label]] for label in LABELS if said[label]]
    return Table("labels", "How far effects carry", [Column("Label"), number("Effects")], rows,
                 empty="Nothing is made yet: `make pages`.")  # fmt: skip


def forest(found: Sequence[Pooled]) -> Forest:
    """Draw every effect on throughput that several occasions show something of, the largest loss first."""
    known = [
        (study, contrast, one)
        for study, contrast, one in _effects(found)
        if one.effect is not None and one.k > 1 and one.label not in ("not shown", "not computed")
    ]
    known.sort(key=lambda one: one[2].effect or 0.0)
    rows = tuple(
        replace(
            together(contrast, one),
            name=f"{place(contrast, one)} ({study.study})",
            way=f"record/studies/{slug(study.study)}.html#finding-{slug(contrast.id)}",
        )
        for study, contrast, one in known
    )
    return Forest("elsewhere", "Effects over sessions", rows, SEVERAL, "No study has several sessions yet.")


def _effects(found: Sequence[Pooled]) -> Iterator[tuple[Pooled, Contrast, PooledEffect]]:
    for study in found:
        for contrast in study.contrasts:
            if contrast.metric == "qps":
                yield from ((study, contrast, one) for one in contrast.told)


def reasons(studies: Sequence[Measured]) -> Table:
    """Give the first known cause of each study in a sentence."""
    rows = [
        [element("a", study.name, href=f"{study.page}#why"), found[0].sentence or ""]
        for study in studies
        if (found := causes.known(next(iter(study.explained), study.found)))
    ]
    columns = [Column("Study"), long("Because")]
    return Table("causes", "One cause a study", columns, rows, empty="No cause is known yet.")
