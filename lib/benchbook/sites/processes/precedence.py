"""What is measured goes before this machine's other programs, where rights allow.

A neighbour's burst otherwise takes half a core from whichever arm runs, and less from an arm with two
processes on that core than from one with a single process: the effect changes with the neighbour.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from benchbook.sites.processes import procfs

NICE = -10
"""Weighs nine times as much as an ordinary program (sched(7)); what serves the machine itself still runs."""


@contextlib.contextmanager
def taken() -> Iterator[None]:
    """Let this process, and all it starts meanwhile, go before ordinary programs; give it back at the end.

    Both its nice value and that of its session, where the kernel schedules sessions (sched(7), autogroup).
    Nothing changes without the right to it (CAP_SYS_NICE); `procfs.place` says the nice value that stands.
    """
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
