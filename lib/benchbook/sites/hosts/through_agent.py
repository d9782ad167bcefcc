"""What a host's agent reaches for us, so that nothing but SSH need be open between us: servers, HTTP, clocks.

A connection that the agent holds outlives a lost connection to the host.
"""

from __future__ import annotations

import base64
import ssl
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pymysql

from benchbook.core.errors import SiteError
from benchbook.sites.hosts.host import Host
from benchbook.sites.lab import Lab
from benchbook.sites.machine import contract
from benchbook.sites.machine.contract import Request

if TYPE_CHECKING:
    import psycopg

LOOK_S = 2.0
UNREACHABLE = 2003


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


def connect(
    host: Host, target: str | tuple[str, int], tls: ssl.SSLContext | None = None, **account: Any
) -> pymysql.Connection:
    """Open a connection to MariaDB or MySQL from a host, with PyMySQL's own arguments for the account."""
    try:
        link = FarSocket(host, target)
    except ConnectionError as error:
        raise pymysql.err.OperationalError(UNREACHABLE, str(error)) from None
    how = {"ssl_disabled": True} if tls is None else {"ssl": tls}
    connection = pymysql.connect(**account, **how, autocommit=True, defer_connect=True)
    connection.connect(link)
    return connection


def connect_pgsql(
    host: Host, target: str | tuple[str, int], lab: Lab, **account: Any
) -> psycopg.Connection[Any]:
    """Open a connection to PostgreSQL from a host, with psycopg's own arguments for the account."""
    # Loaded here: most studies have no use for it.
    import psycopg

    from benchbook.sites.engines import postgresql_carried as carried

    try:
        link = FarSocket(host, target)
    except ConnectionError as error:
        raise psycopg.OperationalError(str(error)) from None
    return carried.connect(link, lab, **account)


def request(host: Host, address: str, port: int, asked: Request) -> str:
    """Return what an HTTP server that a host reaches answers; OSError if it is none, or says no."""
    return contract.fetch(FarSocket(host, (address, port)), address, port, asked)


def ask(host: Host, path: str, line: str) -> str:
    """Return what a program answers on its socket, a file of a host, to one line; OSError if it does not."""
    link = FarSocket(host, path)
    link.settimeout(contract.WAIT_S)
    try:
        link.sendall(f"{line}\n".encode())
        return b"".join(iter(link.receive, b"")).decode("utf-8", "replace")
    finally:
        link.close()


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
