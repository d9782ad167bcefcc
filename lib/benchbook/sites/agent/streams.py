"""Connections that the agent holds for somebody far away, who may lose the way here and come back.

Both directions are counted in bytes: what was sent twice is taken once, what was not yet received is kept.
"""

from __future__ import annotations

import base64
import contextlib
import socket
from typing import Any

from benchbook.core.errors import SiteError

CONNECT_S = 10.0
PIECE = 256 * 1024
MOST_KEPT = 64 * 1024 * 1024


class Stream:
    """One connection; `kept` are bytes from the far end, the first of which has the number `base`."""

    def __init__(self, target: str | list[Any]) -> None:
        try:
            if isinstance(target, str):
                self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.socket.settimeout(CONNECT_S)
                self.socket.connect(target)
            else:
                self.socket = socket.create_connection((target[0], int(target[1])), CONNECT_S)
        except OSError as error:
            raise ConnectionError(f"{target}: {error}") from None
        self.kept, self.base, self.taken, self.is_over = bytearray(), 0, 0, False

    def fileno(self) -> int:
        return self.socket.fileno()

    def receive(self) -> bool:
        """Take what has come, when there is something; say whether more may come."""
        try:
            data = self.socket.recv(PIECE)
        except OSError:
            data = b""
        self.kept += data
        self.is_over = not data or len(self.kept) > MOST_KEPT
        return not self.is_over

    def send(self, at: int, data: str) -> int:
        """Pass on bytes, in base64, the first of them number `at`; return how many were taken so far."""
        raw = base64.b64decode(data)
        if at > self.taken:
            raise SiteError(f"bytes {self.taken} to {at} are missing")
        fresh = raw[self.taken - at :]
        try:
            self.socket.sendall(fresh)
        except OSError:
            self.is_over = True
        self.taken += len(fresh)
        return self.taken

    def read(self, at: int, most: int) -> dict[str, Any] | None:
        """Return bytes from number `at` on; None if there are none yet. Those before it are dropped."""
        del self.kept[: max(0, at - self.base)]
        self.base = max(self.base, at)
        if not self.kept and not self.is_over:
            return None
        return {"data": base64.b64encode(bytes(self.kept[:most])).decode(), "is_over": self.is_over}

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.close()
