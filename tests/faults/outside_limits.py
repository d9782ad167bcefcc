"""Limits as others set them on control groups: a slice, a container's limit, a rule of cgrules."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchbook.sites.machine import facts
from tests import rooms

ROOT = Path("/sys/fs/cgroup")
# By kind the controller and the files of version 1, and those of version 2.
CORE = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
KINDS = {
    "quota": ("cpu", {"cpu.cfs_quota_us": "50000"}, {"cpu.max": "50000 100000"}),
    "small quota": ("cpu", {"cpu.cfs_quota_us": "5000"}, {"cpu.max": "5000 100000"}),
    "weight": ("cpu", {"cpu.shares": "2"}, {"cpu.weight": "1"}),
    "memory": ("memory", {"memory.limit_in_bytes": "800M"}, {"memory.max": "800M"}),
    "cores": ("cpuset", {"cpuset.mems": "0", "cpuset.cpus": str(CORE)}, {"cpuset.cpus": str(CORE)}),
}


def group(kind: str) -> Path:
    """Make a limited group and return its folder; skip where this machine has none to give."""
    controller, of_1, of_2 = KINDS[kind]
    is_new = facts.cgroup_version() == 2
    above = ROOT if is_new else ROOT / controller
    folder = above / f"bb-fault-{rooms.number():02d}-{kind.replace(' ', '-')}"
    try:
        if is_new:
            with contextlib.suppress(OSError):
                (above / "cgroup.subtree_control").write_text(f"+{controller}")
        folder.mkdir(exist_ok=True)
        for name, value in (of_2 if is_new else of_1).items():
            (folder / name).write_text(value)
    except OSError as error:
        with contextlib.suppress(OSError):
            folder.rmdir()
        pytest.skip(f"no limit of {kind} can be set here: {error}")
    return folder


def remove(folder: Path) -> None:
    """Let all out of a group, and remove it."""
    deadline = time.monotonic() + 5
    while folder.exists() and time.monotonic() < deadline:
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (folder.parent / "cgroup.procs").write_text(pid)
        with contextlib.suppress(OSError):
            folder.rmdir()
        time.sleep(0.02)


@contextlib.contextmanager
def on(pid: int, kind: str) -> Iterator[str]:
    """Limit a process while the block runs; yields the group's path."""
    folder = group(kind)
    try:
        (folder / "cgroup.procs").write_text(str(pid))
        yield f"/{folder.name}"
    finally:
        remove(folder)
