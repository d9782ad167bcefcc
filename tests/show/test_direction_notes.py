"""When an illustration goes the other way than published, and that its pages say so."""

import pytest

from benchbook.core.artifacts.findings import Finding
from benchbook.show import direction_notes, tables
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


def test_parts_of_an_illustrated_claim_that_went_the_other_way_are_named():
    later = {"where": "late", "low": 0.55, "high": 0.68, "scale": "share", "band": [None, -0.02]}
    sooner = {"where": "soon", "low": -0.2, "high": -0.1, "scale": "share", "band": [None, -0.02]}
    opposite = "The direction is opposite to the published one"
    describe = direction_notes.describe_opposite_parts
    assert describe(answer(later)) == f"{opposite}."
    assert describe(answer(later, sooner)) == f"{opposite} on late."
    assert describe(answer(sooner, {**later, "low": None})) == ""
    assert describe(answer(later, kind="trend")) == ""
    assert describe(changed(answer(later), judged=True)) == ""


def test_the_page_of_a_study_says_so_beside_what_it_illustrates_and_not_beside_what_it_judges():
    later = {"low": 0.55, "high": 0.68, "scale": "share", "band": [None, -0.02]}
    one = answer(later, sentence="Mean latency: after +60 %.")
    other = changed(one, judged=True, verdict="contradicted")
    (table,) = tables.tabulate_claims(found.findings(claims=[one, other]))
    shown, judged = (row[2] for row in table.rows)
    assert shown == "Mean latency: after +60 %. The direction is opposite to the published one."
    assert judged == "Mean latency: after +60 %."


def test_workloads_of_a_pair_that_went_the_other_way_are_named():
    reads = finding(-0.32, -0.27, workload="oltp_point_select")
    writes = finding(0.1, 0.2, workload="oltp_read_only")
    described = direction_notes.describe_opposite_effects([reads, writes], [0.3, None])
    assert described == "The direction is opposite to the published one on point selects."


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
    (table,) = tables.tabulate_claims(found.findings(claims=[answer(own, kind=kind, sentence="QPS: +15 %.")]))
    seen = table.rows[0][2]
    assert seen.startswith("QPS: +15 %.") and (told in seen if told else seen == "QPS: +15 %.")
