"""What is dear to make and none changes is made once a session, by whichever process of it asks first."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder of a name that `make` has filled; who asks meanwhile waits. None may change it."""
    base = factory.getbasetemp()
    # Each process of a session has a folder of its own in the session's.
    session = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = session / f"once-{name}", session / f"once-{name}.done"
    with (session / f"once-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder.mkdir()
            make(folder)
            done.touch()
    return folder
