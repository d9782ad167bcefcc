"""Rates, queues and times: what sysbench prints without complaint although the run is not what was asked."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchbook.core.study.model import Endpoint, PlannedRun
from benchbook.core.study.params import Limits
from benchbook.measure import sysbench
from benchbook.read import checks_log, validity
from benchbook.read.evidence import Evidence, Missing
from tests.read import corpus, synthetic
from tests.read.synthetic import find_faults

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
    assert find_faults(checks_log.check_work, run) == []


def test_a_rate_that_is_not():
    # 400/s in 5 s are 2000 arrivals; allowed are 2 % (8/s) and three standard deviations
    # (3 x sqrt(2000) / 5 = 26.8/s).
    assert find_faults(checks_log.check_work, rated(400, achieved=366)) == []
    assert find_faults(checks_log.check_work, rated(400, achieved=364)) == ["364.0 transactions/s, 400 asked"]


def test_a_backlog_from_the_discard_is_found():
    # 50 ms of arrivals at 400/s and one transaction a thread may wait: 20 + 4.
    assert find_faults(checks_log.check_work, rated(400, queue=24)) == []
    assert len(find_faults(checks_log.check_work, rated(400, queue=25))) == 2


@pytest.mark.parametrize("run_s, faults", [(5, 0), (6, 1), (4, 0), (3, 1)])
def test_length_may_exceed_the_plan_by_a_second(run_s, faults):
    run = synthetic.healthy_run(run_s=run_s)
    assert len(find_faults(checks_log.check_duration, run)) == faults


def test_long_runs_may_exceed_it_by_two_percent():
    # 2 + 98 s end after 102 s: 2 % of 100 s.
    out = synthetic.output(run_s=100)
    assert find_faults(checks_log.check_duration, corpus.healthy(out, synthetic.planned(run_s=98))) == []
    assert len(find_faults(checks_log.check_duration, corpus.healthy(out, synthetic.planned(run_s=97)))) == 1


def test_one_report_line_may_be_missing_at_the_end():
    for left, faults in ((7, 0), (6, 0), (5, 1)):
        lines = synthetic.output().splitlines(keepends=True)
        kept = [line for line in lines if not ("thds" in line and int(line[2 : line.index("s")]) > left)]
        found = find_faults(checks_log.check_intervals, corpus.healthy("".join(kept), synthetic.planned()))
        assert bool(found) == bool(faults), found


def test_a_slow_rate_may_leave_seconds_without_a_transaction():
    idle = "tps: 0.00 qps: 0.00 (r/w/o: 0.00/0.00/0.00)"
    out = synthetic.output().replace("tps: 100.00 qps: 2000.00 (r/w/o: 1400.00/400.00/200.00)", idle, 1)
    for rate, is_fault in ((0, True), (19, False), (20, True)):
        run = corpus.healthy(out, synthetic.planned(rate=rate))
        assert any("no transaction" in fault for fault in checks_log.check_intervals(run, LIMITS)) == is_fault


def test_the_last_queue_line_may_be_cut_off_and_no_other():
    run = rated(400, queue=25)
    plan = synthetic.planned(rate=400, script="oltp_point_select")
    for second, is_fault in ((7, False), (5, True)):
        cut = corpus.healthy(run.out.replace(f"[ {second}s ] queue length: 25, concurrency: 1\n", ""), plan)
        assert bool(find_faults(checks_log.check_intervals, cut)) == is_fault
        # A backlog at the end is still seen, in the line before.
        assert len(find_faults(checks_log.check_work, cut)) == 2


def test_threads_that_leave_in_time_are_a_fault_and_after_it_they_explain_a_late_end():
    out = synthetic.output().replace("[ 6s ] thds: 4", "[ 6s ] thds: 3")
    out = out.replace("[ 7s ] thds: 4", "[ 7s ] thds: 1")
    run = corpus.healthy(out, synthetic.planned(run_s=5))
    assert run.log.status == "complete"
    assert find_faults(checks_log.check_intervals, run) == ["3 threads of 4 at second 6"]
    # Who leaves at the end, and who has not left a second later, is in no last transaction.
    for second, threads in ((5, 2), (6, 4)):
        out = re.sub(rf"\[ {second}s \] thds: \d", f"[ {second}s ] thds: {threads}", out)
    late = corpus.healthy(out, synthetic.planned(run_s=3))
    assert find_faults(checks_log.check_duration, late) == [
        "total time 7.0000 s, asked 5 s: 1 of 4 threads were in a last transaction"
    ]


def test_at_a_rate_a_second_of_waiting_is_latency_and_a_second_of_nothing_is_not():
    """A server that stands still while transactions queue is what a latency finding is about."""
    run = rated(400, queue=24)
    stopped = run.out.replace(
        "[ 5s ] thds: 4 tps: 400.00 qps: 400.00", "[ 5s ] thds: 4 tps: 0.00 qps: 400.00"
    )
    assert stopped != run.out
    plan = synthetic.planned(rate=400, script="oltp_point_select")
    assert find_faults(checks_log.check_intervals, corpus.healthy(stopped, plan)) == []
    nothing = stopped.replace("[ 5s ] queue length: 24", "[ 5s ] queue length: 0")
    assert find_faults(checks_log.check_intervals, corpus.healthy(nothing, plan)) == [
        "no transaction in the interval at second 5"
    ]


def test_a_second_of_nothing_is_a_fault_before_a_planned_event_and_what_is_measured_after_it():
    nothing = synthetic.output().splitlines()
    at = next(number for number, line in enumerate(nothing) if line.startswith("[ 5s ] thds"))
    words = nothing[at].split()
    words[words.index("tps:") + 1] = "0.00"
    nothing[at] = " ".join(words)
    run = corpus.healthy("\n".join(nothing) + "\n", synthetic.planned())
    began = run.observed["started_monotonic_s"]

    def killed(second: float) -> list[str]:
        cluster = {"cluster": {"event": {"killed_s": began + second}}}
        return find_faults(
            checks_log.check_intervals, replace(run, observed=run.observed | {"arrangement": cluster})
        )

    assert killed(6.0) == ["no transaction in the interval at second 5"]
    assert killed(4.2) == []


def test_reconnects_void_a_run():
    out = synthetic.output().replace(
        "reconnects:                          0 ", "reconnects:                          1 "
    )
    assert "2 reconnects" in checks_log.check_errors(corpus.healthy(out, synthetic.planned()), LIMITS)


def test_errors_void_a_run_and_the_limit_is_named_with_what_makes_fewer():
    few, many = (corpus.healthy(synthetic.output(errors=count), synthetic.planned()) for count in (3, 30))
    assert find_faults(checks_log.check_errors, few) == []
    (said,) = find_faults(checks_log.check_errors, many)
    assert said.startswith("6.00 % ignored errors per transaction, at most 1 %; raise plan.run_s")
    assert said.endswith("limits.error_ratio in params.yaml")


def test_statements_of_another_script_are_found():
    run = corpus.healthy(synthetic.output(statements=(14, 0, 2)), synthetic.planned())
    assert "no write changed a row" in checks_log.check_work(run, LIMITS)


def test_begin_and_commit_alone_are_no_work():
    off = dict.fromkeys(
        ("point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges"), 0
    )
    plan = synthetic.planned(script="oltp_read_only", options=off)
    run = corpus.healthy(synthetic.output(statements=(0, 0, 2)), plan)
    assert find_faults(checks_log.check_work, run) == ["the options leave no statement but BEGIN and COMMIT"]


def test_a_script_without_a_rule_can_not_be_judged():
    run = synthetic.healthy_run(script="own_script")
    with pytest.raises(Missing, match="no rule for the script own_script"):
        list(checks_log.check_work(run, LIMITS))


ARGV = corpus.argv(synthetic.planned())


def run(argv: list[str], **seen) -> Evidence:
    return synthetic.healthy_run({"argv": argv, **seen})


def with_(name: str, value: str) -> list[str]:
    return [f"--{name}={value}" if word.startswith(f"--{name}=") else word for word in ARGV]


def test_an_option_more_and_an_option_twice():
    argv = [*ARGV[:-1], "--warmup-time=5", "--threads=4", "run"]
    assert [*checks_log.check_command_line(run(argv))] == [
        "--threads is given twice",
        "--warmup-time=5 is on the command line, and the plan does not ask for it",
    ]


@pytest.mark.parametrize("words", [("oltp_read_only", "run"), ("oltp_read_write", "prepare"), ("run",), ()])
def test_another_script_or_command(words):
    argv = [word for word in ARGV if word not in ("oltp_read_write", "run")]
    found = [*checks_log.check_command_line(run([*argv, *words]))]
    assert found == [
        f"the command is {' '.join(['sysbench', *words])!r}, 'sysbench oltp_read_write run' asked"
    ]


def test_another_program_is_found_and_another_folder_of_it_is_not():
    assert [*checks_log.check_command_line(run(["/usr/bin/sysbench", *ARGV[1:]]))] == []
    assert len([*checks_log.check_command_line(run(["/usr/bin/mysqlslap", *ARGV[1:]]))]) == 1


def test_no_server_or_two_and_another_driver():
    no_port = [word for word in ARGV if not word.startswith("--mysql-port")]
    by_both = [*ARGV[:-1], "--mysql-socket=/run/s.sock", "run"]
    by_socket = [
        word.replace("--mysql-port=33060", "--mysql-socket=/run/s.sock")
        for word in ARGV
        if not word.startswith("--mysql-host")
    ]
    for argv in (no_port, by_both):
        assert [*checks_log.check_command_line(run(argv))] == ["the command line names no server, or two"]
    assert [*checks_log.check_command_line(run(by_socket))] == []
    found = [*checks_log.check_command_line(run(with_("db-driver", "pgsql")))]
    assert found == ["--db-driver=pgsql, mysql expected"]


def test_encryption_on_the_command_line_is_the_one_asked():
    found = [*checks_log.check_command_line(run(with_("mysql-ssl", "on")))]
    assert found == ["--mysql-ssl=on, encryption off asked"]
    secret = {"asked": "required", "cipher": "TLS_AES_256_GCM_SHA384"}
    assert [*checks_log.check_command_line(run(with_("mysql-ssl", "on"), tls=secret))] == []
    found = [*checks_log.check_command_line(run(ARGV, tls=secret))]
    assert found == ["--mysql-ssl=off, encryption required asked"]


def test_one_account_and_no_other_file_of_options():
    found = [*checks_log.check_command_line(run([ARGV[0], "--config-file=/tmp/mine.cnf", *ARGV[1:]]))]
    assert found == ["2 options --config-file, 1 expected"]
    assert [*checks_log.check_command_line(run([ARGV[0], *ARGV[2:]]))] == [
        "0 options --config-file, 1 expected"
    ]


def test_a_file_of_options_asks_what_the_plan_asks():
    plan = synthetic.planned(arm_setting={"access": "direct", "options_by": "file"})
    for changed, faults in (({}, []), ({"threads": "8"}, ["--threads is 8, 4 asked"])):
        seen = corpus.in_a_file(plan, taken={})
        for side in seen["options"].values():
            side |= changed
        found = [*checks_log.check_command_line(corpus.healthy(synthetic.output(), plan, "", seen))]
        assert found == faults


def test_a_run_without_its_command_line_is_not_judged():
    assert validity.judge_run(run("ABSENT")).status == "indeterminate"  # type: ignore[arg-type]


def test_each_client_has_its_share_of_threads_rate_and_seed():
    clients = synthetic.three().observed["clients"]
    clients[2] |= {"argv": clients[1]["argv"]}
    judged = validity.judge_run(synthetic.three({"clients": clients}))
    assert any(reason.startswith("V5 options: client 2: --rand-seed is ") for reason in judged.reasons)


@pytest.mark.parametrize("tls", ["off", "required"])
@pytest.mark.parametrize("script", ["oltp_point_select", "select_random_points", "select_random_ranges"])
def test_what_measuring_starts_is_what_judging_expects(script, tls):
    """The two floors share the list of options, so this holds what each adds to it."""
    plan = synthetic.planned(script=script)
    fields = {name: plan[name] for name in PlannedRun.__dataclass_fields__ if name in plan}
    endpoint = Endpoint("127.0.0.1", 33060, "sbtest", Path("/run/account.cnf"), tls=tls)
    argv = sysbench.run_argv(endpoint, PlannedRun(**fields))
    seen = {"argv": argv, "tls": {"asked": tls, "cipher": "" if tls == "off" else "TLS_AES_256_GCM_SHA384"}}
    assert [*checks_log.check_command_line(corpus.healthy(synthetic.output(), plan, "", seen))] == []


def test_a_run_of_another_driver_is_held_to_that_driver():
    planned = synthetic.planned()
    options = {key: value for key, value in planned["options"].items() if key != "ignore_errors"}
    plan = planned | {"options": options | {"driver": "pgsql"}}
    argv = [word for word in ARGV if not word.startswith(("--mysql-", "--db-driver="))]
    place = ["--db-driver=pgsql", "--pgsql-host=127.0.0.1", "--pgsql-port=1", "--pgsql-db=sbtest"]
    asked = argv[:1] + place + argv[1:]

    def faults(argv: list[str]) -> list[str]:
        seen = {"argv": argv, "tls": {"asked": "off"}}
        return [*checks_log.check_command_line(corpus.healthy(synthetic.output(), plan, "", seen))]

    assert faults(asked) == []
    assert faults([*asked[:1], "--db-driver=mysql", *asked[2:]]) == ["--db-driver=mysql, pgsql expected"]
    assert faults([word for word in asked if "-host=" not in word and "-port=" not in word]) == [
        "the command line names no server, or two"
    ]


@pytest.mark.parametrize(("driver", "place"), [("mysql", "--mysql-socket="), ("pgsql", "--pgsql-host=/")])
def test_an_arm_over_a_socket_is_held_to_it(driver, place):
    plan = synthetic.planned()
    options = {key: value for key, value in plan["options"].items() if key != "ignore_errors"}
    options = options | {"driver": "pgsql"} if driver == "pgsql" else plan["options"]
    plan |= {"options": options, "arm_setting": {"access": "socket"}}
    fields = {name: plan[name] for name in PlannedRun.__dataclass_fields__ if name in plan}
    found = {}
    for socket in (None, Path("/lab/server/.s.PGSQL.5432")):
        endpoint = Endpoint("127.0.0.1", 5432, "sbtest", Path("/a.cnf"), socket, driver=driver)
        argv = sysbench.run_argv(endpoint, PlannedRun(**fields))
        seen = {"argv": argv, "tls": {"asked": "off"}}
        found[socket] = [*checks_log.check_command_line(corpus.healthy(synthetic.output(), plan, "", seen))]
    assert [word for word in argv if word.startswith(place)]
    assert list(found.values()) == [["the command line names no socket, access: socket asked"], []]
