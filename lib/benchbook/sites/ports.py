"""Who listens where on this machine."""

from __future__ import annotations

import contextlib
import ipaddress
import os
from pathlib import Path

import psutil

from benchbook.core.errors import SiteError
from benchbook.sites import procfs
from benchbook.sites.agent.listening import readable

LISTEN = "0A"
# The ports that the kernel gives to connections that go out, lowest and highest.
GIVEN_AWAY = Path("/proc/sys/net/ipv4/ip_local_port_range")


def listeners(port: int | None = None) -> list[tuple[str, int, int]]:
    """Return (address, port, inode) of all listening TCP sockets, or of those on one port.

    Addresses are as the kernel writes them: 0100007F is 127.0.0.1.
    """
    found = []
    for table in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            address, number = fields[1].rsplit(":", 1)
            if fields[3] == LISTEN and port in (None, int(number, 16)):
                found.append((address, int(number, 16), int(fields[9])))
    return found


def holders(port: int) -> list[int]:
    """Return the processes that listen on a port; empty if none does or we may not see them."""
    found = set()
    for connection in psutil.net_connections("tcp"):
        if (
            connection.status == psutil.CONN_LISTEN
            and connection.laddr
            and connection.laddr.port == port
            and connection.pid
        ):
            found.add(connection.pid)
    return sorted(found)


def of_process(pid: int) -> list[tuple[str, int]]:
    """Return (address, port) of each TCP socket that a process listens on, as its own namespace has it."""
    mine: set[str] = set()
    try:
        for entry in os.scandir(procfs.PROC / str(pid) / "fd"):
            with contextlib.suppress(OSError):
                mine.add(os.readlink(entry.path))
    except OSError:
        return []
    found = []
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (procfs.PROC / str(pid) / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTEN and f"socket:[{fields[9]}]" in mine:
                    address, number = fields[1].rsplit(":", 1)
                    found.append((readable(address), int(number, 16)))
    return found


def strays(pid: int, allowed: str) -> list[str]:
    """Return ADDRESS:PORT of what a process listens on beside loopback and one address that it may have."""
    return [
        f"{address}:{port}"
        for address, port in of_process(pid)
        if address != allowed and not _is_loopback(address)
    ]


def _is_loopback(address: str) -> bool:
    found = ipaddress.ip_address(address)
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def must_be_free(port: int, what: str) -> None:
    """Raise SiteError if a process listens on a port, naming who if that can be seen; leave them alone."""
    if not listeners(port):
        return
    named = (
        ", ".join(f"pid {pid}: {procfs.command(pid)}" for pid in holders(port)) or "a process of another user"
    )
    raise SiteError(
        f"{what}: port {port} is taken by {named}; end that server yourself, run `make down` if it is ours, "
        "or set another site.port in the study"
    )


def borrowed(port: int, what: str) -> str:
    """Say that a connection goes out from a port, so that nothing can listen there, and what to do."""
    low = int(GIVEN_AWAY.read_text().split()[0])
    return (
        f"{what}: another program's connection goes out from port {port}, so nothing can listen there; set a "
        f"site.port below {low} in the study: the kernel gives none of those to connections"
    )
