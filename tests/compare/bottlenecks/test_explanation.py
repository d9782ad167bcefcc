"""What rules a bottleneck out, each rule by itself; whole sentences are in `test_attribution.py`."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from benchbook.compare.bottlenecks import explanation, service_demand
from benchbook.compare.bottlenecks.service_demand import ArmCell
from tests.compare.cases import read_cases

CASES = read_cases("explanations")
ZEROS = pd.Series([0.0, 0.0, 0.0])


def cell(busy: dict[str, float] | None = None, others: float = 0.0, **values) -> ArmCell:
    """A cell of three blocks whose parts kept so much of cores busy, and other programs so much more."""
    costs = {part: pd.DataFrame({"busy_cores": [used] * 3}) for part, used in (busy or {}).items()}
    defaults = {"steal": ZEROS, "costs": costs, "busy": ZEROS + sum((busy or {}).values()) + others}
    nothing = dict.fromkeys(ArmCell.__dataclass_fields__) | {"has_neighbour": False}
    return ArmCell(**nothing | defaults | values)


def resource(parts: tuple[str, ...], cores: float, is_saturated: bool | None = True, **values):
    return explanation.Resource(cell(**values), "HAProxy", parts, cores, is_saturated)


@pytest.mark.parametrize(("is_saturated", "others", "neighbour", "reason"), CASES["limits"])
def test_what_may_limit_an_arm_beside_latency(is_saturated, others: float, neighbour: bool, reason):
    given = {"busy": {"server": 0.5}, "others": others, "has_neighbour": neighbour}
    slow = resource(("server",), 1.0, is_saturated, **given)
    assert explanation._other_limit([slow], [resource(("server",), 1.0, False)]) == reason


def stops(client: tuple[float, float], server: tuple[float, float]) -> tuple[ArmCell, ArmCell]:
    """Two cells whose parts' threads stop so often a query, in the first and in the second."""

    def make_cell(place: int) -> ArmCell:
        costs = {
            part: pd.DataFrame({"voluntary": each[place] + pd.Series([-0.01, 0.0, 0.01 * (1 + place)])})
            for part, each in (("client", client), ("server", server))
        }
        return cell(costs=costs)

    return make_cell(0), make_cell(1)


@pytest.mark.parametrize(("client", "server", "at"), CASES["waits"])
def test_the_part_that_waits_longer_stops_half_a_time_more(client, server, at: str | None):
    base, treated = stops(client, server)
    assert service_demand.waiting_side(base, treated, True, 0.9) == at
    assert service_demand.waiting_side(treated, base, False, 0.9) == at
    # Behind a proxy stops tell nothing.
    treated.costs["proxy"] = treated.costs["client"]
    assert service_demand.waiting_side(base, treated, True, 0.9) is None


@pytest.mark.parametrize("once", [0.75, 1.5])
def test_once_is_from_three_quarters_to_one_and_a_half(once: float):
    was = pd.Series([once - 0.25, once, once + 0.25])
    base, treated = stops((1.0, 1.0), (1.0, 1.0))
    base.costs["client"] = pd.DataFrame({"voluntary": was})
    treated.costs["client"] = pd.DataFrame({"voluntary": was + pd.Series([0.75, 0.75, 1.0])})
    assert service_demand.waiting_side(base, treated, True, 0.9) == "client"


@pytest.mark.parametrize(("was", "now", "text"), CASES["works"])
def test_work_that_differs_by_a_tenth_is_told(was, now, text: str | None):
    def make_cell(misses: tuple[float, ...]) -> ArmCell:
        table = dict.fromkeys(service_demand.KINDS, ZEROS) | {"llc_misses": pd.Series(misses)}
        return cell(costs={"server": pd.DataFrame(table)}, engine="mariadb")

    works = service_demand.changed_work(make_cell(was), make_cell(now), 0.9)
    message = f"last-level cache misses per query {text}"
    assert [work.description for work in works] == ([] if text is None else [message])
    assert [work.is_more for work in works] == ([] if text is None else [now[0] > was[0]])


def beside(got: float, others: float, qps: float, slow_has: bool = True, fast_has: bool = False):
    """Sentence where a server had a core for itself and now gets so much of it beside others."""

    def make_cell(busy: float, others: float, has_neighbour: bool, us: float) -> explanation.Resource:
        costs = {"server": pd.DataFrame({"busy_cores": [busy] * 3, "cpu_us": [us] * 3})}
        of = replace(cell(costs=costs, has_neighbour=has_neighbour), busy=ZEROS + busy + others)
        return explanation.Resource(of, "A", ("server",), 1.0, True)

    observed = pd.Series([math.log(qps)] * 3) + pd.Series([-0.001, 0.0, 0.001])
    slow, fast = make_cell(got, others, slow_has, 12.0), make_cell(1.0, 0.0, fast_has, 10.0)
    return explanation._from_neighbour([slow], [fast], observed, 0.9)


@pytest.mark.parametrize(("qps", "text"), CASES["left"])
def test_a_neighbour_leaves_what_it_leaves(qps: float, text: str):
    sentence, predicted = beside(0.5, 0.5, qps)
    assert sentence == text
    assert list(predicted) == pytest.approx([math.log(qps)] * 3)


@pytest.mark.parametrize(("got", "others", "has", "is_named"), CASES["neighbours"])
def test_a_neighbour_is_a_cause_where_it_takes_what_is_lacking(got, others, has, is_named: bool):
    assert (beside(got, others, got, *has) is not None) == is_named
