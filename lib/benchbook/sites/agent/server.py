"""The agent: it answers at a socket in its folder, and ends all it started when its lease is over."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import time
from pathlib import Path
from typing import Any

from benchbook.core.util.errors import BenchbookError
from benchbook.sites.agent import jobs, kernel
from benchbook.sites.agent.jobs import Jobs
from benchbook.sites.agent.rpc_methods import Later, Operations, Stream

SOCKET, BOOK = "agent.sock", "agent.json"
TICK_S, GRACE_S = 0.2, 60.0
MOST_WAITING = 64 * 1024 * 1024


class Caller:
    """One client connection: bytes that came in, and bytes still to go out."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket, self.inbox, self.outbox = connection, bytearray(), bytearray()
        connection.setblocking(False)

    def lines(self) -> list[bytes] | None:
        """Whole lines that have come; None when the other side has gone."""
        try:
            data = self.socket.recv(1 << 20)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        self.inbox += data
        *whole, rest = bytes(self.inbox).split(b"\n")
        self.inbox = bytearray(rest)
        return whole

    def flush(self) -> bool:
        """Send as much as goes without waiting; True if the other side is still there."""
        try:
            while self.outbox:
                del self.outbox[: self.socket.send(self.outbox)]
        except BlockingIOError:
            return len(self.outbox) < MOST_WAITING
        except OSError:
            return False
        return True


class Agent:
    """One agent in its folder; `keep` are descriptors that its programs inherit, such as the host's lock."""

    def __init__(self, folder: Path, token: str, lease_s: float, keep: tuple[int, ...]) -> None:
        self.folder, self.lease_s = folder, lease_s
        self.jobs = Jobs(folder, token, keep)
        self.operations = Operations(folder, self.jobs)
        self.until = time.monotonic() + lease_s
        self.why: str | None = None
        self._waiting: list[tuple[Caller, str, Later]] = []
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Answer until asked to end, until a signal says so, or until the lease is over."""
        woken, wake = socket.socketpair()
        for end in (woken, wake):
            end.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, self._leave)
        unheard = self.folder / "new.sock"
        unheard.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(unheard))
            os.chmod(unheard, 0o600)
            listener.listen(16)
            listener.setblocking(False)
            # Who waits for the socket calls as soon as it is there, and a bound one refuses until it listens.
            unheard.replace(self.folder / SOCKET)
            self._selector.register(listener, selectors.EVENT_READ)
            self._selector.register(woken, selectors.EVENT_READ)
            try:
                while self.why is None:
                    self._turn(listener, woken)
            finally:
                # No trace is left but the data.
                self.jobs.end_all(GRACE_S)
                jobs.run_at_end(self.folder)
                kernel.restore_settings(self.folder)
                for name in (SOCKET, BOOK):
                    (self.folder / name).unlink(missing_ok=True)

    def _turn(self, listener: socket.socket, woken: socket.socket) -> None:
        for key, _ in self._selector.select(TICK_S):
            if key.fileobj is listener:
                caller = Caller(listener.accept()[0])
                self._selector.register(caller.socket, selectors.EVENT_READ, caller)
            elif key.fileobj is woken:
                with contextlib.suppress(BlockingIOError):
                    woken.recv(4096)
            elif isinstance(key.data, Caller):
                self._hear(key.data)
            elif not key.data.receive():
                self._forget(key.data)
        self.jobs.tick()
        self._answer_waiting()
        if time.monotonic() > self.until:
            self.why = "the lease is over"

    def _hear(self, caller: Caller) -> None:
        lines = caller.lines()
        if lines is None or not caller.flush():
            return self._drop(caller)
        for line in filter(None, lines):
            self.until = time.monotonic() + self.lease_s
            request = json.loads(line)
            self._do(caller, str(request.pop("id")), str(request.pop("do")), request)

    def _do(self, caller: Caller, number: str, what: str, arguments: dict[str, Any]) -> None:
        try:
            if what == "end":
                self.why = "it was asked to"
                return self._reply(caller, number, "ok", None)
            operation = None if what.startswith("_") else getattr(self.operations, what, None)
            if operation is None:
                raise BenchbookError(f"{what}: not known here")
            if what == "close" and arguments["stream"] in self.operations.streams:
                self._forget(self.operations.streams[arguments["stream"]])
            result = operation(**arguments)
            if what == "connect":
                stream = self.operations.streams[arguments["stream"]]
                with contextlib.suppress(KeyError):
                    self._selector.register(stream, selectors.EVENT_READ, stream)
        except (BenchbookError, OSError, KeyError, TypeError, ValueError) as error:
            text = str(error) if isinstance(error, BenchbookError) else f"{type(error).__name__}: {error}"
            return self._reply(caller, number, "error", text)
        if isinstance(result, Later):
            self._waiting.append((caller, number, result))
        else:
            self._reply(caller, number, "ok", result)

    def _answer_waiting(self) -> None:
        still = []
        for caller, number, later in self._waiting:
            result = later.ready()
            if result is None and time.monotonic() < later.until:
                still.append((caller, number, later))
            else:
                self._reply(caller, number, "ok", later.otherwise() if result is None else result)
        self._waiting = still

    def _reply(self, caller: Caller, number: str, kind: str, value: Any) -> None:
        caller.outbox += json.dumps({"id": number, kind: value}).encode() + b"\n"
        if not caller.flush():
            self._drop(caller)
        elif caller.socket.fileno() >= 0:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if caller.outbox else 0)
            self._selector.modify(caller.socket, events, caller)

    def _drop(self, caller: Caller) -> None:
        self._waiting = [row for row in self._waiting if row[0] is not caller]
        if caller.socket.fileno() >= 0:
            self._selector.unregister(caller.socket)
            caller.socket.close()

    def _forget(self, stream: Stream) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(stream)

    def _leave(self, signum: int, frame: object) -> None:
        self.why = f"signal {signum}"
