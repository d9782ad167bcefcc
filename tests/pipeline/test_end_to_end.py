"""The whole pipeline on a tiny study against a real MariaDB, with a kill -9 in the middle."""

import hashlib
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from tests import beside
from tests.pipeline.clone import BENCHBOOK, DVC, Clone, make

pytestmark = pytest.mark.server
# One workload and thread level, baseline, treatment and twin, three blocks.
RUNS = 1 * 1 * 3 * 3
# The arms of a block are kept together: of a part of them the rest would be made again, and that part too.
GROUP = 3
# Twenty turns a run: what they find is not what this is about. Three arms' discards are a second together.
SHORT = {"discard_s": 0.3, "run_s": 1}


@pytest.fixture(scope="module")
def measured(open_folder):
    """A clone in which `dvc repro` was killed in the middle of run-matrix and then run to its end."""
    clone = make(open_folder / "pipeline")
    clone.study(**SHORT)
    process = clone.start("dvc", "repro")
    try:
        assert beside.until(lambda: len(clone.runs()) >= GROUP or process.poll() is not None, 300)
    finally:
        process.kill()
        said, _ = process.communicate()
    before = {path.name: _digest(path) for path in clone.runs()}
    assert len(before) >= GROUP, said
    assert beside.until(lambda: not clone.processes(), 60), "something of ours lived on after SIGKILL of dvc"
    code, said = clone.run("dvc", "repro")
    assert code == 0, said
    return clone, before, said


@pytest.fixture(scope="module")
def dvc(measured):
    """DVC in that clone, as a function of its words."""
    with measured[0].fork(DVC) as call:
        yield call


@pytest.fixture(scope="module")
def elsewhere(measured, tmp_path_factory):
    """A copy of that clone in another place, without what parse and analyze made; benchbook in it."""
    clone, _, _ = measured
    folder = tmp_path_factory.mktemp("elsewhere")
    other = Clone(folder / "another place", folder / "lab")
    shutil.copytree(clone.path, other.path, ignore=shutil.ignore_patterns("tidy", "findings.json", ".dvc"))
    with other.fork(BENCHBOOK) as call:
        yield other, call


def test_a_killed_matrix_is_resumed_and_no_run_is_lost_or_made_twice(measured):
    clone, before, said = measured
    after = {path.name: _digest(path) for path in clone.runs()}
    assert len(after) == RUNS
    assert {name: after.get(name) for name in before} == before
    assert f"{RUNS} runs planned, {len(before)} there already" in said


def test_the_findings_come_from_all_planned_runs(measured):
    clone, _, _ = measured
    schedule = pd.read_csv(clone.data / "schedule.csv")
    runs = pd.read_parquet(clone.data / "tidy" / "runs.parquet")
    assert set(runs["run_id"]) == set(schedule["run_id"])
    assert set(runs["ledger"]) == {"agrees"}
    found = json.loads((clone.data / "findings.json").read_text())
    (finding,) = found["findings"]
    assert (finding["n"], finding["treatment"], finding["verdict"]) == (3, "haproxy", None)
    assert finding["low"] < finding["effect"] < finding["high"]
    assert found["aa"]["treatment"] == "direct_again"


def test_the_report_is_one_page_that_links_to_the_raw_logs(measured):
    clone, _, _ = measured
    text = (clone.path / "reports" / "studies" / "tiny.html").read_text(encoding="utf-8")
    assert "http://" not in text.replace("http://www.w3.org", "") or 'src="http' not in text
    runs = (clone.path / "reports" / "runs" / "tiny" / "index.html").read_text(encoding="utf-8")
    for folder in clone.runs():
        assert f"data/tiny/raw/{folder.name}/" in runs
    assert "../runs/tiny/index.html" in text
    assert json.loads((clone.data / "findings.json").read_text())["findings"][0]["id"] in text


def test_a_second_repro_does_nothing_and_starts_nothing(measured, dvc):
    clone, _, _ = measured
    stamps = {path: path.stat().st_mtime_ns for path in clone.data.rglob("*") if path.is_file()}
    code, said = dvc("repro")
    assert (code, "up to date" in said) == (0, True), said
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


def test_metrics_of_the_study_can_be_shown(dvc):
    code, said = dvc("metrics", "show", "--json")
    values = json.loads(said)[""]["data"][str(Path("data/tiny/metrics.json"))]["data"]
    assert code == 0
    assert values["oltp_point_select"]["haproxy"]["qps"]["n"] == 3


def test_parse_and_analyze_give_the_same_bytes_elsewhere(measured, elsewhere):
    (clone, _, _), (other, benchbook) = measured, elsewhere
    code, said = benchbook("stage", "--here", "parse,analyze", "tiny")
    assert code == 0, said
    tables = (f"tidy/{path.name}" for path in (clone.data / "tidy").iterdir())
    for name in ("findings.json", "metrics.json", *tables):
        assert (other.data / name).read_bytes() == (clone.data / name).read_bytes(), name


def test_no_artefact_holds_the_password(measured):
    clone, _, _ = measured
    secret = next(clone.lab.rglob("sysbench.cnf")).read_text()
    password = next(line.partition("=")[2].strip('" ') for line in secret.splitlines() if "password" in line)
    assert len(password) >= 16
    files = [path for path in clone.path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in files if password.encode() in path.read_bytes()] == []


def test_a_stranger_among_the_runs_stops_parse(elsewhere):
    other, benchbook = elsewhere
    shutil.copytree(other.runs()[0], other.data / "raw" / "b01-from-elsewhere")
    code, said = benchbook("stage", "--here", "parse", "tiny")
    assert code != 0
    assert "b01-from-elsewhere" in said


def test_one_more_block_and_thread_level_run_only_what_is_new(measured, dvc):
    clone, _, _ = measured
    before = {path.name: _digest(path) for path in clone.runs()}
    clone.study(blocks=4, threads="[1, 2]", **SHORT)
    code, said = dvc("repro", "-s", "run-matrix@tiny")
    assert code == 0, said
    after = {path.name: _digest(path) for path in clone.runs()}
    # 4 blocks of three arms at one thread, where the twin runs too, and two arms at two threads.
    assert len(after) == 4 * (3 + 2)
    assert {name: after.get(name) for name in before} == before


def _digest(folder: Path) -> str:
    parts = [path.name.encode() + path.read_bytes() for path in sorted(folder.iterdir())]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
