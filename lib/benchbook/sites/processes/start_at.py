"""Programs that begin together: each is started early and waits, for a moment of the clock or to be let go.

What waits is a few lines of Python that then become the program: same process, same number, same files. When
it began it writes down itself, so that the spread of several is what was, not what was asked.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchbook.sites.processes import process

# sys.argv: the moment, the file for the note, the program's command line.
WAIT = """
import os, sys, time
note = open(sys.argv[2], "w")
left = float(sys.argv[1]) - time.monotonic()
if left > 0:
    time.sleep(left)
note.write(repr(time.monotonic()))
note.close()
os.execvp(sys.argv[3], sys.argv[3:])
"""

# sys.argv: the file for the note, the program's command line.
HELD = """
import os, signal, sys, time
os.kill(os.getpid(), signal.SIGSTOP)
with open(sys.argv[1], "w") as note:
    note.write(repr(time.monotonic()))
os.execvp(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class Timed(process.Child):
    """A child that began, or will begin, at a moment; `note` is where it says when it did."""

    note: Path | None = None
    # This machine's own clock tells.
    ran_s: None = None

    @property
    def begun_s(self) -> float | None:
        """When its program began, on the monotonic clock, which the whole machine shares; None if not yet."""
        try:
            return float(self.note.read_text(encoding="ascii")) if self.note is not None else None
        except (OSError, ValueError):
            return None


def waiting(argv: Sequence[str], at: float, note: Path) -> list[str]:
    """Return the command line of what becomes a program at a moment, or at once if that has passed."""
    note.unlink(missing_ok=True)
    # Without the site packages it is ready in a few hundredths of a second.
    return [sys.executable, "-I", "-S", "-c", WAIT, repr(at), str(note), *argv]


def held(argv: Sequence[str], note: Path) -> list[str]:
    """Return the command line of what stands still until it is let go, and then becomes a program."""
    note.unlink(missing_ok=True)
    return [sys.executable, "-I", "-S", "-c", HELD, str(note), *argv]


def timed(child: process.Child, note: Path | None) -> Timed:
    """Return a child that knows where it says when it began."""
    return Timed(**{name: getattr(child, name) for name in process.Child.__dataclass_fields__}, note=note)
