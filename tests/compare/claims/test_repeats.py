"""Printed repetitions: a claim that they leave open neither holds nor fails; a small step refutes nothing."""

import pytest

from benchbook.compare.claims import printed_cells
from benchbook.core.published.claim import ClaimSpec
from benchbook.core.published.source import Number

# Five runs a level of one server, from a document: at each level runs 1 and 5 are low, 2 and 3 high.
LEVELS = {
    120: (4264.20, 5233.57, 4807.77, 5169.20, 4380.47),
    160: (4431.60, 5544.27, 5930.30, 4358.17, 4723.37),
    180: (4433.53, 5304.10, 5850.93, 4618.50, 4277.77),
    200: (3818.73, 5089.50, 6021.27, 4561.00, 4324.87),
}
SECONDS = {"a-5.7": (14.606, 16.133, 14.981), "a-8.0": (29.341, 29.347, 28.853)}
# Queries a second of two proxies by rows of a result.
ROWS = {"haproxy": (32480, 27462, 7420, 757), "tiproxy": (30955, 14655, 2112, 221)}


def number(metric: str, value: float, row: int, **at) -> Number:
    return Number("t", row, metric, metric, value, str(value), 0.0, None, "metric", at)


def numbers(metric: str, by: dict, key: str, along: str) -> list[Number]:
    return [
        number(metric, value, row, **{key: name, along: row})
        for name, values in by.items()
        for row, value in enumerate(values, 1)
    ]


def put(cells: list[Number], baseline: str = "", treatment: str = "", **given) -> dict:
    sides = {"baseline": {"arm": baseline}, "treatment": {"arm": treatment}} if baseline else {}
    told = {"claim": "So it is.", "stands": "Here", **sides, **given}
    return printed_cells.judge_printed(ClaimSpec.model_validate(told), cells)


def test_a_peak_that_runs_of_a_level_outdo_is_not_shown():
    runs = numbers("qps", LEVELS, "threads", "run")
    found = put(runs, kind="peak", metric="qps", along="threads", band={"point": 160})
    assert found["verdict"] == "not derivable"
    assert {part["n"] for part in found["repeats"]} == {5}
    assert "inconclusive" in {part["outcome"] for part in found["repeats"]}


@pytest.mark.parametrize(
    ("band", "verdict"),
    [
        # 29.180 over 15.240 is +91.5 %; errors of 3.02 and 0.56 %, Welch's t of 2.14 degrees is 4.05:
        # ln 1.915 ± 0.124, so +69 to +117 %.
        ({"range": ["30 %", "45 %"]}, "does not hold"),
        ({"point": "90 %"}, "holds"),
        ({"above": "85 %"}, "not derivable"),
    ],
)
def test_an_effect_of_repeated_cells_has_their_interval(band, verdict):
    runs = numbers("elapsed_s", SECONDS, "arm", "run")
    found = put(runs, "a-5.7", "a-8.0", kind="effect", metric="elapsed_s", band=band)
    assert found["verdict"] == verdict
    assert found["mean"] == pytest.approx(0.915, abs=5e-4)
    (part,) = found["repeats"]
    assert (part["n"], part["low"], part["high"]) == pytest.approx((3, 0.69, 1.17), abs=0.01)


def test_a_last_step_of_less_than_two_points_refutes_no_trend():
    cells = numbers("qps", ROWS, "arm", "range_size")
    told = {"kind": "trend", "metric": "qps", "along": "range_size", "direction": "grows"}
    found = put(cells, "haproxy", "tiproxy", **told)
    # −4.7, −46.6, −71.5, −70.8 %.
    assert (found["verdict"], found["recomputed"]) == ("holds", "grows at 2 of 3 steps")
    assert "Steps too small to judge" in found["reason"]


def test_a_mean_that_holds_names_the_cells_of_the_other_sign():
    cells = numbers("qps", {"a": (100, 100, 100, 100), "b": (110, 118, 120, 98)}, "arm", "threads")
    found = put(cells, "a", "b", kind="effect", metric="qps", band={"point": "10 %"})
    assert found["verdict"] == "holds" and found["n_other_sign"] == 1


def test_a_mean_is_tried_on_the_new_value_as_its_cells_are():
    """+48 and +52 % are a third of the new value in the mean; 33 % was claimed."""
    cells = numbers("qps", {"a": (100, 100), "b": (148, 152)}, "arm", "threads")
    found = put(cells, "a", "b", kind="effect", metric="qps", band={"point": "33 %"})
    assert found["verdict"] == "does not hold" and "their mean is +33.3" in found["reason"]


def test_a_stored_baseline_names_the_arm_that_was_repeated_beside_the_treatment():
    by = {"stored": (191278,), "before": (181879, 187167), "after": (180146, 179519)}
    told = {"kind": "effect", "metric": "qps", "band": {"point": "-5.8 %"}}
    sides = {"baseline": {"arm": "stored"}, "treatment": {"arm": "after"}}
    claim = ClaimSpec.model_validate({"claim": "So.", **sides, **told})
    runs = numbers("qps", by, "arm", "run")
    assert put(runs, "stored", "after", **told)["verdict"] == "holds"
    assert printed_cells.describe_measured_pair(claim, runs) == (
        "The baseline stored is a single number; against before, which was repeated beside it, it is "
        "−2.5\xa0%. Prefer that pair."
    )
    beside = claim.model_copy(update={"baseline": {"arm": "before"}})
    assert printed_cells.describe_measured_pair(beside, runs) == ""
