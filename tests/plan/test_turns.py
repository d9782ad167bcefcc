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
from ruamel.yaml import YAML

from benchbook.core.study import interleaving as words
from benchbook.core.study.model import PlannedRun
from benchbook.core.study.study import StudySpec
from benchbook.plan import earlier_rules, order, pilot_parameters, schedule
from tests.goldens import assert_golden
from tests.installed import package
from tests.plan.test_schedule import make
from tests.read.corpus import PLAN

CASES = Path(__file__).parents[1] / "data" / "turns.yaml"


def closed(**changes: Any) -> StudySpec:
    return make(**changes | {"plan": {"order": None, **changes.get("plan", {})}})


def orders(study: StudySpec) -> dict[str, str]:
    return {run.workload: run.order for run in schedule.plan_runs("s", study, {})}


def refusal(study: dict[str, Any], **plan: Any) -> str:
    """What is said of a study with another plan: the first sentence that refuses it, or that it is fine."""
    try:
        closed(**study | {"plan": {**study.get("plan", {}), **plan}})
    except ValidationError as error:
        return error.errors()[0]["msg"].removeprefix("Value error, ")
    return "fine"


def test_what_turns_would_not_falsify_takes_them_and_it_is_said_why():
    answers = []
    for title, changes in YAML(typ="safe").load(CASES).items():
        study = closed(**changes)
        lines = [line for line in schedule.describe_plan("s", study).splitlines() if "  order " in line]
        groups: dict[str, set[str]] = {}
        for run in schedule.plan_runs("s", study, {}):
            partners = f" of {', '.join(run.partners)}" if run.partners else ""
            how = f"{run.order} {run.turn_ms or ''}".strip() + partners
            groups.setdefault(how, set()).add(f"{run.workload} {run.threads}")
        lines += [f"{how}: {'; '.join(sorted(groups[how]))}" for how in sorted(groups)]
        lines += words.find_misleading(study)
        lines.append("its twin has a server of its own" if words.has_separate_twin(study) else "")
        lines += [f"order turns: {refusal(changes, order='turns')}", f"50 ms: {refusal(changes, turn_ms=50)}"]
        answers.append("\n  ".join([title, *(" ".join(line.split()) for line in lines if line)]))
    assert_golden("turns.txt", "\n\n".join(answers) + "\n")


def test_a_proxy_whose_children_do_its_work_gets_whole_runs(tmp_path: Path):
    """As nginx in turns: its master stood still, its workers went on, and V26 made each run invalid."""
    with package(tmp_path):
        arms = {"direct": {}, "behind": {"access": "socat"}}
        assert set(orders(closed(arms=arms)).values()) == {"runs"}
        with pytest.raises(ValidationError, match=r"behind\.access: socat: processes "):
            closed(arms=arms, plan={"order": "turns"})


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
        settled = pilot_parameters.settle_turns(closed(), pilots(t1=500.0, t4=rate))
        slow = {"rules": words.RULES, "turns": settled}
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
    with pytest.raises(ValidationError, match=r"plan\.discard_s: 0\.5: sysbench"):
        make(plan={"discard_s": 0.5})
    with pytest.raises(ValidationError, match=r"plan\.run_s: 1: .* write 2"):
        make(plan={"run_s": 1})
    assert isinstance(closed(plan={"discard_s": 1}).plan.discard_s, int)


def test_a_run_in_turns_may_have_a_part_of_a_second():
    runs = schedule.plan_runs("s", closed(plan={"discard_s": 0.3, "run_s": 1.2}), {})
    assert {run.run_s for run in runs} == {1.2} and {run.order for run in runs} == {"turns"}
    # 1.2 s are 24 turns of 50 ms: 12 rounds of ABBA, in which each arm has two; 3 rounds of 8.
    assert [order.turns_each(*asked) for asked in ((1.2, 50, 2), (1.2, 50, 8), (2.3, 50, 2))] == [24, 24, 46]
    # Two arms on sysbench's clock: 0.6 s to the whole second above, 2 * 1.2 * 1.1 + 0.5 = 3.14 s to 4.
    assert words.clock_seconds(runs[0]) == (1, 4)
    with pytest.raises(ValidationError, match=r"plan\.run_s: 2\.5: sysbench"):
        make(plan={"run_s": 2.5})
    whole = schedule.plan_runs("s", closed(), {})[0].to_dict()
    assert isinstance(whole["run_s"], int), "a whole number is written as before: the id of a run holds it"


def test_where_transactions_are_too_long_for_turns_sysbench_is_asked_for_whole_seconds():
    study = closed(plan={"discard_s": 0.3, "run_s": 1.2})
    cells = [{"workload": name, "threads": level} for name in study.workloads for level in study.threads]
    plans = schedule.plan_runs("s", study, {}, {"turns": [cell | {"turn_ms": None} for cell in cells]})
    assert {words.clock_seconds(plan) for plan in plans} == {(1, 2)}
