"""What a claim allows: margins of the project's rule, tolerances of the source, and ends on a log scale."""

import math

import pytest

from benchbook.compare.claims import bands
from benchbook.compare.stats.equivalence import Bounds
from benchbook.compare.stats.equivalence import EquivalenceBand as Limits
from benchbook.core.published.claim import ClaimSpec

TOLD = {"claim": "So it is.", "stands": "Here", "metric": "qps"}
SIDES = {"baseline": {"arm": "a"}, "treatment": {"arm": "b"}}


def claim(kind: str, **keys) -> ClaimSpec:
    more = SIDES if kind == "effect" else {"cells": {"arm": "a"}} if kind == "value" else {"along": "threads"}
    return ClaimSpec.model_validate({"kind": kind, **TOLD, **more, **keys})


@pytest.mark.parametrize(
    ("kind", "band", "low", "high"),
    [
        # A tolerance of the source is taken as it is, but what has a direction keeps it.
        ("effect", {"point": "1 %", "tolerance": "3 %"}, 0.0, 0.04),
        ("effect", {"point": "-1 %", "tolerance": "3 %"}, -0.04, 0.0),
        ("effect", {"point": "5 %", "tolerance": "3 %"}, 0.02, 0.08),
        ("effect", {"point": "-5 %", "tolerance": "3 %"}, -0.08, -0.02),
        ("effect", {"point": "0 %", "tolerance": "3 %"}, -0.03, 0.03),
        # 2 % of each end around values.
        ("value", {"point": 100}, 98.0, 102.0),
        ("value", {"range": [90, 120]}, 88.2, 122.4),
        # A level is what it is.
        ("peak", {"range": [300, 900]}, 300.0, 900.0),
    ],
)
def test_the_limits_of_a_claim(kind: str, band: dict, low: float, high: float):
    limits = bands.claim_limits(claim(kind, band=band))
    assert limits is not None and not limits.is_strict
    assert (limits.low, limits.high) == pytest.approx((low, high))


def test_what_is_proportional_grows_by_its_own_power_within_a_fifth():
    limits = bands.claim_limits(claim("proportional"))
    assert limits is not None and (limits.low, limits.high) == pytest.approx((0.8, 1.2))


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [
        (10.0, 20.0, (math.log(10), math.log(20))),
        (None, None, (-math.inf, math.inf)),
        # No value is below nought: such an end leaves all of them, and one above it none.
        (0.0, 20.0, (-math.inf, math.log(20))),
        (-5.0, None, (-math.inf, math.inf)),
        (None, 0.0, (-math.inf, -math.inf)),
    ],
)
def test_values_have_logarithms_above_nought(low: float | None, high: float | None, ends: tuple):
    bounds = bands.scale_bounds(Limits(low, high), "value")
    assert (bounds.log_low, bounds.log_high) == pytest.approx(ends)


@pytest.mark.parametrize("is_strict", [False, True])
def test_ends_belong_to_bounds_unless_they_are_strict(is_strict: bool):
    bounds = Bounds(0.0, 1.0, is_strict)
    assert [bounds.holds(value) for value in (-0.1, 0.0, 0.5, 1.0, 1.1)] == [
        False, not is_strict, True, not is_strict, False
    ]  # fmt: skip
    assert bounds.turned == Bounds(-1.0, 0.0, is_strict)


@pytest.mark.parametrize(
    ("kind", "keys", "text"),
    [
        ("effect", {"band": {"point": "7 %"}}, "about +7 %"),
        ("effect", {"band": {"point": "-1.21 %"}}, "about −1.21 %"),
        ("effect", {"band": {"range": ["10 %", "30.5 %"]}}, "+10 % to +30.5 %"),
        ("effect", {"band": {"above": "-5 %"}}, "above −5 %"),
        ("effect", {"band": {"below": "-2 %"}}, "below −2 %"),
        ("value", {"band": {"point": 22000}}, "about 22000"),
        ("value", {"band": {"range": (5, 12)}}, "5 to 12"),
        ("value", {"band": {"above": 500}}, "above 500"),
        ("value", {"band": {"below": 0.5}}, "below 0.5"),
        ("value", {"band": {"below": "80 %"}}, "below 80 %"),
        ("value", {"band": {"point": 1}, "published": "one"}, "one"),
        ("trend", {"along": "threads_per_process", "direction": "falls"}, "falls with threads per process"),
        ("same_effect", {"one": {"arm": "a"}, "other": {"arm": "b"}}, "the same effect of threads"),
    ],
)
def test_a_claim_is_written_with_the_digits_that_were_published(kind: str, keys: dict, text: str):
    assert bands.published_text(claim(kind, **keys)) == text


@pytest.mark.parametrize(
    ("kind", "keys", "which"),
    [
        ("effect", {"band": {"point": "7 %"}}, "mean"),
        ("effect", {"band": {"range": ["1 %", "7 %"]}}, "every_cell"),
        ("value", {"band": {"below": 7}}, "every_cell"),
        ("value", {"band": {"below": 7}, "judged_by": "most_cells"}, "most_cells"),
        ("peak", {"band": {"below": 7}}, None),
    ],
)
def test_a_point_says_where_cells_centre_and_a_range_where_each_is(kind: str, keys: dict, which: str | None):
    assert bands.judged_by(claim(kind, **keys)) == which
