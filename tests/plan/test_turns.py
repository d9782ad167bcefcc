"""Which studies take turns, how long a turn is, and whose it is."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from benchbook.core.study import interleaving as words
from benchbook.core.study.model import PlannedRun
from benchbook.core.study.study import StudySpec
from benchbook.plan import earlier_rules, order, pilot_parameters, schedule
from tests.installed import package
from tests.plan.test_schedule import make
from tests.read.corpus import PLAN


def closed(**changes: Any) -> StudySpec:
    return make(**changes | {"plan": {"order": None, **changes.get("plan", {})}})


def orders(study: StudySpec) -> dict[str, str]:
    return {run.workload: run.order for run in schedule.plan_runs("s", study, {})}


def test_a_closed_loop_on_this_machine_takes_turns_and_each_run_names_its_partners():
    runs = schedule.plan_runs("s", closed(aa={"threads": (4,)}), {})
    assert {run.order for run in runs} == {"turns"} and {run.turn_ms for run in runs} == {20}
    assert {run.partners for run in runs if run.threads == 4} == {("direct", "direct_again", "proxy")}
    assert {run.partners for run in runs if run.threads == 1} == {("direct", "proxy")}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"arms": {"a": {}, "b": {"clients": 2}}, "threads": (2, 4)}, "arms.b.clients"),
        ({"arms": {"a": {"zones": {"latency_ms": 0}}, "b": {"zones": {"latency_ms": 11}}}}, "arms.b.zones"),
        ({"arms": {"a": {}, "b": {"access": "tiproxy", "capture": True}}}, "arms.b.capture"),
        ({"workloads": {"oltp_point_select": {"rate": 50}}}, "workloads.oltp_point_select.rate"),
        ({"workloads": {"oltp_insert": {}}}, "workloads.oltp_insert"),
        ({"workloads": {"oltp_point_select": {"order": "runs"}}}, "workloads.oltp_point_select.order"),
        ({"plan": {"run_s": 600}}, "plan.run_s"),
        ({"threads": (1, 250)}, "threads: 250"),
        ({"engine": {"name": "tidb"}}, "engine.name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_turns_would_falsify_is_measured_in_whole_runs_and_named(changes: dict[str, Any], named: str):
    study = closed(**changes)
    assert set(orders(study).values()) == {"runs"}
    line = next(line for line in schedule.describe_plan("s", study).splitlines() if "  order " in line)
    assert f"because turns can't be had: {named}" in line
    with pytest.raises(ValidationError, match=f"plan.order: turns: {named}.*write order: runs"):
        closed(**changes | {"plan": changes.get("plan", {}) | {"order": "turns"}})


def test_one_workload_may_take_turns_beside_one_that_cant():
    study = closed(workloads={"oltp_point_select": {}, "oltp_read_only": {"rate": 50}})
    assert orders(study) == {"oltp_point_select": "turns", "oltp_read_only": "runs"}


def test_engines_of_their_own_take_turns_also_where_none_could_be_shared():
    arms = {"a": {"engine": {"version": "5.0"}}, "b": {"engine": {"version": "6.6"}}}
    assert set(orders(closed(arms=arms, engine={"name": "tidb"})).values()) == {"turns"}


def test_a_tidb_of_its_own_takes_turns_with_a_twin_that_has_one_too():
    arms = {"a": {"engine": {"version": "5.0"}}, "b": {"engine": {"version": "6.6"}}}
    study = closed(arms=arms, aa={}, engine={"name": "tidb"})
    assert set(orders(study).values()) == {"turns"} and words.has_separate_twin(study)
    assert not words.has_separate_twin(closed(aa={})), "MariaDB's arms share a server"


def test_a_twin_with_a_tidb_of_its_own_serves_as_much_as_the_baseline():
    arms = {"a": {"engine": {"version": "5.0"}}, "b": {"engine": {"version": "6.6"}}}
    workloads = {"oltp_point_select": {}, "oltp_read_only": {}}
    tidb = {"arms": arms, "engine": {"name": "tidb"}, "workloads": workloads}
    part = {"workloads": ("oltp_read_only",), "threads": (4,)}
    first, second = words.find_misleading(closed(**tidb, aa=part))
    assert first.startswith("aa.workloads: ['oltp_read_only']: ") and second.startswith("aa.threads: [4]: ")
    assert first.endswith("write aa: {}, or plan.order: runs")
    (only,) = words.find_misleading(closed(**tidb, aa={"threads": (4,)}))
    assert only == second
    everything = {"workloads": tuple(workloads), "threads": (1, 4)}
    for fine in ({"aa": {}}, {"aa": None}, {"aa": everything}, {"aa": part, "plan": {"order": "runs"}}):
        assert not list(words.find_misleading(closed(**tidb | fine))), fine
    assert not list(words.find_misleading(closed(aa={"threads": (4,)}))), "the twin is MariaDB's own server"


POD = {"pod": {"network": "pod"}, "host": {}}


def test_a_proxy_whose_children_do_its_work_gets_whole_runs(tmp_path: Path):
    """As nginx in turns: its master stood still, its workers went on, and V26 made each run invalid."""
    with package(tmp_path):
        arms = {"direct": {}, "behind": {"access": "socat"}}
        assert set(orders(closed(arms=arms)).values()) == {"runs"}
        with pytest.raises(ValidationError, match=r"arms\.behind\.access: socat: processes that it starts"):
            closed(arms=arms, plan={"order": "turns"})


def in_cluster(here: dict[str, Any] | None = None, **changes: Any) -> StudySpec:
    site = {"kind": "kubernetes", "kubernetes": here or {}}
    plan = {"order": "turns", **changes.pop("plan", {})}
    asked = {"arms": POD, "workloads": {"oltp_point_select": {}}, **changes}
    return closed(site=site, plan=plan, **asked)


def test_a_cluster_takes_turns_where_a_study_asks_for_them_and_not_unasked():
    assert set(orders(in_cluster()).values()) == {"turns"}
    assert set(orders(in_cluster(plan={"order": None})).values()) == {"runs"}
    shared = {"direct": {"network": "pod"}, "service": {"network": "pod", "access": "service"}}
    written = in_cluster(arms=shared, workloads={"oltp_read_write": {}}, aa={})
    assert set(orders(written).values()) == {"turns"}


def test_arms_that_differ_in_access_alone_share_a_server_and_those_with_other_settings_do_not():
    insert = {"oltp_insert": {}}
    own = {"a": {}, "b": {"engine": {"settings": {"innodb_flush_log_at_trx_commit": 2}}}}
    assert orders(closed(arms=own, workloads=insert)) == {"oltp_insert": "turns"}
    assert orders(closed(arms=own, workloads=insert, aa={})) == {"oltp_insert": "runs"}


def test_sysbench_is_asked_for_the_seconds_of_all_arms_and_of_the_edges():
    plan = PlannedRun.of(PLAN | {"discard_s": 1, "run_s": 10})
    assert words.clock_seconds(plan) == (1, 10)
    # Three arms: 3 x 1 s of discard; 3 x 10 s x 1.03 for switching + 0.5 s at the edges = 31.4, rounded up.
    in_turns = replace(plan, order="turns", turn_ms=50, partners=("a", "b", "c"))
    assert words.clock_seconds(in_turns) == (3, 32)
    # To switch takes 2 ms of each turn of 20 ms: 30 s x 1.1 + 0.5 s = 33.5.
    assert words.clock_seconds(replace(in_turns, turn_ms=20)) == (3, 34)


def test_a_study_that_grows_keeps_its_turns_and_one_more_arm_takes_them_anew():
    before = {run.run_id for run in schedule.plan_runs("s", closed(), {})}
    more = {run.run_id for run in schedule.plan_runs("s", closed(threads=(1, 4, 16)), {})}
    assert before <= more
    arms = {"direct": {}, "proxy": {"access": "haproxy"}, "more": {"access": "service"}}
    assert not before & {run.run_id for run in schedule.plan_runs("s", closed(arms=arms), {})}


def pilots(**rates: float) -> pd.DataFrame:
    """Return pilots of the reading workload at 10,000 and 40,000 a second, of the writing one as given, which
    sends 20 statements a transaction."""
    seen = [("direct", "oltp_point_select", 4, 40_000.0), ("proxy", "oltp_point_select", 1, 10_000.0)]
    seen += [("proxy", "oltp_read_write", int(level[1:]), rate) for level, rate in rates.items()]
    table = pd.DataFrame(seen, columns=["arm", "workload", "threads", "tps"])
    statements = table.workload.map({"oltp_point_select": 1, "oltp_read_write": 20})
    return table.assign(qps=table.tps * statements, starting_s=np.nan)


def test_a_turn_holds_a_transaction_of_the_slowest_arm_at_its_thread_level():
    # 1 thread at 50/s: 20 ms. 16 threads at 200/s: 80 ms. At 4 threads, half way between the logarithms of 1
    # and 16: sqrt(20 x 80) = 40 ms, a statement 2 ms, so ten of them need less.
    study = closed(threads=(1, 4, 16))
    settled = pilot_parameters.settle_turns(study, pilots(t1=50.0, t16=200.0))
    writing = [row for row in settled if row["workload"] == "oltp_read_write"]
    assert [(row["threads"], row["turn_ms"]) for row in writing] == [(1, 20), (4, 50), (16, 100)]
    assert (writing[1]["transaction_ms"], writing[1]["statement_ms"]) == pytest.approx((40.0, 2.0))
    runs = schedule.plan_runs("s", study, {}, {"rules": words.RULES, "turns": settled})
    assert {(run.workload, run.threads, run.turn_ms) for run in runs} == {
        ("oltp_point_select", 1, 20), ("oltp_point_select", 4, 20), ("oltp_point_select", 16, 50),
        ("oltp_read_write", 1, 20), ("oltp_read_write", 4, 50), ("oltp_read_write", 16, 100),
    }  # fmt: skip


def test_a_turn_holds_ten_statements_where_a_transaction_has_fewer():
    # 4 threads at 400/s: 10 ms a statement and a transaction, 100 ms for ten.
    slow = pilots().assign(tps=400.0, qps=400.0, threads=4)
    settled = pilot_parameters.settle_turns(closed(threads=(4,)), slow)
    assert [(row["workload"], row["turn_ms"]) for row in settled] == [("oltp_point_select", 100)]


def test_turns_are_longer_where_threads_are_many_and_clients_get_the_time_in_which_they_start():
    # Pilots of 0.05 s beside their clock at 4 threads and 0.25 s at 64: three arms, the twin among them, that
    # start at once take 3 x 0.05 and 3 x 0.25 s. 0.2 + 0.15 s are within 0.5 s, 0.2 + 0.75 s take a whole.
    # At 34 threads, half way: 0.45 s, with 0.2 s to the half second above 1 s.
    arms = [(arm, level, beside) for arm in ("direct", "proxy") for level, beside in ((4, 0.05), (64, 0.25))]
    columns = ["arm", "workload", "threads", "tps", "starting_s"]
    seen = [(arm, "oltp_point_select", level, 20_000.0, beside) for arm, level, beside in arms]
    study = closed(threads=(4, 34, 64, 128), workloads={"oltp_point_select": {}})
    table = pd.DataFrame(seen, columns=columns).assign(qps=20_000.0)
    settled = pilot_parameters.settle_turns(study, table)
    assert [(row["threads"], row["starting_s"], row.get("edge_s")) for row in settled] == [
        (4, 0.15, None), (34, 0.45, 1.0), (64, 0.75, 1.0), (128, 0.75, 1.0)
    ]  # fmt: skip
    # A transaction of 64 threads takes 3.2 ms, ten 32 ms; 1.5 ms a thread: 6, 51, 96 and 192 ms.
    assert [row["turn_ms"] for row in settled] == [20, 100, 100, 200]
    runs = schedule.plan_runs("s", study, {}, {"turns": settled})
    plans = {run.threads: run for run in runs}
    assert "edge_s" not in plans[4].to_dict() and plans[64].to_dict()["edge_s"] == 1.0
    # Two arms for 30 s: in turns of 20 ms 66 + 0.5 s, in longer ones 61.8 + 1.5 s, to the second above.
    assert words.clock_seconds(replace(plans[4], partners=("a", "b")))[1] == 67
    assert words.clock_seconds(replace(plans[64], partners=("a", "b"), edge_s=1.5))[1] == 64


def test_a_level_whose_transactions_are_too_long_takes_slow_turns_or_whole_runs_by_itself():
    # 4 threads at 5/s: 800 ms a transaction. At 1/s: 4 s, beyond the longest turn.
    for rate, length, order_of in ((5.0, 1000, "turns"), (1.0, 0, "runs")):
        slow = {
            "rules": words.RULES,
            "turns": pilot_parameters.settle_turns(closed(), pilots(t1=500.0, t4=rate)),
        }
        runs = {(run.workload, run.threads): run for run in schedule.plan_runs("s", closed(), {}, slow)}
        assert runs[("oltp_read_write", 4)].order == order_of
        assert runs[("oltp_read_write", 4)].turn_ms == length
        assert runs[("oltp_read_write", 1)].turn_ms == 20
        took = f"a transaction took {round(4000 / rate, 3):g} ms"
        how = f"turns of {length} ms" if length else "whole runs, not turns"
        assert schedule.orders_of_levels(closed(), slow) == [f"oltp_read_write, 4 threads: {how}: {took}"]
    asked = schedule.plan_runs("s", closed(plan={"turn_ms": 100}), {}, slow)
    assert {run.turn_ms for run in asked} == {100}


def test_a_burst_of_another_program_in_a_pilot_makes_no_longer_turns():
    seen = pilots(t1=500.0, t4=500.0)
    burst = seen.assign(tps=1.0, qps=1.0)
    settled = pilot_parameters.settle_turns(closed(), pd.concat([burst, seen]))
    assert settled == pilot_parameters.settle_turns(closed(), seen)


def test_sessions_of_before_keep_the_orders_and_lengths_that_they_were_measured_in():
    """Without `rules` in warm_up.json: turns of 50 to 500 ms, one order a workload, no slow turns."""
    lengths = {("oltp_point_select", 1): 50, ("oltp_point_select", 4): 50, ("oltp_read_write", 1): 50}
    settled = pilot_parameters.settle_turns(closed(), pilots(t1=500.0, t4=40.0))
    before = {"turns": [row | {"turn_ms": lengths.get((row["workload"], row["threads"]))} for row in settled]}
    lifted = earlier_rules.lift_warm_up(closed(), before)
    runs = {(run.workload, run.threads): run for run in schedule.plan_runs("s", closed(), {}, lifted)}
    assert {runs["oltp_read_write", level].order for level in (1, 4)} == {"runs"}
    assert runs["oltp_point_select", 4].turn_ms == 50
    quota = closed(arms={"a": {}, "b": {"cpu": {"server": {"quota": 0.5}}}})
    lifted = earlier_rules.lift_warm_up(quota, {"turns": []})
    assert {run.order for run in schedule.plan_runs("s", quota, {}, lifted)} == {"runs"}


@pytest.mark.parametrize(
    ("other", "arm", "turn_ms"),
    [
        ({}, {"cpu": {"server": {"quota": 0.5}}}, 500),
        ({}, {"neighbour": {"processes": 1}}, 200),
        ({}, {"qos": "guaranteed"}, 200),
        ({"zones": {"latency_ms": 0}}, {"zones": {"latency_ms": 0.5}}, 100),
        # 100 times the way there and back.
        ({"zones": {"latency_ms": 0}}, {"zones": {"latency_ms": 2.5}}, 500),
    ],
    ids=str,
)
def test_what_goes_on_by_the_clock_takes_slow_turns_and_the_plan_says_why(other, arm, turn_ms):
    study = closed(arms={"a": other, "b": arm})
    assert {(run.order, run.turn_ms) for run in schedule.plan_runs("s", study, {})} == {("turns", turn_ms)}
    line = next(line for line in schedule.describe_plan("s", study).splitlines() if "  order " in line)
    assert f"slow turns of {turn_ms} ms or more" in line and f".{next(iter(arm))}" in line
    with pytest.raises(ValidationError, match=rf"plan.turn_ms: 50: arms\..*write {turn_ms} or more"):
        closed(arms={"a": other, "b": arm}, plan={"turn_ms": 50})
    tidb = {"engine": {"name": "tidb"}, "arms": {"a": other, "b": arm}}
    assert set(orders(closed(**tidb)).values()) == {"runs"}


def test_an_arm_has_as_many_turns_as_whole_rounds_fit_into_its_seconds():
    # 20 turns of 50 ms are a second. Of 5 turns of 200 ms two rounds of ABBA make 4; of 2 of 500 ms one.
    assert [order.turns_each(1, length, 2) for length in (50, 200, 500)] == [20, 4, 2]
    assert order.turns_each(1, 500, 1) == 2


def test_two_arms_go_abba_and_the_first_letter_changes_from_block_to_block():
    first, second = (order.turn_rounds(("a", "b"), block, "w", 4) for block in (1, 2))
    assert {tuple(one[0]) for one in (first, second)} == {("a", "b", "b", "a"), ("b", "a", "a", "b")}


@pytest.mark.parametrize("arms", [("a", "b", "c"), ("a", "b", "c", "d")], ids=len)
def test_more_arms_follow_each_other_equally_often(arms: tuple[str, ...]):
    rounds = order.turn_rounds(arms, 1, "w", 4)
    assert all(sorted(row) == list(arms) for row in rounds)
    follows = Counter(pair for row in rounds for pair in pairwise(row))
    assert len(follows) == len(arms) * (len(arms) - 1) and len(set(follows.values())) == 1


def test_half_a_second_of_discard_and_runs_of_a_second_are_for_turns_alone():
    assert set(orders(closed(plan={"discard_s": 0.5, "run_s": 1})).values()) == {"turns"}
    with pytest.raises(ValidationError, match=r"plan.discard_s: 0.5: sysbench counts whole seconds"):
        make(plan={"discard_s": 0.5})
    with pytest.raises(ValidationError, match=r"plan.run_s: 1: too short for a whole run; write 2"):
        make(plan={"run_s": 1})
    assert isinstance(closed(plan={"discard_s": 1}).plan.discard_s, int)


def test_a_run_in_turns_may_have_a_part_of_a_second():
    runs = schedule.plan_runs("s", closed(plan={"discard_s": 0.3, "run_s": 1.2}), {})
    assert {run.run_s for run in runs} == {1.2} and {run.order for run in runs} == {"turns"}
    # 1.2 s are 24 turns of 50 ms: 12 rounds of ABBA, in which each arm has two; 3 rounds of 8.
    assert (
        order.turns_each(1.2, 50, 2) == 24
        and order.turns_each(1.2, 50, 8) == 24
        and order.turns_each(2.3, 50, 2) == 46
    )
    # Two arms on sysbench's clock: 0.6 s to the whole second above, 2 * 1.2 * 1.1 + 0.5 = 3.14 s to 4.
    assert words.clock_seconds(runs[0]) == (1, 4)
    with pytest.raises(ValidationError, match=r"plan.run_s: 2.5: sysbench counts whole seconds"):
        make(plan={"run_s": 2.5})
    whole = schedule.plan_runs("s", closed(), {})[0].to_dict()
    assert isinstance(whole["run_s"], int), "a whole number is written as before: the id of a run holds it"


def test_where_transactions_are_too_long_for_turns_sysbench_is_asked_for_whole_seconds():
    study = closed(plan={"discard_s": 0.3, "run_s": 1.2})
    cells = [{"workload": name, "threads": level} for name in study.workloads for level in study.threads]
    plans = schedule.plan_runs("s", study, {}, {"turns": [cell | {"turn_ms": None} for cell in cells]})
    assert {words.clock_seconds(plan) for plan in plans} == {(1, 2)}
