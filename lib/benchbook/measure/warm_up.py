"""Pilot runs: the same process as a measured run, without discard, kept and never counted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from benchbook.core.artifacts import run_folder
from benchbook.core.study.model import PlannedRun
from benchbook.core.study.study import Study
from benchbook.core.util.errors import BenchbookError
from benchbook.core.util.plural import count
from benchbook.measure import custom_data, dataset, servers
from benchbook.measure.data_plan import plan_data
from benchbook.measure.run_executor import Run, execute
from benchbook.measure.statement_counters import session
from benchbook.plan import schedule
from benchbook.sites.contract import Site


def warm(site: Site, study: Study) -> list[dict[str, str]]:
    """Run ANALYZE TABLE where the study asks for it, keep it in the copy, prewarm; return the answers."""
    answers: list[dict[str, str]] = []
    data = plan_data(study)
    servers.put_back(site, data)
    for arm in dataset.arm_of_each_copy(site):
        if data.of_arm(arm).is_analyzed:
            which = {} if arm == study.baseline else {"arm": arm}
            with session(site, arm) as connection:
                answers += [row | which for row in dataset.analyze_all(connection, data)]
            site.snapshot(data.label, arm)
    with servers.sessions(site, study, site.able) as connections:
        dataset.prewarm_all(data, connections)
    site.look()
    return answers


def pilots(
    name: str,
    study: Study,
    site: Site,
    into: Path,
    limits: dict[str, Any],
    say: Callable[[str], None] = print,
) -> list[run_folder.RunFolder]:
    """Run a pilot for each arm and workload at the lowest and highest threads; return their folders."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    if study.warm_up.pilot_s == 0:
        say("no pilots: warm_up.pilot_s is 0")
        return []
    planned = schedule.pilot_runs(name, study, site.able)
    folders = []
    for number, pilot in enumerate(planned, start=1):
        say(
            f"pilot {number} of {len(planned)}: {pilot.workload}, {count(pilot.threads, 'thread')}, "
            f"{pilot.arm}, {pilot.run_s} s"
        )
        try:
            folders.append(_pilot(pilot, study, site, into, limits, say))
        except SQLAlchemyError as error:
            raise BenchbookError(
                f"the server went away during pilot {number} ({type(error).__name__}); "
                "look at its log in the lab, then run the stage again"
            ) from None
    site.look()
    site.restore(plan_data(study).label)
    return folders


def _pilot(
    pilot: PlannedRun,
    study: Study,
    site: Site,
    into: Path,
    limits: dict[str, Any],
    say: Callable[[str], None],
) -> run_folder.RunFolder:
    """Make a pilot, and once more where its sysbench or its server failed.

    A second failure is kept, for the runs will say by name what is wrong with a workload; BenchbookError if
    the server is gone again.
    """
    arm = study.deployed(pilot.arm)

    def make(attempt: int) -> run_folder.RunFolder:
        # A session for each pilot: a server that was started again answers nobody who was connected before.
        with servers.sessions(site, study, [arm]) as connections:
            first, *others = connections[arm]
            return execute(Run(pilot, site, arm, first, limits, tuple(others)), into, attempt)

    try:
        made = make(1)
        if not (reason := _failure(made)):
            return run_folder.keep(made, into)
    except SQLAlchemyError as error:
        reason = f"the server went away ({type(error).__name__})"
    say(f"    {reason}; the pilot is made once more")
    for part in run_folder.unfinished(into):
        shutil.rmtree(part)
    site.up(arm)
    made = make(2)
    books = made.evidence()["ledger"]
    if _failure(made) and books["available"] and books["after"] is None:
        raise BenchbookError(
            f"{books['reason']}, the second time, too; look at its log in the lab, then run the stage again"
        )
    return run_folder.keep(made, into)


def _failure(made: run_folder.RunFolder) -> str:
    """Say how a pilot's sysbench ended, unless it ended well."""
    seen = made.evidence()
    ended = f"sysbench ended by {seen['ended_by']} with exit code {seen['exit_code']}"
    return "" if (seen["ended_by"], seen["exit_code"]) == ("itself", 0) else ended


def own_found(site: Any, study: Study) -> dict[str, Any]:
    """Return what is kept of own scripts and of the tables that their prepare made; nothing without any."""
    data = plan_data(study)
    if not data.scripts:
        return {}
    site.restore(data.label)
    return custom_data.found(data, dataset.of_own(site, data))
