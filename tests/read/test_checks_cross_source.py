"""V26: what each program that watched a run may say, given what the others said."""

from dataclasses import replace
from typing import Any

import pytest

from benchbook.core.study.params import Limits
from benchbook.read import checks_cross_source
from benchbook.read.evidence import Evidence, Missing
from tests.read import corpus, synthetic

ARMS = ("direct", "haproxy")


def faults(run: Evidence) -> list[str]:
    return [*checks_cross_source.check_sources(run, Limits())]


def whole(changed: dict[str, Any] | None = None, monitor: str | None = None, **setting: Any) -> Evidence:
    """Return a whole run: 7 s, of which the client used 0.3 of a core."""
    plan = synthetic.planned(arm_setting={"access": "direct", **setting})
    return replace(corpus.healthy(synthetic.output(), plan, "", changed), monitor=monitor)


def in_turns(
    begin_s: float = 102.1, count: int = 80, told: dict[str, Any] | None = None, **changed: Any
) -> Evidence:
    """Return a run whose arm took the first turn of 50 ms and half of all, with half a millisecond between.

    sysbench's clock started 0.1 s after its process, at 100.1 s, and its checkpoint came 2 s later. Four
    seconds of turns end at 106.14 s. In the 2 s of its own client and server used 2 s of a core each.
    """
    lines, now = ["turn,arm,begin_us,end_us"], round(1e6 * begin_s)
    for number in range(count):
        lines.append(f"{number + 1},{ARMS[(0, 1, 1, 0)[number % 4]]},{now},{now + 50_000}")
        now += 50_500
    clock = {"exit_code": 0, "started": [100.0, 100.2], "window": [102.05, 106.2]}
    seen = {
        "clock": clock,
        "count": count // 2,
        "active_s": count // 2 * 0.05,
        "cpu_s": {"client": 2.0, "server": 2.0},
        **(told or {}),
    }
    run = whole({"machine_cores": 2, "client": {"cpu_s": 2.0}, "turns": seen, **changed})
    plan = run.plan | {"order": "turns", "turn_ms": 50, "partners": list(ARMS), "arm": "direct"}
    return replace(run, plan=plan, turns="\n".join(lines) + "\n")


def clocked(**changed: Any) -> dict[str, Any]:
    known = {"exit_code": 0, "started": [100.0, 100.2], "window": [102.05, 106.2]}
    return {"clock": known | changed}


def test_honest_runs_contradict_nothing_and_none_at_all_proves_nothing():
    assert faults(whole()) == faults(in_turns()) == []
    with pytest.raises(Missing):
        faults(replace(whole(), observed={}))


@pytest.mark.parametrize(
    ("begin_s", "started_s"),
    # From 0.1 s before the process to 0.1 s after the last client was seen to have started.
    [(101.95, None), (101.85, -0.15), (102.25, None), (102.35, 0.35)],
)
def test_the_first_turn_tells_when_sysbenchs_clock_started(begin_s: float, started_s: float | None):
    window = clocked(window=[begin_s - 0.01, begin_s + 4.1])
    due = (
        f"by its checkpoint and its first turn sysbench's clock started {started_s or 0:.3f} s after its "
        "process, by the clock of the turns up to 0.200 s after it"
    )
    assert faults(in_turns(begin_s, told=window)) == ([] if started_s is None else [due])


def test_a_log_has_no_queries_in_seconds_after_the_last_turn():
    # Forty turns end at 104.12 s; the lines of 105.1 and 106.1 s go on, that of 107.1 may be late.
    short = in_turns(count=40, told=clocked(window=[102.05, 104.2]) | {"cpu_s": {"client": 2.0}})
    assert faults(short) == ["its log has queries in 2 seconds after the last turn of its arm"]
    # Sixty end at 105.13 s: one line may hold what the last turn did.
    assert faults(in_turns(count=60, told=clocked(window=[102.05, 105.2]) | {"cpu_s": {"client": 2.0}})) == []


@pytest.mark.parametrize(
    ("window", "said"),
    [
        ([102.01, 106.2], None),
        ([101.99, 106.2], "began 0.110 s after the clock's window"),
        ([102.11, 106.2], "began -0.010 s after the clock's window"),
        ([102.05, 106.23], None),
        ([102.05, 106.2499], "which ended 0.110 s after the last one"),
        ([102.05, 106.1295], "which ended -0.010 s after the last one"),
    ],
)
def test_turns_fill_the_window_of_their_clock(window: list[float], said: str | None):
    found = faults(in_turns(told=clocked(window=window)))
    assert found == [] if said is None else len(found) == 1 and said in found[0], found


def used(server: float, **books: Any) -> dict[str, Any]:
    known = {"cpu_s": server, "user_s": server - 0.5, "system_s": 0.5} | books
    return {"cpu_s": {"client": 2.0, "server": server}, "costs": {"server": known}}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        # Two cores and a twentieth of them, in 2 s.
        (used(2.15), []),
        (used(2.3), ["in its turns the arm's parts used 2.15 cores, and the machine has 2"]),
        # 5 ms and a hundredth of 2 s.
        (used(1.976, cpu_s=2.0, user_s=1.5), []),
        (
            used(1.974, cpu_s=2.0, user_s=1.5),
            ["server used 1.974 s of a core by one clock, 2.0 s (2.0 s) by its books"],
        ),
        (used(2.0, user_s=1.504), []),
        (used(2.0, user_s=1.625), ["server used 2.0 s of a core by one clock, 2.0 s (2.125 s) by its books"]),
        # A kernel that tells less, and a server whose backends the books alone have.
        (used(1.0, cpu_s=2.0, user_s=None), []),
        (used(0, cpu_s=2.0, user_s=1.5), []),
        ({"cpu_s": {"client": 1.9, "server": 2.0}}, ["the client used 2.0 s of a core, 1.9 s in its turns"]),
        ({"count": 39}, ["its arm had 40 turns, 39 are recorded"]),
    ],
)
def test_the_kernels_books_of_the_turns_agree(told: dict[str, Any], said: list[str]):
    assert faults(in_turns(told=told)) == said


@pytest.mark.parametrize(
    ("cpu_s", "is_told"),
    # The monitor saw 0.3 of a core for 7.01 s, 2.10 s: 0.05 s are ticks, 0.6 s and a tenth may be missed.
    [(2.06, False), (2.05, True), (3.0, False), (3.1, True)],
)
def test_a_monitor_saw_what_the_client_used(cpu_s: float, is_told: bool):
    due = [f"the client used {cpu_s:.2f} s of a core, its monitor saw 2.10 s"] if is_told else []
    assert faults(whole({"client": {"cpu_s": cpu_s}}, synthetic.monitor(7))) == due
    # What lacks its last seconds says too little: it ends at 3.01 s of 7.
    assert faults(whole({"client": {"cpu_s": cpu_s}}, synthetic.monitor(3))) == []


@pytest.mark.parametrize(("cpu_s", "is_told"), [(0.5, False), (2.15, False), (2.16, True)])
def test_in_turns_a_monitor_also_saw_what_is_outside_of_them(cpu_s: float, is_told: bool):
    run = in_turns(told={"cpu_s": {"client": cpu_s}}, client={"cpu_s": cpu_s})
    due = [f"the client used {cpu_s:.2f} s of a core, its monitor saw 2.10 s"] if is_told else []
    assert faults(replace(run, monitor=synthetic.monitor(7))) == due


def test_a_monitor_saw_the_parts_that_the_arm_has():
    text = synthetic.monitor(7)
    assert faults(whole({"identity_before": {"proxy_pid": 3}}, text)) == [
        "the monitor saw no proxy, the arm has one"
    ]
    relayed = text.replace("server", "proxy")
    assert faults(whole(monitor=relayed)) == ["the monitor saw a proxy, the arm has none"]
    assert faults(whole({"identity_before": {"relay_pid": 3}}, relayed)) == []
    assert faults(whole(monitor=text.replace("client", "other"))) == ["the monitor saw no client"]


def stops(**per_s: float) -> str:
    """Return a monitor whose client stopped so often a second."""
    first, *rows = synthetic.monitor(7).splitlines()
    told = [f"{row},{','.join(map(str, per_s.values()))}" for row in rows]
    return "\n".join([f"{first},{','.join(per_s)}", *told]) + "\n"


@pytest.mark.parametrize(
    ("voluntary", "involuntary", "is_told"),
    # 100 transactions of 20 statements are 2,000 answers a second; 2000 / 1.5 is 1333.3.
    [(1334, 0, False), (1333, 0, True), (1234, 100, False), (1234, 99, True)],
)
def test_a_client_stops_for_each_answer(voluntary: float, involuntary: float, is_told: bool):
    said = "2000 queries a second, for which the client's threads stopped 1333 times"
    told = stops(voluntary_per_s=voluntary, involuntary_per_s=involuntary)
    assert faults(whole(monitor=told)) == ([said] if is_told else [])


@pytest.mark.parametrize(("voluntary", "is_told"), [(8624, False), (8623, True)])
def test_in_turns_a_client_stops_for_all_answers_but_a_twentieth(voluntary: int, is_told: bool):
    """The window's 10,000 answers came in 2 s of turns; 8,624 waits and 900 losses of the core are 9,524."""
    books = {"voluntary": voluntary, "involuntary": 900, "cpu_s": 2.0, "user_s": 1.0, "system_s": 1.0}
    said = "5000 queries a second, for which the client's threads stopped 4762 times"
    assert faults(in_turns(told={"costs": {"client": books}})) == ([said] if is_told else [])


@pytest.mark.parametrize(("still_s", "is_told"), [(None, False), (0.11, False), (0.1, True)])
def test_a_round_of_turns_is_not_left_out(still_s: float | None, is_told: bool):
    """Four turns of 50 ms, with half a millisecond after each, are 0.202 s."""
    told = {"count": 38, "active_s": 1.9, "cpu_s": {"client": 2.0, "server": 1.5}} | (
        {} if still_s is None else {"longest_stop_s": still_s}
    )
    run = in_turns(told=told)
    first, *rows = (run.turns or "").splitlines()
    kept = [row.partition(",")[2] for row in rows[:4] + rows[8:]]
    thinned = "\n".join([first, *(f"{number},{row}" for number, row in enumerate(kept, 1))]) + "\n"
    said = f"no turn began for 0.203 s after one of the arm, which stood still after {still_s or 0:.3f} s"
    found = faults(replace(run, turns=thinned))
    assert found == ([said] if is_told else [])


def test_a_monitor_that_counts_no_stops_tells_nothing_of_answers():
    assert faults(whole(monitor=synthetic.monitor(7))) == []
