"""What an unpacked archive proves: its files held against its runs, and what nothing in it can prove.

Three lists come of it. `wrong` names each file or run that contradicts the others. `noted` says what is the
archive's own and differs here, or deserves a look. `unproven` says what an owner of all the files could have
made up so that it agrees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, pairwise
from pathlib import Path

from benchbook.compare import steady
from benchbook.core import applied, files, own_scripts, runfolder
from benchbook.core import turns as words
from benchbook.core.canonical import short, unlike
from benchbook.core.errors import BenchbookError, InputErrors
from benchbook.core.model import PlannedRun
from benchbook.core.runfolder import RunFolder
from benchbook.core.scripts import WRITING
from benchbook.evidence import archive, disclosed
from benchbook.evidence.unpacked import Unpacked, jsonable, misstated
from benchbook.plan import binding as planned
from benchbook.plan import order, schedule, settling
from benchbook.read import binding as measured
from benchbook.read import checks_log, checks_turns, tidy, validity
from benchbook.read.evidence import Evidence, turns_of
from benchbook.read.log import Missing

# Turns by which the clients of a group may seem to be let go apart; exchanged logs are twice as far as turns.
APART = 1.5


@dataclass
class Proof:
    """The three lists, each sentence once, in the order in which they were found."""

    wrong: list[str] = field(default_factory=list)
    noted: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)


def prove(root: Path, name: str, ours: Path) -> Proof:
    """Hold everything in an unpacked archive against everything else in it, and its settings against ours.

    `root` is where it was unpacked, before any stage ran there; `ours` is this clone. Nothing is started.
    """
    proof = Proof()
    held = Unpacked(root, name)
    try:
        _ = held.study, held.params, held.facts, held.data, held.runs, held.plans
    except _DAMAGE as error:
        proof.wrong.append(_damage("study, params, facts, dataset or plans", error))
        return proof
    for what, find in CHECKS.items():
        proof.wrong += _found(what, partial(find, held))
    for folder in held.folders:
        proof.wrong += _found(f"raw/{folder.name}", partial(_of_run, held, folder))
    for note, folder in held.voids:
        proof.wrong += _found(f"void/{folder.name}", partial(_of_void, held, note, folder))
        proof.noted += _found(f"void/{folder.name}", partial(_of_reasons, held, note, folder))
    proof.noted += _found("this clone", partial(disclosed.beside_ours, held, ours))
    proof.unproven += disclosed.unproven(held)
    return proof


# What damaged or forged files make of code that trusts their shape.
_DAMAGE = (
    *(KeyError, TypeError, ValueError, AttributeError, IndexError, OSError, OverflowError, RecursionError),
    *(BenchbookError, InputErrors, Missing),
)


def _found(what: str, find: Callable[[], Iterable[str]]) -> list[str]:
    try:
        return list(find())
    except _DAMAGE as error:
        return [_damage(what, error)]


def _damage(what: str, error: Exception) -> str:
    return f"{what}: it can't be used: {type(error).__name__}: {str(error)[:300]}"


def _of_names(held: Unpacked) -> Iterator[str]:
    """Yield what belongs to no run, no note and no claim."""
    for place in (held.where.raw, held.where.void, held.where.pilots):
        is_void = place == held.where.void
        for file in sorted(place.iterdir()) if place.is_dir() else ():
            is_ours = is_void and (file.name == "README.txt" or file.name.endswith(f".{runfolder.VOID}"))
            if file.is_file() and not is_ours:
                yield f"{place.name}/{file.name}: belongs to no run"
            if is_void and file.is_dir() and not file.with_name(f"{file.name}.{runfolder.VOID}").is_file():
                yield f"void/{file.name}: no note beside it says why it was set aside"
    asked = archive.sources(held.study)
    published = held.root / "data" / "published"
    for source in sorted(published.iterdir()) if published.is_dir() else ():
        if source.name not in asked:
            yield f"data/published/{source.name}: no claim of the study is from it"


def _of_missing(held: Unpacked) -> Iterator[str]:
    most = held.study.plan.max_repeats
    given_up = {run.group for run in held.runs if held.voided[run.run_id] > most}
    first = min(held.params.analysis.looks) if held.study.plan.stop == "decided" else None
    yield from planned.of_missing(held.runs, held.plans, given_up, first)


def _of_pilots(held: Unpacked) -> Iterator[str]:
    """Yield pilots that are not the study's, and whatever warm_up.json says otherwise than they do."""
    due = {run.run_id: run for run in schedule.pilot_runs(held.name, held.study, held.facts.arms)}
    due = due if held.study.warm_up.pilot_s else {}
    found = {folder.name: folder.plan() for folder in held.pilots}
    yield from planned.of_plans(list(due.values()), found, "pilots")
    yield from (f"pilots/{name}: due and not there" for name in due if name not in found)
    for folder in held.pilots:
        yield from (f"pilots/{folder.name}: {fault}" for fault in folder.verify())
        run = Evidence.of(folder)
        # Of a run that counts the checks look at command lines.
        of_argv = chain(*map(checks_log.command_line, run.clients))
        found_wrong = (*validity.counted(run), *of_argv, *_of_evidence(held, folder, run, 0))
        yield from (f"pilots/{folder.name}: {fault}" for fault in found_wrong)
    # In the order in which they ran: a mean over arms that tie depends on nothing else.
    in_order = sorted(held.pilots, key=lambda folder: folder.planned().position)
    series = tidy.pilot_series(in_order)
    if not any("starting_s" in row for row in held.warm_up.get("turns", ())):
        # Before turns followed from the time in which clients start.
        series = series.drop(columns="starting_s")
    advice = steady.discard_advice(series)
    rules = int(held.warm_up.get("rules", 1))
    rates, turns = settling.settle_rates(held.study, series), settling.settle_turns(held.study, series, rules)
    made = jsonable({**vars(advice), "rates": rates, "turns": turns})
    if rules > 1:
        made["rules"] = words.RULES
    if "turns" not in held.warm_up:
        # Before there were turns; without them the plans of runs in turns do not follow.
        del made["turns"]
    for name, (said, due_is) in unlike(held.warm_up, made).items():
        if name not in ("analyze", "own"):
            yield f"warm_up.json: {name}: not what the pilots give: {short(said)}, due is {short(due_is)}"


def _of_own(held: Unpacked) -> Iterator[str]:
    """Yield what warm_up.json says of own scripts otherwise than their texts, the study and the pilots do."""
    due = {name for name, one in held.study.workloads.items() if own_scripts.is_own(one.script or name)}
    own = held.warm_up.get("own") or {}
    scripts = own.get("scripts", {})
    if set(scripts) != due:
        yield f"warm_up.json: own scripts of {sorted(scripts)}, the study has {sorted(due)}"
    for name, one in scripts.items():
        made = {file: applied.digest(text) for file, text in one["text"].items()}
        if made != one["sha256"] or held.study.script(name) not in made:
            yield f"warm_up.json: own.scripts.{name}: the texts are not those of its digests"
    if due:
        made = jsonable(settling.own_record(own, tidy.pilot_totals(held.pilots))["own"]["statements"])
        if own.get("statements") != made:
            yield f"warm_up.json: own.statements: {short(own.get('statements'))}, due is {short(made)}"


def _of_moments(held: Unpacked) -> Iterator[str]:
    """Yield runs beside each other, whole ones not in the order of their group, and attempts too late."""
    spans, began = {}, {}
    for folder in [*held.folders, *held.pilots]:
        seen, plan = folder.times(), folder.planned()
        # Arms that take turns run inside the same seconds; whole runs never do.
        together = folder.name if plan.order == words.RUNS else plan.group
        began[folder.name] = measured.moment(seen.started_utc)
        spans[folder.name] = began[folder.name], measured.moment(seen.ended_utc), together
    yield from measured.overlapping(spans)
    for before, after in pairwise(run for run in held.runs if run.run_id in began):
        is_one = before.group == after.group and words.RUNS in (before.order, after.order)
        if is_one and began[after.run_id] < began[before.run_id]:
            yield f"raw/{after.run_id}: it was made before {before.run_id}, the schedule has it after that"
    for note, folder in held.voids:
        if note.status not in runfolder.COUNTED or note.run_id not in began or folder.verify():
            continue
        if measured.moment(folder.times().started_utc) > began[note.run_id]:
            yield f"void/{folder.name}: it was made after the attempt that counts"


def _of_turns(held: Unpacked) -> Iterator[str]:
    """Yield groups whose arms tell different turns, or others than their plan: one clock gave them to all."""
    by_group: dict[str, dict[str, str]] = {}
    for folder in held.folders:
        plan, file = PlannedRun.of(held.plans[folder.name]), folder.path / runfolder.TURNS
        if plan.order != words.TURNS or not file.is_file():
            continue
        of_group = by_group.setdefault(plan.group, {})
        rounds, each = order.of_group(plan)
        if each != (asked := folder.evidence()["turns"]["asked"]):
            yield f"raw/{folder.name}: evidence.json: turns.asked is {asked}, the plan asks for {each}"
        if not of_group:
            due = [arm for one in rounds for arm in one]
            taken = turns_of(file.read_text("utf-8"))
            for number, turn in enumerate(taken):
                if turn.arm != due[number % len(due)]:
                    wanted = due[number % len(due)]
                    yield f"{plan.group}: turn {number + 1} is of {turn.arm}, by the plan of {wanted}"
                    break
        of_group.setdefault(files.sha256(file), folder.name)
    for group, of_group in by_group.items():
        if len(of_group) > 1:
            yield f"{group}: {runfolder.TURNS} is not the same in {' and '.join(of_group.values())}"


def _of_ends(held: Unpacked) -> Iterator[str]:
    """Yield groups whose clients were not let go at one moment, as their clock does: a log is another arm's.

    Where a script writes, a client ends when its last commit is on the disk.
    """
    ends: dict[tuple[str, int], list[float]] = {}
    for folder in held.folders:
        run = held.judged[folder.name].evidence
        is_read = run.is_in_turns and run.planned.script not in WRITING
        if is_read and (ended := checks_turns.ended_s(run)) is not None:
            ends.setdefault((run.planned.group, run.planned.turn_ms), []).append(1000 * ended)
    for (group, turn_ms), of_arms in ends.items():
        if (apart := max(of_arms) - min(of_arms)) > APART * turn_ms:
            yield (
                f"{group}: by first turn and log its clients were let go {apart:.0f} ms apart, and all are "
                "at once; an arm's log is another's"
            )


def _of_beside(held: Unpacked) -> Iterator[str]:
    """Yield runs that keep another output of a run beside them than its own folder has."""
    there = {folder.name: folder for folder in held.folders}
    for folder in held.folders:
        for one in folder.evidence().get("beside") or ():
            other = there.get(one["plan"]["run_id"])
            if other is None:
                continue
            said = [client["out"] for client in one["clients"]]
            own = [other.text(runfolder.of_client(number, runfolder.OUT)) for number in range(len(said))]
            if said != own or one["plan"] != other.plan():
                yield f"raw/{folder.name}: keeps beside it another {other.name} than raw/ has"


def _of_applied(held: Unpacked) -> Iterator[str]:
    """Yield settings files whose bytes are not those of a digest that facts or runs name."""
    for file, digest in held.settings_files.items():
        name = file.relative_to(held.where.data).as_posix()
        if digest not in held.applied:
            yield f"{name}: its bytes have no digest that facts.json or a run names"
        elif not applied.is_named_for(file.name, digest):
            yield f"{name}: its name is not that of its content, whose digest is {digest}"


def _of_session(held: Unpacked) -> Iterator[str]:
    """Yield where session.json is of another study, or of another seed than the study file asks for."""
    asked, drawn = held.study.plan.seed, held.session.get("seed")
    if held.session and held.session["study"] != held.name:
        yield f"session.json: of the study {short(held.session['study'])}"
    if None not in (asked, drawn) and asked != drawn:
        yield f"session.json: the seed is {short(drawn)}, the study asks for {asked}"


CHECKS: dict[str, Callable[[Unpacked], Iterator[str]]] = {
    "session.json": _of_session,
    "dataset.json": lambda held: planned.of_data(held.data, held.study),
    "facts.json": lambda held: planned.of_conditions(held.facts.arms, held.data, held.study, held.plans),
    "facts.json, settings": lambda held: planned.of_settings(held.facts.arms, held.study),
    "schedule.csv": lambda held: planned.of_schedule(held.runs, held.where.schedule.read_text("utf-8")),
    "raw": lambda held: planned.of_plans(held.runs, held.plans),
    "missing runs": _of_missing,
    "pilots and warm_up.json": _of_pilots,
    "moments": _of_moments,
    "counters": lambda held: measured.chained({one.name: one.evidence() for one in held.folders}),
    "turns": _of_turns,
    "ends": _of_ends,
    "beside": _of_beside,
    "own scripts": _of_own,
    "applied": _of_applied,
    "settings files": misstated,
    "names": _of_names,
}


def _of_run(held: Unpacked, folder: RunFolder) -> Iterator[str]:
    """Yield what is wrong with one run: its hashes, its name, its checks, its evidence."""
    place = f"raw/{folder.name}"
    faults = folder.verify()
    if faults:
        yield from (f"{place}: {fault}" for fault in faults)
        return
    yield from planned.of_name(folder.name, folder.plan(), "raw")
    judged = held.judged[folder.name]
    yield from (f"{place}: {judged.status}: {reason}" for reason in judged.reasons)
    voided = held.voided[folder.name]
    yield from (f"{place}: {fault}" for fault in _of_evidence(held, folder, judged.evidence, voided))


def _of_evidence(held: Unpacked, folder: RunFolder, run: Evidence, voided: int) -> Iterator[str]:
    yield from measured.of_times(run)
    yield from measured.of_attempt(run, folder.manifest(), voided)
    yield from measured.of_client(run)
    facts = held.facts.arms[held.study.deployed(run.planned.arm)]
    yield from measured.of_identity(run, facts, held.tells_proxy)
    yield from measured.of_pool(run, facts)
    yield from measured.of_ledger(run, facts)
    yield from measured.of_cluster(run, facts)
    yield from measured.of_machine(run, facts)
    # What other machines watched is sent in pieces, which may lack the last of it.
    is_here = held.study.site.kind == "local"
    yield from measured.of_monitor(run, folder.text(runfolder.MONITOR), is_whole=is_here)


def _of_void(held: Unpacked, record: runfolder.Note, folder: RunFolder) -> Iterator[str]:
    """Yield where a voided attempt is not what its note says: a good run set aside is a forged result too."""
    place = f"void/{folder.name}"
    if record.status == "unreadable" or not folder.path.is_dir():
        there = folder.path.is_dir()
        yield f"{place}: {'; '.join(record.reasons) if there else 'a note without its folder'}"
        return
    if record.run_id != runfolder.run_of(folder.name) or f".a{record.attempt}" != folder.path.suffix:
        yield f"{place}: its note is of {record.run_id}, attempt {record.attempt}"
    if record.status not in (*runfolder.COUNTED, "earlier") or folder.verify():
        return
    yield from planned.of_name(record.run_id, folder.plan(), "void")
    if record.status != "partner":
        return
    plan, said = folder.planned(), "; ".join(record.reasons)
    group = {run.run_id for run in held.runs if run.group == plan.group}
    # What failed before an arm's settings changed is no longer planned; its folder says where it stood.
    failed = {run for run, name in held.failed.items() if run in group or name == plan.group}
    if plan.run_id in group and not any(one in said for one in failed):
        yield f"{place}: its note says that it {said}, and no run of {plan.group} in void failed"


def _of_reasons(held: Unpacked, record: runfolder.Note, folder: RunFolder) -> Iterator[str]:
    """Yield voided attempts that the checks of today, by either limits, keep or void for other reasons."""
    if record.status not in runfolder.FAILED or folder.verify():
        return
    at_run, run = folder.evidence()["limits"], Evidence.of(folder)
    # A check may have become another since; or a good run was set aside because it did not please.
    judged = [validity.judge(run, limits) for limits in (held.params.limits, at_run)]
    reasons = [reason for one in judged for reason in one.reasons]
    said = f"void/{folder.name}: its note says {record.status}: {short(record.reasons)}"
    if not reasons:
        yield f"{said}, and it passes every check of this version"
    elif not set(record.reasons) & set(reasons):
        yield f"{said}, the checks say {short(reasons)}"
