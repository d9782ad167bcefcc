"""What git says of this clone."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchbook.core.util import paths

WAIT_S = 60


def says(*argv: str, root: Path | None = None) -> str | None:
    """Return what a command of git prints in the clone; None where it fails or does not answer."""
    command = ["git", "-C", str(root or paths.root()), *argv]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=WAIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def commit(word: str, root: Path) -> str | None:
    """Return the commit that a word names in a clone; None where git knows none."""
    said = says("rev-parse", "--verify", "--quiet", f"{word}^{{commit}}", root=root)
    return said.strip() if said else None
