"""A child's start: its output, its placement, and its death with its owner.

The kernel sends the child SIGKILL when the thread that started it ends (prctl(2), PR_SET_PDEATHSIG). A change
of user clears the request, so rights are dropped first; namespaces, groups and limits need those rights, so
they come before that.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbook.core.util.errors import SiteError

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class ProcessPlacement:
    """Placement of a process: cores (None: all), control groups, network namespace, open files."""

    cpus: tuple[int, ...] | None = None
    groups: tuple[Path, ...] = ()
    namespace: Path | None = None
    nofile: int | None = None


ANYWHERE = ProcessPlacement()


def call_prctl(option: int, value: int) -> None:
    """Set an attribute of this process; OSError if the kernel refuses, SiteError off Linux."""
    if sys.platform != "linux":
        raise SiteError(
            "processes can be supervised on Linux only; run Benchbook on a Linux machine or in a virtual one"
        )
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


# sys.argv: whom to tell of an error, the owner, control groups, cores, namespace, open files, user and group,
# the program's command line. The module `signal` takes as long to load as all that is done here.
BECOME = """
import ctypes, os, resource, sys
from _signal import SIG_DFL, SIG_SETMASK, SIGKILL, SIGPIPE, SIGXFSZ, pthread_sigmask, signal

tell, owner, groups, cores, namespace, files, rights = sys.argv[1:8]
libc = ctypes.CDLL(None, use_errno=True)

def must(code, what):
    if code != 0:
        raise OSError(ctypes.get_errno(), "", what)

try:
    os.set_inheritable(int(tell), False)
    for group in filter(None, groups.split(os.pathsep)):
        with open(f"{group}/cgroup.procs", "w") as file:
            file.write(str(os.getpid()))
    if cores:
        os.sched_setaffinity(0, map(int, cores.split(",")))
    if namespace:
        must(libc.setns(os.open(namespace, os.O_RDONLY), 0x40000000), namespace)  # CLONE_NEWNET
    if files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(files), int(files)))
    if rights:
        user, group = map(int, rights.split(":"))
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    # Python ignores them, and a program goes on ignoring what was ignored before it.
    signal(SIGPIPE, SIG_DFL)
    signal(SIGXFSZ, SIG_DFL)
    pthread_sigmask(SIG_SETMASK, ())
    must(libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "prctl")
    # The owner may have ended before the request stood: then nothing would ever end this child.
    if os.getppid() != int(owner):
        os.kill(os.getpid(), SIGKILL)
    os.execvp(sys.argv[8], sys.argv[8:])
except OSError as error:
    os.write(int(tell), f"{error.errno} {error.filename or sys.argv[8]}".encode())
    os._exit(127)
""".replace("PR_SET_PDEATHSIG", str(PR_SET_PDEATHSIG))


def spawn_program(
    argv: Sequence[str],
    out: Path | None = None,
    err: Path | None = None,
    *,
    append: bool = False,
    user: str | None = None,
    where: ProcessPlacement = ANYWHERE,
    keep: Sequence[int] = (),
    **how: Any,
) -> subprocess.Popen[bytes]:
    """Start a program that dies with this process; options are for Popen. OSError if that fails."""
    account = pwd.getpwnam(user) if user is not None else None
    mode = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_TRUNC) | os.O_CLOEXEC
    fds = [os.open(path, mode, 0o600) for path in (out, err) if path is not None]
    its: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": fds[0], "stderr": fds[-1]} if fds else {}
    hears, tells = os.pipe()
    groups, cores = os.pathsep.join(map(str, where.groups)), ",".join(map(str, where.cpus or ()))
    rights = f"{account.pw_uid}:{account.pw_gid}" if account else ""
    words = [tells, os.getpid(), groups, cores, where.namespace or "", where.nofile or "", rights]
    become = [sys.executable, "-I", "-S", "-c", BECOME, *map(str, words), *argv]
    with open(hears, "rb") as reported_buffered_reader:
        try:
            child = subprocess.Popen(become, pass_fds=(tells, *keep), **its, **how)
        finally:
            for fd in (*fds, tells):
                os.close(fd)
        # It ends as the program begins.
        number, _, what = reported_buffered_reader.read().decode().partition(" ")
    if number:
        child.wait()
        raise OSError(int(number), os.strerror(int(number)), what)
    return child
