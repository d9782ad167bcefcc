"""A run is valid only by proof: every check passes, missing evidence never does."""

import json
import re

import pytest
from pydantic import ValidationError

from benchbook.read import validity
from benchbook.read.sysbench_log import parse_log
from benchbook.read.validity import judge_run
from tests.read import corpus, synthetic
from tests.read.corpus import DATA, Case, cases

HEALTHY = synthetic.output()


def ids(judged: validity.Judgement, passed: bool | None) -> list[str]:
    return [check.id for check in judged.checks if check.passed is passed]


def of(changed=None, out: str = HEALTHY, **plan) -> validity.Judgement:
    return judge_run(corpus.healthy(out, synthetic.planned(**plan), "", changed))


def test_a_healthy_run_passes_every_check():
    judged = of()
    assert judged.status == "valid", judged.reasons
    assert ids(judged, True) == [f"V{number}" for number in range(1, 27)]
    assert (judged.reasons, judged.warnings, judged.ledger) == ([], (), "agrees")


def test_a_number_that_no_float_holds_is_no_evidence():
    judged = of({"client": {"cpu_s": 10**400}})
    assert judged.status == "indeterminate"
    # The sentence is in goldens/checked_runs.txt, of another error.
    assert judged.reasons[0].startswith("V15 client CPU: ") and " OverflowError: " in judged.reasons[0]


def test_unknown_limits_are_refused():
    with pytest.raises(ValidationError, match="client_wiat"):
        judge_run(corpus.healthy(HEALTHY, synthetic.planned()), {"client_wiat": 1.0})


def test_a_folder_on_disk(tmp_path):
    folder = synthetic.folder(tmp_path, synthetic.planned(), HEALTHY)
    judged = judge_run(folder)
    assert (judged.status, judged.qps) == ("valid", 2000.0)


def test_an_edited_log_is_found_by_its_hash(tmp_path):
    folder = synthetic.folder(tmp_path, synthetic.planned(), HEALTHY)
    out = folder.path / "sysbench.out"
    out.write_text(re.sub(r"max:( +)40\.00", r"max:\g<1>40.01", out.read_text()))
    judged = judge_run(folder)
    assert (judged.status, ids(judged, False)) == ("invalid", ["V19"])


def test_a_folder_without_files_is_invalid_not_an_error(tmp_path):
    (tmp_path / "r").mkdir()
    judged = judge_run(validity.RunFolder(tmp_path / "r"))
    assert judged.status == "invalid"
    assert ids(judged, True) == []


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_evidence_with_what_is_no_number_is_no_evidence(tmp_path, number):
    """A stolen share of NaN is not above its limit, and not below it either."""
    folder = synthetic.folder(tmp_path, synthetic.planned(), HEALTHY)
    file = folder.path / "evidence.json"
    written = file.read_text()
    file.write_text(written.replace('"steal_pct": 0.0', f'"steal_pct": {number}'))
    assert file.read_text() != written
    judged = judge_run(folder)
    assert "V16" in ids(judged, None), judged.reasons


def test_evidence_that_is_no_json_is_missing(tmp_path):
    folder = synthetic.folder(tmp_path, synthetic.planned(), HEALTHY)
    (folder.path / "evidence.json").write_text(json.dumps({"exit_code": 0})[:-2])
    assert judge_run(folder).status == "invalid"


RUNS = [case for case in cases() if case.plan]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_status(case: Case):
    log = parse_log(case.out)
    assert log.status == case.status, log.why
    assert (log.why == ()) == (log.status == "complete")


@pytest.mark.parametrize("case", RUNS, ids=lambda case: case.name)
def test_verdict(case: Case):
    judged = judge_run(case.run())
    failed = tuple(check.id for check in judged.checks if check.passed is False)
    assert (judged.status, failed) == (case.verdict, case.because), judged.reasons


def test_no_recorded_output_is_without_a_case():
    assert {path.stem for path in DATA.glob("*.out")} == {case.name for case in cases()}


def test_no_password_was_recorded():
    given = re.compile(r"(?:--mysql-password=|MYSQL_PWD=)(?!\$)")
    assert [path.name for path in DATA.iterdir() if given.search(path.read_text(encoding="utf-8"))] == []
