"""Queries to git about this clone."""

import subprocess
from pathlib import Path

from benchbook.core.util import paths

WAIT_S = 60


def run_git(*argv: str, root: Path | None = None) -> str | None:
    """Output of a git command in the clone; None if it fails or does not answer."""
    command = ["git", "-C", str(root or paths.find_root()), *argv]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=WAIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def resolve_commit(word: str, root: Path) -> str | None:
    """Commit that a word names in a clone; None if git knows none."""
    commit = run_git("rev-parse", "--verify", "--quiet", f"{word}^{{commit}}", root=root)
    return commit.strip() if commit else None
