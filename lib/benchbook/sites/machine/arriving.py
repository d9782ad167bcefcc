"""Bytes that come over a way of ours, such as an agent's, as the standard library reads them from a file."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any


class Arriving(io.RawIOBase):
    """What arrives; `receive` waits for the bytes that come next, and returns none at the end."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive, self._left = receive, b""

    def makefile(self, mode: str = "rb") -> io.BufferedReader:
        """Return itself with a buffer, as a socket does."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._left or self._receive()
        taken = min(len(buffer), len(data))
        buffer[:taken], self._left = data[:taken], data[taken:]
        return taken
