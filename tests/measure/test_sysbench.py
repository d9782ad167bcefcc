"""The command line says everything, is accepted by the real sysbench, and holds no secret."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchbook.core import scripts
from benchbook.core.model import Endpoint, PlannedRun
from benchbook.core.study_sections import Workload
from benchbook.measure import sysbench

ENDPOINT = Endpoint("127.0.0.1", 33061, "sbtest", Path("/lab/secrets/sysbench.cnf"))


def planned(script: str, **changes: Any) -> PlannedRun:
    """Return a run of a script with the options that a study file leaves to their defaults."""
    options = Workload(**changes.pop("workload", {})).model_dump(mode="json", exclude={"rate", "script"})
    run = PlannedRun(
        study="s", block=1, position=0, group="g", arm="direct", arm_setting={}, workload=script,
        script=script, options=options, threads=8, discard_s=15, run_s=45, percentile=99, rate=0, seed=4711,
        tables=4, table_size=10000,
    )  # fmt: skip
    return dataclasses.replace(run, **changes)


BEFORE = """\
sysbench
--config-file=/lab/secrets/sysbench.cnf
--db-driver=mysql
--mysql-host=127.0.0.1
--mysql-port=33061
--mysql-db=sbtest
--mysql-ssl=off
--mysql-ignore-errors=1213,1020,1205
--threads=8
--time=60
--events=0
--rate=0
--report-interval=1
--report-checkpoints=15
--percentile=99
--histogram=on
--rand-type=uniform
--rand-seed=4711
--db-ps-mode=auto
--forced-shutdown=off
--verbosity=3
"""
AFTER = """\
--tables=4
--table-size=10000
--range-size=100
--point-selects=10
--simple-ranges=1
--sum-ranges=1
--order-ranges=1
--distinct-ranges=1
--index-updates=1
--non-index-updates=1
--delete-inserts=1
--skip-trx=off
"""
PARETO = "--rand-pareto-h=0.2"
OWN = {
    "select_random_points": "--random-points=10\n",
    "select_random_ranges": "--number-of-ranges=10\n--delta=5\n",
}


@pytest.mark.parametrize("script", scripts.SCRIPTS)
def test_every_option_is_explicit(script: str):
    said = "\n".join(sysbench.run(ENDPOINT, planned(script))) + "\n"
    assert said == f"{BEFORE}{script}\n{AFTER}{OWN.get(script, '')}run\n"


@pytest.mark.parametrize(
    ("changes", "there", "gone"),
    [
        ({"discard_s": 0}, {"--time=45"}, {"--report-checkpoints=15", "--time=60"}),
        ({"rate": 500}, {"--rate=500"}, {"--rate=0"}),
        ({"threads": 64}, {"--threads=64"}, {"--threads=8"}),
        ({"workload": {"rand_type": "pareto"}}, {"--rand-type=pareto"}, {"--rand-type=uniform"}),
        ({"workload": {"rand_type": "pareto", "rand_pareto_h": 0.2}}, {"--rand-type=pareto", PARETO}, set()),
        ({"workload": {"ignore_errors": ()}}, {"--mysql-ignore-errors=none"}, set()),
        ({"workload": {"skip_trx": True}}, {"--skip-trx=on"}, {"--skip-trx=off"}),
        ({"workload": {"ps_mode": "disable"}}, {"--db-ps-mode=disable"}, {"--db-ps-mode=auto"}),
        ({"workload": {"point_selects": 0}}, {"--point-selects=0"}, {"--point-selects=10"}),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)  # fmt: skip
def test_a_setting_reaches_the_command_line(changes: dict[str, Any], there: set[str], gone: set[str]):
    plain = set(sysbench.run(ENDPOINT, planned("oltp_read_write")))
    said = set(sysbench.run(ENDPOINT, planned("oltp_read_write", **changes)))
    assert said - plain == there - plain
    assert gone <= plain - said


OTHER = {
    "rand_type": "gaussian",
    "rand_pareto_h": 0.3,
    "ps_mode": "disable",
    "skip_trx": True,
    "ignore_errors": (),
}


# In which order runs are made is nothing that sysbench is told.
@pytest.mark.parametrize("key", sorted(set(Workload.model_fields) - {"script", "rate", "options", "order"}))
def test_every_option_of_a_workload_is_passed_on(key: str):
    """An option that is added to the model and forgotten here would be a setting without an effect."""
    base = {"rand_type": "pareto"}
    reached = [
        script
        for script in ("oltp_read_write", "select_random_points", "select_random_ranges")
        if sysbench.run(ENDPOINT, planned(script, workload=base))
        != sysbench.run(ENDPOINT, planned(script, workload=base | {key: OTHER.get(key, 77)}))
    ]
    assert reached


def test_an_own_script_gets_its_own_options_and_no_others():
    own = {"script": "../beside/mine.lua", "options": {"use_fk": False, "scale": 3, "level": "RC"}}
    given = sysbench.run(ENDPOINT, planned("mine.lua", workload=own))
    after = given[given.index("mine.lua") :]
    assert after == ["mine.lua", "--use-fk=off", "--scale=3", "--level=RC", "run"]


def test_a_socket_takes_the_place_of_host_and_port():
    argv = sysbench.run(dataclasses.replace(ENDPOINT, socket=Path("/lab/m.sock")), planned("oltp_insert"))
    assert "--mysql-socket=/lab/m.sock" in argv
    assert not [word for word in argv if word.startswith(("--mysql-host", "--mysql-port"))]


@pytest.mark.parametrize("script", scripts.SCRIPTS)
def test_the_account_stands_in_no_argument(script: str, tmp_path: Path):
    secret = tmp_path / "sysbench.cnf"
    secret.write_text('mysql-user="canary-user"\nmysql-password="canary-word"\n')
    endpoint = dataclasses.replace(ENDPOINT, secret=secret)
    for argv in (sysbench.run(endpoint, planned(script)), sysbench.once(endpoint, 1, sysbench.LOAD)):
        assert "canary" not in " ".join(argv)
        assert not [word for word in argv if "password" in word or "mysql-user" in word]


@pytest.mark.server
@pytest.mark.parametrize("script", scripts.SCRIPTS)
def test_the_real_sysbench_knows_every_option(script: str, tmp_path: Path):
    """A dry run connects to nothing; sysbench refuses an option that a script does not know."""
    secret = tmp_path / "sysbench.cnf"
    secret.write_text('mysql-user="nobody"\n')
    endpoint = dataclasses.replace(ENDPOINT, secret=secret)
    argv = sysbench.run(endpoint, planned(script, discard_s=0, run_s=1, threads=1))
    argv[argv.index("--events=0")] = "--events=5"
    dry = [argv[0], "--mysql-dry-run=on", *argv[1:]]
    taken = subprocess.run(dry, capture_output=True, text=True, timeout=10)
    assert taken.returncode == 0, taken.stdout + taken.stderr
    bogus = subprocess.run(
        [*dry[:-1], "--no-such-option=1", "run"], capture_output=True, text=True, timeout=10
    )
    assert bogus.returncode != 0, "it would say so"
