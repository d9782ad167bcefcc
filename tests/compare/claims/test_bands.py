"""What a claim allows: margins of the project's rule, tolerances of the source, and ends on a log scale."""

import pytest

from benchbook.compare.claims import bands
from benchbook.compare.stats.equivalence import Bounds
from benchbook.compare.stats.equivalence import EquivalenceBand as Limits
from benchbook.core.published.claim import ClaimSpec
from tests.compare.cases import read_cases

CASES = read_cases("bands")
TOLD = {"claim": "So it is.", "stands": "Here", "metric": "qps"}
SIDES = {"baseline": {"arm": "a"}, "treatment": {"arm": "b"}}


def claim(kind: str, **keys) -> ClaimSpec:
    more = SIDES if kind == "effect" else {"cells": {"arm": "a"}} if kind == "value" else {"along": "threads"}
    return ClaimSpec.model_validate({"kind": kind, **TOLD, **more, **keys})


@pytest.mark.parametrize(("kind", "band", "low", "high"), CASES["limits"])
def test_the_limits_of_a_claim(kind: str, band: dict, low: float, high: float):
    limits = bands.claim_limits(claim(kind, band=band))
    assert limits is not None and not limits.is_strict
    assert (limits.low, limits.high) == pytest.approx((low, high))


def test_what_is_proportional_grows_by_its_own_power_within_a_fifth():
    limits = bands.claim_limits(claim("proportional"))
    assert limits is not None and (limits.low, limits.high) == pytest.approx((0.8, 1.2))


@pytest.mark.parametrize(("low", "high", "ends"), CASES["values"])
def test_values_have_logarithms_above_nought(low: float | None, high: float | None, ends: list[float]):
    bounds = bands.scale_bounds(Limits(low, high), "value")
    assert (bounds.log_low, bounds.log_high) == pytest.approx(ends)


@pytest.mark.parametrize("is_strict", [False, True])
def test_ends_belong_to_bounds_unless_they_are_strict(is_strict: bool):
    bounds = Bounds(0.0, 1.0, is_strict)
    assert [bounds.holds(value) for value in (-0.1, 0.0, 0.5, 1.0, 1.1)] == [
        False, not is_strict, True, not is_strict, False
    ]  # fmt: skip
    assert bounds.turned == Bounds(-1.0, 0.0, is_strict)


@pytest.mark.parametrize(("kind", "keys", "text"), CASES["texts"])
def test_a_claim_is_written_with_the_digits_that_were_published(kind: str, keys: dict, text: str):
    assert bands.published_text(claim(kind, **keys)) == text


@pytest.mark.parametrize(("kind", "keys", "which"), CASES["judged_by"])
def test_a_point_says_where_cells_centre_and_a_range_where_each_is(kind: str, keys: dict, which: str | None):
    assert bands.judged_by(claim(kind, **keys)) == which
