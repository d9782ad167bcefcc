"""Anything killed at random moments while arms take turns: nothing stopped, nothing lost, nothing mixed.

A handful of kills; `BENCHBOOK_KILLS=50 make test-all ARGS=tests/faults/test_random.py` for more.
"""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import psutil
import pytest

from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.read import validity
from benchbook.sites.processes import procfs
from benchbook.sites.topology import teardown
from tests import rooms
from tests.faults import leftovers
from tests.faults.book import Book
from tests.faults.test_pipeline import chain
from tests.limits import LIMITS
from tests.pipeline.clone import Clone, make

pytestmark = [pytest.mark.server, pytest.mark.faults]
PORT = rooms.port(440)
KILLS = int(os.environ.get("BENCHBOOK_KILLS", "6"))
SEED = int(os.environ.get("BENCHBOOK_KILLS_SEED", "20261122"))
PARTS = {"sysbench": "client", "mariadbd": "server", "haproxy": "proxy"}
KINDS = ("dvc", "stage", "papermill", "kernel", "clock", "client", "server", "proxy")
# A group of three arms takes some seconds from the first client to the last folder.
LATEST_S = 8.0
# Each time that the stage is run, a group that was given up has one try more.
AGAIN = 10


@pytest.fixture(scope="module")
def clone(open_folder: Path) -> Iterator[Clone]:
    """A clone that has all but the runs."""
    made = make(open_folder / "random")
    made.study(blocks=1, port=PORT)
    code, said = made.run("dvc", "repro", "warm-up@tiny", timeout_s=1200)
    assert code == 0, said
    yield made
    assert teardown.tear_down(made.lab).is_clean


def look(clone: Clone) -> list[str]:
    """Return what is left of the clone's lab."""
    return leftovers.of_lab(clone.lab, PORT, clone.path / ".machine.lock")


def victims(process: subprocess.Popen[str], clone: Clone) -> dict[str, list[int]]:
    """Return what can be killed now, by what it is: links of the pipeline, the clock, parts of arms."""
    found = {link: [one.pid] for link, one in chain(process).items()} if process.poll() is None else {}
    for child in teardown.find_processes(clone.lab, set()):
        with contextlib.suppress(psutil.Error):
            one = psutil.Process(child.pid)
            is_clock = any(word.endswith("clock.py") for word in one.cmdline())
            kind = "clock" if is_clock else PARTS.get(one.name())
            if kind is not None:
                found.setdefault(kind, []).append(child.pid)
    return found


def groups(clone: Clone) -> dict[str, list[str]]:
    """Return the planned runs of each group."""
    if not (clone.data / "schedule.csv").exists():
        return {}
    planned = pd.read_csv(clone.data / "schedule.csv")
    return {group: list(members) for group, members in planned.groupby("group")["run_id"]}


def missing(clone: Clone) -> list[str]:
    """Return the planned runs that are not there: a group that was struck too often is given up."""
    planned = itertools.chain.from_iterable(groups(clone).values())
    return [name for name in planned if not (clone.data / "raw" / name).is_dir()]


def files(run: Path) -> dict[str, bytes]:
    """Return the files of a run, by name."""
    found = sorted(path for path in run.rglob("*") if path.is_file())
    return {str(path.relative_to(run)): path.read_bytes() for path in found}


def finished(clone: Clone) -> dict[str, dict[str, bytes]]:
    """Return the files of every run whose whole group is there and valid."""
    raw, found = clone.data / "raw", {}
    for members in groups(clone).values():
        folders = [RunFolder(raw / name) for name in members]
        if all(folder.path.is_dir() for folder in folders) and all(
            validity.judge_run(folder, LIMITS).status == "valid" for folder in folders
        ):
            found |= {folder.path.name: files(folder.path) for folder in folders}
    return found


class Struck:
    """A pipeline that goes on until it was struck often enough and has made all its runs."""

    def __init__(self, clone: Clone, book: Book) -> None:
        self.clone, self.book = clone, book
        self.rng = random.Random(SEED)
        self.blocks, self.process = 1, None
        self.kept: dict[str, dict[str, bytes]] = {}
        self.killed: list[str] = []

    def go_on(self) -> subprocess.Popen[str]:
        """Return the stage at work; one that has made all its runs gets two blocks more."""
        if self.process is not None and self.process.poll() is None:
            return self.process
        if self.process is not None:
            self.end()
        self.process = self.clone.start("dvc", "repro", "-f", "-s", "run-matrix@tiny")
        return self.process

    def end(self) -> int:
        """Wait for the stage to end; see that it left nothing and changed nothing that was finished."""
        assert self.process is not None
        said, _ = self.process.communicate(timeout=1200)
        code, self.process = self.process.returncode, None
        print(self.killed, said)
        self.book.assert_no_orphans(lambda: look(self.clone), 20.0)
        assert "Traceback" not in said, (self.killed, said)
        self.compare()
        if code == 0 and len(self.killed) < KILLS:
            self.blocks += 2
            self.clone.study(blocks=self.blocks, port=PORT)
        return code

    def compare(self) -> None:
        """See that every run that was finished is there as it was, to the byte."""
        raw = self.clone.data / "raw"
        lost = [name for name, kept in self.kept.items() if files(raw / name) != kept]
        assert lost == [], self.killed
        # DVC takes the schedule away before a stage runs again; what was finished is still to be there.
        self.kept |= finished(self.clone)

    def strike(self) -> bool:
        """Kill one process of a random kind at a random moment; say whether it was done."""
        process, kind = self.go_on(), self.rng.choice(KINDS)
        moment, wait_s = None, self.rng.uniform(0.0, LATEST_S)
        while process.poll() is None:
            there = victims(process, self.clone).get(kind)
            if there and moment is None:
                moment = time.monotonic() + wait_s
            if there and time.monotonic() >= moment:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.rng.choice(sorted(there)), signal.SIGKILL)
                    self.killed.append(kind)
                    print(f"kill {len(self.killed)} of {KILLS}: {kind}", flush=True)
                    return True
            time.sleep(0.05)
        return False


def test_killed_at_random_nothing_is_stopped_lost_or_mixed(clone, inject, book):
    struck = Struck(clone, book)
    while len(struck.killed) < KILLS:
        if struck.strike():
            inject("F60", f"{struck.killed[-1]} killed at a random moment")
    for _ in range(AGAIN):
        struck.go_on()
        if struck.end() == 0 and missing(clone) == []:
            break
    else:
        pytest.fail(f"not whole after {AGAIN} times: {missing(clone)}")
    raw, planned = clone.data / "raw", groups(clone)
    void = sorted(path.name for path in (clone.data / "void").iterdir() if path.is_dir())
    names = sorted(itertools.chain.from_iterable(planned.values()))
    assert sorted(path.name for path in raw.iterdir()) == names, void
    assert run_folder.list_unfinished(raw) == []
    for members in planned.values():
        folders = [RunFolder(raw / name) for name in members]
        assert all(folder.verify() == [] for folder in folders), struck.killed
        assert {validity.judge_run(folder, LIMITS).status for folder in folders} == {"valid"}
        assert len({folder.manifest().attempt for folder in folders}) == 1, "made at different times"
        assert len({folder.text(run_folder.TURNS) for folder in folders}) == 1, "turns of different groups"
    print(f"{len(struck.killed)} kills: {', '.join(struck.killed)}; {len(planned)} groups, all whole")


def test_killed_in_any_stage_the_same_command_goes_on_to_the_end(clone, inject, book):
    """Each stage is forced, so that data are loaded and copied, put back and measured each time."""
    rng, words = random.Random(SEED), ("benchbook", "repro", "-f", "analyze@tiny")
    begun = time.monotonic()
    code, said = clone.run(*words, timeout_s=1200)
    assert code == 0, said
    lasts_s = time.monotonic() - begun
    number = 0
    while number < KILLS:
        process, after_s = clone.start(*words), rng.uniform(1.0, lasts_s)
        signum = rng.choice((signal.SIGTERM, signal.SIGKILL, signal.SIGHUP))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after_s)
            # The machine was less busy than before: what has ended can't be killed.
            lasts_s = after_s
            assert process.returncode == 0, process.communicate()[0]
            continue
        number += 1
        there = [process.pid, *(pid for pids in victims(process, clone).values() for pid in pids)]
        struck = rng.choice(there)
        what = f"{procfs.read_program(struck)} ended with {signum.name} after {after_s:.1f} s of all stages"
        inject("F68", what)
        print(f"{number} of {KILLS}: {what}", flush=True)
        with contextlib.suppress(ProcessLookupError):
            os.kill(struck, signum)
        process.communicate(timeout=600)
        book.assert_no_orphans(lambda: look(clone), 20.0)
        code, said = clone.run(*words, timeout_s=1200)
        assert code == 0, f"{what}, and the same command ended with {code}: {said}"
