"""sysbench's seconds are ours: a clock that runs otherwise makes an arm fast without a query more."""

import re

import pytest

from benchbook.core.study.params import Limits
from benchbook.read import checks_clock, validity
from benchbook.read.evidence import Evidence
from tests.read import corpus, synthetic
from tests.read.synthetic import find_faults

LIMITS = Limits()
TURNS = {"order": "turns", "turn_ms": 50, "partners": ["direct", "haproxy"]}
# 2 s of discard and 5 s of window; 4 threads with 100 transactions a second of 40 ms: 8 and 20 s of latency.
OUT = synthetic.output()


def run(out: str = OUT, changed=None, **plan) -> Evidence:
    return corpus.healthy(out, synthetic.planned(**plan), "", changed)


def window_of(seconds: float) -> str:
    """Return the output with a discard that took so long that a window of `seconds` is left of 7 s, and with
    rates to match."""
    out = re.sub(r"2\.0000s", f"{7 - seconds:.4f}s", OUT)
    head, tail = out.split("Latency histogram")
    for count in (500, 10000):
        tail = re.sub(rf"({count} +\()\d+\.\d\d per", rf"\g<1>{count / seconds:.2f} per", tail)
    for count in (200, 4000):
        head = re.sub(rf"({count} +\()\d+\.\d\d per", rf"\g<1>{count / (7 - seconds):.2f} per", head)
    return f"{head}Latency histogram{tail}"


def test_a_healthy_run_agrees_with_all_clocks():
    assert find_faults(checks_clock.check_time, run()) == []


@pytest.mark.parametrize("seconds", [4.7, 4.8])
def test_a_window_that_is_too_short_by_sysbenchs_own_word_is_found(seconds):
    """500 transactions in 4.7 s are 6 % more a second than in 5 s, and no other number says so."""
    forged = run(window_of(seconds))
    assert forged.log.status == "complete", forged.log.why
    judged = validity.judge_run(forged)
    assert judged.status == "invalid"
    assert [check.id for check in judged.checks if check.passed is False] == ["V6"]
    assert f"latencies of 5.000 s for each thread in a window of {seconds:.3f} s" in "; ".join(judged.reasons)


def test_each_thread_may_carry_one_transaction_over_the_checkpoint():
    """The longest are of 39.65 ms; with 50 ms for rounding a window of 4.92 s is still one of 5 s."""
    lenient = Limits(pause_ms=1000)
    assert [*checks_clock.check_time(run(window_of(4.92)), lenient)] == []
    assert len([*checks_clock.check_time(run(window_of(4.90)), lenient)]) == 1


def test_a_late_checkpoint_is_a_client_that_stood_still():
    found = find_faults(checks_clock.check_time, run(window_of(4.7)))
    # 250 ms are a hundredth of 25 s, and a hundredth of 5 s is 50 ms.
    assert "the checkpoint came 0.3000 s late, at most 0.05 s" in found
    lenient = [*checks_clock.check_time(run(window_of(4.7)), Limits(pause_ms=1600))]
    assert not [fault for fault in lenient if "came" in fault]


@pytest.mark.parametrize("late_s, is_found", [(0.09, False), (0.092, True)])
def test_a_run_ends_with_its_last_transaction(late_s, is_found):
    """Its threads are in transactions of 40 ms at most: with 50 ms of pause and a tenth of a millisecond for
    each of 4 threads that is 90.4 ms."""
    found = find_faults(checks_clock.check_time, run(OUT.replace("7.0000s", f"{7 + late_s:.4f}s")))
    assert found == (["it ended 0.0920 s late, its longest transaction allows 0.0904 s"] if is_found else [])
    # At 100 a second a thread may wait for the next one, ten times as long as the mean of 10 ms at the most.
    offered = OUT.replace("threads: 4\n", "threads: 4\nTarget transaction rate: 100/sec\n")
    waiting = run(offered.replace("7.0000s", f"{7.1 + late_s:.4f}s"), rate=100)
    assert [fault for fault in checks_clock.check_time(waiting, LIMITS) if "ended" in fault] == (
        ["it ended 0.1920 s late, its longest transaction allows 0.1904 s"] if is_found else []
    )


@pytest.mark.parametrize("late_s, is_found", [(0.2, False), (0.26, True)])
def test_a_long_window_has_no_longer_pause(late_s, is_found):
    """A hundredth of 100 s would be a second."""
    out = synthetic.output(run_s=100).replace("2.0000s", f"{2 + late_s:.4f}s")
    found = find_faults(checks_clock.check_time, run(out, run_s=100))
    assert found == (["the checkpoint came 0.2600 s late, at most 0.25 s"] if is_found else [])


@pytest.mark.parametrize("apart_s, is_found", [(1.0, True), (1.5, False)])
def test_in_turns_a_client_waits_for_the_one_that_started_last(apart_s, is_found):
    """4 s of discard that end at 6.3 s: 0.25 s may be a pause, 1 s others' turns, the rest is waiting."""
    out = synthetic.output(discard_s=4, run_s=11).replace("4.0000s", "6.3000s")
    told = {"turns": {"clock": {"started": [100.2, 100.2 + apart_s]}}}
    found = find_faults(checks_clock.check_time, run(out, told, **TURNS))
    assert [fault for fault in found if "checkpoint came 2.3000 s late" in fault] == (
        [f"the checkpoint came 2.3000 s late, at most {1.25 + apart_s:g} s"] if is_found else []
    )
    assert any("the discard took 6.3 s" in fault for fault in found) == is_found


def test_arms_in_turns_share_the_time_of_all_of_them():
    """Two arms of 2 and 5 s, and a second to spare, are 15 s on every clock, 4 of them before the window."""
    out = synthetic.output(discard_s=4, run_s=11)
    assert find_faults(checks_clock.check_time, run(out, **TURNS)) == []
    assert len(find_faults(checks_clock.check_time, run(**TURNS))) > 0


def test_a_checkpoint_at_another_second_is_not_the_one_asked():
    moved = OUT.replace("[ 2s ] Checkpoint", "[ 3s ] Checkpoint")
    assert find_faults(checks_clock.check_time, run(moved)) == ["the checkpoint is at second 3, 2 asked"]


@pytest.mark.parametrize(
    "ended_s, fault",
    [
        # 0.05 s and 2e-4 of 6.95 s are what two clocks may differ by.
        (106.95, None),
        (106.90, "total time 7.0000 s, the process lasted 6.9000 s by our clock"),
        # 5 s and 0.05 s for each of 4 threads to start and to end: 5.2 s.
        (112.2, None),
        (112.3, "the process lasted 5.30 s longer than sysbench says, at most 5.20 s"),
    ],
)
def test_sysbenchs_total_fits_into_the_time_of_its_process(ended_s, fault):
    found = find_faults(checks_clock.check_time, run(changed={"ended_monotonic_s": ended_s}))
    assert found == ([fault] if fault else [])


@pytest.mark.parametrize("lasted_s, faults", [(1001.76, 0), (1001.74, 1)])
def test_two_clocks_may_drift_apart_in_a_long_run(lasted_s, faults):
    """0.05 s and 2e-4 of 1001.75 s are 0.25 s less than the 1002 s that sysbench says."""
    out = synthetic.output(run_s=1000)
    long = run(out, {"ended_monotonic_s": 100 + lasted_s}, run_s=1000)
    assert len(find_faults(checks_clock.check_time, long)) == faults


def test_a_report_line_after_our_end_is_found():
    found = find_faults(checks_clock.check_time, run(changed={"ended_monotonic_s": 106.4}))
    assert "a report line of second 7, the process lasted 6.4000 s" in found


def test_without_our_clock_nothing_is_proven():
    for name in ("started_monotonic_s", "ended_monotonic_s"):
        assert validity.judge_run(run(changed={name: "ABSENT"})).status == "indeterminate"


@pytest.mark.parametrize("latency_ms, is_found", [(34.5, False), (32.0, True), (41.0, True)])
def test_latencies_fill_the_time_of_the_threads(latency_ms, is_found):
    """5000 of them on 4 threads are 43.1, 40.0 and 51.3 s of 50 s; 15 % may be lost between transactions, and
    half a second in reading timers."""
    found = find_faults(
        checks_clock.check_time, run(synthetic.output(run_s=50, latency_ms=latency_ms), run_s=50)
    )
    assert bool(found) == is_found, found


def test_at_a_rate_latencies_hold_the_queue_and_prove_nothing():
    out = synthetic.output(latency_ms=1.0)
    out = out.replace("threads: 4\n", "threads: 4\nTarget transaction rate: 100/sec\n")
    assert find_faults(checks_clock.check_time, run(out, rate=100)) == []


def test_each_client_is_held_against_its_own_beginning_and_end():
    clients = synthetic.three().observed["clients"]
    clients[1] |= {"begun_monotonic_s": 100.2, "ended_monotonic_s": 107.0}
    found = {
        check.id: check.detail for check in validity.judge_run(synthetic.three({"clients": clients})).checks
    }
    assert found["V6"] == "client 1: total time 7.0000 s, the process lasted 6.8000 s by our clock"
