"""Changes in the measured record since a commit: sessions, and joint results then and now."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchbook.compare.meta import meta_analysis
from benchbook.core.artifacts import record
from benchbook.core.artifacts.meta_analysis import MetaAnalysis, PooledEffect
from benchbook.core.util import git, number_format, numeric_equality, paths
from benchbook.core.util.errors import BenchbookError
from benchbook.core.util.plural import count
from benchbook.show.forest import name_place
from benchbook.show.table import Table, build_table

# As the index has them, without its model: an older commit's index may hold other keys.
Sessions = Mapping[str, Mapping[str, Any]]


def compare_record(commit: str) -> Iterator[Table]:
    """Table of sessions that came, went or were made again, then a table for each study of theirs."""
    listed = git.run_git("ls-tree", "-r", "--name-only", commit, "--", "data/record") or ""
    in_git = [name for name in listed.splitlines() if name.endswith(f"/{record.INDEX}")]
    then = {
        Path(name).parent.name: _parse_sessions(git.run_git("show", f"{commit}:{name}")) for name in in_git
    }
    here = sorted(paths.record_folder().glob(f"[!.]*/{record.INDEX}"))
    now = {file.parent.name: _parse_sessions(file.read_text(encoding="utf-8")) for file in here}
    names = [*numeric_equality.diff_mappings(then, now)]
    rows = [row for name in names for row in _list_moved(name, then.get(name, {}), now.get(name, {}))]
    yield build_table("sessions-changed", rows, "record")
    for name in names:
        yield _compare_pooled(name, commit, then.get(name, {}), now.get(name, {}))


def pool_recorded(name: str, design: str) -> MetaAnalysis | None:
    """Joint results of a study's recorded sessions, those of a design, by their results."""
    sessions = _parse_sessions(paths.record_folder().joinpath(name, record.INDEX).read_text(encoding="utf-8"))
    return _pool_results(
        name, {text: entry for text, entry in sessions.items() if entry["design"] == design}, _read_local
    )


def _parse_sessions(text: str | None) -> Sessions:
    return (json.loads(text) if text else {}).get("sessions") or {}


def _list_moved(name: str, then: Sessions, now: Sessions) -> Iterator[list[object]]:
    for session, (old, new) in numeric_equality.diff_mappings(then, now).items():
        words = "added" if old is None else "gone" if new is None else "made again"
        if old and new and old.get("superseded") != new.get("superseded"):
            words = "superseded" if new.get("superseded") else "no longer superseded"
        machine = (new or old or {}).get("machine") or {}
        yield [name, session, words, f"{machine.get('cores', '?')} cores of {machine.get('processor', '?')}"]


def _compare_pooled(name: str, commit: str, then: Sessions, now: Sessions) -> Table:
    """Lay joint results side by side: then, now for the same sessions, now for all of them."""
    before = _pool_results(name, then, _reader_at(commit))
    same = _pool_results(name, {text: now[text] for text in then if text in now}, _read_local)
    after = _pool_results(name, now, _read_local)
    old, again, new = (
        {
            name_place(pooled_contrast, part): part
            for pooled_contrast in (recorded.contrasts if recorded else ())
            for part in pooled_contrast.told
        }
        for recorded in (before, same, after)
    )
    rows = [
        (of, [pooled_effects.get(of) for pooled_effects in (old, again, new)])
        for of in dict.fromkeys([*new, *old])
    ]
    inputs = {"study": name, "many": [count(len(values), "session") for values in (then, now)]}
    return build_table("record-then-and-now", rows, f"record-{name}", change=_describe_change, **inputs)


def _reader_at(commit: str) -> Callable[[str, str], str | None]:
    return lambda name, session: git.run_git("show", f"{commit}:data/record/{name}/{session}.json")


def _read_local(name: str, session: str) -> str | None:
    file = paths.recorded_paths(name, session).results
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _pool_results(
    name: str, sessions: Sessions, find: Callable[[str, str], str | None]
) -> MetaAnalysis | None:
    """Pool results; None if they hold nothing that can be pooled."""
    brought = []
    for session, entry in sessions.items():
        if not {"measured", "design"} <= set(entry):
            continue
        try:
            data = json.loads(find(name, session) or "")
            results = record.Results.parse(data, paths.recorded_paths(name, session).results)
            superseded = record.Superseded(**why) if (why := entry.get("superseded")) else None
        except (BenchbookError, ValueError):
            continue  # It is not there, damaged, or of an older form.
        of = session, entry["measured"], entry["design"], results.findings, results.facts.arms
        brought.append(meta_analysis.build_session(*of, superseded))
    try:
        return meta_analysis.pool_sessions(name, brought)
    except (ValueError, KeyError):
        return None


def _describe_change(old: PooledEffect | None, again: PooledEffect | None, new: PooledEffect | None) -> str:
    """Text on a change, and if sessions or the code made it."""
    if old is None or new is None:
        return "new" if old is None else "gone"
    words = [f"{old.standing} → {new.standing}"] if old.standing != new.standing else []
    if old.effect is not None and new.effect is not None and old.effect != new.effect:
        points = number_format.format_percent(new.effect - old.effect)
        words.append(f"by {points.replace(' %', '')} points")
    by_code = again is not None and (again.label, again.effect) != (old.label, old.effect)
    by_sessions = again is None or (again.label, again.effect) != (new.label, new.effect)
    causes = [cause for cause, is_so in (("code", by_code), ("sessions", by_sessions)) if is_so]
    return f"{', '.join(words) or 'numbers moved'} ({' and '.join(causes)})" if causes else "the same"
