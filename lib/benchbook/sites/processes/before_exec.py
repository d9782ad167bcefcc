"""A child's start: where its output goes, where it may run, and that it dies with its owner.

The kernel sends the child SIGKILL when the thread that started it ends (prctl(2), PR_SET_PDEATHSIG). A change
of user clears the request, so rights are dropped first; namespaces, groups and limits need those rights, so
they come before that.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True)
class Where:
    """Where a process runs: cores (None: all), control groups, network namespace, open files allowed."""

    cpus: tuple[int, ...] | None = None
    groups: tuple[Path, ...] = ()
    namespace: Path | None = None
    nofile: int | None = None


ANYWHERE = Where()


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process; OSError where the kernel refuses, SiteError where there is none."""
    if _libc is None:
        raise SiteError(
            "processes can be supervised on Linux only; run Benchbook on a Linux machine or in a virtual one"
        )
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def popen(
    argv: Sequence[str], out: Path, err: Path | None, append: bool, **how: Any
) -> subprocess.Popen[bytes]:
    """Start a program that reads nothing; its output goes into `out` and `err`, `how` is for Popen."""
    mode = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_TRUNC) | os.O_CLOEXEC
    fds = [os.open(path, mode, 0o600) for path in (out, err) if path is not None]
    try:
        return subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=fds[0], stderr=fds[-1], close_fds=True, **how
        )
    finally:
        for fd in fds:
            os.close(fd)


def dies_with(
    parent: int, user: pwd.struct_passwd | None = None, where: Where = ANYWHERE
) -> Callable[[], None]:
    """Return what a child does before its program starts: place, rights, then the kernel's promise."""

    def prepare() -> None:
        for group in where.groups:
            with open(group / "cgroup.procs", "w") as file:
                file.write(str(os.getpid()))
        if where.cpus is not None:
            os.sched_setaffinity(0, where.cpus)
        if where.namespace is not None:
            _enter(where.namespace)
        if where.nofile is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (where.nofile, where.nofile))
        if user is not None:
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # The owner may have ended before the request stood: then nothing would ever end this child.
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    return prepare


def _enter(namespace: Path) -> None:
    fd = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc is None or _libc.setns(fd, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns", str(namespace))
    finally:
        os.close(fd)
