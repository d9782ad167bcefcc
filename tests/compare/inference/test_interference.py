"""What other work on the machine can have done, and which arm it favours."""

import math

import pandas as pd
import pytest

from benchbook.compare.inference import interference
from benchbook.compare.text import labels
from tests.found import runs

FACTS = {
    "direct": {"proxy": None, "machine": {"cores": 2, "congestion_control": "cubic"},
               "moment": {"load_1min": 0.3}},
    "haproxy": {"proxy": {"name": "haproxy"}, "machine": {"cores": 2}, "moment": {"load_1min": 0.4}},
}  # fmt: skip


@pytest.fixture
def names(make_study):
    return labels.readable_names(make_study())


def _runs(**columns):
    """Make two runs of either arm on two cores: 50 % of them used, all of it by the arm."""
    arms = ["direct", "haproxy"] * 2
    table = {
        "run_id": list("abcd"), "arm": arms, "workload": "oltp_point_select", "threads": [1, 1, 16, 16],
        "cpu_client_cores": 0.4, "cpu_proxy_cores": [None, 0.2] * 2, "cpu_server_cores": [0.6, 0.4] * 2,
        "cpu_machine_pct": 50.0, "steal_pct": 0.0, "qps": 1000.0, "sent_server_mib_s": 1.0,
    }  # fmt: skip
    return runs(table, **columns)


def _by_title(runs, names, facts=FACTS, monitor=None):
    return {one.title: one for one in interference.interference_caveats(runs, facts, monitor, names)}


def _facts(**changes):
    return {arm: {**found, **changes} for arm, found in FACTS.items()}


def test_a_quiet_machine_raises_no_doubt_and_says_so_in_one_line(names):
    assert _by_title(_runs(), names) == {}
    assert interference.measure_interference(_runs(), FACTS, None).line == (
        "Load 0.4 on 2 cores before measuring; other programs used less than 0.01 cores during runs; the "
        "host took 0.0\xa0% of the time for others (steal)."
    )


LOADED = _facts(moment={"load_1min": 11.0})


def test_a_load_of_eleven_on_two_cores_favours_the_arm_with_fewer_programs(names):
    # 52 % of 2 cores are 1.04, of which the arm's parts used 1.0.
    found = _by_title(_runs(cpu_machine_pct=52.0), names, LOADED)["Load"]
    assert found.favours == ["direct"]
    assert found.text == (
        "The load was 11.0 on 2 cores before measuring, so other programs, or the start of the arms, "
        "wanted the same cores. During the runs other programs used 0.04 cores. This can favour "
        "direct connections, because fewer programs take part in a query there."
    )


def test_a_load_before_measuring_is_no_doubt_where_the_runs_had_the_machine_for_themselves(names):
    assert "Load" not in _by_title(_runs(), names, LOADED)
    # Where that is not known, or what others used is a doubt of its own, it is told without their use.
    for changed, others in ({"cpu_machine_pct": math.nan}, False), ({"cpu_machine_pct": 90.0}, True):
        found = _by_title(_runs(**changed), names, LOADED)
        assert "During the runs" not in found["Load"].text and ("Other programs" in found) == others


def test_the_doubt_and_the_line_have_one_number_of_what_others_used(names):
    # Of 2 cores nothing, 0.04, 0.20 beside the A/A twin and 0.04; 0.07 in the mean.
    runs = _runs(cpu_machine_pct=[50.0, 52.0, 60.0, 52.0])
    runs["arm"] = ["direct", "haproxy", "direct_again", "haproxy"]
    assert "During the runs other programs used 0.07 cores." in _by_title(runs, names, LOADED)["Load"].text
    assert (
        "other programs used 0.07 cores during runs"
        in interference.measure_interference(runs, LOADED, None).line
    )


def test_other_programs_that_ran_beside_one_arm_favour_the_other(names):
    # 90 % of 2 cores are 1.8, of which the arm's parts used 1.0.
    found = _by_title(_runs(cpu_machine_pct=[50.0, 90.0] * 2), names)["Other programs"]
    assert found.favours == ["direct"]
    assert "less than 0.01 cores beside direct connections and 0.80 cores beside HAProxy, of 2 " in found.text
    alike = _by_title(_runs(cpu_machine_pct=90.0), names)["Other programs"]
    assert (alike.favours, alike.text.endswith("No arm is known to gain by it.")) == ([], True)


def test_an_arms_own_neighbour_is_no_other_program(names, make_study):
    busy = _runs(cpu_machine_pct=[50.0, 90.0] * 2)
    assert interference.interference_caveats(busy, FACTS, None, names, ["haproxy"]) == []
    # 0.8 cores beside HAProxy are its neighbour's and not measured; beside direct connections nobody ran.
    assert interference.measure_interference(busy, FACTS, None, ["haproxy"]).others_cores == 0.0
    assert interference.measure_interference(busy, FACTS, None, ["direct", "haproxy"]).others_cores is None
    beside = make_study(arms={"direct": {}, "haproxy": {"access": "haproxy", "neighbour": {"processes": 1}}})
    assert interference.arms_with_side_load(beside) == ["haproxy"]


def test_pressure_counts_only_where_the_arms_own_threads_cant_explain_it(names):
    def monitor(run):
        return pd.DataFrame({"run_id": [run] * 3, "part": "machine", "psi_cpu_pct": [40.0, 60.0, 50.0]})

    found = _by_title(_runs(), names, monitor=monitor("a"))["CPU pressure"]
    assert (
        "In runs of all arms on point selects at 1 thread, some task waited for a core 50 % of the time "
        "(PSI), while other programs used less than 0.01 cores." in found.text
    )
    assert "CPU pressure" not in _by_title(_runs(), names, monitor=monitor("d"))


def test_steal_names_the_arm_that_lost_less(names):
    found = _by_title(_runs(steal_pct=[1.0, 6.0] * 2), names)["Steal"]
    assert found.favours == ["direct"]
    assert "1.0 % in runs of direct connections and 6.0 % in runs of HAProxy" in found.text


def test_bbr_is_a_doubt_only_where_results_are_large(names):
    paced = _facts(machine={"cores": 2, "congestion_control": "bbr"})
    assert "BBR" not in _by_title(_runs(), names, paced)
    # 200 MiB/s over 1,000 queries a second are 204.8 KiB a query.
    found = _by_title(_runs(sent_server_mib_s=200.0), names, paced)["BBR"]
    assert found.favours == ["haproxy"]
    assert "205 KiB a query on point selects" in found.text
    assert "BBR" not in _by_title(_runs(sent_server_mib_s=200.0), names)


def test_what_is_not_known_is_left_out(names):
    bare = _runs(cpu_machine_pct=math.nan, sent_server_mib_s=math.nan, steal_pct=math.nan)
    assert _by_title(bare, names, {}) == {}
    assert interference.measure_interference(bare, {}, None).line == "Nothing was recorded about it."


def test_in_turns_the_machine_was_busy_for_all_arms_of_a_group(names):
    """direct used 1.0 and HAProxy 1.8 cores in their own turns; the machine 70 % of 2 cores, their mean."""
    shared = _runs(
        cpu_proxy_cores=[None, 1.0] * 2, cpu_machine_pct=70.0, order="turns", block=1,
        group=["b1-t1", "b1-t1", "b1-t16", "b1-t16"],
    )  # fmt: skip
    assert _by_title(shared, names) == {}
    # One and the same run order by order: 1.4 cores beside direct's 1.0 leave 0.4, beside HAProxy's 1.8 none.
    assert "Other programs" in _by_title(shared.assign(order="runs"), names)


def test_in_turns_the_size_of_results_is_what_the_monitor_saw(names):
    paced = _facts(machine={"cores": 2, "congestion_control": "bbr"})
    monitor = pd.DataFrame(
        {"run_id": list("abcd"), "part": "server", "sent_mib_s": 200.0, "psi_cpu_pct": None}
    )
    assert "205 KiB a query" in _by_title(_runs(sent_server_mib_s=None), names, paced, monitor)["BBR"].text


@pytest.mark.parametrize(("load", "is_told"), [(1.9, False), (2.0, True)])
def test_as_many_programs_as_cores_are_a_load(names, load: float, is_told: bool):
    found = _by_title(_runs(cpu_machine_pct=52.0), names, _facts(moment={"load_1min": load}))
    assert ("Load" in found) == is_told


@pytest.mark.parametrize(
    ("used_pct", "is_told", "favours"),
    [
        # A tenth of two cores is 0.2: the arms' own 1.0 are 50 % of the machine, so 60 % hold it.
        ([59.5, 59.5], False, []),
        ([60.0, 60.0], True, []),
        # A twentieth is 0.1 core, by which arms may differ: 5 % of the machine. More of it favours one.
        ([50.0, 54.9], False, []),
        ([50.0, 55.0], True, []),
        ([50.0, 55.5], True, ["direct"]),
    ],
)
def test_a_tenth_of_the_cores_is_much_and_a_twentieth_of_them_apart(names, used_pct, is_told, favours):
    found = _by_title(_runs(cpu_machine_pct=used_pct * 2), names)
    assert ("Other programs" in found) == is_told
    assert not is_told or found["Other programs"].favours == favours


@pytest.mark.parametrize(("pressure", "is_told"), [(24.9, False), (25.0, True)])
def test_a_quarter_of_the_time_is_pressure(names, pressure: float, is_told: bool):
    monitor = pd.DataFrame({"run_id": ["a", "b"], "part": "machine", "psi_cpu_pct": pressure})
    assert ("CPU pressure" in _by_title(_runs(), names, monitor=monitor)) == is_told


@pytest.mark.parametrize(
    ("steal", "is_told", "favours"),
    [
        ([0.0, 0.9], False, []),
        ([0.0, 1.0], True, []),
        ([1.1, 0.0], True, ["haproxy"]),
        ([interference.STEAL_PCT - 0.1] * 2, False, []),
        ([interference.STEAL_PCT] * 2, True, []),
    ],
)
def test_a_point_of_steal_apart_is_told_and_more_of_it_favours_an_arm(names, steal, is_told, favours):
    found = _by_title(_runs(steal_pct=steal * 2), names)
    assert ("Steal" in found) == is_told and (not is_told or found["Steal"].favours == favours)


@pytest.mark.parametrize(("sent", "is_told"), [(15.6, False), (15.625, True)])
def test_results_of_16_kib_are_large(names, sent: float, is_told: bool):
    """15.625 MiB/s over 1,000 queries a second are 16 KiB a query."""
    paced = _facts(machine={"cores": 2, "congestion_control": "bbr"})
    assert ("BBR" in _by_title(_runs(sent_server_mib_s=sent), names, paced)) == is_told
