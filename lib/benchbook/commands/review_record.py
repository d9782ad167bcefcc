"""What changed in the measured record since a commit: sessions, and what they say together then and now."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchbook.compare.meta import meta_analysis
from benchbook.core.artifacts import record
from benchbook.core.artifacts.findings import Findings
from benchbook.core.artifacts.meta_analysis import Pooled, PooledEffect
from benchbook.core.util import git, numeric_equality, paths
from benchbook.core.util.errors import BenchbookError
from benchbook.core.util.plural import count
from benchbook.evidence import archive
from benchbook.show import numbers
from benchbook.show.forest import place
from benchbook.show.registration import keys_of
from benchbook.show.table import Table, tabulated

# As the index has them, without its model: an older commit's index may hold other keys.
Sessions = Mapping[str, Mapping[str, Any]]


def changed(commit: str) -> Iterator[Table]:
    """Yield the sessions that came, went or were made again, then a table for each study they belong to."""
    index = f"data/record/{record.INDEX}"
    file = paths.root() / index
    then = _sessions(git.says("show", f"{commit}:{index}"))
    now = _sessions(file.read_text(encoding="utf-8") if file.is_file() else None)
    names = [*numeric_equality.unlike(then, now)]
    rows = [row for name in names for row in _moved(name, then.get(name, {}), now.get(name, {}))]
    yield tabulated("sessions-changed", rows, "record")
    for name in names:
        yield _together(name, commit, then.get(name, {}), now.get(name, {}))


def recorded(name: str, design: str) -> Pooled | None:
    """Return what the recorded sessions of a study say together, those of a design, by their archives."""
    file = paths.root() / "data" / "record" / record.INDEX
    known = _sessions(file.read_text(encoding="utf-8")).get(name, {})
    return _pooled(name, {one: entry for one, entry in known.items() if entry["design"] == design}, _here)


def _sessions(text: str | None) -> dict[str, Sessions]:
    index = keys_of(text) or {}
    return {name: study.get("sessions") or {} for name, study in (index.get("studies") or {}).items()}


def _moved(name: str, then: Sessions, now: Sessions) -> Iterator[list[object]]:
    for session, (old, new) in numeric_equality.unlike(then, now).items():
        words = "added" if old is None else "gone" if new is None else "made again"
        if old and new and old.get("superseded") != new.get("superseded"):
            words = "superseded" if new.get("superseded") else "no longer superseded"
        machine = (new or old or {}).get("machine") or {}
        yield [name, session, words, f"{machine.get('cores', '?')} cores of {machine.get('processor', '?')}"]


def _together(name: str, commit: str, then: Sessions, now: Sessions) -> Table:
    """Put side by side what the sessions of a study said together, say now, and say with those that came."""
    with tempfile.TemporaryDirectory() as folder:
        before = _pooled(name, then, _at(commit, Path(folder)))
        same = _pooled(name, {one: now[one] for one in then if one in now}, _here)
        after = _pooled(name, now, _here)
    old, again, new = (
        {place(one, part): part for one in (found.contrasts if found else ()) for part in one.told}
        for found in (before, same, after)
    )
    rows = [(of, [one.get(of) for one in (old, again, new)]) for of in dict.fromkeys([*new, *old])]
    given = {"study": name, "many": [count(len(one), "session") for one in (then, now)]}
    return tabulated("record-then-and-now", rows, f"record-{name}", change=_change, **given)


def _at(commit: str, folder: Path) -> Callable[[str, str], Path]:
    def fetched(name: str, session: str) -> Path:
        asked = ["git", "-C", str(paths.root()), "show", f"{commit}:data/record/{name}/{session}.tar.xz"]
        file = folder / f"{session}.tar.xz"
        # What the commit has not, is no whole archive.
        file.write_bytes(subprocess.run(asked, capture_output=True).stdout)
        return file

    return fetched


def _here(name: str, session: str) -> Path:
    return paths.recorded(name, session).archive


def _pooled(name: str, sessions: Sessions, find: Callable[[str, str], Path]) -> Pooled | None:
    """Pool what the archives say; None where they say nothing that can be pooled."""
    brought = []
    for session, entry in sessions.items():
        if not {"measured", "design"} <= set(entry):
            continue
        file = find(name, session)
        try:
            told, facts = archive.documents(file, "findings.json", "facts.json")
            findings = Findings.parse(told, file)
            superseded = record.Superseded(**why) if (why := entry.get("superseded")) else None
        except (BenchbookError, ValueError):
            continue  # It is not there, damaged, or of an older form.
        of = session, entry["measured"], entry["design"], findings, facts["arms"]
        brought.append(meta_analysis.brought(*of, superseded))
    try:
        return meta_analysis.pool(name, brought)
    except (ValueError, KeyError):
        return None


def _change(old: PooledEffect | None, again: PooledEffect | None, new: PooledEffect | None) -> str:
    """Say what changed, and whether sessions or the code did it."""
    if old is None or new is None:
        return "new" if old is None else "gone"
    words = [f"{old.standing} → {new.standing}"] if old.standing != new.standing else []
    if old.effect is not None and new.effect is not None and old.effect != new.effect:
        points = numbers.percent(new.effect - old.effect)
        words.append(f"by {points.replace(' %', '')} points")
    by_code = again is not None and (again.label, again.effect) != (old.label, old.effect)
    by_sessions = again is None or (again.label, again.effect) != (new.label, new.effect)
    causes = [cause for cause, is_so in (("code", by_code), ("sessions", by_sessions)) if is_so]
    return f"{', '.join(words) or 'numbers moved'} ({' and '.join(causes)})" if causes else "the same"
