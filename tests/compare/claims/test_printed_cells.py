"""Verdicts on the five documents, each against arithmetic done apart from the code."""

import dataclasses
import math
from functools import partial
from typing import Any

import pytest

from benchbook.compare.claims import printed_cells
from benchbook.core.published.source import Published
from tests import sources as shared
from tests.compare.cases import read_cases

approx = partial(pytest.approx, abs=6e-4)


@pytest.fixture(scope="module")
def sources() -> dict[str, Published]:
    return shared.every()


@pytest.fixture(scope="module")
def judged(sources: dict[str, Published]) -> dict[str, dict]:
    names = ((source, name) for source in sources.values() for name in source.source.claims)
    return {f"{source.name}/{name}": printed_cells.judge_claim(source, name) for source, name in names}


@pytest.mark.parametrize(("claim", "due"), read_cases("printed_effects").items())
def test_verdicts_and_numbers_are_those_worked_out_by_hand(judged: dict, claim: str, due: list[Any]):
    found = judged[claim]
    shares = [found[key] if found[key] is None else 100 * found[key] for key in ("mean", "low", "high")]
    seen = [found["verdict"], *shares, found["n_inside"], found["n_cells"]]
    for value, expected in zip(seen, due, strict=True):
        assert expected is None or value == (expected if isinstance(expected, str) else approx(expected))


def test_the_twelve_basic_cells_of_the_proxies(judged: dict):
    """Geometric mean -7.724 %; by workload -9.064, -8.542, -5.814 and -7.444 %."""
    cells = judged["tiproxy-haproxy/below-80-percent-cpu"]["beside"][0]["cells"]
    ratios = [1 + cell["value"] for cell in cells]
    assert len(ratios) == 12
    for part, expected in [
        (ratios, -7.724), (ratios[:3], -9.064), (ratios[3:6], -8.542),
        (ratios[6:9], -5.814), (ratios[9:], -7.444),
    ]:  # fmt: skip
        assert 100 * (math.prod(part) ** (1 / len(part)) - 1) == approx(expected)


def test_no_interval_where_nothing_was_repeated(judged: dict):
    assert not [key for found in judged.values() for key in found if key in ("interval", "level", "n", "p")]


def with_value(source: Published, table: str, row: int, metric: str, value: float) -> Published:
    place = (table, row, metric)
    chosen = [(one.table, one.row, one.metric) == place for one in source.numbers]
    assert sum(chosen) == 1
    new = {True: {"value": value, "printed": f"{value:g}"}, False: {}}
    numbers = [one._replace(**new[is_it]) for one, is_it in zip(source.numbers, chosen, strict=True)]
    return dataclasses.replace(source, numbers=numbers)


def test_a_changed_digit_changes_the_verdict(sources: dict[str, Published]):
    """Point select at 20 threads: 43273 for 41273 makes it -3.48 % and the claim holds in all four cells."""
    changed = with_value(sources["tiproxy-haproxy"], "tiproxy-point-select", 1, "qps", 43273)
    assert printed_cells.judge_claim(changed, "below-80-percent-cpu")["verdict"] == "holds"


@pytest.mark.parametrize(
    ("source", "claim", "table", "row", "metric", "says"),
    [
        # An effect, a trend of effects, and a ratio of two metrics, each with one cell that is zero.
        ("tidb-kubernetes", "host-network", "pod-network", 1, "qps", "the baseline is 0 at workload "),
        ("tidb-kubernetes", "zones-with-concurrency", "one-zone", 1, "qps", "the baseline is 0 at "),
        ("tiproxy-haproxy", "cpu-for-a-query", "haproxy-point-select", 1, "qps", "qps is 0 at "),
    ],
)
def test_nothing_is_divided_by_zero(sources, source, claim, table, row, metric, says):
    changed = with_value(sources[source], table, row, metric, 0.0)
    found = printed_cells.judge_claim(changed, claim)
    assert found["verdict"] == "not derivable"
    assert found["reason"].startswith(f"No number: {says}"), found["reason"]
    assert (found["mean"], found["cells"]) == (None, [])
    # What stands beside a claim has no number either, and says why.
    beside = printed_cells.judge_claim(
        with_value(sources["tiproxy-haproxy"], "haproxy-point-select", 1, "qps", 0.0), "below-80-percent-cpu"
    )["beside"][0]
    assert beside["cells"] == [] and beside["problem"].startswith("the baseline is 0 at ")


def test_a_treatment_of_zero_has_an_effect_and_no_growth_over_itself(sources: dict[str, Published]):
    """0 over anything is -100 %, outside its band; a growth over the new value of 0 has no number."""
    changed = with_value(sources["tidb-kubernetes"], "c2-machines", 1, "qps", 0.0)
    found = printed_cells.judge_claim(changed, "c2-machines")
    assert (found["verdict"], found["low"], found["other_base"]) == ("does not hold", -1.0, None)


def test_a_number_published_as_zero_is_no_multiple_of_anything(sources: dict[str, Published]):
    source = sources["mysql-kubernetes"]
    claim = source.source.claims["bare-metal-unit"]
    zero = claim.model_copy(update={"band": claim.band.model_copy(update={"point": 0.0})})
    claims = dict(source.source.claims) | {"bare-metal-unit": zero}
    changed = dataclasses.replace(source, source=source.source.model_copy(update={"claims": claims}))
    cells = printed_cells.judge_claim(changed, "bare-metal-unit")["cells"]
    assert cells and not [cell for cell in cells if "times the published" in cell["arithmetic"]]


def test_two_values_for_one_cell_are_no_number(sources: dict[str, Published]):
    """A second table of the arm, with another value in one cell, makes the claim unanswerable."""
    source = with_value(sources["tidb-kubernetes"], "cos", 1, "qps", 1.0)
    numbers = [
        one._replace(at={**one.at, "arm": "load-balancer"}) if one.table == "cos" else one
        for one in source.numbers
    ]
    found = printed_cells.judge_claim(dataclasses.replace(source, numbers=numbers), "load-balancer")
    assert found["verdict"] == "not derivable"
    assert "contradict each other" in found["reason"]
