"""Consistency of an unpacked archive: its files held against each other, its settings against ours.

`wrong` names each file or run that contradicts the others. `noted` says what is the archive's own and differs
here, is no longer there, or deserves a look. Files that agree prove no measurement: see `unverifiable`.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.core.study import interleaving as words
from benchbook.core.study.model import PlannedRun
from benchbook.core.util import files
from benchbook.core.util.errors import BenchbookError, InputErrors
from benchbook.core.util.numeric_equality import truncate_text
from benchbook.evidence import unverifiable
from benchbook.evidence.archive_reader import ArchiveContents
from benchbook.plan import order
from benchbook.plan import plan_consistency as planned
from benchbook.read import run_consistency as measured
from benchbook.read import validity
from benchbook.read.evidence import Evidence, turns_of
from benchbook.read.log import Missing


@dataclass
class ConsistencyReport:
    """Both lists, each sentence once, in the order of discovery."""

    wrong: list[str] = field(default_factory=list)
    noted: list[str] = field(default_factory=list)


def check_consistency(root: Path, name: str, ours: Path) -> ConsistencyReport:
    """Hold what was unpacked at `root`, before any stage ran, against itself, its settings against `ours`."""
    proof = ConsistencyReport()
    held = ArchiveContents(root, name)
    try:
        _ = held.study, held.params, held.facts, held.data, held.runs, held.plans
    except _DAMAGE as error:
        proof.wrong.append(_describe_damage("study, params, facts, dataset or plans", error))
        return proof
    for what, find in CHECKS.items():
        proof.wrong += _collect_faults(what, partial(find, held))
    for folder in held.folders:
        proof.wrong += _collect_faults(f"raw/{folder.name}", partial(_of_run, held, folder))
    for note, folder in held.voids:
        proof.wrong += _collect_faults(f"void/{folder.name}", partial(_of_void, held, note, folder))
        proof.noted += _collect_faults(f"void/{folder.name}", partial(_of_reasons, held, note, folder))
    proof.noted += _collect_faults("this clone", partial(unverifiable.beside_ours, held, ours))
    return proof


# What damaged or forged files make of code that trusts their shape.
_DAMAGE = (
    *(KeyError, TypeError, ValueError, AttributeError, IndexError, OSError, OverflowError, RecursionError),
    *(BenchbookError, InputErrors, Missing),
)


def _collect_faults(what: str, find: Callable[[], Iterable[str]]) -> list[str]:
    try:
        return list(find())
    except _DAMAGE as error:
        return [_describe_damage(what, error)]


def _describe_damage(what: str, error: Exception) -> str:
    return f"{what}: it can't be used: {type(error).__name__}: {str(error)[:300]}"


def _of_missing(held: ArchiveContents) -> Iterator[str]:
    most = held.study.plan.max_repeats
    given_up = {run.group for run in held.runs if held.voided[run.run_id] > most}
    first = min(held.params.analysis.looks) if held.study.plan.stop == "decided" else None
    yield from planned.check_missing(held.runs, held.plans, given_up, first)


def _of_moments(held: ArchiveContents) -> Iterator[str]:
    """Yield runs beside each other, whole ones not in the order of their group, and attempts too late."""
    spans, began = {}, {}
    for folder in [*held.folders, *held.pilots]:
        times, plan = folder.times(), folder.planned()
        # Arms that take turns run inside the same seconds; whole runs never do.
        together = folder.name if plan.order == words.RUNS else plan.group
        began[folder.name] = measured.parse_moment(times.started_utc)
        spans[folder.name] = began[folder.name], measured.parse_moment(times.ended_utc), together
    yield from measured.find_overlaps(spans)
    for before, after in itertools.pairwise(run for run in held.runs if run.run_id in began):
        is_one = before.group == after.group and words.RUNS in (before.order, after.order)
        if is_one and began[after.run_id] < began[before.run_id]:
            yield f"raw/{after.run_id}: it was made before {before.run_id}, the schedule has it after that"
    for note, folder in held.voids:
        if note.status not in run_folder.COUNTED or note.run_id not in began or folder.verify():
            continue
        if measured.parse_moment(folder.times().started_utc) > began[note.run_id]:
            yield f"void/{folder.name}: it was made after the attempt that counts"


def _of_turns(held: ArchiveContents) -> Iterator[str]:
    """Groups with differing turns, or turns against the plan: one clock gave them to all arms."""
    by_group: dict[str, dict[str, str]] = {}
    for folder in held.folders:
        plan, file = PlannedRun.of(held.plans[folder.name]), folder.path / run_folder.TURNS
        if plan.order != words.TURNS or not file.is_file():
            continue
        of_group = by_group.setdefault(plan.group, {})
        rounds, each = order.group_rounds(plan)
        if each != (request := folder.evidence()["turns"]["asked"]):
            yield f"raw/{folder.name}: evidence.json: turns.asked is {request}, the plan asks for {each}"
        if not of_group:
            due = itertools.cycle(itertools.chain.from_iterable(rounds))
            taken = zip(turns_of(file.read_text("utf-8")), due, strict=False)
            for number, (turn, arm) in enumerate(taken, 1):
                if turn.arm != arm:
                    yield f"{plan.group}: turn {number} is of {turn.arm}, by the plan of {arm}"
                    break
        of_group.setdefault(files.digest_file(file), folder.name)
    for group, of_group in by_group.items():
        if len(of_group) > 1:
            yield f"{group}: {run_folder.TURNS} is not the same in {' and '.join(of_group.values())}"


def _of_session(held: ArchiveContents) -> Iterator[str]:
    """Faults of session.json: it is of another study, or of a seed other than the study file's."""
    request, drawn = held.study.plan.seed, held.session.get("seed")
    if held.session and held.session["study"] != held.name:
        yield f"session.json: of the study {truncate_text(held.session['study'])}"
    if None not in (request, drawn) and request != drawn:
        yield f"session.json: the seed is {truncate_text(drawn)}, the study asks for {request}"


CHECKS: dict[str, Callable[[ArchiveContents], Iterator[str]]] = {
    "session.json": _of_session,
    "dataset.json": lambda held: planned.check_dataset(held.data, held.study),
    "facts.json": lambda held: planned.check_conditions(held.facts.arms, held.data, held.study, held.plans),
    "facts.json, settings": lambda held: planned.check_settings(held.facts.arms, held.study),
    "schedule.csv": lambda held: planned.check_schedule(held.runs, held.where.schedule.read_text("utf-8")),
    "raw": lambda held: planned.check_plans(held.runs, held.plans),
    "missing runs": _of_missing,
    "moments": _of_moments,
    "counters": lambda held: measured.find_chain_breaks(
        {folder.name: folder.evidence() for folder in held.folders}
    ),
    "turns": _of_turns,
}


def _of_run(held: ArchiveContents, folder: RunFolder) -> Iterator[str]:
    """Faults of one run: its hashes, its name, its checks, its evidence."""
    place = f"raw/{folder.name}"
    if faults := folder.verify():
        yield from (f"{place}: {fault}" for fault in faults)
        return
    yield from planned.check_name(folder.name, folder.plan(), "raw")
    judged = held.judged[folder.name]
    yield from (f"{place}: {judged.status}: {reason}" for reason in judged.reasons)
    run = judged.evidence
    of_attempt = measured.check_attempt(run, folder.manifest(), held.voided[folder.name])
    yield from (f"{place}: {fault}" for fault in (*measured.check_times(run), *of_attempt))


def _of_void(held: ArchiveContents, record: run_folder.Note, folder: RunFolder) -> Iterator[str]:
    """Voided attempts unlike their notes: a good run set aside is a forged result too."""
    place, there = f"void/{folder.name}", folder.path.is_dir()
    if record.status == "unreadable" or not there:
        yield f"{place}: {'; '.join(record.reasons) if there else 'a note without its folder'}"
        return
    if record.run_id != run_folder.run_of(folder.name) or f".a{record.attempt}" != folder.path.suffix:
        yield f"{place}: its note is of {record.run_id}, attempt {record.attempt}"
    if record.status not in (*run_folder.COUNTED, "earlier") or folder.verify():
        return
    yield from planned.check_name(record.run_id, folder.plan(), "void")
    if record.status == "partner":
        yield from _of_partner(held, record, folder)


def _of_partner(held: ArchiveContents, record: run_folder.Note, folder: RunFolder) -> Iterator[str]:
    """An attempt set aside with another of its group, of which none failed."""
    plan, place, statement = folder.planned(), f"void/{folder.name}", "; ".join(record.reasons)
    group = {run.run_id for run in held.runs if run.group == plan.group}
    # What failed before an arm's settings changed is no longer planned; its folder says where it stood.
    failed = {run for run, name in held.failed.items() if run in group or name == plan.group}
    if plan.run_id in group and not any(text in statement for text in failed):
        yield f"{place}: its note says that it {statement}, and no run of {plan.group} in void failed"


def _of_reasons(held: ArchiveContents, record: run_folder.Note, folder: RunFolder) -> Iterator[str]:
    """Yield voided attempts that the checks of today, by either limits, keep or void for other reasons."""
    if record.status not in run_folder.FAILED or folder.verify():
        return
    at_run, run = folder.evidence()["limits"], Evidence.of(folder)
    # A check may have become another since; or a good run was set aside because it did not please.
    judged = [validity.judge_run(run, limits) for limits in (held.params.limits, at_run)]
    reasons = [reason for judgement in judged for reason in judgement.reasons]
    statement = f"void/{folder.name}: its note says {record.status}: {truncate_text(record.reasons)}"
    if not reasons:
        yield f"{statement}, and it passes every check of this version"
    elif not set(record.reasons) & set(reasons):
        yield f"{statement}, the checks say {truncate_text(reasons)}"
