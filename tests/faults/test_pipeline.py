"""Whatever ends a stage: nothing of ours is left, the log is kept, and the same command goes on."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.read import validity
from tests import beside, rooms
from tests.faults import leftovers
from tests.faults.book import SECONDS
from tests.limits import LIMITS
from tests.pipeline.clone import Clone, make
from tests.site.conftest import edited

pytestmark = pytest.mark.server
PORT = rooms.port(400)
KILL, TERM, HUP, INT = signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT
# Each kind of process and each signal where it hurts most; each stage killed at both ends of its chain.
CASES = [
    *((link, KILL, "run-matrix") for link in ("dvc", "stage", "papermill", "kernel")),
    *((link, TERM, "run-matrix") for link in ("dvc", "stage", "papermill", "kernel")),
    *((link, signum, "run-matrix") for link in ("dvc", "stage", "group") for signum in (HUP, INT)),
    *(("dvc", KILL, stage) for stage in ("provision", "prepare", "warm-up", "parse", "analyze")),
    *(("kernel", KILL, stage) for stage in ("provision", "prepare", "warm-up", "parse", "analyze")),
    *(("group", TERM, stage) for stage in ("prepare", "warm-up")),
    ("everything", KILL, "run-matrix"),
]
SHORT = [("kernel", KILL, "provision")]


@pytest.fixture(scope="module")
def fresh(open_folder: Path) -> Clone:
    """A clone in which nothing has run yet."""
    clone = make(open_folder / "fresh")
    clone.study(blocks=1, port=PORT)
    return clone


@pytest.fixture(scope="module")
def clone(open_folder: Path) -> Clone:
    """A clone in which every stage up to the findings has run once."""
    clone = make(open_folder / "faults")
    clone.study(blocks=1, port=PORT)
    code, said = clone.run("benchbook", "repro", "analyze@tiny")
    assert code == 0, said
    return clone


def with_children(process: subprocess.Popen[str]) -> list[psutil.Process]:
    whole = psutil.Process(process.pid)
    return [whole, *whole.children(recursive=True)]


def chain(process: subprocess.Popen[str]) -> dict[str, psutil.Process]:
    """Return the links of a stage that runs: dvc, the stage, papermill, the kernel."""
    found = {}
    for one in with_children(process):
        try:
            words = one.cmdline()
        except psutil.Error:
            continue
        for name, sign in (("kernel", "ipykernel_launcher"), ("papermill", "papermill"), ("dvc", "dvc")):
            if any(word.endswith(sign) for word in words[:4]):
                found[name] = one
                break
        else:
            if "stage" in words and any(word.endswith("benchbook") for word in words):
                found["stage"] = one
    return found


def strike(process: subprocess.Popen[str], link: str, signum: int) -> None:
    """Send a signal to a link of the chain, to the terminal's group, or to all at once like a power cut.

    KeyError if the link has ended by itself.
    """
    links = chain(process)
    if link == "group":
        os.killpg(process.pid, signum)
    elif link == "everything":
        for one in with_children(process):
            one.send_signal(signum)
    else:
        links[link].send_signal(signum)


def look(clone: Clone) -> list[str]:
    return leftovers.of_lab(clone.lab, PORT, clone.path / ".machine.lock")


def measuring(clone: Clone) -> bool:
    """Say whether a run is going on."""
    # What sysbench prints stands in its file late: with a short run, when it is nearly over.
    return any((clone.data / "raw").glob("*.part/sysbench.out"))


def forget_a_run(clone: Clone) -> None:
    """Take the last run away, so that there is something to measure."""
    last = max(run_folder.list_folders(clone.data / "raw"), key=lambda folder: folder.plan()["position"])
    shutil.rmtree(last.path)
    # Each strike before was a try of its group, and of those there are few.
    shutil.rmtree(clone.data / "void", ignore_errors=True)


def wait_for_work(process: subprocess.Popen[str], clone: Clone, stage: str, pause_s: float) -> None:
    """Wait until a stage's kernel is at work, or until the stage has ended."""
    assert beside.until(lambda: "kernel" in chain(process) or process.poll() is not None, 120)
    if stage == "run-matrix":
        assert beside.until(lambda: measuring(clone) or process.poll() is not None, 120)
    else:
        time.sleep(pause_s)


def hit(clone: Clone, stage: str, link: str, signum: int, argv: list[str]) -> tuple[int, str]:
    """Run a stage, strike once its kernel is at work, and return exit code and output.

    A stage whose work was over before it was struck is run again and struck sooner.
    """
    for pause_s in (1.0, 0.4, 0.1):
        if stage == "run-matrix":
            forget_a_run(clone)
        process = clone.start(*argv)
        try:
            wait_for_work(process, clone, stage, pause_s)
            strike(process, link, signum)
            said, _ = process.communicate(timeout=60)
            if process.returncode != 0 or (link, signum) == ("dvc", INT):
                return process.returncode, said
        except (KeyError, ProcessLookupError, psutil.NoSuchProcess):
            said, _ = process.communicate(timeout=60)
            assert process.returncode == 0, said
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
    raise AssertionError(f"{stage} was over each time before its {link} was struck")


@pytest.mark.parametrize(("link", "signum", "stage"), SHORT)
def test_a_stage_that_is_struck_leaves_nothing_and_runs_again(link, signum, stage, fresh, inject, book):
    """Without DVC around it, which is slow to start."""
    inject("F32", f"{link} of {stage} ended with {signal.Signals(signum).name}, without DVC")
    code, said = hit(fresh, stage, link, signum, ["benchbook", "stage", stage, "tiny"])
    book.assert_no_orphans(lambda: look(fresh))
    assert code != 0 and "Traceback" not in said
    assert "01_provision failed" in said and "in data/tiny/failed" in said
    assert list((fresh.data / "failed").glob("01_provision-*"))
    assert not fresh.data.joinpath("facts.json").exists()
    code, said = fresh.run("benchbook", "stage", stage, "tiny")
    assert code == 0, said


@pytest.mark.faults
@pytest.mark.parametrize(("link", "signum", "stage"), CASES)
def test_a_pipeline_that_is_struck_leaves_nothing_and_goes_on(link, signum, stage, clone, inject, book):
    row = "F50" if link == "everything" else "F30" if link == "dvc" and signum == KILL else "F31"
    inject(row, f"{link} ended with {signal.Signals(signum).name} in {stage}")
    code, said = hit(clone, stage, link, signum, ["dvc", "repro", "-f", "-s", f"{stage}@tiny"])
    book.assert_no_orphans(lambda: look(clone))
    # DVC itself leaves Ctrl-C to the stage, as the terminal sends it to both; alone it stops nothing.
    assert (code == 0) == ((link, signum) == ("dvc", INT)), said
    code, said = clone.run("dvc", "repro", "-s", f"{stage}@tiny")
    assert code == 0, said
    assert beside.gone(lambda: look(clone), SECONDS) == []
    if stage == "run-matrix":
        kept = list(run_folder.list_folders(clone.data / "raw"))
        assert len(kept) == 3, said
        assert {validity.judge_run(RunFolder(folder.path), LIMITS).status for folder in kept} == {"valid"}


@pytest.mark.faults
def test_a_notebook_that_fails_is_kept_with_its_log(clone: Clone, inject: Callable[..., None]):
    """DVC removes a stage's outputs before it runs again; these it does not know."""
    inject("F41", "a stage that fails over a damaged file")
    facts = clone.data / "facts.json"
    with edited(facts, facts.read_bytes()[:100]):
        code, said = clone.run("benchbook", "stage", "analyze", "tiny")
    assert code != 0
    assert "facts.json: cannot be" in said and "Traceback" not in said
    kept = sorted((clone.data / "failed").glob("06_analyze-*"))
    assert {path.suffix for path in kept} == {".ipynb", ".log"}
    code, said = clone.run("dvc", "repro", "-f", "-s", "analyze@tiny")
    assert code == 0, said
    assert sorted((clone.data / "failed").glob("06_analyze-*")) == kept


@pytest.mark.faults
def test_a_second_repro_in_a_clone_and_one_in_another_clone_are_refused(clone, fresh, inject):
    """The first lasts until the others were refused, and is not disturbed; they name who is at work."""
    inject("F34", "a second repro in the same clone")
    inject("F34", "a stage of another clone on the same machine")
    clone.study(blocks=6, port=PORT)
    first = clone.start("dvc", "repro", "-f", "-s", "run-matrix@tiny")
    try:
        assert beside.until(lambda: measuring(clone) or first.poll() is not None, 120)
        shared = fresh.environment() | {"BENCHBOOK_LOCK": clone.environment()["BENCHBOOK_LOCK"]}
        asked = ["benchbook", "stage", "provision", "tiny"]
        other = subprocess.run(asked, cwd=fresh.path, env=shared, capture_output=True, text=True, check=False)
        is_at_work = first.poll() is None
        second, words = clone.run("benchbook", "repro", "-f", "-s", "run-matrix@tiny")
    finally:
        said, _ = first.communicate(timeout=600)
    assert first.returncode == 0, said
    assert is_at_work
    assert other.returncode == 1
    assert "being measured by pid" in other.stderr
    assert second != 0 and "this clone: process " in words and "`kill -INT " in words
    assert beside.gone(lambda: look(clone) + look(fresh), SECONDS) == []
