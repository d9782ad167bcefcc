"""Every claim says what its kind needs."""

import pytest
from pydantic import ValidationError

from benchbook.core.published.claim import KINDS, ClaimedBand, ClaimSpec, parse_amount
from benchbook.core.util import source_files


def test_the_five_sources_are_there_and_their_claims_can_be_named():
    assert set(source_files.source_names()) >= {
        "tidb-kubernetes", "mysql-kubernetes", "tiproxy-haproxy", "tidb-upgrade", "tidb-sysbench-howto",
    }  # fmt: skip
    assert "tidb-kubernetes/host-network" in source_files.claim_ids()


def test_an_amount_in_percent_is_a_fraction_and_a_plain_one_a_value():
    assert [*map(parse_amount, ("7 %", "-12.5%", 22000))] == [0.07, -0.125, 22000]


@pytest.mark.parametrize(
    ("band", "said"),
    [
        ({}, "exactly one"),
        ({"point": "7 %", "above": "1 %"}, "exactly one"),
        ({"range": ("60 %", "50 %")}, "lower number first"),
        ({"above": "5 %", "tolerance": "2 %"}, "belongs to a point"),
        ({"point": "7 percent"}, "not an amount"),
    ],
)
def test_a_band_that_can_be_read_two_ways_is_refused(band: dict, said: str):
    with pytest.raises(ValidationError, match=said):
        ClaimedBand(**band)


def claim(**given: object) -> ClaimSpec:
    shared = {"kind": "effect", "claim": "More is more.", "stands": "Somewhere", "metric": "qps"}
    sides = {"baseline": {"arm": "a"}, "treatment": {"arm": "b"}, "band": ClaimedBand(point="7 %")}
    return ClaimSpec(**{**shared, **sides, **given})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"baseline": None}, "needs baseline"),
        ({"band": ClaimedBand(point=7)}, "in percent"),
        ({"direction": "falls"}, "has no direction"),
        ({"kind": "text_only"}, "needs because, published"),
    ],
)
def test_a_claim_says_what_its_kind_needs_and_nothing_of_another(changes: dict, said: str):
    assert claim().judged_by is None
    with pytest.raises(ValidationError, match=said):
        claim(**changes)


def test_every_kind_is_judged():
    from benchbook.compare.claims.estimands import _KINDS

    assert set(KINDS) == {*_KINDS, "text_only"}
