"""A connection that another program carries for us, such as an agent: as much of a socket as drivers use."""

from __future__ import annotations

import abc
import http.client
import io
from collections.abc import Callable
from typing import Any

from benchbook.sites.machine.contract import Request

WAIT_S = 10.0
BUFFER = 1 << 16


class Far(abc.ABC):
    """One connection to a server. Nothing reads ahead of who asks."""

    @abc.abstractmethod
    def settimeout(self, seconds: float | None) -> None:
        """Set how long a read may take; None: for ever."""

    @abc.abstractmethod
    def sendall(self, data: bytes) -> None:
        """Send all bytes."""

    @abc.abstractmethod
    def receive(self) -> bytes:
        """Wait for the bytes that come next; none at the end."""

    @abc.abstractmethod
    def close(self) -> None:
        """End it."""

    def makefile(self, mode: str = "rb") -> io.BufferedReader:
        return io.BufferedReader(_Arriving(self.receive), BUFFER)


def fetch(link: Far, address: str, port: int, asked: Request) -> str:
    """Return what an HTTP server answers over a connection, which is used up; OSError if it says no."""
    link.settimeout(WAIT_S)
    connection = http.client.HTTPConnection(address, port)
    connection.sock = link  # type: ignore[assignment]
    try:
        # Kept alive until we close it: http.client would else close what it still has to read from.
        connection.request(asked.method, asked.path, asked.body, {"Content-Type": asked.kind})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
    except http.client.HTTPException as error:
        raise ConnectionError(f"{type(error).__name__}: {error}") from None
    finally:
        link.close()
    if answer.status >= 400:
        raise ConnectionError(f"{asked.method} {asked.path}: {answer.status} {text[:200]}")
    return text


class _Arriving(io.RawIOBase):
    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive, self._left = receive, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._left or self._receive()
        taken = min(len(buffer), len(data))
        buffer[:taken], self._left = data[:taken], data[taken:]
        return taken
