"""Pilot runs: the same process as a measured run, without discard, kept and never counted."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from benchbook.core.artifacts import run_folder
from benchbook.core.study.model import PlannedRun
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import BenchbookError
from benchbook.core.util.plural import count
from benchbook.measure import custom_data, dataset, servers
from benchbook.measure.data_plan import plan_data
from benchbook.measure.run_executor import RunContext, execute_run
from benchbook.measure.statement_counters import open_session
from benchbook.plan import schedule
from benchbook.sites.contract import Site

Say = Callable[[str], None]


def warm_up_data(site: Site, study: StudySpec) -> list[dict[str, str]]:
    """Run ANALYZE TABLE if the study asks for it, keep it in the copy, prewarm; return answers."""
    answers: list[dict[str, str]] = []
    data = plan_data(study)
    servers.put_back(site, data)
    for arm in dataset.arm_of_each_copy(site):
        if data.of_arm(arm).is_analyzed:
            which = {} if arm == study.baseline else {"arm": arm}
            with open_session(site, arm) as connection:
                answers += [row | which for row in dataset.analyze_all(connection, data)]
            site.snapshot(data.label, arm)
    with servers.open_sessions(site, study, site.able) as connections:
        dataset.prewarm_all(data, connections)
    site.look()
    return answers


def run_pilots(
    name: str, study: StudySpec, site: Site, into: Path, limits: dict[str, Any], say: Say = print
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
            folders.append(_run_pilot(pilot, study, site, into, limits, say))
        except SQLAlchemyError as error:
            fault = f"the server went away during pilot {number} ({type(error).__name__})"
            raise BenchbookError(f"{fault}; look at its log in the lab, then run the stage again") from None
    site.look()
    site.restore(plan_data(study).label)
    return folders


def _run_pilot(
    pilot: PlannedRun, study: StudySpec, site: Site, into: Path, limits: dict[str, Any], say: Say
) -> run_folder.RunFolder:
    """Make a pilot, and once more if it failed; the second is kept, but BenchbookError without a server."""
    arm = study.deployed(pilot.arm)

    def make(attempt: int) -> run_folder.RunFolder:
        # A session for each pilot: a server that was started again answers nobody who was connected before.
        with servers.open_sessions(site, study, [arm]) as connections:
            return execute_run(RunContext(pilot, site, arm, connections[arm], limits), into, attempt)

    try:
        new_run_folder = make(1)
        if not (reason := _describe_failure(new_run_folder)):
            return run_folder.move_to_raw(new_run_folder, into)
    except SQLAlchemyError as error:
        reason = f"the server went away ({type(error).__name__})"
    say(f"    {reason}; the pilot is made once more")
    for part in run_folder.list_unfinished(into):
        shutil.rmtree(part)
    site.up(arm)
    new_run_folder = make(2)
    books = new_run_folder.evidence()["ledger"]
    if _describe_failure(new_run_folder) and books["available"] and books["after"] is None:
        raise BenchbookError(
            f"{books['reason']}, the second time, too; look at its log in the lab, then run the stage again"
        )
    return run_folder.move_to_raw(new_run_folder, into)


def _describe_failure(new_run_folder: run_folder.RunFolder) -> str:
    """End of a pilot's sysbench, in words; empty if it ended well."""
    observations = new_run_folder.evidence()
    ended = f"sysbench ended by {observations['ended_by']} with exit code {observations['exit_code']}"
    return "" if (observations["ended_by"], observations["exit_code"]) == ("itself", 0) else ended


def record_custom_scripts(site: Any, study: StudySpec) -> dict[str, Any]:
    """Record of own scripts and of the tables made by their prepare; empty without any."""
    data = plan_data(study)
    if not data.scripts:
        return {}
    site.restore(data.label)
    return custom_data.record_scripts(data, dataset.describe_custom_tables(site, data))
