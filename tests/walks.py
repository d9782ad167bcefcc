"""A walk that a test makes, and what it voided; beside other tests a run may get too little time."""

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.core.study.model import PlannedRun
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files
from benchbook.measure import scheduler, servers
from benchbook.measure.run_executor import RunContext, execute_run
from benchbook.plan import schedule
from benchbook.read import validity
from tests import beside, rooms
from tests.limits import LIMITS

# Servers and clients of two tests at once leave a client no time for a second or for a line of report, fewer
# turns, or a queue; where a whole window has no transaction, no write changed a row either.
STARVED = re.compile(
    r"no transaction in the interval|\d+ turns were taken, \d+ asked$|\d+ transactions were waiting at second"
    r"|[\d.]+ transactions/s, \d+ asked$"
    r"|label \d+ s where \d+ s is due$|the report lines make \d+ events, the total is \d+$"
    r"|no write changed a row$|\b0 of 0 writes changed a row$"
)


def is_starved(reasons: Sequence[str]) -> bool:
    """Say whether a run was voided for want of time alone."""
    return bool(reasons) and all(map(STARVED.search, reasons))


def planned(study: StudySpec, arm: str) -> PlannedRun:
    """Return the first planned run of an arm."""
    return next(run for run in schedule.plan_runs("test", study, {}) if run.arm == arm)


def made(site: Any, run: PlannedRun, connections: Sequence[Any], into: Path) -> RunFolder:
    """Make a run on an arm that is up; return it, again where a busy machine gave it too little time."""
    for number in range(3):
        folder = execute_run(RunContext(run, site, run.arm, (*connections,), LIMITS), into / str(number), 1)
        if not is_starved(judge(folder).reasons):
            break
    return folder


def measured(site: Any, study: StudySpec, arm: str, into: Path) -> RunFolder:
    """Bring an arm up and make its first planned run."""
    site.up(arm)
    with servers.open_sessions(site, study, [arm]) as connections:
        return made(site, planned(study, arm), connections[arm], into)


def judge(folder: RunFolder) -> validity.Judgement:
    return validity.judge_run(folder, LIMITS)


def must_agree(folder: RunFolder) -> None:
    """Assert that a run is valid, and agrees with its server's books to the query."""
    judged = judge(folder)
    assert (judged.reasons, judged.status, judged.ledger) == ([], "valid", "agrees")


def assert_complete(raw: Path, runs: Sequence[PlannedRun], voids: object = None) -> None:
    """Assert that every planned run is there, whole and valid, and none unfinished."""
    kept = list(run_folder.list_folders(raw))
    assert {folder.name for folder in kept} == {run.run_id for run in runs}, voids
    for folder in kept:
        assert folder.verify() == []
        assert judge(folder).status == "valid", judge(folder).reasons
    assert run_folder.list_unfinished(raw) == []


class Store:
    """What a walk is to make and where it goes."""

    def __init__(self, site: Any, study: StudySpec, base: Path) -> None:
        self.site, self.study, self.raw, self.void = site, study, base / "raw", base / "void"
        self.runs = schedule.plan_runs("test", study, {})
        self.said: list[str] = []
        self.judge: Callable[[RunFolder], validity.Judgement] = judge

    def walk(self) -> scheduler.MatrixRunner:
        # A test may have another judge in the middle of a walk.
        where = (self.site, self.raw, self.void, lambda folder: self.judge(folder))
        runner = scheduler.MatrixRunner(self.study, self.runs, *where, LIMITS, self.said.append)
        return scheduler.run_missing(runner)

    def walk_alone(self, tries: Sequence[bool] = (True, True, True)) -> scheduler.MatrixRunner:
        """Walk, in the tries that say so with the machine alone while runs are made, afresh where its host or
        other tests took it away; the last try stands."""
        together = scheduler.execute_together

        def alone(*given: Any) -> Any:
            with rooms.alone():
                return together(*given)

        for number, is_alone in enumerate(tries, start=1):
            with mock.patch.object(scheduler, "execute_together", alone if is_alone else together):
                state = self.walk()
            if number == len(tries) or not (self.wrong() or state.abandoned):
                break
            for folder in (self.raw, self.void):
                shutil.rmtree(folder, ignore_errors=True)
        return state

    def walk_undisturbed(self) -> scheduler.MatrixRunner:
        """Walk beside other tests, and alone where these left runs too little time."""
        return self.walk_alone((False, True, True))

    def walk_with(
        self, act: Callable[[], object], arm: str = "*", clients: int = 1, after_s: float = 0.5
    ) -> scheduler.MatrixRunner:
        """Walk with something done once, some seconds after so many clients of an arm have begun."""
        with beside.once(lambda: beside.begun(self.raw, arm) >= clients, act, after_s):
            return self.walk()

    def kept(self) -> list[RunFolder]:
        return list(run_folder.list_folders(self.raw))

    def voids(self) -> dict[str, tuple[str, str]]:
        """Return status and reasons by arm and attempt of what was voided."""
        found = {}
        for note in sorted(self.void.glob("*.void.json")):
            record = files.read_json(note)
            arm = next(run.arm for run in self.runs if run.run_id == record["run_id"])
            found[f"{arm} {record['attempt']}"] = (record["status"], "; ".join(record["reasons"]))
        return found

    def wrong(self) -> dict[str, tuple[str, str]]:
        """Return what was voided, but where a machine busy with other tests gave a run too little time."""
        return {
            name: (status, reasons)
            for name, (status, reasons) in self.voids().items()
            if status != "partner" and not is_starved(reasons.split("; V"))
        }

    def assert_complete(self) -> None:
        """Check that every planned run is there, whole and valid, and that every void kept its files."""
        assert_complete(self.raw, self.runs, self.voids())
