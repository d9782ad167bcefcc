"""Start a child that cannot outlive the main thread, prove later that it is ours, and end it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchbook.core.util.errors import SiteError
from benchbook.sites.processes import procfs, spawn
from benchbook.sites.processes.spawn import ANYWHERE, ProcessPlacement

TOKEN = "BENCHBOOK_LAB"
FOLDER = "BENCHBOOK_LAB_FOLDER"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What a pid file holds of a process.
KEPT: dict[str, Callable[[Any], Any]] = {"role": str, "pid": int, "started": int, "token": str}
PLAIN = {"PATH": PATH, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


@dataclass(frozen=True)
class Child:
    """One supervised process, known again by its pid file; `note`: where one says when it began."""

    role: str
    pid: int
    started: int
    token: str
    popen: subprocess.Popen[bytes] | None = field(default=None, compare=False, repr=False)
    note: Path | None = field(default=None, compare=False, repr=False)
    # This machine's own clock tells when it ran.
    ran_s = None

    @property
    def is_alive(self) -> bool:
        """True if it still runs; it is reaped if it has ended."""
        if self.popen is not None and self.popen.poll() is not None:
            return False
        return procfs.is_alive(self.pid, self.started)

    @property
    def begun_s(self) -> float | None:
        """Start of its program on the machine's monotonic clock, in seconds; None if not yet."""
        try:
            return float(self.note.read_text(encoding="ascii")) if self.note is not None else None
        except (OSError, ValueError):
            return None


def start_child(
    role: str,
    argv: Sequence[str],
    *,
    token: str,
    folder: Path,
    out: Path,
    err: Path | None = None,
    pidfile: Path | None = None,
    user: str | None = None,
    where: ProcessPlacement = ANYWHERE,
    env: Mapping[str, str] | None = None,
    keep: Sequence[int] = (),
    cwd: Path | None = None,
    append: bool = True,
) -> Child:
    """Start a child that dies with this process and return it.

    Output goes straight into `out` (and `err`, else the same file), never through a pipe. `keep` are file
    descriptors it inherits, such as the lock. The environment holds `env`, PATH, a plain locale and
    the lab's token. Raises SiteError off the main thread and if the program cannot be started.
    """
    if threading.current_thread() is not threading.main_thread():
        fault = f"{role} must be started from the main thread: a child dies with the thread that started it"
        raise SiteError(f"{fault}; call this directly in a cell or a script")
    try:
        inside = PLAIN | {**(env or {}), TOKEN: token, FOLDER: str(folder)}
        popen = spawn.spawn_program(
            *(argv, out, err),
            append=append,
            user=user,
            where=where,
            keep=keep,
            cwd=cwd or folder,
            process_group=0,
            env=inside,
        )
    except OSError as error:
        remedy = "check that the program exists and the lab folder can be reached by its user"
        raise SiteError(f"{role}: {argv[0]} could not be started: {error}; {remedy}") from None
    child = identify_child(role, popen.pid, token, popen)
    if pidfile is not None:
        write_pidfile(pidfile, child)
    return child


def identify_child(role: str, pid: int, token: str, popen: subprocess.Popen[bytes] | None = None) -> Child:
    """A process with the start time that tells it from later ones."""
    stat = procfs.read_stat(pid)
    return Child(role, pid, stat.started if stat else 0, token, popen)


def find_living(is_meant: Callable[[Mapping[str, str]], bool]) -> list[Child]:
    """Living processes with a matching environment, except this one; first started first."""
    result = []
    for pid in procfs.list_pids():
        environment = procfs.read_environment(pid)
        if pid == os.getpid() or not is_meant(environment):
            continue
        its = procfs.read_stat(pid)
        if its is not None and its.lives:
            result.append(Child("left over", pid, its.started, environment.get(TOKEN, "")))
    return sorted(result, key=lambda child: (child.started, child.pid))


def write_pidfile(pidfile: Path, child: Child) -> None:
    """Write a pid file that identifies a process later; the file is complete or absent."""
    record = {name: getattr(child, name) for name in KEPT}
    temporary = pidfile.with_suffix(".tmp")
    temporary.write_text(json.dumps(record), encoding="utf-8")
    temporary.rename(pidfile)


def read_pidfile(pidfile: Path) -> Child | None:
    """Process of a pid file, or None if it is missing, empty or cut."""
    try:
        record = json.loads(pidfile.read_text(encoding="utf-8"))
        return Child(**{name: kind(record[name]) for name, kind in KEPT.items()})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_ours(child: Child) -> bool:
    """True if we started the process: alive, same start time, our token in its environment."""
    if not procfs.is_alive(child.pid, child.started):
        return False
    return child.popen is not None or procfs.read_environment(child.pid).get(TOKEN) == child.token


def wait_for_child(child: Child, timeout_s: float) -> int:
    """Wait for a child that ends by itself and return its exit code; after `timeout_s` stop it, SiteError."""
    assert child.popen is not None
    try:
        return child.popen.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        fault = f"{child.role} did not end within {timeout_s:.0f} s and was stopped"
        raise SiteError(f"{fault}; look whether the disk is full or the machine overloaded") from None
    finally:
        stop_child(child, grace_s=2.0)


def stop_child(child: Child, *, grace_s: float = 20.0, gentle: int = signal.SIGTERM) -> bool:
    """End a process, if it is still ours: TERM, wait, KILL, reap; True if it went without KILL."""
    try:
        handle = os.pidfd_open(child.pid)
    except (ProcessLookupError, OSError):
        return True
    try:
        # The handle names one process for ever, so the proof made now holds for every signal below.
        if not is_ours(child):
            _reap_child(child)
            return True
        for signum, wait_s in ((gentle, grace_s), (signal.SIGKILL, 10.0)):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signum)
                signal.pidfd_send_signal(handle, signal.SIGCONT)
            if procfs.any_ended([handle], wait_s):
                return signum == gentle
    finally:
        os.close(handle)
        _reap_child(child)
    fault = f"{child.role} (pid {child.pid}) does not end, even by SIGKILL: it waits in the kernel"
    raise SiteError(f"{fault}; look at `dmesg` and try `make down` again")


def _reap_child(child: Child) -> None:
    if child.popen is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.popen.wait(timeout=1.0)


NICE = -10
"""Weighs nine times as much as an ordinary program (sched(7)); what serves the machine itself still runs."""


@contextlib.contextmanager
def before_others() -> Iterator[None]:
    """Go before ordinary programs meanwhile, by nice values of process and session; needs CAP_SYS_NICE."""
    me = os.getpid()
    before, session = os.getpriority(os.PRIO_PROCESS, 0), procfs.session_nice(me)
    # Who finds it raised by another command of the session leaves it, so that the last does not keep it so.
    raised = session if session is not None and session > NICE else None
    try:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, min(before, NICE))
            if raised is not None:
                procfs.set_session_nice(me, NICE)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, before)
            if raised is not None:
                procfs.set_session_nice(me, raised)


# sys.argv: the moment (none: when it is let go on), the file for the note, the program's command line.
WAIT = """
import os, sys, time
from _signal import SIGSTOP
note = open(sys.argv[2], "w")
if sys.argv[1]:
    time.sleep(max(0.0, float(sys.argv[1]) - time.monotonic()))
else:
    os.kill(os.getpid(), SIGSTOP)
note.write(repr(time.monotonic()))
note.close()
os.execvp(sys.argv[3], sys.argv[3:])
"""


def defer_command(argv: Sequence[str], at: float | None, note: Path) -> list[str]:
    """Command line that begins a program at a moment, or at once if that has passed; without
    one it stands still until it is let go on."""
    note.unlink(missing_ok=True)
    # Without the site packages it is ready in a few hundredths of a second.
    moment = "" if at is None else repr(at)
    return [sys.executable, "-I", "-S", "-c", WAIT, moment, str(note), *argv]
