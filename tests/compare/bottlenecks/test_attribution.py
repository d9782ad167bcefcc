"""Bottlenecks: named where utilization and service demand carry an effect, and withheld where they do not."""

from typing import Any

import pandas as pd
import pytest

from benchbook.compare.bottlenecks import attribution, service_demand
from benchbook.compare.bottlenecks.operational_laws import list_violations as told_broken
from benchbook.core.study.sysbench_workloads import ROW_BYTES
from tests.compare.cases import assert_cases, read_cases
from tests.goldens import assert_golden

LEVEL = 0.98
NAMES = {"direct": "direct connections", "haproxy": "HAProxy"}
# Five blocks that differ by some tenths of a per cent, so that there are intervals.
WOBBLE = (1.0, 1.002, 0.998, 1.001, 0.999)


def facts(server=(0,), client=(1,), **more):
    """Return what an arm on this machine tells of its cores; client and proxy share theirs."""
    cpu = {part: {"cores": list(client)} for part in ("client", "proxy")} | {
        "server": {"cores": list(server)}
    }
    return {"site": {"kind": "local"}, "machine": {"cores": 2}, "cpu": cpu, "proxy": None, **more}


def tables(make_runs, threads, **arms):
    """Build runs and costs from {arm: (qps, {part: µs a query}, {column: value of the server})}."""
    ratios = {arm: {threads: [1.0] * 5} for arm in arms if arm != "direct"}
    runs = make_runs(ratios, order="runs", turn_ms=None, ignored_errors=0, reconnects=0)
    rows, rates, used = [], [], []
    for run in runs.to_dict("records"):
        qps, parts, work = arms[run["arm"]]
        # Each arm goes through the same five values in another order: means stay, and ratios have a spread.
        shift = run["block"] + list(arms).index(run["arm"])
        rates.append(qps * WOBBLE[shift % 5])
        for part, cpu_us in parts.items():
            cost = cpu_us * WOBBLE[2 * shift % 5]
            row = dict.fromkeys((*service_demand.COLUMNS, "threads", "first_read_bytes"), float("nan"))
            row |= {
                "run_id": run["run_id"],
                "part": part,
                "busy_cores": rates[-1] * cost / 1e6,
                "cpu_us": cost,
            }
            rows.append(row | (work if part == "server" else {}))
        used.append(sum(row["busy_cores"] for row in rows[-len(parts) :]))
    # Both cores as /proc/stat has them, with two hundredths of one for programs that are no part.
    runs = runs.assign(qps=rates, steal_pct=0.0, cpu_machine_pct=[50 * (busy + 0.02) for busy in used])
    return runs, pd.DataFrame(rows)


def cause(make_runs, make_study, case, told=None, **arms):
    runs, costs = tables(make_runs, case["threads"], **arms)
    runs.loc[runs["arm"] == "haproxy", "cpu_machine_pct"] += 50 * case.get("neighbour", 0.0)
    study = make_study(threads=(case["threads"],))
    told = told or {"direct": facts(), "haproxy": facts(proxy={"name": "haproxy"})}
    return attribution.build_causes(study, runs, costs, told, LEVEL, NAMES)


DIRECT = (30_000, {"client": 20.0, "server": 32.0}, {})


def arms_of(case):
    return {arm: (case[arm]["qps"], case[arm]["cpu_us"], case[arm].get("work", {})) for arm in NAMES}


def test_a_bottleneck_is_named_where_utilization_and_demand_account_for_the_effect(make_runs, make_study):
    answers = []
    for name, case in read_cases("bottlenecks").items():
        arms = arms_of(case)
        has_proxy = {arm: "proxy" in arms[arm][1] or case[arm].get("hides_proxy") for arm in arms}
        told = {arm: facts(proxy={"name": "haproxy"} if has_proxy[arm] else {}) for arm in arms}
        for arm, quota in zip(told, case.get("quotas", ()), strict=False):
            told[arm]["cpu"]["server"]["quota_cores"] = quota
        if "neighbour" in case:
            told["haproxy"]["neighbour"] = {"processes": 1}
        (one,) = cause(make_runs, make_study, case, told, **arms).contrasts
        answers.append(f"{name}\n  {one.sentence or f'none: {one.reason}'}\n")
    assert_golden("bottlenecks.txt", "\n".join(answers))


def test_numbers_of_a_bottleneck_are_those_of_its_blocks(make_runs, make_study):
    haproxy = (41_700, {"client": 8.0, "proxy": 14.0, "server": 23.0}, {})
    (one,) = cause(make_runs, make_study, {"threads": 8}, direct=DIRECT, haproxy=haproxy).contrasts
    assert one.quantity == "capacity" and one.full == {"direct": ("server",), "haproxy": ("server",)}
    assert one.cost["server"].value == pytest.approx(23 / 32 - 1, abs=1e-6)
    assert one.predicted.value == pytest.approx(32 / 23 - 1, abs=1e-6)


def varied(make_runs, make_study, arms, threads=1, told=None, of_client=None, **queued):
    """Cause of two arms whose counts differ a little from block to block, so that they have intervals.

    `of_client` is how often the client stops a query, by arm; `queued` fills what waits for a core.
    """
    runs, costs = tables(make_runs, threads, **arms)
    if of_client is not None:
        arm_of = dict(zip(runs["run_id"], runs["arm"], strict=True))
        client = costs["part"] == "client"
        costs.loc[client, "voluntary"] = costs.loc[client, "run_id"].map(arm_of).map(of_client)
    costs = costs.fillna(queued)
    for name in ("voluntary", "page_reads", "read_bytes", "row_reads", "wait_us"):
        costs[name] *= [1 + 0.001 * (place % 7) for place in range(len(costs))]
    told = told or {arm: facts() for arm in arms}
    names, study = {**NAMES, "haproxy": "load balancer"}, make_study(threads=(threads,))
    return attribution.build_causes(study, runs, costs, told, LEVEL, names).contrasts[0]


def slower(was, now):
    """Two arms of which one takes 150 µs longer a query, all of it off the CPU, with the server's counts."""
    parts = {"client": 20.0, "server": 32.0}
    return {"direct": (10_000, parts, was), "haproxy": (4_000, parts, now)}


def test_an_added_latency_is_named_by_what_it_consists_of(make_runs, make_study):
    def describe(case: dict[str, Any]) -> list[str]:
        arms = arms_of(case)
        told = {arm: facts(proxy={"name": "haproxy"} if "proxy" in arms[arm][1] else {}) for arm in arms}
        given = {key: case[key] for key in ("threads", "of_client", "wait_us") if key in case}
        one = varied(make_runs, make_study, arms, told=told, **given)
        return [one.sentence, one.short]

    assert_cases("added_latency", describe)


def test_what_one_engine_counts_is_not_held_against_what_another_one_does(make_runs, make_study):
    arms = slower({"row_reads": 1.0}, {"row_reads": 3.0})
    assert len(varied(make_runs, make_study, arms).beside) == 1
    told = {"direct": facts(engine={"name": "mariadb"}), "haproxy": facts(engine={"name": "postgresql"})}
    assert varied(make_runs, make_study, arms, told=told).beside == ()


def test_runs_that_a_full_client_set_aside_are_told_by_their_levels():
    voids = pd.DataFrame({
        "threads": [8, 64, 64],
        "reasons": ["V16: 9 % of the time was stolen", "V15: the client used 97 % of its cores", ""],
    })  # fmt: skip
    assert attribution.set_aside(voids) == [64]
    assert attribution.set_aside(voids[:1]) == attribution.set_aside(voids[:0]) == []


def test_books_that_break_physics_are_a_doubt(make_runs, make_study):
    answers = []
    for title, case in read_cases("physics").items():
        threads, told = case.get("threads", 8), case.get("facts", {"haproxy": {"proxy": {"name": "haproxy"}}})
        runs, costs = tables(make_runs, threads, **arms_of(case))
        runs["cpu_machine_pct"] *= case.get("machine", 1.0)
        costs["first_read_bytes"] = case.get("first_read", float("nan"))
        study = make_study(threads=(threads,), **({"arms": case["arms"]} if "arms" in case else {}))
        here = {arm: facts(**told.get(arm, {})) for arm in NAMES}
        found = attribution.build_causes(study, runs, costs, here, LEVEL, NAMES, rows=100)
        broken = [f"{law.law}: {law.detail}" for law in found.physics if law.passed is False]
        assert len(told_broken(found)) == len(broken)
        answers.append("\n  ".join([title, *broken]))
    assert_golden("physics.txt", "\n\n".join(answers) + "\n")
    assert told_broken(None) == []


def test_without_costs_there_are_no_causes(make_runs, make_study):
    runs, costs = tables(make_runs, 8, direct=(1e4, {"server": 9.0}, {}), haproxy=(1e4, {"server": 9.0}, {}))
    assert attribution.build_causes(make_study(threads=(8,)), runs, None, {}, LEVEL, NAMES) is None
    assert attribution.build_causes(make_study(threads=(8,)), runs, costs[:0], {}, LEVEL, NAMES) is None


def test_at_a_rate_that_is_asked_for_a_query_has_a_cost_and_no_effect_a_cause(make_runs, make_study):
    # The proxy takes 40 us of a query in one arm and 60 in the other: half as much again.
    arms = {
        "direct": (1000, {"client": 20.0, "proxy": 40.0, "server": 32.0}, {}),
        "haproxy": (1000, {"client": 20.0, "proxy": 60.0, "server": 32.0}, {}),
    }
    runs, costs = tables(make_runs, 8, **arms)
    study = make_study(threads=(8,), workloads={"oltp_point_select": {"rate": 1000}})
    told = {arm: facts(proxy={"name": "haproxy"}) for arm in arms}
    (one,) = attribution.build_causes(study, runs, costs, told, LEVEL, NAMES).contrasts
    assert (one.quantity, one.qps, one.sentence) == ("cost", None, None)
    assert one.cost["proxy"].value == pytest.approx(0.5, abs=0.01) and one.cost["proxy"].low > 0.45
    assert one.added_cpu_us.value == pytest.approx(20, abs=0.5)


@pytest.mark.parametrize(
    ("cpu", "rooms"),
    [
        # Parts on the same cores share them; a quota is a part's own, and no more than its cores.
        ({"client": {"cores": [2, 3]}, "proxy": {"cores": [2, 3]}, "server": {"cores": [0]}},
         ((("client", "proxy"), 2.0), (("server",), 1.0))),
        ({"client": {"cores": [1]}, "proxy": {"cores": [1], "quota_cores": 0.5}, "server": {"cores": [1]}},
         ((("client", "server"), 1.0), (("proxy",), 0.5))),
        ({"client": {}, "proxy": {"quota_cores": 9.0}}, ((("client", "server"), 4.0), (("proxy",), 4.0))),
    ],
)  # fmt: skip
def test_rooms_are_the_cores_that_parts_share_and_the_quotas_they_have(cpu, rooms):
    here = {"site": {"kind": "local"}, "machine": {"cores": 4}, "cpu": cpu}
    assert attribution._core_groups(here, ("client", "proxy", "server")) == rooms
    elsewhere = {**here, "site": {"kind": "kubernetes"}}
    assert attribution._core_groups(elsewhere, ("client", "proxy", "server")) == ()


def test_where_nobody_says_how_many_cores_there_are_there_are_no_rooms():
    known = {"client": {"cores": [1]}, "server": {"cores": [0, 2]}}
    bare = {"site": {"kind": "local"}, "cpu": known}
    assert attribution._core_groups(bare, ("client", "server")) == ((("client",), 1.0), (("server",), 2.0))
    assert attribution._core_groups({**bare, "cpu": {}}, ("client", "server")) == ()


def test_data_fit_into_a_pool_of_twice_their_size():
    def told(got):
        return {"engine": {"settings": {"innodb_buffer_pool_size": {"got": got}}}}

    twice, fits = 2 * ROW_BYTES * 1000, attribution._is_in_memory
    assert fits(1000, told(twice)) and fits(1000, told(str(twice))) and not fits(1000, told(twice - 1))
    assert not (fits(None, told(twice)) or fits(1000, told("8M")) or fits(1000, {}))
