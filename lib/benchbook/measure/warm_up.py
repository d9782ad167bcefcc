"""Pilot runs: the same process as a measured run, without discard, kept and never counted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from benchbook.core import runfolder
from benchbook.core.engines import is_analyzed
from benchbook.core.errors import BenchbookError
from benchbook.core.study import Study
from benchbook.core.wording import count
from benchbook.measure import dataset
from benchbook.measure.execute import Run, execute
from benchbook.measure.ledger import session, sessions
from benchbook.plan import schedule
from benchbook.sites.contract import Site


def warm(site: Site, study: Study) -> list[dict[str, str]]:
    """Run ANALYZE TABLE where the study asks for it, keep its statistics in the prepared copy, and prewarm.

    Returns what the server answered to ANALYZE.
    """
    answers: list[dict[str, str]] = []
    put_back(site, study)
    for arm in dataset.copies(site, study):
        if is_analyzed(study, arm):
            which = {} if arm == study.baseline else {"arm": arm}
            with session(site, arm) as connection:
                answers += [row | which for row in dataset.analyze(connection, study.dataset.tables)]
            site.snapshot(dataset.label(study), arm)
    with sessions(site, study, site.able) as connections:
        dataset.prewarm_all(study, connections)
    return answers


def put_back(site: Site, study: Study, analyzed: bool = False) -> None:
    """Put the prepared copy back on every server; load it again from the seed where none is left.

    A cluster may lose a pod, and the copy with it. `analyzed` brings the tables' statistics back too.
    """
    label = dataset.label(study)
    if len(dataset.copies(site, study)) == 1 and not site.has_snapshot(label):
        dataset.load(site, study)
        if analyzed:
            with session(site) as connection:
                dataset.analyze(connection, study.dataset.tables)
            site.snapshot(label)
    site.restore(label)


def pilots(
    name: str,
    study: Study,
    site: Site,
    into: Path,
    limits: dict[str, Any],
    say: Callable[[str], None] = print,
) -> list[runfolder.RunFolder]:
    """Run one pilot for each arm and workload at the lowest and highest thread level; return their folders.

    Older pilots are removed first. The data is put back afterwards, since writing workloads change it.
    """
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    if study.warm_up.pilot_s == 0:
        say("no pilots: warm_up.pilot_s is 0")
        return []
    planned = schedule.pilot_runs(name, study, site.able)
    folders = []
    with sessions(site, study, site.able) as connections:
        for number, pilot in enumerate(planned, start=1):
            say(
                f"pilot {number} of {len(planned)}: {pilot.workload}, {count(pilot.threads, 'thread')}, "
                f"{pilot.arm}, {pilot.run_s} s"
            )
            arm = study.deployed(pilot.arm)
            first, *others = connections[arm]
            run = Run(pilot, site, arm, first, limits, tuple(others))
            try:
                folders.append(runfolder.keep(execute(run, into, 1), into))
            except SQLAlchemyError as error:
                raise BenchbookError(
                    f"the server went away during pilot {number} ({type(error).__name__}); "
                    "look at its log in the lab, then run the stage again"
                ) from None
    site.restore(dataset.label(study))
    return folders
