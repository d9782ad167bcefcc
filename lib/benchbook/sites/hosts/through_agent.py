"""What a host's agent does and reaches for us, so that nothing but SSH need be open between us.

A connection that the agent holds outlives a lost connection to the host.
"""

from __future__ import annotations

import base64
import functools
import inspect
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites.agent.files import Files
from benchbook.sites.hosts.host import Host
from benchbook.sites.machine import contract

LOOK_S = 2.0


class FilesThere(Files):
    """The files of a host: each method of `Files` asks the host's agent (`call`), which has the same one."""

    call: Callable[..., Any]


def _asked(does: Callable[..., Any]) -> Callable[..., Any]:
    names = list(inspect.signature(does).parameters)[1:]

    @functools.wraps(does)
    def ask(self: FilesThere, *given: Any, **named: Any) -> Any:
        return self.call(does.__name__, **dict(zip(names, given, strict=False)), **named)

    return ask


for name, does in vars(Files).items():
    if not name.startswith("_"):
        setattr(FilesThere, name, _asked(does))


class FarSocket(contract.Far):
    """A connection to `target`, a socket in the agent's folder or (address, port); OSError without one."""

    def __init__(self, host: Host, target: str | tuple[str, int]) -> None:
        self._host, self._id, self._sent, self._received = host, uuid.uuid4().hex, 0, 0
        self._timeout_s: float | None = None
        self._ask("connect", target=target)

    def sendall(self, data: bytes) -> None:
        # What was sent is counted, so that none is sent twice.
        self._ask("send", at=self._sent, data=base64.b64encode(data).decode())
        self._sent += len(data)

    def settimeout(self, seconds: float | None) -> None:
        self._timeout_s = seconds

    def close(self) -> None:
        """Have it closed with the next request; this may be called from within one."""
        self._host.closing.append(self._id)

    def receive(self) -> bytes:
        deadline = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        while True:
            answer = self._ask("receive", at=self._received, up_to_s=LOOK_S)
            if answer["data"] or answer["is_over"]:
                data = base64.b64decode(answer["data"])
                self._received += len(data)
                return data
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError("timed out")

    def _ask(self, do: str, **arguments: Any) -> Any:
        try:
            return self._host.call(do, stream=self._id, **arguments)
        except SiteError as error:
            # PyMySQL makes of this what it makes of any connection that breaks.
            raise ConnectionError(str(error)) from None


@dataclass(frozen=True)
class Offset:
    """How far a clock is ahead of ours in s, and the round trip that this was found by."""

    ahead_s: float
    round_trip_s: float


def clock(
    host: Host, which: str = "monotonic_s", ours: Callable[[], float] = time.monotonic, rounds: int = 9
) -> Offset:
    """Return how far a clock of a host is ahead of ours, from the quickest of some round trips."""
    best = Offset(0.0, float("inf"))
    for _ in range(rounds):
        sent, there, back = ours(), float(host.call("hello")[which]), ours()
        if back - sent < best.round_trip_s:
            best = Offset(there - (sent + back) / 2, back - sent)
    return best
