"""`benchbook session`: measure what the record needs most on this machine, and put it into the record.

What is begun ends in the record or among its `not_recorded`; a session that was stopped goes on.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from benchbook.commands import record as recording
from benchbook.commands import repro, stage
from benchbook.compare.meta import sample_size
from benchbook.compare.meta.sample_size import Need
from benchbook.compare.text import cpu_models
from benchbook.core.artifacts import design, meta_analysis, record
from benchbook.core.artifacts.artifact import Facts
from benchbook.core.artifacts.meta_analysis import Processor, Session
from benchbook.core.study import interleaving, load
from benchbook.core.study.study import Study
from benchbook.core.util import paths
from benchbook.core.util.errors import BenchbookError, InputErrors
from benchbook.evidence import sessions
from benchbook.evidence.archive_reader import Unpacked
from benchbook.measure import store
from benchbook.plan import schedule
from benchbook.sites.machine import facts as machine
from benchbook.sites.topology import feasibility

STAGES = ("provision", "prepare", "warm-up", "run-matrix", "parse", "analyze")
# A session that goes on keeps what these found when it began: other lengths of turns would be other runs.
SETTLED = ("provision", "prepare", "warm-up")


def run(study: str | None, minutes: float, anyway: bool, given_up: str | None, because: str) -> int | str:
    """Measure sessions and record them, or give one up; return an exit code."""
    if given_up:
        return give_up(given_up, because)
    if because:
        raise InputErrors(["--because: says why --give-up STUDY; name the study"])
    with repro.alone(paths.root()):
        names = [study] if study else _most_needed(60 * minutes)
        print(f"this machine now: {machine.busy()}")
        busy = [] if anyway else machine.wait_until_usable(load.params().limits.steal_pct)
        full = recording.capacity_problem(max(map(recording.archive_bytes, names), default=0), len(names))
        edits = sorted({why for name in names for why in recording.edited(name)})
        if wrong := [*edits, *busy, *([full] if full else [])]:
            raise InputErrors([f"session: {reason}" for reason in wrong])
        failed = [name for name in names if not _measured(name)]
    print(f"{len(names) - len(failed)} of {len(names)} sessions are recorded; {recording.COMMIT}")
    return int(bool(failed))


def is_open(name: str) -> bool:
    """Tell whether a session stands in a study's folder that is neither recorded nor given up."""
    where, known = paths.study(name), record.read().studies.get(name)
    # Before its first run or voided attempt a session did not begin.
    is_tried = any(folder.is_dir() and any(folder.iterdir()) for folder in (where.raw, where.void))
    if not where.session.is_file() or not is_tried:
        return False
    held = Unpacked(paths.root(), name)
    if known is None:
        return True
    if _began(held) in {one.begun for one in known.not_recorded}:
        return False
    return not held.folders or sessions.session_id(held) not in known.sessions


def give_up(name: str, because: str) -> str:
    """Count the session of a study that was started here as not recorded; return a line on it."""
    known = record.read().studies.get(name)
    wrong = []
    if not because.strip():
        wrong.append("--because: missing; say in a sentence why the session is not recorded")
    if known is None:
        wrong.append(f"--give-up: {name}: the record has no session of it, and so nothing to count it beside")
    elif not is_open(name):
        wrong.append(f"--give-up: {name}: no session of it was started here and is not at its end")
    if wrong or known is None:
        raise InputErrors(wrong)
    held = Unpacked(paths.root(), name)
    processor = sessions.machine_of(held.facts).told_processor
    one = record.NotRecorded(begun=_began(held), processor=processor, why=because.strip())
    not_recorded = tuple(sorted((*known.not_recorded, one), key=lambda other: other.begun))
    file = record.write_study(name, known.model_copy(update={"not_recorded": not_recorded}))
    place = file.relative_to(paths.root()).as_posix()
    return f"{place}: {name}: the session of {one.begun} is not recorded: {one.why}"


def _began(held: Unpacked) -> str:
    return sessions.minute(str(held.session["begun_utc"]))


def _most_needed(seconds: float) -> list[str]:
    """Return what was started here and what the record needs most of what fits beside it, and say so."""
    folders = sorted((paths.root() / "data").glob("*/session.json"))
    open_ = [one.parent.name for one in folders if is_open(one.parent.name)]
    left = seconds - sum(_seconds(load.study(name)) for name in open_)
    needs, skipped = needed([name for name in record.read().studies if name not in open_])
    fitting = sample_size.chosen(needs, left)
    late = [f"{one.study}: it has a session of six hours ago or less" for one in needs if not one.is_new_here]
    lines = [
        "what the record needs most here:",
        *(f"  {name}: started before, goes on" for name in open_),
        *(f"  {one.sentence}" for one in fitting),
        *(f"  not {text}" for text in (*late, *skipped)),
    ]
    print("\n".join(lines))
    return [*open_, *(one.study for one in fitting)]


def needed(names: Sequence[str]) -> tuple[list[Need], list[str]]:
    """Return what the record needs of recorded studies, and why others can't be measured here."""
    needs, skipped, index = [], [], record.read()
    now = datetime.now(UTC).isoformat(timespec="minutes")[:16] + "Z"
    for name in names:
        if why := next(_unfit(name, index.studies[name]), ""):
            skipped.append(f"{name}: {why}")
            continue
        study, known = load.study(name), index.studies[name]
        # The design of a session that is measured now with the newest one's versions.
        present = {one: design.METHODS.get(one, 1) for one in known.sessions[known.newest].methods}
        facts = index.newest(name).pooled_results.facts
        mine = design.of(study, facts.arms, present)
        here = Session(
            id="here", measured=now, design=mine, processor=cpu_models.processor(machine.cpu_model())
        )
        found = meta_analysis.of(name)
        needs.append(
            sample_size.need(
                name,
                [_session(*one) for one in known.of_design(mine).items()],
                here,
                found if found is not None and found.design == mine else None,
                any(interleaving.order(study, workload) == interleaving.RUNS for workload in study.workloads),
                _seconds(study),
            )
        )
    return needs, skipped


def _unfit(name: str, known: record.Recorded) -> Iterator[str]:
    """Yield the first reason against measuring a recorded study here without being asked."""
    if known.retired is not None:
        yield f"retired: {known.retired}"
    elif name not in paths.studies():
        yield "its study file is gone"
    elif (study := load.study(name)).site.kind != "local":
        yield f"it needs {study.site.kind}; `benchbook session {name}` measures it there"
    elif missing := feasibility.foreseen(study):
        # An arm that its sessions lack, too, such as an engine without a package, is not waited for.
        there = record.read().newest(name).pooled_results.facts.arms
        yield from (f"{arm} can't be made here: {why}" for arm, why in missing.items() if arm in there)


def _session(name: str, entry: record.Entry) -> Session:
    told = entry.machine.model_dump(include={"family", "model", "stepping"})
    processor = Processor(name=entry.machine.processor, **told)
    return Session(id=name, measured=entry.measured, design=entry.design, processor=processor)


def _seconds(study: Study) -> float:
    return schedule.seconds(study, schedule.sketched("", study)) + schedule.pilot_seconds(study)


def _measured(name: str) -> bool:
    """Measure a session of a study, or what is left of it, and record it; say what keeps it out."""
    print(f"\n{name}: {'goes on' if is_open(name) else 'a session begins'}")
    try:
        _begin(name)
        for one in STAGES:
            leaves = getattr(paths.study(name), paths.STAGES[one][1])
            if one in SETTLED and leaves.exists():
                continue
            if code := stage.run(one, name):
                if code > stage.ENDED_BY:
                    raise KeyboardInterrupt
                raise BenchbookError(f"{one} failed")
        print(recording.add(name))
        return True
    except BenchbookError as error:
        print(error if isinstance(error, InputErrors) else f"{name}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"{name}: stopped: `benchbook session {name}` goes on", file=sys.stderr)
        raise
    if is_open(name):
        print(
            f"{name}: started and not recorded: `benchbook session {name}` goes on, "
            f'`benchbook session --give-up {name} --because "…"` counts it',
            file=sys.stderr,
        )
    return False


def _begin(name: str) -> None:
    """Begin a session, unless one goes on: what is in the record already makes room for it."""
    where, study = paths.study(name), load.to_measure(name)
    if is_open(name):
        found = Facts.read(where.facts).methods or {}
        orders = {interleaving.order(study, workload) for workload in study.workloads}
        if any(found.get(one) != design.METHODS[one] for one in design.used(study, orders)):
            raise BenchbookError(
                "it was started by code that measured otherwise; give it up, and the next one begins afresh"
            )
        return
    shutil.rmtree(where.data, ignore_errors=True)
    where.data.mkdir(parents=True)
    store.begin_session(where, study)
