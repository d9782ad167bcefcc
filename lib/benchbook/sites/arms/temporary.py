"""Folders of labs that nothing is kept of, such as a gate's: where they lie, and whose they are.

Each lies in `.tmp` among the labs of its clone, and its name ends with the id and the start of the
process that made it. Once that process has gone, `clean` finds there what it left.
"""

from __future__ import annotations

import os
import re
from itertools import count
from pathlib import Path

from benchbook.sites.processes import process

# Short, since the paths of sockets below it may have 107 bytes.
FOLDER = ".tmp"
_NAME = re.compile(r".*?(\d+)-(\d+)-\d+")
_numbers = count(1)


def make(root: Path, prefix: str) -> Path:
    """Make a folder for a lab of this process among the labs of a clone; a server's own user may enter it."""
    me = process.known("owner", os.getpid(), "")
    folder = root / FOLDER / f"{prefix}{me.pid}-{me.started}-{next(_numbers)}"
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    folder.mkdir()
    folder.chmod(0o711)
    return folder


def folders(root: Path) -> list[Path]:
    """Return the folders that lie among the labs of a clone."""
    there = sorted((root / FOLDER).glob("*"))
    return [one for one in there if _NAME.fullmatch(one.name) and one.is_dir()]


def owner(folder: Path) -> process.Child:
    """Return the process that made a folder, alive or gone."""
    pid, started = map(int, _NAME.fullmatch(folder.name).groups())  # type: ignore[union-attr]
    return process.Child("owner", pid, started, "", "")


def is_abandoned(folder: Path) -> bool:
    """Say whether the process that made a folder has gone."""
    return not owner(folder).is_alive
