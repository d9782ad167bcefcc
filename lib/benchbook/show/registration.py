"""Check that question, arms, levels and lengths stood in git before any result was looked at.

The band of a claim follows from the claim, so a claim that is named before the first run has its band
fixed as well (Nosek et al. 2018, The preregistration revolution). Dates are those that git has: they show
good order among honest people and prove nothing against others.
"""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from benchbook.compare.meta.random_effects import parse_time
from benchbook.core.artifacts import record
from benchbook.core.study import study_variants
from benchbook.core.study.study_arm import without_presentation
from benchbook.core.util import git, number_format, paths
from benchbook.show.caveats_section import CaveatPoint

NAME = "Pre-registration"
HELD = "Held: "
BROKEN = "of the study changed after"
"""Words of what weakens any study: a promise changed when its first results were there."""
NO_RUN = "There is no run yet that anything could be older than."
# Beside a recorded study: what git's dates showed when it was recorded.
RECORDED = "registered.txt"
PROMISED = ("question", "arms", "workloads", "threads", "claims", "lengths")
LENGTHS = ("order", "turn_ms", "discard_s", "run_s")
"""Keys of `plan` that are promised, as `lengths`; more blocks and another seed break nothing."""


@dataclass(frozen=True)
class Revision:
    """The study file of one commit, and its place at that time."""

    commit: str
    moment: datetime.datetime
    name: str


@dataclass(frozen=True)
class EarlierSession:
    """An earlier session of a study with an inspected result: its start, and its outcome."""

    moment: datetime.datetime
    not_recorded: str = ""


def check_registration(study: str, runs: pd.DataFrame) -> CaveatPoint:
    """Caveat on a study file's promises: older than the first of `runs` and unchanged since, or not."""
    kept = paths.find_root() / RECORDED
    is_kept, file = kept.is_file(), paths.study_paths(study).file
    message = kept.read_text(encoding="utf-8").strip() if is_kept else _describe_registration(study, runs)
    # What only explores promises nothing beforehand.
    promises = keys_of(file.read_text(encoding="utf-8")) if file.is_file() else None
    is_open, judges = not message.startswith((HELD, NO_RUN)), bool(promises and promises.get("claims"))
    return CaveatPoint(NAME, message, is_open and (BROKEN in message or judges))


def _describe_registration(study: str, runs: pd.DataFrame) -> str:
    if runs.empty:
        return NO_RUN
    first = datetime.datetime.fromisoformat(min(runs.started_utc))
    name, revisions, promised = _promising_file(study)
    if not revisions:
        return (
            f"Not known: {name} is not in git here, so nothing says whether the question, the arms and the "
            "claims are older than the first run."
        )
    before = [revision for revision in revisions if revision.moment <= first]
    if not before:
        if git.run_git("rev-parse", "--is-shallow-repository") == "true\n":
            return "Not known: this clone does not have the history before the first run."
        oldest, began = _format_moment(revisions[-1].moment), _format_moment(first)
        return f"Not held: {name} was first committed on {oldest}, after the first run on {began}."
    content = (paths.find_root() / name).read_text(encoding="utf-8")
    registration = _compare_promises(name, content, before[0], first, promised)
    if not registration.startswith(HELD):
        return registration
    return looked_at(study, content, first, read_sessions(study)) or registration


def read_sessions(study: str) -> list[EarlierSession]:
    """Sessions of a study that the record knows of, those that are not recorded too."""
    recorded = record.read_index().studies.get(study)
    if recorded is None:
        return []
    looks = [EarlierSession(parse_time(session.measured)) for session in recorded.sessions.values()]
    return looks + [EarlierSession(parse_time(each.begun), each.why) for each in recorded.not_recorded]


def looked_at(
    study: str, content: str, first: datetime.datetime, looks: Sequence[EarlierSession]
) -> str | None:
    """Sentence on sessions before `first` with other promises than `content`, the study file; else None."""
    _, revisions, promised = _promising_file(study)
    earlier = [look for look in looks if look.moment < first]
    changed = list(_find_changed(content, revisions, earlier, promised))
    many = number_format.format_count(len(changed), "session")
    before = f"{many} had been measured before the study had its present form"
    return f"Not held: {before}: {'; '.join(changed)}." if changed else None


def confirm_registration(study: str, message: str, measured: str, file: Path) -> str:
    """Registration sentence of a recorded session, unless one before it had other promises."""
    if not message.startswith(HELD) or study_variants.find_origin(study):
        return message
    content = file.read_text(encoding="utf-8")
    return looked_at(study, content, parse_time(measured), read_sessions(study)) or message


def _promising_file(study: str) -> tuple[str, list[Revision], tuple[str, ...]]:
    """File that promises for a study, its commits, newest first, and the keys that promise."""
    name, revisions = paths.study_paths(study).shown, _list_revisions(study)
    if not revisions and (whole := study_variants.find_origin(study)):
        # A study at a size is what the study says under `sizes`.
        return paths.study_paths(whole).shown, _list_revisions(whole), (*PROMISED, study_variants.SECTION)
    return name, revisions, PROMISED


def _find_changed(
    content: str, revisions: Sequence[Revision], looks: Sequence[EarlierSession], promised: Sequence[str]
) -> Iterator[str]:
    """Sessions seen earlier with promises other than those of now, each with its outcome."""
    now = keys_of(content)
    for look in sorted(looks, key=lambda item: item.moment):
        stood = next((revision for revision in revisions if revision.moment <= look.moment), None)
        why = f" (not recorded: {look.not_recorded})" if look.not_recorded else ""
        then = None if stood is None else keys_of(git.run_git("show", f"{stood.commit}:{stood.name}"))
        if then is None or now is None:
            yield f"{_format_moment(look.moment)}, of a design that git does not have{why}"
        elif broken := changed_keys(then, now, promised):
            yield f"{_format_moment(look.moment)}, with other {number_format.join_words(broken)}{why}"


def _compare_promises(
    name: str, content: str, registered: Revision, first: datetime.datetime, promised: Sequence[str]
) -> str:
    then, now = keys_of(git.run_git("show", f"{registered.commit}:{registered.name}")), keys_of(content)
    if then is None or now is None:
        return f"Not known: {name} can't be read as it was before the first run."
    commit = f"commit {registered.commit[:10]} of {_format_moment(registered.moment)}"
    if broken := changed_keys(then, now, promised):
        return (
            f"Not held: {number_format.join_words(broken)} {BROKEN} the {commit}, "
            f"the last one before the first run on {_format_moment(first)}."
        )
    others = changed_keys(then, now, sorted({*then, *now} - set(promised)))
    since = f" Since then only {number_format.join_words(others)} changed." if others else ""
    stand = f"{HELD}{number_format.join_words(promised)} stand as in {commit}"
    return f"{stand}, before the first run on {_format_moment(first)}.{since}"


def changed_keys(then: Mapping[str, Any], now: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    """Keys with different values: arms in their order, as the first is the baseline, without their names."""
    return [key for key in keys if repr(_read_promise(then, key)) != repr(_read_promise(now, key))]


def _read_promise(study: Mapping[str, Any], key: str) -> Any:
    value = study.get(key)
    if key == "lengths":
        plan = study.get("plan")
        value = {text: plan[text] for text in LENGTHS if text in plan} if isinstance(plan, Mapping) else None
    elif key == "arms":
        value = without_presentation(value)
    elif key == study_variants.SECTION and isinstance(value, Mapping):
        value = {size: _without_presentation(patch) for size, patch in value.items()}
    return value or None


def _without_presentation(patch: Any) -> Any:
    """What a size changes of a study, without the presentation of its arms."""
    if not isinstance(patch, Mapping) or "arms" not in patch:
        return patch
    return {**patch, "arms": without_presentation(patch["arms"]) or None}


def _list_revisions(study: str) -> list[Revision]:
    """Commits that touched a study's file, newest first, in any folder: its name stands for one study."""
    # Whether git takes a moved file for the same one depends on how alike others are, as studies are.
    shown = ("--format=%x00%H %cI", "-c", "--name-status", "--no-renames")
    place = f":(glob)studies/**/{study}.yaml"
    listed = git.run_git("-c", "core.quotePath=false", "log", *shown, "--", place) or ""
    revisions: list[Revision] = []
    for text in listed.split("\0")[1:]:
        first, *touched = filter(None, text.splitlines())
        commit, date = first.split(" ", 1)
        there = [line.split("\t", 1)[1] for line in touched if not line.startswith("D")]
        if there:
            revisions.append(Revision(commit, datetime.datetime.fromisoformat(date), there[0]))
    return revisions


def keys_of(text: str | None) -> Mapping[str, Any] | None:
    """Content of a YAML text, such as one from git, by key; None if it can't be read so."""
    try:
        result = YAML(typ="safe").load(text or "")
    except YAMLError:
        return None
    return result if isinstance(result, dict) else None


def _format_moment(when: datetime.datetime) -> str:
    return f"{when.astimezone(datetime.UTC):%Y-%m-%d %H:%M} UTC"
