"""Runs that a machine busy with other tests left too little time: void, and made again, as the walk does."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from benchbook.core.runfolder import RunFolder

# Servers and clients of two tests at once leave a client no time for a second, or fewer turns.
STARVED = re.compile(r"no transaction in the interval|\d+ turns were taken, \d+ asked$")
# Where a group is made once, without a walk that repeats it.
ONCE = re.compile(
    rf"{STARVED.pattern}|the arms ran for different times|the client stood still in \d+ of its \d+ turns"
    r"|the process lasted [0-9.]+ s longer than sysbench says"
)
TRIES = 4


def is_starved(reasons: Sequence[str], by: re.Pattern[str] = STARVED) -> bool:
    """Say whether a run was voided for want of time alone."""
    return bool(reasons) and all(map(by.search, reasons))


def once_more(
    make: Callable[[Path], Sequence[RunFolder]], reasons: Callable[[RunFolder], Sequence[str]], base: Path
) -> Sequence[RunFolder]:
    """Make a group in a folder of its own until it had its time, as the walk does, four times at most."""
    for attempt in range(TRIES):
        (into := base / str(attempt)).mkdir()
        folders = make(into)
        if not any(is_starved(reasons(folder), ONCE) for folder in folders):
            break
    return folders
