"""Claims of every kind on tables small enough to be judged by hand, to the last number of the row."""

from typing import Any

import pandas as pd
import pytest

from benchbook.compare.claims import bands, printed_cells
from benchbook.core.published.claim import ClaimedBand, ClaimSpec
from benchbook.core.util.number_format import MINUS
from tests.compare.claims.test_consistency import cells

ALL = {"arm": "a"}


def table(**arms: dict[int, str]) -> pd.DataFrame:
    """Return QPS by threads, a table for each arm."""
    rows = [(f"of {arm}", arm, level, "qps", text) for arm, by in arms.items() for level, text in by.items()]
    return cells(rows)


def claim(kind: str, **given: Any) -> ClaimSpec:
    return ClaimSpec.model_validate({"kind": kind, "claim": "So it is.", "stands": "Summary", **given})


def cell(arm: str, row: int, value: float) -> dict[str, Any]:
    return {"table": f"of {arm}", "row": row, "value": value}


def test_a_value_that_rises_at_all_steps_but_one():
    found = printed_cells.judge_printed(
        claim("trend", metric="qps", along="threads", direction="rises", cells=ALL),
        table(a={1: "100", 2: "180", 8: "150", 4: "300"}),
    )  # fmt: skip
    place = "arm a, workload load, threads {}"
    assert found == {
        "verdict": "does not hold",
        "reason": "",
        "cells": [
            {"where": place.format(1), **cell("a", 1, 100.0), "arithmetic": "100"},
            {"where": place.format(2), **cell("a", 2, 180.0), "arithmetic": "180", "is_inside": True},
            {"where": place.format(4), **cell("a", 4, 300.0), "arithmetic": "300", "is_inside": True},
            {"where": place.format(8), **cell("a", 8, 150.0), "arithmetic": "150", "is_inside": False},
        ],
        "n_cells": 4, "n_inside": 2, "low": 100.0, "high": 300.0, "recomputed": "rises at 2 of 3 steps",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("direction", "holds"), [("rises", 1), ("falls", 0), ("grows", 0), ("shrinks", 1)]
)  # fmt: skip
def test_a_loss_that_becomes_smaller_rises_and_shrinks(direction, holds):
    """150 / 200 and 270 / 300 are -25 % and -10 %."""
    found = printed_cells.judge_printed(
        claim(
            "trend", metric="qps", along="threads", direction=direction, baseline={"arm": "a"},
            treatment={"arm": "b"},
        ),
        table(a={1: "200", 2: "300"}, b={1: "150", 2: "270"}),
    )  # fmt: skip
    assert found["verdict"] == ("holds" if holds else "does not hold")
    assert (found["n_inside"], found["n_cells"], found["low"], found["high"]) == (holds, 2, -0.25, -0.1)
    assert found["recomputed"] == f"{direction} at {holds} of 1 steps"
    assert found["cells"][0]["arithmetic"] == f"150 / 200 {MINUS} 1 = {MINUS}25.00 %"


def test_equal_values_neither_rise_nor_fall():
    for direction in ("rises", "falls", "grows", "shrinks"):
        asked = claim("trend", metric="qps", along="threads", direction=direction)
        found = printed_cells.judge_printed(asked, table(a={1: "5", 2: "5"}))
        assert (found["verdict"], found["n_inside"]) == ("does not hold", 0)


def test_one_level_is_no_trend():
    found = printed_cells.judge_printed(
        claim("trend", metric="qps", along="threads", direction="rises"), table(a={1: "5"})
    )
    assert (found["verdict"], found["recomputed"]) == ("not derivable", "")
    assert found["reason"] == "It has fewer than two levels of threads."


@pytest.mark.parametrize(
    ("band", "verdict"),
    [
        ({"range": (0.92, 1.08)}, "holds"),
        ({"range": (1.12, 1.18)}, "does not hold"),
        ({"range": (0.82, 0.88)}, "does not hold"),
        ({"below": 0.9}, "does not hold"),
        ({"above": 0.9}, "holds"),
    ],
)
def test_what_doubles_with_each_doubling_is_proportional(band, verdict):
    """A range is 0.02 wider on each side."""
    asked = claim("proportional", metric="qps", along="threads", cells=ALL, band=band)
    found = printed_cells.judge_printed(asked, table(a={2: "20", 4: "40", 8: "80"}))
    assert (found["verdict"], found["n_cells"], found["recomputed"]) == (verdict, 3, "power 1.00")
    assert (found["mean"], found["low"], found["high"]) == (pytest.approx(1.0), 10.0, 10.0)
    assert found["cells"][2] == {
        "where": "arm a, workload load, threads 8", "table": "of a", "row": 8, "value": 10.0,
        "arithmetic": "80 / 8 = 10 for each, 0.00 % against the first",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("by", "reason"),
    [
        ({4: "40"}, "It has fewer than two positive levels of threads."),
        ({0: "1", 4: "40"}, "It has fewer than two positive levels of threads."),
        (
            {2: "0", 4: "40"},
            "No number: arm a, workload load, threads 2 has 0, and nothing is a multiple of that.",
        ),
    ],
)
def test_a_proportion_needs_two_levels_and_no_zero(by, reason):
    asked = claim("proportional", metric="qps", along="threads", cells=ALL, band={"range": (0.9, 1.1)})
    found = printed_cells.judge_printed(asked, table(a=by))
    assert found == {"verdict": "not derivable", "recomputed": "", "reason": reason}


@pytest.mark.parametrize(
    ("by", "band", "verdict", "reason"),
    [
        ({1: "10", 4: "30", 2: "20", 8: "25"}, {"point": 4}, "holds", ""),
        ({1: "10", 4: "30", 8: "25"}, {"range": (5, 9)}, "does not hold", ""),
        ({1: "10", 4: "30", 8: "25"}, {"range": (1, 3)}, "does not hold", ""),
        ({1: "10", 4: "30", 8: "25"}, {"above": 1}, "holds", ""),
        ({1: "10", 8: "25"}, {"range": (8, 16)}, "not derivable",
         "Highest at the last level, threads 8: whether it rises further is not known."),
        ({1: "10", 8: "25"}, {"above": 2}, "not derivable",
         "Highest at the last level, threads 8: whether it rises further is not known."),
    ],
)  # fmt: skip
def test_a_peak_is_seen_only_if_it_falls_after_it(by, band, verdict, reason):
    asked = claim("peak", metric="qps", along="threads", cells=ALL, band=band)
    found = printed_cells.judge_printed(asked, table(a=by))
    top = max(by, key=lambda level: float(by[level]))
    assert (found["verdict"], found["reason"], found["n_cells"]) == (verdict, reason, len(by))
    assert found["recomputed"] == f"highest at threads {top}"
    assert [one["row"] for one in found["cells"] if one["is_inside"]] == [top]
    assert [one["row"] for one in found["cells"]] == sorted(by)


@pytest.mark.parametrize("by", [{1: "5"}, {4: "5"}, {1: "10", 8: "25"}])
def test_one_level_is_no_peak_and_neither_are_levels_outside_alone(by):
    asked = claim("peak", metric="qps", along="threads", cells=ALL, band={"point": 4})
    assert printed_cells.judge_printed(asked, table(a=by)) == {
        "verdict": "not derivable", "recomputed": "",
        "reason": "It has no level of threads inside the band, or none outside.",
    }  # fmt: skip


def test_two_changes_are_alike_where_one_over_the_other_is_near_one():
    """Against one thread: a +50, +100 %, b +45, +60 %; 1.5 over 1.45 is +3.45 %, a fifth of 45 % is 9 %."""
    asked = claim("same_effect", metric="qps", along="threads", one={"arm": "a"}, other={"arm": "b"})
    numbers = table(a={1: "100", 2: "150", 4: "200"}, b={1: "200", 2: "290", 4: "320"})
    found = printed_cells.judge_printed(asked, numbers)
    assert (found["verdict"], found["n_inside"], found["n_cells"]) == ("does not hold", 1, 2)
    assert (found["low"], found["high"]) == (0.5, 1.0)
    assert found["recomputed"] == (
        "2 threads: +50.0\xa0% beside +45.0\xa0%; 4 threads: +100.0\xa0% beside +60.0\xa0%"
    )
    assert found["cells"][0] == {
        "where": "threads 2", "value": 0.5, "is_inside": True,
        "baseline": cell("a", 1, 100.0), "treatment": cell("a", 2, 150.0),
        "other_baseline": cell("b", 1, 200.0), "other_treatment": cell("b", 2, 290.0),
        "arithmetic": f"150 / 100 {MINUS} 1 = +50.00 %, beside 290 / 200 {MINUS} 1 = +45.00 %; +3.45 % apart",
    }  # fmt: skip
    assert found["cells"][1]["is_inside"] is False
    alone = printed_cells.judge_printed(asked, table(a={1: "100", 2: "150"}, b={1: "200", 4: "320"}))
    assert (alone["verdict"], alone["reason"]) == (
        "not derivable",
        "The two have fewer than two levels of threads in common.",
    )


@pytest.mark.parametrize(
    ("metric", "verdict", "recomputed"),
    [("qps", "does not hold", "fits TPS, not QPS"), ("tps", "holds", "fits TPS, as written")],
)
def test_a_unit_is_the_metric_in_whose_band_the_number_lies(metric, verdict, recomputed):
    rows = [("t", "a", 4, "qps", "2000"), ("t", "a", 4, "tps", "100")]
    asked = claim("unit", metric=metric, candidates=("qps", "tps"), cells=ALL, band={"point": 99})
    found = printed_cells.judge_printed(asked, cells(rows))
    assert (found["verdict"], found["recomputed"]) == (verdict, recomputed)
    assert (found["n_cells"], found["n_inside"]) == (2, 1)
    assert found["cells"][0] == {
        "where": "as qps", "table": "t", "row": 4, "value": 2000.0, "is_inside": False,
        "arithmetic": "2000: 20.202 times the published number",
    }  # fmt: skip
    none = printed_cells.judge_printed(asked.model_copy(update={"band": ClaimedBand(point=20)}), cells(rows))
    assert none["recomputed"] == f"fits none, not {metric.upper()}"


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (claim("trend", metric="qps", along="threads_per_process", direction="falls"),
         "falls with threads per process"),
        (claim("same_effect", metric="qps", along="threads", one={"arm": "a"}, other={"arm": "b"}),
         "the same effect of threads"),
        (claim("value", metric="qps", cells=ALL, band={"point": 22000}), "about 22000"),
        (claim("value", metric="qps", cells=ALL, band={"range": (5, 12)}), "5 to 12"),
        (claim("value", metric="qps", cells=ALL, band={"above": 500}), "above 500"),
        (claim("value", metric="qps", cells=ALL, band={"below": "80 %"}), "below 80 %"),
        (claim("value", metric="qps", cells=ALL, band={"point": 1}, published="one"), "one"),
    ],
)  # fmt: skip
def test_what_was_published_is_written_as_it_was(asked, text):
    assert bands.published_text(asked) == text


def effect(band: dict[str, Any], found: pd.DataFrame, **given: Any) -> dict[str, Any]:
    asked = claim("effect", metric="qps", baseline={"arm": "a"}, treatment={"arm": "b"}, band=band, **given)
    return printed_cells.judge_printed(asked, found)


def test_an_effect_of_several_cells_is_judged_by_its_mean_or_by_each():
    """+10 and +21 %: their geometric mean is +15.3659 %. 15 % is claimed, so 12 to 18 % are its band."""
    numbers = table(a={1: "100", 2: "100", 4: "100"}, b={1: "110", 2: "121"})
    found = effect({"point": "15 %"}, numbers)
    assert (found["verdict"], found["n_inside"], found["n_cells"]) == ("holds", 0, 2)
    assert found["mean"] == pytest.approx((1.1 * 1.21) ** 0.5 - 1)
    assert found["recomputed"] == "+15.4\xa0% on average, +10.0 to +21.0\xa0% by cell"
    assert found["reason"] == "Left out: 1 cell of these arms without a counterpart."
    each = effect({"point": "15 %"}, numbers, judged_by="every_cell")
    assert (each["verdict"], each["recomputed"]) == (
        "does not hold",
        "+10.0 to +21.0\xa0% by cell, 2 of 2 outside the band",
    )
    most = effect({"above": "15 %"}, numbers, judged_by="most_cells")
    assert (most["verdict"], most["recomputed"]) == (
        "does not hold",
        "1 of 2 cells inside the band, +10.0 to +21.0\xa0% by cell",
    ), "one of two is not more than half"


def test_an_effect_of_one_cell_is_that_cell():
    found = effect({"below": "-5 %"}, table(a={1: "200"}, b={1: "150"}))
    assert (found["verdict"], found["recomputed"]) == ("holds", f"{MINUS}25.0\xa0%")
    assert effect({"above": "-5 %"}, table(a={1: "200"}, b={1: "150"}))["verdict"] == "does not hold"


def test_conditions_leave_cells_out_and_say_which_there_were():
    numbers = table(a={1: "100", 8: "100"}, b={1: "110", 8: "150"})
    few = effect({"point": "10 %"}, numbers, where=({"key": "threads", "below": 8},))
    assert (few["n_cells"], few["verdict"]) == (1, "holds")
    none = effect({"point": "10 %"}, numbers, where=({"key": "threads", "above": 8},))
    assert none == {
        "verdict": "not derivable", "recomputed": "no such cell",
        "reason": "None of its 2 cells has threads above 8 (they have 1 to 8).",
    }  # fmt: skip
    by_metric = effect({"point": "10 %"}, numbers, where=({"metric": "qps", "above": 120, "below": 200},))
    assert by_metric["n_cells"] == 1
    of_baseline = effect(
        {"point": "10 %"}, numbers, where=({"metric": "qps", "of": "baseline", "above": 120},)
    )
    assert of_baseline["reason"] == "None of its 2 cells has QPS above 120."
    assert effect({"point": "1 %"}, table(a={1: "1"}))["reason"] == "No two cells can be compared."


def test_values_that_are_ratios_show_their_division():
    rows = [("t", "a", 4, "cpu_pct", "50"), ("t", "a", 4, "qps", "200")]
    asked = claim("value", metric="cpu_pct / qps", cells=ALL, band={"point": 0.25})
    found = printed_cells.judge_printed(asked, cells(rows))
    assert (found["verdict"], found["mean"]) == ("holds", 0.25)
    assert found["cells"][0]["arithmetic"] == "50 / 200 = 0.25"
