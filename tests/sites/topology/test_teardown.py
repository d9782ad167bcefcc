"""`down` ends what is ours by proof and touches nothing else."""

import os
import subprocess
from pathlib import Path

import pytest

from benchbook.sites import workspace as labs
from benchbook.sites.processes import process, procfs
from benchbook.sites.topology import teardown


@pytest.fixture
def sleeper():
    """Return a function that starts /bin/sleep with an environment."""
    started: list[subprocess.Popen] = []

    def start(**environment: str) -> subprocess.Popen:
        started.append(subprocess.Popen(["/bin/sleep", "60"], env=environment))
        return started[-1]

    yield start
    for popen in started:
        popen.kill()
        popen.wait()


def test_ours_end_and_foreign_ones_stay(open_folder: Path, sleeper) -> None:
    lab = labs.open_lab(open_folder / "clean" / "one")
    elsewhere = {process.TOKEN: "gone", process.FOLDER: str(lab.folder)}
    ours = [sleeper(**{process.TOKEN: lab.token}), sleeper(**elsewhere)]
    near = {process.TOKEN: "x", process.FOLDER: f"{open_folder}/clean-other"}
    others = [sleeper(), sleeper(**near), sleeper(**{process.TOKEN: "x"})]
    (lab.run / "server.json").write_text("{")
    report = teardown.tear_down(open_folder / "clean")
    assert report.is_clean and len(report.stopped) == 2
    assert [popen.wait(timeout=60) for popen in ours] == [-15, -15]
    assert [popen.poll() for popen in others] == [None, None, None]
    assert report.removed == [str(lab.run / "server.json")]
    assert str(teardown.tear_down(open_folder / "clean")) == "nothing was left"


def test_a_stale_note_of_an_owner_ends_nobody(open_folder: Path, sleeper) -> None:
    """The id of a dead owner may belong to somebody else by now."""
    lab = labs.open_lab(open_folder / "stale")
    other = sleeper()
    process.write_pidfile(lab.pidfile("owner"), process.Child("owner", other.pid, 1, lab.token))
    assert teardown.tear_down(lab.folder).is_clean
    assert other.poll() is None and not lab.pidfile("owner").exists()


def test_an_owner_that_does_not_end_is_told_and_its_lab_stays(
    open_folder: Path, sleeper, monkeypatch
) -> None:
    lab = labs.open_lab(open_folder / "stubborn")
    owner = sleeper()
    started = procfs.read_stat(owner.pid).started
    process.write_pidfile(lab.pidfile("owner"), process.Child("owner", owner.pid, started, lab.token))
    monkeypatch.setattr(teardown, "OWNER_S", 0.1)
    # As if it heard nothing.
    monkeypatch.setattr(teardown.signal, "pidfd_send_signal", lambda *_: None)
    report = teardown.tear_down(lab.folder, purge=True)
    assert [line.partition(":")[0] for line in report.left] == [f"pid {owner.pid}"]
    assert (report.stopped, report.removed, lab.folder.is_dir()) == ([], [], True)


def test_purge_removes_labs_and_only_labs(open_folder: Path) -> None:
    root = open_folder / "purge"
    lab = labs.open_lab(root / "lab")
    (root / "notes").mkdir()
    assert teardown.tear_down(root, purge=True).removed == [str(lab.folder)]
    assert os.listdir(root) == ["notes"]


def test_a_folder_that_never_was_is_clean(tmp_path: Path) -> None:
    assert teardown.tear_down(tmp_path / "never").is_clean


def test_after_a_kill_nothing_of_a_lab_stays_unless_its_owner_is_at_work(open_folder: Path, sleeper) -> None:
    lab = labs.open_lab(open_folder / "killed")
    owner, server = sleeper(), sleeper(**{process.TOKEN: lab.token})
    started = procfs.read_stat(owner.pid).started
    process.write_pidfile(lab.pidfile("owner"), process.Child("owner", owner.pid, started, lab.token))
    teardown.after_kill(lab.folder)
    assert server.poll() is None and owner.poll() is None
    # Whoever asks for everything to be stopped is told of it first.
    (at_work,) = teardown.owners_at_work(lab.folder)
    assert at_work.startswith(f"pid {owner.pid}: ")
    owner.kill()
    owner.wait()
    assert teardown.owners_at_work(lab.folder) == []
    teardown.after_kill(lab.folder)
    assert server.wait(timeout=60) == -15 and not lab.pidfile("owner").exists()
