"""Rows of claims: each number with its place, metric, interval and outcome, and none left out."""

import re

import pytest

from benchbook.core.artifacts.findings import FindingData
from benchbook.show import claim_rows, tables
from tests import found, sources
from tests.found import answer, changed
from tests.goldens import assert_golden
from tests.recorded_findings import recorded_findings


def finding(low: float, high: float, is_headline: bool = True, **more: str) -> FindingData:
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
    assert claim_rows.is_opposite(finding(low, high), band) is told


def test_a_number_that_is_no_share_or_is_withheld_has_no_direction():
    assert not claim_rows.is_opposite(finding(-0.3, -0.2, is_headline=False), [0.3, None])
    claims = [claim for audit in sources.audits().values() for claim in audit.claims]
    assert all((claim.shares is None) != claim.is_share for claim in claims if claim.band)
    assert {claim.is_share for claim in claims if claim.band} == {True, False}


LATER = {"where": "late", "low": 0.55, "high": 0.68, "scale": "share", "band": [None, -0.02]}


def test_only_an_illustrated_effect_has_the_other_direction_as_its_outcome():
    sooner = {**LATER, "where": "soon", "low": -0.2, "high": -0.1}
    own = answer(LATER, sooner)

    def outcomes(one):
        return [row.outcome for row in claim_rows.list_claim_rows(found.findings(claims=[one]))]

    assert outcomes(own) == ["the other way", ""]
    assert outcomes(answer(LATER, kind="trend")) == [""]
    assert outcomes(changed(own, judged=True)) == ["open", "open"]


def test_the_page_of_a_study_has_a_row_for_each_number_and_one_for_a_claim_without_any():
    silent = answer(claim="s/silent", reason="its metric was not measured")
    table, *_ = tables.tabulate_claims(found.findings(claims=[answer(LATER), silent]))
    shown, none = (list(map(str, row)) for row in table.rows)
    assert [cell.replace("\xa0", " ") for cell in shown[4:9]] == [
        *("+55.0 %", "+55.0 to +68.0 %", "5", "below −2.0 %", "the other way")
    ]
    assert "nothing was measured" in none and table.notes.texts == [silent.reason]


def test_a_ratio_of_ratios_is_explained_where_it_stands():
    places = [
        ("trend", "far against near, reads, threads 4 to 16"),
        ("trend", "tiproxy, reads, threads 4 to 16"),
        ("same_effect", "tiproxy beside haproxy, range size 10 to 100"),
        ("effect", "far against near, reads"),
    ]
    claims = [answer({"where": where, "low": 0.1, "high": 0.2}, kind=kind) for kind, where in places]
    rows = claim_rows.list_claim_rows(found.findings(claims=claims))
    lines = [f"{row.answer.kind}: {row.where}: {row.metric}" for row in rows]
    assert_golden("claim-metrics.txt", "\n".join(lines) + "\n")


def test_every_number_of_the_record_that_a_claim_asks_for_stands_in_its_own_row():
    known = [one for one in recorded_findings().values() if one.claims]
    assert len(known) > 15
    for one in known:
        parts = [part for answered in one.claims for part in answered.parts if part.value is not None]
        rows = [row for row in claim_rows.list_claim_rows(one) if row.part]
        assert [row.part for row in rows] == parts
        for row in rows:
            line = row.line.replace("\xa0", " ")
            assert line.startswith(f"{row.where}, {row.metric}: ") and row.answer.metric
            told = line.removeprefix(f"{row.where}, {row.metric}: ")
            shown = re.findall(r"[−+]?\d[\d,]*\.?\d*(?:e[-+]\d+)?", told)
            numbers = [float(text.replace("−", "-").replace(",", "")) for text in shown]
            factor = 100 if row.part.scale == "share" else 1
            low, high = row.part.estimate.ends or (None, None)
            due = [factor * row.part.value]
            due += [] if low is None else [100 * row.answer.level, factor * low, factor * high, row.answer.n]
            assert numbers == pytest.approx(due, rel=6e-4, abs=0.051), line
            if row.answer.judged and row.part.decides:
                outcomes = {"confirmed": "inside", "contradicted": "outside"}
                assert line.endswith(outcomes.get(row.part.outcome, "open"))
