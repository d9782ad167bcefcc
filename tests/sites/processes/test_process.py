"""A child cannot outlive its owner, and nobody else's process is ever ended."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchbook.core.errors import SiteError
from benchbook.sites.processes import process, procfs


@pytest.fixture
def child(tmp_path: Path):
    started = process.start(
        "test",
        ["/bin/sleep", "60"],
        token="mine",
        folder=tmp_path,
        out=tmp_path / "out",
        pidfile=tmp_path / "pid.json",
    )
    yield started
    process.stop(started, grace_s=1)


def test_a_pid_file_proves_ownership_until_the_process_ends(child: process.Child, tmp_path: Path) -> None:
    pidfile = tmp_path / "pid.json"
    assert process.read_pidfile(pidfile) == child
    assert process.is_ours(pidfile)
    assert process.stop(child) is True
    assert not process.is_ours(pidfile) and not child.is_alive


@pytest.mark.parametrize("change", [{"token": "another"}, {"started": 1}])
def test_a_process_that_took_over_the_id_is_left_alone(child: process.Child, change: dict) -> None:
    other = replace(child, popen=None, **change)
    assert not process.is_ours(other)
    process.stop(other)
    assert child.is_alive


@pytest.mark.parametrize("text", ["", '{"pid": 1', "[]", '{"pid": "x"}'])
def test_an_empty_or_cut_pid_file_proves_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "pid").write_text(text)
    assert not process.is_ours(tmp_path / "pid") and not process.is_ours(tmp_path / "missing")


def test_a_child_that_ignores_term_and_one_that_is_stopped_end_too(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    deaf = process.start(
        "deaf", [sys.executable, "-c", code], token="t", folder=tmp_path, out=tmp_path / "out"
    )
    while not (tmp_path / "out").read_text():
        time.sleep(0.01)
    assert process.stop(deaf, grace_s=0.2) is False
    asleep = process.start("asleep", ["/bin/sleep", "60"], token="t", folder=tmp_path, out=tmp_path / "out")
    os.kill(asleep.pid, signal.SIGSTOP)
    assert process.stop(asleep, grace_s=5) is True


def test_a_child_has_its_own_group_a_plain_environment_and_no_pipe(child: process.Child) -> None:
    assert os.getpgid(child.pid) == child.pid and os.getsid(child.pid) == os.getsid(0)
    assert set(procfs.environment(child.pid)) == {"PATH", "LC_ALL", "TZ", process.TOKEN, process.FOLDER}
    targets = [os.readlink(f"/proc/{child.pid}/fd/{fd}") for fd in (0, 1, 2)]
    assert targets[0] == "/dev/null" and not any(target.startswith("pipe:") for target in targets)


def test_a_thread_may_not_start_children(tmp_path: Path) -> None:
    """The kernel would end the child with the thread."""
    raised: list[BaseException] = []

    def attempt() -> None:
        try:
            process.start("x", ["/bin/true"], token="t", folder=tmp_path, out=tmp_path / "out")
        except SiteError as error:
            raised.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    assert "main thread" in str(raised[0])


def test_a_missing_program_and_one_that_hangs_are_site_errors(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="/no/such"):
        process.start("x", ["/no/such"], token="t", folder=tmp_path, out=tmp_path / "out")
    slow = process.start("slow", ["/bin/sleep", "60"], token="t", folder=tmp_path, out=tmp_path / "out")
    with pytest.raises(SiteError, match="did not end within 0 s"):
        process.wait(slow, 0.05)
    assert not slow.is_alive


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give rights away")
def test_a_child_without_our_rights_still_dies_with_its_owner(tmp_path: Path) -> None:
    """Giving rights away clears the kernel's promise, so it must come first."""
    code = f"""
import time
from pathlib import Path
from benchbook.sites.processes import process
child = process.start("x", ["/bin/sleep", "60"], token="t", folder=Path("/"), user="nobody",
                      out=Path({str(tmp_path / "out")!r}))
print(child.pid, flush=True)
time.sleep(60)
"""
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pid = int(owner.stdout.readline())
    assert Path(f"/proc/{pid}").stat().st_uid == pwd.getpwnam("nobody").pw_uid
    owner.kill()
    owner.wait()
    owner.stdout.close()
    deadline = time.monotonic() + 5
    while procfs.is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not procfs.is_alive(pid)
