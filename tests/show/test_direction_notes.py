"""When an illustration goes the other way than published, and that its pages say so."""

from dataclasses import replace
from typing import Any

import pytest

from benchbook.core.artifacts.findings import Finding, Findings
from benchbook.show import direction_notes, tables
from benchbook.show.caveats_section import points
from tests import found, sources
from tests.found import answer, changed


def finding(low: float, high: float, is_headline: bool = True, **more: str) -> Finding:
    return found.finding(effect=(low + high) / 2, low=low, high=high, headline=is_headline, **more)


@pytest.mark.parametrize(
    ("band", "low", "high", "told"),
    [
        ([0.3, None], -0.30, -0.25, True),
        ([0.3, None], -0.05, 0.02, False),
        ([-0.3, -0.06], 0.01, 0.03, True),
        ([-0.3, -0.06], -0.9, -0.8, False),
        # "Less than 5 % below" and "almost none" allow both directions.
        ([-0.05, None], 0.02, 0.09, False),
        ([-0.02, 0.02], 0.05, 0.09, False),
        (None, 0.05, 0.09, False),
    ],
)
def test_only_what_lies_wholly_on_the_other_side_of_zero_is_opposite(band, low, high, told):
    assert direction_notes.is_opposite(finding(low, high), band) is told


def test_a_number_that_is_no_share_or_is_withheld_has_no_direction():
    assert not direction_notes.is_opposite(finding(-0.3, -0.2, is_headline=False), [0.3, None])
    claims = [claim for audit in sources.audits().values() for claim in audit.claims]
    assert all((claim.shares is None) != claim.is_share for claim in claims if claim.band)
    assert {claim.is_share for claim in claims if claim.band} == {True, False}


def test_parts_of_a_claim_that_was_put_to_a_study_are_held_to_its_band_alike():
    later = {"low": 0.55, "high": 0.68, "scale": "share", "band": [None, -0.02]}
    sooner = {"low": -0.2, "high": -0.1, "scale": "share", "band": [None, -0.02]}
    assert direction_notes.parts(answer(later)) == "all"
    assert direction_notes.parts(answer(later, sooner)) == "1 of 2"
    assert direction_notes.parts(answer(sooner, {**later, "low": None})) == ""
    assert direction_notes.parts(answer(later, kind="trend")) == ""


def test_the_page_of_a_study_says_so_beside_what_it_illustrates_and_not_beside_what_it_judges():
    later = {"low": 0.55, "high": 0.68, "scale": "share", "band": [None, -0.02]}
    one = answer(later, sentence="Mean latency: after +60 %.")
    other = changed(one, judged=True, verdict="contradicted")
    (table,) = tables.asked(found.findings(claims=[one, other]))
    shown, judged = (row[2] for row in table.rows)
    assert shown == "Mean latency: after +60 %. The direction is opposite to the published one."
    assert judged == "Mean latency: after +60 %."


def upgraded(*ends: tuple[float, float], **more: Any) -> Findings:
    """Return findings of an arm that illustrates "QPS grows by more than 30 %", one a workload."""
    workloads = ("oltp_point_select", "oltp_read_only")
    own = [
        finding(*pair, treatment="after", baseline="before", workload=workload)
        for workload, pair in zip(workloads, ends, strict=False)
    ]
    return found.findings(*own, **more)


NOTE = "Arm TiDB 6.6 (after) illustrates tidb-upgrade/growth-in-general and doesn't judge it: “QPS grows.”"


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        (upgraded((-0.32, -0.27), (-0.27, -0.16)), "The direction is opposite to the published one."),
        (
            upgraded((-0.32, -0.27), (0.1, 0.2)),
            "The direction is opposite to the published one on point selects.",
        ),
        (upgraded((-0.05, 0.05), (0.1, 0.2)), ""),
        (upgraded(), ""),
    ],
)
def test_a_note_on_an_illustrated_claim_says_where_it_went_the_other_way(findings: Findings, said: str):
    assert direction_notes.beside_note(NOTE, findings) == said
    key = NOTE.replace("TiDB 6.6 (after)", "after")
    assert direction_notes.beside_note(key, findings) == said


def test_a_note_on_a_claim_that_was_put_to_the_study_goes_by_its_parts():
    later = {"low": 0.55, "high": 0.68, "scale": "share", "band": [None, -0.02]}
    one = answer(later, claim="tidb-upgrade/growth-in-general")
    assert "opposite" in direction_notes.beside_note(NOTE, upgraded((0.1, 0.2), claims=[one]))
    assert direction_notes.beside_note(NOTE, upgraded((-0.2, -0.1), claims=[changed(one, judged=True)])) == ""


def test_a_note_on_a_claim_that_no_source_has_any_more_and_other_notes_stay_as_they_are():
    findings = upgraded((-0.32, -0.27))
    assert (
        direction_notes.beside_note("Arm after illustrates gone/claim and doesn't judge it: “x”", findings)
        == ""
    )
    assert direction_notes.beside_note(NOTE.replace("growth-in-general", "gone"), findings) == ""
    assert direction_notes.beside_note("Arm after stands in for TiDB 6.6.", findings) == ""


def test_the_doubts_of_a_page_have_the_sentence_beside_the_note(made: Any):
    warning = {"title": "Illustrated claim", "text": NOTE, "favours": []}
    noted = changed(made.findings, findings=upgraded((-0.32, -0.27)).findings, warnings=[warning])
    (doubt,) = [one for one in points(replace(made, findings=noted)) if one.name == "Illustrated claim"]
    assert doubt.text == f"{NOTE} The direction is opposite to the published one."


@pytest.mark.parametrize(
    ("kind", "where", "told"),
    [
        ("trend", "far against near, reads, threads 4 to 16", "ratio of the two arms at two levels"),
        ("trend", "tiproxy, reads, threads 4 to 16", ""),
        ("same_effect", "tiproxy beside haproxy, range size 10 to 100", "shares that the two arms keep"),
        ("effect", "far against near, reads", ""),
    ],
)
def test_a_ratio_of_ratios_is_explained_where_it_stands(kind: str, where: str, told: str):
    own = {"where": where, "low": 0.1, "high": 0.2}
    (table,) = tables.asked(found.findings(claims=[answer(own, kind=kind, sentence="QPS: +15 %.")]))
    seen = table.rows[0][2]
    assert seen.startswith("QPS: +15 %.") and (told in seen if told else seen == "QPS: +15 %.")
