"""The page of claims: as published, as their own tables have it, as measured here; studies, sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args
from urllib.parse import urlsplit

from benchbook.compare import words
from benchbook.compare.sentences import SHOWN
from benchbook.core import findings, paths
from benchbook.core.audit import Claim
from benchbook.core.findings import Answer, Finding, Level
from benchbook.show import numbers, opposite
from benchbook.show.markup import ADDRESS, Html, element, slug
from benchbook.show.record import recomputed
from benchbook.show.shape import shaped
from benchbook.show.standing import Measured, Overview
from benchbook.show.table import Column, Table, long, number
from benchbook.show.tables import levels_of


def record(seen: Overview) -> Html:
    """Write one sentence to quote about the published claims."""
    readings = [one.verdict for one in seen.claims]
    told = (
        f"Of {numbers.count(len(seen.claims), 'published claim')} about database performance, "
        f"{readings.count('holds')} hold in the tables of their own document, "
        f"{readings.count('does not hold')} do not, and {readings.count('not derivable')} cannot be derived "
        "from them. "
    )
    judged = [
        found.verdict
        for one in seen.claims
        for own in (seen.answers(one.id), seen.asked(one.id, True))
        for _, found in own
    ]
    here = {verdict: judged.count(verdict) for verdict in get_args(findings.Verdict)}
    told += (
        f"Measured here, {numbers.listing(_each(here))}."
        if any(here.values())
        else "No measurement made here answers one of them yet."
    )
    shown = sum(
        bool(_illustrations(seen, one)) and not (seen.answers(one.id) or seen.asked(one.id, True))
        for one in seen.claims
    )
    if shown:
        verb = "is" if shown == 1 else "are"
        told += (
            f" {numbers.count(shown, 'claim')} {verb} illustrated by something that stands in for what was "
            "published; that judges nothing."
        )
    return element("p", told, class_="verdict")


def _each(verdicts_here: Mapping[str, int]) -> list[str]:
    return [f"{many} {'is' if many == 1 else 'are'} {verdict}" for verdict, many in verdicts_here.items()]


@dataclass(frozen=True)
class _Line:
    """What a study says of a claim, with the way to it; or what would answer the claim, with its command."""

    text: str
    study: Measured | None = None
    found: str = ""
    verdict: str = ""
    is_shown: bool = False
    stand_in: str = ""
    command: str = ""
    after: str = ""


def claims(seen: Overview) -> Html:
    """List every claim: published, recomputed from its own table, measured here with interval and verdict."""
    rows = [(claim, recomputed(claim), _lines(seen, claim)) for claim in seen.claims]
    return shaped("claims.html.j2", rows=rows)


def _lines(seen: Overview, claim: Claim) -> list[_Line]:
    """Give what stands behind a claim, in lines: answers, else illustrations and what would answer it."""
    answers = [
        _Line(f"Measured: {_effect(found)}", study, found.id, found.verdict or "not judged")
        for study, found in seen.answers(claim.id)
    ]
    answers += [_put(study, one, claim) for study, one in seen.asked(claim.id, True)]
    if answers:
        return answers
    shown = _illustrations(seen, claim)
    return [*shown, _open(seen, claim, bool(shown))]


def _put(study: Measured, one: Answer, claim: Claim) -> _Line:
    """Give what a claim of another kind came to and how it was read: with its badge, or illustrated."""
    read_as = f"Read as: {claim.put}" if claim.put else ""
    told = [one.sentence, opposite.compared(one), read_as]
    if one.judged:
        text = " ".join(filter(None, ["Measured:", *told]))
        return _Line(text, study, one.claim, one.verdict or "not judged")
    return _illustrated(study, one.claim, claim, [*told, opposite.told(opposite.parts(one))])


def _illustrated(study: Measured, found: str, claim: Claim, told: Sequence[str | None]) -> _Line:
    stand_in = "; ".join(study.stand_ins(claim.id))
    return _Line(" ".join(filter(None, told)), study, found, is_shown=True, stand_in=stand_in)


def _illustrations(seen: Overview, claim: Claim) -> list[_Line]:
    """Give what illustrates a claim, the nearest study first: what it came to, else effects of its arms."""
    made: dict[str, list[_Line]] = {study.name: [] for study in seen.nearest(claim.id)}
    for study, one in seen.asked(claim.id, False):
        made[study.name].append(_put(study, one, claim))
    pairs: dict[tuple[str, bool, str, str], tuple[Measured, list[Finding]]] = {}
    is_effect = claim.kind in ("effect", "text_only", "value")
    for study, found in seen.shows(claim.id) if is_effect else ():
        arms = words.of(found, "treatment"), words.of(found, "baseline")
        pairs.setdefault((study.name, study.is_recorded, *arms), (study, []))[1].append(found)
    for (_, _, treatment, baseline), (study, own) in pairs.items():
        told = f"{treatment} against {baseline}: {'; '.join(map(_effect, own))}."
        turned = opposite.told(opposite.of_pair(own, claim.shares))
        made[study.name].append(_illustrated(study, own[0].id, claim, [told, turned]))
    return [one for own in made.values() for one in own]


def _by_threads(found: Finding) -> str:
    """Write the effect at each thread count; nothing where none is known."""
    steps = [one for one in levels_of(found) if numbers.is_known(one.effect)]
    return ", ".join(
        f"{numbers.percent(one.effect)} at {numbers.count(one.threads, 'thread')}"
        + (f" ({one.label})" if isinstance(one, Level) and one.label not in SHOWN else "")
        for one in steps
    )


def _effect(found: Finding) -> str:
    workload = f"on {words.of(found, 'workload')}"
    if found.effect is None:
        return f"no effect could be computed {workload}"
    if not found.headline:
        each = _by_threads(found) if found.label == "depends on threads" else ""
        return f"{workload} {each or found.label}"
    interval = numbers.span(found.low, found.high)
    blocks = numbers.count(found.n, "block")
    return f"{numbers.percent(found.effect)} {workload} ({interval}, {blocks})"


def _open(seen: Overview, claim: Claim, is_shown: bool) -> _Line:
    """Say what would answer a claim: a study with its command, or what no study here has."""
    ways = seen.shipped.get(claim.id, ())
    would = [one for one in ways if one.is_answer] or ([] if is_shown else list(ways))
    if not would:
        takes = claim.takes or claim.because or "arms and a metric as the document has them"
        start = "Open. No study here judges it; that would take" if ways else "Open. It would take"
        return _Line(f"{start} {takes.rstrip('.')}.")
    first, *others = would
    place, more = first.place, ""
    if first.is_answer and first.name not in {one.name for one in seen.studies}:
        place += ", not measured here yet"
    if first.is_answer and others:
        more = f"; so would {numbers.listing([one.name for one in others])}, each by its own workloads"
    told = f"would {'answer' if first.is_answer else 'illustrate'} it ({place}){more}."
    return _Line("Open. ", command=f"make repro STUDY={first.name}", after=told)


def studies(seen: Overview) -> Table:
    """List the studies that have findings."""
    rows = [
        [
            element("a", study.found.title, href=study.page),
            study.whose,
            study.found.question,
            study.found.blocks.complete,
            len(study.found.findings),
            _runs(study),
            study.found.scope,
        ]
        for study in seen.studies
    ]
    columns = [
        long("Study"), Column("Whose"), long("Question"), number("Blocks"), number("Findings"),
        Column("Runs"), long("Holds for"),
    ]  # fmt: skip
    return Table("runs", "Every study and its runs", columns, rows, empty="Nothing has been measured yet.")


def _published_at(found: str) -> Html | str:
    """Link to the document itself where its source has an address of it."""
    address = ADDRESS.search(found)
    return element("a", urlsplit(address[0]).netloc, href=address[0]) if address else ""


def _runs(study: Measured) -> Html | str:
    if not (paths.reports() / study.runs).is_file():
        return ""
    label = f"every run of {study.name}, {study.whose}"
    return element("a", "every run", href=study.runs, aria_label=label)


def sources(seen: Overview) -> Table:
    """List the documents with the number of tables, claims and verdicts."""
    rows = [
        [
            element("a", audit.document.title, href=f"sources/{slug(audit.source)}.html"),
            audit.document.publisher or "not stated",
            _published_at(audit.document.found or ""),
            *(audit.counts.tables, audit.counts.cells, audit.counts.claims),
            *audit.counts.verdicts,
            sum(one.passed is False for one in audit.checks),
        ]
        for audit in seen.audits
    ]
    labels = ("Tables", "Numbers", "Claims", "Hold", "Do not hold", "Not derivable", "Failed checks")
    columns = [long("Document"), Column("Publisher"), Column("Published at"), *map(number, labels)]
    return Table("sources", "Every document", columns, rows, empty="No source has been audited yet.")
