from __future__ import annotations

import pytest
from bs4 import BeautifulSoup

from benchbook.compare import sentences
from benchbook.show import answer, numbers, prose
from tests.found import changed, doubt


def _text(html) -> str:
    return BeautifulSoup(html.text, "html.parser").get_text(" ", strip=True)


def _with(findings, **changes):
    return changed(findings, findings=[changed(found, **changes) for found in findings.findings])


def test_every_contrast_has_a_sentence_with_a_way_to_the_evidence_and_its_claims(made):
    soup = BeautifulSoup(prose.opening(made.findings).text, "html.parser")
    (item,) = soup.select(".answers > li")
    first, _ = made.findings.findings
    assert (
        item.get_text(strip=True).startswith("HAProxy served ") and "on point selects and" in item.get_text()
    )
    assert item.find("a", class_="way")["href"] == f"#finding-{first.id}"
    for found in made.findings.findings:
        assert found.verdict in item.get_text()
        assert numbers.span(*found.band) in item.get_text()


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("not shown", "No difference between HAProxy and direct connections was shown on point"),
        ("no practical difference", "There is no practical difference for HAProxy against direct"),
        ("no useful interval", "No useful interval yet for HAProxy against direct connections"),
    ],
)  # fmt: skip
def test_no_effect_is_quoted_where_nothing_was_shown(made, label, said):
    findings = _with(made.findings, label=label, low=-0.3, high=0.1)
    line = answer.text(findings)
    assert said in line
    assert "fewer" not in line


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("not shown", "No difference in p99 latency between HAProxy and direct connections was shown on "),
        ("no useful interval", "No useful interval yet for HAProxy against direct connections in p99"),
    ],
)  # fmt: skip
def test_a_metric_that_is_not_what_was_served_is_named(made, label, said):
    findings = _with(made.findings, label=label, low=-0.3, high=0.1, metric="latency_p99_ms")
    assert said in answer.text(findings)


def test_an_arm_that_was_skipped_is_named_with_the_reason(made):
    """As a study has it whose proxy is not installed; another has an effect of too few blocks beside it."""
    none = {
        "n": 0,
        "label": "not shown",
        "low": None,
        "high": None,
        "effect": None,
        "reason": "it was skipped",
    }
    first, second = _with(made.findings, **none).findings
    few = changed(second, n=1, effect=0.02, reason=None)
    told = [changed(one, sentence=sentences.sentence(one)) for one in (first, few)]
    assert answer.text(changed(made.findings, findings=told)) == (
        "HAProxy could not be compared with direct connections on point selects: it was skipped. "
        "HAProxy served 2.0\xa0% more queries per second than direct connections on read-write transactions "
        "(1 block); there is no interval: too few blocks."
    )


def test_before_the_first_look_the_answer_is_that_there_is_none_yet(made):
    early = {"blocks": {"planned": 5, "complete": 2}, "look": {"n": 0, "level": 0.98, "next": 5, "note": ""}}
    line = answer.text(changed(made.findings, **early))
    assert line == "Nothing is decided yet: 2 of the 5\xa0blocks that the first look needs are complete."


def test_a_study_of_fewer_blocks_than_a_decision_needs_says_what_its_runs_did(made):
    early = {"blocks": {"planned": 2, "complete": 2}, "look": {"n": 0, "level": 0.98, "next": 5, "note": ""}}
    why = (
        "This describes runs and decides nothing: 2\xa0blocks are planned, and a decision needs 5\xa0blocks."
    )
    line = answer.text(changed(made.findings, **early))
    assert line == why
    line = answer.text(changed(made.findings, **early, described=["A stood still for 9 s."]))
    assert line == f"A stood still for 9 s. {why}"


def test_an_aa_pair_without_an_interval_is_no_comfort(made):
    aa = changed(made.findings.aa, low=None, high=None, n=2, label="not shown")
    text = _text(prose.doubts(changed(made.findings, aa=aa), made.runs))
    assert "2\xa0blocks. Without an interval it shows nothing yet." in text and "as it should be" not in text


def test_two_claims_about_one_comparison_are_quoted_once(made):
    first = made.findings.findings[0]
    again = changed(first, id=f"{first.id}.other", claim="source/other")
    line = answer.text(changed(made.findings, findings=[first, again]))
    assert line.count("point selects") == 1


def test_an_inconclusive_claim_says_how_many_more_blocks(made):
    text = _text(prose.opening(_with(made.findings, verdict="inconclusive")))
    assert "About 3\xa0more blocks (7\xa0minutes) would narrow the interval to 2\xa0% on either side." in text
    assert "more blocks" not in _text(prose.opening(made.findings))


def test_no_finding_is_said(made):
    assert "No finding could be computed" in _text(prose.opening(changed(made.findings, findings=[])))


def test_names_are_escaped_everywhere(made):
    evil = "<script>alert(1)</script>"
    hostile = _with(made.findings, treatment=evil, workload=evil, sentence=evil, claim=evil, warnings=[evil])
    hostile = changed(hostile, title=evil, question=evil, scope=evil, warnings=[doubt(evil)], aa=None)
    for shown in (prose.opening(hostile), prose.doubts(hostile, made.runs)):
        assert "<script" not in shown.text
        assert "&lt;script&gt;" in shown.text
