"""The site's first page: every claim as published, as its own tables have it, and as measured here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from benchbook.core import files, paths
from benchbook.show import figures, numbers, prose
from benchbook.show.badge import badge
from benchbook.show.markup import Html, element, join, slug
from benchbook.show.picture import Picture
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
    """Write what the page is and how much stands behind it."""
    blocks = sum(found["blocks"]["complete"] for found in seen.studies.values())
    studies = numbers.count(len(seen.studies), "study", "studies")
    claims, documents = numbers.count(len(seen.claims), "claim"), numbers.count(len(seen.audits), "document")
    basis = [
        f"{studies} measured here, in {numbers.count(blocks, 'block')}",
        f"{claims} of {documents} computed again",
    ]
    question = "What was measured here, what was published about database performance, and do they agree?"
    return join(
        [
            element("h1", "Findings"),
            element("p", question, class_="question"),
            element("ul", *(element("li", item) for item in basis), class_="basis"),
        ]
    )


def answer(seen: Overview) -> Html:
    """Write what each study found, in a sentence with its numbers and the way to its page."""
    told = element("ul", *(_line(name, found) for name, found in seen.studies.items()), class_="answers")
    if not seen.studies:
        command = element("code", "make repro")
        told = element("p", "Nothing has been measured here yet. ", command, " does it.", class_="verdict")
    return element("section", element("h2", "What was measured here", id="answer"), told, class_="answer")


def _line(study: str, found: Mapping[str, Any]) -> Html:
    sentence = prose.headline(found) or ["No finding could be computed."]
    page = f"studies/{slug(study)}.html"
    way = element("a", "the study, with its doubts", href=page, class_="way", aria_label=f"the study {study}")
    return element("li", element("b", found["title"]), element("p", *sentence, class_="verdict"), way)


def effects(seen: Overview) -> list[Picture]:
    """Draw the effects of each study with their intervals; thread levels only where they are the answer."""
    return [_forest(name, found) for name, found in seen.studies.items() if found["findings"]]


def _forest(study: str, found: Mapping[str, Any]) -> Picture:
    none = {"by_threads": [], "levels": []}
    own = [{**one, **(none if one["headline"] else {})} for one in found["findings"]]
    aa = found.get("aa") and {**found["aa"], **none}
    arms = list(dict.fromkeys([found["baseline"], *(one["treatment"] for one in own)]))
    drawn = figures.forest({**found, "findings": own, "aa": aa}, arms, f"studies/{slug(study)}.html")
    caption = "Each marker is the change against the baseline, each line its interval." + (
        " The A/A pair is one arm under two names: there is nothing to find in it." if aa else ""
    )
    return Picture(f"effects-{slug(study)}", found["title"], drawn.panels, caption)


def record(seen: Overview) -> Html:
    """Write one sentence to quote about the published claims."""
    counts = {verdict: sum(one["verdict"] == verdict for one in seen.claims) for verdict in _OWN}
    told = (
        f"Of {numbers.count(len(seen.claims), 'published claim')} about database performance, "
        f"{counts['holds']} hold in the tables of their own document, {counts['does not hold']} do not, and "
        f"{counts['not derivable']} cannot be derived from them. "
    )
    judged = [found["verdict"] for one in seen.claims for _, found in seen.answers(one["id"])]
    here = {verdict: judged.count(verdict) for verdict in _HERE}
    told += (
        f"Measured here, {numbers.listing([f'{count} are {verdict}' for verdict, count in here.items()])}."
        if any(here.values())
        else "No measurement made here answers one of them yet."
    )
    return element("p", told, class_="verdict")


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
        Column("Document"),
        long("Published"),
        long("Its own tables"),
        long("Measured here"),
    ]
    caption = (
        "Its own tables: computed again from the numbers that the document itself prints, one of each, so "
        "without any interval."
    )
    if any(seen.answers(claim["id"]) for claim in seen.claims):
        caption += " Measured here: effect, interval, number of blocks n, verdict."
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
    name, _, short = claim["id"].partition("/")
    way = f"sources/{slug(name)}.html#claim-{slug(short)}"
    count = numbers.count(len(claim["doubts"]), "check of its numbers fails", "checks of its numbers fail")
    doubt = element("a", f"Care: {count}.", href=way, class_="care-note") if claim["doubts"] else ""
    return element("span", badge(claim["verdict"]), " ", claim["recomputed"], doubt)


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
            _runs(name),
            _history(name),
            found["scope"],
        ]
        for name, found in seen.studies.items()
    ]
    columns = [
        long("Study"),
        long("Question"),
        number("Blocks"),
        number("Findings"),
        Column("Runs"),
        Column("Over time"),
        long("Holds for"),
    ]
    return Table("runs", "Every study and its runs", columns, rows, empty="Nothing has been measured yet.")


def _published_at(found: str) -> Html | str:
    """Link to the document itself where its source says only an address."""
    host = urlsplit(found).netloc
    return element("a", host, href=found) if host and " " not in found else ""


def _runs(study: str) -> Html | str:
    if not (paths.study(study).run_pages / "index.html").is_file():
        return ""
    place = f"runs/{slug(study)}/index.html"
    return element("a", "every run", href=place, aria_label=f"every run of {study}")


def _history(study: str) -> Html | str:
    if not paths.study(study).history_page.is_file():
        return ""
    return element("a", "series", href=f"history/{slug(study)}.html", aria_label=f"{study} over time")


def sources(seen: Overview) -> Table:
    """List the documents with the number of tables, claims and verdicts."""
    rows = [
        [
            element("a", audit["document"]["title"], href=f"sources/{slug(audit['source'])}.html"),
            audit["document"]["publisher"] or "not stated",
            _published_at(audit["document"].get("found") or ""),
            *(
                audit["counts"][key]
                for key in ("tables", "cells", "claims", "holds", "does not hold", "not derivable")
            ),
            sum(one["passed"] is False for one in audit["checks"]),
        ]
        for audit in seen.audits
    ]
    labels = ("Tables", "Numbers", "Claims", "Hold", "Do not", "Not derivable", "Failed checks")
    columns = [long("Document"), Column("Publisher"), Column("Published at"), *map(number, labels)]
    return Table("sources", "Every document", columns, rows, empty="No source has been audited yet.")
