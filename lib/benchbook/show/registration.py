"""Whether a study's question, arms, levels and lengths stood in git before anybody looked at a result of it.

The band of a claim follows from the claim, so a claim that is named before the first run has its band
fixed as well (Nosek et al. 2018, The preregistration revolution). Dates are those that git has: they show
good order among honest people and prove nothing against others.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from benchbook.compare.meta.random_effects import moment
from benchbook.core.artifacts import record
from benchbook.core.study import study_variants
from benchbook.core.study.study_arm import without_presentation
from benchbook.core.util import git, number_format, paths
from benchbook.show.caveats_section import Doubt

NAME = "Pre-registration"
HELD = "Held: "
NO_RUN = "There is no run yet that anything could be older than."
# Beside a recorded study: what git's dates showed when it was recorded.
RECORDED = "registered.txt"
PROMISED = ("question", "arms", "workloads", "threads", "claims", "lengths")
LENGTHS = ("order", "turn_ms", "discard_s", "run_s")
"""Keys of `plan` that are promised, as `lengths`; more blocks and another seed break nothing."""


@dataclass(frozen=True)
class Revision:
    """The study file as one commit has it, and where it lay then."""

    commit: str
    moment: datetime.datetime
    name: str


@dataclass(frozen=True)
class Look:
    """Earlier session of a study whose result was known: when it began, and why it is not recorded."""

    moment: datetime.datetime
    not_recorded: str = ""


def doubt(study: str, runs: pd.DataFrame, looks: Sequence[Look] | None = None) -> Doubt:
    """Say whether the study file's promises are older than its first run, and unchanged since.

    `runs` is the tidy table; its earliest `started_utc` is the first run. `looks` are the study's other
    sessions, those of the record unless given: one that began earlier, when another design stood, was looked
    at before the study changed.
    """
    kept = paths.root() / RECORDED
    told = kept.read_text(encoding="utf-8").strip() if kept.is_file() else _told(study, runs, looks)
    return Doubt(NAME, told, not told.startswith((HELD, NO_RUN)))


def _told(study: str, runs: pd.DataFrame, looks: Sequence[Look] | None) -> str:
    if runs.empty:
        return NO_RUN
    first = datetime.datetime.fromisoformat(min(runs.started_utc))
    name, revisions, promised = _followed(study)
    if not revisions:
        return (
            f"Not known: {name} is not in git here, so nothing says whether the question, the arms and the "
            "claims are older than the first run."
        )
    before = [one for one in revisions if one.moment <= first]
    if not before:
        if git.says("rev-parse", "--is-shallow-repository") == "true\n":
            return "Not known: this clone does not have the history before the first run."
        oldest = _moment(revisions[-1].moment)
        return f"Not held: {name} was first committed on {oldest}, after the first run on {_moment(first)}."
    own = (paths.root() / name).read_text(encoding="utf-8")
    said = _compared(name, own, before[0], first, promised)
    if not said.startswith(HELD):
        return said
    return looked_at(study, own, first, recorded(study) if looks is None else looks) or said


def recorded(study: str) -> list[Look]:
    """Return the looks at a study that the record knows of, at sessions that are not recorded too."""
    known = record.read().studies.get(study)
    if known is None:
        return []
    looks = [Look(moment(one.measured)) for one in known.sessions.values()]
    return looks + [Look(moment(one.begun), one.why) for one in known.not_recorded]


def looked_at(study: str, own: str, first: datetime.datetime, looks: Sequence[Look]) -> str | None:
    """Say what was looked at before `first` that had other promises than `own`, the study file measured then;
    None if nothing was."""
    _, revisions, promised = _followed(study)
    seen = list(_seen(own, revisions, [one for one in looks if one.moment < first], promised))
    if not seen:
        return None
    looked = number_format.format_count(len(seen), "session")
    return f"Not held: {looked} had been looked at before the study was as it is: {'; '.join(seen)}."


def still(study: str, told: str, measured: str, file: Path) -> str:
    """Return what a recorded session says of pre-registration, unless something was looked at before it that
    had other promises than its study file."""
    if not told.startswith(HELD) or study_variants.origin(study):
        return told
    own = file.read_text(encoding="utf-8")
    return looked_at(study, own, moment(measured), recorded(study)) or told


def _followed(study: str) -> tuple[str, list[Revision], tuple[str, ...]]:
    """Return the file that promises for a study, its commits, newest first, and the keys that promise."""
    name, revisions = paths.study(study).shown, _revisions(study)
    if not revisions and (whole := study_variants.origin(study)):
        # A study at a size is what the study says under `sizes`.
        return paths.study(whole).shown, _revisions(whole), (*PROMISED, study_variants.SECTION)
    return name, revisions, PROMISED


def _seen(
    own: str, revisions: Sequence[Revision], looks: Sequence[Look], promised: Sequence[str]
) -> Iterator[str]:
    """Looks at sessions whose promises were others than those of now."""
    now = keys_of(own)
    for look in sorted(looks, key=lambda one: one.moment):
        stood = next((one for one in revisions if one.moment <= look.moment), None)
        why = f" (not recorded: {look.not_recorded})" if look.not_recorded else ""
        then = None if stood is None else keys_of(git.says("show", f"{stood.commit}:{stood.name}"))
        if then is None or now is None:
            yield f"{_moment(look.moment)}, of a design that git does not have{why}"
        elif broken := changed(then, now, promised):
            yield f"{_moment(look.moment)}, with other {number_format.join_words(broken)}{why}"


def _compared(
    name: str, own: str, registered: Revision, first: datetime.datetime, promised: Sequence[str]
) -> str:
    then, now = keys_of(git.says("show", f"{registered.commit}:{registered.name}")), keys_of(own)
    if then is None or now is None:
        return f"Not known: {name} can't be read as it was before the first run."
    commit = f"commit {registered.commit[:10]} of {_moment(registered.moment)}"
    if broken := changed(then, now, promised):
        return (
            f"Not held: {number_format.join_words(broken)} of the study changed after the {commit}, "
            f"the last one "
            f"before the first run on {_moment(first)}."
        )
    others = changed(then, now, sorted({*then, *now} - set(promised)))
    since = f" Since then only {number_format.join_words(others)} changed." if others else ""
    stand = f"{HELD}{number_format.join_words(promised)} stand as in {commit}"
    return f"{stand}, before the first run on {_moment(first)}.{since}"


def changed(then: Mapping[str, Any], now: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    """Name the keys whose values differ; the first arm is the baseline, so order counts. What an arm is
    called promises nothing."""
    return [key for key in keys if repr(_promise(then, key)) != repr(_promise(now, key))]


def _promise(study: Mapping[str, Any], key: str) -> Any:
    value = study.get(key)
    if key == "lengths":
        plan = study.get("plan")
        value = {one: plan[one] for one in LENGTHS if one in plan} if isinstance(plan, Mapping) else None
    elif key == "arms":
        value = without_presentation(value)
    elif key == study_variants.SECTION and isinstance(value, Mapping):
        value = {
            size: {own: _promise(patch, own) if own == "arms" else one for own, one in patch.items()}
            if isinstance(patch, Mapping)
            else patch
            for size, patch in value.items()
        }
    return value or None


def _revisions(study: str) -> list[Revision]:
    """Return the commits that touched a study's file, newest first, in whatever folder it lay.

    A name stands for one study. Whether git takes a moved file for the same one depends on how much else is
    like it, and the studies are like each other.
    """
    shown = ("--format=%x00%H %cI", "-c", "--name-status", "--no-renames")
    listed = (
        git.says("-c", "core.quotePath=false", "log", *shown, "--", f":(glob)studies/**/{study}.yaml") or ""
    )
    found: list[Revision] = []
    for one in listed.split("\0")[1:]:
        first, *touched = filter(None, one.splitlines())
        commit, date = first.split(" ", 1)
        there = [line.split("\t", 1)[1] for line in touched if not line.startswith("D")]
        if there:
            found.append(Revision(commit, datetime.datetime.fromisoformat(date), there[0]))
    return found


def keys_of(text: str | None) -> Mapping[str, Any] | None:
    """Return what a YAML text, such as one that git had, holds by key; None where it can't be read so."""
    try:
        found = YAML(typ="safe").load(text or "")
    except YAMLError:
        return None
    return found if isinstance(found, dict) else None


def _moment(when: datetime.datetime) -> str:
    return f"{when.astimezone(datetime.UTC):%Y-%m-%d %H:%M} UTC"
