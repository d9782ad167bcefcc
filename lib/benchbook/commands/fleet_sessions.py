"""Sessions that a fleet brings home: archives until they are recorded, and vain attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchbook.commands import record as recording
from benchbook.core.artifacts import record
from benchbook.core.util import paths
from benchbook.core.util.errors import BenchbookError
from benchbook.core.util.plural import count


@dataclass
class FetchedSessions:
    """Archives of hosts for the record, sessions that are not whole, and the number already recorded."""

    archives: list[Path] = field(default_factory=list)
    lost: list[tuple[str, record.NotRecorded]] = field(default_factory=list)
    recorded: int = 0


def make_arrivals(token: str) -> Path:
    """Folder for a fleet's archives from their arrival until they are recorded; refused ones stay there."""
    folder = paths.find_root() / "data" / "fleet" / token
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def describe_occasions(sessions: int, models: Sequence[str], what: str) -> str:
    """Line on the occasions that sessions on machines of these models make, before anything is spent."""
    kinds, away = {*models} - {""}, models.count("")
    least = min(sessions, max(1, len(kinds)))
    lines = f"{count(sessions, 'session')}, {count(len(kinds), what)}: {count(least, 'occasion')}"
    if least < sessions:
        lines += "; equal machines in the same hours count once"
    return lines + (f" ({count(away, 'machine')} not reached)" if away else "")


def take_brought(brought: FetchedSessions, studies: Sequence[str]) -> int:
    """Record the fetched archives, and count vain attempts; return how many of `studies` are recorded now."""
    taken = brought.recorded
    for file, outcome in recording.take_archives(brought.archives).items():
        if isinstance(outcome, BenchbookError):
            print("\n".join(recording.list_errors(outcome)))
            if not isinstance(outcome, recording.Doubled):
                continue
            # The record has it: it was recorded before its fleet went on.
            taken += 1
        else:
            print(outcome)
            taken += any(outcome.startswith(f"data/record/{study}/") for study in studies)
        file.unlink()
    for study, missed in brought.lost:
        print(count_lost(study, missed))
    return taken


def count_lost(study: str, missed: record.NotRecorded) -> str:
    """Count a session that was begun elsewhere among the `not_recorded` of its study; a line on it."""
    recorded = record.read_index().studies.get(study)
    if recorded is None:
        return f"{study}: the session of {missed.begun} is lost, and the record has none to count it beside"
    if missed.begun not in {other.begun for other in recorded.not_recorded}:
        listed = tuple(sorted((*recorded.not_recorded, missed), key=lambda other: other.begun))
        record.write_study(study, recorded.model_copy(update={"not_recorded": listed}))
    return f"{study}: the session of {missed.begun} is counted as not recorded: {missed.why}"
