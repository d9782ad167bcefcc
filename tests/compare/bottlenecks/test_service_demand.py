"""What arms spent: the cores that the host left them are those that can be full."""

import math

import pandas as pd
import pytest

from benchbook.compare.bottlenecks import service_demand
from benchbook.compare.bottlenecks.service_demand import ArmCell, is_decided, mean_difference, relative_change
from benchbook.core.artifacts.bottlenecks import CellCosts, CostEstimate, PartCost
from tests.compare.cases import read_cases

CASES = read_cases("service_demand")


def made(**changes) -> ArmCell:
    """A cell with nothing but what is given, which no host took time from unless that is given."""
    steal = {"steal": pd.Series([0.0, 0.0, 0.0])}
    return ArmCell(**dict.fromkeys(ArmCell.__dataclass_fields__) | steal | changes)


def test_stolen_time_is_not_the_machines_to_use_and_use_is_a_share_of_what_was_left():
    costs = {
        part: pd.DataFrame({"busy_cores": [busy] * 3}) for part, busy in (("client", 0.3), ("proxy", 0.6))
    }
    cell = made(steal=pd.Series([10.0, math.nan, 0.0]), costs=costs)
    # A tenth of two cores was others'; where nobody looked, all of them were there.
    assert list(cell.left(2.0)) == pytest.approx([1.8, 2.0, 2.0])
    assert list(cell.used(("client", "proxy"), 2.0)) == pytest.approx([0.5, 0.45, 0.45])


@pytest.mark.parametrize(("used", "is_full"), CASES["full"])
def test_cores_are_full_where_no_end_of_the_interval_says_otherwise(used: list[float], is_full: bool | None):
    cell = made(costs={"server": pd.DataFrame({"busy_cores": used})}, rooms=((("server",), 1.0),))
    (place,) = service_demand.core_resources(cell, 0.9)
    assert place.is_full is is_full and place.used.value == pytest.approx(sum(used) / 3)


SEEN = pd.Series([0.98, 1.00, 1.02])


@pytest.mark.parametrize(("predicted", "does"), CASES["predicted"])
def test_what_is_predicted_gives_the_size_of_what_is_seen(predicted: list[float], does: bool):
    assert service_demand.explains_effect(pd.Series(predicted), SEEN, 0.9) is does
    # What is seen must be more than nothing.
    assert not service_demand.explains_effect(pd.Series(predicted), SEEN - [1.4, 0.9, 0.4], 0.9)


def test_differences_and_changes_are_those_of_blocks_that_both_have():
    # 3 - 2, 4 - 2 and 2 - 1 in blocks 1 to 3; block 9 has no partner. Ratios of 1.5, 2 and 2: 1.817.
    treated = pd.Series([3.0, 4.0, 2.0, 7.0], index=[1, 2, 3, 9])
    base = pd.Series([2.0, 2.0, 1.0], index=[1, 2, 3])
    found = mean_difference(treated, base, 0.9)
    assert found is not None and (found.n, found.value) == (3, pytest.approx(4 / 3)) and is_decided(found)
    more = relative_change(treated, base, 0.9)
    assert more is not None and more.value == pytest.approx(6 ** (1 / 3) - 1)
    assert relative_change(treated, base.replace(1.0, 0.0), 0.9) is None
    for difference in (mean_difference, relative_change):
        assert difference(treated, base.rename({1: 5, 2: 6, 3: 7}), 0.9) is None
    # 0.2 ± 0.84 is on neither side of nothing.
    assert not is_decided(mean_difference(pd.Series([0.7, 0.2, -0.3]), pd.Series([0.0, 0.0, 0.0]), 0.9))


def test_cores_against_the_rate_are_a_line():
    """0.09 cores without a query and 25 µs each: 0.115, 0.14 and 0.19 cores at 1,000, 2,000 and 4,000."""

    def cell(rate: float, cores: float) -> CellCosts:
        qps, busy = CostEstimate(value=rate, n=5), CostEstimate(value=cores, n=5)
        proxy = PartCost(part="proxy", busy_cores=busy, a_query={})
        names = {"workload": f"at-{rate:g}", "threads": 16, "arm": "tiproxy"}
        return CellCosts(**names, qps=qps, latency_us=None, parts=(proxy,), places=())

    cells = [cell(1000, 0.115), cell(2000, 0.14), cell(4000, 0.19)]
    assert service_demand.fit_cores(cells, "tiproxy", "proxy") == pytest.approx((0.09, 25.0))
    assert service_demand.fit_cores(cells[:2], "tiproxy", "proxy") is None
