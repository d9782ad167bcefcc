"""Every recorded output of sysbench gets the verdict it must get."""

from __future__ import annotations

import re

import pytest

from benchbook.read.sysbench_log import parse
from benchbook.read.validity import judge
from tests.read.corpus import DATA, Case, cases

RUNS = [case for case in cases() if case.plan]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_status(case: Case):
    log = parse(case.out)
    assert log.status == case.status, log.why
    assert (log.why == ()) == (log.status == "complete")


@pytest.mark.parametrize("case", RUNS, ids=lambda case: case.name)
def test_verdict(case: Case):
    judged = judge(case.run())
    failed = tuple(check.id for check in judged.checks if check.passed is False)
    assert (judged.status, failed) == (case.verdict, case.because), judged.reasons


@pytest.mark.parametrize("case", [case for case in RUNS if case.exit_code == 0], ids=lambda case: case.name)
def test_exit_code_0_is_no_proof(case: Case):
    """Of these runs, all ended with 0; those that are worthless must not pass."""
    worthless = re.match(
        r"06|08|9[2-9]|10|11|12c|13|16|17|20|21|25|26|30b|42[df]|43|50f|52|61|70c|71e|71i|72|73|checkp|hist|hook|int"
        r"|mh|rate|v11",
        case.name,
    )
    assert (judge(case.run()).status == "valid") == (worthless is None)


def test_no_recorded_output_is_without_a_case():
    assert {path.stem for path in DATA.glob("*.out")} == {case.name for case in cases()}


def test_no_password_was_recorded():
    given = re.compile(r"(?:--mysql-password=|MYSQL_PWD=)(?!\$)")
    assert [path.name for path in DATA.iterdir() if given.search(path.read_text(encoding="utf-8"))] == []
