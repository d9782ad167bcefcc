"""Walk the schedule: resume where it stopped, void what is invalid, and lose nothing."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from benchbook.core import paths, runfolder
from benchbook.core.model import PlannedRun
from benchbook.core.runfolder import RunFolder
from benchbook.core.study import Study
from benchbook.measure import dataset
from benchbook.measure.database import session
from benchbook.measure.execute import Run, execute
from benchbook.sites import open_site, provision
from benchbook.sites.lab import lab_folder

# What a voided run may have been voided for; `earlier` and `killed` are nobody's fault and cost no attempt.
COUNTED = ("invalid", "indeterminate", "partner")


class Judgement(Protocol):
    """What a judge says of a run folder."""

    status: str

    @property
    def reasons(self) -> list[str]:
        """Each failed check in words."""


Judge = Callable[[RunFolder], Judgement]


@dataclass
class Walk:
    """The state of one walk: what is to be run, where it goes, and who judges it."""

    study: Study
    runs: list[PlannedRun]
    site: Any
    raw: Path
    void: Path
    judge: Judge
    limits: dict[str, Any]
    say: Callable[[str], None] = print
    done: int = 0
    spent_s: float = 0.0
    sysbench_s: float = 0.0
    abandoned: list[str] = field(default_factory=list)

    def table(self) -> pd.DataFrame:
        """Return what the walk did in one row; `overhead_s` is what the harness took around each run, in
        seconds."""
        overhead = (self.spent_s - self.sysbench_s) / self.done if self.done else 0.0
        return pd.DataFrame(
            [
                {
                    "runs planned": len(self.runs),
                    "made now": self.done,
                    "wall_s": round(self.spent_s, 1),
                    "sysbench_s": round(self.sysbench_s, 1),
                    "overhead_s a run": round(overhead, 2),
                    "groups given up": ", ".join(self.abandoned) or "none",
                }
            ]
        )


def tidy_up(
    runs: Iterable[PlannedRun], raw: Path, void: Path, judge: Judge, say: Callable[[str], None] = print
) -> list[str]:
    """Bring `raw` into agreement with the schedule before anything starts; return the ids that are missing.

    Half-written folders, folders that are not whole, runs made under other settings and runs that are no
    longer valid go to `void`, each with its reason. Runs in `void` whose settings are asked for again come
    back.
    """
    planned = {run.run_id: run for run in runs}
    for place in (raw, void):
        place.mkdir(parents=True, exist_ok=True)
    for part in runfolder.unfinished(raw):
        say(f"{part.name}: the run was killed before it ended; kept as evidence")
        runfolder.void(part, void, "killed", ["the run was killed before it ended"])
    for folder in list(runfolder.listing(raw)):
        broken = folder.verify()
        if broken:
            say(f"{folder.name}: {'; '.join(broken)}; kept as evidence, it will be run again")
            runfolder.void(folder.path, void, "broken", broken)
        elif folder.name not in planned:
            runfolder.void(folder.path, void, "earlier", ["made under settings that are no longer asked for"])
        elif (verdict := judge(folder)).status != "valid":
            say(f"{folder.name}: {verdict.status}: {'; '.join(verdict.reasons)}")
            _void_group(planned[folder.name], planned.values(), raw, void, {folder.name: verdict})
    for note in sorted(void.glob(f"*.{runfolder.VOID}")):
        record = json.loads(note.read_text(encoding="utf-8"))
        folder = RunFolder(note.with_name(note.name.removesuffix(f".{runfolder.VOID}")))
        target = raw / record["run_id"]
        if (
            record["status"] == "earlier"
            and record["run_id"] in planned
            and not target.exists()
            and not folder.verify()
        ):
            folder.path.rename(target)
            note.unlink()
    return [run_id for run_id in planned if not (raw / run_id).is_dir()]


def run(
    name: str,
    study: Study,
    runs: list[PlannedRun],
    facts: dict[str, Any],
    data: dict[str, Any],
    where: paths.StudyPaths,
    judge: Judge,
    limits: dict[str, Any],
) -> Walk:
    """Bring `raw` to what the schedule asks for and return what was done; with nothing missing no server
    starts.

    Before the first run the arms are held against `facts` and the data against `data`, and lost data is
    brought back.
    """
    state = Walk(study, runs, None, where.raw, where.void, judge, limits)
    if not tidy_up(runs, where.raw, where.void, judge):
        print(f"all {len(runs)} runs are there already")
        return state
    with open_site(study, lab_folder(paths.root(), name)) as site:
        state.site = site
        provision.verify(site, study, facts)
        for event in dataset.ensure(site, study, data)["events"]:
            state.say(event)
        return walk(state)


def walk(state: Walk) -> Walk:
    """Make every run of the schedule that is missing, block by block; return what was done.

    The data is put back and the arms are started anew at the start of every block. A run that is not valid
    voids its group, which is repeated at the end of its block at most `plan.max_repeats` times.
    """
    began = time.monotonic()
    missing = set(tidy_up(state.runs, state.raw, state.void, state.judge, state.say))
    total = len(missing)
    state.say(f"{len(state.runs)} runs planned, {len(state.runs) - total} there already, {total} to make")
    blocks: dict[int, list[PlannedRun]] = {}
    for run in state.runs:
        blocks.setdefault(run.block, []).append(run)
    for number, block in blocks.items():
        if any(run.run_id in missing for run in block):
            _block(state, number, block, missing, began)
    state.spent_s = time.monotonic() - began
    return state


def _block(state: Walk, number: int, block: list[PlannedRun], missing: set[str], began: float) -> None:
    study = state.study
    state.site.down()
    state.site.restore(dataset.label(study))
    for arm in study.arms:
        state.site.up(arm)
    with session(state.site) as connection:
        wrong = dataset.problems(dataset.describe(connection, study), study)
        if wrong:
            raise dataset.DatasetError(
                f"block {number}: {'; '.join(wrong)}; run `dvc repro -f prepare@STUDY`"
            )
        if study.warm_up.prewarm:
            dataset.prewarm(connection, study.dataset.tables)
        groups = list(dict.fromkeys(run.group for run in block if run.run_id in missing))
        repeats: Counter[str] = Counter()
        while groups:
            group = groups.pop(0)
            members = [run for run in block if run.group == group]
            if _group(state, members, missing, connection, began):
                continue
            repeats[group] += 1
            if max(_attempts(state.void, run.run_id) for run in members) > study.plan.max_repeats:
                state.abandoned.append(group)
                state.say(f"{group}: given up after {study.plan.max_repeats} repeats; the report says so")
            else:
                groups.append(group)


def _group(state: Walk, members: list[PlannedRun], missing: set[str], connection: Any, began: float) -> bool:
    """Make the missing runs of one group; say whether all its runs are valid, else void them all."""
    verdicts: dict[str, Judgement] = {}
    for run in members:
        if run.run_id not in missing:
            continue
        attempt = _attempts(state.void, run.run_id) + 1
        folder = execute(
            Run(run, state.site, state.study.deployed(run.arm), connection, state.limits), state.raw, attempt
        )
        verdict = state.judge(folder)
        state.sysbench_s += float(folder.evidence()["sysbench_s"])
        state.done += 1
        runfolder.keep(folder, state.raw)
        missing.discard(run.run_id)
        left = len(missing) * (time.monotonic() - began) / state.done
        state.say(
            f"[{len(state.runs) - len(missing)}/{len(state.runs)}] block {run.block} · {run.workload} · "
            f"{run.threads} threads · {run.arm}: {_outcome(verdict)} · {_clock(left)} left"
        )
        if verdict.status != "valid":
            verdicts[run.run_id] = verdict
            for reason in verdict.reasons:
                state.say(f"    {reason}")
            missing.update(_void_group(run, members, state.raw, state.void, verdicts))
            return False
    return True


def _void_group(
    run: PlannedRun, runs: Iterable[PlannedRun], raw: Path, void: Path, verdicts: dict[str, Judgement]
) -> list[str]:
    """Move all runs of a group out of `raw`: a pair with one invalid run is no pair. Return the ids of the
    group."""
    members = [other.run_id for other in runs if other.group == run.group]
    for run_id in members:
        folder = raw / run_id
        if folder.is_dir():
            verdict = verdicts.get(run_id)
            status = verdict.status if verdict else "partner"
            reasons = list(verdict.reasons) if verdict else [f"stands next to {next(iter(verdicts))}"]
            runfolder.void(folder, void, status, reasons)
    return members


def _attempts(void: Path, run_id: str) -> int:
    if not void.is_dir():
        return 0
    notes = void.glob(f"{run_id}.a*.{runfolder.VOID}")
    return sum(1 for note in notes if json.loads(note.read_text(encoding="utf-8"))["status"] in COUNTED)


def _outcome(verdict: Judgement) -> str:
    qps = getattr(verdict, "qps", None)
    return verdict.status if qps is None else f"{qps:,.0f} qps, {verdict.status}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
