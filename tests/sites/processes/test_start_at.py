"""Programs that are to begin together do, and say when they did."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil

from benchbook.sites.processes import process, start_at


def started(folder: Path, number: int, at: float) -> start_at.Timed:
    note = folder / f"begun-{number}"
    argv = start_at.waiting(["sleep", "1"], at, note)
    child = process.start(f"client-{number}", argv, token="t", folder=folder, out=folder / f"{number}.out")
    return start_at.timed(child, note)


def test_several_begin_at_one_moment_whenever_they_were_started(tmp_path: Path):
    at = time.monotonic() + 3.0  # a busy machine takes its time to start three
    children = []
    for number in range(3):
        children.append(started(tmp_path, number, at))
        time.sleep(0.4)
    assert [child.begun_s for child in children] == [None] * 3, "they wait"
    names: list[str] = []
    while names != ["sleep"] * 3 and time.monotonic() < at + 0.9:
        time.sleep(0.01)
        names = [psutil.Process(child.pid).name() for child in children]
    assert names == ["sleep"] * 3, "the same process"
    begun = [child.begun_s for child in children]
    assert all(child.popen.wait(timeout=10) == 0 for child in children)
    assert all(at <= one < at + 0.5 for one in begun)
    # They were started 0.4 s apart, the last 0.8 s after the first.
    assert max(begun) - min(begun) < 0.4


def test_one_whose_moment_has_passed_begins_at_once(tmp_path: Path):
    (tmp_path / "begun-0").write_text("1.0")
    before = time.monotonic()
    child = started(tmp_path, 0, before - 60)
    assert child.popen.wait(timeout=10) == 0
    assert before < child.begun_s < time.monotonic(), "an older note is not taken for its own"


def test_one_that_waits_dies_with_its_owner(tmp_path: Path):
    owner = (
        "import sys, time; from pathlib import Path; "
        "from benchbook.sites.processes import process, start_at; "
        "folder = Path(sys.argv[1]); "
        "argv = start_at.waiting(['sleep', '60'], time.monotonic() + 60, folder / 'begun'); "
        "print(process.start('client', argv, token='t', folder=folder, out=folder / 'out').pid, flush=True); "
        "time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", owner, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as one:
        waiting = psutil.Process(int(one.stdout.readline()))
        time.sleep(0.3)
        assert waiting.is_running()
        one.kill()
    deadline = time.monotonic() + 5
    while waiting.is_running() and waiting.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not waiting.is_running() or waiting.status() == psutil.STATUS_ZOMBIE
    assert not (tmp_path / "begun").read_text()
