"""The site's first page: every claim as published, as its own tables have it, and as measured here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchbook.core import files, paths
from benchbook.show import numbers
from benchbook.show.badge import badge
from benchbook.show.markup import Html, element, join, slug
from benchbook.show.record import doubted
from benchbook.show.table import Column, Table, long, number


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


def claims(seen: Overview) -> Html:
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
    table = Table("claims", "Every claim", columns, rows, caption, "No source has been audited yet.")
    # To be compared at a glance, all of it must be in sight: this table does not scroll in its box.
    return Html(table._repr_html_().replace('class="scroll"', 'class="scroll whole"', 1))


def _claim(claim: Mapping[str, Any]) -> Html:
    name, _, short = claim["id"].partition("/")
    return element("a", claim["claim"], href=f"sources/{slug(name)}.html#claim-{slug(short)}")


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
