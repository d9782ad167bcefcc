"""Rates, queues and times: what sysbench prints without complaint although the run is not what was asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchbook.core.study.model import Endpoint, PlannedRun
from benchbook.core.study.params import Limits
from benchbook.measure import sysbench
from benchbook.read import checks_log, validity
from tests.goldens import assert_golden
from tests.read import corpus, synthetic

LIMITS = Limits()


ARGV = corpus.argv(synthetic.planned())


def test_a_file_of_options_asks_what_the_plan_asks():
    plan = synthetic.planned(arm_setting={"access": "direct", "options_by": "file"})
    for changed, faults in (({}, []), ({"threads": "8"}, ["--threads is 8, 4 asked"])):
        seen = corpus.in_a_file(plan, taken={})
        for side in seen["options"].values():
            side |= changed
        found = [*checks_log.check_command_line(corpus.healthy(synthetic.output(), plan, "", seen))]
        assert found == faults


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


def test_a_run_is_held_to_its_driver_and_to_its_socket():
    held = {"driver": command_lines_of_a_driver(), "socket": command_lines_of_sockets()}
    lines = (f"{what}: {'; '.join(faults) or 'agrees'}\n" for what, each in held.items() for faults in each)
    assert_golden("command_lines.txt", "".join(lines))


def command_lines_of_a_driver() -> Iterator[list[str]]:
    """Faults of a run by PostgreSQL's driver, of one by another and of one without a server."""
    planned = synthetic.planned()
    options = {key: value for key, value in planned["options"].items() if key != "ignore_errors"}
    plan = planned | {"options": options | {"driver": "pgsql"}}
    argv = [word for word in ARGV if not word.startswith(("--mysql-", "--db-driver="))]
    place = ["--db-driver=pgsql", "--pgsql-host=127.0.0.1", "--pgsql-port=1", "--pgsql-db=sbtest"]
    asked = argv[:1] + place + argv[1:]

    def faults(argv: list[str]) -> list[str]:
        seen = {"argv": argv, "tls": {"asked": "off"}}
        return [*checks_log.check_command_line(corpus.healthy(synthetic.output(), plan, "", seen))]

    yield faults(asked)
    yield faults([*asked[:1], "--db-driver=mysql", *asked[2:]])
    yield faults([word for word in asked if "-host=" not in word and "-port=" not in word])


def command_lines_of_sockets() -> Iterator[list[str]]:
    """Faults of an arm over a socket without one and with it, by each driver."""
    for driver, place in (("mysql", "--mysql-socket="), ("pgsql", "--pgsql-host=/")):
        plan = synthetic.planned()
        options = {key: value for key, value in plan["options"].items() if key != "ignore_errors"}
        options = options | {"driver": "pgsql"} if driver == "pgsql" else plan["options"]
        plan |= {"options": options, "arm_setting": {"access": "socket"}}
        fields = {name: plan[name] for name in PlannedRun.__dataclass_fields__ if name in plan}
        for socket in (None, Path("/lab/server/.s.PGSQL.5432")):
            endpoint = Endpoint("127.0.0.1", 5432, "sbtest", Path("/a.cnf"), socket, driver=driver)
            argv = sysbench.run_argv(endpoint, PlannedRun(**fields))
            seen = {"argv": argv, "tls": {"asked": "off"}}
            yield [*checks_log.check_command_line(corpus.healthy(synthetic.output(), plan, "", seen))]
        assert [word for word in argv if word.startswith(place)]
