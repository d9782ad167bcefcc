"""`make repro`: the study that was named is the one measured, and what it says at its end."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchbook.commands import new, pages, repro, studies, terminal_summary
from benchbook.core.util import paths
from benchbook.core.util.errors import BenchbookError, InputErrors
from benchbook.plan import schedule
from tests.goldens import assert_golden
from tests.house import tree
from tests.pipeline import clone as clones

QUICK = "  quick: studies/quick.yaml\n"
LISTED = f"studies:                # what is measured\n{QUICK}\nsources:\n  - tidb-kubernetes\n"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone without anything measured."""
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    (tmp_path / ".dvc" / "tmp").mkdir(parents=True)
    return tmp_path


def test_make_hands_the_study_that_was_named_on():
    for given, only in ((["STUDY=own"], "benchbook repro --study 'own'"), ([], "benchbook repro ")):
        asked = ["make", "-n", "repro", *given]
        shown = subprocess.run(asked, cwd=tree.ROOT, capture_output=True, text=True, check=True).stdout
        assert only in shown and ("--study" in shown) == bool(given)


def test_a_study_that_the_pipeline_does_not_know_yet_is_added(clone: Path, capsys):
    file = clone / "params.yaml"
    file.write_text(LISTED)
    assert studies.enlist_study(clone, "own") is True
    assert file.read_text() == LISTED.replace(QUICK, f"{QUICK}  own: studies/own.yaml\n")
    assert "own added under studies" in capsys.readouterr().out
    assert studies.enlist_study(clone, "own") is False
    file.write_text("studies: {quick: studies/quick.yaml}\n")
    with pytest.raises(InputErrors, match=r"^params\.yaml: .*`  own: studies/"):
        studies.enlist_study(clone, "own")
    (clone / "studies" / "pool").mkdir(parents=True)
    (clone / "studies" / "pool" / "own.yaml").write_text("")
    file.write_text(LISTED)
    studies.enlist_study(clone, "own")
    assert "\n  own: studies/pool/own.yaml\n" in file.read_text(), "with its file in a folder"


def test_names_without_files_are_refused_with_the_lines_to_write(clone: Path):
    (clone / "dvc.yaml").write_text("stages: {}\n")
    (clone / "params.yaml").write_text("studies:\n  - quick\n  - own\n")
    said = r"params\.yaml:1: studies: .* write\nstudies:\n  quick: studies/quick\.yaml\n  own: studies/own"
    for asked in (lambda: repro.run_command(["--study", "own"]), repro.rebuild_pages):
        with pytest.raises(InputErrors, match=said):
            asked()


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[list[object]]:
    """What would have been done: DVC asked, an answer rendered, pages made."""
    calls: list[list[object]] = []
    monkeypatch.setattr(repro, "_run_dvc", lambda root, words: calls.append(words) or (0, False))
    monkeypatch.setattr(
        terminal_summary, "render_answer", lambda study: calls.append(["answer", study]) or []
    )
    monkeypatch.setattr(pages, "make_pages", lambda with_record: calls.append(["pages", with_record]) or 0)
    return calls


def run(*words: str) -> tuple[int, bool]:
    return repro.run_request(paths.find_root(), repro.ReproRequest.parse([*words]))


def test_one_study_asks_for_no_other_and_its_answer_waits_for_no_page(clone, done):
    """`findings` depends on the pages of all studies: DVC would measure those too, if asked in one go.

    What is recorded is not made again on the way.
    """
    assert run("--study", "own", "--force") == (0, False)
    assert done == [["repro", "--force", "report@own", "runs@own"], ["answer", "own"], ["pages", False]]


def test_what_would_be_done_for_a_new_study_is_said_by_a_real_dvc(open_folder: Path):
    """DVC reads what a stage depends on, dry too, and ends at the first file that is not there yet."""
    there = clones.make(open_folder / "dry")
    (there.path / "studies" / "other.yaml").write_text((there.path / "studies" / "tiny.yaml").read_text())
    listed = there.path / "params.yaml"
    listed.write_text(listed.read_text().replace("{tiny: studies/tiny.yaml}", "\n  tiny: studies/tiny.yaml"))
    code = there.path / "data" / "site" / "code"
    code.mkdir(parents=True)
    (code / "tiny.json").write_text("{}")
    stages = [f"{stage}@other" for stage in (*paths.STAGES, "runs")]
    ask = ("benchbook", "repro", "--study", "other", "--dry")
    exit_code, said = there.run(*ask)
    assert (exit_code, re.findall(r"Running stage '(.+)'", said)) == (0, ["code", *stages]), said
    # As it is after a provision alone.
    (code / "other.json").write_text("{}")
    (there.path / "data" / "other").mkdir()
    (there.path / "data" / "other" / "facts.json").write_text("{}")
    exit_code, said = there.run(*ask)
    assert (exit_code, re.findall(r"Running stage '(.+)'", said)[-len(stages) :]) == (0, stages), said


def test_a_study_without_its_baseline_fails_at_once_unless_it_was_measured(clone, monkeypatch):
    """A password that nobody set is told before any stage; an answer that is there needs none."""
    monkeypatch.delenv("BENCH_PASSWORD", raising=False)
    arms = "a: endpoint=db-a:3306; b: endpoint=db-b:3306"
    asked = ("servers", "own", "Which is it?", arms, "mariadb", ("oltp_point_select",), (1,))
    new.write_study(new.Answers(*asked))
    why = "site.existing.password_env: BENCH_PASSWORD: this variable is not set; "
    why += "`export BENCH_PASSWORD=...` first"
    with pytest.raises(InputErrors) as caught:
        list(repro._list_expected("own"))
    assert caught.value.errors == [f"own: a, its baseline: {why}"]
    (clone / "data" / "own").mkdir(parents=True)
    (clone / "data" / "own" / "facts.json").write_text("{}")
    assert list(repro._list_expected("own"))[1] == f"own: a will be skipped: {why}"
    monkeypatch.setenv("BENCH_PASSWORD", "word")
    assert list(repro._list_expected("own")) == [f"own: measured {schedule.PRIORITY['raised']}"]


def test_who_asks_for_one_page_gets_those_that_it_leads_to(clone: Path, done: list[list[object]]):
    """As the tutorial does with `make repro ARGS=report@own`: no link of the page may be dead."""
    (clone / "studies").mkdir(exist_ok=True)
    (clone / "studies" / "own.yaml").write_text("")
    (clone / "params.yaml").write_text(
        "studies: {own: studies/own.yaml}\nsources: []\nanalysis: {}\nlimits: {}\n"
    )
    assert run("--force", "report@own") == (0, False)
    assert [one for one in done if one[0] != "answer"] == [
        ["repro", "--force", "report@own", "runs@own"], ["pages", False]]  # fmt: skip


def test_a_study_that_could_not_be_measured_has_no_answer_nor_pages(clone, done, monkeypatch, capsys):
    monkeypatch.setattr(repro, "_run_dvc", lambda root, words: done.append(words) or (255, False))
    assert run("--study", "own") == (1, False)
    told = "failed; fix the error above; nothing was measured yet; the same command goes on\n"
    assert capsys.readouterr().err == told
    assert done == [["repro", "report@own", "runs@own"]]


def test_after_a_failure_no_link_of_what_is_there_is_dead(clone: Path, monkeypatch: pytest.MonkeyPatch):
    page = clone / "reports" / "studies" / "own.html"
    page.parent.mkdir(parents=True)
    page.write_text('<a href="../index.html">Findings</a> <a href="../runs/own/index.html#run-1">1</a>')
    monkeypatch.setattr(repro, "_run_dvc", lambda root, words: (1, False))
    assert run("--study", "own") == (1, False)
    first, runs = (clone / "reports" / name for name in ("index.html", "runs/own/index.html"))
    assert "make pages</code>" in first.read_text()
    assert 'id="run-1"' in runs.read_text() and "make repro STUDY=own<" in runs.read_text()
    # What nothing leads to any more goes.
    page.unlink()
    assert pages.stand_in(clone) == [] and not first.exists() and not runs.exists()


def test_a_second_one_is_refused_in_one_line(clone: Path):
    hold = (
        "import sys; from pathlib import Path; from benchbook.commands import repro\n"
        f"with repro.lock_clone(Path({str(clone)!r})): print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout.readline() == "held\n"
        named = rf"another `make repro` .* \(process {other.pid}\)"
        with pytest.raises(BenchbookError, match=named) as refusal, repro.lock_clone(clone):
            pass
        assert "\n" not in str(refusal.value)
    finally:
        other.communicate()
    with repro.lock_clone(clone):
        pass


def test_a_dvc_that_runs_is_named_before_anything_starts(clone: Path):
    child = subprocess.Popen(["sleep", "60"])
    try:
        held = {"write": {str(clone / "data"): {"pid": child.pid, "cmd": "dvc repro"}}, "read": {}}
        (clone / ".dvc" / "tmp" / "rwlock").write_text(json.dumps(held))
        (line,) = repro.resolve_locks(clone)
        assert f"process {child.pid}" in line and "wait until it ends" in line
    finally:
        child.kill()
        child.wait()


def test_a_misspelt_stage_is_answered_with_the_nearest(clone: Path):
    (clone / "dvc.yaml").write_text(
        "stages:\n  report: {foreach: '${studies}', do: {cmd: 'true'}}\n  method: {cmd: 'true'}\n"
    )
    (clone / "params.yaml").write_text("studies: {own: studies/own.yaml}\n")
    assert repro.no_stages(clone, ["--force", "report@own", "method"]) == []
    assert repro.no_stages(clone, ["--jobs", "2", "-f", "report@own"]) == []
    lines = repro.no_stages(clone, ["reprot@own", "metod", "x@y"])
    assert_golden("misspelt_stages.txt", "\n".join(lines) + "\n")


def test_a_stage_by_hand_outside_the_environment_says_what_to_do(tmp_path: Path):
    """`dvc repro` of the system, in a clone that was never set up: the stage's own line is all there is."""
    (tmp_path / "tools").mkdir()
    shutil.copy(tree.ROOT / "tools" / "benchbook", tmp_path / "tools")
    command = ["sh", "-c", "exec tools/benchbook stage parse quick"]
    bare = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 127 and "make setup" in done.stderr
    own = tmp_path / ".venv" / "bin" / "benchbook"
    own.parent.mkdir(parents=True)
    own.write_text('#!/bin/sh\necho "$*"; command -v benchbook\n')
    own.chmod(0o755)
    done = subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, text=True, check=False)
    assert done.stdout == f"stage parse quick\n{own}\n"
