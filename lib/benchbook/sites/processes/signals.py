"""Signals that are waited for, read from a descriptor.

signal.sigtimedwait of Python returns a record that was never filled when a stop and a continue end the
wait after its time: any number can stand there, also that of a signal which ends a stage. What signalfd(2)
hands out was sent.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from collections.abc import Iterable

from benchbook.core.errors import SiteError

SFD_CLOEXEC, SFD_NONBLOCK = os.O_CLOEXEC, os.O_NONBLOCK
# struct signalfd_siginfo: 128 bytes, the number first, as 32 bits in the order of this machine.
RECORD_BYTES, NUMBER_BYTES = 128, 4
# sigset_t of glibc and musl alike.
SET_BYTES = 128

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class Signals:
    """The given signals, blocked from here to `close` and handed out by `wait`; SiteError off Linux."""

    def __init__(self, wanted: Iterable[signal.Signals]) -> None:
        if _libc is None:
            raise SiteError("signals can be waited for on Linux only; run Benchbook on a Linux machine")
        wanted = list(wanted)
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
        mask = ctypes.create_string_buffer(SET_BYTES)
        _libc.sigemptyset(mask)
        for signum in wanted:
            _libc.sigaddset(mask, int(signum))
        self._fd = _libc.signalfd(-1, mask, SFD_CLOEXEC | SFD_NONBLOCK)
        if self._fd < 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
            raise OSError(ctypes.get_errno(), "signalfd")

    def wait(self, seconds: float, also: Iterable[int] = ()) -> int | None:
        """Return the number of a signal that was sent; None after the time or as one of `also` is ready."""
        poll = select.poll()
        for handle in (self._fd, *also):
            poll.register(handle, select.POLLIN)
        poll.poll(seconds * 1000)
        try:
            record = os.read(self._fd, RECORD_BYTES)
        except BlockingIOError:
            return None
        return int.from_bytes(record[:NUMBER_BYTES], sys.byteorder)

    def close(self) -> None:
        """Forget what is still waiting and let the signals through as they were before."""
        while self.wait(0) is not None:
            pass
        os.close(self._fd)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
