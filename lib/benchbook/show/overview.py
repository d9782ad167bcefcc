"""The site's first page: every claim as published, as its own tables have it, and as measured here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchbook.core import files, paths
from benchbook.show import figures, numbers, prose
from benchbook.show.badge import badge
from benchbook.show.markup import Html, element, join, slug
from benchbook.show.picture import Picture
from benchbook.show.record import doubted
from benchbook.show.table import Column, Table, long, number

_OWN = ("holds", "does not hold", "not derivable")
_HERE = ("confirmed", "contradicted", "inconclusive")


@dataclass(frozen=True)
class Overview:
    """What is known: audits of sources in order, findings of studies by name."""

    audits: Sequence[Mapping[str, Any]]
    studies: Mapping[str, Mapping[str, Any]]

    @property
    def claims(self) -> list[Mapping[str, Any]]:
        """Every claim of every source."""
        return [claim for audit in self.audits for claim in audit["claims"]]

    def answers(self, claim: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Return (study, finding) for every finding that answers a claim."""
        return [
            (study, found)
            for study, all_of_it in self.studies.items()
            for found in all_of_it["findings"]
            if found.get("claim") == claim
        ]


def load(source: str = "") -> Overview:
    """Read every audit (or that of one source) and the findings of every study that has them."""
    data = paths.root() / "data"
    audits = [files.read_json(file) for file in sorted(data.glob("audit/*/audit.json"))]
    found = {file.parent.name: files.read_json(file) for file in sorted(data.glob("*/findings.json"))}
    return Overview([audit for audit in audits if source in ("", audit["source"])], found)


def opening(seen: Overview) -> Html:
    """Write what the page is and how far the record has come."""
    claims = seen.claims
    verdicts = [claim["verdict"] for claim in claims]
    measured = sum(bool(seen.answers(claim["id"])) for claim in claims)
    basis = [
        f"{numbers.count(len(claims), 'claim')} of {numbers.count(len(seen.audits), 'published document')}",
        f"{verdicts.count('holds')} hold in their own tables, {verdicts.count('does not hold')} do not, "
        f"{verdicts.count('not derivable')} cannot be derived",
        f"{measured} measured here",
    ]
    question = (
        "What was published about database performance, what its own tables say, and what is measured here?"
    )
    return join(
        [
            element("h1", "Findings"),
            element("p", question, class_="question"),
            element("ul", *(element("li", item) for item in basis), class_="basis"),
        ]
    )


def answer(seen: Overview) -> Html:
    """Write one sentence to quote about the record, and one line for each study."""
    counts = {verdict: sum(one["verdict"] == verdict for one in seen.claims) for verdict in _OWN}
    told = (
        f"Of {numbers.count(len(seen.claims), 'published claim')} about database performance, "
        f"{counts['holds']} hold in their own tables, {counts['does not hold']} do not and "
        f"{counts['not derivable']} cannot be derived from them; "
    )
    judged = [found["verdict"] for one in seen.claims for _, found in seen.answers(one["id"])]
    here = {verdict: judged.count(verdict) for verdict in _HERE}
    told += (
        f"measured here, {numbers.listing([f'{count} are {verdict}' for verdict, count in here.items()])}."
        if any(here.values())
        else "none of them has been judged by a measurement here yet."
    )
    lines = (_line(name, found) for name, found in seen.studies.items())
    return element(
        "section",
        element("h2", "The answer", id="answer"),
        element("p", told, class_="verdict"),
        element("ul", *lines, class_="answers"),
        element("p", "Stop here if all you want is the answer.", class_="stop"),
        class_="answer",
    )


def _line(study: str, found: Mapping[str, Any]) -> Html:
    told = prose.headline(found) or ["No finding could be computed."]
    way = element("a", "study", href=f"studies/{slug(study)}.html", class_="way", aria_label=f"study {study}")
    return element("li", "Measured here: ", *told, " ", way)


def figure(seen: Overview) -> Picture:
    """Draw every claim about a share: published, recomputed, measured."""
    return figures.claims(seen.audits, seen.answers)


def claims(seen: Overview) -> Table:
    """List every claim: published, recomputed from its own table, measured here with interval and verdict."""
    rows = [
        [_claim(claim), _source(claim), claim["published"], _recomputed(claim), _measured(seen, claim)]
        for claim in seen.claims
    ]
    columns = [
        long("Claim"),
        Column("Source"),
        long("Published"),
        long("Recomputed from its own table"),
        long("Measured here"),
    ]
    caption = (
        "Recomputed: from the numbers the document itself prints, one of each, so without any interval. "
        "Measured here: effect, interval, number of blocks n, verdict; empty until a study answers the claim."
    )
    empty = "No source has been audited yet."
    return Table("claims", "Every claim", columns, rows, caption, empty, is_whole=True)


def _claim(claim: Mapping[str, Any]) -> Html:
    name, _, short = claim["id"].partition("/")
    way = element("a", claim["claim"], href=f"sources/{slug(name)}.html#claim-{slug(short)}")
    place = f"claim-{slug(claim['id'])}"
    here = element("a", href=f"#{place}", class_="anchor", aria_label=f"Link to the claim {claim['id']}")
    return element("span", way, here, id=place)


def _source(claim: Mapping[str, Any]) -> Html:
    name = claim["id"].partition("/")[0]
    return element("a", name, href=f"sources/{slug(name)}.html")


def _recomputed(claim: Mapping[str, Any]) -> Html:
    doubt = element("span", doubted(claim), class_="claim") if claim["doubts"] else ""
    return element("span", claim["recomputed"], " ", badge(claim["verdict"]), doubt)


def _measured(seen: Overview, claim: Mapping[str, Any]) -> Html:
    return join([_answer(study, found) for study, found in seen.answers(claim["id"])], "<br>")


def _answer(study: str, found: Mapping[str, Any]) -> Html:
    way = element("a", study, href=f"studies/{slug(study)}.html#finding-{slug(found['id'])}")
    if found["effect"] is None:
        return element("span", "no effect could be computed (", way, ")")
    interval = numbers.span(found["low"], found["high"])
    told = f"{numbers.percent(found['effect'])} ({interval}, n = {found['n']}), {found['workload']} "
    return element("span", told, badge(found["verdict"] or "not judged"), " ", way)


def studies(seen: Overview) -> Table:
    """List the studies that have findings."""
    rows = [
        [
            element("a", found["title"], href=f"studies/{slug(name)}.html"),
            found["question"],
            found["blocks"]["complete"],
            len(found["findings"]),
            found["scope"],
        ]
        for name, found in seen.studies.items()
    ]
    columns = [long("Study"), long("Question"), number("Blocks"), number("Findings"), long("Holds for")]
    return Table("studies", "Studies", columns, rows, empty="Nothing has been measured yet.")


def sources(seen: Overview) -> Table:
    """List the documents with the number of tables, claims and verdicts."""
    rows = [
        [
            element("a", audit["document"]["title"], href=f"sources/{slug(audit['source'])}.html"),
            audit["document"]["publisher"] or "not stated",
            *(
                audit["counts"][key]
                for key in ("tables", "cells", "claims", "holds", "does not hold", "not derivable")
            ),
            sum(one["passed"] is False for one in audit["checks"]),
        ]
        for audit in seen.audits
    ]
    labels = ("Tables", "Numbers", "Claims", "Hold", "Do not", "Not derivable", "Failed checks")
    columns = [long("Document"), Column("Publisher"), *map(number, labels)]
    return Table("sources", "Documents", columns, rows, empty="No source has been audited yet.")
