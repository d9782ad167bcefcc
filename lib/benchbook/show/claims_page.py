"""The page of claims: as published, as their own tables have it, as measured here; studies, sources."""

from __future__ import annotations

from typing import get_args
from urllib.parse import urlsplit

from benchbook.compare.text import labels
from benchbook.compare.text.results_table import levels_of
from benchbook.compare.text.sentences import SHOWN
from benchbook.core.artifacts import findings
from benchbook.core.artifacts.findings import Answer, Finding
from benchbook.core.published.audit import AuditedClaim
from benchbook.core.util import paths
from benchbook.show import direction_notes
from benchbook.show.audit_page import describe_recomputed
from benchbook.show.claim_status import ClaimStatus, MeasuredStudy
from benchbook.show.forest import describe_contrast
from benchbook.show.markup import ADDRESS, Html, make_element
from benchbook.show.table import Table, build_table
from benchbook.show.templating import render_template


def render_opening(seen: ClaimStatus) -> Html:
    """Write one sentence to quote about the published claims."""
    judged = [
        found.verdict
        for one in seen.claims
        for own in (seen.answers(one.id), seen.asked(one.id, True))
        for _, found in own
    ]
    shown = sum(
        bool(_list_illustrations(seen, one)) and not (seen.answers(one.id) or seen.asked(one.id, True))
        for one in seen.claims
    )
    verdicts = {verdict: judged.count(verdict) for verdict in get_args(findings.Verdict)}
    return render_template("claims-opening.html.j2", claims=seen.claims, verdicts=verdicts, shown=shown)


Illustration = tuple[MeasuredStudy, Answer | None, list[Finding]]
"""A study with what it came to for a claim, or else with effects of a pair of its arms."""


def render_claims(seen: ClaimStatus) -> Html:
    """List every claim: published, recomputed from its own table, measured here with interval and verdict."""
    rows = []
    for claim in seen.claims:
        judged = seen.answers(claim.id), seen.asked(claim.id, True)
        shown = [] if any(judged) else _list_illustrations(seen, claim)
        ways = seen.shipped.get(claim.id, ())
        would = [one for one in ways if one.is_answer] or ([] if shown else list(ways))
        there = {study.name for study, _, _ in shown}
        graded = [
            (name, grade)
            for name, grade in seen.grades.get(claim.id, {}).items()
            if grade.sessions and grade.outcome != "not asked" and name not in there and not any(judged)
        ]
        rows.append((claim, *judged, shown, graded, ways, would))
    given = {
        "recomputed": describe_recomputed,
        "opposite": direction_notes,
        "levels_of": levels_of,
        "decided": SHOWN,
        "over_sessions": seen.over_sessions,
        "describe_contrast": describe_contrast,
    }
    return render_template("claims.html.j2", rows=rows, measured={one.name for one in seen.studies}, **given)


def _list_illustrations(seen: ClaimStatus, claim: AuditedClaim) -> list[Illustration]:
    """Illustrations of a claim, the nearest study first: its outcome, else effects of its arms."""
    made: dict[str, list[Illustration]] = {study.name: [] for study in seen.nearest(claim.id)}
    for study, one in seen.asked(claim.id, False):
        made[study.name].append((study, one, []))
    pairs: dict[tuple[str, bool, str, str], Illustration] = {}
    is_effect = claim.kind in ("effect", "text_only", "value")
    for study, found in seen.shows(claim.id) if is_effect else ():
        arms = labels.label_role(found, "treatment"), labels.label_role(found, "baseline")
        pairs.setdefault((study.name, study.is_recorded, *arms), (study, None, []))[2].append(found)
    for pair in pairs.values():
        made[pair[0].name].append(pair)
    return [one for own in made.values() for one in own]


def tabulate_studies(seen: ClaimStatus) -> Table:
    """List the studies that have findings."""
    return build_table(
        "runs", seen.studies, has_runs=lambda one: (paths.reports_folder() / one.runs).is_file()
    )


def _published_at(found: str) -> Html | str:
    """Link to the document itself; empty if its source has no address of it."""
    address = ADDRESS.search(found)
    return make_element("a", urlsplit(address[0]).netloc, href=address[0]) if address else ""


def tabulate_sources(seen: ClaimStatus) -> Table:
    """List the documents with the number of tables, claims and verdicts."""
    return build_table("sources", seen.audits, published_at=_published_at)
