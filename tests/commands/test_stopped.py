"""Stopped means stopped: whichever command, whenever, by whichever signal, nothing of it goes on."""

import os
import random
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchbook.sites.processes import procfs
from benchbook.sites.topology import teardown
from tests import beside, rooms
from tests.faults import leftovers
from tests.pipeline.clone import ROOT, Clone, make

MARK = "BENCHBOOK_TEST_MARK"
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
STUDIES = ("lab-ladder", "lab-socket")
PORT = rooms.port(480)
# How often each command is killed, and the seconds within which that is drawn; servers take some to come up.
KILLS, WITHIN_S, HOLDING_S = int(os.environ.get("BENCHBOOK_KILLS", "1")), 6.0, 20.0
COMMANDS = (
    *("verify data/record/lab-ladder/{newest}.tar.xz", "remake", "pages", "findings", "claims", "publish"),
    *("review HEAD", "check", "plan tiny", "repro audit"),
)
# These start servers.
MEASURING = (
    *("up tiny", "stage provision,prepare,warm-up,run-matrix,parse tiny", "repro --study tiny"),
    *("gate tiny --minutes 2", "session tiny --minutes 5 --anyway", "doctor --noise"),
)


@pytest.fixture(scope="module")
def clone(open_folder: Path) -> Iterator[Clone]:
    """A clone with a record of two studies, so that several workers are at work on it; it is committed."""
    found = make(open_folder / "stopped")
    found.study(blocks=2, port=PORT)
    shutil.rmtree(found.path / "data" / "record", ignore_errors=True)
    for name in STUDIES:
        shutil.copytree(ROOT / "data" / "record" / name, found.path / "data" / "record" / name)
    for argv in (["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "t"]):
        subprocess.run(["git", *argv], cwd=found.path, check=True, capture_output=True)
    yield found


def newest() -> str:
    """Return the newest session of `lab-ladder` in the record."""
    return max(one.name.removesuffix(".tar.xz") for one in (ROOT / "data/record/lab-ladder").glob("*.xz"))


def prepare(name: str, clone: Clone) -> None:
    """Make what a command works on, without which it refuses at once: our own findings, or the pages."""
    own = clone.path / "data" / "lab-ladder"
    shutil.rmtree(own, ignore_errors=True)
    if name == "publish":
        code, said = clone.run("benchbook", "pages")
        assert code == 0, said


def living(mark: str, clone: Clone) -> list[str]:
    """Return the command lines of living processes that have a mark in their environment, or are of a lab."""
    marked = [pid for pid in procfs.list_pids() if procfs.read_environment(pid).get(MARK) == mark]
    found = {*marked, *(child.pid for child in teardown.find_processes(clone.lab, set()))}
    return [procfs.read_command(pid) for pid in sorted(found) if procfs.is_alive(pid)]


def left(mark: str, clone: Clone, within_s: float = 15.0) -> list[str]:
    return beside.gone(lambda: living(mark, clone), within_s)


def stopped(words: list[str], clone: Clone, signum: signal.Signals, after_s: float) -> tuple[str, int, str]:
    """Start a command and send it a signal; return its mark, its exit code and what it said.

    One that has ended by itself is started again and given half the time.
    """
    while True:
        mark = uuid.uuid4().hex
        place = {"cwd": clone.path, "env": clone.environment() | {MARK: mark}, "start_new_session": True}
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(["benchbook", *words], **place, **streams)
        try:
            _, said = process.communicate(timeout=after_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signum)
            _, said = process.communicate(timeout=60)
            return mark, process.returncode, said
        assert process.returncode != 2, said
        after_s /= 2


def kill(command: str, clone: Clone, within_s: float) -> None:
    """Kill a command at drawn moments by drawn signals, and look for what is left."""
    words = command.format(newest=newest()).split()
    name = words[0]
    drawn = random.Random(f"{name} {os.environ.get('BENCHBOOK_SEED', 1)}")
    prepare(name, clone)
    for _ in range(KILLS):
        for folder in (clone.path / "data" / "recorded", clone.path / "reports") if name != "publish" else ():
            shutil.rmtree(folder, ignore_errors=True)
        signum, after_s = drawn.choice(SIGNALS), drawn.uniform(0.1, within_s)
        mark, code, said = stopped(words, clone, signum, after_s)
        told = f"{name}: {signum.name} after at most {after_s:.2f} s: {said[-500:]}"
        assert left(mark, clone) == [], told
        # 128 and the signal, where what was going on ended by it.
        assert code in (0, 130, -signum, 128 + signum), told
        if signum != signal.SIGKILL:
            assert leftovers.networks(clone.lab) == [], told


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_killed_at_any_moment_leaves_nothing_running(command: str, clone: Clone):
    kill(command, clone, WITHIN_S)


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.parametrize("command", MEASURING)
def test_a_command_that_is_killed_with_servers_leaves_none_of_them(command: str, clone: Clone):
    kill(command, clone, HOLDING_S)
    assert teardown.tear_down(clone.lab).is_clean
