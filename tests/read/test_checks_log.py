"""Rates, queues and times: what sysbench prints without complaint although the run is not what was asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchbook.core.params import Limits
from benchbook.read import checks_log
from benchbook.read.evidence import Missing
from tests.read import corpus, synthetic

LIMITS = Limits()


def rated(rate: int, queue: int = 0, achieved: int | None = None):
    out = synthetic.output(tps=achieved or rate, statements=(1, 0, 0))
    out = out.replace("threads: 4\n", f"threads: 4\nTarget transaction rate: {rate}/sec\n")
    lines = []
    for line in out.splitlines():
        lines.append(line)
        if line.startswith("[ ") and "thds" in line:
            lines.append(f"{line[:6]} queue length: {queue}, concurrency: 1")
    return corpus.healthy("\n".join(lines) + "\n", synthetic.planned(rate=rate, script="oltp_point_select"))


def test_a_rate_that_is_reached():
    run = rated(400)
    assert run.log.status == "complete", run.log.why
    assert checks_log.work(run, LIMITS) == []


def test_a_rate_that_is_not():
    # 400/s in 5 s are 2000 arrivals; allowed are 2 % (8/s) and three standard deviations
    # (3 x sqrt(2000) / 5 = 26.8/s).
    assert checks_log.work(rated(400, achieved=366), LIMITS) == []
    assert checks_log.work(rated(400, achieved=364), LIMITS) == ["364.0 transactions/s, 400 asked"]


def test_a_backlog_from_the_discard_is_found():
    # 50 ms of arrivals at 400/s and one transaction a thread may wait: 20 + 4.
    assert checks_log.work(rated(400, queue=24), LIMITS) == []
    assert len(checks_log.work(rated(400, queue=25), LIMITS)) == 2


@pytest.mark.parametrize("run_s, faults", [(5, 0), (6, 1), (4, 0), (3, 1)])
def test_length_may_exceed_the_plan_by_a_second(run_s, faults):
    run = corpus.healthy(synthetic.output(), synthetic.planned(run_s=run_s))
    assert len(checks_log.duration(run, LIMITS)) == faults


def test_long_runs_may_exceed_it_by_two_percent():
    # 2 + 98 s end after 102 s: 2 % of 100 s.
    out = synthetic.output(run_s=100)
    assert checks_log.duration(corpus.healthy(out, synthetic.planned(run_s=98)), LIMITS) == []
    assert len(checks_log.duration(corpus.healthy(out, synthetic.planned(run_s=97)), LIMITS)) == 1


def test_one_report_line_may_be_missing_at_the_end():
    for left, faults in ((7, 0), (6, 0), (5, 1)):
        lines = synthetic.output().splitlines(keepends=True)
        kept = [line for line in lines if not ("thds" in line and int(line[2 : line.index("s")]) > left)]
        found = checks_log.intervals(corpus.healthy("".join(kept), synthetic.planned()), LIMITS)
        assert bool(found) == bool(faults), found


def test_a_slow_rate_may_leave_seconds_without_a_transaction():
    idle = "tps: 0.00 qps: 0.00 (r/w/o: 0.00/0.00/0.00)"
    out = synthetic.output().replace("tps: 100.00 qps: 2000.00 (r/w/o: 1400.00/400.00/200.00)", idle, 1)
    for rate, is_fault in ((0, True), (19, False), (20, True)):
        run = corpus.healthy(out, synthetic.planned(rate=rate))
        assert any("no transaction" in fault for fault in checks_log.intervals(run, LIMITS)) == is_fault


def test_the_last_queue_line_may_be_cut_off_and_no_other():
    run = rated(400, queue=25)
    plan = synthetic.planned(rate=400, script="oltp_point_select")
    for second, is_fault in ((7, False), (5, True)):
        cut = corpus.healthy(run.out.replace(f"[ {second}s ] queue length: 25, concurrency: 1\n", ""), plan)
        assert bool(checks_log.intervals(cut, LIMITS)) == is_fault
        # A backlog at the end is still seen, in the line before.
        assert len(checks_log.work(cut, LIMITS)) == 2


def test_at_a_rate_a_second_of_waiting_is_latency_and_a_second_of_nothing_is_not():
    """A server that stands still while transactions queue is what a latency finding is about."""
    run = rated(400, queue=24)
    stopped = run.out.replace(
        "[ 5s ] thds: 4 tps: 400.00 qps: 400.00", "[ 5s ] thds: 4 tps: 0.00 qps: 400.00"
    )
    assert stopped != run.out
    plan = synthetic.planned(rate=400, script="oltp_point_select")
    assert checks_log.intervals(corpus.healthy(stopped, plan), LIMITS) == []
    nothing = stopped.replace("[ 5s ] queue length: 24", "[ 5s ] queue length: 0")
    assert checks_log.intervals(corpus.healthy(nothing, plan), LIMITS) == [
        "no transaction in the interval at second 5"
    ]


def test_a_second_of_nothing_is_a_fault_before_a_planned_event_and_what_is_measured_after_it():
    nothing = synthetic.output().splitlines()
    at = next(number for number, line in enumerate(nothing) if line.startswith("[ 5s ] thds"))
    words = nothing[at].split()
    words[words.index("tps:") + 1] = "0.00"
    nothing[at] = " ".join(words)
    run = corpus.healthy("\n".join(nothing) + "\n", synthetic.planned())
    began = run.seen["started_monotonic_s"]

    def killed(second: float) -> list[str]:
        cluster = {"cluster": {"event": {"killed_s": began + second}}}
        return checks_log.intervals(replace(run, seen=run.seen | {"arrangement": cluster}), LIMITS)

    assert killed(6.0) == ["no transaction in the interval at second 5"]
    assert killed(4.2) == []


def test_reconnects_void_a_run():
    out = synthetic.output().replace(
        "reconnects:                          0 ", "reconnects:                          1 "
    )
    assert "2 reconnects" in checks_log.errors(corpus.healthy(out, synthetic.planned()), LIMITS)


def test_statements_of_another_script_are_found():
    run = corpus.healthy(synthetic.output(statements=(14, 0, 2)), synthetic.planned())
    assert "no write changed a row" in checks_log.work(run, LIMITS)


def test_begin_and_commit_alone_are_no_work():
    off = dict.fromkeys(
        ("point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges"), 0
    )
    plan = synthetic.planned(script="oltp_read_only", options=off)
    run = corpus.healthy(synthetic.output(statements=(0, 0, 2)), plan)
    assert checks_log.work(run, LIMITS) == ["the options leave no statement but BEGIN and COMMIT"]


def test_a_script_without_a_rule_can_not_be_judged():
    run = corpus.healthy(synthetic.output(), synthetic.planned(script="own_script"))
    with pytest.raises(Missing, match="no rule for the script own_script"):
        checks_log.work(run, LIMITS)
