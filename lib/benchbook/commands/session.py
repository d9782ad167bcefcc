"""`benchbook session`: measure the greatest need of the record on this machine, and record it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from benchbook.commands import stage
from benchbook.core.artifacts import design, meta_analysis, record
from benchbook.core.artifacts.artifact import Facts
from benchbook.core.artifacts.meta_analysis import Processor, StudySession
from benchbook.core.study import interleaving, load
from benchbook.core.study.study import StudySpec
from benchbook.core.util import paths
from benchbook.core.util.errors import BenchbookError, InputErrors

if TYPE_CHECKING:
    from benchbook.compare.meta.sample_size import SampleSize
    from benchbook.evidence.archive_reader import ArchiveContents

STAGES = ("provision", "prepare", "warm-up", "run-matrix", "parse", "analyze")
# A session that goes on keeps what these found when it began: other lengths of turns would be other runs.
SETTLED = ("provision", "prepare", "warm-up")


def run_sessions(
    study: str | None, minutes: float, anyway: bool, given_up: str | None, because: str
) -> int | str:
    """Measure sessions and record them, or give one up; return an exit code."""
    if given_up:
        return give_up(given_up, because)
    if because:
        raise InputErrors(["--because: says why --give-up STUDY; name the study"])
    # What reads and pools evidence takes a second to import, which no refusal needs.
    from benchbook.commands import record as recording
    from benchbook.commands import repro
    from benchbook.sites.machine import facts as machine

    with repro.lock_clone(paths.find_root()):
        names = [study] if study else _most_needed(60 * minutes)
        print(f"this machine now: {machine.describe_load()}")
        busy = [] if anyway else machine.wait_until_usable(load.load_params().limits.steal_pct)
        full = recording.capacity_problem(max(map(recording.archive_bytes, names), default=0), len(names))
        edits = sorted({why for name in names for why in recording.find_edits(name)})
        if wrong := [*edits, *busy, *([full] if full else [])]:
            raise InputErrors([f"session: {reason}" for reason in wrong])
        failed = [name for name in names if not _measure_session(name)]
    print(f"{len(names) - len(failed)} of {len(names)} sessions are recorded; {recording.COMMIT}")
    return int(bool(failed))


def is_open(name: str) -> bool:
    """True if a study's folder has a session that is neither recorded nor given up."""
    where, recorded = paths.study_paths(name), record.read_index().studies.get(name)
    # Before its first run or voided attempt a session did not begin.
    is_tried = any(folder.is_dir() and any(folder.iterdir()) for folder in (where.raw, where.void))
    if not where.session.is_file() or not is_tried:
        return False
    if recorded is None:
        return True
    from benchbook.evidence import sessions
    from benchbook.evidence.archive_reader import ArchiveContents

    held = ArchiveContents(paths.find_root(), name)
    if _read_start(held) in {not_recorded.begun for not_recorded in recorded.not_recorded}:
        return False
    return not held.folders or sessions.session_id(held) not in recorded.sessions


def give_up(name: str, because: str) -> str:
    """Count the session of a study that was started here as not recorded; return a line on it."""
    recorded = record.read_index().studies.get(name)
    wrong = []
    if not because.strip():
        wrong.append("--because: missing; say in a sentence why the session is not recorded")
    if recorded is None:
        wrong.append(f"--give-up: {name}: the record has no session of it, and so nothing to count it beside")
    elif not is_open(name):
        wrong.append(f"--give-up: {name}: no session of it was started here and is not at its end")
    if wrong or recorded is None:
        raise InputErrors(wrong)
    from benchbook.evidence import sessions
    from benchbook.evidence.archive_reader import ArchiveContents

    held = ArchiveContents(paths.find_root(), name)
    processor = sessions.machine_of(held.facts).processor_model
    entry = record.NotRecorded(begun=_read_start(held), processor=processor, why=because.strip())
    not_recorded = tuple(sorted((*recorded.not_recorded, entry), key=lambda other: other.begun))
    place = record.write_study(name, recorded.model_copy(update={"not_recorded": not_recorded}))
    return f"{place}: {name}: the session of {entry.begun} is not recorded: {entry.why}"


def _read_start(held: ArchiveContents) -> str:
    from benchbook.evidence import sessions

    return sessions.format_minute(str(held.session["begun_utc"]))


def _most_needed(seconds: float) -> list[str]:
    """Sessions started here and the record's greatest needs that fit beside them, also printed."""
    from benchbook.compare.meta import sample_size

    folders = sorted((paths.find_root() / "data").glob("*/session.json"))
    open_ = [folder.parent.name for folder in folders if is_open(folder.parent.name)]
    left = seconds - sum(_estimate_seconds(load.load_study(name)) for name in open_)
    needs, skipped = find_needed([name for name in record.read_index().studies if name not in open_])
    fitting = sample_size.choose_studies(needs, left)
    recent = "it has a session of six hours ago or less"
    late = [f"not {need.study}: {recent}" for need in needs if not need.is_new_here]
    begun = (f"{name}: started before, goes on" for name in open_)
    lines = [*begun, *(advice.sentence for advice in fitting), *late, *(f"not {text}" for text in skipped)]
    print("\n  ".join(["what the record needs most here:", *lines]))
    return [*open_, *(advice.study for advice in fitting)]


def find_needed(names: Sequence[str]) -> tuple[list[SampleSize], list[str]]:
    """Needs of the record for recorded studies, and reasons against measuring others here."""
    from benchbook.compare.meta import sample_size
    from benchbook.compare.text import cpu_models
    from benchbook.sites.machine import facts as machine

    needs, skipped, index = [], [], record.read_index()
    now = datetime.now(UTC).isoformat(timespec="minutes")[:16] + "Z"
    for name in names:
        if why := next(_find_obstacle(name, index.studies[name]), ""):
            skipped.append(f"{name}: {why}")
            continue
        study, recorded, newest = load.load_study(name), index.studies[name], index.newest(name)
        # The design of a session that is measured now with the newest one's versions.
        present = {method: design.METHODS.get(method, 1) for method in newest.entry.methods}
        mine = design.compute_digest(study, newest.pooled_results.facts.arms, present)
        processor = cpu_models.parse_processor(machine.cpu_model())
        here = StudySession(id="here", measured=now, design=mine, processor=processor)
        before = []
        for session, entry in recorded.of_design(mine).items():
            model = entry.machine.model_dump(include={"family", "model", "stepping"})
            processor = Processor(name=entry.machine.processor, **model)
            before.append(StudySession(id=session, measured=entry.measured, design=mine, processor=processor))
        pooled = meta_analysis.read_pooled(name)
        pooled = pooled if pooled is not None and pooled.design == mine else None
        orders = {interleaving.choose_order(study, workload) for workload in study.workloads}
        in_runs, seconds = interleaving.RUNS in orders, _estimate_seconds(study)
        needs.append(sample_size.assess_study(name, before, here, pooled, in_runs, seconds))
    return needs, skipped


def _find_obstacle(name: str, recorded: record.Recorded) -> Iterator[str]:
    """First reason against measuring a recorded study here without a request."""
    from benchbook.sites.topology import feasibility

    if recorded.retired is not None:
        yield f"retired: {recorded.retired}"
    elif name not in paths.list_studies():
        yield "its study file is gone"
    elif (study := load.load_study(name)).site.kind != "local":
        yield f"it needs {study.site.kind}; `benchbook session {name}` measures it there"
    elif missing := feasibility.find_infeasible(study):
        # An arm that its sessions lack, too, such as an engine without a package, is not waited for.
        there = record.read_index().newest(name).pooled_results.facts.arms
        yield from (f"{arm} can't be made here: {why}" for arm, why in missing.items() if arm in there)


def _estimate_seconds(study: StudySpec) -> float:
    from benchbook.plan import schedule

    return schedule.estimate_seconds(study, schedule.sketch_runs("", study)) + schedule.pilot_seconds(study)


def _measure_session(name: str) -> bool:
    """Measure a session of a study, or the rest of it, and record it; print reasons against that."""
    from benchbook.commands import record as recording

    print(f"\n{name}: {'goes on' if is_open(name) else 'a session begins'}")
    try:
        _begin_session(name)
        for text in STAGES:
            leaves = getattr(paths.study_paths(name), paths.STAGES[text][1])
            if text in SETTLED and leaves.exists():
                continue
            if code := stage.run_stage(text, name):
                if code > stage.ENDED_BY:
                    raise KeyboardInterrupt
                raise BenchbookError(f"{text} failed")
        print(recording.add_session(name))
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


def _begin_session(name: str) -> None:
    """Begin a session, unless one goes on: recorded runs in the folder make room for it."""
    where, study = paths.study_paths(name), load.load_for_measuring(name)
    if is_open(name):
        results = Facts.read(where.facts).methods or {}
        orders = {interleaving.choose_order(study, workload) for workload in study.workloads}
        if any(results.get(text) != design.METHODS[text] for text in design.methods_used(study, orders)):
            raise BenchbookError(
                "it was started by code that measured otherwise; give it up, and the next one begins afresh"
            )
        return
    shutil.rmtree(where.data, ignore_errors=True)
    where.data.mkdir(parents=True)
    from benchbook.measure import store

    store.begin_session(where, study)
