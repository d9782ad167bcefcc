"""Verdicts on the five documents, each against arithmetic done apart from the code."""

import dataclasses

import pytest

from benchbook.compare.claims import printed_cells
from benchbook.core.published.source import Published
from tests import sources as shared


@pytest.fixture(scope="module")
def sources() -> dict[str, Published]:
    return shared.every()


@pytest.fixture(scope="module")
def judged(sources: dict[str, Published]) -> dict[str, dict]:
    return {one["id"]: one for source in sources.values() for one in printed_cells.judge_source(source)}


@pytest.mark.parametrize(
    ("claim", "verdict", "mean", "low", "high", "inside"),
    [
        # Effects in percent at 150, 300, 600, 900, 1200 and 1500 threads; the band is 7 ± 2:
        # 3.89 5.75 6.19 7.68 6.25 6.83, so all but the first.
        ("tidb-kubernetes/host-network", "holds", 6.093, 3.894, 7.680, (5, 6)),
        # 13.56 15.41 13.15 10.41 10.91 9.46, band 9 ± 2.
        ("tidb-kubernetes/ubuntu", "does not hold", 12.130, 9.456, 15.406, (3, 6)),
        # -30.83 -19.09 -12.97 -12.90 -12.19 -6.20, band -36 to -4.
        ("tidb-kubernetes/zones", "holds", -16.075, -30.828, -6.197, (6, 6)),
        # 42.58 55.39 65.62 63.72 65.97 64.08: 50 to 60 is widened by a fifth, to 40 to 72.
        ("tidb-kubernetes/c2-machines", "holds", 59.331, 42.580, 65.969, (6, 6)),
        # Below 320 % of a core: 20 threads of point select, 50 of read only, 100 of write only, 50 of
        # read write: -7.94 -4.86 +0.30 -4.34.
        ("tiproxy-haproxy/below-80-percent-cpu", "does not hold", -4.254, -7.941, 0.305, (3, 4)),
        # CPU for a query over the twelve basic cells, from 1.06 to 1.47.
        ("tiproxy-haproxy/cpu-for-a-query", "holds", 23.821, 6.095, 47.420, (6, 12)),
        # 50 threads only: 56211 / 58014 and 52236 / 56416.
        ("tiproxy-haproxy/capture-mean", "holds", -3.108, -3.108, -3.108, (1, 1)),
        ("tiproxy-haproxy/capture-lowest", "holds", -7.409, -7.409, -7.409, (1, 1)),
        # 96143 and 96048 over 96620; 94692 and 94102 over 95597.
        ("tiproxy-haproxy/idle-connections", "holds", -0.543, -0.592, -0.494, (2, 2)),
        ("tiproxy-haproxy/short-connections", "holds", -1.256, -1.564, -0.947, (2, 2)),
        # Mean of 12 seconds 12266.00 and of 10 seconds 19389.78, both over the mean of 3 seconds 22128.67.
        ("mysql-kubernetes/half-the-throughput", "holds", -44.570, -44.570, -44.570, (1, 1)),
        # Three and ten seconds can't refuse 8 to 12 % by 0.4 points.
        ("mysql-kubernetes/guaranteed-loss", "not derivable", -12.377, -12.377, -12.377, (0, 1)),
        # 23300/8210, 31400/19700, 36200/22440.
        ("tidb-upgrade/growth-in-general", "holds", 93.964, 59.391, 183.800, (3, 3)),
    ],
)
def test_effects(judged: dict, claim: str, verdict: str, mean: float, low: float, high: float, inside: tuple):
    found = judged[claim]
    assert found["verdict"] == verdict
    assert 100 * found["mean"] == pytest.approx(mean, abs=6e-4)
    assert 100 * found["low"] == pytest.approx(low, abs=6e-4)
    assert 100 * found["high"] == pytest.approx(high, abs=6e-4)
    assert (found["n_inside"], found["n_cells"]) == inside


def test_the_twelve_basic_cells_of_the_proxies(judged: dict):
    """Geometric mean -7.724 %; by workload -9.064, -8.542, -5.814 and -7.444 %."""
    cells = judged["tiproxy-haproxy/below-80-percent-cpu"]["beside"][0]["cells"]
    ratios = [1 + cell["value"] for cell in cells]
    assert len(ratios) == 12
    for part, expected in [
        (ratios, -7.724), (ratios[:3], -9.064), (ratios[3:6], -8.542),
        (ratios[6:9], -5.814), (ratios[9:], -7.444),
    ]:  # fmt: skip
        product = 1.0
        for ratio in part:
            product *= ratio
        assert 100 * (product ** (1 / len(part)) - 1) == pytest.approx(expected, abs=6e-4)


def test_every_cell_shows_its_division(judged: dict):
    first = judged["tidb-kubernetes/host-network"]["cells"][0]
    assert first["arithmetic"] == "255981.11 / 246386.44 − 1 = +3.89 %"
    assert first["where"] == "workload oltp_point_select, threads 150"
    assert (first["baseline"]["table"], first["treatment"]["table"]) == ("pod-network", "host-network")


@pytest.mark.parametrize(("threads", "share"), [(64, "+64.76 %"), (256, "+37.26 %"), (512, "+38.01 %")])
def test_a_growth_divided_by_the_new_value_is_named(judged: dict, threads: int, share: str):
    """(23300 - 8210) / 23300 = 64.76 %, published as 64; the growth is 183.8 %."""
    found = judged[f"tidb-upgrade/growth-{threads}-threads"]
    assert found["verdict"] == "does not hold"
    assert share in found["reason"].replace("\xa0", " ") and "divided by the new value" in found["reason"]


def test_22000_is_transactions_not_queries(judged: dict):
    found = judged["mysql-kubernetes/bare-metal-unit"]
    assert found["verdict"] == "does not hold"
    assert found["recomputed"] == "fits TPS, not QPS"
    # (354451.12 + 355955.88 + 351641.13) / 3 / 22000 = 16.09
    assert "16.09" in found["cells"][0]["arithmetic"]


def test_the_cost_of_zones_shrinks_at_every_step(judged: dict):
    assert judged["tidb-kubernetes/zones-with-concurrency"]["n_inside"] == 5
    assert judged["tidb-kubernetes/zones-with-concurrency"]["verdict"] == "holds"


def test_qps_grows_almost_in_proportion_to_vcpus(judged: dict):
    """58508, 104890, 155520, 202134 at 2, 4, 6, 8: slope of logarithms 0.896; 25266.75 / 29254 = 0.8637."""
    found = judged["tiproxy-haproxy/proportional-to-vcpus"]
    assert found["mean"] == pytest.approx(0.8963, abs=1e-4)
    assert "−13.63 % against the first" in found["cells"][-1]["arithmetic"]


def test_servers_for_one_proxy_from_the_cpu_columns(judged: dict):
    """900/190 = 4.737 at the least, 4700/330 = 14.242 at the most; 5 to 12 widened by 2 % is 4.9 to 12.24."""
    found = judged["tiproxy-haproxy/servers-for-one-proxy"]
    assert (found["low"], found["high"]) == (
        pytest.approx(4.7368, abs=1e-4),
        pytest.approx(14.2424, abs=1e-4),
    )
    assert found["verdict"] == "does not hold"


def test_what_no_table_shows_is_not_derivable(judged: dict):
    open_ones = {name for name, found in judged.items() if found["verdict"] == "not derivable"}
    assert {"tidb-kubernetes/tidb-cpu", "tidb-sysbench-howto/column-families"} <= open_ones
    connections = judged["tidb-sysbench-howto/connections"]
    assert connections["verdict"] == "not derivable"
    assert "above 500 (they have 8 to 256)" in connections["reason"]


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


def test_a_table_that_is_another_ones_decides_nothing_and_is_still_shown(judged: dict):
    """-11.94 -13.35 -11.62 -9.43 -9.84 -8.64, but the numbers are those of COS."""
    found = judged["tidb-kubernetes/load-balancer"]
    assert (found["verdict"], found["mean"], found["n_inside"]) == ("not derivable", None, None)
    shares = [round(100 * cell["value"], 2) for cell in found["cells"]]
    assert shares == [-11.94, -13.35, -11.62, -9.43, -9.84, -8.64]
    assert "the table load-balancer is the table cos, number for number" in found["reason"]
    assert judged["tidb-kubernetes/tidb-cpu"]["reason"].startswith("No table has a CPU column")
