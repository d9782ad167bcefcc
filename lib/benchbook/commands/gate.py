"""`benchbook gate`: is an arm slower than its baseline, side by side, by more than a margin?"""

from __future__ import annotations

import dataclasses
import math
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from benchbook.commands import commit_builds, gate_report, machine_noise
from benchbook.compare.stats import interleaved_runs, noninferiority, pairs
from benchbook.compare.stats.noninferiority import NoninferiorityDecision
from benchbook.compare.stats.pairs import block_ratios
from benchbook.core.artifacts import run_folder
from benchbook.core.study import interleaving as words
from benchbook.core.study import load
from benchbook.core.study.params import Analysis, Limits
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files, paths
from benchbook.core.util.errors import BenchbookError, InputErrors
from benchbook.measure import dataset, preflight, store, warm_up
from benchbook.measure.data_plan import plan_data
from benchbook.plan import pilot_parameters, schedule
from benchbook.read import tidy
from benchbook.sites import open_site, provision
from benchbook.sites.topology import feasibility

EXIT = {"not slower": 0, "slower": 1, "undecided": 2}
PILOT_S, MOST_RUN_S = 3, 60
LONGER_MS = (200,)
"""Turns for a machine that is too busy for those that the study has."""
RANKED = 7
"""Blocks from which on signed ranks have an interval at the level of 98 %."""
END_S = 5.0
"""Seconds kept for taking everything down and writing the reports."""
Ready = tuple[dict[str, Any], dict[str, Any]]
"""Conditions of the runs, and what pilots settled: the length of turns, and what own scripts send."""


@dataclass(frozen=True)
class GateRequest:
    """Request for a gate: study, margin as a fraction of QPS, minutes, treatments in question."""

    name: str
    study: StudySpec
    margin: float
    minutes: float
    limits: Limits
    analysis: Analysis


@dataclass
class GateResult:
    """Result of a gate: a decision for each question, the arms' facts, and the measured blocks."""

    request: GateRequest
    decisions: list[NoninferiorityDecision] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    blocks: int = 0
    run_s: int = 0
    voided: int = 0
    why_void: str = ""
    spent_s: float = 0.0
    ended: str = ""

    @property
    def answer(self) -> noninferiority.Answer:
        """The answer to all questions together."""
        return noninferiority.combine_answers(self.decisions) if self.decisions else "undecided"

    @property
    def word(self) -> str:
        """That answer as readers see it."""
        words = [decision.word for decision in self.decisions if decision.answer == self.answer]
        return next((word for word in words if word != self.answer), self.answer)


def run_gate(
    study: str,
    slower: str,
    minutes: str,
    arm: Sequence[str],
    junit: Path | None,
    markdown: Path | None,
    keep: Path | None,
    **commits: Any,
) -> int:
    """Measure and decide; return 0 not slower, 1 slower, 2 undecided."""
    request = read_request(study, slower, minutes, arm, keep)
    with commit_builds.compare_commits(request.study, **commits) as of_commits:
        gate_result = measure_blocks(dataclasses.replace(request, study=of_commits), keep)
    for file, text in ((junit, gate_report.render_junit), (markdown, gate_report.render_markdown)):
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            files.write_text(file, text(gate_result))
    print(gate_report.render_text(gate_result))
    return EXIT[gate_result.answer]


def read_request(
    name: str, slower: str, minutes: str, arms: Sequence[str] = (), keep: Path | None = None
) -> GateRequest:
    """Request for a gate; InputErrors with all mistakes, each with key and remedy."""
    study, params, wrong = load.load_study(name), load.load_params(), list[str]()
    share = _parse_number(slower, " ?%")
    if not 0 < share < 100:
        wrong.append(f"--slower: {slower}: not a share; write a percentage between 0 and 100, such as 3%")
    length = _parse_number(minutes)
    if not 1 <= length <= 1440:
        wrong.append(f"--minutes: {minutes}: not a time; write a number from 1 to 1440, such as 10")
    if keep is not None and keep.exists():
        wrong.append(f"--keep: {keep}: is there already; name a folder that is not there")
    if wrong := [*wrong, *_find_unfit(name, study, arms)]:
        raise InputErrors(wrong)
    compared = {study.baseline, *(arms or study.arms)}
    kept = {arm: settings for arm, settings in study.arms.items() if arm in compared}
    plan = study.plan.model_copy(update={"seed": study.plan.seed or store.draw_seed()})
    study = StudySpec.model_validate(dict(study) | {"arms": kept, "aa": None, "claims": (), "plan": plan})
    return GateRequest(name, study, share / 100, length, params.limits, params.analysis)


def _parse_number(text: str, unit: str = "") -> float:
    """A number before a unit, a pattern; not a number if the text is none."""
    match = re.fullmatch(rf"(\d+(?:\.\d+)?){unit}", text.strip())
    return float(match[1]) if match else math.nan


def _find_unfit(name: str, study: StudySpec, arms: Sequence[str]) -> Iterator[str]:
    """What a gate can't measure of a study, or compare in it."""
    for arm in arms:
        if arm not in study.treatments:
            of_baseline = f"not an arm that is compared with the baseline {study.baseline}"
            yield f"--arm: {arm}: {of_baseline}; write one of {', '.join(study.treatments)}"
    file = paths.study_paths(name).shown
    if study.site.kind != "local":
        remedy = "write kind: local, or run the study itself with `make repro`"
        yield f"{file}: site.kind: {study.site.kind}: a gate measures on this machine only; {remedy}"
    for workload, settings in study.workloads.items():
        if settings.rate:
            reason = "a gate compares queries a second, which a rate fixes; leave the rate out"
            yield f"{file}: workloads.{workload}.rate: {reason}"


def measure_blocks(
    request: GateRequest, keep: Path | None = None, say: Callable[[str], None] = print
) -> GateResult:
    """Load, warm up, and make blocks until the question is decided or the time is over."""
    gate_result, began = GateResult(request), time.monotonic()
    with machine_noise.make_lab("gate-") as base:
        limits = request.limits.model_dump()
        preflight.refuse_problems(preflight.check_machine(request.study, {"the lab": base}, limits))
        try:
            with open_site(request.study, base / "lab") as site:
                gate_result.facts = _read_facts(site, request.study)
                data = dataset.load_data(site, plan_data(request.study))
                conditions = schedule.run_conditions(gate_result.facts, data)
                ready = conditions, _run_pilots(request, site, base)
                _run_blocks(gate_result, site, base, began, ready, say)
        finally:
            if keep is not None:
                # Servers' data and accounts stay behind.
                keep.mkdir(parents=True)
                for name in ("raw", "void", "pilots", "trial-*", "schedule.csv"):
                    for place in base.glob(name):
                        (shutil.copytree if place.is_dir() else shutil.copyfile)(place, keep / place.name)
                files.write_json(keep / "facts.json", {"study": request.name, "arms": gate_result.facts})
                files.write_json(keep / "gate.json", gate_report.build_record(gate_result))
    gate_result.spent_s = time.monotonic() - began
    return gate_result


def _run_blocks(
    gate_result: GateResult, site: Any, base: Path, began: float, ready: Ready, say: Callable[[str], None]
) -> None:
    request = gate_result.request
    end_s = began + request.minutes * 60 - END_S
    trial, plan, overhead_s = _run_trial(request, site, base, ready, say)
    spent_s = overhead_s + _block_seconds(plan) - trial.plan.run_s * len(plan)
    blocks, each_s = allot_blocks(request.analysis.looks, end_s - time.monotonic(), spent_s)
    # One more second of each run is one more of each arm in each cell.
    gate_result.run_s = min(max(int(trial.plan.run_s), int(each_s / len(plan))), MOST_RUN_S)
    of = _replan_study(trial, blocks, gate_result.run_s)
    runs = schedule.plan_runs(request.name, of, *ready)
    files.write_csv(base / "schedule.csv", schedule.schedule_table(runs))
    left_min = max(0.0, end_s - time.monotonic()) / 60
    lengths = f"{gate_result.run_s} s of each arm in each cell, {left_min:.1f} minutes left"
    say(f"gate: up to {blocks} blocks with {lengths}")
    moments: list[float] = []

    def look(is_over: bool) -> None:
        """Decide from the blocks that are there."""
        tables = tidy.read_study(base / "raw", base / "void", schedule.schedule_table(runs), request.limits)
        valid = tables["runs"].to_pandas()
        gate_result.voided, gate_result.why_void = count_voids(base)
        gate_result.decisions = decide_questions(request, valid, is_over)
        gate_result.blocks = int(valid.block.nunique()) if len(valid) else 0
        for decision in gate_result.decisions:
            say(f"gate: {gate_result.blocks} blocks: {gate_report.format_decision(decision, request.margin)}")

    def stop(result: int) -> str | None:
        """Reason to stop after so many blocks: it is decided, or there is no time for another one."""
        moments.append(time.monotonic())
        if result:
            look(is_over=False)
        if gate_result.answer != "undecided":
            return "it is decided"
        longest_s = max((later - earlier for earlier, later in pairwise(moments)), default=0.0)
        return f"the {request.minutes:g} minutes are over" if moments[-1] + longest_s > end_s else None

    walk = machine_noise.run_planned(of, runs, site, base, request.limits, stop=stop)
    if gate_result.answer == "undecided":
        look(is_over=True)
    gate_result.ended = walk.stopped or gate_result.ended or f"all {blocks} blocks are made"


def allot_blocks(looks: Sequence[int], left_s: float, spent_s: float) -> tuple[int, float]:
    """Number of blocks to make and the seconds of each that are measured.

    As many blocks as the last look asks for while no more than a third of a block is spent on anything but
    measuring (`spent_s`); else as many as an earlier look does. Noise within a block falls with its measured
    seconds, and each block costs a start of the servers. A look that ranks cannot confirm is not aimed at.
    """
    aims = [look for look in looks if look >= RANKED] or [max(looks)]
    for blocks in sorted(aims, reverse=True):
        measured_s = left_s / blocks - spent_s
        if measured_s >= 2 * spent_s:
            break
    return blocks, max(0.0, measured_s)


def _run_trial(
    request: GateRequest, site: Any, base: Path, ready: Ready, say: Callable[[str], None]
) -> tuple[StudySpec, list[Any], float]:
    """Make a block that is not counted; its study, plan and the seconds beside its runs. A busy machine gets
    longer turns, of which a switch is a smaller share."""
    study = request.study
    is_in_turns = all(words.choose_order(study, workload) == words.TURNS for workload in study.workloads)
    run_s = 1 if is_in_turns else words.LEAST_RUN_S
    longer = LONGER_MS if is_in_turns and study.plan.turn_ms is None else ()
    for turn_ms in (study.plan.turn_ms, *longer):
        began = time.monotonic()
        trial = _replan_study(study, 1, run_s, turn_ms)
        plan = schedule.plan_runs(request.name, trial, *ready)
        of_turns = f", turns of {turn_ms} ms" if turn_ms else ""
        say(f"gate: trial block of {len(plan)} runs, not counted{of_turns}")
        into = base / f"trial-{turn_ms or 'settled'}"
        walk = machine_noise.run_planned(trial, plan, site, into, request.limits)
        overhead_s = max(2.0, time.monotonic() - began - _block_seconds(plan))
        if not walk.abandoned:
            break
    return trial, plan, overhead_s


def decide_questions(request: GateRequest, runs: pd.DataFrame, is_over: bool) -> list[NoninferiorityDecision]:
    """A decision for each treatment at each workload; `runs` are the valid ones."""
    study = request.study
    questions = len(study.treatments) * len(study.workloads)
    usable = pairs.select_usable(interleaved_runs.select_order(runs, study)[0])[0] if len(runs) else runs
    return [
        noninferiority.decide_contrast(
            block_ratios(usable, study.baseline, treatment, workload, study.threads),
            *(request.margin, request.analysis, questions, is_over),
        )
        for workload in study.workloads
        for treatment in study.treatments
    ]


def _run_pilots(request: GateRequest, site: Any, base: Path) -> dict[str, Any]:
    """Warm up; return results of pilots of seconds for the length of turns and for custom scripts."""
    study = request.study
    warm_up.warm_up_data(site, study)
    record_custom_scripts = warm_up.record_custom_scripts(site, study)
    if not record_custom_scripts and (study.plan.turn_ms is not None or study.warm_up.pilot_s == 0):
        return {"rules": words.RULES}
    warm = study.warm_up.model_copy(update={"pilot_s": min(PILOT_S, study.warm_up.pilot_s)})
    short, limits = study.model_copy(update={"warm_up": warm}), request.limits.model_dump()
    folders = warm_up.run_pilots(request.name, short, site, base / "pilots", limits, lambda _: None)
    settled = pilot_parameters.settle_turns(study, tidy.pilot_series(folders))
    scripts = pilot_parameters.script_record(record_custom_scripts, tidy.pilot_totals(folders))
    return {"rules": words.RULES, "turns": settled, **scripts}


def _read_facts(site: Any, study: StudySpec) -> dict[str, Any]:
    """Bring every arm up and return its facts; an arm that can't be made leaves nothing to decide."""
    if missing := feasibility.of_site(site, study.arms):
        message = "; ".join(f"arms.{arm}: {reason}" for arm, reason in missing.items())
        raise BenchbookError(f"this machine can't make what is to be compared: {message}")
    facts = {}
    for arm in study.arms:
        site.up(arm)
        facts[arm] = site.facts(arm)
        provision.must_have_sysbench(study, arm, facts[arm])
    return facts


def _replan_study(study: StudySpec, blocks: int, run_s: int, turn_ms: int | None = None) -> StudySpec:
    """The study with other blocks, seconds of a run, and milliseconds of a turn (None: as it has)."""
    plan = study.plan.model_dump() | {"blocks": blocks, "run_s": run_s, "budget_minutes": 100_000}
    plan |= {"turn_ms": turn_ms} if turn_ms else {}
    return StudySpec.model_validate(dict(study) | {"plan": plan})


def _block_seconds(runs: Sequence[Any]) -> float:
    """Seconds that sysbench's clocks run for a block; those of a group in turns are the same."""
    return sum(sum(words.clock_seconds(run)) / max(1, len(run.partners)) for run in runs)


def count_voids(base: Path) -> tuple[int, str]:
    """Number of runs that were set aside, and an example of the reason that most of them share."""
    notes = [run_folder.read_note(file) for file in sorted((base / "void").glob(f"*.{run_folder.VOID}"))]
    reasons = [reason for note in notes if note.status != "partner" for reason in note.reasons]
    checks = Counter(reason.partition(":")[0] for reason in reasons)
    return len(notes), max(reasons, key=lambda item: checks[item.partition(":")[0]], default="")
