"""Stopped means stopped: whichever command, whenever, by whichever signal, nothing of it goes on."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator

import pytest

from benchbook.core import record
from benchbook.sites.processes import procfs
from tests.pipeline.clone import ROOT, Clone, make

MARK = "BENCHBOOK_TEST_MARK"
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
STUDIES = ("lab-ladder", "lab-socket")
# How often each command is killed, and the seconds within which that is drawn.
KILLS, WITHIN_S = int(os.environ.get("BENCHBOOK_KILLS", "1")), 6.0
COMMANDS: dict[str, tuple[str, ...]] = {
    "verify": ("verify", "data/record/lab-ladder/{first}.tar.xz"),
    "remake": ("remake",),
    "pages": ("pages",),
    "history": ("history",),
    "findings": ("findings",),
    "repro": ("repro", "audit"),
}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """A clone with a record of two studies, so that several workers are at work on it."""
    found = make(tmp_path_factory.mktemp("stopped") / "clone")
    shutil.rmtree(found.path / "data" / "record", ignore_errors=True)
    index = record.Index(
        **{"studies": {name: one for name, one in record.read().studies.items() if name in STUDIES}}
    )
    for name in STUDIES:
        shutil.copytree(ROOT / "data" / "record" / name, found.path / "data" / "record" / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCHBOOK_ROOT", str(found.path))
        record.write(index)
    yield found


def living(mark: str) -> list[str]:
    """Return the command lines of living processes that have a mark in their environment."""
    return [
        procfs.command(pid)
        for pid in procfs.pids()
        if procfs.environment(pid).get(MARK) == mark and procfs.is_alive(pid)
    ]


def left(mark: str, within_s: float = 15.0) -> list[str]:
    deadline = time.monotonic() + within_s
    while (found := living(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_killed_at_any_moment_leaves_nothing_running(name: str, clone: Clone):
    drawn = random.Random(f"{name} {os.environ.get('BENCHBOOK_SEED', 1)}")
    first = min(one.name.removesuffix(".tar.xz") for one in (ROOT / "data/record/lab-ladder").iterdir())
    words = [word.format(first=first) for word in COMMANDS[name]]
    for _ in range(KILLS):
        for folder in (clone.path / "data" / "recorded", clone.path / "reports"):
            shutil.rmtree(folder, ignore_errors=True)
        mark, signum, after_s = uuid.uuid4().hex, drawn.choice(SIGNALS), drawn.uniform(0.1, WITHIN_S)
        process = subprocess.Popen(
            ["benchbook", *words],
            cwd=clone.path,
            env=clone.environment() | {MARK: mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            process.communicate(timeout=after_s)
            continue
        except subprocess.TimeoutExpired:
            process.send_signal(signum)
        _, said = process.communicate(timeout=30)
        told = f"{name}: {signum.name} after {after_s:.2f} s: {said[-500:]}"
        assert left(mark) == [], told
        assert process.returncode in (0, 130, -signum), told
