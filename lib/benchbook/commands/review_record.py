"""Changes in the measured record since a commit: sessions, and joint results then and now."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from benchbook.compare.meta import meta_analysis, recorded_sessions
from benchbook.compare.text.labels import name_place
from benchbook.compare.text.results_table import describe_effect
from benchbook.core.artifacts import record
from benchbook.core.artifacts.meta_analysis import PooledEffect
from benchbook.core.util import git, number_format, numeric_equality, paths
from benchbook.core.util.errors import BenchbookError
from benchbook.core.util.plural import count
from benchbook.show.table import Table, build_table

Sessions = Mapping[str, record.Entry]


def compare_record(commit: str) -> Iterator[Table]:
    """Table of sessions that came, went or were made again, then a table for each study of theirs."""
    listed = git.run_git("ls-tree", "-r", "--name-only", commit, "--", "data/record") or ""
    in_git = [Path(name) for name in listed.splitlines() if name.endswith(f"/{record.INDEX}")]
    then = {file.parent.name: _sessions_at(commit, file) for file in in_git}
    now: dict[str, Sessions] = {name: study.sessions for name, study in record.read_index().studies.items()}
    names = [*numeric_equality.diff_mappings(then, now)]
    rows = [row for name in names for row in _list_moved(name, then.get(name, {}), now.get(name, {}))]
    yield build_table("sessions-changed", rows, "record")
    for name in names:
        yield _compare_pooled(name, commit, then.get(name, {}), now.get(name, {}))


def _sessions_at(commit: str, file: Path) -> Sessions:
    """Sessions of an index as a commit has it; none where it is of an older form."""
    try:
        content = json.loads(git.run_git("show", f"{commit}:{file}") or "")
        return record.Recorded.parse(content, file).sessions
    except (BenchbookError, ValueError):
        return {}


def _list_moved(name: str, then: Sessions, now: Sessions) -> Iterator[list[object]]:
    for session, (old, new) in numeric_equality.diff_mappings(then, now).items():
        words = "added" if old is None else "gone" if new is None else "made again"
        if old and new and old.superseded != new.superseded:
            words = "superseded" if new.superseded else "no longer superseded"
        machine = (new or old).machine
        yield [name, session, words, f"{machine.cores:g} cores of {machine.processor}"]


def _compare_pooled(name: str, commit: str, then: Sessions, now: Sessions) -> Table:
    """Lay joint results side by side: then, now for the same sessions, now for all of them."""

    def read_then(session: str) -> str | None:
        return git.run_git("show", f"{commit}:data/record/{name}/{session}.json")

    def read_now(session: str) -> str | None:
        file = paths.recorded_paths(name, session).results
        return file.read_text(encoding="utf-8") if file.is_file() else None

    same = {session: now[session] for session in then if session in now}
    old = _pool_effects(name, then, read_then)
    again, new = (_pool_effects(name, sessions, read_now) for sessions in (same, now))
    rows = [(of, [effects.get(of) for effects in (old, again, new)]) for of in dict.fromkeys([*new, *old])]
    many = [count(len(values), "session") for values in (then, now)]
    inputs = {"study": name, "describe_effect": describe_effect, "many": many, "change": _describe_change}
    return build_table("record-then-and-now", rows, f"record-{name}", **inputs)


def _pool_effects(
    name: str, sessions: Sessions, read: Callable[[str], str | None]
) -> dict[str, PooledEffect]:
    """Joint effects of sessions by their places; none if there is nothing that can be pooled."""
    brought = []
    for session, entry in sessions.items():
        try:
            results = record.parse_results(read(session) or "", Path(f"{session}.json"), ("causes",))
        except BenchbookError:
            continue  # It is not there, damaged, or of an older form.
        brought.append(recorded_sessions.build_recorded(session, entry, results))
    try:
        contrasts = meta_analysis.pool_sessions(name, brought).contrasts
    except ValueError:
        return {}
    return {name_place(contrast, part): part for contrast in contrasts for part in contrast.shown}


def _describe_change(old: PooledEffect | None, again: PooledEffect | None, new: PooledEffect | None) -> str:
    """Text on a change, and if sessions or the code made it."""
    if old is None or new is None:
        return "new" if old is None else "gone"
    words = [f"{old.standing} → {new.standing}"] if old.standing != new.standing else []
    if old.effect is not None and new.effect is not None and old.effect != new.effect:
        points = number_format.format_percent(new.effect - old.effect)
        words.append(f"by {points.replace(' %', '')} points")
    causes = _list_causes(old, again, new)
    return f"{', '.join(words) or 'numbers moved'} ({' and '.join(causes)})" if causes else "the same"


def _list_causes(old: PooledEffect, again: PooledEffect | None, new: PooledEffect) -> list[str]:
    """What changed an effect: code, from what it was to the same sessions made again; then more sessions."""
    if again is None:
        return ["sessions"]
    steps = pairwise((effect.label, effect.effect) for effect in (old, again, new))
    return [cause for cause, (was, now) in zip(("code", "sessions"), steps, strict=True) if was != now]
