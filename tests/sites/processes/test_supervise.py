"""Nothing of a stage is alive after it, whichever process is hit by whichever signal."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from benchbook.sites.processes import procfs
from tests import beside

MARK = "BENCHBOOK_TEST_MARK"

# A stage process as papermill is, a kernel in a session of its own, and its child as the server is.
KERNEL = """
import subprocess, sys, time
from pathlib import Path
from benchbook.sites.processes import process, supervise
supervise.die_with_parent()
folder = Path(sys.argv[1])
process.start_child("server", ["/bin/sleep", "60"], token="t", folder=folder, out=folder / "out",
              pidfile=folder / "server", env={"BENCHBOOK_TEST_MARK": sys.argv[2]})
(folder / "ready").touch()
time.sleep(60)
"""
STAGE = """
import os, subprocess, sys
folder, mark = sys.argv[1:3]
kernel = subprocess.Popen([sys.executable, folder + "/kernel.py", folder, mark], start_new_session=True,
                          env={**os.environ, "JPY_PARENT_PID": str(os.getpid())})
kernel.wait()
"""


def alive(mark: str) -> list[int]:
    """Return the living processes that carry a mark in their environment."""
    marked = (pid for pid in procfs.list_pids() if procfs.read_environment(pid).get(MARK) == mark)
    return [pid for pid in marked if procfs.is_alive(pid)]


def wait_gone(mark: str) -> list[int]:
    return beside.gone(lambda: alive(mark))


@pytest.fixture
def chain(tmp_path: Path):
    """Start supervisor → stage → kernel → child; return the supervisor's Popen and the chain's mark."""
    mark = uuid.uuid4().hex
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "stage.py").write_text(STAGE)
    argv = ["benchbook.sites.processes.supervise", sys.executable, str(tmp_path / "stage.py")]
    argv += [str(tmp_path), mark]
    env = {**os.environ, MARK: mark}
    supervisor = subprocess.Popen([sys.executable, "-m", *argv], env=env, start_new_session=True)
    beside.until((tmp_path / "ready").exists)
    assert len(alive(mark)) == 4
    yield supervisor, mark
    for pid in alive(mark):
        os.kill(pid, signal.SIGKILL)
    supervisor.wait()


@pytest.mark.parametrize(
    ("signum", "code"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129), (signal.SIGKILL, -9)],
)
def test_a_signal_to_the_supervisor_ends_everything(chain, signum: int, code: int) -> None:
    supervisor, mark = chain
    supervisor.send_signal(signum)
    assert supervisor.wait(timeout=60) == code
    assert wait_gone(mark) == []


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_killing_any_link_ends_everything(chain, depth: int) -> None:
    supervisor, mark = chain
    os.kill(procfs.find_descendants(supervisor.pid)[depth], signal.SIGKILL)
    if depth == 2:
        # The kernel lives on without its server and reports that itself; the stage goes on.
        assert beside.until(lambda: len(alive(mark)) == 3)
        time.sleep(0.2)
        assert len(alive(mark)) == 3
        return
    supervisor.wait(timeout=60)
    assert wait_gone(mark) == []


def test_a_stage_hit_by_kill_is_reported_as_137(chain) -> None:
    supervisor, _ = chain
    os.kill(procfs.find_descendants(supervisor.pid)[0], signal.SIGKILL)
    assert supervisor.wait(timeout=60) == 137


def test_the_death_of_the_pipeline_behind_a_shell_ends_everything(tmp_path: Path) -> None:
    """A pipeline that runs its command lines through a shell, without exec, still takes the stage with it."""
    mark = uuid.uuid4().hex
    inner = f"{sys.executable} -m benchbook.sites.processes.supervise sleep 60; true"
    code = f"import subprocess; subprocess.run({inner!r}, shell=True)"
    pipeline = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, MARK: mark})
    beside.until(lambda: len(alive(mark)) >= 4)
    pipeline.kill()
    pipeline.wait()
    assert wait_gone(mark) == []


def test_the_exit_code_of_the_stage_is_passed_on_and_orphans_are_collected() -> None:
    mark = uuid.uuid4().hex
    script = "setsid sleep 60 >/dev/null 2>&1 & exit 7"
    argv = [sys.executable, "-m", "benchbook.sites.processes.supervise", "sh", "-c", script]
    done = subprocess.run(argv, env={**os.environ, MARK: mark})
    assert done.returncode == 7
    assert alive(mark) == []


def test_a_supervisor_that_is_stopped_and_continued_keeps_the_stage_and_its_exit_code(tmp_path: Path) -> None:
    """Each stage lasts until the other end of a pipe is closed."""
    supervisors = {}
    with contextlib.ExitStack() as ends:
        for code in (0, 7):
            os.mkfifo(pipe := tmp_path / f"pipe-{code}")
            program = f"import sys; open(sys.argv[1]).read(); sys.exit({code})"
            argv = ["benchbook.sites.processes.supervise", sys.executable, "-c", program, str(pipe)]
            supervisors[code] = subprocess.Popen([sys.executable, "-m", *argv], start_new_session=True)
            ends.enter_context(pipe.open("w"))
        # A wait lasts 0.2 s: most stops of 0.05 to 0.35 s go past its end, which is what made up a signal.
        for turn in range(30):
            for signum, lasts_s in ((signal.SIGSTOP, 0.05 + 0.05 * (turn % 7)), (signal.SIGCONT, 0.02)):
                for supervisor in supervisors.values():
                    os.kill(supervisor.pid, signum)
                time.sleep(lasts_s)
            for supervisor in supervisors.values():
                assert supervisor.poll() is None, f"ended at stop {turn + 1} with {supervisor.returncode}"
    assert {code: one.wait(timeout=60) for code, one in supervisors.items()} == {0: 0, 7: 7}


def test_a_signal_sent_to_a_stopped_supervisor_counts_once_it_goes_on(chain) -> None:
    supervisor, mark = chain
    os.kill(supervisor.pid, signal.SIGSTOP)
    supervisor.send_signal(signal.SIGTERM)
    time.sleep(0.4)
    os.kill(supervisor.pid, signal.SIGCONT)
    assert supervisor.wait(timeout=60) == 143
    assert wait_gone(mark) == []


def test_a_missing_program_is_named() -> None:
    argv = [sys.executable, "-m", "benchbook.sites.processes.supervise", "/no/such"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 127
    assert "/no/such" in done.stderr


def test_die_with_parent_leaves_an_interactive_session_alone() -> None:
    code = "from benchbook.sites.processes import supervise; supervise.die_with_parent(); print('alive')"
    env = {key: value for key, value in os.environ.items() if key != "BENCHBOOK_OWNER"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout == "alive\n"
