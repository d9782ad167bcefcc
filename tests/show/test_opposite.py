"""When an illustration goes the other way than published, and that its pages say so."""

from __future__ import annotations

import pytest

from benchbook.show import opposite, tables


def finding(low: float, high: float, is_headline: bool = True) -> dict[str, object]:
    return {"effect": (low + high) / 2, "low": low, "high": high, "headline": is_headline}


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
def test_only_what_lies_wholly_on_the_other_side_of_zero_is_opposite(
    band: list[float | None] | None, low: float, high: float, told: bool
):
    assert opposite.is_opposite(finding(low, high), {"is_share": True, "band": band}) is told


def test_a_number_that_is_no_share_or_is_withheld_has_no_direction():
    assert not opposite.is_opposite(finding(-0.3, -0.2), {"is_share": False, "band": [5.0, 12.0]})
    withheld = finding(-0.3, -0.2, is_headline=False)
    assert not opposite.is_opposite(withheld, {"is_share": True, "band": [0.3, None]})


def test_parts_of_a_claim_that_was_put_to_a_study_are_held_to_its_band_alike():
    later = {"low": 0.55, "high": 0.68, "scale": "share", "band": [None, -0.02]}
    sooner = {"low": -0.2, "high": -0.1, "scale": "share", "band": [None, -0.02]}
    assert opposite.parts({"kind": "effect", "parts": [later]}) == "all"
    assert opposite.parts({"kind": "effect", "parts": [later, sooner]}) == "1 of 2"
    assert opposite.parts({"kind": "effect", "parts": [sooner, {**later, "low": None}]}) == ""
    assert opposite.parts({"kind": "trend", "parts": [later]}) == ""


def test_the_page_of_a_study_says_so_beside_what_it_illustrates_and_not_beside_what_it_judges():
    later = {"low": 0.55, "high": 0.68, "scale": "share", "band": [None, -0.02]}
    one = {
        "claim": "upgrade/latency-falls", "kind": "effect", "published": "a fall", "parts": [later], "n": 5,
        "sentence": "Mean latency: after +60 %.", "reason": "", "read_as": "",
        "judged": False, "verdict": None,
    }  # fmt: skip
    (table,) = tables.asked({"claims": [one, {**one, "judged": True, "verdict": "contradicted"}]})
    shown, judged = (row[2] for row in table.rows)
    assert shown == "Mean latency: after +60 %. The direction is opposite to the published one."
    assert judged == "Mean latency: after +60 %."


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
    own = {"where": where, "low": 0.1, "high": 0.2, "scale": "share", "band": None}
    one = {"claim": "s/c", "kind": kind, "parts": [own], "judged": False, "sentence": "QPS: +15 %."}
    row = tables._asked({**one, "published": "", "reason": None, "read_as": None, "n": 5})[2]
    assert row.startswith("QPS: +15 %.") and (told in row if told else row == "QPS: +15 %.")
