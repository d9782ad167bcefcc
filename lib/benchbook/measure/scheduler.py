"""Walk the schedule: resume an unfinished one, void invalid runs, and lose nothing."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from sqlalchemy.exc import SQLAlchemyError

from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.artifact import Facts
from benchbook.core.study import interleaving
from benchbook.core.study.model import PlannedRun
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files, paths
from benchbook.core.util.errors import BenchbookError, SiteError
from benchbook.core.util.grouping import group_by
from benchbook.core.util.plural import count
from benchbook.measure import dataset, preflight, servers
from benchbook.measure.data_plan import DataPlan, plan_data
from benchbook.measure.run_executor import RunContext, execute_together
from benchbook.measure.store import Judge, RunVerdict, count_attempts, tidy_up, void_group
from benchbook.sites import open_site, provision
from benchbook.sites.contract import Site
from benchbook.sites.workspace import lab_folder

# A study ends where so many groups were given up, and they are this share of those that were tried: what goes
# on would come out as a study of the groups that happen to be possible here.
GIVEN_UP, GIVEN_UP_SHARE = 3, 0.25

# Asked with the number of blocks made whether to stop; answers why, or None to go on.
Stop = Callable[[int], str | None]


@dataclass
class MatrixRunner:
    """State of one walk: its runs, their destination, and their judge; `site` once it is open."""

    study: StudySpec
    runs: list[PlannedRun]
    site: Site | None
    raw: Path
    void: Path
    judge: Judge
    limits: dict[str, Any]
    say: Callable[[str], None] = print
    done: int = 0
    spent_s: float = 0.0
    sysbench_s: float = 0.0
    abandoned: list[str] = field(default_factory=list)
    tried: set[str] = field(default_factory=set)
    stop: Stop | None = None
    stopped: str | None = None
    not_here: str | None = None
    missing: set[str] | None = None
    began: float = 0.0

    @cached_property
    def data(self) -> DataPlan:
        """Data that every server of the study holds."""
        return plan_data(self.study)

    @cached_property
    def own_twin(self) -> str | None:
        """The baseline's twin if it takes turns with a server of its own, else None."""
        twin = self.study.twin
        is_in_turns = any(run.partners and run.arm == twin for run in self.runs)
        return twin if is_in_turns and interleaving.has_separate_twin(self.study) else None

    @property
    def arms(self) -> list[str]:
        """Arms that need servers: those in the schedule, without skipped ones, and a twin with its own."""
        planned = {self.study.deployed(run.arm) for run in self.runs}
        return [arm for arm in self.study.arms if arm in planned] + ([self.own_twin] if self.own_twin else [])

    @property
    def opened(self) -> Site:
        """The site, once it is open."""
        assert self.site is not None
        return self.site

    @property
    def left(self) -> set[str]:
        """The ids of runs that are to be made, once it was looked at."""
        assert self.missing is not None
        return self.missing

    def table(self) -> pd.DataFrame:
        """Results of the walk in one row; `overhead_s` is its time around each run, in seconds."""
        overhead = (self.spent_s - self.sysbench_s) / self.done if self.done else 0.0
        row = {
            "runs planned": len(self.runs),
            "made now": self.done,
            "wall_s": round(self.spent_s, 1),
            "sysbench_s": round(self.sysbench_s, 1),
            "overhead_s a run": round(overhead, 2),
            "groups given up": ", ".join(self.abandoned) or "none",
            "stopped early": self.stopped or "no",
        }
        return pd.DataFrame([row])


def complete_schedule(
    name: str,
    study: StudySpec,
    runs: list[PlannedRun],
    facts: Facts,
    data: dict[str, Any],
    where: paths.StudyPaths,
    judge: Judge,
    limits: dict[str, Any],
    stop: Stop | None = None,
) -> MatrixRunner:
    """Bring `raw` to the schedule's state; return the work done. Without need no server starts.

    `stop` is asked before each block, with the number of blocks before it, whether to leave the rest out, and
    why. Before the first run arms are held against `facts` and data against `data`; lost data is brought
    back. BenchbookError if too many groups were given up.
    """
    state = MatrixRunner(study, runs, None, where.raw, where.void, judge, limits, stop=stop)
    with preflight.explain_errors(where.raw):
        state.missing = set(tidy_up(runs, where.raw, where.void, judge))
        if not state.missing:
            print(f"all {len(runs)} runs are there already")
            return state
        if _stops_before(state, min(run.block for run in runs if run.run_id in state.missing)):
            return state
        lab = lab_folder(paths.find_root(), name)
        folders = {"raw logs": where.raw, "the lab": lab}
        preflight.refuse_problems(preflight.check_machine(study, folders, limits))
        scripts = (files.read_json(where.warm_up).get("own") or {}) if state.data.scripts else None
        with open_site(study, lab) as site:
            state.site = site
            provision.verify_facts(site, facts)
            for event in dataset.ensure_data(site, state.data, data, scripts)["events"]:
                state.say(event)
            run_missing(state)
            # Between runs a part that dies costs its group alone, and the group is made again.
            try:
                site.look()
            except SiteError as error:
                state.say(str(error))
    if state.not_here is not None:
        raise BenchbookError(state.not_here)
    return state


def run_missing(state: MatrixRunner) -> MatrixRunner:
    """Make every missing run of the schedule, block by block; return the walk.

    Data is put back and the arms are started again for every block, and after a run that is not valid, since
    what disturbed it may have left something behind. Such a run voids its group, which is repeated at the end
    of its block at most `plan.max_repeats` times.
    """
    state.began = time.monotonic()
    if state.missing is None:
        state.missing = set(tidy_up(state.runs, state.raw, state.void, state.judge, state.say))
    total = len(state.missing)
    state.say(f"{len(state.runs)} runs planned, {len(state.runs) - total} there already, {total} to make")
    for number, block in group_by(state.runs, lambda run: run.block).items():
        if any(run.run_id in state.missing for run in block):
            if _stops_before(state, number):
                break
            _run_block(state, number, block)
            if state.not_here is not None:
                state.stopped = state.not_here
                break
    state.spent_s = time.monotonic() - state.began
    return state


def _stops_before(state: MatrixRunner, number: int) -> bool:
    """Ask before block `number` if the rest may be left out, and report the reason if so."""
    state.stopped = state.stop(number - 1) if state.stop is not None else None
    if state.stopped:
        state.say(f"stopped before block {number}: {state.stopped}")
    return state.stopped is not None


def _run_block(state: MatrixRunner, number: int, block: list[PlannedRun]) -> None:
    arms, twin = state.arms, state.own_twin
    groups = list(dict.fromkeys(run.group for run in block if run.run_id in state.left))
    while groups and state.not_here is None:
        cold = servers.restart_servers(state.opened, state.study, state.data, arms, twin, number)
        while groups:
            # What a cold arm has read in one group, it would have in memory in the next.
            batch, groups = (groups[:1], groups[1:]) if cold else (groups, [])
            for arm in cold:
                state.opened.chill(arm)
            with servers.open_servers(state.opened, state.study, state.data, arms, cold) as ready:
                voided = _run_batch(state, block, batch, ready)
            if voided is not None:
                groups += batch if _is_given_up(state, voided) else [*batch, voided[0].group]
                break


def _run_batch(
    state: MatrixRunner, block: list[PlannedRun], batch: list[str], ready: servers.Ready
) -> list[PlannedRun] | None:
    """Make groups of runs, taken from `batch`, on running servers; return the first invalid group."""
    while batch:
        group = batch.pop(0)
        members = [run for run in block if run.group == group]
        if not _run_group(state, members, ready):
            return members
        state.tried.add(group)
    return None


def _is_given_up(state: MatrixRunner, members: list[PlannedRun]) -> bool:
    """True if a group was tried too often; notes if too many groups were."""
    group, repeats = members[0].group, state.study.plan.max_repeats
    if max(count_attempts(state.void, run.run_id) for run in members) <= repeats:
        return False
    state.tried.add(group)
    state.abandoned.append(group)
    state.say(f"{group}: given up after {repeats} repeats; the report says so")
    if len(state.abandoned) >= max(GIVEN_UP, GIVEN_UP_SHARE * len(state.tried)):
        state.not_here = (
            f"this study can't be had on this machine as it is now: {len(state.abandoned)} of "
            f"{count(len(state.tried), 'group')} of runs were given up after {count(repeats, 'repeat')} "
            f"each: {', '.join(state.abandoned)}. Why stands in {state.void}. What is valid is kept: "
            "end other work here, or ask for fewer threads, and run it again"
        )
        state.say(state.not_here)
    return True


def _run_group(state: MatrixRunner, members: list[PlannedRun], ready: servers.Ready) -> bool:
    """Make the runs of one group, in turns or one by one; true if all are valid, else void all."""
    for batch in [members] if members[0].partners else [[run] for run in members]:
        runs = [_bind_run(state, run, ready) for run in batch]
        tries = [count_attempts(state.void, run.run_id) + 1 for run in batch]
        try:
            folders = execute_together(runs, state.raw, tries)
        except SQLAlchemyError as error:
            _void_unmade(state, members, error)
            return False
        if verdicts := _keep_runs(state, batch, folders):
            voided = next(run for run in members if run.run_id in verdicts)
            state.left.update(void_group(voided, members, state.raw, state.void, verdicts))
            return False
    return True


def _void_unmade(state: MatrixRunner, members: list[PlannedRun], error: SQLAlchemyError) -> None:
    """Void a group whose server went away before one of its runs."""
    message = " ".join(str(getattr(error, "orig", None) or error).split())[:200]
    reason = (
        "the server went away before the run: it ended or was started again "
        f"({type(error).__name__}: {message})"
    )
    state.say(f"{members[0].group}: {reason}")
    for part in run_folder.list_unfinished(state.raw):
        run_folder.void_folder(part, state.void, "invalid", [reason])
    for run in members:
        if (state.raw / run.run_id).is_dir():
            run_folder.void_folder(state.raw / run.run_id, state.void, "partner", [reason])
    state.left.update(run.run_id for run in members)


def _keep_runs(
    state: MatrixRunner, batch: list[PlannedRun], folders: list[run_folder.RunFolder]
) -> dict[str, RunVerdict]:
    """Judge runs just made, report them and move them to `raw`; return the verdicts on invalid ones."""
    verdicts: dict[str, RunVerdict] = {}
    state.done += len(batch)
    for run, folder in zip(batch, folders, strict=True):
        verdict = state.judge(folder)
        state.sysbench_s += folder.times().sysbench_s / len(batch)
        run_folder.move_to_raw(folder, state.raw)
        state.left.discard(run.run_id)
        # What befell a group in turns befell each of its runs, and is shown once.
        messages = {reason for run_verdict in verdicts.values() for reason in run_verdict.reasons}
        if verdict.status != "valid":
            verdicts[run.run_id] = verdict
        _report_run(state, run, verdict, messages)
    return verdicts


def _bind_run(state: MatrixRunner, run: PlannedRun, ready: servers.Ready) -> RunContext:
    """A planned run with its arm as it stands."""
    is_own = run.partners and run.arm == state.own_twin
    arm = run.arm if is_own else state.study.deployed(run.arm)
    begins = state.data.of_arm(arm).begins
    return RunContext(run, state.opened, arm, ready.connections[arm], state.limits, begins, ready.rows)


def _report_run(state: MatrixRunner, run: PlannedRun, verdict: RunVerdict, messages: Collection[str]) -> None:
    left = len(state.left)
    outcome = verdict.status if verdict.qps is None else f"{verdict.qps:,.0f} qps, {verdict.status}"
    left_s = left * (time.monotonic() - state.began) / state.done
    state.say(
        f"[{len(state.runs) - left}/{len(state.runs)}] block {run.block} · {run.workload} · "
        f"{count(run.threads, 'thread')} · {run.arm}: {outcome} · {_format_duration(left_s)} left"
    )
    for reason in verdict.reasons if verdict.status != "valid" else ():
        if reason not in messages:
            state.say(f"    {reason}")


def _format_duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
