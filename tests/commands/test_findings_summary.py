"""reports/FINDINGS.md, which git has, follows from the record, and no page has another number for a claim."""

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from benchbook.commands import findings_summary
from benchbook.core.artifacts.meta_analysis import MetaAnalysis
from benchbook.core.published.audit import Audit
from benchbook.show import claims_page, home_page, story
from benchbook.show.claim_status import ClaimStatus
from benchbook.show.markup import make_slug
from benchbook.show.tables import name_finding
from tests import sources

FILE = Path(__file__).parents[2] / "reports" / findings_summary.FILE


@pytest.fixture(scope="module")
def made() -> tuple[list[Audit], list[MetaAnalysis], str]:
    """The audits, the recorded studies, and the summary of both."""
    audits = [audit for _, audit in sorted(sources.audits().items())]
    studies = findings_summary.pooled_studies()
    return audits, studies, findings_summary.render_summary(audits, studies)


def test_the_file_in_git_follows_from_the_record_and_the_published_tables(made):
    _, _, text = made
    assert FILE.read_text(encoding="utf-8") == text, "`make pages` writes it anew"


def test_a_claim_has_one_number_on_claims_page_home_page_story_and_in_the_summary(made):
    audits, studies, text = made
    pooled = {study.study: study for study in studies}
    status = ClaimStatus(audits, findings_summary.recorded_studies(), {}, pooled=pooled)
    page = BeautifulSoup(claims_page.render_claims(status).text, "html.parser")
    summary = text.replace("\\", "")
    in_story = {row[0]: row for row in story.tabulate_measured(status).rows}
    groups = home_page.group_questions(status, {})
    questions = {row.question: row for rows in groups.values() for row in rows}
    checked = {"claims page": 0, "story": 0, "home page": 0}
    for claim in status.claims:
        of_claim = page.find(id=f"claim-{make_slug(claim.id)}").find_parent("tr").get_text(" ", strip=True)
        (in_summary,) = [line for line in summary.splitlines() if line.startswith(f"| {claim.claim} |")]
        pairs = [*status.answers(claim.id), *status.shows(claim.id)]
        for study, finding in pairs:
            place = f"{study.name}, {name_finding(finding)}: "
            if not (number := re.search(rf"{re.escape(place)}(.*?)\s\(\d+\ssessions?\)", in_summary)):
                continue
            if status.over_sessions(study, finding):
                assert f"on {finding.names.workload}, queries/s: {number[1]}" in of_claim, claim.id
                checked["claims page"] += 1
            if finding is pairs[0][1]:
                cell = in_story[claim.claim][4]
                assert number[1] in getattr(cell, "text", cell).replace(";<br>", "; ")
                checked["story"] += 1
            for line in questions[claim.claim].lines if claim.id in home_page.HEADLINES else ():
                if line.name.startswith(f"{study.name}: ") and finding.names.workload in line.name:
                    assert line.effect_text.removesuffix(", the other way") in number[1]
                    checked["home page"] += 1
    assert min(checked.values()) > 1, checked
