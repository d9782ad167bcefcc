"""Folders for labs that nothing is kept of: whatever ends their process, nothing of them stays."""

import multiprocessing.process
import os
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from benchbook.commands import machine_noise
from benchbook.sites import workspace as labs
from benchbook.sites.local import network
from benchbook.sites.machine import capabilities
from benchbook.sites.processes import signal_handling
from benchbook.sites.topology import teardown
from benchbook.sites.workspace import lab_id

ABLE = os.geteuid() == 0 and all(ability.ok for ability in capabilities.check_network()[:3])
# A copy of this process, which has imported all that such a command needs; it shares nothing else with it.
COPIES = multiprocessing.get_context("fork")
Begun = tuple[multiprocessing.process.BaseProcess, Path, str]


def work(said: Connection) -> None:
    """A gate in short: its lab, a site that turns signals into an exit, a namespace if there can be one."""
    with machine_noise.make_lab("gate-") as base, signal_handling.catch_signals():
        lab = labs.open_lab(base / "lab")
        if ABLE:
            network.LabNetwork(lab.token).pod(1)
        said.send((base, lab.token))
        time.sleep(60)


@pytest.fixture
def labs_of_clone(open_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = open_folder / f"labs-{tmp_path.name}"
    monkeypatch.setenv("BENCHBOOK_LAB_DIR", str(folder))
    return folder


@pytest.fixture
def begun(labs_of_clone: Path) -> Iterator[Callable[[], Begun]]:
    """Return a function that starts a command with such a lab; it gives its process, folder and lab's id."""
    started = []

    def start() -> Begun:
        heard, said = COPIES.Pipe(duplex=False)
        one = COPIES.Process(target=work, args=(said,))
        started.append(one)
        one.start()
        # Or else this end stays open, and a copy that failed would be waited for in vain.
        said.close()
        base, token = heard.recv()
        return one, base, lab_id(token)

    yield start
    for one in started:
        one.kill()
        one.join()
    assert teardown.tear_down(labs_of_clone).is_clean


@pytest.fixture
def killed(begun: Callable[[], Begun]) -> tuple[Path, str]:
    """Folder and lab's id of a command that was killed."""
    process, base, id = begun()
    process.kill()
    process.join()
    assert base.is_dir() and bool(network.list_objects(id)) is ABLE
    return base, id


def test_down_removes_what_a_killed_command_left(killed: tuple[Path, str], labs_of_clone: Path):
    base, id = killed
    report = teardown.tear_down(labs_of_clone)
    assert report.is_clean and str(base) in report.removed
    assert not base.exists() and network.list_objects(id) == []
    assert str(teardown.tear_down(labs_of_clone)) == "nothing was left"


def test_the_next_command_removes_it_too_and_leaves_one_that_is_at_work(begun: Callable[[], Begun], killed):
    base, id = killed
    other, kept, kept_id = begun()
    assert not base.exists() and network.list_objects(id) == []
    with machine_noise.make_lab() as mine:
        assert mine.is_dir() and kept.is_dir() and bool(network.list_objects(kept_id)) is ABLE
    assert not mine.exists() and other.is_alive()


def test_a_command_that_is_asked_to_end_leaves_nothing(begun: Callable[[], Begun]):
    process, base, id = begun()
    process.terminate()
    process.join(timeout=30)
    assert process.exitcode == -signal.SIGTERM
    assert not base.exists() and network.list_objects(id) == []


def test_down_asks_a_living_command_to_end(begun: Callable[[], Begun], labs_of_clone: Path):
    process, base, _ = begun()
    report = teardown.tear_down(labs_of_clone)
    process.join(timeout=30)
    assert process.exitcode == -signal.SIGTERM
    assert report.is_clean and not base.exists()
    assert [line for line in report.stopped if line.startswith(f"pid {process.pid} ")]


def test_labs_of_another_clone_are_left_alone(killed, labs_of_clone, monkeypatch):
    base, id = killed
    others = labs_of_clone.with_name(f"others-{labs_of_clone.name}")
    monkeypatch.setenv("BENCHBOOK_LAB_DIR", str(others))
    with machine_noise.make_lab():
        assert base.is_dir()
    assert str(teardown.tear_down(others)) == "nothing was left"
    assert base.is_dir() and bool(network.list_objects(id)) is ABLE
