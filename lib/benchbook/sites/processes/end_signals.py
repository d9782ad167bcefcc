"""Leave a site in order when a signal asks this process to end, and end by that signal afterwards."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any

ENDING = (signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Turns signals that would end this process at once into an orderly exit, between `catch` and `leave`."""

    def __init__(self) -> None:
        self._ended_by: int | None = None
        self._before: dict[int, Any] = {}

    def catch(self) -> None:
        """Begin to turn signals into an exit."""
        if threading.current_thread() is not threading.main_thread():
            return
        free = [signum for signum in ENDING if signal.getsignal(signum) is signal.SIG_DFL]
        self._before = {signum: signal.signal(signum, self._exit) for signum in free}

    def leave(self) -> None:
        """Give the signals back; if one has come, end by it now."""
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        if self._ended_by is not None:
            os.kill(os.getpid(), self._ended_by)

    def _exit(self, signum: int, frame: FrameType | None) -> None:
        # A second one, which `timeout` sends to the whole group, must not cut short what the first began.
        if self._ended_by is not None:
            return
        self._ended_by = signum
        raise SystemExit(128 + signum)
