"""HTTP and clocks of a host: asked through its agent, so that nothing but SSH need be open between us."""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass

from benchbook.core.errors import SiteError
from benchbook.sites.hosts.host import Host
from benchbook.sites.hosts.stream import FarSocket
from benchbook.sites.machine.contract import Request

WAIT_S = 10.0


@dataclass(frozen=True)
class Offset:
    """How far a host's monotonic clock is ahead of ours in s, and the round trip that this was found by."""

    ahead_s: float
    round_trip_s: float


def request(host: Host, address: str, port: int, asked: Request) -> str:
    """Return what an HTTP server that a host reaches answers; OSError if it is none, or says no."""
    try:
        link = FarSocket(host, (address, port))
    except SiteError as error:
        raise ConnectionError(str(error)) from None
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


def ask(host: Host, path: str, line: str) -> str:
    """Return what a program answers on its socket, a file of a host, to one line; OSError if it does not."""
    try:
        link = FarSocket(host, path)
    except SiteError as error:
        raise ConnectionError(str(error)) from None
    link.settimeout(WAIT_S)
    try:
        link.sendall(f"{line}\n".encode())
        return b"".join(iter(link.receive, b"")).decode("utf-8", "replace")
    finally:
        link.close()


def clock(host: Host, rounds: int = 9) -> Offset:
    """Return how far a host's monotonic clock is ahead of ours, from the quickest of some round trips."""
    best = Offset(0.0, float("inf"))
    for _ in range(rounds):
        sent = time.monotonic()
        there = host.call("hello")["monotonic_s"]
        back = time.monotonic()
        if back - sent < best.round_trip_s:
            best = Offset(there - (sent + back) / 2, back - sent)
    return best
