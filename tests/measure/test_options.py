"""Options in a file are taken by the real sysbench as they are asked; what it would not take is not there."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from benchbook.measure import sysbench
from tests.measure.test_sysbench import ENDPOINT, planned


def taken(file: Path) -> dict[str, str]:
    """Ask the real sysbench what it takes from a file."""
    answer = subprocess.run(sysbench.show(file), capture_output=True, text=True, timeout=30, check=True)
    assert answer.stderr == ""
    return sysbench.shown(answer.stdout)


@pytest.mark.parametrize(
    "run",
    [
        planned("oltp_read_write"),
        planned("oltp_point_select", discard_s=0, rate=500, workload={"ps_mode": "disable"}),
        planned(
            "oltp_read_only", workload={"rand_type": "pareto", "rand_pareto_h": 0.2, "ignore_errors": ()}
        ),
    ],
    ids=["defaults", "rate", "pareto"],
)
@pytest.mark.parametrize("tls", ["off", "required"])
def test_sysbench_takes_every_option_from_the_file(run, tls: str, tmp_path: Path):
    asked = sysbench.general(dataclasses.replace(ENDPOINT, tls=tls), run)
    file = tmp_path / "sysbench.cnf"
    file.write_text(sysbench.in_file(asked))
    said = taken(file)
    assert {name: said.get(name) for name in asked} == asked


def test_a_switch_that_is_off_is_left_out_since_sysbench_takes_it_for_on(tmp_path: Path):
    file = tmp_path / "x.cnf"
    file.write_text("histogram=off\n")
    assert taken(file)["histogram"] == "on", "if this fails, sysbench has mended it and `OFF` can go"
    assert "mysql-ssl" not in sysbench.in_file({"threads": "1", "mysql-ssl": "off"})


def test_an_account_is_never_shown(tmp_path: Path):
    file = tmp_path / "x.cnf"
    file.write_text('mysql-user="somebody"\nmysql-password="hidden"\n')
    out = subprocess.run(sysbench.show(file), capture_output=True, text=True, timeout=30).stdout
    assert "hidden" not in out and "somebody" not in out and "mysql_host" in out


def test_with_a_file_the_command_line_has_the_account_the_script_and_its_own_options():
    argv = sysbench.run(ENDPOINT, planned("oltp_point_select"), Path("/run/sysbench.cnf"))
    assert argv[:4] == [
        "sysbench",
        "--config-file=/run/sysbench.cnf",
        "--config-file=/lab/secrets/sysbench.cnf",
        "oltp_point_select",
    ]
    assert argv[4:6] == ["--tables=4", "--table-size=10000"] and argv[-1] == "run"
