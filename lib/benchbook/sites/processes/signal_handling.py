"""Orderly end when a signal asks for it: this process leaves and ends all that it started."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Self

from benchbook.sites.processes import procfs, supervise
from benchbook.sites.processes.spawn import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, call_prctl

ENDING = (signal.SIGTERM, signal.SIGHUP)
STOPPED = 130
"""The exit code of a command that was stopped, whichever signal did it."""
PATIENCE_S = 10.0
"""Seconds on the way out after which a command that holds no servers ends where it stands."""
OF_STAGE = "DVC_STAGE"
"""What DVC names a stage by in the environment of its command."""


@contextlib.contextmanager
def catch_signals() -> Iterator[None]:
    """Leave the block in order at a signal without a handler, then end by it; in the main thread alone."""
    ended_by: int | None = None

    def leave(signum: int, frame: FrameType | None) -> None:
        nonlocal ended_by
        # A second one, which `timeout` sends to the whole group, must not cut short what the first began.
        if ended_by is None:
            ended_by = signum
            raise SystemExit(128 + signum)

    is_main = threading.current_thread() is threading.main_thread()
    free = [signals for signals in ENDING if is_main and signal.getsignal(signals) is signal.SIG_DFL]
    before = {signum: signal.signal(signum, leave) for signum in free}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
        if ended_by is not None:
            os.kill(os.getpid(), ended_by)


class Command:
    """A command from its first line to its last: once it is stopped, nothing that it started goes on.

    One that holds servers (`is_holding`) ends them in its own order first. Of others whatever runs is killed
    at once, since workers would finish what they were given. A command of the pipeline is stopped when its
    pipeline ends, however that ended.
    """

    def __init__(self, name: str, is_holding: bool) -> None:
        self.name, self.is_holding, self.is_stopped = name, is_holding, False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
            return self
        wanted = ENDING if self.is_holding else (*ENDING, signal.SIGINT)
        # Who starts a command with a signal ignored, as `nohup` does, means that.
        heard = [signals for signals in wanted if signal.getsignal(signals) is not signal.SIG_IGN]
        self._before = {signum: signal.signal(signum, self._stop) for signum in heard}
        if OF_STAGE in os.environ:
            call_prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() == 1:
                os._exit(STOPPED)
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        if self.is_stopped:
            supervise.end_descendants()
            call_prctl(PR_SET_CHILD_SUBREAPER, 0)

    def _stop(self, signum: int, frame: FrameType | None) -> None:
        if self.is_stopped:
            return
        self.is_stopped = True
        # What the ended leave behind becomes this command's own, which finds it so.
        call_prctl(PR_SET_CHILD_SUBREAPER, 1)
        os.write(2, f"benchbook {self.name}: stopped\n".encode())
        if not self.is_holding:
            for pid in procfs.find_descendants(os.getpid()):
                supervise.send_signal(pid, signal.SIGKILL)
            # Who knew the names of semaphores is among them; another one would start, and know none.
            if tracker := sys.modules.get("multiprocessing.resource_tracker"):
                vars(tracker)["unregister"] = lambda name, kind: None
            last = threading.Timer(PATIENCE_S, os._exit, [STOPPED])
            last.daemon = True
            last.start()
            raise KeyboardInterrupt
        raise SystemExit(128 + signum)
