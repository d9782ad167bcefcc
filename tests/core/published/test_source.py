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
    assert parse_amount("7 %") == 0.07
    assert parse_amount("-12.5%") == -0.125
    assert parse_amount(22000) == 22000


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


def test_an_effect_needs_both_sides_and_its_unit():
    assert claim().judged_by is None
    with pytest.raises(ValidationError, match="needs baseline"):
        claim(baseline=None)
    with pytest.raises(ValidationError, match="in percent"):
        claim(band=ClaimedBand(point=7))


def test_a_field_of_another_kind_is_refused_instead_of_ignored():
    with pytest.raises(ValidationError, match="has no direction"):
        claim(direction="falls")


def test_a_claim_without_table_must_say_why():
    with pytest.raises(ValidationError, match="needs because, published"):
        ClaimSpec(kind="text_only", claim="It is fast.", stands="Somewhere")


def test_every_kind_is_judged():
    from benchbook.compare.claims.estimands import _KINDS

    assert set(KINDS) == set(_KINDS)
