"""The page of claims: as published, as their own tables have it, as measured here; studies, sources."""

from collections.abc import Mapping, Sequence
from typing import get_args
from urllib.parse import urlsplit

from benchbook.compare.claims.transferability import Grade
from benchbook.compare.text import labels
from benchbook.compare.text.results_table import describe_contrast
from benchbook.core.artifacts import findings
from benchbook.core.artifacts.findings import Answer, FindingData
from benchbook.core.published.audit import AuditedClaim
from benchbook.core.util import paths
from benchbook.show.bottleneck_section import describe_proxy_cores
from benchbook.show.claim_rows import is_opposite, list_claim_rows
from benchbook.show.claim_status import ClaimStatus, MeasuredStudy
from benchbook.show.markup import ADDRESS, Html, make_element
from benchbook.show.results_view import describe_session
from benchbook.show.table import Table, build_table
from benchbook.show.templating import render_template


def render_opening(status: ClaimStatus) -> Html:
    """Write one sentence to quote about the published claims."""
    judged, shown = list[str | None](), 0
    for claim in status.claims:
        here = [finding.verdict for _, finding in status.answers(claim.id)]
        here += [answer.verdict for _, answer in status.asked(claim.id, True)]
        judged += here
        shown += bool(not here and _list_illustrations(status, claim))
    verdicts = {verdict: judged.count(verdict) for verdict in get_args(findings.Verdict)}
    return render_template("claims-opening.html.j2", claims=status.claims, verdicts=verdicts, shown=shown)


Illustration = tuple[MeasuredStudy, Answer | None, list[FindingData]]
"""A study with what it came to for a claim, or else with effects of a pair of its arms."""


def render_claims(status: ClaimStatus) -> Html:
    """List every claim: published, recomputed from its own table, measured here with interval and verdict."""
    inputs = {
        "claim_rows": list_claim_rows,
        "is_opposite": is_opposite,
        "reversals": status.reversals,
        "cores_by_rate": describe_proxy_cores,
        "over_sessions": status.over_sessions,
        "describe_contrast": describe_contrast,
        "describe_session": describe_session,
        "measured": {study.name for study in status.studies},
    }
    rows = [_row_of_claim(status, claim) for claim in status.claims]
    return render_template("claims.html.j2", rows=rows, **inputs)


def _row_of_claim(status: ClaimStatus, claim: AuditedClaim) -> tuple[object, ...]:
    """Claim with its answers, illustrations, grades, studies without a number, and those that would tell."""
    judged = status.answers(claim.id), status.asked(claim.id, True)
    shown = [] if any(judged) else _list_illustrations(status, claim)
    without = status.without_number(claim.id)
    names = {study.name for study, _ in without}
    ways = [way for way in status.shipped.get(claim.id, ()) if way.name not in names]
    would = [way for way in ways if way.is_answer] or ([] if shown else ways)
    graded = [] if any(judged) else _list_grades(status.grades.get(claim.id, {}), shown)
    return claim, *judged, shown, graded, without, ways, would


def _list_grades(grades: Mapping[str, Grade], shown: Sequence[Illustration]) -> list[tuple[str, Grade]]:
    """Outcomes of recorded studies that are not shown."""
    there = {study.name for study, *_ in shown}
    return [
        (name, grade)
        for name, grade in grades.items()
        if grade.sessions and grade.outcome != "not asked" and name not in there
    ]


def _list_illustrations(status: ClaimStatus, claim: AuditedClaim) -> list[Illustration]:
    """Illustrations of a claim, the nearest study first: its outcome, else effects of its arms."""
    results: dict[str, list[Illustration]] = {study.name: [] for study in status.nearest(claim.id)}
    for study, answer in status.asked(claim.id, False):
        results[study.name].append((study, answer, []))
    pairs: dict[tuple[str, bool, str, str], Illustration] = {}
    is_effect = claim.kind in ("effect", "text_only", "value")
    for study, finding in status.shows(claim.id) if is_effect else ():
        arms = labels.label_role(finding, "treatment"), labels.label_role(finding, "baseline")
        pairs.setdefault((study.name, study.is_recorded, *arms), (study, None, []))[2].append(finding)
    for pair in pairs.values():
        results[pair[0].name].append(pair)
    return [row for rows in results.values() for row in rows]


def tabulate_studies(status: ClaimStatus) -> Table:
    """List the studies that have findings."""
    folder = paths.reports_folder()
    return build_table("runs", status.studies, has_runs=lambda study: (folder / study.runs).is_file())


def _published_at(result: str) -> Html | str:
    """Link to the document itself; empty if its source has no address of it."""
    address = ADDRESS.search(result)
    return make_element("a", urlsplit(address[0]).netloc, href=address[0]) if address else ""


def tabulate_sources(status: ClaimStatus) -> Table:
    """List the documents with the number of tables, claims and verdicts."""
    return build_table("sources", status.audits, published_at=_published_at)
