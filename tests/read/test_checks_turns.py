"""V23 and the latencies of turns: evidence around turns as they are kept, and each fault in them."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchbook.core.study.params import Limits
from benchbook.read import checks_clock, checks_log, checks_turns, rows, validity
from benchbook.read.evidence import Evidence, turns_of
from tests.read import corpus, synthetic

ARMS = ("direct", "haproxy")


def taken(text: str | None = None, **changed: Any) -> Evidence:
    """Return a run of the first arm in turns, with what the clock said of it changed."""
    text = synthetic.turns() if text is None else text
    run = synthetic.healthy_run()
    plan = run.plan | {"order": "turns", "turn_ms": 50, "partners": list(ARMS), "run_s": 1, "arm": "direct"}
    clock = {"exit_code": 0, "gone": None}
    active = checks_turns.active_s(turns_of(text), "direct")
    told = {"clock": clock, "count": 20, "asked": 20, "active_s": active}
    told |= {"longest_outside_s": 0.0001, "idle": 0} | changed
    return replace(
        run, plan=plan, observed=run.observed | {"turns": told, "ended_monotonic_s": 110.0}, turns=text
    )


def test_a_file_of_turns_that_was_cut_is_no_evidence():
    lines = synthetic.turns().splitlines(keepends=True)
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
