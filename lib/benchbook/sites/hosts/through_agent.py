"""HTTP and clocks of a host: asked through its agent, so that nothing but SSH need be open between us."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchbook.sites.hosts.host import Host
from benchbook.sites.hosts.stream import FarSocket
from benchbook.sites.machine import far
from benchbook.sites.machine.contract import Request


@dataclass(frozen=True)
class Offset:
    """How far a host's monotonic clock is ahead of ours in s, and the round trip that this was found by."""

    ahead_s: float
    round_trip_s: float


def request(host: Host, address: str, port: int, asked: Request) -> str:
    """Return what an HTTP server that a host reaches answers; OSError if it is none, or says no."""
    return far.fetch(FarSocket(host, (address, port)), address, port, asked)


def ask(host: Host, path: str, line: str) -> str:
    """Return what a program answers on its socket, a file of a host, to one line; OSError if it does not."""
    link = FarSocket(host, path)
    link.settimeout(far.WAIT_S)
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
