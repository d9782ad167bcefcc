"""Killed before any step of its own work, run-matrix takes up where it was: the same runs, all valid."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchbook.core.artifacts import run_folder
from benchbook.core.util import files
from benchbook.read import validity
from tests.faults import leftovers
from tests.faults.conftest import PORT
from tests.limits import LIMITS

pytestmark = pytest.mark.server
ROOT = Path(__file__).resolve().parents[2]
# What two runs took when this was written, and some: the sweep itself says when it is too short.
MOST = 60
WALKS = 3
SHORT = (17,)


class Steps:
    """Walks that are killed, in one lab."""

    def __init__(self, lab: Path) -> None:
        self.lab, self.lock = lab, lab.parent / "machine.lock"

    def walk(self, store: Path, last: int = 0) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(filter(None, (str(ROOT), str(ROOT / "lib"), os.environ.get("PYTHONPATH"))))
        environment = os.environ | {"BENCHBOOK_LOCK": str(self.lock), "PYTHONPATH": path}
        argv = [sys.executable, "-m", "tests.faults.stepper", str(store), str(self.lab), str(PORT), str(last)]
        pipes = {"capture_output": True, "text": True, "timeout": 180, "check": False}
        return subprocess.run(argv, cwd=ROOT, env=environment, **pipes)


@pytest.fixture(scope="module")
def steps(lab: Path) -> Steps:
    return Steps(lab)


@pytest.fixture(scope="module")
def undisturbed(steps: Steps, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], int]:
    """Run ids with their verdicts, and the number of steps, of a walk that nothing disturbed.

    Where a busy machine made a run invalid, the walk made it again: its steps are no walk's length.
    """
    said: list[str] = []
    for _ in range(WALKS):
        store = tmp_path_factory.mktemp("undisturbed")
        done = steps.walk(store)
        assert done.returncode == 0, done.stderr
        if not (notes := list((store / "void").glob("*.void.json"))):
            return verdicts(store), int(re.search(r"steps: (\d+)", done.stdout)[1])
        said += (f"{note.name}: {files.read_json(note)['reasons']}" for note in notes)
    pytest.fail("\n".join([f"each of {WALKS} walks was disturbed:", *said]))


def verdicts(store: Path) -> dict[str, str]:
    return {
        folder.name: validity.judge_run(folder, LIMITS).status
        for folder in run_folder.list_folders(store / "raw")
    }


@pytest.mark.parametrize(
    "last", [pytest.param(n, marks=[] if n in SHORT else pytest.mark.faults) for n in range(1, MOST + 1)]
)
def test_killed_at_a_step_the_store_ends_as_an_undisturbed_one(
    last, steps, undisturbed, tmp_path, inject, book
):
    expected, number = undisturbed
    if last > number:
        pytest.skip(f"the walk has {number} steps")
    inject("F33", f"run-matrix killed at step {last}")
    killed = steps.walk(tmp_path, last)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    book.assert_no_orphans(lambda: leftovers.of_lab(steps.lab, PORT, steps.lock))
    valid = {name for name, status in verdicts(tmp_path).items() if status == "valid"}
    resumed = steps.walk(tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert verdicts(tmp_path) == expected
    assert run_folder.list_unfinished(tmp_path / "raw") == []
    notes = [files.read_json(note) for note in (tmp_path / "void").glob("*.void.json")]
    broken = [note for note in notes if note["status"] in ("killed", "broken")]
    assert len(broken) <= 1, "a kill costs one run at most"
    # The runs are partners in one group, which is there whole or made again whole.
    there = len(expected) if valid == set(expected) else 0
    assert f"{len(expected)} runs planned, {there} there already" in resumed.stdout


def test_the_sweep_is_long_enough(undisturbed: tuple[dict[str, str], int]):
    assert 2 * 8 <= undisturbed[1] <= MOST
    assert set(undisturbed[0].values()) == {"valid"}
