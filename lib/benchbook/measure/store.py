"""Store of runs: valid, voided (with reason) and missing ones, and the session they are of.

A session draws its random numbers once, for its order and its keys. With one seed for all sessions of a
study, all machines would share one order of arms and one list of keys.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.core.study.model import PlannedRun
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_sections import MAX_INT32
from benchbook.core.util import files, paths
from benchbook.core.util.grouping import group_by

ABOUT = "Attempts set aside, the reason of each in a .void.json beside it: evidence, never data.\n"


class RunVerdict(Protocol):
    """A judge's result for a run folder."""

    @property
    def status(self) -> str:
        """`valid`, or the status in its place."""

    @property
    def reasons(self) -> list[str]:
        """Each failed check in words."""

    @property
    def qps(self) -> float | None:
        """Queries a second, as far as they are known."""


Judge = Callable[[RunFolder], RunVerdict]


def tidy_up(
    runs: Iterable[PlannedRun], raw: Path, void: Path, judge: Judge, say: Callable[[str], None] = print
) -> list[str]:
    """Bring `raw` into agreement with the schedule before anything starts; return the ids that are missing.

    Half-written folders, folders that are not whole, runs made under other settings and runs that are no
    longer valid go to `void`, each with its reason. Runs in `void` whose settings are asked for again come
    back, if they are valid by the checks and limits of today. Of a group that is not whole all runs are
    missing.
    """
    planned = {run.run_id: run for run in runs}
    for place in (raw, void):
        place.mkdir(parents=True, exist_ok=True)
    # DVC warns of an empty folder at every step; this one should say what it is anyway.
    (void / "README.txt").write_text(ABOUT, encoding="utf-8")
    for part in run_folder.list_unfinished(raw):
        say(f"{part.name}: the run was killed before it ended; kept as evidence")
        run_folder.void_folder(part, void, "killed", ["the run was killed before it ended"])
    for folder in list(run_folder.list_folders(raw)):
        broken = folder.verify()
        if broken:
            say(f"{folder.name}: {'; '.join(broken)}; kept as evidence, it will be run again")
            run_folder.void_folder(folder.path, void, "broken", broken)
        elif folder.name not in planned:
            why = "made under settings that are no longer asked for"
            run_folder.void_folder(folder.path, void, "earlier", [why])
    _bring_back(planned, raw, void)
    verdicts: dict[str, RunVerdict] = {}
    for folder in list(run_folder.list_folders(raw)):
        if (verdict := judge(folder)).status != "valid":
            say(f"{folder.name}: {verdict.status}: {'; '.join(verdict.reasons)}")
            verdicts[folder.name] = verdict
    for run_id in verdicts:
        void_group(planned[run_id], planned.values(), raw, void, verdicts)
    _set_apart(planned.values(), raw, void, say)
    return [run_id for run_id in planned if not (raw / run_id).is_dir()]


def _bring_back(planned: Mapping[str, PlannedRun], raw: Path, void: Path) -> None:
    """Move runs of settings that are asked for again from `void` to `raw`, to be judged like those there."""
    for note in sorted(void.glob(f"*.{run_folder.VOID}")):
        record = run_folder.read_note(note)
        folder, target = run_folder.voided_by(note), raw / record.run_id
        is_asked = record.status == "earlier" and record.run_id in planned
        if is_asked and not target.exists() and not folder.verify():
            folder.path.rename(target)
            note.unlink()


def _set_apart(runs: Iterable[PlannedRun], raw: Path, void: Path, say: Callable[[str], None]) -> None:
    """Set aside groups that are not whole: runs that are compared are made within one start of servers."""
    for group, members in group_by(runs, lambda run: run.group).items():
        there = [raw / run.run_id for run in members if (raw / run.run_id).is_dir()]
        if len(there) == len(members):
            continue
        for folder in there:
            why = "its partners are missing, and a group is made together"
            run_folder.void_folder(folder, void, "apart", [why])
        if there:
            say(f"{group}: {len(there)} of {len(members)} runs were there; the whole group is made again")


def void_group(
    run: PlannedRun, runs: Iterable[PlannedRun], raw: Path, void: Path, verdicts: dict[str, RunVerdict]
) -> list[str]:
    """Move all runs of a group out of `raw`: one invalid run spoils it. Return the ids of the group."""
    members = [other.run_id for other in runs if other.group == run.group]
    result = next(run_id for run_id in members if run_id in verdicts)
    for run_id in members:
        folder = raw / run_id
        if folder.is_dir():
            verdict = verdicts.get(run_id)
            status = verdict.status if verdict else "partner"
            reasons = list(verdict.reasons) if verdict else [f"stands next to {result}"]
            run_folder.void_folder(folder, void, status, reasons)
    return members


def count_attempts(void: Path, run_id: str) -> int:
    """Number of voided attempts at a run, voided for their course."""
    if not void.is_dir():
        return 0
    notes = void.glob(f"{run_id}.a*.{run_folder.VOID}")
    return sum(1 for note in notes if run_folder.read_note(note).status in run_folder.COUNTED)


VERSION = 1


def begin_session(where: paths.StudyPaths, study: StudySpec) -> int:
    """Seed of the session: that of the study file, else the one drawn when the session began.

    What was drawn stands in `session.json` with version, study, begun_utc, seed and blocks; it is drawn from
    the operating system, and again only where the file is gone or the study file asks for another seed.
    """
    session = read_session(where)
    stated = study.plan.seed
    if session and stated in (None, session["seed"]):
        return int(session["seed"])
    seed = draw_seed() if stated is None else stated
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    kept = {"version": VERSION, "study": where.name, "begun_utc": begun, "seed": seed}
    files.write_json(where.session, kept | {"blocks": study.plan.blocks})
    return seed


def draw_seed() -> int:
    """Seed from the operating system."""
    return secrets.randbelow(MAX_INT32) + 1


def read_session(where: paths.StudyPaths) -> dict[str, Any]:
    """Session record in a study's folder; empty if there is none yet."""
    return dict(files.read_json(where.session)) if where.session.is_file() else {}
