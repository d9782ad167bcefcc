"""Own one stage: whatever ends it, nothing it started lives on.

    exec python -m benchbook.sites.processes.supervise papermill ...

The chain is pipeline → supervisor → stage process → notebook kernel → server and load client. Each link
dies with the one before it, even by SIGKILL; the supervisor also collects whatever leaves the chain
(prctl(2): PR_SET_CHILD_SUBREAPER) and ends it when the stage ends.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchbook.sites.processes import procfs, spawn
from benchbook.sites.processes.spawn import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, call_prctl

OWNER = "BENCHBOOK_OWNER"
GRACE_S = 3.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHELLS = {"sh", "bash", "dash", "zsh", "ksh"}


def run_stage(argv: Sequence[str], log: Path | None = None) -> int:
    """Run a stage's command to its end; return its exit code, 128 + n after signal n; errors go to `log`."""
    watched = _open_owners()
    call_prctl(PR_SET_CHILD_SUBREAPER, 1)
    call_prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    wanted = [signum for signum in ENDING if signal.getsignal(signum) is not signal.SIG_IGN]
    signals = Signals([*wanted, signal.SIGCHLD])
    try:
        env = {**os.environ, OWNER: str(os.getpid())}
        with log.open("wb") if log else contextlib.nullcontext() as errors:
            try:
                child = spawn.spawn_program(
                    argv, stdin=subprocess.DEVNULL, stderr=errors, start_new_session=True, env=env
                )
            except OSError as error:
                text = f"{argv[0]}: cannot be started: {error.strerror}; check that it is installed"
                print(text, file=sys.stderr)
                return 127
        ended_by = _wait_for_end(child, signals, watched)
        left = end_descendants(child)
        if left:
            print(f"still there after SIGKILL: {', '.join(map(str, left))}; run `make down`", file=sys.stderr)
        if ended_by is not None:
            return 128 + ended_by
        code = child.returncode
        return code if code >= 0 else 128 - code
    finally:
        for handle in watched:
            os.close(handle)
        # What came in while we ended the stage is answered already.
        signals.close()


def _open_owners() -> list[int]:
    """Handles of the processes that this one dies with: its parent, and who waits for that if it is a shell's
    line."""
    owners = []
    pid = os.getppid()
    while pid > 1:
        with contextlib.suppress(OSError):
            owners.append(os.pidfd_open(pid))
        words = procfs.read_command(pid).split()
        stat = procfs.read_stat(pid)
        is_line = len(words) > 1 and os.path.basename(words[0]) in SHELLS and words[1] in ("-c", "-ec", "-ce")
        pid = stat.parent if is_line and stat is not None else 0
    return owners


def _wait_for_end(child: subprocess.Popen[bytes], signals: "Signals", watched: Sequence[int]) -> int | None:
    """Wait for the end of a child, or the signal that ends it: SIGTERM when one of `watched` has ended."""
    while child.poll() is None:
        caught = signals.wait(0.2, watched)
        if caught not in (None, signal.SIGCHLD):
            return caught
        if procfs.any_ended(watched):
            return signal.SIGTERM
        _reap_orphans(child)
    return None


def end_descendants(child: subprocess.Popen[bytes] | None = None, grace_s: float = GRACE_S) -> list[int]:
    """End every descendant of this process: TERM, some seconds, KILL; reap, return those left."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + grace_s
        messages: set[int] = set()
        while (left := procfs.find_descendants(os.getpid())) and time.monotonic() < deadline:
            # Each gets the signal once, so that it can clean up, also those that appear while others end.
            for pid in set(left) - messages:
                messages.add(pid)
                send_signal(pid, signum)
            time.sleep(0.03)
            _reap_orphans(child)
        if not left:
            break
    _reap_orphans(child)
    return procfs.find_descendants(os.getpid())


def send_signal(pid: int, signum: signal.Signals) -> None:
    """Send a signal to a process that may have ended, or stand still."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signum)
        os.kill(pid, signal.SIGCONT)


def die_with_parent() -> None:
    """Tie this process to the one that started it, from its next line on; does nothing outside a stage."""
    if OWNER not in os.environ:
        return
    # A notebook kernel has a session of its own, and nothing else would end it.
    call_prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Jupyter says who started the kernel; a parent that ended before the request stood sends no signal.
    parent = os.environ.get("JPY_PARENT_PID")
    owner = int(os.environ[OWNER])
    is_orphan = parent is not None and parent.isdigit() and int(parent) != os.getppid()
    if is_orphan or not procfs.is_alive(owner):
        os.kill(os.getpid(), signal.SIGKILL)


def _reap_orphans(child: subprocess.Popen[bytes] | None) -> None:
    """Collect ended orphans, and the child through its own handle so that its exit code is kept."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if child is not None and ended.si_pid == child.pid:
                child.poll()
            else:
                os.waitpid(ended.si_pid, 0)


def main() -> None:
    """Run the command given as arguments and end as it ends."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m benchbook.sites.processes.supervise COMMAND [ARGUMENT ...]")
    sys.exit(run_stage(sys.argv[1:]))


class Signals:
    """The given signals, caught from here to `close` and handed out by `wait`, in the main thread."""

    def __init__(self, wanted: Iterable[signal.Signals]) -> None:
        self._hears, self._tells = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._outer = signal.set_wakeup_fd(self._tells, warn_on_full_buffer=False)
        self._before = {signum: signal.signal(signum, lambda *_: None) for signum in wanted}

    def wait(self, seconds: float, also: Iterable[int] = ()) -> int | None:
        """Number of a signal that was sent; None after the time or as one of `also` is ready."""
        poll = select.poll()
        for handle in (self._hears, *also):
            poll.register(handle, select.POLLIN)
        poll.poll(seconds * 1000)
        try:
            return os.read(self._hears, 1)[0]
        except BlockingIOError:
            return None

    def close(self) -> None:
        """Let the signals through as they were before."""
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(self._outer)
        for end in (self._hears, self._tells):
            os.close(end)


if __name__ == "__main__":
    main()
