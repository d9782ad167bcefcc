"""A connection to a server that its host's agent holds for us: it outlives a lost connection to the host."""

from __future__ import annotations

import base64
import ssl
import time
import uuid
from typing import Any

import pymysql

from benchbook.core.errors import SiteError
from benchbook.sites.hosts.host import Host
from benchbook.sites.machine.far import Far

LOOK_S = 2.0
UNREACHABLE = 2003


class FarSocket(Far):
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


def connect(
    host: Host, target: str | tuple[str, int], tls: ssl.SSLContext | None = None, **account: Any
) -> pymysql.Connection:
    """Open a connection to MariaDB or MySQL from a host, with PyMySQL's own arguments for the account."""
    try:
        far = FarSocket(host, target)
    except ConnectionError as error:
        raise pymysql.err.OperationalError(UNREACHABLE, str(error)) from None
    how = {"ssl_disabled": True} if tls is None else {"ssl": tls}
    connection = pymysql.connect(**account, **how, autocommit=True, defer_connect=True)
    connection.connect(far)
    return connection
