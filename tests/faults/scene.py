"""A walk of one run on a real server, with a fault in its first attempt."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.core.study.model import Endpoint, PlannedRun
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files
from benchbook.measure import scheduler, sysbench
from benchbook.plan import schedule
from benchbook.read import validity
from benchbook.sites.contract import Start
from tests import beside, walks
from tests.faults import leftovers
from tests.faults.book import Book
from tests.limits import LIMITS

# How busy this machine is must not matter here: what must be noticed is the fault that was injected.
STUDY = {
    "engine": {"settings": {"innodb_buffer_pool_size": "32M", "innodb_log_file_size": "8M"}},
    "dataset": {"tables": 2, "table_size": 500},
    "workloads": {"oltp_read_write": {"rand_type": "uniform"}},
    "threads": (1,),
    "plan": {"seed": 5, "blocks": 1, "discard_s": 1, "run_s": 2, "max_repeats": 3, "order": "runs"},
    "warm_up": {"pilot_s": 0},
}


@dataclass
class Scene:
    """One run, the store it goes to, and who may disturb it."""

    site: Any
    study: StudySpec
    base: Path
    book: Book
    arm: str = "direct"
    limits: dict[str, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    undos: list[Callable[[], None]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    client: Any = None
    endpoint: Endpoint | None = None
    prefix: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    judged: list[validity.Judgement] = field(default_factory=list)

    @property
    def raw(self) -> Path:
        return self.base / "raw"

    @property
    def void(self) -> Path:
        return self.base / "void"

    @property
    def runs(self) -> list[PlannedRun]:
        planned = schedule.plan_runs("faults", self.study, {})
        return [run for run in planned if run.arm == self.arm]

    @property
    def server(self) -> int:
        """The server's process."""
        return self.site.monitored("direct")["server"][0]

    @property
    def proxy(self) -> int:
        """The proxy's process."""
        return self.site.monitored("proxy")["proxy"][0]

    def sql(self, *statements: str) -> None:
        """Say something to the server as its administrator, over a session of its own."""
        with self.site.admin().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("USE sbtest")
            for statement in statements:
                connection.exec_driver_sql(statement)

    def columns(self) -> list[str]:
        """Return the columns of the first table as they are."""
        with self.site.admin().connect() as connection:
            return [row[0] for row in connection.exec_driver_sql("SHOW COLUMNS FROM sbtest.sbtest1")]

    def undo(self, act: Callable[[], None]) -> None:
        """Have something done once the first attempt is judged, or the test ends."""
        self.undos.append(act)

    def settle(self) -> None:
        """Take back what faults left in force."""
        with self.lock:
            while self.undos:
                self.undos.pop()()

    def judge(self, folder: RunFolder) -> validity.Judgement:
        """Judge as run-matrix does; the first attempt by the limits of this fault."""
        limits = LIMITS if self.judged else {**LIMITS, **self.limits}
        found = validity.judge_run(folder, limits)
        self.judged.append(found)
        self.settle()
        return found

    def walk(self, fault: Callable[[Scene], None] | None, when: str = "running") -> scheduler.MatrixRunner:
        """Walk the schedule with a fault in the first attempt: `early`, before the first look at the server;
        `before` the client begins; or while it is `running`."""
        runner = scheduler.MatrixRunner(
            *(self.study, self.runs, self.site, self.raw, self.void),
            *(self.judge, LIMITS, self.said.append),
        )
        with self._disturbed(fault, when):
            try:
                return scheduler.run_missing(runner)
            finally:
                self.settle()

    @contextmanager
    def _disturbed(self, fault: Callable[[Scene], None] | None, when: str) -> Iterator[None]:
        start, look = self.site.client, self.site.identity
        disturbing = contextlib.ExitStack()

        def identity(arm: str) -> dict[str, Any]:
            has_begun = any(self.raw.glob("*.part"))
            if self.client is None and fault is not None and when == "early" and has_begun:
                fault(self)
            return look(arm)

        def disturb(out: Path) -> None:
            beside.until(lambda: b"Threads started" in out.read_bytes())
            time.sleep(0.5)
            fault(self)

        def client(asked: Start) -> Any:
            is_first = self.client is None
            if is_first and fault is not None and when == "before":
                fault(self)
            self.client = start(self._aimed(asked) if is_first else asked)
            if is_first and fault is not None and when == "running":
                disturbing.enter_context(beside.working(lambda over: disturb(asked.out)))
            return self.client

        self.site.client, self.site.identity = client, identity
        with disturbing:
            try:
                yield
            finally:
                del self.site.client, self.site.identity

    def _aimed(self, asked: Start) -> Start:
        """Return a start as the fault wants it: at another endpoint, behind another program."""
        argv = asked.argv
        if self.endpoint is not None:
            planned = next(run for run in self.runs if asked.out.parent.name.startswith(run.run_id))
            argv = sysbench.run_argv(self.endpoint, planned)
        return replace(asked, argv=[*self.prefix, *argv])

    def voids(self) -> list[dict[str, Any]]:
        """Return the notes of what was voided, first attempt first."""
        return [files.read_json(note) for note in sorted(self.void.glob("*.void.json"))]

    def assert_noticed(self, *checks: str, words: str = "") -> None:
        """Check the first attempt: not valid, named by one of some checks, kept whole as evidence."""
        first = self.judged[0]
        if first.status == "valid":
            self.book.valid_verdicts.append(first.evidence.plan["run_id"])
        assert first.status != "valid", "the fault was not noticed"
        named = {reason.split()[0] for reason in first.reasons}
        assert named & set(checks), first.reasons
        note = self.voids()[0]
        assert note["status"] in ("invalid", "indeterminate")
        assert set(note["reasons"]) == set(first.reasons)
        assert words in "\n".join(note["reasons"]), note["reasons"]
        kept = RunFolder(self.void / f"{note['run_id']}.a1")
        assert kept.verify() == []

    def assert_mended(self, *checks: str, words: str = "") -> None:
        """Check that the first attempt was noticed, the walk went on, and nothing of the fault is left."""
        self.assert_noticed(*checks, words=words)
        self.assert_resumed()
        self.assert_nothing_left()

    def assert_resumed(self) -> None:
        """Check that the walk went on: every planned run is there, whole, valid, on the prepared tables."""
        assert self.columns() == ["id", "k", "c", "pad"], "the run was made again on a table that was altered"
        walks.assert_complete(self.raw, self.runs)

    def assert_resumed_for(self, *arms: str) -> None:
        """Check that the runs of these arms are there, whole and valid."""
        notes = [
            note for note in self.void.glob("*.void.json") if files.read_json(note)["status"] == "earlier"
        ]
        kept = [*run_folder.list_folders(self.raw), *map(run_folder.voided_by, notes)]
        valid = [folder for folder in kept if validity.judge_run(folder, LIMITS).status == "valid"]
        assert {folder.plan()["arm"] for folder in valid} == set(arms)

    def assert_nothing_left(self) -> None:
        """Check that some seconds later only this lab's server and proxy run, and nothing is in force."""
        up = {pid for arm in self.study.arms for pids in self.site.monitored(arm).values() for pid in pids}
        lab = self.site.lab.folder
        self.book.assert_no_orphans(lambda: leftovers.of(lab, (), up) + leftovers.mounts(self.base))
