"""A hop that holds every byte back, in both directions: distance if the kernel has no netem.

    python -m benchbook.sites.local.delay_proxy 127.0.0.1:35001 127.0.0.1:35000 1.5

listens on the first address, connects to the second, and delays by 1.5 ms each way. It takes processor time
of its own, so a comparison has it in both arms, with 0 ms in the baseline.
"""

import asyncio
import contextlib
import ctypes
import os
import selectors
import sys
from collections import deque
from typing import Self

CHUNK = 1 << 18
# asyncio's own room for what it receives is allocated anew for each message, and so large that each costs a
# mapping until a first connection has ended: the first run behind a new relay had half the throughput.
ROOM = 1 << 16
BACKLOG = 1024
CLOCK_MONOTONIC = 1
TFD_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class _Itimerspec(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("every_s", "every_ns", "after_s", "after_ns")]


class FineSelector(selectors.EpollSelector):
    """epoll with a timer of its own, since epoll_wait(2) counts in whole milliseconds."""

    def __init__(self) -> None:
        super().__init__()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._timer = self._libc.timerfd_create(CLOCK_MONOTONIC, TFD_FLAGS)
        if self._timer < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._epoll = self._selector  # type: ignore[attr-defined]
        self._epoll.register(self._timer, selectors.select.EPOLLIN)  # type: ignore[attr-defined]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events until a time given to the microsecond."""
        if timeout is not None and timeout > 0:
            seconds, rest = divmod(timeout, 1.0)
            spec = _Itimerspec(0, 0, int(seconds), max(1, int(rest * 1e9)))
            self._libc.timerfd_settime(self._timer, 0, ctypes.byref(spec), None)
            timeout = None
        ready = super().select(timeout)
        with contextlib.suppress(BlockingIOError):
            os.read(self._timer, 8)
        return ready


class RelaySide(asyncio.BufferedProtocol):
    """One side of a relayed connection: its input is written to the other side a delay later."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self.other: Self | None = None
        self.transport: asyncio.Transport | None = None
        self.early: list[bytes | None] = []
        self.late: deque[bytes | None] = deque()
        self.has_heard_end = False
        self.room = memoryview(bytearray(ROOM))
        self.loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection; writes go out at once (asyncio sets TCP_NODELAY)."""
        self.transport = transport  # type: ignore[assignment]
        transport.set_write_buffer_limits(high=CHUNK * 64)  # type: ignore[attr-defined]

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.room

    def buffer_updated(self, nbytes: int) -> None:
        """Pass bytes on, after the delay; `None` among them is the end of the stream."""
        self._pass(bytes(self.room[:nbytes]))

    def eof_received(self) -> bool:
        """Pass the end of the stream on like a byte and leave the other direction open."""
        self.has_heard_end = True
        self._pass(None)
        return True

    def connection_lost(self, error: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.loop.call_later(self.delay_s, self.other.transport.close)

    def meet(self, other: Self) -> None:
        """Join the two sides and pass on the bytes that came before both were there."""
        self.other, other.other = other, self
        for side in (self, other):
            early, side.early = side.early, []
            for item in early:
                side._pass(item)
            if side.transport is None or side.transport.is_closing():
                side.connection_lost(None)

    def _pass(self, item: bytes | None) -> None:
        if self.other is None:
            self.early.append(item)
        elif self.delay_s == 0:
            self.other._send(item)
        else:
            # A queue keeps the order, whatever the timers do; each of them sends the next in line.
            self.late.append(item)
            self.loop.call_later(self.delay_s, self._send_next)

    def _send_next(self) -> None:
        assert self.other is not None
        self.other._send(self.late.popleft())

    def _send(self, item: bytes | None) -> None:
        if self.transport is None or self.transport.is_closing():
            return
        if item is not None:
            self.transport.write(item)
        elif self.has_heard_end:
            self.transport.close()
        else:
            with contextlib.suppress(OSError):
                self.transport.write_eof()


async def serve(listen: tuple[str, int], server: tuple[str, int], delay_s: float) -> None:
    """Relay until the process ends."""
    loop = asyncio.get_running_loop()
    waiting: set[asyncio.Task[None]] = set()

    async def join(side: RelaySide) -> None:
        try:
            _, upstream = await loop.create_connection(lambda: RelaySide(delay_s), *server)
        except OSError:
            if side.transport is not None:
                side.transport.abort()
            return
        side.meet(upstream)

    def accept() -> RelaySide:
        side = RelaySide(delay_s)
        task = loop.create_task(join(side))
        waiting.add(task)
        task.add_done_callback(waiting.discard)
        return side

    async with await loop.create_server(accept, *listen, backlog=BACKLOG) as listening:
        await listening.serve_forever()


def main(argv: list[str]) -> None:
    """Serve with the addresses and the delay in milliseconds given."""
    listen, server = ((host, int(port)) for host, _, port in (word.rpartition(":") for word in argv[:2]))
    loop = asyncio.SelectorEventLoop(FineSelector())
    loop.run_until_complete(serve(listen, server, float(argv[2]) / 1000))


if __name__ == "__main__":
    main(sys.argv[1:])
