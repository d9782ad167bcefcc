"""Runs that a machine busy with other tests left too little time: void, and made again, as the walk does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchbook.core.runfolder import RunFolder

# Servers and clients of two tests at once leave too little time for a second, a turn or an end.
STARVED = re.compile(
    r"no transaction in the interval|\d+ turns were taken, \d+ asked$|a turn lasted \d+ ms"
    r"|the arms ran for different times|the client stood still in \d+ of its \d+ turns"
    r"|the process lasted [0-9.]+ s longer than sysbench says"
)
TRIES = 4


def is_starved(reasons: Iterable[str]) -> bool:
    """Say whether a run was voided for want of time alone."""
    told = list(reasons)
    return bool(told) and all(map(STARVED.search, told))


def once_more(
    make: Callable[[Path], Sequence[RunFolder]], reasons: Callable[[RunFolder], Sequence[str]], base: Path
) -> Sequence[RunFolder]:
    """Make a group in a folder of its own until it had its time, as the walk does, four times at most."""
    for attempt in range(TRIES):
        (into := base / str(attempt)).mkdir()
        folders = make(into)
        if not any(is_starved(reasons(folder)) for folder in folders):
            break
    return folders
