"""HTTP and clocks of a host: asked through its agent, so that nothing but SSH need be open between us."""

from __future__ import annotations

from benchbook.sites.hosts.host import Host
from benchbook.sites.hosts.stream import FarSocket
from benchbook.sites.machine import far, offset
from benchbook.sites.machine.contract import Request


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


def clock(host: Host, rounds: int = 9) -> offset.Offset:
    """Return how far a host's monotonic clock is ahead of ours."""
    return offset.of(lambda: float(host.call("hello")["monotonic_s"]), rounds=rounds)
