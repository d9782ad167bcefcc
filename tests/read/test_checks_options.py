"""What sysbench was started with is what the plan asks for: no option more, less or other."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchbook.core.model import Endpoint, PlannedRun
from benchbook.measure import sysbench
from benchbook.read import checks_options, validity
from benchbook.read.evidence import Evidence
from tests.read import corpus, synthetic

ARGV = corpus.argv(synthetic.planned())


def run(argv: list[str], **seen) -> Evidence:
    return corpus.healthy(synthetic.output(), synthetic.planned(), "", {"argv": argv, **seen})


def with_(name: str, value: str) -> list[str]:
    return [f"--{name}={value}" if word.startswith(f"--{name}=") else word for word in ARGV]


@pytest.mark.parametrize(
    "name, value, asked",
    [
        ("threads", "8", "4"),
        ("time", "70", "7"),
        ("rate", "100", "0"),
        ("rand-seed", "8", "7"),
        ("tables", "1", "4"),
        ("table-size", "100", "10000"),
        ("rand-type", "special", "uniform"),
        ("events", "10", "0"),
        ("db-ps-mode", "disable", "auto"),
        ("mysql-ignore-errors", "all", "1213,1020,1205"),
        ("report-checkpoints", "1", "2"),
        ("point-selects", "1", "10"),
        ("skip-trx", "on", "off"),
    ],
)
def test_another_option_than_the_plan_has(name, value, asked):
    judged = validity.judge(run(with_(name, value)))
    assert judged.reasons == [f"V5 options: --{name} is {value}, {asked} asked"]


def test_an_option_that_is_not_there():
    argv = [word for word in ARGV if not word.startswith("--rand-type")]
    found = checks_options.command_line(run(argv))
    assert found == ["--rand-type is not on the command line, uniform asked"]


def test_an_option_more_and_an_option_twice():
    argv = [*ARGV[:-1], "--warmup-time=5", "--threads=4", "run"]
    assert checks_options.command_line(run(argv)) == [
        "--threads is given twice",
        "--warmup-time=5 is on the command line, and the plan does not ask for it",
    ]


@pytest.mark.parametrize("words", [("oltp_read_only", "run"), ("oltp_read_write", "prepare"), ("run",), ()])
def test_another_script_or_command(words):
    argv = [word for word in ARGV if word not in ("oltp_read_write", "run")]
    found = checks_options.command_line(run([*argv, *words]))
    assert found == [
        f"the command is {' '.join(['sysbench', *words])!r}, 'sysbench oltp_read_write run' asked"
    ]


def test_another_program_is_found_and_another_folder_of_it_is_not():
    assert checks_options.command_line(run(["/usr/bin/sysbench", *ARGV[1:]])) == []
    assert len(checks_options.command_line(run(["/usr/bin/mysqlslap", *ARGV[1:]]))) == 1


def test_no_server_or_two_and_another_driver():
    no_port = [word for word in ARGV if not word.startswith("--mysql-port")]
    by_both = [*ARGV[:-1], "--mysql-socket=/run/s.sock", "run"]
    by_socket = [
        word.replace("--mysql-port=33060", "--mysql-socket=/run/s.sock")
        for word in ARGV
        if not word.startswith("--mysql-host")
    ]
    for argv in (no_port, by_both):
        assert checks_options.command_line(run(argv)) == ["the command line names no server, or two"]
    assert checks_options.command_line(run(by_socket)) == []
    found = checks_options.command_line(run(with_("db-driver", "pgsql")))
    assert found == ["--db-driver=pgsql, mysql expected"]


def test_encryption_on_the_command_line_is_the_one_asked():
    found = checks_options.command_line(run(with_("mysql-ssl", "on")))
    assert found == ["--mysql-ssl=on, encryption off asked"]
    secret = {"asked": "required", "cipher": "TLS_AES_256_GCM_SHA384"}
    assert checks_options.command_line(run(with_("mysql-ssl", "on"), tls=secret)) == []
    found = checks_options.command_line(run(ARGV, tls=secret))
    assert found == ["--mysql-ssl=off, encryption required asked"]


def test_one_account_and_no_other_file_of_options():
    found = checks_options.command_line(run([ARGV[0], "--config-file=/tmp/mine.cnf", *ARGV[1:]]))
    assert found == ["2 options --config-file, 1 expected"]
    assert checks_options.command_line(run([ARGV[0], *ARGV[2:]])) == ["0 options --config-file, 1 expected"]


def test_a_file_of_options_asks_what_the_plan_asks():
    plan = synthetic.planned(arm_setting={"access": "direct", "options_by": "file"})
    for changed, faults in (({}, []), ({"threads": "8"}, ["--threads is 8, 4 asked"])):
        seen = corpus.in_a_file(plan, taken={})
        for side in seen["options"].values():
            side |= changed
        found = checks_options.command_line(corpus.healthy(synthetic.output(), plan, "", seen))
        assert found == faults


def test_a_run_without_its_command_line_is_not_judged():
    assert validity.judge(run("ABSENT")).status == "indeterminate"  # type: ignore[arg-type]


def test_each_client_has_its_share_of_threads_rate_and_seed():
    clients = synthetic.three().seen["clients"]
    clients[2] |= {"argv": clients[1]["argv"]}
    judged = validity.judge(synthetic.three({"clients": clients}))
    assert any(reason.startswith("V5 options: client 2: --rand-seed is ") for reason in judged.reasons)


@pytest.mark.parametrize("tls", ["off", "required"])
@pytest.mark.parametrize("script", ["oltp_point_select", "select_random_points", "select_random_ranges"])
def test_what_measuring_starts_is_what_judging_expects(script, tls):
    """The two floors share the list of options, so this holds what each adds to it."""
    plan = synthetic.planned(script=script)
    fields = {name: plan[name] for name in PlannedRun.__dataclass_fields__ if name in plan}
    endpoint = Endpoint("127.0.0.1", 33060, "sbtest", Path("/run/account.cnf"), tls=tls)
    argv = sysbench.run(endpoint, PlannedRun(**fields))
    seen = {"argv": argv, "tls": {"asked": tls, "cipher": "" if tls == "off" else "TLS_AES_256_GCM_SHA384"}}
    assert checks_options.command_line(corpus.healthy(synthetic.output(), plan, "", seen)) == []


def test_a_run_of_another_driver_is_held_to_that_driver():
    planned = synthetic.planned()
    options = {key: value for key, value in planned["options"].items() if key != "ignore_errors"}
    plan = planned | {"options": options | {"driver": "pgsql"}}
    argv = [word for word in ARGV if not word.startswith(("--mysql-", "--db-driver="))]
    place = ["--db-driver=pgsql", "--pgsql-host=127.0.0.1", "--pgsql-port=1", "--pgsql-db=sbtest"]
    asked = argv[:1] + place + argv[1:]

    def faults(argv: list[str]) -> list[str]:
        return checks_options.command_line(
            corpus.healthy(synthetic.output(), plan, "", {"argv": argv, "tls": {"asked": "off"}})
        )

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
        argv = sysbench.run(endpoint, PlannedRun(**fields))
        seen = {"argv": argv, "tls": {"asked": "off"}}
        found[socket] = checks_options.command_line(corpus.healthy(synthetic.output(), plan, "", seen))
    assert [word for word in argv if word.startswith(place)]
    assert list(found.values()) == [["the command line names no socket, access: socket asked"], []]
