"""V23 and the latencies of turns: evidence around turns as they are kept, and each fault in them."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchbook.core.study.params import Limits
from benchbook.read import checks_clock, checks_log, checks_machine, checks_turns, rows, validity
from benchbook.read.evidence import Evidence, turns_of
from tests.read import corpus, synthetic

ARMS = ("direct", "haproxy")


def written(lengths_ms: list[float] | None = None, order: str = "abba", gap_ms: float = 0.5) -> str:
    """Return the file of 40 turns, 20 an arm, of 50 ms but for those given."""
    lines, now = ["turn,arm,begin_us,end_us"], 100_500_000
    for number in range(40):
        length = (lengths_ms or [])[number] if lengths_ms and number < len(lengths_ms) else 50
        end = now + int(1000 * length)
        lines.append(f"{number + 1},{ARMS['ab'.index(order[number % 4])]},{now},{end}")
        now = end + int(1000 * gap_ms)
    return "\n".join(lines) + "\n"


def taken(text: str | None = None, **changed: Any) -> Evidence:
    """Return a run of the first arm in turns, with what the clock said of it changed."""
    text = written() if text is None else text
    run = synthetic.healthy_run()
    plan = run.plan | {"order": "turns", "turn_ms": 50, "partners": list(ARMS), "run_s": 1, "arm": "direct"}
    clock = {"exit_code": 0, "gone": None}
    active = checks_turns.active_s(turns_of(text), "direct")
    told = {"clock": clock, "count": 20, "asked": 20, "active_s": active}
    told |= {"longest_outside_s": 0.0001, "idle": 0} | changed
    return replace(
        run, plan=plan, observed=run.observed | {"turns": told, "ended_monotonic_s": 110.0}, turns=text
    )


def faults(run: Evidence) -> list[str]:
    return [*checks_turns.check_turns(run, Limits())]


def test_turns_as_planned_pass_and_whole_runs_have_nothing_to_show():
    assert faults(taken()) == []
    # Five milliseconds are what a system call may take until it is over.
    assert faults(taken(longest_outside_s=0.005)) == []
    assert faults(synthetic.healthy_run()) == []


@pytest.mark.parametrize(
    ("run", "said"),
    [
        # 101 ms is more than twice 50 ms; the arm then has 51 ms more than the other.
        (taken(written([101])), "a turn lasted 101 ms, 50 ms planned"),
        # 1,030 ms against 1,000 ms is 3 % more, 1 % is allowed.
        (taken(written([80])), "the arms ran for different times: direct 1.030 s, haproxy 1.000 s"),
        (taken(written(gap_ms=-0.1)), "two turns overlap"),
        # 39 gaps of 30 ms beside 40 turns of 50 ms: 1,170 of 3,170 ms.
        (taken(written(gap_ms=30)), "for 37 % of the time between first and last turn no arm had one"),
        (taken(written([49.9])), "a turn lasted 49.900 ms, no clock ends one before its 50"),
        (taken(written(order="abbb")), "the arms had different numbers of turns: direct 10, haproxy 30"),
        # A third of 62 are 20.7.
        (taken(asked=62), "20 turns were taken, 62 asked"),
        (taken(active_s=1.1), "the turns make 1.000000 s, recorded are 1.100000 s"),
        (taken(longest_outside_s=0.012), "the client used 12.0 ms of a core out of its turn"),
        (taken(idle=5), "the client stood still in 5 of its 20 turns"),
        (taken(clock={"exit_code": -9, "gone": None}), "the clock of the turns ended with -9"),
        (taken(clock={"exit_code": 3, "gone": 77}), "ended with 3: process 77 of the group ended"),
        (
            taken(clock={"exit_code": 3, "gone": 77, "gone_out_of_turn": True}),
            "ended with 3: process 77 of the group ended out of its turn",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_fault_of_the_turns_is_told(run: Evidence, said: str):
    assert any(said in fault for fault in faults(run)), faults(run)


@pytest.mark.parametrize(
    ("priority", "stretched", "said"),
    [
        # 36 of 40 turns count: four of 50 ms and 32 of 52.4 ms make 52.13 ms, 52 are allowed.
        ("fifo", 36, ["nine turns of ten lasted 52.13 ms, 50 ms planned"]),
        # Eight of 50 ms and 28 of 52.4 ms make 51.87 ms.
        ("fifo", 32, []),
        # Other programs may keep such a clock waiting.
        ("none", 40, []),
    ],
)
def test_turns_that_are_stretched_into_the_gaps_between_them_are_told(priority, stretched, said):
    lengths = [52.4] * stretched + [50.0] * (40 - stretched)
    assert faults(taken(written(lengths), clock={"exit_code": 0, "gone": None, "priority": priority})) == said


@pytest.mark.parametrize("planned_ms", [10, 20])
def test_short_turns_that_the_clock_ends_some_tenths_late_are_valid_and_unfair_ones_are_not(planned_ms):
    clock = {"exit_code": 0, "gone": None, "priority": "fifo"}
    late = taken(written([planned_ms + 0.3] * 40), clock=clock)
    late = replace(late, plan=late.plan | {"turn_ms": planned_ms})
    assert faults(late) == []
    # One arm's are longer than the other's by 0.3 ms each: 1.5 or 3 %.
    unfair = written([planned_ms, planned_ms + 0.3, planned_ms + 0.3, planned_ms] * 10)
    run = replace(taken(unfair, clock=clock), plan=late.plan)
    assert "the arms ran for different times" in faults(run)[0]


def test_gaps_of_a_third_are_those_that_switching_takes():
    # 39 gaps of 27 ms are 1,053 of 3,053 ms.
    assert faults(taken(written(gap_ms=27))) == []


@pytest.mark.parametrize("asked", [23, 40, 60])
def test_fewer_turns_than_asked_are_less_data_and_not_wrong_where_all_arms_have_as_many(asked: int):
    assert faults(taken(asked=asked)) == []
    assert faults(taken(written(order="abbb"), asked=asked)) != []


@pytest.mark.parametrize(
    ("discarded", "ended", "said"),
    [
        (100.9, 104.9, None),
        (101.2, 104.9, "turns went on 0.200 s after the discard of a client was over"),
        (100.9, 105.1, "turns went on 0.100 s after the time of a client was over"),
    ],
)
def test_turns_that_go_on_when_a_clients_window_is_over_are_told(discarded, ended, said):
    # Two arms, the discard of 1 s and the run of 1 s: 1 s of discard, ceil(2 * 1 * 1.03 + 0.5) = 3 s.
    clock = {"exit_code": 0, "started": [100.0, 100.2], "window": [101.3, ended - 1], "discarded": discarded}
    run = taken(clock=clock)
    run = replace(run, plan=run.plan | {"discard_s": 0.5})
    assert run.clock_s == (1, 3)
    found = [fault for fault in faults(run) if "went on" in fault]
    assert found == ([] if said is None else [said])


def test_a_file_of_turns_that_was_cut_is_no_evidence():
    lines = written().splitlines(keepends=True)
    for text in ("", "turn,arm\n", "".join(lines[:3] + lines[4:])):
        with pytest.raises(ValueError):
            turns_of(text)


def test_a_client_waits_at_its_end_for_the_one_that_started_last():
    run = taken()
    discard, length = run.clock_s
    # Allowed are overrun_s, a second of standing still, and the 1.7 s between the clients' starts.
    at = discard + length + 2.5
    log = replace(run.log, summaries=[replace(one, total_time_s=at) for one in run.log.summaries])
    for apart_s, is_late in ((0.0, True), (1.7, False)):
        clock = {"exit_code": 0, "gone": None, "started": [100.0, 100.0 + apart_s]}
        late = taken(clock=clock)
        late.__dict__["log"] = log
        told = [*checks_log.check_duration(late, Limits())]
        assert any(f"total time {at:.4f} s" in fault for fault in told) == is_late, told


def latencies(threads: int, turns: int, events: int, active_s: float) -> dict[str, Any]:
    run = SimpleNamespace(
        turn_cpu_s={},
        final=SimpleNamespace(events=events),
        plan_value={"threads": threads}.__getitem__,
        get={"turns": {"count": turns, "cpu_s": {}, "stopped": []}}.__getitem__,
        active_s=active_s,
        planned=SimpleNamespace(order="turns", turn_ms=50),
    )
    return rows.columns_in_turns(run)


def test_the_mean_is_littles_law_and_percentiles_stay_where_pauses_are_few():
    # 4 threads x 6 s / 141,909 events = 0.16912 ms. 4 x 48 = 192 events carry a pause: fewer than a tenth of
    # the 7,095 beyond p95, more than a tenth of the 1,419 beyond p99.
    found = latencies(4, 48, 141_909, 6.0)
    assert found["latency_avg_ms"] == pytest.approx(0.16912, abs=1e-5)
    assert "latency_p95_ms" not in found, "it stays as it is"
    assert np.isnan(found["latency_p99_ms"]) and np.isnan(found["latency_max_ms"])
    # 16 x 52 = 832 of 4,008 events destroy both.
    found = latencies(16, 52, 4_008, 6.0)
    assert np.isnan(found["latency_p95_ms"]) and np.isnan(found["latency_p99_ms"])


@pytest.mark.parametrize(
    ("server_s", "books", "cores"), [(3.0, 3.1, 1.5), (0.0, 3.1, 1.55), (0.0, None, np.nan)]
)
def test_a_server_that_works_in_backends_used_what_the_books_hold(server_s, books, cores):
    """The clock of PostgreSQL's first process sees none of its backends: no use of zero cores, which would
    be put down to programs that are no part of an arm."""
    run = taken()
    turns = run.observed["turns"] | {
        "active_s": 2.0, "stopped": [], "cpu_s": {"client": 1.0, "server": server_s},
        "costs": {"server": {"cpu_s": books}},
    }  # fmt: skip
    columns = rows.columns_in_turns(replace(run, observed=run.observed | {"turns": turns}))
    assert columns["cpu_client_cores"] == 0.5
    assert columns["cpu_server_cores"] == pytest.approx(cores, nan_ok=True)


def test_turns_allow_more_of_what_the_host_takes_since_it_meets_all_arms():
    run = synthetic.healthy_run()
    whole = replace(run, observed=run.observed | {"steal_pct": 25.0})
    in_turns = taken(written())
    in_turns = replace(in_turns, observed=in_turns.observed | {"steal_pct": 25.0})
    assert [*checks_machine.check_machine(whole, Limits())] == [
        "25.0 % of the machine's time was stolen, at most 10 %"
    ]
    assert [*checks_machine.check_machine(in_turns, Limits())] == []
    much = replace(in_turns, observed=in_turns.observed | {"steal_pct": 41.0})
    assert [*checks_machine.check_machine(much, Limits())] == [
        "41.0 % of the machine's time was stolen, at most 40 %"
    ]


def test_a_run_without_a_turn_fails_with_a_sentence():
    run = taken("turn,arm,begin_us,end_us\n", count=0, idle=0)
    judged = {one.id: one for one in validity.judge_run(run).checks}
    assert judged["V15"].passed is False
    said = "no turn of its arm was taken, so what the client had of its cores is not known"
    assert judged["V15"].detail == said
    assert judged["V23"].passed is False and "0 turns were taken, 20 asked" in judged["V23"].detail
    assert not [one for one in judged.values() if "Error" in one.detail]


@pytest.mark.parametrize(("turn_ms", "is_late"), [(50, True), (500, False)])
def test_a_checkpoint_may_wait_for_the_clients_own_turn(turn_ms: int, is_late: bool):
    # Two arms with turns of 500 ms: a client waits up to a second for its own, with those of 50 ms a tenth.
    run = taken()
    at = [replace(one, total_time_s=3.4) if one.is_checkpoint else one for one in run.log.summaries]
    log = replace(run.log, summaries=at)
    late = replace(run, plan=run.plan | {"turn_ms": turn_ms, "discard_s": 1})
    late.__dict__["log"] = log
    assert (
        any("the discard took 3.4 s" in fault for fault in checks_log.check_duration(late, Limits()))
        == is_late
    )


def test_in_turns_the_clock_alone_can_tell_whose_stops_they_are():
    stopped = {"looks": 12, "continued": ["server"], "stopped": {"client": 9}}
    stopped |= {"traced": {}, "counting": [], "networks": [], "connections": None}
    run = Evidence({"order": "turns", "partners": ["a", "b"]}, {"strangers": {"machine": stopped}}, "", "")
    stood = ["at the end of 12 of its 200 turns a part of the arm stood still"]
    for halted, said in ((None, []), (12, stood), (0, [])):
        run.observed["turns"] = None if halted is None else {"halted": halted, "count": 200}
        assert [*checks_machine.check_strangers(run)] == said


def test_a_client_waits_in_its_discard_for_the_one_that_started_last():
    """4 s of discard that end at 6.3 s: 0.25 s may be a pause, 1 s others' turns, the rest is waiting."""
    plan = synthetic.planned(order="turns", turn_ms=50, partners=list(ARMS))
    out = synthetic.output(discard_s=4, run_s=11)
    # Two arms of 2 and 5 s, and a second to spare, are 15 s on every clock, 4 of them before the window.
    assert synthetic.find_faults(checks_clock.check_time, corpus.healthy(out, plan)) == []
    assert synthetic.find_faults(checks_clock.check_time, corpus.healthy(synthetic.output(), plan))
    for apart_s, said in ((1.0, ["the checkpoint came 2.3000 s late, at most 2.25 s"]), (1.5, [])):
        seen = {"turns": {"clock": {"started": [100.2, 100.2 + apart_s]}}}
        run = corpus.healthy(out.replace("4.0000s", "6.3000s"), plan, "", seen)
        found = synthetic.find_faults(checks_clock.check_time, run)
        assert [fault for fault in found if "checkpoint came" in fault] == said
        assert any("the discard took 6.3 s" in fault for fault in found) == bool(said)
